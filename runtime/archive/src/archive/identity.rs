//! Tells whether the files of archives are still the files that were read before.
//!
//! Input: the files that a user's argument stands for. Output: an identity, if a
//! reliable one exists.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::archive::files::ArchiveFiles;
use crate::archive::options::OpenOptions;
use crate::archive::resolve::NamedArchive;

/// Age from which a change time is reliable. File systems note time in ticks of the
/// kernel's clock, so a file that changed more recently may change again without
/// getting another time.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// The names of archives, and the system's facts about all their files. Archives
/// with equal identities have the same contents.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    archives: Vec<(PathBuf, PathBuf)>,
    files: Vec<(PathBuf, FileIdentity)>,
    /// The options, which also affect the reading.
    options: OpenOptions,
}

/// The state of a file. A file that was written to or replaced has another one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// Time when the contents changed, in seconds and nanoseconds.
    modified: (i64, i64),
    /// Time when the file or its attributes changed. No program can set it.
    changed: (i64, i64),
}

impl Identity {
    /// The identity of archives. `None` if a file is missing or in memory, or has a
    /// change time that is very recent or in the future.
    pub(super) fn of(list: &[NamedArchive], options: OpenOptions) -> Option<Identity> {
        let mut identity = Identity { archives: Vec::new(), files: Vec::new(), options };
        for NamedArchive { name, files } in list {
            let ArchiveFiles { base, metadata, index, volumes } = files.as_ref().ok()?;
            identity.archives.push((name.clone(), base.clone()));
            let volumes = volumes.iter().map(|(_, volume)| volume);
            for member in [metadata].into_iter().chain(index).chain(volumes) {
                let path = member.path()?;
                identity.files.push((path.clone(), FileIdentity::of(path)?));
            }
        }
        Some(identity)
    }

    /// True if no file has changed since.
    pub(super) fn still_holds(&self) -> bool {
        self.files.iter().all(|(path, file)| FileIdentity::of(path).as_ref() == Some(file))
    }

    /// A number that equal identities share.
    pub(super) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(self, &mut hasher);
        hasher.finish()
    }
}

impl FileIdentity {
    fn of(path: &Path) -> Option<FileIdentity> {
        // The clock is read first, so a later change of the file has a later time.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let file = path.metadata().ok()?;
        let changed = (file.ctime(), file.ctime_nsec());
        let since = Duration::new(u64::try_from(changed.0).ok()?, u32::try_from(changed.1).ok()?);
        let is_settled = now.checked_sub(since).is_some_and(|age| age > SETTLED_AFTER);
        is_settled.then(|| FileIdentity {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed,
        })
    }
}
