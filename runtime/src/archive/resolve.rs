//! What a user may name as archives (`pmNewContext(3)`).
//!
//! | argument                          | stands for                     |
//! |-----------------------------------|--------------------------------|
//! | base name, or file of an archive  | that archive                   |
//! | directory                         | every archive in it            |
//! | several of these, with commas     | all of them; a comma at the    |
//! |                                   | end is harmless                |
//!
//! In: the argument. Out: the files of each archive, or why there are none.
//! A directory is read once, however many archives are in it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::archive::files::{ArchiveFiles, Listing, missing};
use crate::model::PmStatus;
use crate::source::SourceError;

/// An archive as it was named, and its files.
pub(super) struct Named {
    pub(super) name: PathBuf,
    pub(super) files: Result<ArchiveFiles, SourceError>,
}

/// The archives that an argument stands for; never empty.
///
/// # Errors
/// Nothing is named, or a directory has no archive in it.
pub(super) fn resolve(argument: &Path) -> Result<Vec<Named>, SourceError> {
    let argument = argument.as_os_str().as_bytes();
    let list = argument.strip_suffix(b",").unwrap_or(argument);
    if list.is_empty() {
        let message = "no archive is named: give the base name of one, as in -a 20261122";
        return Err(missing(Path::new(OsStr::from_bytes(argument)), message));
    }
    let mut directories = HashMap::new();
    let mut found = Vec::new();
    for name in list.split(|byte| *byte == b',') {
        let name = Path::new(OsStr::from_bytes(name));
        if name.as_os_str().is_empty() {
            let files = Err(SourceError::Damaged {
                target: String::from_utf8_lossy(argument).into_owned(),
                status: PmStatus(-rustix::io::Errno::NOENT.raw_os_error()),
                message: "a name is empty: there is a comma too many".to_owned(),
            });
            found.push(Named { name: name.to_owned(), files });
            continue;
        }
        if !name.is_dir() {
            found.push(find(name, &mut directories));
            continue;
        }
        let bases = match listing(name, &mut directories) {
            Ok(listing) => listing.archives(),
            Err(error) => {
                found.push(Named { name: name.to_owned(), files: Err(error) });
                continue;
            }
        };
        if bases.is_empty() {
            let message = "there is no archive in this directory";
            found.push(Named { name: name.to_owned(), files: Err(missing(name, message)) });
        }
        for base in bases {
            found.push(find(&name.join(base), &mut directories));
        }
    }
    Ok(found)
}

fn find(name: &Path, directories: &mut HashMap<PathBuf, Listing>) -> Named {
    let directory = match name.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let files = match listing(directory, directories) {
        Ok(listing) => ArchiveFiles::find(name, listing),
        Err(SourceError::Io { source, .. }) => {
            Err(SourceError::Io { target: name.display().to_string(), source })
        }
        Err(error) => Err(error),
    };
    Named { name: name.to_owned(), files }
}

/// What is in a directory.
fn listing<'a>(
    directory: &Path,
    directories: &'a mut HashMap<PathBuf, Listing>,
) -> Result<&'a Listing, SourceError> {
    if !directories.contains_key(directory) {
        directories.insert(directory.to_owned(), Listing::read(directory)?);
    }
    Ok(&directories[directory])
}
