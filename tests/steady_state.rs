//! What a monitor that runs for months relies on: evaluating allocates nothing
//! while the instances stay the same, and code goes with its last user.

#[path = "../benches/synth/mod.rs"]
mod synth;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Definitions, Engine, Registry, Selection, Session};
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions, HostContext};
use pmderive_runtime::eval::Workspace;
use pmderive_runtime::fetch_group::{FetchGroup, ItemSpec};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    LabelLevel, MetricDesc, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{ResultBatch, ResultWriter};
use pmderive_runtime::source::{
    FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};
use pmderive_testkit::counting;
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};

use counting::{allocations, held_bytes};
use synth::{Rig, Synth, definitions, register};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Taken by tests that make code, so that one can look at all of it.
fn code() -> MutexGuard<'static, ()> {
    static CODE: Mutex<()> = Mutex::new(());
    CODE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn steady_evaluation_allocates_nothing() {
    let _code = code();
    for backend in [Backend::Interp, Backend::Jit] {
        let text = definitions("mix", 80, 10);
        let mut session = Rig::new(&text, Synth::new(10, 25), backend);
        let got = session.evaluator.program().kernels.iter().any(|k| k.native().is_some());
        assert_eq!(got, backend == Backend::Jit && cfg!(feature = "jit"));
        let made = allocations(|| {
            session.fetch(100);
        });
        assert_eq!(made, 0, "{backend:?}");
    }
}

/// What kernels do not compute alone allocates nothing either, once windows
/// are full; and the other metrics beside it stay what they were.
#[test]
fn steady_extensions_allocate_nothing() {
    let _code = code();
    let text = "\
        t.top = topk(5, rate(synth.c64.m0))\n\
        t.top_of_top = delta(topk(5, synth.g64.m1)) * synth.g64.m2\n\
        t.quantile = quantile(0.9, delta(synth.c64.m1)) / stdev(synth.gd.m1)\n\
        t.avg = avg_over(synth.gd.m0 + 1, \"5 sec\") / ewma(synth.gd.m0, \"5 sec\")\n\
        t.change = delta(max_over(rate(synth.c64.m2), \"9 sec\"))\n\
        t.math = clamp(log(synth.gd.m3), 0, 5) + pow(abs(synth.gd.m2), 0.5)\n\
        t.text = synth.text.m0 == synth.text.m1 && matchvalue(/x[0-4]*$/, synth.text.m0)\n\
        t.is = synth.text.m0 == \"text 3\"\n";
    for backend in [Backend::Interp, Backend::Jit] {
        let mut session = Rig::new(text, Synth::new(4, 40), backend);
        session.fetch(100);
        let made = allocations(|| {
            session.fetch(100);
        });
        assert_eq!(made, 0, "{backend:?}");
    }
}

/// The same where derived metrics are fetched as any others are, into a result
/// that the caller keeps.
#[test]
fn steady_fetches_of_any_mix_allocate_nothing() {
    let _code = code();
    let shared =
        Arc::new(Definitions::with(register(&definitions("mix", 80, 10)), SourceMap::default()));
    let engine = Arc::new(Engine::new(shared.language(), Backend::Jit));
    let mut context =
        Session::new(engine, Arc::clone(&shared), Synth::new(10, 25)).expect("one language");
    let snapshot = shared.snapshot();
    let names: Vec<&str> =
        snapshot.registry.names().chain(["synth.gd.m3", "synth.c64.m1"]).collect();
    let pmids = context.lookup_names(&names).expect("memory does not fail");
    let list = FetchList::new(pmids.into_iter().flatten().collect(), Vec::new());
    assert_eq!(list.pmids().len(), 82);
    let mut batch = ResultBatch::default();
    let mut fetch = || {
        context.fetch(&list, &mut batch).expect("memory does not fail");
        let valued = batch.parts()[0].sets().filter(|set| set.count.is_ok_and(|count| count > 0));
        valued.count()
    };
    // The form of a result is learnt where it comes again.
    let counts: Vec<usize> = (0..4).map(|_| fetch()).collect();
    assert_eq!(counts[1..], [82; 3]);
    let made = allocations(|| assert_eq!((0..100).map(|_| fetch()).min(), Some(82)));
    assert_eq!(made, 0);
}

/// Metrics that are delivered in turn, as by the records of an archive: the layout of a
/// turn is not made anew, which would take 35 allocations for each fetch.
#[test]
fn turns_of_metrics_are_laid_out_once() {
    struct Turns(i64);
    impl Feed for Turns {
        fn fetch(
            &mut self,
            list: &FetchList,
            _: &mut MemoryMetadata,
            batch: &mut ResultBatch,
        ) -> Result<FetchEvents, SourceError> {
            self.0 += 1;
            let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(self.0, 0));
            for pmid in list.pmids() {
                writer.set(*pmid);
                if (i64::from(pmid.item()) + self.0) % 5 == 0 {
                    writer.in_place(-1, self.0 as u32);
                }
            }
            Ok(FetchEvents::default())
        }
    }
    let mut metadata = MemoryMetadata::default();
    for item in 0..50 {
        let (pmid, value_type) = (Pmid::new(7, 0, item), ValueType::U32);
        let (semantics, units) = (Semantics::Instant, Units::NONE);
        let desc = MetricDesc { pmid, value_type, indom: None, semantics, units };
        metadata.add_metric(format!("m.n{item}"), desc);
    }
    let mut texts: Vec<String> = (0..50).map(|item| format!("m.n{item}")).collect();
    texts.extend((0..50).map(|item| format!("m.n{item} + 1")));
    let _code = code();
    let mut registry = Registry::new(Dialect::Fixed);
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    for (at, text) in texts.iter().enumerate() {
        let text = sources.add("<test>", text.as_str());
        registry.register(&format!("d.n{at}"), text, &sources, &mut diagnostics).expect("good");
    }
    let engine = Engine::new(Dialect::Fixed, Backend::Interp);
    let mut source = MemorySource::new("memory", metadata, Turns(0));
    let compiled = engine.compile(&registry, &registry.all(), &mut source, &mut diagnostics);
    let mut evaluator = compiled.expect("memory does not fail").evaluator();
    let mut workspace = Workspace::default();
    let mut fetch = || {
        let (values, _) = evaluator.fetch(&mut source, &mut workspace).expect("memory");
        assert_eq!(values.outputs().filter(|(_, values)| !values.is_empty()).count(), 20);
    };
    (0..20).for_each(|_| fetch());
    let made = allocations(|| (0..100).for_each(|_| fetch()));
    assert!(made <= 200, "{made}");
}

/// The same for a group, whose values are converted.
#[test]
fn steady_fetch_groups_allocate_nothing() {
    let _code = code();
    let shared = Definitions::with(register(&definitions("mix", 8, 10)), SourceMap::default());
    let shared = Arc::new(shared);
    let engine = Arc::new(Engine::new(shared.language(), Backend::Jit));
    let context =
        Session::new(engine, Arc::clone(&shared), Synth::new(10, 25)).expect("one language");
    let mut group = FetchGroup::new(context);
    let snapshot = shared.snapshot();
    let names = snapshot.registry.names().chain(["synth.gd.m3", "synth.c64.m1", "synth.c64.m2"]);
    let handles: Vec<_> =
        names.map(|name| group.indom::<f64>(ItemSpec::of(name)).expect("a metric")).collect();
    let mut fetch = || {
        group.fetch().expect("memory does not fail");
        let rows = handles.iter().flat_map(|handle| group.instances(*handle).iter());
        rows.filter(|row| row.value.is_ok() && row.name.is_none_or(|name| name != "?")).count()
    };
    // Two results take turns.
    let counts: Vec<usize> = (0..4).map(|_| fetch()).collect();
    assert!(counts[3] >= 25 * 3, "{counts:?}");
    let made = allocations(|| assert_eq!((0..100).map(|_| fetch()).min(), Some(counts[3])));
    assert_eq!(made, 0);
}

/// The same over a connection to a pmcd, which here has a thread of its own.
#[test]
fn steady_fetches_from_a_host_allocate_nothing() {
    let mut world = World::new();
    let disks = world.add_domain(&["sda", "sdb", "sdc"]);
    world.add(Metric::new("n.reads", Script::counter(100.0)).per(disks));
    world.add(Metric::new("n.size", Script::constant(4u32)));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let shared = Arc::new(Definitions::new(Dialect::Fixed));
    shared.register("d.rate", "rate(n.reads) * n.size").expect("a good definition");
    shared.register("d.one", "rate(n.reads[sdb])").expect("a good definition");
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
    let mut context =
        Session::new(engine, shared, source.expect("a connection")).expect("one language");
    let pmids = context.lookup_names(&["d.rate", "n.reads", "d.one"]).expect("answers");
    let list = FetchList::new(pmids.into_iter().flatten().collect(), Vec::new());
    let mut batch = ResultBatch::default();
    let mut fetch = || {
        context.fetch(&list, &mut batch).expect("values");
        batch.parts()[0].sets().map(|set| set.count.unwrap_or(0)).sum::<usize>()
    };
    for _ in 0..5 {
        fetch();
    }
    let made = allocations(|| assert_eq!((0..100).map(|_| fetch()).min(), Some(7)));
    assert_eq!(made, 0);
}

/// The same where the host's calls are futures, and filters want to know the
/// instances each time.
#[test]
fn steady_futures_of_a_host_allocate_nothing() {
    let mut world = World::new();
    let disks = world.add_domain(&["sda", "sdb", "nvme0"]);
    let links = world.add_domain(&["eth0", "eth1"]);
    world.add(Metric::new("n.reads", Script::counter(100.0)).per(disks));
    world.add(Metric::new("n.load", Script::constant(4u32)).per(links));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let registry = register(
        "d.one = rate(n.reads[sdb])\n\
         d.some = delta(matchinst(/^sd/, n.reads))\n\
         d.spread = mkconst(2, meta=n.load)\n",
    );
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (mut host, mut evaluator) = runtime.block_on(async {
        let host = AsyncHostContext::open_with(&pmcd.spec(), ConnectOptions::default()).await;
        let mut host: AsyncHostContext = host.expect("a connection");
        let mut diagnostics = Diagnostics::default();
        let chosen = registry.all();
        let compiled = engine.compile_host(&registry, &chosen, &mut host, &mut diagnostics);
        let compiled = compiled.await.expect("answers");
        assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
        let binding = &compiled.binding;
        assert_eq!((binding.named_domains.len(), binding.fetched_domains.len()), (1, 1));
        (host, compiled.evaluator())
    });
    let mut workspace = Workspace::default();
    let mut fetch = async |times: usize| {
        let mut least = usize::MAX;
        for _ in 0..times {
            let fetched = host.evaluate(&mut evaluator, &mut workspace).await;
            let (values, _) = fetched.expect("values");
            least = least.min(values.outputs().map(|(_, values)| values.len()).sum());
        }
        least
    };
    runtime.block_on(fetch(5));
    // The runtime would put a large future on the heap.
    let fetches = std::pin::pin!(fetch(100));
    let made = allocations(|| assert_eq!(runtime.block_on(fetches), 5));
    assert_eq!(made, 0);
}

/// What hosts know alike they have once, and a connection at rest has no
/// buffers.
#[test]
fn a_further_like_host_takes_little_memory() {
    const METRICS: u32 = 300;
    const EACH: isize = 6 << 10;
    let mut world = World::new();
    let disks: Vec<String> = (0..100).map(|disk| format!("disk number {disk}")).collect();
    let disks = world.add_domain(&disks.iter().map(String::as_str).collect::<Vec<_>>());
    let names: Vec<String> = (0..METRICS).map(|number| format!("n.metric{number}")).collect();
    for name in &names {
        world.add(Metric::new(name.as_str(), Script::constant(1u32)).per(disks));
    }
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let missing: Vec<String> = (0..METRICS).map(|number| format!("n.missing{number}")).collect();
    let asked: Vec<&str> = names.iter().chain(&missing).map(String::as_str).collect();
    let open = |_| {
        let host = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
        let mut host = host.expect("a connection");
        let found = host.lookup_names(&asked).expect("answers");
        let pmids: Vec<Pmid> = found.into_iter().filter_map(Result::ok).collect();
        assert_eq!(pmids.len(), names.len());
        assert!(host.lookup_descs(&pmids).expect("answers").iter().all(Result::is_ok));
        assert!(host.names_of_each(&pmids).expect("answers").iter().all(Result::is_ok));
        let levels: Vec<LabelLevel> = pmids.iter().map(|pmid| LabelLevel::Item(*pmid)).collect();
        assert!(host.labels_of_each(&levels).expect("answers").iter().all(Result::is_ok));
        assert!(host.instance_domain(disks, Freshness::Cached).expect("an answer").is_ok());
        host.fetch_values(&pmids[..1]).expect("values");
        host
    };
    let first: Vec<HostContext> = (0..2).map(open).collect();
    let before = held_bytes();
    let further: Vec<HostContext> = (0..10).map(open).collect();
    let each = (held_bytes() - before) / 10;
    assert!(each < EACH, "{each} bytes");
    drop((first, further));
}

/// A host has its connection and its previous samples, and nothing for each of
/// the definitions, however many there are.
#[test]
fn what_a_further_host_takes_does_not_grow_with_definitions() {
    const METRICS: usize = 20;
    const INSTANCES: usize = 10;
    const HOSTS: isize = 10;
    const REST: isize = 4 << 10;
    let mut world = World::new();
    let disks: Vec<String> = (0..INSTANCES).map(|disk| format!("disk{disk}")).collect();
    let disks = world.add_domain(&disks.iter().map(String::as_str).collect::<Vec<_>>());
    for number in 0..METRICS {
        world.add(Metric::new(format!("n.c{number}"), Script::counter(100.0)).per(disks));
    }
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let [few, many] = [METRICS, 50 * METRICS].map(|count| {
        let line = |number| format!("d.m{number} = {number} * rate(n.c{})\n", number % METRICS);
        let registry = register(&(0..count).map(line).collect::<String>());
        let selection = Arc::new(Selection::new(&registry, &registry.all()));
        let engine = Engine::new(Dialect::Fixed, Backend::Interp);
        let mut workspace = Workspace::default();
        let mut open = |_| {
            let host = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
            let mut host = host.expect("a connection");
            let compiled = engine.bind(&selection, &mut host).expect("answers");
            let mut evaluator = compiled.evaluator();
            for _ in 0..3 {
                evaluator.fetch(&mut host, &mut workspace).expect("values");
            }
            let fetched = evaluator.fetch(&mut host, &mut workspace);
            let (values, _) = fetched.expect("values");
            let (_, last) = values.outputs().last().expect("there are metrics");
            assert_eq!((values.len(), last.len()), (count, INSTANCES));
            (host, evaluator)
        };
        let first: Vec<_> = (0..2).map(&mut open).collect();
        let before = held_bytes();
        let further: Vec<_> = (0..HOSTS).map(open).collect();
        let each = (held_bytes() - before) / HOSTS;
        drop((first, further));
        each
    });
    assert!(many < few + 512, "{few} bytes with few definitions, {many} with many");
    let samples = (METRICS * INSTANCES * size_of::<u64>()).cast_signed();
    assert!(many < samples + REST, "{many} bytes, {samples} of which are samples");
}

#[cfg(all(feature = "jit", target_os = "linux"))]
mod native_code {
    use pmderive::dialect::Dialect;
    use pmderive::engine::{Backend, Engine};
    use pmderive_runtime::eval::{Evaluator, Workspace};
    use pmderive_runtime::program::OutputId;

    use super::code;
    use super::counting::held_bytes;
    use super::synth::{Synth, compile_in, register};

    /// Bytes of executable memory of this process that no file stands for.
    fn executable_bytes() -> u64 {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells what is mapped");
        let bytes = |line: &str| {
            let mut words = line.split_whitespace();
            let (range, mode) = (words.next()?, words.next()?);
            let anonymous = words.nth(3).is_none();
            let (begin, end) = range.split_once('-')?;
            let size = u64::from_str_radix(end, 16).ok()? - u64::from_str_radix(begin, 16).ok()?;
            (mode.contains('x') && anonymous).then_some(size)
        };
        maps.lines().filter_map(bytes).sum()
    }

    #[test]
    fn code_goes_with_its_last_user() {
        let _code = code();
        let engine = Engine::new(Dialect::Fixed, Backend::Jit);
        // Shapes that differ in length; the constants would not make them differ.
        let round = |shapes: usize| {
            let contexts: Vec<_> = (1..=shapes)
                .map(|terms| {
                    let sum = vec!["synth.gd.m0"; terms].join(" + ");
                    let registry = register(&format!("shape.m{terms} = {sum} * 2\n"));
                    compile_in(&engine, &registry, &mut Synth::new(1, 1))
                })
                .collect();
            let native = |kernel: &std::sync::Arc<_>| std::sync::Arc::downgrade(kernel);
            let kernels: Vec<_> =
                contexts.iter().flat_map(|one| one.program.kernels.iter().map(native)).collect();
            let used = executable_bytes();
            drop(contexts);
            assert!(kernels.iter().all(|kernel| kernel.upgrade().is_none()));
            (used, executable_bytes())
        };
        round(1);
        let before = executable_bytes();
        let (used, after) = round(200);
        assert!(used > before, "200 kernels take memory for code");
        assert_eq!(after, before);
    }

    /// A process whose definitions are read again and again holds no more after a
    /// thousand times than before, neither memory nor code.
    #[test]
    fn a_thousand_reloads_leave_nothing() {
        /// Reloads after which the same definitions come again.
        const TURN: usize = 40;
        let _code = code();
        let engine = Engine::new(Dialect::Fixed, Backend::Jit);
        let (mut source, mut workspace) = (Synth::new(2, 10), Workspace::default());
        let mut evaluator: Option<Evaluator> = None;
        let mut reload = |number: usize| {
            let terms = vec!["synth.gd.m0"; 1 + number % TURN].join(" + ");
            let registry = register(&format!(
                "changed.m{number} = {terms} * 2\nkept.m = rate(synth.c64.m0)\n"
            ));
            let compiled = compile_in(&engine, &registry, &mut source);
            match &mut evaluator {
                Some(evaluator) => compiled.put_into(evaluator),
                None => evaluator = Some(compiled.evaluator()),
            }
            let evaluator = evaluator.as_mut().expect("it was just made");
            for _ in 0..3 {
                let (values, _) =
                    evaluator.fetch(&mut source, &mut workspace).expect("memory does not fail");
                assert_eq!(values.get(OutputId(0)).len(), 10);
            }
            (held_bytes(), executable_bytes())
        };
        // Tables grow and shrink; what counts is the most that was held.
        let mut most = |reloads: std::ops::Range<usize>| {
            let held = reloads.map(&mut reload);
            held.fold((0, 0), |most, held| (held.0.max(most.0), held.1.max(most.1)))
        };
        let (early, late) = (most(0..10 * TURN), most(10 * TURN..25 * TURN));
        assert_eq!(late.1, early.1, "code");
        assert!(late.0 < early.0 + 4096, "{early:?} bytes, then {late:?}");
    }
}
