//! The reasons why an archive, or a part of it, cannot be written.

use std::io;
use std::path::PathBuf;

use pmderive_core::escape;
use pmderive_core::model::{InDom, PmStatus, Timestamp, UtcTime};
use pmderive_core::source::Fault;
use rustix::io::Errno;

use crate::archive::Version;

/// The writer did not write something. Everything written before remains a readable
/// archive. Writing can continue, except after [`WriteError::Unusable`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file already has the name of one of this archive's files. That file is left
    /// alone.
    #[error("{} exists already; archives are never overwritten, so remove it or choose another name", escape::path(&path))]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refused to create or write a file. Nothing of the failed record stays
    /// in it.
    #[error("{}: {source}", escape::path(&path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        r#source: io::Error,
    },
    /// An earlier failure left a part of a record in the file, and it could not be
    /// removed.
    #[error("{}: an earlier failure left part of a record at its end; nothing more can be written", escape::path(&path))]
    Unusable {
        /// The file.
        path: PathBuf,
    },
    /// The file has reached the size that offsets of version 2 can express.
    #[error("{} is full: version 2 is limited to 2 GiB here; use version 3", escape::path(&path))]
    Full {
        /// The metadata or index.
        path: PathBuf,
    },
    /// [`super::ArchiveWriter::finish`] was called before any record was written. No
    /// file is left.
    #[error("{}: no record was written, so there is no archive", escape::path(&path))]
    Empty {
        /// Base name of the archive.
        path: PathBuf,
    },
    /// A name, text or label that this archive cannot hold. It can be left out.
    #[error("{problem}")]
    Unstorable {
        /// The part that does not fit, and why.
        problem: String,
        /// The status that libpcp would return.
        status: PmStatus,
    },
    /// An instance domain of version 3 changes again at the time of its last change, of which
    /// only the difference is written. libpcp breaks down on two differences of one time.
    #[error("instance domain {indom} changes twice at {}", UtcTime(*time))]
    ChangedTwice {
        /// The domain.
        indom: InDom,
        /// The time.
        time: Timestamp,
    },
    /// A call that contradicts the format, or the calls before it.
    #[error("{problem}")]
    Misuse {
        /// The contradiction.
        problem: String,
        /// The status that libpcp would return.
        status: PmStatus,
    },
}

/// The status of an argument that makes no sense.
pub(super) fn invalid() -> PmStatus {
    system(Errno::INVAL)
}

fn system(errno: Errno) -> PmStatus {
    PmStatus(-errno.raw_os_error())
}

impl WriteError {
    /// A call that is refused with a status.
    pub(super) fn misuse(status: PmStatus, problem: String) -> WriteError {
        WriteError::Misuse { problem, status }
    }

    /// Something, such as `the host name`, that has more bytes than there is room for.
    pub(super) fn too_long(
        what: &str,
        length: usize,
        limit: usize,
        version: Version,
    ) -> WriteError {
        let number = version.number();
        let problem =
            format!("{what} is {length} bytes long; version {number} has room for {limit}");
        WriteError::Unstorable { problem, status: PmStatus::TOOBIG }
    }

    /// A text that cannot be stored, or that no reader could look up; `problem` is its fault.
    pub(super) fn text(what: &str, text: &str, problem: &str) -> WriteError {
        let problem = format!("{what} {text:?} {problem}");
        WriteError::Unstorable { problem, status: invalid() }
    }

    /// The party at fault: the environment where the system refuses or a file
    /// is full, otherwise the caller, whose calls no archive can express.
    pub fn fault(&self) -> Fault {
        match self {
            WriteError::Io { .. } | WriteError::Unusable { .. } | WriteError::Full { .. } => {
                Fault::Environment
            }
            _ => Fault::User,
        }
    }

    /// The status that libpcp would return.
    pub fn status(&self) -> PmStatus {
        match self {
            WriteError::Exists { .. } => system(Errno::EXIST),
            WriteError::Io { source, .. } => {
                source.raw_os_error().map_or(PmStatus::GENERIC, |code| PmStatus(-code))
            }
            WriteError::Unusable { .. } => PmStatus::LOGREC,
            WriteError::Full { .. } => system(Errno::FBIG),
            WriteError::Empty { .. } => PmStatus::NODATA,
            WriteError::ChangedTwice { .. } => invalid(),
            WriteError::Unstorable { status, .. } | WriteError::Misuse { status, .. } => *status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults() {
        let path = || PathBuf::from("a.0");
        let source = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(WriteError::Io { path: path(), source }.fault(), Fault::Environment);
        assert_eq!(WriteError::Full { path: path() }.fault(), Fault::Environment);
        assert_eq!(WriteError::Exists { path: path() }.fault(), Fault::User);
        assert_eq!(WriteError::misuse(invalid(), String::new()).fault(), Fault::User);
    }
}
