//! A peer with values of every kind, and a question for every kind of reply.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pmderive_runtime::context::{AsyncHostContext, ConnectOptions};
use pmderive_runtime::model::{
    InDom, InstId, LabelLevel, LabelSet, Pmid, RawValue, TextKind, TextSubject, Value, ValueType,
};
use pmderive_runtime::pdu::{Features, PduType};
use pmderive_runtime::result::{InstanceValue, MetricValues};
use pmderive_runtime::source::{Child, Fact, Freshness, Question, SourceError};
use pmderive_runtime::transport::ready;
use pmderive_testkit::fake_pmcd::{
    Direct, FEATURES, FakeHost, Fault, Garble, Metric, Rule, Script, World,
};

/// Longest time that the client waits for a reply.
pub const TIMEOUT: Duration = Duration::from_secs(10);

pub type Client = AsyncHostContext<Direct>;

const DISKS: InDom = InDom::new(60, 0);

/// The answer to a question, as text.
fn asked<F>(client: &mut Client, question: Question<'_>) -> Result<String, SourceError>
where
    F: TryFrom<Fact> + std::fmt::Debug,
{
    Ok(format!("{:?}", ready(client.one::<F>(question))?))
}

/// The metric of an item.
const fn metric(item: u32) -> Pmid {
    Pmid::new(60, 0, item)
}

/// An array of two event records with a parameter each.
fn events() -> Vec<u8> {
    let record = |text: &[u8; 4]| {
        let words = [7, 500_000, 1, 1, metric(0).0, 6 << 24 | 8];
        words.into_iter().flat_map(u32::to_be_bytes).chain(*text).collect::<Vec<u8>>()
    };
    let records = [record(b"one!"), record(b"two!")].concat();
    [2u32.to_be_bytes().to_vec(), records].concat()
}

pub fn world() -> World {
    let mut world = World::empty();
    assert_eq!(world.add_domain(&["sda", "sdb"]), DISKS);
    let events = Script::Constant(Value::Event(events().into()));
    let aggregate = Script::Constant(Value::Aggregate([1, 2, 3, 4, 5].into()));
    let scripts = [
        ("a.count", Script::constant(7u32), None),
        ("a.disk.bytes", Script::constant(1u64 << 40), Some(DISKS)),
        ("a.text", Script::constant("words"), None),
        ("a.bytes", aggregate, None),
        ("a.events", events, None),
        ("a.float", Script::constant(1.5f32), None),
        ("a.disk.busy", Script::constant(3i32), Some(DISKS)),
    ];
    for (item, (name, script, indom)) in (0..).zip(scripts) {
        let new = Metric::new(name, script).numbered(metric(item)).writable();
        world.add(match indom {
            Some(indom) => new.per(indom),
            None => new,
        });
    }
    world.add_name("b.alias", metric(0));
    world.set_text(TextSubject::Metric(metric(0)), TextKind::Help, "How many there are.");
    for level in [
        LabelLevel::Context,
        LabelLevel::Domain(60),
        LabelLevel::InDom(DISKS),
        LabelLevel::Cluster(metric(0)),
        LabelLevel::Item(metric(0)),
    ] {
        world.set_labels(level, r#"{"place":"here","rack":12}"#).expect("labels");
    }
    let disks = [(0, r#"{"bus":"sata"}"#), (1, r#"{"bus":"nvme","slot":2}"#)];
    world.set_instance_labels(DISKS, &disks).expect("labels");
    world
}

/// A question, and with it the right reply.
pub struct Conversation {
    pub name: &'static str,
    /// The request whose reply is meant.
    pub request: PduType,
    /// The features of the peer.
    pub features: Features,
    ask: Ask,
}

type Ask = fn(&mut Client) -> Result<String, SourceError>;

impl Conversation {
    /// Asks the question, and returns the answer in readable form.
    pub fn ask(&self, client: &mut Client) -> Result<String, SourceError> {
        (self.ask)(client)
    }

    /// A host and a client of it that has asked nothing yet.
    pub fn begin(&self) -> (Arc<FakeHost>, Client) {
        let host = FakeHost::new(shared_world()).with_features(self.features);
        let host = Arc::new(host);
        let client = connect(&host).expect("a connection");
        (host, client)
    }

    /// The right answer, and the bytes of the reply with it.
    pub fn right(&self) -> (String, Vec<u8>) {
        let (host, mut client) = self.begin();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let copy = Arc::clone(&bytes);
        let keep = Garble::with(move |pdu| copy.lock().expect("no panic").clone_from(pdu));
        host.inject(Rule::new(Fault::Garble(keep)).on(self.request));
        let answer = self.ask(&mut client).expect(self.name);
        let bytes = bytes.lock().expect("no panic").clone();
        assert!(bytes.len() >= 16, "{}: {} bytes", self.name, bytes.len());
        (answer, bytes)
    }

    /// The answer of a peer whose first reply a fault struck.
    pub fn struck(&self, fault: Fault) -> (Result<String, SourceError>, Arc<FakeHost>, Client) {
        let (host, mut client) = self.begin();
        host.inject(Rule::new(fault).on(self.request));
        (self.ask(&mut client), host, client)
    }
}

/// One world for the whole thread, because making it is slower than a
/// conversation.
fn shared_world() -> Arc<World> {
    thread_local! {
        static WORLD: Arc<World> = Arc::new(world());
    }
    WORLD.with(Arc::clone)
}

pub fn connect(host: &Arc<FakeHost>) -> Result<Client, SourceError> {
    Direct::attach("peer", host);
    // Delays between attempts are partly by chance.
    let options = ConnectOptions {
        request_timeout: Some(TIMEOUT),
        reconnect_delays: Vec::new(),
        ..ConnectOptions::default()
    };
    let spec = "pcp://peer".parse().expect("a specification");
    ready(AsyncHostContext::open_over(&spec, options))
}

/// A question per kind of reply.
pub fn all() -> Vec<Conversation> {
    use PduType as Type;
    let old = Features(0);
    let conversation =
        |name, request, features, ask: Ask| Conversation { name, request, features, ask };
    let modern = |name, request, ask: Ask| conversation(name, request, FEATURES, ask);
    vec![
        modern("identifiers of names", Type::PmnsNames, |client| {
            Ok(format!("{:?}", ready(client.lookup_names(&["a.count", "a.disk.bytes"]))?))
        }),
        modern("descriptors", Type::DescIds, |client| {
            Ok(format!("{:?}", ready(client.lookup_descs(&[metric(0), metric(1)]))?))
        }),
        conversation("descriptor", Type::DescRequest, old, |client| {
            Ok(format!("{:?}", ready(client.lookup_descs(&[metric(1)]))?))
        }),
        modern("instances", Type::InstanceRequest, |client| {
            let domain = ready(client.instance_domain(DISKS, Freshness::Current))?;
            Ok(format!("{:?}", domain.map(|d| format!("{:?}", d.instances().collect::<Vec<_>>()))))
        }),
        modern("instance of a name", Type::InstanceRequest, |client| {
            asked::<InstId>(client, Question::Instance(DISKS, "sdb"))
        }),
        modern("name of an instance", Type::InstanceRequest, |client| {
            asked::<Box<str>>(client, Question::InstanceName(DISKS, 1))
        }),
        modern("metrics below a node", Type::PmnsTraverse, |client| {
            Ok(format!("{:?}", ready(client.traverse("a"))?))
        }),
        modern("children", Type::PmnsChild, |client| {
            asked::<Vec<Child>>(client, Question::Children("a"))
        }),
        modern("names of a metric", Type::PmnsIds, |client| {
            asked::<Vec<Box<str>>>(client, Question::NamesOf(metric(0)))
        }),
        modern("text", Type::TextRequest, |client| {
            let subject = TextSubject::Metric(metric(0));
            asked::<Box<str>>(client, Question::Text(subject, TextKind::Help))
        }),
        modern("labels", Type::LabelRequest, |client| {
            asked::<Vec<LabelSet>>(client, Question::Labels(LabelLevel::Item(metric(0))))
        }),
        modern("labels of instances", Type::LabelRequest, |client| {
            asked::<Vec<LabelSet>>(client, Question::Labels(LabelLevel::Instances(DISKS)))
        }),
        modern("values with nanoseconds", Type::HighresFetch, fetch),
        conversation("values with microseconds", Type::Fetch, old, fetch),
        modern("a store", Type::Result, |client| {
            let value = InstanceValue { instance: -1, value: RawValue::InPlace(8) };
            let set = MetricValues { pmid: metric(0), outcome: Ok(vec![value]) };
            Ok(format!("{:?}", ready(client.store(&[set]))?))
        }),
    ]
}

fn fetch(client: &mut Client) -> Result<String, SourceError> {
    const TYPES: [ValueType; 7] = [
        ValueType::U32,
        ValueType::U64,
        ValueType::String,
        ValueType::Aggregate,
        ValueType::Event,
        ValueType::F32,
        ValueType::I32,
    ];
    let pmids: Vec<Pmid> = (0..7).map(metric).collect();
    let result = ready(client.fetch_values(&pmids))?;
    let sets = result.sets.iter().zip(TYPES);
    let values: Vec<_> = sets.map(|(set, value_type)| set.decode(value_type)).collect();
    Ok(format!("{:?} {values:?}", result.timestamp))
}
