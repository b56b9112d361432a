//! Errors of recordings.

use std::io;
use std::path::{Path, PathBuf};

use pmderive_core::escape;
use pmderive_core::model::PmStatus;

/// A recording cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The call is not allowed in this state of the recording.
    #[error("{0}")]
    Order(&'static str),
    /// A file cannot be created or written, or a program cannot be started.
    #[error("{}: {source}", escape::path(&path))]
    Io {
        /// The file or program.
        path: PathBuf,
        /// The system's error.
        r#source: io::Error,
    },
    /// The logger has ended by itself.
    #[error("pmlogger for host \"{host}\" has ended; {} says why", escape::path(&log))]
    Ended {
        /// The host.
        host: String,
        /// The logger's log file.
        log: PathBuf,
    },
    /// A text that is empty or would not stay on one line.
    #[error("{of}: {text:?} is not allowed: give one line that is not empty")]
    Text {
        /// The purpose of the text.
        of: &'static str,
        /// The text given.
        text: String,
    },
}

impl RecordError {
    pub(super) fn io(path: &Path, source: io::Error) -> RecordError {
        RecordError::Io { path: path.to_path_buf(), source }
    }

    /// The status that libpcp returns.
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
