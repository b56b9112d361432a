//! Why a recording stops.

use pmderive_runtime::archive_writer::WriteError;
use pmderive_runtime::source::SourceError;

/// The reason why a recording stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// The source failed. Everything that was written is complete.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The archive cannot be created or written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
