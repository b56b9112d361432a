//! The options of `pmderive val`, with the letters and the words of pmval(1).
//! Only the form of values is checked here.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use pmderive_runtime::model::parse_interval;

use super::moment::Detail;
use crate::cli::pcp::options::PcpOptions;
use crate::cli::samples::following::FollowArgument;
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
    /// Metrics of an archive, record by record instead of at an interval.
    #[arg(short = 'U', long, value_name = "ARCHIVE", conflicts_with = "host")]
    pub nointerp: Option<PathBuf>,
    /// Number of samples [default: until the end].
    #[arg(short, long, value_name = "SAMPLES", value_parser = samples, allow_hyphen_values = true)]
    pub samples: Option<u64>,
    /// Time between samples, such as 2, 500msec or 1min; `ms` is minutes [default: 1sec].
    #[arg(short = 't', long, value_name = "INTERVAL", value_parser = interval, allow_hyphen_values = true)]
    pub interval: Option<Duration>,
    /// Pause between samples of an archive for as long as passed between them.
    #[arg(short, long)]
    pub delay: bool,
    /// What to do at the end.
    #[command(flatten)]
    pub follow: FollowArgument,
    /// Digits after the decimal point [default: as the size of a number calls for].
    #[arg(short = 'f', long, value_name = "DIGITS", value_parser = digits)]
    pub precision: Option<usize>,
    /// Width of a column [default: that of the longest value of the type].
    #[arg(short, long, value_name = "COLUMNS", value_parser = columns)]
    pub width: Option<usize>,
    /// Names of instances, with commas or blanks between them; in quotes if they contain such.
    #[arg(short, long, value_name = "INSTANCES")]
    pub instances: Vec<String>,
    /// Counters as they are, not their rates.
    #[arg(short, long)]
    pub raw: bool,
    /// Say that there are no event records.
    #[arg(short, long)]
    pub verbose: bool,
    /// Store this as the metric's value before the first fetch, which agents take for a filter.
    #[arg(short = 'x', long, value_name = "VALUE")]
    pub filter: Option<String>,
    /// Date and microseconds in front of values of an archive; twice for nanoseconds.
    #[arg(short = 'X', long, action = ArgAction::Count)]
    pub timestamp: u8,
    /// Taken so that it can be said why it is of no use.
    #[arg(short = 'g', long, hide = true)]
    pub guimode: bool,
    /// Taken so that it can be said why it is of no use.
    #[arg(short = 'p', long, value_name = "PORT", hide = true)]
    pub guiport: Option<String>,
    /// A metric, perhaps with its source and some instances:
    /// HOST:METRIC[INSTANCE,...], ARCHIVE/METRIC, or @:METRIC of this machine without pmcd.
    #[arg(value_name = "METRIC")]
    pub metric: String,
}

impl ValArguments {
    /// How exactly times are told.
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
    match interval {
        Duration::ZERO => Ok(DEFAULT_INTERVAL),
        _ if interval > LONGEST_INTERVAL => {
            Err(format!("an interval has at most {} seconds", LONGEST_INTERVAL.as_secs()))
        }
        _ => Ok(interval),
    }
}

fn digits(text: &str) -> Result<usize, String> {
    let digits = text.trim().parse().ok().filter(|digits| *digits <= WIDEST);
    digits.ok_or_else(|| "-f requires +ve numeric argument".to_owned())
}

fn columns(text: &str) -> Result<usize, String> {
    let columns = text.trim().parse().ok().filter(|columns| (1..=WIDEST).contains(columns));
    columns.ok_or_else(|| format!("-w requires +ve numeric argument, {WIDEST} at most"))
}

/// Time between samples when none is given.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);

/// More than thirty years, so that arithmetic with it is safe.
const LONGEST_INTERVAL: Duration = Duration::from_secs(1_000_000_000);

/// Most columns that a value takes because of -w.
const WIDEST: usize = 10_000;
