//! The options of `pmderive record`, with the letters of pmlogger(1) where
//! these do not mean something else in other commands. Only the form of values
//! is checked here.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pmderive_runtime::archive::Version;

use crate::cli::args::{DefinitionArguments, DiagWords, SourceArguments};
use crate::cli::samples::arguments::samples;
use crate::cli::samples::time::TimeArguments;
use crate::cli::terminal::RawArgument;
use crate::engine::Backend;
use crate::size::size;

/// Arguments of `record`.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Base name of the archive: its files are OUT.meta, OUT.index, OUT.0 and so on.
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Number of samples to record [default: until the end, or a signal].
    #[arg(short, long, value_name = "SAMPLES", value_parser = samples)]
    pub samples: Option<u64>,
    /// When.
    #[command(flatten)]
    pub time: TimeArguments,
    /// Also record the metrics that derived ones are computed from.
    #[arg(long)]
    pub with_operands: bool,
    /// Version of the archive; 2 has microseconds, and is for readers before PCP 6.
    #[arg(short = 'V', long, value_enum, default_value_t, value_name = "VERSION")]
    pub archive_version: ArchiveVersion,
    /// Begin a new volume before one gets larger than this, such as 100Mb or 1Gbyte.
    #[arg(short = 'v', long, alias = "volsize", value_name = "SIZE", value_parser = size)]
    pub volume_size: Option<u64>,
    /// Words of diagnostics.
    #[arg(long, value_enum, default_value_t)]
    pub diag: DiagWords,
    /// Text of others as it is.
    #[command(flatten)]
    pub raw: RawArgument,
    /// How expressions are computed.
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// Metrics by name, and nodes of the name space, which stand for all metrics
    /// below them, `.` for all that there are; without any, all metrics that the
    /// definition files define.
    #[arg(value_name = "METRIC")]
    pub metrics: Vec<String>,
}

impl RecordArguments {
    /// Names of metrics and nodes; the root has the empty name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.metrics.iter().map(|name| match name.trim() {
            "." => "",
            name => name,
        })
    }
}

/// Versions of archives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ArchiveVersion {
    /// Microseconds, files up to 2 GiB.
    #[value(name = "2")]
    Version2,
    /// Nanoseconds.
    #[default]
    #[value(name = "3")]
    Version3,
}

impl From<ArchiveVersion> for Version {
    fn from(version: ArchiveVersion) -> Version {
        match version {
            ArchiveVersion::Version2 => Version::V2,
            ArchiveVersion::Version3 => Version::V3,
        }
    }
}
