//! The options of `pmderive record`. They have the letters of pmlogger(1), unless a letter has
//! another meaning in other commands. This module checks only the form of values.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pmderive_runtime::archive::Version;

use crate::cli::args::{DefinitionArguments, DiagWords, SourceArguments};
use crate::cli::positional::named_expression;
use crate::cli::samples::arguments::samples;
use crate::cli::samples::time::TimeArguments;
use crate::engine::Backend;
use crate::text::size::size;

/// Arguments of `record`.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Record this many samples [default: until the end, or a signal].
    #[arg(short, long, value_name = "SAMPLES", value_parser = samples)]
    pub samples: Option<u64>,
    /// When.
    #[command(flatten)]
    pub time: TimeArguments,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Write the archive under this base name: OUT.meta, OUT.index, OUT.0 and so on.
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Also record the metrics that derived ones are computed from.
    #[arg(long)]
    pub with_operands: bool,
    /// Write this version of archives. PCP before version 6 reads only version 2.
    #[arg(short = 'V', long, value_enum, default_value_t, value_name = "VERSION")]
    pub archive_version: ArchiveVersion,
    /// Begin a new volume before one gets larger than SIZE, such as 100Mb or 1Gbyte.
    #[arg(short = 'v', long, alias = "volsize", value_name = "SIZE", value_parser = size)]
    pub volume_size: Option<u64>,
    /// Choose the words of diagnostics.
    #[arg(long, value_enum, default_value_t)]
    pub diag: DiagWords,
    /// Choose how expressions are computed.
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// What to record: metrics, groups of metrics (`disk.dev`, or `.` for all), and
    /// expressions with the names that they get. Without any it is all that the files
    /// of -c define.
    #[arg(value_name = "METRIC|NAME=EXPRESSION")]
    pub metrics: Vec<String>,
}

impl RecordArguments {
    /// Names of metrics and nodes; the root has the empty name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.metrics.iter().map(|text| match (text.trim(), named_expression(text)) {
            (".", _) => "",
            (_, Some((name, _))) => name,
            (name, None) => name,
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
