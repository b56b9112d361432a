//! Which metrics are recorded, and what each is in the archive.
//!
//! The names that were asked for are looked up at the beginning and again
//! whenever the source may have others. In an archive a metric stays what it
//! was: one whose descriptor changes is left out until it is as before.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pmderive_runtime::archive_writer::name_problem;
use pmderive_runtime::model::{InstId, MetricDesc, PmStatus, Pmid, Timestamp, UtcTime};
use pmderive_runtime::source::{FetchSource, MetadataSource, SourceError};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Recording;
use super::identifiers::Identifiers;
use crate::engine::{Session, is_anonymous};

/// A metric that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name by which it was found.
    pub name: Box<str>,
    /// What the source says of it.
    pub desc: MetricDesc,
    /// The same with the identifier that it has in the archive.
    pub recorded: MetricDesc,
    /// Metrics of the source that it is computed from, if it is derived.
    pub operands: Option<Box<[Pmid]>>,
}

/// Why something that was asked for is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// There is no such metric, and none below that name.
    Unknown(PmStatus),
    /// Nothing is known of it, or it is derived and cannot be used.
    NoDescriptor(PmStatus),
    /// It is no longer the metric that the archive has under its name.
    Changed {
        /// What the archive has.
        was: MetricDesc,
        /// What it is now.
        is: MetricDesc,
    },
    /// Its agent has more metrics than there are identifiers.
    NoIdentifier,
    /// No archive can have its name, of which this says what is wrong with it.
    NoName(&'static str),
}

/// Something that is good to know while metrics are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A metric is left out from now on.
    LeftOut(Box<str>, LeftOut),
    /// A metric that was left out is recorded.
    Recorded(Box<str>),
    /// Values of a metric are left out as nobody knows the names of their
    /// instances, such as this one.
    Nameless(Box<str>, InstId),
    /// A name, label or instance domain cannot be in an archive.
    Refused(String),
    /// The source's clock was set back, and samples are left out until it is
    /// where it was.
    TimeWentBack {
        /// Time of the last record.
        from: Timestamp,
        /// Time of the sample.
        to: Timestamp,
    },
}

impl Notice {
    /// True if something is not in the archive that should be.
    pub fn is_loss(&self) -> bool {
        !matches!(self, Notice::Recorded(_))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::LeftOut(name, reason) => write!(f, "{name} is left out: {reason}"),
            Notice::Recorded(name) => write!(f, "{name} is recorded from now on"),
            Notice::Nameless(name, instance) => write!(
                f,
                "{name}: values of instances without a name, such as {instance}, are left out"
            ),
            Notice::Refused(problem) => write!(f, "left out: {problem}"),
            Notice::TimeWentBack { from, to } => write!(
                f,
                "time went back from {} to {}: samples are left out until it is {} again",
                UtcTime(*from),
                UtcTime(*to),
                UtcTime(*from)
            ),
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftOut::Unknown(status) | LeftOut::NoDescriptor(status) => write!(f, "{status}"),
            LeftOut::Changed { was, is } => changes(was, is, f),
            LeftOut::NoIdentifier => f.write_str("there are no more identifiers for metrics"),
            LeftOut::NoName(problem) => write!(f, "the name {problem}, so no archive can have it"),
        }
    }
}

/// What of a descriptor is not as it was.
fn changes(was: &MetricDesc, is: &MetricDesc, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let domain = |desc: &MetricDesc| match desc.indom {
        Some(indom) => format!("instance domain {indom}"),
        None => "no instance domain".to_owned(),
    };
    let units = |desc: &MetricDesc| match desc.units.to_string() {
        units if units.is_empty() => "no units".to_owned(),
        units => format!("units {units}"),
    };
    let type_of = |desc: &MetricDesc| format!("type {}", desc.value_type);
    let semantics = |desc: &MetricDesc| format!("semantics {}", desc.semantics);
    let of: [&dyn Fn(&MetricDesc) -> String; 4] = [&type_of, &domain, &semantics, &units];
    let mut separator = "it had ";
    for property in of {
        let (before, now) = (property(was), property(is));
        if before != now {
            write!(f, "{separator}{before}, and has {now} now")?;
            separator = "; it had ";
        }
    }
    f.write_str("; an archive can have but one of them")
}

/// What is recorded, and what is not.
#[derive(Debug, Default)]
pub struct Selection {
    /// What is recorded now, each metric once.
    pub metrics: Arc<[Metric]>,
    left_out: BTreeMap<Box<str>, LeftOut>,
    /// Descriptors that metrics have in the archive.
    known: FxHashMap<Box<str>, MetricDesc>,
    identifiers: Identifiers,
}

impl Selection {
    /// Names that are asked for and not recorded now, in the order of names.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &LeftOut)> {
        self.left_out.iter().map(|(name, reason)| (&**name, reason))
    }

    /// Looks all names up, and notes what has changed.
    ///
    /// # Errors
    /// The source failed; everything is as before.
    pub fn look_up<S: FetchSource>(
        &mut self,
        context: &mut Session<S>,
        recording: &Recording<S>,
        notices: &mut Vec<Notice>,
    ) -> Result<(), SourceError> {
        let mut left_out = BTreeMap::new();
        let names = names_of(context, &recording.names, &mut left_out)?;
        let mut found = describe(context, names, recording, &mut left_out)?;
        if recording.with_operands {
            let names = names_of_operands(context, &found)?;
            found.extend(describe(context, names, recording, &mut left_out)?);
        }
        let mut seen = FxHashSet::default();
        let mut metrics = Vec::with_capacity(found.len());
        for (name, desc, operands) in found {
            if let Some(problem) = name_problem(&name) {
                left_out.insert(name, LeftOut::NoName(problem));
                continue;
            }
            if !seen.insert(desc.pmid) {
                continue;
            }
            match self.in_archive(&name, desc) {
                Ok(recorded) => metrics.push(Metric { name, desc, recorded, operands }),
                Err(reason) => {
                    left_out.insert(name, reason);
                }
            }
        }
        let news = left_out.iter().filter(|(name, why)| self.left_out.get(*name) != Some(why));
        notices.extend(news.map(|(name, why)| Notice::LeftOut(name.clone(), why.clone())));
        let is_back = |metric: &&Metric| self.left_out.contains_key(&metric.name);
        let back = metrics.iter().filter(is_back);
        notices.extend(back.map(|metric| Notice::Recorded(metric.name.clone())));
        self.left_out = left_out;
        if *self.metrics != metrics {
            self.metrics = metrics.into();
        }
        Ok(())
    }

    /// The descriptor that a metric has in the archive.
    fn in_archive(&mut self, name: &str, desc: MetricDesc) -> Result<MetricDesc, LeftOut> {
        if let Some(known) = self.known.get(name) {
            // Its number at the source does not matter.
            return match (MetricDesc { pmid: known.pmid, ..desc }) == *known {
                true => Ok(*known),
                false => Err(LeftOut::Changed { was: *known, is: desc }),
            };
        }
        let pmid = self.identifiers.assign(desc.pmid).ok_or(LeftOut::NoIdentifier)?;
        let recorded = MetricDesc { pmid, ..desc };
        self.known.insert(name.into(), recorded);
        Ok(recorded)
    }
}

/// The names of metrics that nodes of the name space stand for.
fn names_of<S: FetchSource>(
    context: &mut Session<S>,
    nodes: &[Box<str>],
    left_out: &mut BTreeMap<Box<str>, LeftOut>,
) -> Result<Vec<Box<str>>, SourceError> {
    let questions: Vec<&str> = nodes.iter().map(|name| &**name).collect();
    let mut names = Vec::with_capacity(nodes.len());
    for (node, found) in nodes.iter().zip(context.lookup_names(&questions)?) {
        let Err(status) = found else {
            names.push(node.clone());
            continue;
        };
        match context.traverse(node) {
            Ok(below) if !below.is_empty() => names.extend(below.into_iter().map(Box::from)),
            Ok(_) | Err(SourceError::Status { .. }) => {
                left_out.insert(node.clone(), LeftOut::Unknown(status));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

/// A metric with its descriptor at the source and its operands.
type Found = (Box<str>, MetricDesc, Option<Box<[Pmid]>>);

fn describe<S: FetchSource>(
    context: &mut Session<S>,
    names: Vec<Box<str>>,
    recording: &Recording<S>,
    left_out: &mut BTreeMap<Box<str>, LeftOut>,
) -> Result<Vec<Found>, SourceError> {
    let needs_operands = recording.with_operands || recording.holds.is_some();
    let questions: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut pmids = Vec::with_capacity(names.len());
    let mut found = Vec::with_capacity(names.len());
    for (pmid, name) in context.lookup_names(&questions)?.into_iter().zip(names) {
        match pmid {
            // Parts of event records, which never have a value of their own.
            Ok(pmid) if pmid.is_derived() && is_anonymous(&name) => {}
            Ok(pmid) => {
                pmids.push(pmid);
                found.push(name);
            }
            Err(status) => {
                left_out.insert(name, LeftOut::Unknown(status));
            }
        }
    }
    let mut described = Vec::with_capacity(found.len());
    for (name, desc) in found.into_iter().zip(context.lookup_descs(&pmids)?) {
        match desc {
            Ok(desc) => {
                let operands = match desc.pmid.is_derived() && needs_operands {
                    true => Some(context.operands(desc.pmid)?.into()),
                    false => None,
                };
                described.push((name, desc, operands));
            }
            Err(status) => {
                left_out.insert(name, LeftOut::NoDescriptor(status));
            }
        }
    }
    Ok(described)
}

/// Names of the metrics that derived ones are computed from, each once.
fn names_of_operands<S: FetchSource>(
    context: &mut Session<S>,
    found: &[Found],
) -> Result<Vec<Box<str>>, SourceError> {
    let mut seen: FxHashSet<Pmid> = found.iter().map(|(_, desc, _)| desc.pmid).collect();
    let operands = found.iter().filter_map(|(.., operands)| operands.as_deref()).flatten();
    let operands: Vec<Pmid> = operands.copied().filter(|pmid| seen.insert(*pmid)).collect();
    let names = context.names_of_each(&operands)?.into_iter().flatten();
    Ok(names.filter_map(|names| names.into_iter().next()).collect())
}
