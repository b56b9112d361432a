//! Local name spaces: names of metrics, from files in the form of PMNS(5).
//!
//! ```text
//!   files ─► preprocess ─► parse ─► tree (LocalNameSpace)
//!                                     │
//!            any source  ─────────────┴─► with_source (WithNameSpace)
//! ```
//!
//! pmcd and archives have name spaces of their own. A name space from a file
//! replaces that of the source behind it.

mod error;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod parse;
mod preprocess;
mod tree;
mod with_source;

use std::path::{Path, PathBuf};

pub use error::NameSpaceError;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_name_space;
pub use tree::{LocalNameSpace, NameKind};
pub use with_source::{NameSpaceLocation, WithNameSpace};

use pmderive_core::escape;
use pmderive_system::bounded;
use pmderive_system::pcp_conf::PcpConf;
use preprocess::Line;

/// Options for reading a name space file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// True if the file goes through the preprocessor, as in
    /// `pmLoadASCIINameSpace(3)`; false as in `pmLoadNameSpace(3)`.
    pub preprocess: bool,
    /// True if a metric may have several names.
    pub duplicates: bool,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions { preprocess: true, duplicates: true }
    }
}

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 24;

impl LocalNameSpace {
    /// Reads a file (`pmLoadASCIINameSpace(3)`, `pmLoadNameSpace(3)`). `None`
    /// stands for the file of this machine: `PMNS_DEFAULT`, else `root` in
    /// PCP's folder of name spaces. Included files are found as in pmcpp(1): by
    /// their names, beside the file, and in that folder.
    ///
    /// # Errors
    /// The file cannot be read, or is not a name space.
    pub fn load(
        file: Option<&Path>,
        options: &LoadOptions,
    ) -> Result<LocalNameSpace, NameSpaceError> {
        let conf = PcpConf::load();
        let folder = PathBuf::from(conf.get("PCP_VAR_DIR").unwrap_or_default()).join("pmns");
        let file = file.map(Path::to_path_buf).unwrap_or_else(|| {
            let default = std::env::var_os("PMNS_DEFAULT").filter(|file| !file.is_empty());
            default.map_or_else(|| folder.join("root"), PathBuf::from)
        });
        let name = escape::path(&file).into_owned();
        let text =
            read(&file).map_err(|source| NameSpaceError::Open { file: name.clone(), source })?;
        let beside = file.parent().unwrap_or(Path::new("")).to_path_buf();
        let include = |name: &str| {
            let places = [PathBuf::from(name), beside.join(name), folder.join(name)];
            places
                .iter()
                .find_map(|place| Some((escape::path(&place).into_owned(), read(place).ok()?)))
        };
        parse(&text, &name, options, &include)
    }

    /// Reads a text without includes. `file` is its name in messages.
    ///
    /// # Errors
    /// The text is not a name space.
    pub fn parse(
        text: &str,
        file: &str,
        options: &LoadOptions,
    ) -> Result<LocalNameSpace, NameSpaceError> {
        parse(text, file, options, &|_| None)
    }
}

fn parse(
    text: &str,
    file: &str,
    options: &LoadOptions,
    include: preprocess::Include<'_>,
) -> Result<LocalNameSpace, NameSpaceError> {
    let mut lines = if options.preprocess {
        preprocess::preprocess(text, file, include)?
    } else {
        let line =
            |(number, text): (u32, &str)| Line { file: file.into(), number, text: text.to_owned() };
        (1..).zip(text.lines()).map(line).collect()
    };
    lines.iter_mut().for_each(parse::join_colons);
    LocalNameSpace::new(parse::groups(&lines)?, options.duplicates)
}

fn read(file: &Path) -> std::io::Result<String> {
    let bytes = bounded::read_file(file, MAX_FILE_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
