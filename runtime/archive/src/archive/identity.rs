//! What tells whether the files of archives are those that were read before.
//!
//! Input: the files that a user's argument stands for. Output: an identity, if there
//! is one that can be relied on. Nothing is opened here, and what is in the
//! files is not known.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::archive::context::OpenOptions;
use crate::archive::files::ArchiveFiles;
use crate::archive::resolve::Named;

/// The finest time that file systems note is that of a tick of the kernel's
/// clock: a file that was changed later than this may change again without
/// getting another time.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// Archives as they were named and as they are: all files of each with what
/// the system says of them. Equal ones have the same contents.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    archives: Vec<(PathBuf, PathBuf)>,
    files: Vec<(PathBuf, FileIdentity)>,
    /// What else decides about what is read of them.
    options: OpenOptions,
}

/// A file as it is: one that was written to or replaced has another identity.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// When its contents changed, in seconds and nanoseconds.
    modified: (i64, i64),
    /// When anything of it changed; no program can choose that.
    changed: (i64, i64),
}

impl Identity {
    /// That of archives whose files are all there. `None` for files in memory,
    /// and for those that were changed just now, or in the future.
    pub(super) fn of(list: &[Named], options: OpenOptions) -> Option<Identity> {
        let mut identity = Identity { archives: Vec::new(), files: Vec::new(), options };
        for Named { name, files } in list {
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

    /// True if none of the files has changed since.
    pub(super) fn still_holds(&self) -> bool {
        self.files.iter().all(|(path, file)| FileIdentity::of(path).as_ref() == Some(file))
    }

    /// A number that equal ones share.
    pub(super) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(self, &mut hasher);
        hasher.finish()
    }
}

impl FileIdentity {
    fn of(path: &Path) -> Option<FileIdentity> {
        // Before the file is looked at: what is changed later has a later time.
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
