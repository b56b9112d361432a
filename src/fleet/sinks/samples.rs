//! Frames and targets for tests.

use std::sync::Arc;

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::{InstId, Semantics, Timestamp, Units, ValueType};
use pmderive_runtime::program::Status;
use pmderive_runtime::weak_table::Interner;

use crate::fleet::frame::columns::{Columns, Heads, Lanes};
use crate::fleet::frame::{
    Event, ExportedId, ExportedMetric, Frame, Instances, Schema, Stale, StaleReason,
};
use crate::fleet::labels::Labels;
use crate::fleet::sinks::sink_set::{SinkPlace, SinkSet};
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::targets::target::{GroupId, Target};

/// A target with labels.
///
/// # Panics
/// Never, as the specification is constant.
pub fn target(name: &str, labels: Labels) -> Arc<Target> {
    let spec: HostSpec = "127.0.0.1:44321".parse().expect("a specification");
    Arc::new(Target::new(name, spec, labels, GroupId(0)))
}

/// A metric without units or help, for the sinks of `sinks`.
pub fn exported(
    name: &str,
    value_type: ValueType,
    semantics: Semantics,
    sinks: SinkSet,
) -> ExportedMetric {
    ExportedMetric {
        name: name.into(),
        value_type,
        semantics,
        units: Units::NONE,
        has_instances: false,
        help: None,
        sinks,
    }
}

/// The set of these places.
pub fn sinks(places: &[u32]) -> SinkSet {
    places.iter().copied().map(SinkPlace).collect()
}

/// The instance of a metric without a domain.
pub fn single() -> Arc<Instances> {
    Arc::new(Instances { ids: [-1].into(), ..Instances::default() })
}

/// Instances with these names, numbered from 0, without labels.
pub fn named(names: &[&str]) -> Arc<Instances> {
    Arc::new(Instances {
        ids: (0..names.len()).map(|at| at as InstId).collect(),
        names: names.iter().map(|name| Arc::from(*name)).collect(),
        ..Instances::default()
    })
}

/// The data of a metric in a frame.
#[derive(Clone, Debug)]
pub struct Given {
    /// Whether there are values.
    pub status: Status,
    /// The instances.
    pub instances: Arc<Instances>,
    /// Numbers.
    pub bits: Vec<u64>,
    /// Texts, in place of numbers if there are any.
    pub texts: Vec<Box<[u8]>>,
}

/// A column of numbers.
pub fn column(instances: &Arc<Instances>, bits: &[u64]) -> Given {
    let (instances, bits) = (Arc::clone(instances), bits.to_vec());
    Given { status: Status::Values, instances, bits, texts: Vec::new() }
}

/// The columns of a frame.
pub fn columns(given: &[Given]) -> Columns {
    let mut lanes = Lanes::default();
    for Given { bits, texts, .. } in given {
        match texts.is_empty() {
            true => lanes.push(bits.iter().copied()),
            false => lanes.push_texts(texts.iter().map(|text| &**text)),
        }
    }
    let heads = given.iter().map(|one| (one.status, Arc::clone(&one.instances)));
    // These frames share nothing with each other.
    Columns::new(Heads::among(&Interner::default(), heads), lanes)
}

/// A frame of a host: slot `at` of an interval of one second.
pub fn frame(target: &Arc<Target>, at: u64, schema: &Arc<Schema>, given: &[Given]) -> Event {
    Event::Frame(Frame {
        target: Arc::clone(target),
        host_labels: Labels::default(),
        slot: Slot(at),
        at: Nanos(at * 1_000_000_000),
        stamp: Timestamp::new(at as i64, 0),
        gaps: 0,
        schema: Arc::clone(schema),
        columns: columns(given),
    })
}

/// Series of a host that ended: positions of metrics, and their instances.
pub fn stale(
    target: &Arc<Target>,
    at: u64,
    reason: StaleReason,
    schema: &Arc<Schema>,
    series: Vec<(usize, Arc<Instances>)>,
) -> Event {
    let series = series.into_iter().map(|(metric, has)| (ExportedId::at(metric), has));
    Event::Stale(Stale {
        target: Arc::clone(target),
        host_labels: Labels::default(),
        slot: Slot(at),
        at: Nanos(at * 1_000_000_000),
        reason,
        schema: Arc::clone(schema),
        series: series.collect(),
    })
}

/// An event with one metric `n` of the host `web1`; its slot is the value.
pub fn frame_of_slot(slot: u64) -> Arc<Event> {
    frame_of(slot, &single())
}

/// An event with one metric `n` of the host `web1`, with these instances, in a slot.
pub fn frame_of(slot: u64, instances: &Arc<Instances>) -> Arc<Event> {
    let target = target("web1:44321", Labels::default());
    let metrics = [exported("n", ValueType::U64, Semantics::Instant, SinkSet::ALL)].into();
    let column = column(instances, &vec![slot; instances.ids.len()]);
    Arc::new(frame(&target, slot, &Arc::new(Schema { metrics }), &[column]))
}

/// The slot of an event.
pub fn slot_of(event: &Event) -> u64 {
    match event {
        Event::Frame(frame) => frame.slot.0,
        Event::Stale(stale) => stale.slot.0,
    }
}
