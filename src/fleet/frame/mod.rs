//! The events that sinks get of a host: frames with the values of one slot, and series that
//! have ended.
//!
//! The host's task makes both, and all sinks share them. Other modules decide which sink gets
//! which metric, and write the output.

pub mod columns;
pub mod ended_series;
mod instances;
pub mod series;
pub mod sheet;

use std::fmt;
use std::sync::Arc;

use pmderive_runtime::model::{Semantics, Timestamp, Units, ValueType};
use pmderive_runtime::position::Per;

use super::labels::Labels;
use super::sinks::sink_set::SinkSet;
use super::slot::{Nanos, Slot};
use super::targets::target::Target;
use crate::engine::Metric;
use columns::{Columns, Heads, Pattern};
pub use instances::{ExportedId, Instances};

/// An event of a host, for sinks.
#[derive(Clone, Debug)]
pub enum Event {
    /// The host was fetched and evaluated.
    Frame(Frame),
    /// Series of the host have ended.
    Stale(Stale),
}

/// Part of an event that other events and hosts may share.
#[derive(Clone, Copy, Debug)]
pub enum Part<'e> {
    /// Statuses and instances of a frame's metrics.
    Heads(&'e Arc<Heads>),
    /// Positions of the metrics' instances; similar hosts share them.
    Pattern(&'e Arc<Pattern>),
    /// Instances.
    Instances(&'e Arc<Instances>),
}

/// Values of the exported metrics of one host in one slot.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The host.
    pub target: Arc<Target>,
    /// The host's own labels (`pmGetContextLabels(3)`).
    pub host_labels: Labels,
    /// The slot in which the host was due.
    pub slot: Slot,
    /// Time of the reply, by the engine's clock.
    pub at: Nanos,
    /// Time of the values, by the host's clock.
    pub stamp: Timestamp,
    /// Number of gaps up to these values, across which there is no rate: new connections,
    /// restarted agents, slots without an answer.
    pub gaps: u32,
    /// The metrics.
    pub schema: Arc<Schema>,
    /// Their values, parallel to [`Schema::metrics`].
    pub columns: Columns,
}

/// The exported metrics of similar hosts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Schema {
    /// The metrics, by name.
    pub metrics: Per<ExportedId, ExportedMetric>,
}

/// An exported metric.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExportedMetric {
    /// Its name, as in `shop.rate`.
    pub name: Arc<str>,
    /// Type of the values.
    pub value_type: ValueType,
    /// Semantics.
    pub semantics: Semantics,
    /// Units of the values.
    pub units: Units,
    /// True if it has an instance domain; otherwise it has one value.
    pub has_instances: bool,
    /// One line about it (`pmLookupText(3)`), if the definition has any.
    pub help: Option<Arc<str>>,
    /// Sinks that want it.
    pub sinks: SinkSet,
}

/// Series that have ended, and why. The frame of this slot has none of them. Each ends once.
#[derive(Clone, Debug)]
pub struct Stale {
    /// The host.
    pub target: Arc<Target>,
    /// The host's own labels, as the series had them.
    pub host_labels: Labels,
    /// The first slot without them.
    pub slot: Slot,
    /// Time by the engine's clock.
    pub at: Nanos,
    /// The reason.
    pub reason: StaleReason,
    /// The metrics, as the series had them.
    pub schema: Arc<Schema>,
    /// The series: metrics with their ended instances.
    pub series: Box<[(ExportedId, Arc<Instances>)]>,
}

/// Reason for which series ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleReason {
    /// The slot had no correct answer before its deadline; the reason in words.
    Failed(Arc<str>),
    /// The slot was never started.
    Missed,
    /// The host answered, and these instances or metrics have no values.
    Vanished,
    /// The host is no target any more.
    TargetRemoved,
    /// The definition is gone, or has another meaning.
    DefinitionChanged,
}

impl fmt::Display for StaleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StaleReason::Failed(words) => words,
            StaleReason::Missed => "the slot was never begun",
            StaleReason::Vanished => "without values",
            StaleReason::TargetRemoved => "no target any more",
            StaleReason::DefinitionChanged => "the definition has changed",
        })
    }
}

impl ExportedMetric {
    /// The form of a compiled metric for sinks. `None` if it cannot be used there, or if the
    /// source has a metric with this name itself.
    pub fn of(metric: &Metric, sinks: SinkSet, help: Option<Arc<str>>) -> Option<ExportedMetric> {
        let (desc, _) = (metric.desc.ok()?, metric.output?);
        (!metric.is_hidden).then(|| ExportedMetric {
            name: Arc::clone(&metric.name),
            value_type: desc.value_type,
            semantics: desc.semantics,
            units: desc.units,
            has_instances: desc.indom.is_some(),
            help,
            sinks,
        })
    }
}

impl Schema {
    /// The schema with these metrics, by name. Returns what belongs to each in the same order.
    pub fn sorted<T>(metrics: impl Iterator<Item = (ExportedMetric, T)>) -> (Schema, Vec<T>) {
        let mut metrics: Vec<(ExportedMetric, T)> = metrics.collect();
        metrics.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let (metrics, others): (Vec<ExportedMetric>, Vec<T>) = metrics.into_iter().unzip();
        (Schema { metrics: metrics.into() }, others)
    }

    /// Sinks that want any of the metrics.
    pub fn sinks(&self) -> SinkSet {
        self.metrics.iter().map(|metric| metric.sinks).fold(SinkSet::NONE, SinkSet::union)
    }

    /// The metric with a name.
    pub fn find(&self, name: &str) -> Option<(ExportedId, &ExportedMetric)> {
        let at = self.metrics.binary_search_by(|one| (*one.name).cmp(name)).ok()?;
        Some((at, &self.metrics[at]))
    }
}

impl Event {
    /// The host.
    pub fn target(&self) -> &Arc<Target> {
        match self {
            Event::Frame(frame) => &frame.target,
            Event::Stale(stale) => &stale.target,
        }
    }

    /// The frame, if it is one.
    pub fn frame(&self) -> Option<&Frame> {
        match self {
            Event::Frame(frame) => Some(frame),
            Event::Stale(_) => None,
        }
    }

    /// The metrics of the event.
    pub fn schema(&self) -> &Arc<Schema> {
        match self {
            Event::Frame(frame) => &frame.schema,
            Event::Stale(stale) => &stale.schema,
        }
    }

    /// Size in bytes, shared parts included; each part counts once.
    pub fn bytes_with_parts(&self) -> usize {
        let mut all: Vec<Part<'_>> = self.parts().collect();
        all.sort_unstable_by_key(Part::address);
        all.dedup_by_key(|part| part.address());
        self.bytes() + all.iter().map(Part::bytes).sum::<usize>()
    }

    /// The parts that it may share with others; some come several times.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let (heads, series) = match self {
            Event::Frame(frame) => (Some(frame.columns.heads()), &[][..]),
            Event::Stale(stale) => (None, &*stale.series),
        };
        let sets = heads.map_or(&[][..], |heads| heads.sets()).iter();
        let instances = sets.chain(series.iter().map(|(_, instances)| instances));
        let pattern = heads.map(|heads| Part::Pattern(heads.pattern()));
        heads.map(Part::Heads).into_iter().chain(pattern).chain(instances.map(Part::Instances))
    }

    /// Approximate size in bytes, shared parts excluded.
    pub fn bytes(&self) -> usize {
        match self {
            Event::Frame(frame) => size_of::<Event>() + frame.columns.bytes(),
            Event::Stale(stale) => size_of::<Event>() + size_of_val(&*stale.series),
        }
    }
}

impl Part<'_> {
    /// Address of the part. No two parts have the same.
    pub fn address(&self) -> usize {
        match self {
            Part::Heads(heads) => Arc::as_ptr(heads).addr(),
            Part::Pattern(pattern) => Arc::as_ptr(pattern).addr(),
            Part::Instances(instances) => Arc::as_ptr(instances).addr(),
        }
    }

    /// Bytes of memory, without other parts.
    pub fn bytes(&self) -> usize {
        match self {
            Part::Heads(heads) => heads.bytes(),
            Part::Pattern(pattern) => pattern.bytes(),
            Part::Instances(instances) => instances.bytes(),
        }
    }
}
