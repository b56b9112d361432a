//! The names that a user may give for archives (`pmNewContext(3)`).
//!
//! | argument                          | stands for                     |
//! |-----------------------------------|--------------------------------|
//! | base name, or file of an archive  | that archive                   |
//! | directory                         | every archive in it            |
//! | several of these, with commas     | all of them; a comma at the    |
//! |                                   | end is harmless                |
//!
//! Input: the argument. Output: the files of each archive, or the reason why there are
//! none. A directory is read once, however many archives it holds.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pmderive_core::escape;
use pmderive_core::model::PmStatus;
use pmderive_core::source::SourceError;

use crate::archive::files::{ArchiveFiles, Listing, not_found};

/// An archive with the name that the user gave it, and its files.
pub(super) struct NamedArchive {
    pub(super) name: PathBuf,
    pub(super) files: Result<ArchiveFiles, SourceError>,
}

/// The archives that an argument stands for; there is at least one. Each compressed
/// file may expand to `max_expanded` bytes.
///
/// # Errors
/// The argument names nothing. Errors of single archives are in [`NamedArchive::files`].
pub(super) fn resolve(
    argument: &Path,
    max_expanded: Option<u64>,
) -> Result<Vec<NamedArchive>, SourceError> {
    let argument = argument.as_os_str().as_bytes();
    let list = argument.strip_suffix(b",").unwrap_or(argument);
    if list.is_empty() {
        let message = "no archive is named: give its base name, such as 20261122";
        return Err(not_found(Path::new(OsStr::from_bytes(argument)), message));
    }
    let mut directories = Directories { listings: HashMap::new(), max_expanded };
    let mut found = Vec::new();
    for name in list.split(|byte| *byte == b',') {
        let name = Path::new(OsStr::from_bytes(name));
        if name.as_os_str().is_empty() {
            let files = Err(SourceError::NotFound {
                target: escape::path(OsStr::from_bytes(argument)).into_owned(),
                status: PmStatus(-rustix::io::Errno::NOENT.raw_os_error()),
                message: "a name is empty: there is a comma too many".to_owned(),
            });
            found.push(NamedArchive { name: name.to_owned(), files });
            continue;
        }
        if !name.is_dir() {
            found.push(find(name, &mut directories));
            continue;
        }
        let bases = match directories.listing(name) {
            Ok(listing) => listing.archives(),
            Err(error) => {
                found.push(NamedArchive { name: name.to_owned(), files: Err(error) });
                continue;
            }
        };
        if bases.is_empty() {
            let message = "there is no archive in this directory";
            let files = Err(not_found(name, message));
            found.push(NamedArchive { name: name.to_owned(), files });
        }
        for base in bases {
            found.push(find(&name.join(base), &mut directories));
        }
    }
    Ok(found)
}

/// True if an argument names a directory, in which further archives may appear.
pub(super) fn names_directory(argument: &Path) -> bool {
    let names = argument.as_os_str().as_bytes().split(|byte| *byte == b',');
    names.filter(|name| !name.is_empty()).any(|name| Path::new(OsStr::from_bytes(name)).is_dir())
}

fn find(name: &Path, directories: &mut Directories) -> NamedArchive {
    let directory = match name.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let files = match directories.listing(directory) {
        Ok(listing) => ArchiveFiles::find(name, listing),
        Err(SourceError::Io { source, .. }) => {
            Err(SourceError::Io { target: escape::path(&name).into_owned(), source })
        }
        Err(error) => Err(error),
    };
    NamedArchive { name: name.to_owned(), files }
}

/// The directories that were read so far.
struct Directories {
    listings: HashMap<PathBuf, Listing>,
    max_expanded: Option<u64>,
}

impl Directories {
    /// The archives' files in a directory.
    fn listing(&mut self, directory: &Path) -> Result<&Listing, SourceError> {
        if !self.listings.contains_key(directory) {
            let listing = Listing::read(directory, self.max_expanded)?;
            self.listings.insert(directory.to_owned(), listing);
        }
        Ok(&self.listings[directory])
    }
}
