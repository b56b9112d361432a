//! The cost of stage two: `cargo bench --bench aggregates`.
//!
//! There are 10,000 hosts in 250 racks, and 20 metrics of 10 instances each. `feed`
//! adds the frames of one slot, and `finish` ends the slot.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Engine, Registry};
use pmderive::internal::fleet::aggregates::{Aggregates, FleetDefinitions, HostMetrics};
use pmderive::internal::fleet::frame::{ExportedMetric, Frame, Instances, Schema};
use pmderive::internal::fleet::labels::Labels;
use pmderive::internal::fleet::sinks::samples::{self, Given};
use pmderive::internal::fleet::sinks::sink_set::SinkSet;
use pmderive::internal::fleet::slot::{Nanos, Slot};
use pmderive::internal::fleet::targets::target::{GroupId, Target};
use pmderive::runtime::context::HostSpec;
use pmderive::runtime::model::{Semantics, Timestamp, Units, ValueType};

const LANGUAGE: Language = Language { dialect: Dialect::Fixed, extensions: true };
const HOSTS: usize = 10_000;
const METRICS: usize = 20;
const INSTANCES: i32 = 10;

fn definitions() -> Arc<FleetDefinitions> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let names: Vec<String> = (0..METRICS).map(|at| format!("shop.m{at:02}")).collect();
    let functions = ["sum", "avg", "max", "min", "count"];
    let text: String = names
        .iter()
        .enumerate()
        .map(|(at, name)| format!("racks.m{at} = {}({name}) by (rack)\n", functions[at % 5]))
        .collect();
    let text = sources.add("fleet.conf", text);
    let mut registry = Registry::new(LANGUAGE);
    registry.add_text(text, &sources, &mut diagnostics);
    let hosts = HostMetrics::of(names.iter().map(String::as_str));
    let definitions = FleetDefinitions::read(&registry, &[], &hosts, &mut diagnostics);
    assert!(diagnostics.is_empty());
    Arc::new(definitions)
}

/// Hosts, and the frame of each in a slot.
fn frames() -> (Vec<Arc<Target>>, Vec<Frame>) {
    let metric = |at| ExportedMetric {
        name: format!("shop.m{at:02}").into(),
        value_type: ValueType::F64,
        semantics: Semantics::Instant,
        units: Units::NONE,
        has_instances: true,
        help: None,
        sinks: SinkSet::NONE,
    };
    let schema = Arc::new(Schema { metrics: (0..METRICS).map(metric).collect() });
    let target = |host: usize| {
        let labels = Labels::from_iter([("rack", format!("r{:03}", host / 40))]);
        Arc::new(Target::new(format!("web{host}:44321"), HostSpec::local(), labels, GroupId(0)))
    };
    let targets: Vec<Arc<Target>> = (0..HOSTS).map(target).collect();
    let frame = |(host, target): (usize, &Arc<Target>)| {
        let names = (0..INSTANCES).map(|at| Arc::from(format!("disk{at}"))).collect();
        let ids = (0..INSTANCES).collect();
        let instances = Arc::new(Instances { ids, names, ..Instances::default() });
        let column = |metric: usize| {
            let value = |at| (host as f64 / 7.0 + metric as f64 + f64::from(at)).to_bits();
            samples::column(&instances, &(0..INSTANCES).map(value).collect::<Vec<_>>())
        };
        let columns: Vec<Given> = (0..METRICS).map(column).collect();
        Frame {
            target: Arc::clone(target),
            host_labels: Labels::default(),
            slot: Slot(0),
            at: Nanos(0),
            stamp: Timestamp::new(0, 0),
            gaps: 0,
            schema: Arc::clone(&schema),
            columns: samples::columns(&columns),
        }
    };
    let frames = targets.iter().enumerate().map(frame).collect();
    (targets, frames)
}

fn stage_two(criterion: &mut Criterion) {
    let definitions = definitions();
    let (targets, mut frames) = frames();
    let engine = Arc::new(Engine::new(LANGUAGE, Backend::Auto));
    let mut fleet = Aggregates::new(engine, Arc::clone(&definitions), &|_| SinkSet::NONE);
    fleet.collector.set_targets(&targets);
    let mut slot = 0;
    let mut group = criterion.benchmark_group("stage two of 10,000 hosts");
    group.sample_size(20);
    // Measures feeding and finishing of `times` slots.
    let mut run = |times: u64| {
        let (mut feeding, mut finishing) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..times {
            slot += 1;
            frames.iter_mut().for_each(|frame| frame.slot = Slot(slot));
            let begun = Instant::now();
            frames.iter().for_each(|frame| fleet.collector.frame(frame));
            let fed = Instant::now();
            black_box(fleet.finish(Slot(slot), Slot(slot).end(Duration::from_secs(10))));
            feeding += fed - begun;
            finishing += fed.elapsed();
        }
        (feeding, finishing)
    };
    group.bench_function("feed", |bench| bench.iter_custom(|times| run(times).0));
    group.bench_function("finish", |bench| bench.iter_custom(|times| run(times).1));
    group.finish();
}

criterion_group!(benches, stage_two);
criterion_main!(benches);
