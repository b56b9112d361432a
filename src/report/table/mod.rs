//! Samples as tables, for programs that analyse them: one row for each value.
//!
//! ```text
//!  source ─► schema   what is known of the source and the metrics ─┐
//!                                                                  ▼
//!  Shown ──► rows ─┬─► csv                      ┐
//!    │             └─► columns ─► arrow │ parquet ├─► Destination
//!    └───────────────► json                     ┘
//! ```
//!
//! # Columns
//!
//! | column | Arrow type | null | |
//! |---|---|---|---|
//! | `time` | timestamp, ns, UTC | | when the sample was taken |
//! | `host` | dictionary of text | | host that the metrics are of |
//! | `metric` | dictionary of text | | name, or the text of an expression without one |
//! | `instance` | int32 | without a domain | instance identifier |
//! | `instance_name` | text | where there is none | external name of the instance |
//! | `type` | dictionary of text | | `32`, `U32`, `64`, `U64`, `FLOAT`, `DOUBLE`, `STRING`, `AGGREGATE` |
//! | `semantics` | dictionary of text | | `counter`, `instant`, `discrete` |
//! | `units` | dictionary of text | | as pminfo(1) prints them; empty for none |
//! | `value` | float64 | for what is no number | the number; the nearest double of a `64` or `U64` |
//! | `value_int64` | int64 | but for type `64` | the exact number |
//! | `value_uint64` | uint64 | but for type `U64` | the exact number |
//! | `value_text` | text | but for type `STRING` | the text |
//! | `value_bytes` | binary | but for type `AGGREGATE` | the bytes |
//! | `status` | text | with a value | why there is no value |
//!
//! CSV has one column `value` in place of the last five but one, whose text is
//! exact for every type; nothing stands for null, and `""` is an empty text.
//!
//! # Why it is like this
//!
//! *Long, not wide.* A column for each metric and instance has no bound where
//! instances come and go, differs from archive to archive, and has to be known
//! before the first row is written. This table is the same for every archive,
//! so that thousands of files are one table to DuckDB, Spark or a
//! `pyarrow.dataset`; a pivot over `metric` and `instance_name` makes the wide
//! form of whatever part is wanted.
//!
//! *One column of numbers beside the exact ones.* Nearly every question can be
//! asked of `value`, whatever the type of a metric. It is exact but for integers
//! of 64 bits beyond 2^53, and those have columns of their own: nothing is lost,
//! and there is no union, which Parquet does not have.
//!
//! *What is constant is repeated.* Host, type, semantics and units are columns,
//! because what is known of a file as a whole gets lost when files are read
//! together. In dictionaries and runs they cost next to nothing. Names of
//! instances are text: in Parquet they have a dictionary for each row group,
//! and one for all of an Arrow file would grow with every process that ever ran.
//!
//! # Rows
//!
//! Rows are in the order of time, then of the metrics as asked for, then of
//! instances as the source has them. A metric that has no value in a sample has
//! one row with a `status`: a word such as `first-sample` or `counter-fell`
//! (those of `eval --why`), or the name of a PMAPI error such as `PM_ERR_PMID`.
//! No row at all means that nothing was asked or recorded: of an archive that
//! is read record by record, metrics that a record has nothing of; and metrics
//! whose definition cannot be used.
//!
//! # Metadata
//!
//! Arrow and Parquet files carry `pcp.source`, a JSON object about the source,
//! and for each metric `pcp.metric.NAME` ([`Schema`] has both). The JSON form
//! begins with a line that has the same, and goes on with the samples as `eval`
//! prints them. CSV has no place for it.

#[cfg(feature = "columnar")]
mod arrow;
#[cfg(feature = "columnar")]
mod columns;
mod csv;
mod destination;
mod json;
#[cfg(feature = "columnar")]
mod parquet;
mod schema;

use std::io::{self, Write};
use std::path::Path;

use super::samples::Renderer;
use crate::engine::Shown;

pub use super::rows::{Content, Row, Without};
pub use destination::Destination;
pub use schema::{MetricFacts, Sampling, Schema};

/// Forms of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// One line for each value.
    Csv,
    /// A line about source and metrics, then one for each sample as of eval.
    Json,
    /// Arrow IPC; on standard output as a stream.
    Arrow,
    /// Parquet.
    Parquet,
}

impl Format {
    /// The form that files of this name have.
    pub fn of_name(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            "arrow" | "arrows" | "feather" | "ipc" => Some(Format::Arrow),
            "parquet" | "pq" => Some(Format::Parquet),
            _ => None,
        }
    }

    /// False for a form that this program was built without.
    pub fn is_built_in(self) -> bool {
        cfg!(feature = "columnar") || matches!(self, Format::Csv | Format::Json)
    }
}

/// A table that is being written.
pub trait Exporter {
    /// Adds the rows of a sample.
    ///
    /// # Errors
    /// They cannot be written; the table is of no use any more.
    fn sample(&mut self, shown: &Shown<'_>) -> Result<(), ExportError>;

    /// Writes what is still to be written, and what makes the table complete.
    ///
    /// # Errors
    /// As [`Exporter::sample`].
    fn finish(self: Box<Self>) -> Result<Destination, ExportError>;
}

/// A table of text.
struct Lines<R> {
    renderer: R,
    text: String,
    destination: Destination,
}

impl<R: Renderer> Lines<R> {
    fn begin(mut renderer: R, mut destination: Destination) -> Result<Lines<R>, ExportError> {
        let mut text = String::new();
        renderer.begin(&mut text);
        destination.write_all(text.as_bytes())?;
        Ok(Lines { renderer, text, destination })
    }
}

impl<R: Renderer> Exporter for Lines<R> {
    fn sample(&mut self, shown: &Shown<'_>) -> Result<(), ExportError> {
        self.text.clear();
        self.renderer.sample(shown, &mut self.text);
        Ok(self.destination.write_all(self.text.as_bytes())?)
    }

    fn finish(self: Box<Self>) -> Result<Destination, ExportError> {
        Ok(self.destination)
    }
}

/// Why a table cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A time that the form has no room for.
    #[error("the time {0} does not fit into 64 bits of nanoseconds")]
    Time(pmderive_runtime::model::Timestamp),
    /// This program was built without the form.
    #[error(
        "this pmderive was built without Arrow and Parquet; build it with `--features columnar`"
    )]
    NotBuiltIn,
    /// The library that writes the form refused.
    #[error("{0}")]
    Form(String),
}

/// Begins a table.
///
/// # Errors
/// Its beginning cannot be written, or the form is not built in.
pub fn export(
    format: Format,
    schema: &Schema,
    destination: Destination,
) -> Result<Box<dyn Exporter>, ExportError> {
    match format {
        Format::Csv => Ok(Box::new(Lines::begin(csv::Csv::new(schema), destination)?)),
        Format::Json => Ok(Box::new(Lines::begin(json::Json::new(schema), destination)?)),
        #[cfg(feature = "columnar")]
        Format::Arrow => Ok(Box::new(arrow::Arrow::begin(schema, destination)?)),
        #[cfg(feature = "columnar")]
        Format::Parquet => Ok(Box::new(parquet::Parquet::begin(schema, destination)?)),
        #[cfg(not(feature = "columnar"))]
        Format::Arrow | Format::Parquet => Err(ExportError::NotBuiltIn),
    }
}
