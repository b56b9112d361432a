//! Derived metrics of a host whose pmcd goes away, comes back with other metadata, or announces
//! changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Definitions, Engine, Session, Space};
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions, HostContext};
use pmderive_runtime::memory::{MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstanceProfile, MetricDesc, PmStatus, Pmid, Semantics, StateChange, Timestamp, Units,
    Value, ValueType,
};
use pmderive_runtime::pdu::PduType;
use pmderive_runtime::program::{OutputId, Reason, Status};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{
    Answer, Fact, FetchEvents, FetchList, FetchSource, MetadataSource, Question, SourceError,
};
use pmderive_runtime::transport::{Socket, ready};
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};

use crate::choosing::choosing;

const BYTES: Units = Units { dim_space: 1, ..Units::NONE };

const DEFINITIONS: [(&str, &str); 5] = [
    ("d.rate", "rate(n.count)"),
    ("d.steady", "rate(n.steady)"),
    ("d.twice", "n.size * 2"),
    ("d.lacks", "n.new + 1"),
    ("d.has", "defined(n.new) ? 2 : 1"),
];

fn world() -> World {
    let mut world = World::new();
    world.add(Metric::new("n.count", Script::counter(100.0)));
    world.add(Metric::new("n.steady", Script::counter(10.0)));
    world.add(Metric::new("n.size", Script::constant(4u32)));
    world
}

/// The same names, but another counter, another type, and a metric more.
fn change(world: &mut World) {
    world.remove("n.count");
    world.add(Metric::new("n.count", Script::counter(7.0)).numbered(Pmid::new(400, 9, 9)));
    world.add(Metric::new("n.size", Script::constant(0.5f64)).in_units(BYTES));
    world.add(Metric::new("n.new", Script::constant(41u32)));
}

struct Client {
    pmcd: FakePmcd,
    session: Session<HostContext>,
    pmids: Vec<Pmid>,
}

impl Client {
    fn new(dialect: Dialect) -> Client {
        let pmcd = FakePmcd::start(FakeHost::new(world()));
        let shared = Arc::new(Definitions::new(dialect));
        for (name, text) in DEFINITIONS {
            shared.register(name, text).expect("a good definition");
        }
        let engine = Arc::new(Engine::new(dialect, Backend::Interp));
        let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
        let mut session =
            Session::new(engine, shared, source.expect("a connection")).expect("one language");
        let names = DEFINITIONS.map(|(name, _)| name);
        let pmids = session.lookup_names(&names).expect("answers");
        let pmids = pmids.into_iter().map(|pmid| pmid.expect("registered")).collect();
        Client { pmcd, session, pmids }
    }

    fn descs(&mut self) -> Vec<Result<MetricDesc, PmStatus>> {
        self.session.lookup_descs(&self.pmids).expect("answers")
    }

    /// The values of the metrics as numbers, and what was said to have changed.
    fn fetch(&mut self) -> (Vec<Option<f64>>, StateChange) {
        let result = self.session.fetch_values(&self.pmids).expect("values");
        let descs = self.descs();
        let number = |(set, desc): (&_, &Result<MetricDesc, PmStatus>)| {
            let set: &pmderive_runtime::result::MetricValues = set;
            match set.decode(desc.ok()?.value_type).ok()?.pop()?.1 {
                Value::F64(number) => Some(number),
                Value::U32(number) => Some(number.into()),
                other => panic!("{other:?}"),
            }
        };
        (result.sets.iter().zip(&descs).map(number).collect(), result.changes)
    }

    fn values(&mut self) -> Vec<Option<f64>> {
        let (values, changes) = self.fetch();
        assert!(changes.is_none());
        values
    }

    fn lose(&mut self) {
        assert!(self.session.fetch_values(&self.pmids).is_err(), "the connection broke");
    }
}

const FIRST: [Option<f64>; 5] = [None, None, Some(8.0), None, Some(1.0)];
const USUAL: [Option<f64>; 5] = [Some(100.0), Some(10.0), Some(8.0), None, Some(1.0)];

/// No difference spans the time without a connection; else all is as before.
#[test]
fn a_pmcd_that_comes_back_as_it_was() {
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2] {
        let mut client = Client::new(dialect);
        assert_eq!((client.values(), client.values()), (FIRST.into(), USUAL.into()));
        let descs = client.descs();
        client.pmcd.host().restart(|_| {});
        client.lose();
        let after = client.values();
        if dialect == Dialect::Fixed {
            assert_eq!(after, FIRST);
        }
        assert_eq!(client.values(), USUAL);
        assert_eq!(client.descs(), descs);
    }
}

/// Names, descriptors and what is defined are looked up anew.
#[test]
fn a_pmcd_that_comes_back_as_another() {
    let mut client = Client::new(Dialect::Fixed);
    client.values();
    assert_eq!(client.values(), USUAL);
    assert_eq!(client.descs()[3], Err(PmStatus::BADDERIVE));
    client.pmcd.host().restart(change);
    client.lose();
    assert_eq!(client.values(), [None, None, Some(1.0), Some(42.0), Some(2.0)]);
    assert_eq!(client.values(), [Some(7.0), Some(10.0), Some(1.0), Some(42.0), Some(2.0)]);
    let descs = client.descs();
    assert_eq!(descs[2].map(|desc| (desc.value_type, desc.units)), Ok((ValueType::F64, BYTES)));
    assert!(descs[3].is_ok());
    // Bound once for the new connection: what is known is not asked again.
    let asked = client.pmcd.host().requests(PduType::PmnsNames);
    client.values();
    assert_eq!(client.pmcd.host().requests(PduType::PmnsNames), asked);
}

/// A notice is no gap: what is the same goes on without a sample missed.
#[test]
fn a_name_space_that_changes_under_way() {
    let mut client = Client::new(Dialect::Fixed);
    client.values();
    assert_eq!(client.values(), USUAL);
    client.pmcd.host().change_names(change);
    // The answer that comes with the notice is for metrics as they were: it is not used.
    let (values, changes) = client.fetch();
    assert_eq!(changes, StateChange(16), "names changed");
    assert_eq!(values, [None, Some(10.0), Some(1.0), Some(42.0), Some(2.0)]);
    assert_eq!(client.values(), [Some(7.0), Some(10.0), Some(1.0), Some(42.0), Some(2.0)]);
}

/// The former metric's sample is not that of the sample before.
#[test]
fn a_metric_that_changes_and_comes_back() {
    let mut client = Client::new(Dialect::Fixed);
    client.values();
    assert_eq!(client.values(), USUAL);
    let former = client.session.lookup_names(&["n.count"]).expect("answers")[0];
    let former = former.expect("a metric");
    client.pmcd.host().change_names(change);
    // Binds to the other metric.
    client.fetch();
    client.values();
    client.pmcd.host().change_names(move |world| {
        world.remove("n.count");
        world.add(Metric::new("n.count", Script::counter(100.0)).numbered(former));
    });
    assert_eq!(client.fetch().0[..2], [None, Some(10.0)]);
    assert_eq!(client.values()[..2], [Some(100.0), Some(10.0)]);
}

/// The agent's counters begin anew, and no other's; which it was is not told.
#[test]
fn an_agent_that_is_restarted() {
    let mut client = Client::new(Dialect::Fixed);
    client.values();
    assert_eq!(client.values(), USUAL);
    let agent = client.session.lookup_names(&["n.count"]).expect("answers")[0];
    client.pmcd.host().restart_agent(agent.expect("a metric").domain(), |_| {});
    let (values, changes) = client.fetch();
    assert_eq!(changes, StateChange(1 | 2), "an agent was added and restarted");
    assert_eq!(values[..2], [None, None]);
    assert_eq!(client.values(), USUAL);
}

/// Those bind once and for all.
#[test]
fn compatible_dialects_keep_their_bindings() {
    for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2] {
        let mut client = Client::new(dialect);
        client.values();
        let (descs, epoch) = (client.descs(), client.session.metadata_epoch());
        let add = |world: &mut World| {
            world.add(Metric::new("n.new", Script::constant(41u32)));
        };
        client.pmcd.host().change_names(add);
        let _ = client.fetch();
        assert_eq!(client.values(), USUAL, "{dialect:?}");
        client.pmcd.host().restart(|_| {});
        client.lose();
        client.values();
        assert_eq!(client.values(), USUAL, "{dialect:?}");
        assert_eq!(client.descs(), descs);
        assert_ne!(client.session.metadata_epoch(), epoch, "the source has changed all the same");
    }
}

/// A choice is compiled when its user says so: a session tells when that is due,
/// and keeps samples across compilation.
#[test]
fn a_choice_is_made_again_when_it_is_stale() {
    let pmcd = FakePmcd::start(FakeHost::new(world()));
    let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
    let shared = Definitions::new(Dialect::Fixed);
    for (name, text) in DEFINITIONS {
        shared.register(name, text).expect("a good definition");
    }
    let registry = shared.snapshot().registry;
    let selection: Vec<_> =
        ["d.rate", "d.steady"].map(|name| registry.get(name).expect("registered")).into();
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let mut diagnostics = Diagnostics::default();
    let mut session =
        choosing(engine, source.expect("a connection"), &registry, &selection, &mut diagnostics)
            .expect("answers");
    let mut space = Space::default();
    let statuses = |session: &mut Session<HostContext>, space: &mut Space| {
        let sample = session.sample(space).expect("values");
        [0, 1].map(|output| sample.values.get(OutputId(output)).status)
    };
    let none = |reason| Status::Empty(reason);
    let first = statuses(&mut session, &mut space);
    assert_eq!(first, [none(Reason::FirstSample); 2]);
    assert_eq!(statuses(&mut session, &mut space), [Status::Values; 2]);
    pmcd.host().change_names(change);
    // The reply with the notice is not used.
    let after = statuses(&mut session, &mut space);
    assert_eq!(after, [none(Reason::FirstSample), Status::Values]);
    assert!(!session.is_stale(), "the choice has followed");
    assert_eq!(statuses(&mut session, &mut space), [Status::Values; 2]);
    pmcd.host().restart(|_| {});
    assert!(session.sample(&mut space).is_err(), "the connection broke");
    session.choose(&selection, &mut diagnostics).expect("a new connection");
    assert!(!session.is_stale(), "compiled once for the new connection");
    assert_eq!(statuses(&mut session, &mut space), [none(Reason::Gap); 2]);
    assert_eq!(statuses(&mut session, &mut space), [Status::Values; 2]);
}

/// A metric may appear without a notice, as that of an agent which was not ready: while something
/// is missing, a choice is stale from time to time.
#[test]
fn what_is_missing_is_looked_for_again() {
    let pmcd = FakePmcd::start(FakeHost::new(world()));
    let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
    let shared = Definitions::new(Dialect::Fixed);
    shared.register("d.lacks", "n.new + 1").expect("a good definition");
    let registry = shared.snapshot().registry;
    let selection = [registry.get("d.lacks").expect("registered")];
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let mut found = Diagnostics::default();
    let mut session =
        choosing(engine, source.expect("a connection"), &registry, &selection, &mut found)
            .expect("answers");
    assert!(session.metrics()[0].desc.is_err());
    pmcd.host().change(|world| {
        world.add(Metric::new("n.new", Script::constant(41u32)));
    });
    let begun = Instant::now();
    while !session.is_stale() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is never looked for");
        std::thread::sleep(Duration::from_millis(50));
    }
    session.choose(&selection, &mut found).expect("answers");
    assert!(session.metrics()[0].desc.is_ok());
    // All is there: there is nothing to look for.
    std::thread::sleep(Duration::from_millis(2100));
    assert!(!session.is_stale());
}

/// A derived metric has the instances that the profile leaves its operands.
#[test]
fn profiles_hold_for_operands() {
    let mut world = World::new();
    let disks = world.add_domain(&["sda", "sdb", "sdc"]);
    world.add(Metric::new("n.disk", Script::constant(5u32)).per(disks));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let shared = Arc::new(Definitions::new(Dialect::Fixed));
    shared.register("d.sum", "sum(n.disk)").expect("a good definition");
    shared.register("d.each", "n.disk + 1").expect("a good definition");
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
    let mut session =
        Session::new(engine, shared, source.expect("a connection")).expect("one language");
    let pmids: Vec<Pmid> = session
        .lookup_names(&["d.sum", "d.each"])
        .expect("answers")
        .into_iter()
        .flatten()
        .collect();
    let mut fetch = |profile: &InstanceProfile| {
        session.set_profile(profile).expect("a small profile");
        let sets = session.fetch_values(&pmids).expect("values").sets;
        let decode = |at: usize| sets[at].decode(ValueType::U32).expect("numbers");
        (decode(0), decode(1))
    };
    let all: Vec<_> = (0..3).map(|instance| (instance, Value::U32(6))).collect();
    let mut profile = InstanceProfile::default();
    assert_eq!(fetch(&profile), (vec![(-1, Value::U32(15))], all.clone()));
    profile.exclude(disks, &[1]);
    let rest = vec![all[0].clone(), all[2].clone()];
    assert_eq!(fetch(&profile), (vec![(-1, Value::U32(10))], rest));
    profile.include_everything();
    assert_eq!(fetch(&profile), (vec![(-1, Value::U32(15))], all));
}

/// Definitions are bound over a source of futures as over one that blocks, and
/// its questions are asked all together.
#[test]
fn binding_without_blocking() {
    let pmcd = FakePmcd::start(FakeHost::new(world()));
    let shared = Definitions::new(Dialect::Fixed);
    for (name, text) in DEFINITIONS {
        shared.register(name, text).expect("a good definition");
    }
    let registry = shared.snapshot().registry;
    let names = DEFINITIONS.map(|(name, _)| name);
    let selection: Vec<_> =
        names.iter().map(|name| registry.get(name).expect("registered")).collect();
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let options = ConnectOptions::default();
    let mut blocking = HostContext::open_with(&pmcd.spec(), options.clone()).expect("a connection");
    let mut said = Diagnostics::default();
    let expected =
        engine.compile(&registry, &selection, &mut blocking, &mut said).expect("answers");
    let asked = || {
        [PduType::PmnsNames, PduType::DescIds, PduType::PmnsTraverse]
            .map(|kind| pmcd.host().requests(kind))
    };
    let before = asked();
    let opened = ready(AsyncHostContext::<Socket>::open_over(&pmcd.spec(), options));
    let mut host = opened.expect("a connection");
    let mut also_said = Diagnostics::default();
    let bound = engine.compile_host(&registry, &selection, &mut host, &mut also_said);
    let compiled = ready(bound).expect("answers");
    assert_eq!(compiled.binding.pmids, expected.binding.pmids);
    let descs = |metrics: &[pmderive::engine::Metric]| -> Vec<_> {
        metrics.iter().map(|metric| metric.desc).collect()
    };
    assert_eq!(descs(&compiled.metrics), descs(&expected.metrics));
    assert_eq!(format!("{also_said:?}"), format!("{said:?}"));
    assert!(!said.is_empty(), "an unknown name, with a suggestion");
    // As many requests as the other context needed.
    let after = asked();
    assert_eq!([0, 1, 2].map(|kind| after[kind] - before[kind]), before);
}

fn memory_desc(item: u32, value_type: ValueType, is_set: bool) -> MetricDesc {
    let indom = is_set.then(|| InDom::new(400, 0));
    let pmid = Pmid::new(400, 0, item);
    MetricDesc { pmid, value_type, indom, semantics: Semantics::Instant, units: Units::NONE }
}

/// Values as the metadata describes them: 7, or 7.5 as a double.
fn feed(
    list: &FetchList,
    metadata: &mut MemoryMetadata,
    batch: &mut ResultBatch,
) -> Result<FetchEvents, SourceError> {
    let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
    for pmid in list.pmids() {
        writer.set(*pmid);
        let desc = metadata.desc(*pmid).expect("a metric of the source");
        for instance in if desc.indom.is_some() { 0..2 } else { -1..0 } {
            match desc.value_type {
                ValueType::F64 => writer.block(instance, BlockValue::F64(7.5)),
                _ => writer.in_place(instance, 7),
            }
        }
    }
    Ok(FetchEvents::default())
}

/// The languages of PCP keep a definition as it was bound, even if its metric has changed since.
/// A later definition of the same metric has its values.
#[test]
fn a_metric_that_changes_harms_no_later_definition() {
    for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2, Dialect::Fixed] {
        for (changed, later) in [
            (memory_desc(0, ValueType::U32, true), "[(0, U32(9)), (1, U32(9))]"),
            (memory_desc(0, ValueType::F64, false), "[(-1, F64(9.5))]"),
        ] {
            let mut metadata = MemoryMetadata::default();
            metadata.add_metric("m.x", memory_desc(0, ValueType::U32, false));
            metadata.set_instances(InDom::new(400, 0), [(0, "a".into()), (1, "b".into())].into());
            let source = MemorySource::new("memory", metadata, feed);
            let definitions = Arc::new(Definitions::new(dialect));
            definitions.register("z.a", "m.x + 1").expect("a good definition");
            let engine = Engine::new(dialect, Backend::default());
            let mut session =
                Session::new(engine, Arc::clone(&definitions), source).expect("one language");
            let pmids = |session: &mut Session<_>, names: &[&str]| -> Vec<Pmid> {
                let found = session.lookup_names(names).expect("answers");
                found.into_iter().map(|pmid| pmid.expect("registered")).collect()
            };
            let first = pmids(&mut session, &["z.a"]);
            session.fetch_values(&first).expect("values");
            session.source().metadata().add_metric("m.x", changed);
            definitions.register("z.b", "m.x + 2").expect("a good definition");
            let both = pmids(&mut session, &["z.a", "z.b"]);
            let descs = session.lookup_descs(&both).expect("answers");
            let sets = session.fetch_values(&both).expect("values").sets;
            let found = sets[1].decode(descs[1].expect("a descriptor").value_type);
            assert_eq!(format!("{:?}", found.expect("values")), later, "{dialect:?}");
        }
    }
}

/// A metric of a source of one's own becomes a double within a fetch.
#[test]
fn a_source_that_changes_within_a_fetch() {
    let source = || {
        let mut metadata = MemoryMetadata::default();
        metadata.add_metric("m.x", memory_desc(0, ValueType::U64, false));
        let mut fetches = 0;
        let feed = move |_: &FetchList, metadata: &mut MemoryMetadata, batch: &mut ResultBatch| {
            fetches += 1;
            let mut events = FetchEvents::default();
            if fetches == 2 {
                metadata.add_metric("m.x", memory_desc(0, ValueType::F64, false));
                events.changes = StateChange::NAMES;
            }
            let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(fetches, 0));
            writer.set(Pmid::new(400, 0, 0));
            let is_whole = fetches < 2;
            writer.block(-1, if is_whole { BlockValue::U64(7) } else { BlockValue::F64(1.5) });
            Ok(events)
        };
        MemorySource::new("memory", metadata, feed)
    };
    let definitions = Arc::new(Definitions::new(Dialect::Fixed));
    definitions.register("d.x", "m.x * 2").expect("a good definition");
    let session = || {
        let engine = Engine::new(Dialect::Fixed, Backend::default());
        Session::new(engine, Arc::clone(&definitions), source()).expect("one language")
    };
    let expected = ["U64(14)", "F64(3.0)", "F64(3.0)"];

    let (mut sampling, mut space) = (session(), Space::default());
    let chosen = definitions.snapshot();
    sampling.choose(&chosen.registry.all(), &mut Diagnostics::default()).expect("a source");
    for expected in expected {
        let sample = sampling.sample(&mut space).expect("values");
        let output = sample.metrics[0].output.expect("a good definition");
        let (_, value) = sample.values.get(output).iter().next().expect("a value");
        assert_eq!(format!("{value:?}"), expected);
    }

    let mut reading = session();
    let pmid = reading.lookup_names(&["d.x"]).expect("answers")[0].expect("registered");
    for expected in expected {
        let set = &reading.fetch_values(&[pmid]).expect("values").sets[0];
        let desc = reading.lookup_descs(&[pmid]).expect("answers")[0].expect("a descriptor");
        let values = set.decode(desc.value_type).expect("values");
        assert_eq!(format!("{values:?}"), format!("[(-1, {expected})]"));
    }
}

/// A chosen definition that was removed and comes back begins anew.
#[test]
fn samples_of_removed_definitions_are_forgotten() {
    let mut metadata = MemoryMetadata::default();
    let desc =
        MetricDesc { semantics: Semantics::Counter, ..memory_desc(0, ValueType::U64, false) };
    metadata.add_metric("m.x", desc);
    let mut seconds = 0;
    let feed = move |list: &FetchList, _: &mut MemoryMetadata, batch: &mut ResultBatch| {
        seconds += 1;
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(seconds, 0));
        for pmid in list.pmids() {
            writer.set(*pmid);
            writer.block(-1, BlockValue::U64(10 * u64::try_from(seconds).expect("few")));
        }
        Ok(FetchEvents::default())
    };
    let definitions = Arc::new(Definitions::new(Dialect::Fixed));
    let engine = Engine::new(Dialect::Fixed, Backend::default());
    let source = MemorySource::new("memory", metadata, feed);
    let mut session = Session::new(engine, Arc::clone(&definitions), source).expect("one language");
    let mut space = Space::default();
    definitions.register("d.stays", "rate(m.x)").expect("a good definition");
    let mut found = Vec::new();
    for is_there in [true, true, false, true, true] {
        match is_there {
            true if definitions.snapshot().registry.definition("d.goes").is_none() => {
                definitions.register("d.goes", "rate(m.x) * 2").expect("a good definition");
            }
            true => {}
            false => _ = definitions.unregister("d.goes").expect("it is there"),
        }
        let chosen = definitions.snapshot();
        session.choose(&chosen.registry.all(), &mut Diagnostics::default()).expect("a source");
        let sample = session.sample(&mut space).expect("values");
        let value = |metric: &pmderive::engine::Metric| {
            let values = sample.values.get(metric.output.expect("a good definition"));
            values.iter().next().map(|(_, value)| format!("{value:?}"))
        };
        found.push(sample.metrics.iter().map(value).collect::<Vec<_>>());
    }
    let (stays, goes) = (|| Some("F64(10.0)".to_owned()), || Some("F64(20.0)".to_owned()));
    let expected = [
        vec![None, None],
        vec![stays(), goes()],
        vec![stays()],
        vec![stays(), None],
        vec![stays(), goes()],
    ];
    assert_eq!(found, expected);
}

/// A source that describes one metric by the descriptor of another.
struct Confused(MemorySource<fn(&FetchList, &mut MemoryMetadata, &mut ResultBatch) -> Fetched>);

type Fetched = Result<FetchEvents, SourceError>;

impl MetadataSource for Confused {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        self.0.ask(questions, answers)?;
        let first = answers.len() - questions.len();
        for (question, answer) in questions.iter().zip(&mut answers[first..]) {
            if matches!(question, Question::Desc(pmid) if *pmid == Pmid::new(400, 0, 1)) {
                *answer = Ok(Fact::Desc(memory_desc(0, ValueType::U32, false)));
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn metadata_epoch(&self) -> u64 {
        self.0.metadata_epoch()
    }
}

impl FetchSource for Confused {
    fn fetch(&mut self, list: &FetchList, batch: &mut ResultBatch) -> Fetched {
        self.0.fetch(list, batch)
    }
}

#[test]
fn a_descriptor_of_another_metric_is_an_error() {
    let mut metadata = MemoryMetadata::default();
    metadata.add_metric("m.x", memory_desc(0, ValueType::U32, false));
    metadata.add_metric("m.y", memory_desc(1, ValueType::F64, false));
    let source = Confused(MemorySource::new("memory", metadata, feed));
    let definitions = Definitions::default();
    for (name, text) in [("z.x", "m.x + 1"), ("z.y", "m.y + 1"), ("z.both", "m.x + m.y")] {
        definitions.register(name, text).expect("a good definition");
    }
    let mut session = Session::new(Engine::default(), definitions, source).expect("one language");
    let found = session.lookup_names(&["z.x", "z.y", "z.both"]).expect("answers");
    let pmids: Vec<Pmid> = found.into_iter().map(|pmid| pmid.expect("registered")).collect();
    let sets = session.fetch_values(&pmids).expect("values").sets;
    let found: Vec<_> =
        sets.iter().map(|set| set.decode(ValueType::U32).map(|v| v.len())).collect();
    assert_eq!(found, [Ok(1), Err(PmStatus::PMID), Err(PmStatus::PMID)]);
}

/// Another instance gets the identifier of one that is gone. The names are asked for again once
/// for each sample with an instance that the one before lacks.
#[test]
fn an_identifier_that_is_used_again_has_its_new_name() {
    let mut world = World::new();
    let domain = world.add_domain(&["a", "b"]);
    world.add(Metric::new("n.each", Script::constant(2u32)).per(domain));
    world.add(Metric::new("n.count", Script::counter(100.0)).per(domain));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
    let shared = Definitions::new(Dialect::Fixed);
    for (name, text) in [("d.each", "n.each * 2"), ("d.rate", "rate(n.count)")] {
        shared.register(name, text).expect("a good definition");
    }
    let registry = shared.snapshot().registry;
    let selection: Vec<_> =
        ["d.each", "d.rate"].map(|name| registry.get(name).expect("registered")).into();
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let mut said = Diagnostics::default();
    let mut session =
        choosing(engine, source.expect("a connection"), &registry, &selection, &mut said)
            .expect("answers");
    let mut space = Space::default();
    let mut names_and_requests = || {
        let mut sample = session.sample(&mut space).expect("values");
        let domains = sample.domains().expect("answers");
        let ids = sample.values.get(OutputId(0)).instances;
        let domain = domains[0].clone().expect("names");
        let names: Vec<Option<String>> =
            ids.iter().map(|id| domain.name(*id).map(str::to_owned)).collect();
        let names: Vec<String> = names.into_iter().flatten().collect();
        (names.join(" "), pmcd.host().requests(PduType::InstanceRequest))
    };
    let expect = |names: &str, requests: u64| (names.to_owned(), requests);
    assert_eq!(names_and_requests(), expect("a b", 1));
    assert_eq!(names_and_requests(), expect("a b", 1));
    pmcd.host().change(|world| world.remove_instance(domain, 1));
    assert_eq!(names_and_requests(), expect("a", 1));
    pmcd.host().change(|world| world.add_instance(domain, 1, "c"));
    assert_eq!(names_and_requests(), expect("a c", 2));
    assert_eq!(names_and_requests(), expect("a c", 2));
}
