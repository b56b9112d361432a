//! Arguments of `eval`.

use std::path::PathBuf;

use clap::Args;

#[cfg(feature = "fleet")]
use crate::cli::args::interval;
#[cfg(feature = "fleet")]
use crate::cli::fleet::FleetArguments;
use crate::cli::samples::arguments::SampleArguments;
use crate::report::samples::Form;

/// Help text after the options.
const NOTES: &str = "\
The first sample of an archive is shown if something has a value in it. With -s, and live, it is
left out if an expression is a rate.";

/// Arguments of `eval`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct EvalArguments {
    /// What to evaluate.
    #[command(flatten)]
    pub what: SampleArguments,
    /// A fleet in place of a source.
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// Give each host of --targets this long for a sample [default: 10sec].
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "TIME", value_parser = interval, requires = "targets")]
    pub deadline: Option<std::time::Duration>,
    /// Read an archive backwards, from its end or from -O. Rates and differences have
    /// values then only with --compat, and rates of counters only with --compat 6.0.
    #[arg(long, conflicts_with = "follow")]
    pub reverse: bool,
    /// Choose the form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: Form,
    /// Say why a metric has no value, and list the metrics that groups leave out.
    #[arg(short, long, alias = "why", display_order = 993)]
    pub verbose: bool,
    /// Accepted only to explain why it does not help here.
    #[arg(long, hide = true)]
    pub metadata: Option<PathBuf>,
}
