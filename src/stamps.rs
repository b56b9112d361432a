//! Stamps of files, to notice changes. The stamp is taken before the file is read, so a change
//! in between is noticed, too.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
#[cfg(feature = "fleet")]
use std::path::PathBuf;

/// The stamps of files, taken before they were read.
#[cfg(feature = "fleet")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

/// Identity of a file's contents. A file that was replaced by one of the same time and length
/// has another stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    /// Time of the last change of contents, in seconds and nanoseconds.
    modified: (i64, i64),
    /// Time of the last change of contents or attributes. No program can set it.
    changed: (i64, i64),
}

impl Stamp {
    /// The length of the file.
    #[cfg(feature = "lsp")]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The stamp of a file, to be taken before it is read; `None` without a file.
    pub fn of(path: &Path) -> Option<Stamp> {
        let found = std::fs::metadata(path).ok()?;
        Some(Stamp {
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

#[cfg(feature = "fleet")]
impl FromIterator<PathBuf> for Stamps {
    fn from_iter<I: IntoIterator<Item = PathBuf>>(paths: I) -> Stamps {
        let mut stamps = Stamps::default();
        paths.into_iter().for_each(|path| stamps.add(path));
        stamps
    }
}

#[cfg(feature = "fleet")]
impl Stamps {
    /// Adds the stamp of a file, to be called before it is read.
    pub fn add(&mut self, path: PathBuf) {
        let stamp = Stamp::of(&path);
        self.0.push((path, stamp));
    }

    /// Adds other stamps.
    pub fn extend(&mut self, others: &Stamps) {
        self.0.extend(others.0.iter().cloned());
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(path, _)| &**path)
    }

    /// True if one of the files has changed, or is gone.
    pub fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, known)| Stamp::of(path) != *known)
    }
}

#[cfg(all(test, feature = "fleet"))]
mod tests {
    use super::*;

    #[test]
    fn a_change_after_the_look_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts.json");
        let mut stamps = Stamps::default();
        stamps.add(path.clone());
        assert!(!stamps.have_changed());
        // A reader gets these contents now.
        std::fs::write(&path, "[]").expect("a file");
        assert!(stamps.have_changed());
        stamps = Stamps::default();
        stamps.add(path.clone());
        assert!(!stamps.have_changed());
        std::fs::write(&path, "[{}]").expect("a file");
        assert!(stamps.have_changed());
    }

    #[test]
    fn a_file_in_its_place_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, other] = ["x.json", "y.json"].map(|name| folder.path().join(name));
        let written = std::time::SystemTime::UNIX_EPOCH;
        for file in [&path, &other] {
            std::fs::write(file, "[]").expect("a file");
            let file = std::fs::File::options().write(true).open(file).expect("the file");
            file.set_modified(written).expect("a time");
        }
        let before = Stamp::of(&path);
        std::fs::rename(&other, &path).expect("it takes its place");
        assert_ne!(before, Stamp::of(&path));
    }
}
