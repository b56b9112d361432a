//! What `pmderive record` can be told, with the letters of pmlogger(1) where
//! they mean the same to all commands. Only the form of values is checked here.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pmderive_runtime::archive::Version;

use crate::cli::args::{BackendArgument, DefinitionArguments, DiagWords, SourceArguments};
use crate::cli::sample_arguments::samples;
use crate::cli::time_options::TimeArguments;

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
    /// Record the metrics besides that derived ones are computed from.
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
    /// How expressions are computed.
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendArgument,
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

/// Units of sizes, by the letter that they begin with (see `-v` of pmlogger(1)).
const UNITS: &[(&[&str], u64)] = &[
    (&["b", "byte"], 1),
    (&["k", "kb", "kib", "kbyte", "kilobyte"], 1 << 10),
    (&["m", "mb", "mib", "mbyte", "megabyte"], 1 << 20),
    (&["g", "gb", "gib", "gbyte", "gigabyte"], 1 << 30),
];

/// A number of bytes, with its unit.
fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let singular = unit.strip_suffix('s').unwrap_or(&unit);
    if unit.is_empty() && !number.is_empty() {
        return Err(format!("the unit is missing, as in {number}Mb or {number}bytes"));
    }
    let unit = UNITS.iter().find(|(words, _)| words.contains(&singular));
    let size = unit.and_then(|(_, bytes)| number.parse::<u64>().ok()?.checked_mul(*bytes));
    let size = size.filter(|size| *size > 0);
    size.ok_or_else(|| "a size is a number with its unit, as in 100Mb or 1Gbyte".to_owned())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("100bytes", Some(100)),
            ("1b", Some(1)),
            ("2 KiB", Some(2048)),
            ("100Mb", Some(100 << 20)),
            ("10Gbytes", Some(10 << 30)),
            ("3megabyte", Some(3 << 20)),
            ("100", None),
            ("0k", None),
            ("k", None),
            ("", None),
            ("-1k", None),
            ("10mins", None),
            ("99999999999999999999k", None),
            ("18446744073709551615k", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }
}
