//! `pmderive info`: what pminfo(1) prints of the metrics of a source.
//!
//! ```text
//! names ──► walk ──► metrics ──► lookup ──► Described ──► report ──► standard output
//!                                                 │
//!                                                 ├──► labels: labels and identifiers of series
//!                                                 └──► values: values and event records
//! ```
//!
//! A round trip answers for as many metrics as possible: all that is known of
//! a group of them is looked up before the first of them is printed.

mod labels;
mod lookup;
mod report;
mod values;

use clap::Args;
use pmderive_runtime::model::{InDom, Pmid};
use pmderive_runtime::source::MetadataSource;

use self::report::Report;
use super::messages::Messages;
use super::pcp_options::{OriginOption, PcpOptions, Source, batch};
use super::{Outcome, Stop, walk};
use crate::engine::Backend;

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct InfoArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub options: PcpOptions,
    /// From when in an archive values are.
    #[command(flatten)]
    pub origin: OriginOption,
    /// What is printed.
    #[command(flatten)]
    pub shown: Shown,
    /// Metrics or nodes of the name space, identifiers of metrics (29.0.5) or of
    /// instance domains (29.1); without any, all metrics.
    #[arg(value_name = "METRIC|PMID|INDOM")]
    pub names: Vec<String>,
}

/// What of a metric is printed.
#[derive(Clone, Debug, Args)]
pub struct Shown {
    /// Metrics that are fetched at a time [default: 128, of an archive always 1].
    #[arg(short, long, value_name = "N", value_parser = batch)]
    pub batch: Option<usize>,
    /// Type, instance domain, semantics and units.
    #[arg(short, long)]
    pub desc: bool,
    /// Values of all instances.
    #[arg(short, long)]
    pub fetch: bool,
    /// Values of all instances, of domains that cannot be enumerated as well.
    #[arg(short = 'F', long)]
    pub fetchall: bool,
    /// Identifiers of instance domains in all their forms.
    #[arg(short = 'I', long)]
    pub fullindom: bool,
    /// Labels of metrics and instances.
    #[arg(short, long)]
    pub labels: bool,
    /// Identifiers of metrics.
    #[arg(short = 'm', long)]
    pub pmid: bool,
    /// Identifiers of metrics in all their forms.
    #[arg(short = 'M', long)]
    pub fullpmid: bool,
    /// Identifiers of the series of values of source, metrics and instances.
    #[arg(short, long)]
    pub series: bool,
    /// One line of help.
    #[arg(short = 't', long)]
    pub oneline: bool,
    /// The help text.
    #[arg(short = 'T', long)]
    pub helptext: bool,
    /// Values, and what event records hold.
    #[arg(short = 'x', long)]
    pub events: bool,
    /// Only that metrics have no values, and why.
    #[arg(short, long)]
    pub verify: bool,
}

/// Metrics fetched at a time.
const BATCH: usize = 128;

/// Metrics that are looked up together.
const GROUP: usize = 4096;

/// What is to be reported, in order.
enum Item {
    Metric(String),
    Domain(InDom),
}

/// Runs the command.
pub fn run(arguments: &InfoArguments, messages: &mut Messages) -> Result<Outcome, Stop> {
    let mut source = arguments.options.open(&arguments.names, Backend::Interp, messages)?;
    source.start_at(&arguments.origin, messages)?;
    let mut outcome = Outcome::Good;
    let mut items = Vec::new();
    let mut errors = Vec::new();
    if arguments.names.is_empty() {
        match walk::metrics_below(&mut source, "")? {
            Ok(names) => items.extend(names.into_iter().map(Item::Metric)),
            Err(status) => errors.push(format!("Error: {status}")),
        }
        if items.is_empty() && errors.is_empty() {
            errors.push("PMNS appears to be empty!".to_owned());
        }
    }
    for name in &arguments.names {
        let found = match identifier(name) {
            Some(Identifier::Domain(indom)) => {
                items.push(Item::Domain(indom));
                continue;
            }
            // pmNameID(3) gives one of the names only.
            Some(Identifier::Metric(pmid)) => source
                .context
                .names_of(pmid)?
                .map(|names| names.into_iter().take(1).map(String::from).collect::<Vec<_>>()),
            None => walk::metrics_below(&mut source, name)?,
        };
        match found {
            Ok(names) => items.extend(names.into_iter().map(Item::Metric)),
            Err(status) => errors.push(format!("Error: {name}: {status}")),
        }
    }
    for error in errors {
        messages.line(&error);
        outcome = Outcome::Failed;
    }
    match print(&items, arguments, &mut source, messages) {
        Ok(()) => Ok(outcome),
        Err(stop) => Err(stop.after(outcome)),
    }
}

/// Reports on all items. Metrics wait until there is a batch of them, and
/// instance domains do not, as in pminfo.
fn print(
    items: &[Item],
    arguments: &InfoArguments,
    source: &mut Source,
    messages: &Messages,
) -> Result<(), Stop> {
    let batch = match source.is_archive() {
        true => 1,
        false => arguments.shown.batch.unwrap_or(BATCH),
    };
    let has_domains = items.iter().any(|item| matches!(item, Item::Domain(_)));
    let group = if has_domains || source.is_archive() { batch } else { GROUP.max(batch) };
    let mut report = Report::new(arguments.shown.clone(), batch, source, messages);
    let mut waiting = Vec::new();
    for item in items {
        match item {
            Item::Domain(indom) => report.domain(*indom)?,
            Item::Metric(name) => {
                waiting.push(name.as_str());
                if waiting.len() == group {
                    report.metrics(&waiting)?;
                    waiting.clear();
                }
            }
        }
    }
    report.metrics(&waiting)?;
    report.finish()
}

/// An argument in dotted notation.
enum Identifier {
    Metric(Pmid),
    Domain(InDom),
}

/// Reads an argument as pminfo does, which looks no further than it has to.
fn identifier(text: &str) -> Option<Identifier> {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(number) = rest[..digits].parse::<u32>() else { break };
        numbers.push(number);
        match rest[digits..].strip_prefix('.') {
            Some(after) if numbers.len() < 3 => rest = after,
            _ => break,
        }
    }
    match numbers[..] {
        [domain, cluster, item] => Some(Identifier::Metric(Pmid::new(domain, cluster, item))),
        [domain, serial] => Some(Identifier::Domain(InDom::new(domain, serial))),
        _ => None,
    }
}
