//! The options of `pmderive val`, with the letters and the words of pmval(1). This module
//! checks only the form of values.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args};
use pmderive_runtime::model::parse_interval;

use super::moment::Detail;
use crate::cli::pcp::options::PcpOptions;
use crate::cli::samples::following::FollowArgument;
use crate::cli::samples::time::DEFAULT_INTERVAL;
use crate::cli::samples::window::WindowOptions;

/// Arguments of `val`.
#[derive(Debug, Args)]
pub struct ValArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub options: PcpOptions,
    /// The time that is reported on.
    #[command(flatten)]
    pub window: WindowOptions,
    /// Take metrics from this archive, record by record instead of at an interval.
    #[arg(
        short = 'U',
        long,
        value_name = "ARCHIVE",
        value_parser = OsStringValueParser::new().map(PathBuf::from),
        conflicts_with = "host",
    )]
    pub nointerp: Option<PathBuf>,
    /// Take this many samples [default: until the end].
    #[arg(short, long, value_name = "SAMPLES", value_parser = samples, allow_hyphen_values = true)]
    pub samples: Option<u64>,
    /// Take a sample every INTERVAL, such as 2, 500msec or 1min (`ms` means minutes)
    /// [default: 1sec].
    #[arg(short = 't', long, value_name = "INTERVAL", value_parser = interval, allow_hyphen_values = true)]
    pub interval: Option<Duration>,
    /// Replay an archive at its original speed.
    #[arg(short, long)]
    pub delay: bool,
    /// What to do at the end.
    #[command(flatten)]
    pub follow: FollowArgument,
    /// Print this many digits after the decimal point [default: by the size of the number].
    #[arg(short = 'f', long, value_name = "DIGITS", value_parser = digits)]
    pub precision: Option<usize>,
    /// Make columns this wide [default: by the type].
    #[arg(short, long, value_name = "COLUMNS", value_parser = columns)]
    pub width: Option<usize>,
    /// Take only these instances, by name, with commas or blanks between them.
    #[arg(short, long, value_name = "INSTANCES")]
    pub instances: Vec<String>,
    /// Print counters as they are, not their rates.
    #[arg(short, long)]
    pub raw: bool,
    /// Say when there are no event records.
    #[arg(short, long, display_order = 993)]
    pub verbose: bool,
    /// Store VALUE in the metric before the first fetch; some agents take it for a filter.
    #[arg(short = 'x', long, value_name = "VALUE")]
    pub filter: Option<String>,
    /// Print date and microseconds with values of an archive; twice: nanoseconds.
    #[arg(short = 'X', long, action = ArgAction::Count)]
    pub timestamp: u8,
    /// Accepted only to explain why it does not apply.
    #[arg(short = 'g', long, hide = true)]
    pub guimode: bool,
    /// Accepted only to explain why it does not apply.
    #[arg(short = 'p', long, value_name = "PORT", hide = true)]
    pub guiport: Option<String>,
    /// An expression, or a metric, which may have a source and instances:
    /// HOST:METRIC[INSTANCE,...], ARCHIVE/METRIC, or @:METRIC for this machine without pmcd.
    #[arg(value_name = "METRIC|EXPRESSION")]
    pub metric: String,
}

impl ValArguments {
    /// The precision of times.
    pub fn detail(&self) -> Detail {
        match self.timestamp {
            0 => Detail::Clock,
            1 => Detail::Microseconds,
            _ => Detail::Nanoseconds,
        }
    }
}

fn samples(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| "-s requires a positive numeric argument".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_interval(text).map_err(|error| {
        format!("-t argument not in pmParseHighResInterval(3) format:\n{error}")
    })?;
    Ok(if interval.is_zero() { DEFAULT_INTERVAL } else { interval })
}

fn digits(text: &str) -> Result<usize, String> {
    let digits = text.trim().parse().ok().filter(|digits| *digits <= WIDEST);
    digits.ok_or_else(|| "-f requires +ve numeric argument".to_owned())
}

fn columns(text: &str) -> Result<usize, String> {
    let columns = text.trim().parse().ok().filter(|columns| (1..=WIDEST).contains(columns));
    columns.ok_or_else(|| format!("-w requires +ve numeric argument, {WIDEST} at most"))
}

/// Widest column for `-w`.
const WIDEST: usize = 10_000;
