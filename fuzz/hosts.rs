//! Similar and different hosts that change while several clients use them:
//! instances come and go, metadata becomes that of another kind, connections
//! break, definitions are replaced.
//!
//! Each host exists once for each kind of client, with the same values. So
//! clients that share programs, layouts and plans with other hosts can be
//! compared with clients that share nothing, and blocking calls with futures.
//! Everything except the compiler runs on one thread, and no time passes except
//! the hosts' own.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use pmderive::runtime::context::{AsyncHostContext, ConnectOptions, HostContext};
use pmderive::runtime::eval::{Evaluation, Evaluator, Workspace};
use pmderive::runtime::model::{InDom, InstId, Pmid, Semantics, Units, ValueType};
use pmderive::runtime::pdu::PduType;
use pmderive::runtime::program::OutputId;
use pmderive::runtime::result::{FetchResult, ResultBatch};
use pmderive::runtime::source::{FetchEvents, FetchList, FetchSource, MetadataSource, SourceError};
use pmderive::runtime::transport::ready;
use pmderive_testkit::fake_pmcd::{Direct, FakeHost, Fault, Metric, Rule, Script, World};

use pmderive::diag::Diagnostics;
use pmderive::engine::{Compiled, Selection, Snapshot};
use pmderive::fuzz::parts::{Choices, DEFINITIONS, DIALECTS, NAMES, TYPES, compare, expression};
use pmderive::{Backend, Definitions, Dialect, Engine, Language, Registered, Session, Space};

/// Number of hosts.
const HOSTS: usize = 3;
const STEPS: usize = 14;

/// Number of kinds of metadata.
const KINDS: usize = 6;

/// Longer than any pause between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(3600);

/// The clients of each host.
const CLIENTS: [&str; 5] = ["blocking", "futures", "alone", "face", "face-alone"];

/// Makes definitions, hosts and events from the bytes. Clients that share with
/// similar hosts fetch and evaluate beside clients that do not.
///
/// # Panics
/// If the clients disagree.
pub fn fuzz_hosts(data: &[u8]) {
    run(data);
}

/// Counts of events, to show tests that something happened.
#[derive(Debug, Default)]
struct EventCounts {
    failures: usize,
    gaps: usize,
    values: usize,
    without: usize,
    /// Largest number of kinds of hosts with programs in use.
    classes: usize,
}

fn run(data: &[u8]) -> EventCounts {
    let mut seen = EventCounts::default();
    let mut choices = Choices::new(data);
    let dialect = choices.pick(&DIALECTS);
    let language = Language { dialect, extensions: choices.below(4) == 0 };
    let mut shared = Shared::new(language, &mut choices);
    let mut hosts: Vec<Host> = (0..HOSTS).map(|number| Host::new(number, &mut choices)).collect();
    let mut clients: Vec<Option<Clients>> = hosts.iter().map(|_| None).collect();
    for step in 0..STEPS {
        Direct::advance(PAUSE);
        let event = happen(&mut shared, &mut hosts, &mut clients, &mut choices);
        for (host, clients) in hosts.iter().zip(&mut clients) {
            let what = || format!("step {step} of host {}, {language:?}: {event}", host.number);
            let clients = clients.get_or_insert_with(|| Clients::open(&shared, host));
            clients.sample(&shared, &mut seen, &what);
        }
        seen.classes = seen.classes.max(shared.engine.classes());
    }
    seen
}

/// The state that clients of all hosts share.
struct Shared {
    engine: Arc<Engine>,
    registry: Arc<Definitions>,
    /// The requested definitions, as bits.
    wanted: usize,
    /// Number of changes of definitions and wishes.
    version: u64,
    now: Snapshot,
    selection: Arc<Selection>,
}

impl Shared {
    fn new(language: Language, choices: &mut Choices) -> Shared {
        let registry = Arc::new(Definitions::new(language));
        for index in 0..DEFINITIONS {
            define(&registry, index, choices);
        }
        let now = registry.snapshot();
        let selection = Arc::new(Selection::new(&now.registry, &now.registry.all()));
        let engine = Arc::new(Engine::new(language, Backend::Interp));
        Shared { engine, registry, wanted: usize::MAX, version: 0, now, selection }
    }

    /// Reads the current definitions.
    fn refresh(&mut self) {
        self.version += 1;
        self.now = self.registry.snapshot();
        self.selection = Arc::new(Selection::new(&self.now.registry, &self.chosen()));
    }

    fn chosen(&self) -> Vec<&Registered> {
        let all = self.now.registry.all().into_iter().enumerate();
        all.filter(|(at, _)| self.wanted >> at & 1 == 1).map(|(_, one)| one).collect()
    }

    fn language(&self) -> Language {
        self.engine.language()
    }
}

/// Replaces a definition, unless the new text has mistakes.
fn define(registry: &Definitions, index: usize, choices: &mut Choices) {
    let depth = 1 + choices.below(3);
    let text = expression(choices, depth, registry.language().extensions);
    let _ = registry.replace(&format!("d.d{index}"), &text);
}

/// A host, with one copy for each client.
struct Host {
    number: usize,
    copies: Vec<Arc<FakeHost>>,
}

impl Host {
    fn new(number: usize, choices: &mut Choices) -> Host {
        let kind = choices.below(KINDS);
        let copies = CLIENTS.map(|client| {
            let host = FakeHost::new(world(kind)).seeded(number as u64);
            let host = Arc::new(host);
            Direct::attach(&format!("{client}{number}"), &host);
            host
        });
        Host { number, copies: copies.into() }
    }

    fn each(&self, change: impl Fn(&FakeHost)) {
        self.copies.iter().for_each(|host| change(host));
    }

    fn connect(&self, client: usize) -> Result<AsyncHostContext<Direct>, SourceError> {
        let spec = format!("pcp://{}{}", CLIENTS[client], self.number);
        let spec = spec.parse().expect("a specification");
        ready(AsyncHostContext::open_over(&spec, ConnectOptions::default()))
    }
}

/// The metrics that definitions use, as hosts of a kind have them: with other
/// identifiers, types, semantics and domains, or missing.
fn world(kind: usize) -> World {
    let mut world = World::new();
    let own = kind as u32;
    let domain = InDom::new(7, if kind == 3 { 2 } else { 1 });
    let instances = [0, 1, 2, 3].map(|id| (id, NAMES[id as usize]));
    world.set_instances(domain, &instances);
    for (cluster, name) in [(0, "s"), (1, "m")] {
        for (item, value_type) in (0u32..).zip(TYPES) {
            let is_text = value_type == ValueType::String;
            let is_counter = item % 2 == 0 && !is_text;
            // Kinds 0 and 1 differ only in identifiers.
            let value_type = match (kind, item) {
                (2, 1) => ValueType::F32,
                (4, 3) => ValueType::U32,
                _ => value_type,
            };
            if kind == 5 && item == 2 && cluster == 1 {
                continue;
            }
            let script = match (is_text, is_counter) {
                (true, _) => Script::cycle(["0", "49", "x", "123"]),
                (_, true) => Script::counter(f64::from(3 + 5 * item)).varied(0.5),
                _ => Script::Random { low: 0.0, high: 60.0 }.varied(0.9),
            };
            let semantics = match (is_counter, kind, item) {
                (true, 4, 0) | (false, ..) => Semantics::Instant,
                _ => Semantics::Counter,
            };
            let metric = Metric::new(format!("{name}.{item}"), script)
                .of_type(value_type)
                .meaning(semantics)
                .in_units(match item {
                    1 => Units { dim_space: 1, scale_space: 1, ..Units::NONE },
                    4 => Units { dim_space: 1, scale_space: 2, ..Units::NONE },
                    _ => Units::NONE,
                })
                .numbered(Pmid::new(7, cluster + 2 * own, item));
            world.add(if cluster == 1 { metric.per(domain) } else { metric });
        }
    }
    world
}

/// Makes a random event happen and returns its description.
fn happen(
    shared: &mut Shared,
    hosts: &mut [Host],
    clients: &mut [Option<Clients>],
    choices: &mut Choices,
) -> &'static str {
    let at = choices.below(hosts.len());
    let host = &hosts[at];
    match choices.below(16) {
        0..4 => {
            let mut list: Vec<(InstId, &str)> = Vec::new();
            for id in 0..6 {
                if choices.below(3) > 0 {
                    list.push((id, choices.pick(&NAMES)));
                }
            }
            let indom = InDom::new(7, 1 + choices.below(2) as u32);
            host.each(|host| host.change(|world| world.set_instances(indom, &list)));
            "other instances"
        }
        4 | 5 => {
            let (kind, restarts) = (choices.below(KINDS), choices.below(2) == 0);
            host.each(|host| match restarts {
                true => host.restart(|old| *old = world(kind)),
                false => host.change_names(|old| *old = world(kind)),
            });
            "another kind of host"
        }
        6 => {
            host.each(FakeHost::drop_connections);
            "connections lost"
        }
        7 => {
            host.each(|host| host.restart(|_| {}));
            "pmcd started again"
        }
        8 => {
            let fault = Fault::Close { after: 20 + choices.below(200) };
            let rule = || Rule::new(fault.clone()).on(PduType::HighresFetch);
            host.each(|host| host.inject(rule()));
            "a reply that breaks off"
        }
        9 => {
            clients[at] = None;
            "clients that are new"
        }
        10 | 11 => {
            define(&shared.registry, choices.below(DEFINITIONS), choices);
            shared.refresh();
            "another definition"
        }
        12 => {
            shared.wanted = choices.below(1 << DEFINITIONS);
            shared.refresh();
            "other metrics are wanted"
        }
        13 => {
            shared.wanted = usize::MAX;
            shared.refresh();
            "all metrics are wanted"
        }
        _ => "nothing",
    }
}

/// The clients of a host.
struct Clients {
    blocking: Due<Session<HostContext<Direct>>>,
    futures: Due<Futures>,
    alone: Due<Alone>,
    face: Session<HostContext<Direct>>,
    face_alone: Session<HostContext<Direct>>,
    /// The list for both faces, with the version of the definitions.
    list: (u64, FetchList),
    spaces: (Workspace, Space, Workspace),
}

/// A client, and the version of its definitions; `None` after a failure.
struct Due<C> {
    client: C,
    version: Option<u64>,
}

/// A host whose calls are futures.
struct Futures {
    host: AsyncHostContext<Direct>,
    evaluator: Evaluator,
    compiled: Option<Arc<Compiled>>,
    epoch: u64,
    /// Events of replies that were not used.
    before: FetchEvents,
}

/// A host with an engine of its own, and an evaluator without kernels and
/// layouts.
struct Alone {
    host: HostContext<Direct>,
    engine: Engine,
    evaluator: Evaluator,
    compiled: Option<Arc<Compiled>>,
    epoch: u64,
    /// Events of replies that were not used.
    before: FetchEvents,
}

impl Clients {
    fn open(shared: &Shared, host: &Host) -> Clients {
        let connect = |client: usize| host.connect(client).expect("the host is there");
        let evaluator = || Evaluator::new(Arc::default(), Arc::default());
        let before = FetchEvents::default();
        let futures =
            Futures { host: connect(1), evaluator: evaluator(), compiled: None, epoch: 0, before };
        let alone = Alone {
            host: connect(2).into(),
            engine: Engine::new(shared.language(), Backend::Interp),
            evaluator: evaluator(),
            compiled: None,
            epoch: 0,
            before,
        };
        let face = |engine: Arc<Engine>, client: usize| {
            Session::new(engine, Arc::clone(&shared.registry), connect(client).into())
                .expect("one language")
        };
        let own = Arc::new(Engine::new(shared.language(), Backend::Interp));
        Clients {
            blocking: Due { client: face(Arc::clone(&shared.engine), 0), version: None },
            futures: Due { client: futures, version: None },
            alone: Due { client: alone, version: None },
            face: face(Arc::clone(&shared.engine), 3),
            face_alone: face(own, 4),
            list: (shared.version, list(shared)),
            spaces: Default::default(),
        }
    }

    /// Makes all clients fetch and evaluate.
    ///
    /// # Panics
    /// If they disagree.
    fn sample(&mut self, shared: &Shared, seen: &mut EventCounts, what: &dyn Fn() -> String) {
        let Clients { blocking, futures, alone, spaces, .. } = self;
        let (first, second, third) = spaces;
        let expected = alone.sample(shared, first);
        let got = blocking.sample(shared, second);
        let awaited = block_on(futures.sample(shared, third));
        match (&expected, &got, &awaited) {
            (Ok(expected), Ok(got), Ok(awaited)) => {
                for (one, how) in [(got, "blocking"), (awaited, "futures")] {
                    let what = |output: OutputId| format!("{}, output {}, {how}", what(), output.0);
                    assert_eq!(one.1, expected.1, "{}", what(OutputId(0)));
                    assert_eq!(one.0.timestamp(), expected.0.timestamp(), "{}", what(OutputId(0)));
                    compare(&one.0, &expected.0, what);
                }
                seen.gaps += usize::from(got.1.gap);
                for (output, values) in got.0.outputs() {
                    let values = values.len();
                    seen.values += values;
                    seen.without += usize::from(values == 0);
                    let statuses = [&got.0, &awaited.0].map(|one| one.get(output).status);
                    assert_eq!(statuses[0], statuses[1], "{}, output {}", what(), output.0);
                }
            }
            (Err(_), Err(_), Err(_)) => seen.failures += 1,
            (expected, got, awaited) => {
                let failures =
                    [expected, got, awaited].map(|one| one.as_ref().err().map(|e| e.to_string()));
                panic!("{}: {failures:?}", what());
            }
        }
        if self.list.0 != shared.version {
            self.list = (shared.version, list(shared));
        }
        let (mut one, mut other) = (ResultBatch::default(), ResultBatch::default());
        let fetched = self.face.fetch(&self.list.1, &mut one);
        let alone = self.face_alone.fetch(&self.list.1, &mut other);
        match (fetched, alone) {
            (Ok(events), Ok(expected)) => {
                assert_eq!(events, expected, "{}, faces", what());
                let result = |batch| FetchResult::of_batch(batch, Default::default());
                assert_eq!(result(&one), result(&other), "{}, faces", what());
            }
            (Err(_), Err(_)) => {}
            (one, other) => {
                let failures = [one, other].map(|one| one.err().map(|e| e.to_string()));
                panic!("{}, faces: {failures:?}", what());
            }
        }
    }
}

/// The requested metrics, and two of the host's own.
fn list(shared: &Shared) -> FetchList {
    let mut pmids: Vec<Pmid> = shared.chosen().iter().filter_map(|one| one.pmid).collect();
    pmids.extend([Pmid::new(7, 0, 1), Pmid::new(7, 3, 2)]);
    FetchList::new(pmids, Vec::new())
}

type Sampled<'w> = Result<(Evaluation<'w>, FetchEvents), SourceError>;

impl Due<Session<HostContext<Direct>>> {
    fn sample<'w>(&'w mut self, shared: &Shared, space: &'w mut Space) -> Sampled<'w> {
        if self.version != Some(shared.version) || self.client.is_stale() {
            self.version = None;
            self.client.choose(&shared.chosen(), &mut Diagnostics::default())?;
            self.version = Some(shared.version);
        }
        self.client.poison(space);
        let sample = self.client.sample(space)?;
        Ok((sample.values, sample.events))
    }
}

impl Due<Futures> {
    async fn bind(&mut self, shared: &Shared) -> Result<(), SourceError> {
        let Futures { host, evaluator, compiled, epoch, .. } = &mut self.client;
        if self.version != Some(shared.version) || is_stale(shared, host.metadata_epoch(), *epoch) {
            self.version = None;
            let bound = shared.engine.bind_host(&shared.selection, host).await?;
            bound.put_into(evaluator);
            *compiled = Some(bound);
            (self.version, *epoch) = (Some(shared.version), host.metadata_epoch());
        }
        Ok(())
    }

    async fn sample<'w>(&'w mut self, shared: &Shared, space: &'w mut Workspace) -> Sampled<'w> {
        self.bind(shared).await?;
        space.buffers.poison();
        self.client.evaluator.poison();
        let mut turn = 0;
        let events = loop {
            let Futures { host, evaluator, epoch, .. } = &mut self.client;
            let fetched = host.fetch(evaluator.requests(), &mut space.batch).await;
            let events = fetched.inspect_err(|error| forget(epoch, error))?;
            let before = self.client.compiled.clone();
            if turn < 2 && events.changes.concerns_metadata() {
                turn += 1;
                self.client.before = self.client.before.with(events);
                self.bind(shared).await?;
                if !is_same(&before, &self.client.compiled) {
                    continue;
                }
            }
            break std::mem::take(&mut self.client.before).with(events);
        };
        let Futures { host, evaluator, epoch, .. } = &mut self.client;
        let sampled =
            host.evaluate_fetched(events, evaluator, &space.batch, &mut space.buffers).await;
        Ok((sampled.inspect_err(|error| forget(epoch, error))?, events))
    }
}

impl Due<Alone> {
    fn bind(&mut self, shared: &Shared) -> Result<(), SourceError> {
        let Alone { host, engine, evaluator, compiled, epoch, .. } = &mut self.client;
        if self.version != Some(shared.version) || is_stale(shared, host.metadata_epoch(), *epoch) {
            self.version = None;
            let bound = engine.bind(&shared.selection, host)?;
            bound.put_into(evaluator);
            evaluator.use_general_path();
            *compiled = Some(bound);
            (self.version, *epoch) = (Some(shared.version), host.metadata_epoch());
        }
        Ok(())
    }

    fn sample<'w>(&'w mut self, shared: &Shared, space: &'w mut Workspace) -> Sampled<'w> {
        self.bind(shared)?;
        let mut turn = 0;
        let events = loop {
            let Alone { host, evaluator, epoch, .. } = &mut self.client;
            space.batch.clear();
            let fetched = host.fetch(evaluator.requests(), &mut space.batch);
            let events = fetched.inspect_err(|error| forget(epoch, error))?;
            let before = self.client.compiled.clone();
            if turn < 2 && events.changes.concerns_metadata() {
                turn += 1;
                self.client.before = self.client.before.with(events);
                self.bind(shared)?;
                if !is_same(&before, &self.client.compiled) {
                    continue;
                }
            }
            break std::mem::take(&mut self.client.before).with(events);
        };
        let Alone { host, evaluator, epoch, .. } = &mut self.client;
        let sampled = evaluator.evaluate_fetched(events, host, space);
        Ok((sampled.inspect_err(|error| forget(epoch, error))?, events))
    }
}

/// True for the same program: a reply that announces changes is for it all the same.
fn is_same(before: &Option<Arc<Compiled>>, now: &Option<Arc<Compiled>>) -> bool {
    before.as_ref().zip(now.as_ref()).is_some_and(|(before, now)| Arc::ptr_eq(before, now))
}

/// An epoch that no host's metadata have.
const NO_EPOCH: u64 = u64::MAX;

/// After a failure, the host may be another one.
fn forget(epoch: &mut u64, error: &SourceError) {
    if error.is_transient() {
        *epoch = NO_EPOCH;
    }
}

/// The compatible dialects bind only once.
fn is_stale(shared: &Shared, epoch: u64, bound: u64) -> bool {
    shared.language().dialect == Dialect::Fixed && epoch != bound
}

/// Runs a future that waits for nothing but the compiler.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = TaskContext::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough inputs to see every kind of event.
    #[test]
    fn what_is_shared_is_as_good_as_what_is_not() {
        let mut all = EventCounts::default();
        let mut state = 1u64;
        for _ in 0..200 {
            let data: Vec<u8> = (0..300)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    state.to_be_bytes()[0]
                })
                .collect();
            let seen = run(&data);
            all.failures += seen.failures;
            all.gaps += seen.gaps;
            all.values += seen.values;
            all.without += seen.without;
            all.classes = all.classes.max(seen.classes);
        }
        let EventCounts { failures, gaps, values, without, classes } = all;
        let least = [failures / 20, gaps / 100, values / 10_000, without / 1000, classes / 3];
        assert!(least.iter().all(|count| *count > 0), "{all:?}");
    }
}
