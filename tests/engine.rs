//! Contexts as an application uses them.

use std::path::Path;
use std::sync::Arc;

use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Context, Engine, Registered, Registry};
use pmderive::source::SourceMap;
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::eval::{Value, Workspace};
use pmderive_runtime::program::{Reason, Status};

fn archive(name: &str) -> ArchiveContext {
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    ArchiveContext::open(&archives.join(name)).expect("an archive of the repository")
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
fn fetch(
    context: &mut Context<ArchiveContext>,
    workspace: &mut Workspace,
) -> Vec<Result<f64, Status>> {
    let sample = context.fetch(workspace).expect("a further record");
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
    let mut workspace = Workspace::default();

    let raw = select(&registry, &["t.raw"]);
    let mut context =
        Context::new(Arc::clone(&engine), archive("own-types"), &registry, &raw, &mut diagnostics)
            .expect("a readable archive");
    let raw: Vec<f64> =
        (0..3).map(|_| fetch(&mut context, &mut workspace)[0].expect("a value")).collect();

    let both = select(&registry, &["t.a", "t.b"]);
    let only_a = select(&registry, &["t.a"]);
    let mut context =
        Context::new(engine, archive("own-types"), &registry, &both, &mut diagnostics)
            .expect("a readable archive");
    let first = Err(Status::Empty(Reason::FirstSample));
    assert_eq!(fetch(&mut context, &mut workspace), [first, first]);
    context.recompile(&registry, &only_a, &mut diagnostics).expect("a readable archive");
    assert_eq!(fetch(&mut context, &mut workspace), [Ok(raw[1] - raw[0])]);
    context.recompile(&registry, &both, &mut diagnostics).expect("a readable archive");
    assert_eq!(fetch(&mut context, &mut workspace), [Ok(raw[2] - raw[1]), Ok(raw[2] - raw[0])]);
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
        let mut context = Context::new(
            Arc::clone(&engine),
            archive("own-types"),
            &registry,
            &selection,
            &mut diagnostics,
        )
        .expect("a readable archive");
        let mut workspace = Workspace::default();
        let mut seen = Vec::new();
        while let Ok(sample) = context.fetch(&mut workspace) {
            for metric in 0..sample.values.len() {
                let values = sample.values.get(metric);
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

#[test]
fn engines_are_shared_and_contexts_move() {
    fn shared<T: Send + Sync>() {}
    fn moves<T: Send>() {}
    shared::<Engine>();
    moves::<Context<ArchiveContext>>();
    moves::<Workspace>();
}
