//! State of one connection to pmcd: handshake, requests under way, replies due.
//!
//! Bytes received go into [`Connection::inbox`], events come out of
//! [`Connection::poll`], bytes to send stand in [`Connection::outgoing`].
//! Nothing here waits: "not enough bytes yet" is `Ok(None)`. After an error the
//! connection stays broken, as no later byte can be attributed to a request.

use std::collections::VecDeque;
use std::ops::Range;

use super::error::ProtocolError;
use super::request::{Expected, Reply, Request};
use crate::model::PmStatus;
use crate::pdu::{
    Attr, CONTAINER_KEY, Credential, Creds, ErrorPdu, Features, Header, Hello, Pdu, PduType,
    PmnsNames, Profile, ResultFrame,
};
use crate::result::ResultPart;

/// What a connection needs to know before its first byte.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Where pmcd runs.
    pub peer: Peer,
    /// Container whose metrics are wanted, if any.
    pub container: Option<String>,
    /// Longest reply that is accepted, in bytes.
    pub max_reply_bytes: usize,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        let max_reply_bytes = 64 << 20;
        ConnectionConfig { peer: Peer::Remote, container: None, max_reply_bytes }
    }
}

/// How pmcd tells who the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Over a unix socket, where the system vouches for the client.
    SameHost,
    /// Over the network.
    Remote,
}

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done, requests may be made.
    Ready,
    /// Something changed; belongs to the fetch whose reply comes next.
    Changed(StateChange),
    /// The reply to the oldest request under way, see [`Connection::reply`].
    Reply,
    /// The oldest request under way failed with this status.
    Failed(PmStatus),
}

/// What changed at pmcd since this connection's previous fetch, as bits of
/// `pmFetch(3)`'s positive results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateChange(pub i32);

impl StateChange {
    const AGENT_ADDED: i32 = 1;
    const AGENT_RESTARTED: i32 = 2;
    const AGENT_DROPPED: i32 = 4;
    const LABELS_CHANGED: i32 = 8;
    const NAMES_CHANGED: i32 = 16;

    /// The changes of both.
    #[must_use]
    pub const fn with(self, other: StateChange) -> StateChange {
        StateChange(self.0 | other.0)
    }

    /// True when names, descriptors or instance domains may be others now.
    /// A change of labels alone is not among these, nor is one of the host name.
    pub const fn concerns_metadata(self) -> bool {
        const BITS: i32 = StateChange::AGENT_ADDED
            | StateChange::AGENT_RESTARTED
            | StateChange::AGENT_DROPPED
            | StateChange::NAMES_CHANGED;
        self.0 & BITS != 0
    }

    /// True when labels may be others now.
    pub const fn concerns_labels(self) -> bool {
        self.0 & StateChange::LABELS_CHANGED != 0 || self.concerns_metadata()
    }

    /// True when the counters of some agent began anew.
    pub const fn agent_restarted(self) -> bool {
        self.0 & StateChange::AGENT_RESTARTED != 0
    }
}

/// Where the handshake stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The greeting is due.
    Greeting,
    /// Credentials with wishes were sent; the reply to a cheap request tells
    /// whether they were accepted.
    Verifying,
    Ready,
    Broken,
}

/// Most notices of changes before one result.
const MAX_NOTICES: u32 = 16;

/// Bytes of room that a read finds while the size of the reply is not known.
const READ_BYTES: usize = 16 << 10;

/// Most bytes that are reserved at once on the word of a header alone.
const GROWTH_BYTES: usize = 64 << 10;

/// The client's end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: ConnectionConfig,
    phase: Phase,
    features: Features,
    inbox: Vec<u8>,
    /// The PDU delivered last; what follows it in the inbox is yet to be looked at.
    latest: Range<usize>,
    /// The request it answers.
    answered: Option<Expected>,
    outbox: Vec<u8>,
    sent: usize,
    expected: VecDeque<Expected>,
    notices: u32,
    profile_sent: bool,
}

impl Connection {
    /// A connection that was just made.
    pub fn new(config: ConnectionConfig) -> Connection {
        Connection {
            config,
            phase: Phase::Greeting,
            features: Features::default(),
            inbox: Vec::new(),
            latest: 0..0,
            answered: None,
            outbox: Vec::new(),
            sent: 0,
            expected: VecDeque::new(),
            notices: 0,
            profile_sent: false,
        }
    }

    /// What pmcd can do; nothing before [`Event::Ready`].
    pub fn features(&self) -> Features {
        self.features
    }

    /// Number of requests whose replies are due.
    pub fn pending(&self) -> usize {
        self.expected.len()
    }

    /// True once the greeting has arrived and for as long as nothing went wrong.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Bytes to send.
    pub fn outgoing(&self) -> &[u8] {
        &self.outbox[self.sent..]
    }

    /// Notes that the first `count` of the [`Connection::outgoing`] bytes were sent.
    pub fn sent(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.outbox.len());
        if self.sent == self.outbox.len() {
            self.outbox.clear();
            self.sent = 0;
        }
    }

    /// Where received bytes are to be appended, with room for some. The reply
    /// delivered last is gone afterwards.
    ///
    /// The room grows with what has arrived, whatever a header announces.
    pub fn inbox(&mut self) -> &mut Vec<u8> {
        self.inbox.drain(..self.latest.end);
        self.latest = 0..0;
        let have = self.inbox.len();
        let room = match Header::peek(&self.inbox, self.config.max_reply_bytes) {
            Ok(Some(header)) => header.len.saturating_sub(have).min(have.max(GROWTH_BYTES)).max(1),
            _ => READ_BYTES,
        };
        if self.inbox.capacity() - have < room.min(READ_BYTES) {
            self.inbox.reserve(room);
        }
        &mut self.inbox
    }

    /// Queues a request. Requests may be queued before earlier ones are
    /// answered. The first fetch takes the profile along that it needs.
    ///
    /// # Errors
    /// The handshake is not done, or something went wrong.
    pub fn request(&mut self, request: Request<'_>) -> Result<(), ProtocolError> {
        if self.phase != Phase::Ready {
            return Err(ProtocolError::NotReady);
        }
        let first_fetch = matches!(request, Request::Fetch(_)) && !self.profile_sent;
        if first_fetch {
            Profile::include_all(0).encode(&mut self.outbox);
            self.profile_sent = true;
        }
        let mut expected = request.encode(&mut self.outbox);
        if let Expected::Result { after_profile, .. } = &mut expected {
            *after_profile = first_fetch;
        }
        self.expected.push_back(expected);
        Ok(())
    }

    /// The next event, if it has arrived completely. The reply delivered
    /// before is gone afterwards.
    ///
    /// # Errors
    /// The peer does not keep to the protocol or refuses the connection.
    pub fn poll(&mut self) -> Result<Option<Event>, ProtocolError> {
        let event = self.next_event();
        if event.is_err() {
            self.phase = Phase::Broken;
        }
        event
    }

    /// What the end of the stream means at this point.
    pub fn closed(&mut self) -> ProtocolError {
        let greeted = self.phase != Phase::Greeting;
        self.phase = Phase::Broken;
        ProtocolError::Closed { received: greeted.then(|| self.inbox.len() - self.latest.end) }
    }

    /// Decodes the reply that [`Event::Reply`] announced.
    ///
    /// # Errors
    /// It is malformed or does not fit the request.
    pub fn reply(&mut self) -> Result<Reply<'_>, ProtocolError> {
        let Some(expected) = &self.answered else { return Err(ProtocolError::NotReady) };
        let pdu = self.inbox.get(self.latest.clone()).unwrap_or_default();
        match expected.decode(pdu) {
            Ok(reply) => Ok(reply),
            Err(error) => {
                self.phase = Phase::Broken;
                Err(error.into())
            }
        }
    }

    /// Moves the values of [`Reply::Result`] into a part, whose buffer becomes
    /// the inbox in exchange.
    pub fn take_result(&mut self, frame: ResultFrame, part: &mut ResultPart) {
        let Range { start, end } = self.latest.clone();
        part.bytes.clear();
        std::mem::swap(&mut self.inbox, &mut part.bytes);
        self.inbox.extend_from_slice(part.bytes.get(end..).unwrap_or_default());
        part.bytes.truncate(end);
        self.latest = 0..0;
        self.answered = None;
        part.timestamp = frame.timestamp;
        part.first_set = start + frame.first_set;
        part.set_count = frame.set_count;
        // An offset in memory is far below the limit.
        part.block_origin = i64::try_from(start).unwrap_or(i64::MAX);
    }

    fn next_event(&mut self) -> Result<Option<Event>, ProtocolError> {
        self.latest.start = self.latest.end;
        self.answered = None;
        if self.phase == Phase::Broken {
            return Err(ProtocolError::NotReady);
        }
        let unread = self.inbox.get(self.latest.end..).unwrap_or_default();
        if self.phase == Phase::Greeting {
            check_greeting(unread)?;
        } else if self.expected.is_empty() && !unread.is_empty() {
            return Err(ProtocolError::Unsolicited { bytes: unread.len() });
        }
        let Some(header) = Header::peek(unread, self.config.max_reply_bytes)? else {
            return Ok(None);
        };
        let Some(pdu) = unread.get(..header.len) else { return Ok(None) };
        let hello = if self.phase == Phase::Greeting { Some(Hello::decode(pdu)?) } else { None };
        let failure = if header.code == PduType::Error.code() {
            Some(ErrorPdu::decode(pdu)?.status)
        } else {
            None
        };
        self.latest.end += header.len;
        match (hello, failure) {
            (Some(hello), _) => self.greeted(hello),
            (None, Some(status)) => self.failed(status).map(Some),
            (None, None) => self.answer(header.code).map(Some),
        }
    }

    /// Answers the greeting with the credentials and what belongs to them.
    fn greeted(&mut self, hello: Hello) -> Result<Option<Event>, ProtocolError> {
        if let Some(status) = hello.refusal {
            return Err(ProtocolError::Refused(status));
        }
        if hello.version < 2 {
            return Err(ProtocolError::Version { version: hello.version });
        }
        let mut flags = Features::default();
        if hello.features.has(Features::CREDS_REQUIRED) {
            if self.config.peer == Peer::Remote {
                return Err(ProtocolError::Unsupported(
                    "pmcd demands authentication, which is not supported yet over the network",
                ));
            }
            flags = flags.with(Features::CREDS_REQUIRED);
        }
        if hello.features.has(Features::CERT_REQUIRED) && self.config.peer == Peer::Remote {
            return Err(ProtocolError::Unsupported(
                "pmcd demands a client certificate, and TLS is not supported yet",
            ));
        }
        if self.config.container.is_some() {
            if !hello.features.has(Features::CONTAINER) {
                return Err(ProtocolError::Unsupported("this pmcd knows no containers"));
            }
            flags = flags.with(Features::CONTAINER);
        }
        self.features = hello.features;
        Creds { credentials: vec![Credential::version_2(flags)] }.encode(&mut self.outbox);
        if let Some(container) = &self.config.container {
            Attr { key: CONTAINER_KEY, value: container.as_bytes() }.encode(&mut self.outbox);
        }
        if flags == Features::default() {
            self.phase = Phase::Ready;
            return Ok(Some(Event::Ready));
        }
        // Neither credentials nor attributes are acknowledged. If they are not
        // accepted, an error comes before the reply to this.
        self.expected.push_back(Request::Children("").encode(&mut self.outbox));
        self.phase = Phase::Verifying;
        self.next_event()
    }

    fn failed(&mut self, status: i32) -> Result<Event, ProtocolError> {
        if self.phase == Phase::Verifying && status < 0 {
            return Err(ProtocolError::Rejected(PmStatus(status)));
        }
        let fetch = matches!(self.expected.front(), Some(Expected::Result { .. }));
        if status >= 0 {
            if status == 0 || !fetch {
                return Err(ProtocolError::UnexpectedStatus { status });
            }
            self.notices += 1;
            if self.notices > MAX_NOTICES {
                return Err(ProtocolError::TooManyNotices { limit: MAX_NOTICES });
            }
            return Ok(Event::Changed(StateChange(status)));
        }
        self.notices = 0;
        match self.expected.pop_front() {
            // If this answers the profile, the reply to the fetch is yet to come.
            Some(Expected::Result { after_profile: true, .. }) => {
                Err(ProtocolError::FirstFetch(PmStatus(status)))
            }
            _ => Ok(Event::Failed(PmStatus(status))),
        }
    }

    fn answer(&mut self, code: u32) -> Result<Event, ProtocolError> {
        let Some(expected) = self.expected.pop_front() else {
            return Err(ProtocolError::NotReady);
        };
        let due = expected.pdu_type();
        if code != due.code() {
            return Err(ProtocolError::UnexpectedReply { found: code, due });
        }
        self.notices = 0;
        if self.phase == Phase::Verifying {
            PmnsNames::decode(self.inbox.get(self.latest.clone()).unwrap_or_default())?;
            self.phase = Phase::Ready;
            return Ok(Event::Ready);
        }
        self.answered = Some(expected);
        Ok(Event::Reply)
    }
}

/// Tells from the first bytes whether a peer can be a pmcd.
fn check_greeting(received: &[u8]) -> Result<(), ProtocolError> {
    const GREETING: [u8; 8] = [0, 0, 0, 20, 0, 0, 0x70, 0];
    if GREETING.iter().zip(received).all(|(due, found)| due == found) {
        return Ok(());
    }
    let shown = &received[..received.len().min(32)];
    Err(ProtocolError::NotPmcd { received: format!("\"{}\"", shown.escape_ascii()) })
}

/// Feeds a stream of bytes to a connection with a request of every kind under
/// way, in pieces whose sizes the first bytes choose, and checks that the
/// events are those of the whole stream in one piece. The first byte also
/// chooses whether pmcd is on this host, which lets it demand credentials.
#[doc(hidden)]
pub fn fuzz_stream(data: &[u8]) {
    let (sizes, stream) = data.split_at(data.len().min(8));
    let peer = match sizes.first() {
        Some(first) if first & 0x80 != 0 => Peer::SameHost,
        _ => Peer::Remote,
    };
    let whole = events_of(stream, peer, &[usize::MAX]);
    let sizes: Vec<usize> = sizes.iter().map(|size| usize::from(*size) % 40 + 1).collect();
    assert_eq!(events_of(stream, peer, &sizes), whole);
}

/// What a connection makes of a stream that arrives in pieces of `sizes`, in turn.
fn events_of(stream: &[u8], peer: Peer, sizes: &[usize]) -> Vec<String> {
    use super::request::FetchRequest;
    use crate::model::{InDom, LabelLevel, Pmid, TextKind, TextSubject};
    use crate::pdu::{Resolution, TextRequest};
    let fetches = [
        FetchRequest::new(&[Pmid(0x0740_000a)], Resolution::Nano).into(),
        FetchRequest::new(&[Pmid(0x0740_000a), Pmid(0x0080_0007)], Resolution::Micro).into(),
    ];
    let subject = TextSubject::Metric(Pmid(1));
    let requests = [
        Request::Fetch(&fetches[0]),
        Request::Fetch(&fetches[1]),
        Request::LookupNames(&["a.b"]),
        Request::LookupDesc(Pmid(0x0740_000a)),
        Request::LookupDescs(&[Pmid(0x0740_0006), Pmid(0x0740_001c)]),
        Request::InstanceDomain(InDom(0x0740_0002)),
        Request::Traverse("a"),
        Request::Children(""),
        Request::HelpText(TextRequest { subject, kind: TextKind::Help }),
        Request::NamesOf(Pmid(0x0740_0006)),
        Request::Labels(LabelLevel::Item(Pmid(0x0740_0040))),
    ];
    let config = ConnectionConfig { peer, max_reply_bytes: 1 << 20, ..ConnectionConfig::default() };
    let mut connection = Connection::new(config);
    let mut batch = crate::result::ResultBatch::default();
    let mut events = Vec::new();
    let mut rest = stream;
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at(rest.len().min(*size));
        rest = after;
        connection.inbox().extend_from_slice(piece);
        loop {
            let event = match connection.poll() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                // How much had arrived when the surplus was found differs.
                Err(ProtocolError::Unsolicited { .. }) => return events,
                // More of the wrong greeting is shown if more had arrived.
                Err(ProtocolError::NotPmcd { .. }) => return events,
                Err(error) => {
                    events.push(error.to_string());
                    return events;
                }
            };
            events.push(format!("{event:?}"));
            if event == Event::Ready {
                for request in requests {
                    if let Err(error) = connection.request(request) {
                        events.push(error.to_string());
                    }
                }
            }
            if event != Event::Reply {
                continue;
            }
            let frame = match connection.reply() {
                Ok(Reply::Result(frame)) => frame,
                Ok(Reply::Instances(instances)) => {
                    events.push(format!("{:?}", instances.iter().collect::<Vec<_>>()));
                    continue;
                }
                Ok(Reply::Names(names)) => {
                    events.push(format!("{:?}", names.iter().collect::<Vec<_>>()));
                    continue;
                }
                other => {
                    events.push(format!("{other:?}"));
                    continue;
                }
            };
            batch.clear();
            let part = batch.add_part();
            connection.take_result(frame, part);
            for set in part.sets() {
                let blocks: Vec<_> = set.lanes().filter(|_| set.in_blocks).collect();
                let blocks: Vec<_> = blocks.iter().map(|lane| part.block(lane.word)).collect();
                events.push(format!("{set:?} {blocks:?}"));
            }
        }
        if rest.is_empty() {
            return events;
        }
    }
    events
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
