//! Client and fake pmcd coupled in memory; bytes decide what both do.

use std::sync::Arc;
use std::time::Duration;

use pmderive_client::pdu::{Credential, Creds, Features, Pdu, PmnsName, Resolution, TextRequest};
use pmderive_client::proto::{
    Connection, ConnectionConfig, Event, FetchRequest, ProtocolError, Reply, Request,
};
use pmderive_core::model::{
    InDom, LabelLevel, PmStatus, Pmid, StateChange, TextKind, TextSubject, Value, ValueType,
};
use pmderive_core::result::{FetchResult, ResultBatch};
use pmderive_core::source::Child;

use super::fault::{Fault, Garble, Rule};
use super::host::FakeHost;
use super::script::{Moment, Script};
use super::session::{Flow, Session};
use super::world::{DEFAULT_AGENT, Metric, World};

/// Largest number of steps of one input.
const MAX_STEPS: usize = 200;

/// Largest number of bytes that wait at the server's end. Beyond it, no request
/// is answered.
const MAX_WAITING: usize = 1 << 20;

/// With an odd first byte, the others are a client's bytes. Otherwise they
/// decide requests, pieces, changes of the world and faults. Nothing may panic
/// or run for ever, and memory is bounded. Replies without a fault must decode
/// to the contents of the world.
#[doc(hidden)]
pub fn fuzz_session(data: &[u8]) {
    match data.split_first() {
        Some((first, rest)) if first & 1 == 1 => any_requests(rest),
        Some((_, rest)) => CoupledPeers::new(Choices(rest)).run(),
        None => {}
    }
}

/// Sends unchecked bytes to the server, in two halves.
fn any_requests(data: &[u8]) {
    let host = Arc::new(FakeHost::new(world()));
    let mut session = Session::new(&host);
    let mut creds = Vec::new();
    Creds { credentials: vec![Credential::version_2(Features::default())] }.encode(&mut creds);
    session.receive(&creds);
    for half in data.chunks(data.len() / 2 + 1) {
        session.receive(half);
        while !session.outgoing().is_empty() {
            let count = session.outgoing().len();
            assert!(count <= MAX_WAITING, "{count} bytes");
            session.sent(count);
        }
    }
    assert!(session.unread() <= data.len());
}

const DISKS: InDom = InDom::new(DEFAULT_AGENT, 0);

/// The subjects of requests, existing or not.
const NAMES: [&str; 8] =
    ["a.count", "a.disk.bytes", "a.text", "a.random", "a", "a.disk", "new.metric", "no.such"];
const DOMAINS: [InDom; 3] = [DISKS, InDom::new(DEFAULT_AGENT, 7), InDom::new(300, 0)];
const AGENTS: [u32; 3] = [DEFAULT_AGENT, 61, 300];

/// The metrics by item: those of [`world`], one that comes and goes, and one that never exists.
fn metric(item: u8) -> Pmid {
    match item % 7 {
        5 => Pmid::new(61, 0, 0),
        6 => Pmid::new(300, 0, 0),
        item => Pmid::new(DEFAULT_AGENT, 0, item.into()),
    }
}

fn world() -> World {
    let mut world = World::empty();
    world.set_instances(DISKS, &[(0, "sda"), (1, "sdb disk"), (7, "sdc")]);
    let counter = Script::counter(1e9).varied(0.5);
    let metrics = [
        Metric::new("a.count", Script::Fetches).of_type(ValueType::U32),
        Metric::new("a.disk.bytes", counter).per(DISKS),
        Metric::new("a.text", Script::cycle(["x", "", "longer text"])),
        Metric::new("a.random", Script::Random { low: -1.0, high: 1.0 }),
        Metric::new("a.bytes", Script::Constant(Value::Aggregate([1; 5].into()))),
    ];
    for (metric, item) in metrics.into_iter().zip(0..) {
        world.add(metric.numbered(Pmid::new(DEFAULT_AGENT, 0, item)));
    }
    world.set_text(TextSubject::Metric(metric(0)), TextKind::OneLine, "how many");
    let labels = world.set_labels(LabelLevel::Item(metric(0)), r#"{"a":1}"#);
    labels.expect("an object");
    world
}

/// The bytes that decide; zeros after their end.
struct Choices<'d>(&'d [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }
}

/// A request under way, in a form that its reply can be compared with.
enum SentRequest {
    Ids(Vec<&'static str>),
    Desc(Pmid),
    Descs(Vec<Pmid>),
    Instances(InDom),
    Instance(InDom, &'static str),
    InstanceName(InDom, i32),
    Traverse(&'static str),
    Children(&'static str),
    NamesOf(Pmid),
    Text(Pmid),
    Labels(LabelLevel),
    Fetch(Vec<Pmid>, Arc<FetchRequest>),
}

struct CoupledPeers<'d> {
    choices: Choices<'d>,
    host: Arc<FakeHost>,
    session: Session,
    connection: Connection,
    /// True when a fault may have struck the bytes that this connection receives.
    struck: bool,
    asked: std::collections::VecDeque<SentRequest>,
    notices: StateChange,
}

impl<'d> CoupledPeers<'d> {
    fn new(mut choices: Choices<'d>) -> CoupledPeers<'d> {
        let features = choices.of(&[super::FEATURES, Features::default()]);
        let host = Arc::new(FakeHost::new(world()).with_features(features));
        let mut coupled = CoupledPeers {
            session: Session::new(&host),
            connection: Connection::new(ConnectionConfig::default()),
            host,
            choices,
            struck: false,
            asked: std::collections::VecDeque::new(),
            notices: StateChange::default(),
        };
        coupled.pump();
        coupled
    }

    fn run(&mut self) {
        for _ in 0..MAX_STEPS {
            if self.choices.0.is_empty() {
                break;
            }
            match self.choices.byte() % 8 {
                0..=3 => self.ask(),
                4 => self.pump(),
                5 => self.change(),
                6 => self.misbehave(),
                _ => {
                    self.pump();
                    self.reconnect();
                }
            }
        }
        self.pump();
    }

    fn reconnect(&mut self) {
        self.host.behave();
        self.struck = false;
        self.asked.clear();
        self.session = Session::new(&self.host);
        self.connection = Connection::new(ConnectionConfig::default());
        self.pump();
    }

    /// Queues a request.
    fn ask(&mut self) {
        if !self.connection.is_ready() || self.asked.len() > 20 {
            return;
        }
        let choices = &mut self.choices;
        let highres = self.connection.features().has(Features::HIGHRES);
        let asked = match choices.byte() % 12 {
            0 => {
                let count = choices.byte() % 4 + 1;
                SentRequest::Ids((0..count).map(|_| choices.of(&NAMES)).collect())
            }
            1 => SentRequest::Descs((0..choices.byte() % 4 + 1).map(metric).collect()),
            2 => SentRequest::Instances(choices.of(&DOMAINS)),
            3 => SentRequest::Instance(
                choices.of(&DOMAINS),
                choices.of(&["sda", "sdb", "new", "none"]),
            ),
            4 => SentRequest::InstanceName(choices.of(&DOMAINS), choices.of(&[0, 1, 2, 7, -2])),
            5 => SentRequest::Traverse(choices.of(&NAMES)),
            6 => SentRequest::Children(choices.of(&NAMES)),
            7 => SentRequest::NamesOf(metric(choices.byte())),
            8 => SentRequest::Text(metric(choices.byte())),
            9 if self.connection.features().has(Features::LABELS) => {
                let pmid = metric(choices.byte());
                SentRequest::Labels(
                    choices.of(&[LabelLevel::Item(pmid), LabelLevel::Cluster(pmid)]),
                )
            }
            10 => SentRequest::Desc(metric(choices.byte())),
            _ => {
                let pmids: Vec<Pmid> =
                    (0..choices.byte() % 8 + 1).map(|_| metric(choices.byte())).collect();
                let resolution = if highres { Resolution::Nano } else { Resolution::Micro };
                let request = Arc::new(FetchRequest::new(&pmids, resolution));
                SentRequest::Fetch(pmids, request)
            }
        };
        let asked = match asked {
            SentRequest::Descs(pmids) if !self.connection.features().has(Features::DESCS) => {
                SentRequest::Desc(pmids[0])
            }
            asked => asked,
        };
        let request = match &asked {
            SentRequest::Ids(names) => Request::LookupNames(names),
            SentRequest::Desc(pmid) => Request::LookupDesc(*pmid),
            SentRequest::Descs(pmids) => Request::LookupDescs(pmids),
            SentRequest::Instances(indom) => Request::InstanceDomain(*indom),
            SentRequest::Instance(indom, name) => Request::LookupInstance(*indom, name),
            SentRequest::InstanceName(indom, instance) => Request::InstanceName(*indom, *instance),
            SentRequest::Traverse(name) => Request::Traverse(name),
            SentRequest::Children(name) => Request::Children(name),
            SentRequest::NamesOf(pmid) => Request::NamesOf(*pmid),
            SentRequest::Text(pmid) => {
                let (subject, kind) = (TextSubject::Metric(*pmid), TextKind::OneLine);
                Request::HelpText(TextRequest { subject, kind })
            }
            SentRequest::Labels(level) => Request::Labels(*level),
            SentRequest::Fetch(_, request) => Request::Fetch(request),
        };
        match self.connection.request(request) {
            Ok(()) => self.asked.push_back(asked),
            Err(error) => self.failed(&error),
        }
    }

    /// Changes the host. Requests that were sent before are answered before.
    fn change(&mut self) {
        self.pump();
        let (choices, host) = (&mut self.choices, &self.host);
        let agent = choices.of(&AGENTS[..2]);
        match choices.byte() % 9 {
            0 => host.change_names(|world| {
                world.add(Metric::new("new.metric", Script::constant(1u32)).numbered(metric(5)));
            }),
            1 => host.change_names(|world| {
                world.remove("new.metric");
            }),
            2 => host.change(|world| world.add_instance(DISKS, 7, "new")),
            3 => host.change(|world| world.remove_instance(DISKS, 0)),
            4 => host.drop_agent(agent),
            5 => host.restart_agent(agent, |_| {}),
            6 => {
                let labels = r#"{"b":{"c":2}}"#;
                host.change_labels(|world| {
                    let set = world.set_labels(LabelLevel::Item(metric(0)), labels);
                    set.expect("an object");
                });
            }
            7 => host.rename("other"),
            _ => {
                host.restart(|_| {});
                assert_eq!(self.session.flow(), Flow::Reset);
                self.reconnect();
                return;
            }
        }
        if !self.struck {
            let state = self.host.lock();
            self.notices = state.notices_since(self.session.seen_notices());
        }
    }

    fn misbehave(&mut self) {
        self.pump();
        let choices = &mut self.choices;
        let after = usize::from(choices.byte());
        let every = Duration::from_secs(1);
        let fault = match choices.byte() % 12 {
            0 => Fault::Stall { after },
            1 => Fault::Late { after, by: every },
            2 => Fault::Drip { every },
            3 => Fault::Close { after },
            4 => Fault::Reset { after },
            5 => Fault::Garble(Garble::Flip { at: after, bits: choices.byte() }),
            6 => {
                let bytes = [0; 4].map(|_| choices.byte());
                Fault::Garble(Garble::Word { at: after / 4 * 4, value: u32::from_be_bytes(bytes) })
            }
            7 => Fault::Garble(Garble::Truncate(after)),
            8 => Fault::Garble(Garble::Extend(vec![choices.byte(); after])),
            9 => Fault::Endless { after, piece: vec![choices.byte(); 16] },
            10 => Fault::Status(PmStatus(-i32::from(choices.byte()))),
            _ => Fault::Notices(vec![i32::from(choices.byte()); after]),
        };
        self.host.inject(Rule::new(fault).after((choices.byte() % 4).into()));
        self.struck = true;
    }

    /// Moves bytes in pieces until neither end has anything to say.
    fn pump(&mut self) {
        let small = usize::from(self.choices.byte()) * 8 + 1;
        // The client ends endless streams after as many bytes as a header may
        // announce.
        for moved in 0..1_000_000 {
            let piece = if moved < 10_000 { small } else { 1 << 16 };
            let mut idle = true;
            let outgoing = self.connection.outgoing();
            if !outgoing.is_empty() {
                let count = outgoing.len().min(piece);
                self.session.receive(&outgoing[..count]);
                self.connection.sent(count);
                idle = false;
            }
            match self.session.flow() {
                Flow::Waiting(_) if self.session.outgoing().is_empty() => {
                    self.session.resume();
                    idle = false;
                }
                _ => {}
            }
            let outgoing = self.session.outgoing();
            if !outgoing.is_empty() {
                assert!(outgoing.len() <= MAX_WAITING, "{} bytes", outgoing.len());
                let count = outgoing.len().min(piece);
                self.connection.inbox().extend_from_slice(&outgoing[..count]);
                self.session.sent(count);
                idle = false;
                if let Err(error) = self.events() {
                    return self.failed(&error);
                }
            }
            if idle {
                assert!(self.struck || self.asked.is_empty(), "a reply is missing");
                return;
            }
        }
        panic!("bytes are moved for ever");
    }

    fn failed(&mut self, error: &ProtocolError) {
        assert!(self.struck, "{error}");
        self.reconnect();
    }

    /// Reads the events of the bytes so far.
    fn events(&mut self) -> Result<(), ProtocolError> {
        while let Some(event) = self.connection.poll()? {
            match event {
                Event::Ready => {}
                Event::Changed(changes) => {
                    assert!(self.struck || changes == self.notices, "{changes:?}");
                }
                Event::Failed(status) => {
                    let asked = self.asked.pop_front();
                    let expected = asked.and_then(|asked| self.expected_failure(&asked));
                    assert!(self.struck || expected == Some(status), "{status}");
                }
                Event::Reply => self.reply()?,
            }
        }
        Ok(())
    }

    fn reply(&mut self) -> Result<(), ProtocolError> {
        let asked = self.asked.pop_front().expect("a request for each reply");
        let reply = self.connection.reply()?;
        let text = match reply {
            Reply::Result(frame) => {
                let mut batch = ResultBatch::default();
                self.connection.take_result(frame, batch.add_part());
                let result = FetchResult::of_batch(&batch, StateChange::default());
                if !self.struck {
                    self.check_result(&asked, &result);
                    self.notices = StateChange::default();
                }
                return Ok(());
            }
            Reply::Instances(instances) => format!("{:?}", instances.iter().collect::<Vec<_>>()),
            Reply::Names(names) => {
                let plain = |name: PmnsName<'_>| (name.status, name.name.to_vec());
                format!("{:?}", names.iter().map(plain).collect::<Vec<_>>())
            }
            other => format!("{other:?}"),
        };
        if !self.struck {
            assert_eq!(text, self.expected(&asked).expect("an answer"));
        }
        Ok(())
    }

    /// Compares the values with those of the scripts at the moment of the
    /// latest fetch.
    fn check_result(&self, asked: &SentRequest, result: &FetchResult) {
        let SentRequest::Fetch(pmids, _) = asked else { panic!("a result for another request") };
        let state = self.host.lock();
        assert_eq!(result.sets.len(), pmids.len());
        for (set, pmid) in result.sets.iter().zip(pmids) {
            assert_eq!(set.pmid, *pmid);
            let served = match (state.agent(pmid.domain()), state.world.served(*pmid)) {
                (Ok(true), Some(served)) => served,
                (Ok(true), None) => {
                    assert_eq!(set.outcome, Err(PmStatus::PMID));
                    continue;
                }
                _ => {
                    assert_eq!(set.outcome, Err(PmStatus::NOAGENT));
                    continue;
                }
            };
            let values = set.decode(served.desc.value_type).expect("values of that type");
            let instances: Vec<i32> = match served.desc.indom {
                Some(indom) => {
                    let domain = state.world.metadata().instances(indom).expect("a domain");
                    domain.instances().map(|(id, _)| id).collect()
                }
                None => vec![-1],
            };
            assert_eq!(values.iter().map(|(id, _)| *id).collect::<Vec<_>>(), instances);
            for (instance, value) in values {
                let moment = Moment {
                    time: result.timestamp,
                    age: state.age(*pmid, result.timestamp),
                    // The clock ticks with the fetches, from one second on.
                    fetch: u64::try_from(result.timestamp.sec - 1_767_225_600).expect("later"),
                    seed: 0,
                    host: &state.name,
                    pmid: *pmid,
                    instance,
                };
                let due = served.script.value(served.desc.value_type, &moment);
                assert_eq!(due, Ok(Some(value)));
            }
        }
    }

    fn expected_failure(&self, asked: &SentRequest) -> Option<PmStatus> {
        self.expected(asked).err()
    }

    /// The world's reply to a request, in readable form.
    fn expected(&self, asked: &SentRequest) -> Result<String, PmStatus> {
        let state = self.host.lock();
        let metadata = state.world.metadata();
        let of_agent = |domain, unknown| match state.agent(domain) {
            Ok(true) => Ok(()),
            Ok(false) => Err(unknown),
            Err(status) => Err(status),
        };
        let desc = |pmid: Pmid| {
            state.agent(pmid.domain())?;
            metadata.desc(pmid).copied().ok_or(PmStatus::PMID)
        };
        let domain = |indom: InDom| {
            of_agent(indom.domain(), PmStatus::INDOM)?;
            metadata.instances(indom)
        };
        let named = |names: &[&str]| {
            let plain = |name: &&str| (None::<i32>, name.as_bytes().to_vec());
            format!("{:?}", names.iter().map(plain).collect::<Vec<_>>())
        };
        Ok(match asked {
            SentRequest::Ids(names) => match names[..] {
                [name] => format!("{:?}", Reply::Ids(vec![metadata.pmid_of(name)?])),
                _ => {
                    let pmid = |name: &&str| metadata.pmid_of(name).unwrap_or(Pmid::NULL);
                    format!("{:?}", Reply::Ids(names.iter().map(pmid).collect()))
                }
            },
            SentRequest::Desc(pmid) => format!("{:?}", Reply::Desc(desc(*pmid)?)),
            SentRequest::Descs(pmids) => match pmids[..] {
                [pmid] => format!("{:?}", Reply::Descs(vec![Some(desc(pmid)?)])),
                _ => {
                    let descs = pmids.iter().map(|pmid| desc(*pmid).ok()).collect();
                    format!("{:?}", Reply::Descs(descs))
                }
            },
            SentRequest::Instances(indom) => {
                let domain = domain(*indom)?;
                let all: Vec<_> =
                    domain.instances().map(|(id, name)| (id, name.as_bytes())).collect();
                format!("{all:?}")
            }
            SentRequest::Instance(indom, name) => {
                let id = domain(*indom)?.lookup(name).ok_or(PmStatus::INST)?;
                format!("{:?}", Reply::Instance(id))
            }
            SentRequest::InstanceName(indom, instance) => {
                let domain = domain(*indom)?;
                let name = domain.name(*instance).ok_or(PmStatus::INST)?;
                format!("{:?}", Reply::InstanceName(name.as_bytes()))
            }
            SentRequest::Traverse(name) => named(&metadata.traverse(name)?),
            SentRequest::Children(name) => {
                let children = Child::below(name, metadata.traverse(name)?);
                let plain = |child: &Child| {
                    (Some(i32::from(!child.is_leaf)), child.name.as_bytes().to_vec())
                };
                format!("{:?}", children.iter().map(plain).collect::<Vec<_>>())
            }
            SentRequest::NamesOf(pmid) => {
                let names = metadata.names_of(*pmid);
                if names.is_empty() {
                    of_agent(pmid.domain(), PmStatus::NOAGENT)?;
                    return Err(PmStatus::PMID);
                }
                named(&names)
            }
            SentRequest::Text(pmid) => {
                of_agent(pmid.domain(), PmStatus::PMID)?;
                let subject = TextSubject::Metric(*pmid);
                let text = metadata.own_text(subject, TextKind::OneLine).ok_or(PmStatus::TEXT)?;
                format!("{:?}", Reply::Text(text.as_bytes()))
            }
            SentRequest::Labels(level) => {
                let (LabelLevel::Item(pmid) | LabelLevel::Cluster(pmid)) = level else {
                    unreachable!("no other level is asked for")
                };
                of_agent(pmid.domain(), PmStatus::PMID)?;
                format!("{:?}", Reply::Labels(state.world.labels(*level).to_vec()))
            }
            SentRequest::Fetch(..) => return Err(PmStatus::GENERIC),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_by_chance() {
        // A linear congruential generator: nothing but variety is needed.
        let mut state = 1u64;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        for _ in 0..2_000 {
            let len = usize::from(byte());
            let data: Vec<u8> = (0..len).map(|_| byte()).collect();
            fuzz_session(&data);
        }
    }
}
