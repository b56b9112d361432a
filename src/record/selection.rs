//! The metrics to record, and their descriptors in the archive.
//!
//! The requested names are looked up at the beginning, and again when the
//! source may have changed. In an archive a metric keeps its descriptor: if the
//! source changes it, the metric is left out until the old descriptor returns.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pmderive_runtime::archive_writer::name_problem;
use pmderive_runtime::model::{InstId, MetricDesc, PmStatus, Pmid, Timestamp, UtcTime};
use pmderive_runtime::source::{FetchSource, MetadataSource, SourceError, is_at_or_below};
use rustc_hash::{FxHashMap, FxHashSet};

use super::identifiers::Identifiers;
use super::recording::Recording;
use crate::engine::{Session, is_anonymous};

/// A metric that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name by which it was found.
    pub name: Box<str>,
    /// The source's descriptor.
    pub desc: MetricDesc,
    /// The descriptor with the identifier in the archive.
    pub recorded: MetricDesc,
    /// Metrics of the source from which it is computed, if it is derived.
    pub operands: Option<Arc<[Pmid]>>,
}

/// A search for the metrics of value sets, which are in the order of the metrics. Some sets may
/// be missing, and one that belongs to another selection may be out of order.
pub fn search_in_order<'m>(metrics: &'m [Metric]) -> impl FnMut(Pmid) -> Option<&'m Metric> {
    let mut from_here = metrics.iter().cycle();
    move |pmid| from_here.by_ref().take(metrics.len()).find(|one| one.recorded.pmid == pmid)
}

/// The reason why a requested metric is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOut {
    /// There is no such metric, and no metric below that name.
    Unknown(PmStatus),
    /// It has no descriptor, or it is a derived metric that cannot be used.
    NoDescriptor(PmStatus),
    /// It is no longer the metric that the archive has under its name.
    Changed {
        /// The descriptor in the archive.
        was: MetricDesc,
        /// The present descriptor.
        is: MetricDesc,
    },
    /// All identifiers of its agent are in use.
    NoIdentifier,
    /// No archive can hold its name. The text says why.
    NoName(&'static str),
}

/// An event that the user should know about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A metric is left out from now on.
    LeftOut(Box<str>, LeftOut),
    /// A metric that was left out is recorded, or metrics of a node that was.
    Recorded(Box<str>),
    /// Values of a metric are left out because the source has no names of their
    /// instances, such as this one, or because their identifiers are negative.
    Nameless(Box<str>, InstId),
    /// Values of a metric are not of its type: the archive has this status instead.
    Misfit(Box<str>, PmStatus),
    /// A name, label or instance domain that the archive cannot hold.
    Refused(String),
    /// The source's clock was set back. Samples are skipped until it has caught
    /// up.
    TimeWentBack {
        /// Time of the last record.
        from: Timestamp,
        /// Time of the sample.
        to: Timestamp,
    },
}

impl Notice {
    /// The event in words, without the metric.
    pub fn kind(&self) -> String {
        match self {
            Notice::LeftOut(_, reason) => format!("left out, {reason}"),
            Notice::Recorded(_) => "recorded from now on".to_owned(),
            Notice::Nameless(_, instance) => format!("{} are left out", unwritable(*instance)),
            Notice::Misfit(_, status) => {
                format!("values that are not of the type are left out, {status}")
            }
            Notice::Refused(_) | Notice::TimeWentBack { .. } => self.to_string(),
        }
    }

    /// The metric, if it is about one.
    pub fn metric(&self) -> Option<&str> {
        match self {
            Notice::LeftOut(name, _)
            | Notice::Recorded(name)
            | Notice::Nameless(name, _)
            | Notice::Misfit(name, _) => Some(name),
            Notice::Refused(_) | Notice::TimeWentBack { .. } => None,
        }
    }

    /// True if the archive lacks something that it should have.
    pub fn is_loss(&self) -> bool {
        !matches!(self, Notice::Recorded(_))
    }
}

/// Instances like this one, which an archive cannot hold. Readers take no negative identifiers.
fn unwritable(instance: InstId) -> &'static str {
    match instance {
        ..0 => "instances with negative identifiers",
        0.. => "instances without a name",
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::LeftOut(name, reason) => write!(f, "{name} is left out: {reason}"),
            Notice::Recorded(name) => write!(f, "{name} is recorded from now on"),
            Notice::Nameless(name, instance) => {
                let instances = unwritable(*instance);
                write!(f, "{name}: values of {instances}, such as {instance}, are left out")
            }
            Notice::Misfit(name, status) => {
                write!(f, "{name}: values that are not of its type are left out: {status}")
            }
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

/// Writes the differences between two descriptors.
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
    f.write_str("; an archive can hold only one of them")
}

/// The metrics that are recorded, and those that are left out.
#[derive(Debug, Default)]
pub struct Selection {
    /// The metrics that are recorded now, each once.
    pub metrics: Arc<[Metric]>,
    left_out: BTreeMap<Box<str>, LeftOut>,
    /// Descriptors of metrics in the archive.
    known: FxHashMap<Box<str>, MetricDesc>,
    /// Nodes of the name space above these metrics.
    nodes: FxHashSet<Box<str>>,
    identifiers: Identifiers,
}

impl Selection {
    /// Requested names that are not recorded now, in the order of names.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &LeftOut)> {
        self.left_out.iter().map(|(name, reason)| (&**name, reason))
    }

    /// Looks up all names, and notes the changes. Returns true if a metric of the archive is back
    /// after it was left out.
    ///
    /// # Errors
    /// The source failed. Nothing has changed.
    pub fn look_up<S: FetchSource>(
        &mut self,
        context: &mut Session<S>,
        recording: &Recording<S>,
        notices: &mut Vec<Notice>,
    ) -> Result<bool, SourceError> {
        let mut left_out = BTreeMap::new();
        let names = names_of(context, &recording.names, &mut left_out)?;
        let (mut found, operands) = describe(context, names, recording, &mut left_out)?;
        if recording.with_operands {
            let names = names_of_operands(context, &found, operands)?;
            found.extend(describe(context, names, recording, &mut left_out)?.0);
        }
        let mut seen = FxHashSet::default();
        let mut metrics = Vec::with_capacity(found.len());
        let mut is_back = false;
        for (name, desc, operands) in found {
            if let Some(problem) = name_problem(&name) {
                left_out.insert(name, LeftOut::NoName(problem));
                continue;
            }
            if !seen.insert(desc.pmid) {
                continue;
            }
            let was_away = self.known.contains_key(&name)
                && nodes_above(&name).chain([&*name]).any(|node| self.left_out.contains_key(node));
            match self.in_archive(&name, desc) {
                Ok(recorded) => {
                    is_back |= was_away;
                    metrics.push(Metric { name, desc, recorded, operands });
                }
                Err(reason) => {
                    left_out.insert(name, reason);
                }
            }
        }
        let news = left_out.iter().filter(|(name, why)| self.left_out.get(*name) != Some(why));
        notices.extend(news.map(|(name, why)| Notice::LeftOut(name.clone(), why.clone())));
        let is_recorded = |node: &str| metrics.iter().any(|one| is_at_or_below(&one.name, node));
        let gone = self.left_out.keys().filter(|name| !left_out.contains_key(*name));
        let back = gone.filter(|name| is_recorded(name));
        notices.extend(back.map(|name| Notice::Recorded(name.clone())));
        self.left_out = left_out;
        if *self.metrics != metrics {
            self.metrics = metrics.into();
        }
        Ok(is_back)
    }

    /// The descriptor of a metric in the archive.
    fn in_archive(&mut self, name: &str, desc: MetricDesc) -> Result<MetricDesc, LeftOut> {
        if let Some(known) = self.known.get(name) {
            // The identifier at the source does not matter.
            return match (MetricDesc { pmid: known.pmid, ..desc }) == *known {
                true => Ok(*known),
                false => Err(LeftOut::Changed { was: *known, is: desc }),
            };
        }
        if self.nodes.contains(name) {
            return Err(LeftOut::NoName("is also that of a group of metrics"));
        }
        if nodes_above(name).any(|node| self.known.contains_key(node)) {
            return Err(LeftOut::NoName("is below that of another metric"));
        }
        let pmid = self.identifiers.assign(desc.pmid).ok_or(LeftOut::NoIdentifier)?;
        let recorded = MetricDesc { pmid, ..desc };
        self.known.insert(name.into(), recorded);
        self.nodes.extend(nodes_above(name).map(Box::from));
        Ok(recorded)
    }
}

/// The nodes of the name space above a name.
fn nodes_above(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').map(|(end, _)| &name[..end])
}

/// Names of the metrics that nodes of the name space stand for.
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
type Found = (Box<str>, MetricDesc, Option<Arc<[Pmid]>>);

/// Describes metrics. The second list has the operands of all of them, if they are needed; some
/// more than once.
fn describe<S: FetchSource>(
    context: &mut Session<S>,
    names: Vec<Box<str>>,
    recording: &Recording<S>,
    left_out: &mut BTreeMap<Box<str>, LeftOut>,
) -> Result<(Vec<Found>, Vec<Pmid>), SourceError> {
    let needs_operands = recording.with_operands || recording.records.is_some();
    let questions: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut pmids = Vec::with_capacity(names.len());
    let mut found = Vec::with_capacity(names.len());
    for (pmid, name) in context.lookup_names(&questions)?.into_iter().zip(names) {
        match pmid {
            // A part of event records, which never has a value by itself.
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
    let descs = context.lookup_descs(&pmids)?;
    let has_operands = |pmid: &Pmid| needs_operands && pmid.is_derived();
    let derived = descs.iter().flatten().map(|desc| desc.pmid).filter(has_operands);
    // All at once: definitions may share operands, down to all definitions before them.
    let reads = context.reads(&derived.collect::<Vec<Pmid>>())?;
    let mut of_each = reads.of_each().into_iter();
    let mut described = Vec::with_capacity(found.len());
    for (name, desc) in found.into_iter().zip(descs) {
        match desc {
            Ok(desc) => {
                let operands = if has_operands(&desc.pmid) { of_each.next() } else { None };
                described.push((name, desc, operands));
            }
            Err(status) => {
                left_out.insert(name, LeftOut::NoDescriptor(status));
            }
        }
    }
    Ok((described, reads.metrics().collect()))
}

/// Names of the metrics from which derived ones are computed, each once.
fn names_of_operands<S: FetchSource>(
    context: &mut Session<S>,
    found: &[Found],
    mut operands: Vec<Pmid>,
) -> Result<Vec<Box<str>>, SourceError> {
    let mut seen: FxHashSet<Pmid> = found.iter().map(|(_, desc, _)| desc.pmid).collect();
    operands.retain(|pmid| seen.insert(*pmid));
    let names = context.names_of_each(&operands)?.into_iter().flatten();
    Ok(names.filter_map(|names| names.into_iter().next()).collect())
}
