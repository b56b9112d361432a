//! The server's end of one connection: bytes in, bytes out.
//!
//! A [`Session`] frames requests, follows the handshake, and applies its host's
//! rules to each reply. `answers` and `fetch` make the replies. A session
//! touches no socket and no clock, so tests can couple it with a client's state
//! machine in memory.

use std::sync::Arc;
use std::time::Duration;

use pmderive_client::pdu::{
    Attr, CONTAINER_KEY, Credential, Creds, ErrorPdu, Features, Header, Hello, MAX_REQUEST_BYTES,
    Pdu, PduType,
};
use pmderive_core::model::PmStatus;

use super::answers::{Answer, answer};
use super::fault::{Fault, Utterance};
use super::fetch::Admitted;
use super::host::FakeHost;
use super::outbox::{Outbox, Stop};

/// Bytes of replies beyond which no further request is looked at until the
/// client has read some.
const MAX_WAITING: usize = 256 << 10;

/// Longest value of an attribute, in bytes.
const MAX_ATTRIBUTE: usize = 4095;

/// The server's end of a connection.
#[derive(Debug)]
pub struct Session {
    host: Arc<FakeHost>,
    /// Number of this connection on the host.
    number: u64,
    phase: Phase,
    inbox: Vec<u8>,
    outbox: Outbox,
    client: Client,
    /// True since pmcd was seen stopped.
    is_stopped: bool,
    /// The host's counts when the connection last looked.
    drops: u64,
    resumptions: u64,
}

/// pmcd's state of a client.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub container: Option<Box<str>>,
    /// Profiles by number of the context.
    pub profiles: Vec<(i32, Admitted)>,
    /// Number of the host's notices that it has got.
    pub notices: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// pmcd does not know of the connection yet.
    Queued,
    /// The credentials are due.
    Credentials,
    /// The name of the container is due.
    Container,
    Ready,
    /// The next PDU ends the connection.
    Doomed,
    /// The client's further bytes do not matter.
    Over,
}

/// The next action of the code that moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Send the outgoing bytes, then wait for the client.
    Open,
    /// Wait until [`Session::resume`] is due; send nothing meanwhile.
    Stalled,
    /// The same, but call [`Session::resume`] after this time.
    Waiting(Duration),
    /// Close the stream.
    Closed,
    /// Close the connection by a reset.
    Reset,
}

impl Session {
    /// A connection that a client has just made; the greeting is outgoing.
    pub fn new(host: &Arc<FakeHost>) -> Session {
        let mut state = host.lock();
        let mut session = Session {
            host: Arc::clone(host),
            number: state.connect(),
            phase: Phase::Queued,
            inbox: Vec::new(),
            outbox: Outbox::default(),
            is_stopped: state.is_stopped(),
            client: Client { notices: state.notices(), ..Client::default() },
            drops: state.drops(),
            resumptions: state.resumptions(),
        };
        drop(state);
        if !session.is_stopped {
            session.greet();
        }
        session
    }

    fn greet(&mut self) {
        self.phase = Phase::Credentials;
        let mut state = self.host.lock();
        let mut greeting = Vec::new();
        Hello { refusal: None, version: 2, features: state.features }.encode(&mut greeting);
        let fault = state.strike(self.number, Utterance::Greeting);
        drop(state);
        self.utter(greeting, fault, |status, out| {
            let features = Features::default();
            Hello { refusal: Some(status), version: 0, features }.encode(out);
        });
    }

    /// Accepts bytes from the client.
    pub fn receive(&mut self, bytes: &[u8]) {
        // Bytes after a restart are too late.
        if self.flow() != Flow::Reset && self.phase != Phase::Over {
            self.inbox.extend_from_slice(bytes);
            self.work();
        }
    }

    /// Bytes for the client that can be sent now.
    pub fn outgoing(&self) -> &[u8] {
        self.outbox.outgoing()
    }

    /// Notes that this many of the outgoing bytes were sent.
    pub fn sent(&mut self, count: usize) {
        self.outbox.sent(count);
        self.work();
    }

    /// The next action. Ask again after each call of another method, and
    /// whenever the host may have changed.
    pub fn flow(&mut self) -> Flow {
        let (drops, resumptions, is_stopped) = {
            let state = self.host.lock();
            (state.drops(), state.resumptions(), state.is_stopped())
        };
        if drops != self.drops {
            self.phase = Phase::Over;
            return Flow::Reset;
        }
        if is_stopped != self.is_stopped {
            self.is_stopped = is_stopped;
            if self.phase == Phase::Queued {
                self.greet();
            }
            self.work();
        }
        if resumptions != self.resumptions {
            self.resumptions = resumptions;
            self.resume();
        }
        match self.outbox.stopped() {
            None | Some(Stop::Endless(_)) => Flow::Open,
            Some(Stop::Stall) => Flow::Stalled,
            Some(Stop::Wait(time)) => Flow::Waiting(*time),
            Some(Stop::Close) => Flow::Closed,
            Some(Stop::Reset) => Flow::Reset,
        }
    }

    /// Resumes after a stall.
    pub fn resume(&mut self) {
        self.outbox.resume();
        self.work();
    }

    /// Number of its host's notices that the client has got.
    pub(super) fn seen_notices(&self) -> usize {
        self.client.notices
    }

    /// Number of this connection on its host, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The host.
    pub fn host(&self) -> &Arc<FakeHost> {
        &self.host
    }

    /// Bytes of unanswered requests. Either the rest is missing, or the client
    /// must first read replies.
    pub fn unread(&self) -> usize {
        self.inbox.len()
    }

    /// Answers the requests that are there.
    fn work(&mut self) {
        if self.is_stopped {
            return;
        }
        let mut done = 0;
        while self.phase != Phase::Over && self.outbox.waiting() < MAX_WAITING {
            let unread = self.inbox.get(done..).unwrap_or_default();
            let Ok(header) = Header::peek(unread, MAX_REQUEST_BYTES) else {
                self.end(Stop::Reset);
                break;
            };
            let Some(header) = header else { break };
            if header.code.cast_signed() <= 0 {
                self.end(Stop::Reset);
                break;
            }
            let Some(pdu) = unread.get(..header.len).map(<[u8]>::to_vec) else { break };
            done += header.len;
            self.request(header.code, &pdu);
        }
        if self.phase == Phase::Over {
            self.inbox = Vec::new();
        } else {
            self.inbox.drain(..done);
        }
    }

    fn end(&mut self, stop: Stop) {
        self.phase = Phase::Over;
        self.outbox.stop(stop);
    }

    fn request(&mut self, code: u32, pdu: &[u8]) {
        let kind = PduType::from_code(code);
        if let Some(kind) = kind {
            self.host.lock().count(kind);
        }
        match (self.phase, kind) {
            (Phase::Over | Phase::Queued, _) => {}
            (Phase::Credentials, Some(PduType::Creds)) | (Phase::Ready, Some(PduType::Creds)) => {
                self.credentials(pdu);
                let mut state = self.host.lock();
                let fault = state.strike(self.number, Utterance::Nothing(PduType::Creds));
                drop(state);
                self.reply(Vec::new(), fault);
            }
            (Phase::Credentials | Phase::Doomed, _) => self.end(Stop::Close),
            (Phase::Container, _) => {
                self.phase = Phase::Ready;
                match Attr::decode(pdu) {
                    Ok(Attr { key: CONTAINER_KEY, value }) if value.len() <= MAX_ATTRIBUTE => {
                        self.client.container = Some(String::from_utf8_lossy(value).into());
                    }
                    _ => self.fail(PmStatus::IPC),
                }
            }
            (Phase::Ready, kind) => self.answer(kind, pdu),
        }
    }

    fn fail(&mut self, status: PmStatus) {
        ErrorPdu { status: status.0 }.encode(self.outbox.buffer());
    }

    fn credentials(&mut self, pdu: &[u8]) {
        let Ok(creds) = Creds::decode(pdu) else {
            self.phase = Phase::Doomed;
            self.fail(PmStatus::IPC);
            return;
        };
        let wrong = |one: &Credential| one.kind != 1 || one.version == 0;
        if creds.credentials.is_empty() || creds.credentials.iter().any(wrong) {
            self.phase = Phase::Doomed;
            return;
        }
        let flags =
            creds.credentials.iter().fold(Features::default(), |all, one| all.with(one.flags));
        self.phase = if flags.has(Features::CONTAINER) { Phase::Container } else { Phase::Ready };
        const SECURE_ACK: Features = Features(0x0010);
        const COMPRESS: Features = Features(0x0002);
        const SERVER_ONLY: [Features; 3] = [Features::LABELS, Features::HIGHRES, Features::DESCS];
        if flags.has(Features::SECURE) {
            self.fail(PmStatus::NOTCONN);
            if flags.has(SECURE_ACK) {
                self.fail(PmStatus::NOTCONN);
            }
        } else if flags.has(COMPRESS) {
            const EOPNOTSUPP: PmStatus = PmStatus(-95);
            self.fail(EOPNOTSUPP);
        } else if SERVER_ONLY.iter().any(|feature| flags.has(*feature)) {
            self.fail(PmStatus::IPC);
        }
    }

    fn answer(&mut self, kind: Option<PduType>, pdu: &[u8]) {
        let mut state = self.host.lock();
        let answer = match kind {
            Some(kind) => answer(&self.host, &mut state, &mut self.client, kind, pdu),
            None => Answer::Failed(PmStatus::IPC),
        };
        let mut reply = Vec::new();
        let utterance = match answer {
            Answer::None => kind.map(Utterance::Nothing),
            Answer::Reply(bytes) => {
                reply = bytes;
                kind.map(Utterance::Reply)
            }
            Answer::Failed(status) => {
                ErrorPdu { status: status.0 }.encode(&mut reply);
                kind.map(Utterance::Reply)
            }
        };
        let fault = utterance.and_then(|utterance| state.strike(self.number, utterance));
        drop(state);
        self.reply(reply, fault);
    }

    fn reply(&mut self, reply: Vec<u8>, fault: Option<Fault>) {
        self.utter(reply, fault, |status, out| ErrorPdu { status: status.0 }.encode(out));
    }

    /// Sends a message, unchanged or as the fault changes it. `refuse` writes a
    /// refusal in its place.
    fn utter(
        &mut self,
        mut pdu: Vec<u8>,
        fault: Option<Fault>,
        refuse: impl Fn(PmStatus, &mut Vec<u8>),
    ) {
        let greeting = self.phase == Phase::Credentials;
        let Some(fault) = fault else { return self.outbox.push_all(pdu) };
        match fault {
            Fault::Stall { after } => self.interrupted(&pdu, after, Stop::Stall),
            Fault::Late { after, by } => self.interrupted(&pdu, after, Stop::Wait(by)),
            Fault::Drip { every } => {
                for byte in pdu {
                    self.outbox.push(&[byte]);
                    self.outbox.stop(Stop::Wait(every));
                }
            }
            Fault::Close { after } => {
                self.outbox.push(&pdu[..after.min(pdu.len())]);
                self.end(Stop::Close);
            }
            Fault::Reset { after } => {
                self.outbox.push(&pdu[..after.min(pdu.len())]);
                self.end(Stop::Reset);
            }
            Fault::Garble(garble) => {
                garble.apply(&mut pdu);
                self.outbox.push(&pdu);
            }
            Fault::Replace(bytes) => self.outbox.push(&bytes),
            Fault::Append(bytes) => {
                self.outbox.push(&pdu);
                self.outbox.push(&bytes);
            }
            Fault::Endless { after, piece } => {
                self.outbox.push(&pdu[..after.min(pdu.len())]);
                self.end(Stop::Endless(piece));
            }
            Fault::Status(status) => {
                refuse(status, self.outbox.buffer());
                if greeting {
                    self.end(Stop::Reset);
                }
            }
            Fault::Notices(statuses) => {
                for status in statuses {
                    ErrorPdu { status }.encode(self.outbox.buffer());
                }
                self.outbox.push(&pdu);
            }
        }
    }

    /// Sends a message with a stop in the middle.
    fn interrupted(&mut self, pdu: &[u8], after: usize, stop: Stop) {
        let (before, rest) = pdu.split_at(after.min(pdu.len()));
        self.outbox.push(before);
        self.outbox.stop(stop);
        self.outbox.push(rest);
    }
}
