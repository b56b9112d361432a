//! What goes wrong with recordings.

use std::io;
use std::path::{Path, PathBuf};

use pmderive_core::escape;
use pmderive_core::model::PmStatus;

/// A recording that does not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Not at this point.
    #[error("{0}")]
    Order(&'static str),
    /// A file cannot be created or written, or a program not started.
    #[error("{}: {source}", escape::path(&path))]
    Io {
        /// The file or program.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The logger has ended by itself.
    #[error("pmlogger for host \"{host}\" has ended; {} says why", escape::path(&log))]
    Ended {
        /// The host.
        host: String,
        /// The file in which the logger wrote.
        log: PathBuf,
    },
    /// Text that would not stay within a line.
    #[error("{of}: {text:?} is no text for it: it is empty, or has more than one line")]
    Text {
        /// What it was given for.
        of: &'static str,
        /// What was given.
        text: String,
    },
}

impl RecordError {
    pub(super) fn io(path: &Path, source: io::Error) -> RecordError {
        RecordError::Io { path: path.to_path_buf(), source }
    }

    /// What libpcp returns.
    pub fn status(&self) -> PmStatus {
        let invalid = PmStatus(-rustix::io::Errno::INVAL.raw_os_error());
        match self {
            RecordError::Order(_) | RecordError::Text { .. } => invalid,
            RecordError::Io { source, .. } => {
                source.raw_os_error().map_or(PmStatus::GENERIC, |code| PmStatus(-code))
            }
            RecordError::Ended { .. } => PmStatus::IPC,
        }
    }
}
