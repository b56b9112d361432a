//! What sinks see of a host: frames with the values of one slot, and which series
//! have ended.
//!
//! Both are made by the host's task and shared by all sinks. What a sink makes of
//! them, and who wants which metric, is decided elsewhere.

use std::fmt;
use std::sync::Arc;

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{InstId, Semantics, Timestamp, Units, ValueType};
use pmderive_runtime::program::Status;

use super::bits::Bits;
use super::labels::Labels;
use super::slot::{Nanos, Slot};
use super::target::Target;

/// What happened on a host, for sinks.
#[derive(Clone, Debug)]
pub enum Event {
    /// It was fetched and evaluated.
    Frame(Frame),
    /// Series of it have ended.
    Stale(Stale),
}

/// Values of the exported metrics of one host in one slot.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The host.
    pub target: Arc<Target>,
    /// The host's own labels (`pmGetContextLabels(3)`).
    pub host_labels: Labels,
    /// The slot that it was due in.
    pub slot: Slot,
    /// The engine's clock when the reply was there.
    pub at: Nanos,
    /// The host's clock, by pmcd.
    pub stamp: Timestamp,
    /// The metrics.
    pub schema: Arc<Schema>,
    /// Their values, parallel to [`Schema::metrics`].
    pub columns: Box<[Column]>,
}

/// The exported metrics of hosts that are alike.
#[derive(Debug, PartialEq, Eq)]
pub struct Schema {
    /// The metrics, by name.
    pub metrics: Box<[Exported]>,
}

/// An exported metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Its name, as in `shop.rate`.
    pub name: Arc<str>,
    /// Type of the values.
    pub value_type: ValueType,
    /// Semantics.
    pub semantics: Semantics,
    /// Units, which values are in.
    pub units: Units,
    /// True if it has an instance domain; one value otherwise.
    pub has_instances: bool,
    /// One line about it (`pmLookupText(3)`), if the definition has any.
    pub help: Option<Arc<str>>,
    /// Which sinks want it: bit `n` is the sink at position `n` of the configuration.
    pub sinks: u64,
}

/// Values of one metric, parallel to its instances.
#[derive(Clone, Debug)]
pub struct Column {
    /// Whether there are values, and why not.
    pub status: Status,
    /// The instances; shared from slot to slot as long as they are the same.
    pub instances: Arc<Instances>,
    /// The values.
    pub lanes: Lanes,
}

/// Values, parallel to instances.
#[derive(Clone, Debug)]
pub enum Lanes {
    /// Numbers of the type [`Exported::value_type`].
    Numbers(Bits),
    /// Texts and other bytes.
    Texts(Box<[Box<[u8]>]>),
}

/// Instances of one metric in one slot, in the order of the values.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Instances {
    /// Internal identifiers; one of -1 for a metric without a domain.
    pub ids: Box<[InstId]>,
    /// External names, parallel to the identifiers; empty for a metric without a domain.
    pub names: Box<[Arc<str>]>,
    /// Labels of the domain (`pmGetInDomLabels(3)`).
    pub domain_labels: Labels,
    /// Labels of each instance (`pmGetInstancesLabels(3)`), parallel to the
    /// identifiers; empty where no instance has any.
    pub labels: Box<[Labels]>,
}

/// Series that have ended, and why. None of them is in the frame of this slot, if
/// there is one; each is told once.
#[derive(Clone, Debug)]
pub struct Stale {
    /// The host.
    pub target: Arc<Target>,
    /// The host's own labels, as the series had them.
    pub host_labels: Labels,
    /// The slot that they are not in.
    pub slot: Slot,
    /// The engine's clock.
    pub at: Nanos,
    /// Why.
    pub reason: StaleReason,
    /// The metrics, as the series had them.
    pub schema: Arc<Schema>,
    /// The series: positions in [`Schema::metrics`] with the instances that ended.
    pub series: Box<[(usize, Arc<Instances>)]>,
}

/// Why series ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleReason {
    /// The slot was not answered rightly before its deadline: how, in words.
    Failed(Arc<str>),
    /// The slot was never started.
    Missed,
    /// The host answered, and these instances or metrics are without values.
    Vanished,
    /// The host is not a target any more.
    TargetRemoved,
    /// The definition is gone, or means something else now.
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

impl Event {
    /// The host.
    pub fn target(&self) -> &Arc<Target> {
        match self {
            Event::Frame(frame) => &frame.target,
            Event::Stale(stale) => &stale.target,
        }
    }

    /// The metrics that it is about.
    pub fn schema(&self) -> &Arc<Schema> {
        match self {
            Event::Frame(frame) => &frame.schema,
            Event::Stale(stale) => &stale.schema,
        }
    }

    /// The same with its instances, each once, as if nobody else had them.
    pub fn bytes_with_instances(&self) -> usize {
        let mut all: Vec<&Arc<Instances>> = self.instances().collect();
        all.sort_unstable_by_key(|one| Arc::as_ptr(one));
        all.dedup_by(|one, other| Arc::ptr_eq(one, other));
        self.bytes() + all.iter().map(|one| one.bytes()).sum::<usize>()
    }

    /// The instances that it holds, some of them several times.
    pub fn instances(&self) -> impl Iterator<Item = &Arc<Instances>> {
        let (columns, series) = match self {
            Event::Frame(frame) => (&*frame.columns, &[][..]),
            Event::Stale(stale) => (&[][..], &*stale.series),
        };
        let of_columns = columns.iter().map(|column| &column.instances);
        of_columns.chain(series.iter().map(|(_, instances)| instances))
    }

    /// Bytes of memory that it takes by itself, roughly: what it shares with
    /// others does not count.
    pub fn bytes(&self) -> usize {
        match self {
            Event::Frame(frame) => {
                size_of::<Event>() + frame.columns.iter().map(Column::bytes).sum::<usize>()
            }
            Event::Stale(stale) => size_of::<Event>() + size_of_val(&*stale.series),
        }
    }
}

impl Instances {
    /// Bytes of memory, with the names and labels.
    pub fn bytes(&self) -> usize {
        /// The two counters of an `Arc`.
        const SHARED: usize = 16;
        let names = self.names.iter().map(|name| size_of_val(name) + SHARED + name.len());
        let labels = self.labels.iter().map(|one| size_of_val(one) + SHARED + one.bytes());
        size_of::<Instances>()
            + SHARED
            + size_of_val(&*self.ids)
            + self.domain_labels.bytes()
            + names.sum::<usize>()
            + labels.sum::<usize>()
    }
}

impl Column {
    /// The value of an instance, by its position. The type is that of the metric.
    pub fn value(&self, value_type: ValueType, lane: usize) -> Value<'_> {
        match &self.lanes {
            Lanes::Texts(texts) if value_type == ValueType::String => Value::Text(&texts[lane]),
            Lanes::Texts(texts) => Value::Bytes(&texts[lane]),
            Lanes::Numbers(bits) => match (value_type, bits[lane]) {
                (ValueType::I32, bits) => Value::I32(bits as i32),
                (ValueType::U32, bits) => Value::U32(bits as u32),
                (ValueType::I64, bits) => Value::I64(bits as i64),
                (ValueType::F32, bits) => Value::F32(f32::from_bits(bits as u32)),
                (ValueType::F64, bits) => Value::F64(f64::from_bits(bits)),
                (_, bits) => Value::U64(bits),
            },
        }
    }

    fn bytes(&self) -> usize {
        let lanes = match &self.lanes {
            Lanes::Numbers(bits) => size_of_val(&**bits),
            Lanes::Texts(texts) => texts.iter().map(|text| text.len() + 16).sum(),
        };
        size_of::<Column>() + lanes
    }
}
