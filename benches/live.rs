//! Fetches from a pmcd over a socket of this machine, evaluated. The pmcd is
//! that of our tests, in a thread of this process; the figures include its time.
//! `benches/peer/run` measures the processor time of a client alone, with a real
//! pmcd. The throughput is in derived metrics of 10 instances each.

mod synth;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pmderive::diag::Diagnostics;
use pmderive::engine::{Backend, Engine};
use pmderive_runtime::context::{ConnectOptions, HostContext};
use pmderive_runtime::eval::Workspace;
use pmderive_runtime::model::{Semantics, Units, Value, ValueType};
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};
use synth::{LANGUAGE, definitions, register};

const METRICS: u32 = 334;

/// The metrics of [`synth::Synth`] that are numbers.
fn world() -> World {
    let mut world = World::new();
    let names: Vec<String> = (0..10).map(|id| format!("i{id}")).collect();
    let domain = world.add_domain(&names);
    let bytes = Units { dim_space: 1, ..Units::NONE };
    for item in 0..METRICS {
        let counter = Metric::new(format!("synth.c64.m{item}"), Script::counter(1_000.0))
            .of_type(ValueType::U64)
            .meaning(Semantics::Counter)
            .in_units(bytes);
        let gauge = Metric::new(
            format!("synth.g64.m{item}"),
            Script::cycle([u64::from(item), 977].map(Value::U64)),
        )
        .of_type(ValueType::U64)
        .meaning(Semantics::Instant)
        .in_units(bytes);
        let number = Metric::new(
            format!("synth.gd.m{item}"),
            Script::cycle([f64::from(item), 0.5].map(Value::F64)),
        )
        .of_type(ValueType::F64)
        .meaning(Semantics::Instant);
        for metric in [counter, gauge, number] {
            world.add(metric.per(domain));
        }
    }
    world
}

fn fetches(criterion: &mut Criterion) {
    let pmcd = FakePmcd::start(FakeHost::new(world()).named("synth"));
    let mut group = criterion.benchmark_group("live");
    for count in [100, 1_000, 10_000] {
        let mut host = HostContext::open_with(&pmcd.spec(), ConnectOptions::default())
            .expect("it is on this machine");
        let registry = register(&definitions("mix", count, METRICS));
        let mut diagnostics = Diagnostics::default();
        let compiled = Engine::new(LANGUAGE, Backend::Jit)
            .compile(&registry, &registry.all(), &mut host, &mut diagnostics)
            .expect("it answers");
        assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
        let (mut evaluator, mut workspace) = (compiled.evaluator(), Workspace::default());
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(count.to_string(), |bencher| {
            bencher.iter(|| {
                evaluator.fetch(&mut host, &mut workspace).map(drop).expect("it answers");
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = fetches
}
criterion_main!(benches);
