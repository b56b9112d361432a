//! Notices that a file is another one than it was when it was read.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files as they were.
#[derive(Debug, Default)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

/// What tells a file from one that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamps {
    /// Files as they are now.
    pub fn of(files: Vec<PathBuf>) -> Stamps {
        let stamped = files.into_iter().map(|path| {
            let stamp = stamp(&path);
            (path, stamp)
        });
        Stamps(stamped.collect())
    }

    /// True if one of them is not as it was, or is gone.
    pub fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, known)| stamp(path) != *known)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    let changed = (found.mtime(), found.mtime_nsec());
    Some(Stamp { inode: found.ino(), bytes: found.len(), changed })
}
