//! Contexts, used as an application uses them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Definitions, Engine, Registered, Registry, Session, Space};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::context::{ConnectOptions, HostContext};
use pmderive_runtime::eval::Value;
use pmderive_runtime::memory::{MemoryMetadata, MemorySource};
use pmderive_runtime::model::{InDom, MetricDesc, Pmid, Semantics, Timestamp, Units, ValueType};
use pmderive_runtime::program::{Reason, Status};
use pmderive_runtime::result::{ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, FetchSource};
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};

use crate::choosing::choosing;

fn archive(name: &str) -> ArchiveContext {
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    ArchiveContext::open(archives.join(name)).expect("an archive of the repository")
}

fn registry(definitions: &str) -> Registry {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(Dialect::Fixed);
    let source = sources.add("<test>", definitions);
    registry.add_text(source, &sources, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    registry
}

fn select<'r>(registry: &'r Registry, names: &[&str]) -> Vec<&'r Registered> {
    names.iter().map(|name| registry.get(name).expect("a defined name")).collect()
}

/// The first value of each metric after a fetch, or its status.
fn fetch<S: FetchSource>(session: &mut Session<S>, space: &mut Space) -> Vec<Result<f64, Status>> {
    let sample = session.sample(space).expect("a further record");
    let value = |metric: &pmderive::engine::Metric| {
        let values = sample.values.get(metric.output.expect("a usable metric"));
        match values.status {
            Status::Values => match values.get(0) {
                Value::F64(value) => Ok(value),
                Value::I64(value) => Ok(value as f64),
                Value::U64(value) => Ok(value as f64),
                other => panic!("{other:?}"),
            },
            status => Err(status),
        }
    };
    sample.metrics.iter().map(value).collect()
}

/// Fetching {a, b}, then {a}, then {a, b}: b's difference spans the fetch in
/// which it was left out, and a's does not.
#[test]
fn previous_samples_outlive_a_change_of_the_selection() {
    let registry =
        registry("t.a = delta(s.c.u64)\nt.b = delta(s.c.u64 + 0 * s.c.u64)\nt.raw = s.c.u64\n");
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let mut diagnostics = Diagnostics::default();
    let mut space = Space::default();

    let raw = select(&registry, &["t.raw"]);
    let mut session =
        choosing(Arc::clone(&engine), archive("own-types"), &registry, &raw, &mut diagnostics)
            .expect("a readable archive");
    let raw: Vec<f64> =
        (0..3).map(|_| fetch(&mut session, &mut space)[0].expect("a value")).collect();

    let both = select(&registry, &["t.a", "t.b"]);
    let only_a = select(&registry, &["t.a"]);
    let mut session = choosing(engine, archive("own-types"), &registry, &both, &mut diagnostics)
        .expect("a readable archive");
    let first = Err(Status::Empty(Reason::FirstSample));
    assert_eq!(fetch(&mut session, &mut space), [first, first]);
    session.choose(&only_a, &mut diagnostics).expect("a readable archive");
    assert_eq!(fetch(&mut session, &mut space), [Ok(raw[1] - raw[0])]);
    session.choose(&both, &mut diagnostics).expect("a readable archive");
    assert_eq!(fetch(&mut session, &mut space), [Ok(raw[2] - raw[1]), Ok(raw[2] - raw[0])]);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
}

/// Q38: contexts fetch and evaluate on threads of their own, without a lock in common, sharing kernels that
/// become native while they run.
#[test]
fn contexts_work_in_parallel() {
    let registry =
        registry("t.sum = sum(a.i.u64) + 1\nt.rate = rate(a.c.f64)\nt.big = a.i.i64 > 5\n");
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Auto));
    let run = || {
        let selection = registry.all();
        let mut diagnostics = Diagnostics::default();
        let mut session = choosing(
            Arc::clone(&engine),
            archive("own-types"),
            &registry,
            &selection,
            &mut diagnostics,
        )
        .expect("a readable archive");
        let mut space = Space::default();
        let mut seen = Vec::new();
        while let Ok(sample) = session.sample(&mut space) {
            for (_, values) in sample.values.outputs() {
                seen.push(format!("{:?} {:?}", values.status, values.iter().collect::<Vec<_>>()));
            }
        }
        seen
    };
    let expected = run();
    assert_eq!(expected.len(), 3 * 10, "three metrics of ten records");
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        for thread in threads {
            assert_eq!(thread.join().expect("no panic"), expected);
        }
    });
}

/// Where pmcd's clock stands still nothing can be told per second, and what was
/// recorded of it is no infinity. libpcp divides by nothing.
#[test]
fn a_clock_that_stands_still() {
    let texts = ["rate(n.count)", "delta(n.count)", "rate(n.each) * 2", "n.count * 0"];
    for (dialect, backend) in [
        (Dialect::Fixed, Backend::Interp),
        (Dialect::Fixed, Backend::Jit),
        (Dialect::Pcp7_2, Backend::Interp),
    ] {
        let mut world = World::new();
        world.add(Metric::new("n.count", Script::counter(100.0)));
        let indom = world.add_domain(&["a", "b"]);
        world.add(Metric::new("n.each", Script::counter(10.0)).per(indom));
        // The fourth fetch is answered with the time of the third.
        let host = FakeHost::new(world).with_clock_set_back(3, Duration::from_secs(1));
        let pmcd = FakePmcd::start(host);
        let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
        let shared = Definitions::new(dialect);
        for (number, text) in texts.iter().enumerate() {
            shared.register(&format!("d.m{number}"), text).expect("a good definition");
        }
        let registry = shared.snapshot().registry;
        let mut diagnostics = Diagnostics::default();
        let mut session = choosing(
            Arc::new(Engine::new(dialect, backend)),
            source.expect("a connection"),
            &registry,
            &registry.all(),
            &mut diagnostics,
        )
        .expect("answers");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let mut space = Space::default();
        let fetches: Vec<_> = (0..6).map(|_| fetch(&mut session, &mut space)).collect();
        let none = |reason| Err(Status::Empty(reason));
        let (rate, difference) = (Ok(100.0), Ok(100.0));
        let twice = Ok(20.0);
        let usual = vec![rate, difference, twice, Ok(0.0)];
        let still = match dialect {
            Dialect::Fixed => [none(Reason::SameTime), difference, none(Reason::SameTime), Ok(0.0)],
            _ => [Ok(f64::INFINITY), difference, Ok(f64::INFINITY), Ok(0.0)],
        };
        assert_eq!(fetches[1..3], [usual.clone(), usual.clone()], "{dialect:?} {backend:?}");
        assert_eq!(fetches[3], still, "{dialect:?} {backend:?}");
        assert_eq!(fetches[4..], [usual.clone(), usual], "{dialect:?} {backend:?}");
    }
}

/// Values end where their instances do, whatever lies behind them in memory.
#[test]
fn positions_behind_the_last_value_panic() {
    let indom = InDom::new(400, 1);
    let mut metadata = MemoryMetadata::default();
    metadata.set_instances(indom, (0..9).map(|id| (id, id.to_string().into())).collect());
    metadata.add_metric(
        "m",
        MetricDesc {
            pmid: Pmid::new(400, 0, 0),
            value_type: ValueType::U32,
            indom: Some(indom),
            semantics: Semantics::Instant,
            units: Units::NONE,
        },
    );
    let feed = |list: &FetchList, _: &mut MemoryMetadata, batch: &mut ResultBatch| {
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
        for pmid in list.pmids() {
            writer.set(*pmid);
            (0..9).for_each(|id| writer.in_place(id, 7));
        }
        Ok(FetchEvents::default())
    };
    let registry = registry("t.all = m + 0\n");
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let source = MemorySource::new("nine", metadata, feed);
    let mut diagnostics = Diagnostics::default();
    let session = choosing(engine, source, &registry, &registry.all(), &mut diagnostics);
    let mut session = session.expect("memory does not fail");
    let mut space = Space::default();
    let sample = session.sample(&mut space).expect("memory does not fail");
    let values = sample.values.get(sample.metrics[0].output.expect("a usable metric"));
    assert_eq!((values.len(), values.get(8)), (9, Value::U32(7)));
    for at in 9..17 {
        assert!(catch_unwind(AssertUnwindSafe(|| values.get(at))).is_err(), "{at}");
    }
    for size in [0, 32, 36, 40, 64] {
        let mut lanes = vec![0; size];
        let copied = catch_unwind(AssertUnwindSafe(|| values.copy_numbers(&mut lanes)));
        assert_eq!(copied.is_ok(), size == 36, "{size}");
    }
}
