//! Arguments of `info`.

use clap::Args;

use crate::cli::pcp::batches::BatchArgument;
use crate::cli::pcp::options::PcpOptions;
use crate::cli::samples::window::WindowOptions;

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct InfoArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub options: PcpOptions,
    /// From when in an archive values are.
    #[command(flatten)]
    pub window: WindowOptions,
    /// How many metrics are fetched together.
    #[command(flatten)]
    pub batch: BatchArgument,
    /// What is printed.
    #[command(flatten)]
    pub shown: InfoShown,
    /// Add a derived metric, as in `-r 'my.ratio = a / b'`.
    #[arg(short, long, value_name = "NAME=EXPRESSION")]
    pub register: Vec<String>,
    /// Metrics, groups of metrics, expressions, and identifiers of metrics (29.0.5) or of
    /// instance domains (29.1). Without any it is all metrics.
    #[arg(value_name = "METRIC|EXPRESSION|PMID|INDOM")]
    pub names: Vec<String>,
}

/// What of a metric is printed.
#[derive(Clone, Debug, Args)]
pub struct InfoShown {
    /// Print type, instance domain, semantics and units.
    #[arg(short, long)]
    pub desc: bool,
    /// Print the same on one line, with tabs between.
    #[arg(short = '1', long = "desc-oneline")]
    pub desc_oneline: bool,
    /// Print only metrics that can never have values, and metadata that contradict themselves.
    #[arg(short = 'e', long)]
    pub metadata_errors: bool,
    /// Print the values of all instances.
    #[arg(short, long)]
    pub fetch: bool,
    /// As -f, also for instance domains that cannot be enumerated.
    #[arg(short = 'F', long)]
    pub fetchall: bool,
    /// Print identifiers of instance domains in all their forms.
    #[arg(short = 'I', long)]
    pub fullindom: bool,
    /// Print labels of metrics and instances.
    #[arg(short, long)]
    pub labels: bool,
    /// Print identifiers of metrics.
    #[arg(short = 'm', long)]
    pub pmid: bool,
    /// Print identifiers of metrics in all their forms.
    #[arg(short = 'M', long)]
    pub fullpmid: bool,
    /// Print identifiers of series: of the source, metrics and instances.
    #[arg(short, long)]
    pub series: bool,
    /// Print the one-line help.
    #[arg(short = 't', long)]
    pub oneline: bool,
    /// Print the help text.
    #[arg(short = 'T', long)]
    pub helptext: bool,
    /// Print values, and unpack event records.
    #[arg(short = 'x', long)]
    pub events: bool,
    /// Print only the metrics without values, and why.
    #[arg(short, long)]
    pub verify: bool,
}
