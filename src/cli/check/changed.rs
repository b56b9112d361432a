//! Which files have changed since a revision, as git knows it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::Stop;
use crate::diag::Diagnostics;
use crate::text::{SourceId, SourceMap};

/// Files that differ from a revision, or that git does not know yet.
pub struct Changed {
    files: HashSet<PathBuf>,
}

impl Changed {
    /// Asks git about the work tree that a file is in.
    ///
    /// # Errors
    /// There is no git, no work tree, or no such revision.
    pub fn since(revision: &str, file: &Path) -> Result<Changed, Stop> {
        if revision.starts_with('-') || revision.is_empty() {
            return Err(Stop::Usage(format!("`{revision}` is no revision")));
        }
        let directory = match file.is_dir() {
            true => file,
            false => file
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new(".")),
        };
        let top = git(directory, &["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(OsStr::from_bytes(top.strip_suffix(b"\n").unwrap_or(&top)));
        // A revision that is also the name of a file is the revision.
        let diff = ["diff", "--name-only", "-z", "--no-ext-diff", revision, "--"];
        let differing = git(&top, &diff)?;
        let unknown = git(&top, &["ls-files", "--others", "--exclude-standard", "-z"])?;
        let names = differing.split(|byte| *byte == 0).chain(unknown.split(|byte| *byte == 0));
        let paths =
            names.filter(|name| !name.is_empty()).map(|name| top.join(OsStr::from_bytes(name)));
        Ok(Changed { files: paths.filter_map(|path| path.canonicalize().ok()).collect() })
    }

    /// True for a text that is a file that has changed.
    pub fn has(&self, text: SourceId, sources: &SourceMap) -> bool {
        let path = Path::new(&*sources.get(text).name).canonicalize();
        path.is_ok_and(|path| self.files.contains(&path))
    }

    /// Forgets what is said of other files; expressions are always new.
    pub fn keep(&self, own: &[SourceId], sources: &SourceMap, diagnostics: &mut Diagnostics) {
        let old: HashSet<SourceId> =
            own.iter().copied().filter(|text| !self.has(*text, sources)).collect();
        diagnostics.retain(|one| !old.contains(&one.span.source));
    }
}

/// What git prints.
fn git(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, Stop> {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output();
    let output = output.map_err(|error| Stop::Usage(format!("cannot run git: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
    Err(Stop::Usage(format!("git: {first}")))
}
