//! The interface of every form of a table, and its errors.

use std::path::PathBuf;
use std::{fmt, io};

use super::destination::Destination;
use crate::engine::ReportSample;

/// A table that is being written.
pub trait Exporter: Send {
    /// Adds the rows of a sample.
    ///
    /// # Errors
    /// The rows cannot be written. The table is unusable then.
    fn sample(&mut self, shown: &ReportSample<'_>) -> Result<(), ExportError>;

    /// Passes the rows so far to the reader of a stream, if the form can be cut there.
    ///
    /// # Errors
    /// As [`Exporter::sample`].
    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Writes the rest and the end of the table.
    ///
    /// # Errors
    /// As [`Exporter::sample`].
    fn finish(self: Box<Self>) -> Result<Destination, ExportError>;

    /// Keeps the samples that were written before an error, if the form can be cut behind them.
    /// Returns the name of their file, which is that of [`Destination::partial`].
    fn keep(self: Box<Self>) -> Option<PathBuf> {
        None
    }
}

impl fmt::Debug for dyn Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

/// The reason why a table cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The system refused the operation.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The form has no room for this time.
    #[error("the time {0} does not fit into 64 bits of nanoseconds")]
    Time(pmderive_runtime::model::Timestamp),
    /// This build lacks the form.
    #[error(
        "this pmderive was built without Arrow and Parquet; build it with `--features columnar`"
    )]
    NotBuiltIn,
    /// The library for the form failed.
    #[error("{0}")]
    Form(String),
}
