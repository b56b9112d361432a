//! Notices that a file is not the one that was read. A file is looked at before it is
//! read: a change meanwhile is noticed, too.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files as they were before they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

/// What tells a file from one that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FromIterator<PathBuf> for Stamps {
    fn from_iter<I: IntoIterator<Item = PathBuf>>(paths: I) -> Stamps {
        let mut stamps = Stamps::default();
        paths.into_iter().for_each(|path| stamps.add(path));
        stamps
    }
}

impl Stamps {
    /// Looks at a file, which is read after that.
    pub fn add(&mut self, path: PathBuf) {
        let stamp = stamp(&path);
        self.0.push((path, stamp));
    }

    /// Takes what others are.
    pub fn extend(&mut self, others: &Stamps) {
        self.0.extend(others.0.iter().cloned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_after_the_look_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts.json");
        let mut stamps = Stamps::default();
        stamps.add(path.clone());
        assert!(!stamps.have_changed());
        // Whoever reads it now reads this.
        std::fs::write(&path, "[]").expect("a file");
        assert!(stamps.have_changed());
        stamps = Stamps::default();
        stamps.add(path.clone());
        assert!(!stamps.have_changed());
        std::fs::write(&path, "[{}]").expect("a file");
        assert!(stamps.have_changed());
    }
}
