//! Invented hosts, their frames, and the results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Engine, Registry};
use pmderive::internal::fleet::aggregates::{
    Aggregates, Collector, Evaluation, FleetDefinitions, HostMetrics, Merged, References,
    ShardPartials,
};
use pmderive::internal::fleet::frame::{Event, ExportedMetric, Frame, Instances, Schema};
use pmderive::internal::fleet::labels::Labels;
use pmderive::internal::fleet::sinks::samples::{self, Given};
use pmderive::internal::fleet::sinks::sink_set::SinkSet;
use pmderive::internal::fleet::slot::{Nanos, Slot};
use pmderive::internal::fleet::targets::target::{GroupId, Target};
use pmderive::runtime::context::HostSpec;
use pmderive::runtime::model::{Semantics, Timestamp, Units, ValueType};
use pmderive::runtime::program::{Reason, Status};
use pmderive::syntax::print_expr;

pub const LANGUAGE: Language = Language { dialect: Dialect::Fixed, extensions: true };
pub const INTERVAL: Duration = Duration::from_secs(10);

/// Values by metric and name of instance, as bits; a single value has no name.
pub type Shown = BTreeMap<String, BTreeMap<String, u64>>;

pub fn labels(text: &str) -> Labels {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').expect("name=value")).collect()
}

pub fn target(name: &str, of_target: &str) -> Arc<Target> {
    Arc::new(Target::new(name, HostSpec::local(), labels(of_target), GroupId(0)))
}

pub fn exported(
    name: &str,
    value_type: ValueType,
    semantics: Semantics,
    units: &str,
) -> ExportedMetric {
    ExportedMetric {
        name: name.into(),
        value_type,
        semantics,
        units: Units::parse(units).expect("units").units,
        has_instances: true,
        help: None,
        sinks: SinkSet::NONE,
    }
}

pub fn schema(metrics: impl IntoIterator<Item = ExportedMetric>) -> Arc<Schema> {
    Arc::new(Schema { metrics: metrics.into_iter().collect() })
}

/// Instances of these names; of a metric without a domain if there is one without a name.
pub fn instances(names: &[&str]) -> Arc<Instances> {
    let names: Box<[Arc<str>]> = match names {
        [""] => Box::default(),
        names => names.iter().map(|name| Arc::from(*name)).collect(),
    };
    let ids = match names.len() {
        0 => vec![-1],
        count => (0..).take(count).collect(),
    };
    Arc::new(Instances { ids: ids.into(), names, ..Instances::default() })
}

/// Values, or none at all.
pub fn column(instances: &Arc<Instances>, bits: &[u64]) -> Given {
    match bits {
        [] => Given {
            status: Status::Empty(Reason::OperandEmpty),
            ..samples::column(&Arc::default(), &[])
        },
        bits => samples::column(instances, bits),
    }
}

pub fn frame(
    target: &Arc<Target>,
    own_labels: &str,
    slot: u64,
    schema: &Arc<Schema>,
    given: &[Given],
) -> Frame {
    Frame {
        target: Arc::clone(target),
        host_labels: labels(own_labels),
        slot: Slot(slot),
        at: Nanos(slot * 10_000_000_000 + 5_000_000_000),
        stamp: Timestamp::new(0, 0),
        gaps: 0,
        schema: Arc::clone(schema),
        columns: samples::columns(given),
    }
}

/// Definitions over a fleet, and what is wrong with them.
pub fn read(text: &str, exported: &[&str]) -> (FleetDefinitions, SourceMap, Diagnostics) {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let source = sources.add("fleet.conf", text);
    let mut registry = Registry::new(LANGUAGE);
    registry.add_text(source, &sources, &mut diagnostics);
    let hosts = HostMetrics::of(exported.iter().copied());
    let definitions = FleetDefinitions::read(&registry, &[], &hosts, &mut diagnostics);
    (definitions, sources, diagnostics)
}

/// How a definition is computed: its expression over aggregates.
pub fn computed(definitions: &FleetDefinitions, name: &str) -> String {
    print_expr(&definitions.named(name).expect("a definition without mistakes").expr)
}

/// Definitions without mistakes.
pub fn definitions(text: &str, exported: &[&str]) -> Arc<FleetDefinitions> {
    let (definitions, _, diagnostics) = read(text, exported);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    Arc::new(definitions)
}

fn engine() -> Arc<Engine> {
    Arc::new(Engine::new(LANGUAGE, Backend::Interp))
}

/// All of a fleet in one process.
pub fn aggregates(definitions: &Arc<FleetDefinitions>) -> Aggregates {
    Aggregates::new(engine(), Arc::clone(definitions), &|_| samples::sinks(&[0]))
}

/// Frames that came late, and those of unexpected hosts.
pub fn dropped(collector: &Collector) -> (u64, u64) {
    (collector.numbers.late.get(), collector.numbers.unexpected.get())
}

/// Ends a slot of a fleet.
pub fn finish(fleet: &mut Aggregates, slot: u64) -> Vec<Event> {
    fleet.finish(Slot(slot), Slot(slot).end(INTERVAL))
}

/// The same with several collectors, each with some of the shards.
pub struct Shared {
    definitions: Arc<FleetDefinitions>,
    collectors: Vec<Collector>,
    evaluation: Evaluation,
}

impl Shared {
    pub fn new(definitions: &Arc<FleetDefinitions>, collectors: usize, first: &Schema) -> Shared {
        let collector = |_| {
            let mut collector = Collector::new(Arc::clone(definitions));
            collector.announce(first);
            collector
        };
        Shared {
            definitions: Arc::clone(definitions),
            collectors: (0..collectors).map(collector).collect(),
            evaluation: Evaluation::new(engine(), Arc::clone(definitions), &|_| {
                samples::sinks(&[0])
            }),
        }
    }

    pub fn of(&mut self, target: &Target) -> &mut Collector {
        let count = self.collectors.len();
        &mut self.collectors[usize::from(target.shard()) % count]
    }

    pub fn set_targets(&mut self, targets: &[Arc<Target>]) {
        let count = self.collectors.len();
        for (at, collector) in self.collectors.iter_mut().enumerate() {
            let its = targets.iter().filter(|one| usize::from(one.shard()) % count == at);
            collector.set_targets(&its.cloned().collect::<Vec<_>>());
        }
    }

    pub fn finish(&mut self, slot: u64) -> Vec<Event> {
        let mut shards: Vec<ShardPartials> = Vec::new();
        let mut known = References::default();
        for collector in &mut self.collectors {
            known = collector.finish(Slot(slot), |_, shard| shards.push(shard.clone())).clone();
        }
        shards.sort_by_key(|shard| shard.shard);
        let mut merged = Merged::new(Arc::clone(&self.definitions), &known);
        for shard in &shards {
            merged.add(shard);
        }
        self.evaluation.know(&known);
        self.evaluation.evaluate(Slot(slot), Slot(slot).end(INTERVAL), &merged)
    }
}

/// The frame among events.
pub fn frame_of(events: &[Event]) -> &Frame {
    match events.last() {
        Some(Event::Frame(frame)) => frame,
        other => panic!("a frame comes last, not {other:?}"),
    }
}

/// The values of a frame of the fleet.
pub fn shown(events: &[Event]) -> Shown {
    let frame = frame_of(events);
    let metrics = frame.schema.metrics.iter().zip(frame.columns.iter());
    let mut shown = Shown::new();
    for (metric, column) in metrics {
        let (bits, instances) = (column.bits, column.instances);
        assert_eq!(bits.len(), instances.ids.len(), "{}", metric.name);
        if metric.has_instances {
            assert_eq!(instances.names.len(), instances.ids.len(), "{}", metric.name);
            assert_eq!(instances.labels.len(), instances.ids.len(), "{}", metric.name);
        }
        let name = |lane: usize| instances.names.get(lane).map_or("", |name| name).to_owned();
        let values = bits.iter().enumerate().map(|(lane, bits)| (name(lane), *bits));
        let values: BTreeMap<String, u64> = values.collect();
        assert_eq!(values.len(), bits.len(), "names tell instances of {} apart", metric.name);
        if !values.is_empty() {
            shown.insert(metric.name.to_string(), values);
        }
    }
    shown
}
