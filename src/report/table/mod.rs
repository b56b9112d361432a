//! Samples as tables, for programs that analyse them: one row for each value.
//!
//! ```text
//!  source ─► schema   facts about the source and the metrics ────┐
//!                                                                ▼
//!  ReportSample ─► rows ─┬─► csv                        ┐
//!    │                   └─► columns ─► arrow │ parquet ├─► Destination
//!    └─────────────────────► json                       ┘
//! ```
//!
//! # Columns
//!
//! | column | Arrow type | null | |
//! |---|---|---|---|
//! | `time` | timestamp, ns, UTC | | when the sample was taken |
//! | `host` | dictionary of text | | host that the metrics describe |
//! | `metric` | dictionary of text | | name; for an expression without a name, its text |
//! | `instance` | int32 | without a domain | instance identifier |
//! | `instance_name` | text | without a name | external name of the instance |
//! | `type` | dictionary of text | | `32`, `U32`, `64`, `U64`, `FLOAT`, `DOUBLE`, `STRING`, `AGGREGATE` |
//! | `semantics` | dictionary of text | | `counter`, `instant`, `discrete` |
//! | `units` | dictionary of text | | as pminfo(1) prints them; empty for none |
//! | `value` | float64 | if not a number | the number; for `64` and `U64` the nearest double |
//! | `value_int64` | int64 | unless type `64` | the exact number |
//! | `value_uint64` | uint64 | unless type `U64` | the exact number |
//! | `value_text` | text | unless type `STRING` | the text |
//! | `value_bytes` | binary | unless type `AGGREGATE` | the bytes |
//! | `status` | text | with a value | why there is no value |
//!
//! CSV has one column `value` in place of the five value columns. Its text is
//! exact for every type. An empty field is null, and `""` is an empty text.
//!
//! # Why it is like this
//!
//! *Long, not wide.* A table with a column for each metric and instance is not
//! bounded, because instances come and go. It would differ from archive to
//! archive, and all columns would have to be known before the first row. This
//! table is the same for every archive, so thousands of files are one table to
//! DuckDB, Spark or a `pyarrow.dataset`. A pivot over `metric` and
//! `instance_name` makes the wide form of any part.
//!
//! *One column of numbers beside the exact ones.* Nearly every query can use
//! `value`, whatever the type of a metric. It is exact except for 64-bit
//! integers beyond 2^53, and those have their own columns. So nothing is lost,
//! and no union is needed, which Parquet does not have.
//!
//! *Constants are repeated.* Host, type, semantics and units are columns,
//! because facts about a whole file are lost when files are read together. In
//! dictionaries and runs they cost almost nothing. Names of instances are text:
//! in Parquet they have a dictionary for each row group, but a single one for a
//! whole Arrow file would grow with every process that ever ran.
//!
//! # Rows
//!
//! Rows are in the order of time, then of the metrics in the request, then of
//! instances in the source. A metric without a value in a sample has one row
//! with a `status`: a word such as `first-sample` or `counter-fell` (those of
//! `eval -v`), or the name of a PMAPI error such as `PM_ERR_PMID`. There is
//! no row for a metric whose definition cannot be used. There is no row either,
//! if an archive is read record by record and a record lacks the metric.
//!
//! # Metadata
//!
//! Arrow and Parquet files have `pcp.source`, a JSON object about the source,
//! and `pcp.metric.NAME` for each metric ([`Schema`] has both). The JSON form
//! begins with a line that has the same facts, and continues with the samples
//! as `eval` prints them. CSV has no place for metadata.

#[cfg(feature = "columnar")]
mod arrow;
#[cfg(feature = "columnar")]
mod columns;
mod csv;
mod destination;
mod exporter;
#[cfg(feature = "columnar")]
mod parquet;
mod schema;

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::samples::Renderer;
use super::samples::json::Json;
use crate::engine::ReportSample;

pub use super::rows::{Row, Without, for_each_row};
pub use destination::Destination;
pub use exporter::{ExportError, Exporter};
pub use schema::{MetricFacts, Sampling, Schema};

/// The names of the last sample's metrics. A writer may keep texts of each metric; these are
/// useless when the sample has another metric at a position.
#[derive(Default)]
struct LastNames(Vec<Arc<str>>);

impl LastNames {
    /// Calls `forget` with each position at which the last sample had another metric or none.
    fn follow(&mut self, shown: &ReportSample<'_>, mut forget: impl FnMut(usize)) {
        self.0.truncate(shown.metrics.len());
        for (at, metric) in shown.metrics.iter().enumerate() {
            match self.0.get_mut(at) {
                Some(known) if Arc::ptr_eq(known, &metric.name) || *known == metric.name => {
                    continue;
                }
                Some(known) => known.clone_from(&metric.name),
                None => self.0.push(Arc::clone(&metric.name)),
            }
            forget(at);
        }
    }
}

/// Forms of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Format {
    /// One line for each value.
    Csv,
    /// A line about the source and the metrics, then a line for each sample, as
    /// eval prints it.
    #[cfg_attr(feature = "cli", value(aliases = ["jsonl", "ndjson"]))]
    Json,
    /// Arrow IPC; a stream on standard output.
    Arrow,
    /// Parquet.
    Parquet,
}

impl Format {
    /// The form for the extension of a file name.
    pub fn of_name(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            "arrow" | "feather" | "ipc" => Some(Format::Arrow),
            "parquet" | "pq" => Some(Format::Parquet),
            _ => None,
        }
    }

    /// False for a form that this build lacks.
    pub fn is_built_in(self) -> bool {
        cfg!(feature = "columnar") || matches!(self, Format::Csv | Format::Json)
    }
}

/// A table of text.
struct Lines<R> {
    renderer: R,
    text: String,
    destination: Destination,
    /// Number of bytes so far.
    bytes: u64,
    /// Number of bytes up to the end of each sample that may not be in the file yet, and of one
    /// before.
    ends: VecDeque<u64>,
}

impl<R: Renderer> Lines<R> {
    fn begin(mut renderer: R, mut destination: Destination) -> Result<Lines<R>, ExportError> {
        let mut text = String::new();
        renderer.begin(&mut text);
        destination.write_all(text.as_bytes())?;
        let bytes = text.len() as u64;
        Ok(Lines { renderer, text, destination, bytes, ends: VecDeque::new() })
    }
}

impl<R: Renderer> Exporter for Lines<R> {
    fn sample(&mut self, shown: &ReportSample<'_>) -> Result<(), ExportError> {
        self.text.clear();
        self.renderer.sample(shown, &mut self.text);
        self.destination.write_all(self.text.as_bytes())?;
        self.bytes += self.text.len() as u64;
        self.ends.push_back(self.bytes);
        let sure = self.destination.written(self.bytes);
        while self.ends.get(1).is_some_and(|end| *end <= sure) {
            self.ends.pop_front();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(self.destination.flush()?)
    }

    fn finish(self: Box<Self>) -> Result<Destination, ExportError> {
        Ok(self.destination)
    }

    fn keep(self: Box<Self>) -> Option<PathBuf> {
        self.destination.keep(self.ends)
    }
}

/// Begins a table.
///
/// # Errors
/// The beginning cannot be written, or this build lacks the form.
pub fn export(
    format: Format,
    schema: &Schema,
    destination: Destination,
) -> Result<Box<dyn Exporter>, ExportError> {
    match format {
        Format::Csv => Ok(Box::new(Lines::begin(csv::Csv::new(schema), destination)?)),
        Format::Json => {
            let json = Json { head: schema.json_line(), dialect: schema.dialect };
            Ok(Box::new(Lines::begin(json, destination)?))
        }
        #[cfg(feature = "columnar")]
        Format::Arrow => Ok(Box::new(arrow::Arrow::begin(schema, destination)?)),
        #[cfg(feature = "columnar")]
        Format::Parquet => Ok(Box::new(parquet::Parquet::begin(schema, destination)?)),
        #[cfg(not(feature = "columnar"))]
        Format::Arrow | Format::Parquet => Err(ExportError::NotBuiltIn),
    }
}
