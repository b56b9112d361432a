//! State of one connection to pmcd: requests under way and replies due.
//!
//! Received bytes go into [`Connection::inbox`], events come out of
//! [`Connection::poll`], and [`Connection::outgoing`] are the bytes to send. Nothing
//! here waits: if more bytes are needed, the answer is `Ok(None)`. After an error the
//! connection stays broken, because no later byte can be assigned to a request.

use std::collections::VecDeque;
use std::ops::Range;

use pmderive_core::model::{InstanceProfile, PmStatus, StateChange};
use pmderive_core::result::{ResultBatch, ResultPart, Spare};

use super::config::ConnectionConfig;
use super::error::ProtocolError;
use super::handshake::Phase;
use super::proxy;
use super::request::{ExpectedReply, Reply, Request};
use super::sasl::Sasl;
use super::tls::TlsChannel;
use crate::pdu::{ErrorPdu, Features, Header, Pdu, PduType, PmnsNames, Profile, ResultFrame};

/// Received messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Exhaustive on purpose: a caller must handle each event, and the compiler
// reports a missing one.
pub enum Event {
    /// The handshake is complete, and requests may be made.
    Ready,
    /// Something changed. This belongs to the fetch whose reply comes next.
    Changed(StateChange),
    /// The reply to the oldest request under way; see [`Connection::reply`].
    Reply,
    /// The oldest request under way failed with this status.
    Failed(PmStatus),
}

/// Maximum number of notices of changes before one result.
const MAX_NOTICES: u32 = 16;

/// Room in bytes for a read while the size of the reply is unknown.
const READ_BYTES: usize = 16 << 10;

/// Maximum number of bytes that are reserved at once because a header announces them.
const GROWTH_BYTES: usize = 64 << 10;

/// The client's end of a connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) config: ConnectionConfig,
    pub(super) phase: Phase,
    pub(super) features: Features,
    pub(super) inbox: Vec<u8>,
    /// The PDU that was delivered last. The bytes after it were not looked at yet.
    pub(super) latest: Range<usize>,
    /// The request that `latest` answers.
    answered: Option<ExpectedReply>,
    pub(super) outbox: Vec<u8>,
    sent: usize,
    pub(super) expected: VecDeque<ExpectedReply>,
    notices: u32,
    /// The encoded request that tells pmcd which instances to deliver.
    profile: Vec<u8>,
    profile_sent: bool,
    /// Encryption, once it has begun.
    pub(super) tls: Option<TlsChannel>,
    pub(super) sasl: Option<Box<Sasl>>,
}

impl Connection {
    /// A new connection, before its first byte.
    pub fn new(config: ConnectionConfig) -> Connection {
        let mut profile = Vec::new();
        Profile::include_all(0).encode(&mut profile);
        let (phase, opening) = match config.forward {
            Some(_) => (Phase::Proxy, proxy::OPENING),
            None => (Phase::Greeting, &[][..]),
        };
        Connection {
            config,
            phase,
            features: Features::default(),
            inbox: Vec::new(),
            latest: 0..0,
            answered: None,
            outbox: opening.to_vec(),
            sent: 0,
            expected: VecDeque::new(),
            notices: 0,
            profile,
            profile_sent: false,
            tls: None,
            sasl: None,
        }
    }

    /// The features that pmcd offers; none before its greeting.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Number of requests whose replies are due.
    pub fn pending(&self) -> usize {
        self.expected.len()
    }

    /// True from [`Event::Ready`] on, until an error occurs.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// The bytes to send.
    pub fn outgoing(&self) -> &[u8] {
        &self.outbox[self.sent..]
    }

    /// Notes that the first `count` bytes of [`Connection::outgoing`] were sent.
    pub fn sent(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.outbox.len());
        if self.sent == self.outbox.len() {
            self.outbox.clear();
            self.sent = 0;
        }
    }

    /// The buffer to which received bytes must be appended; it has room for some. The
    /// reply that was delivered last is gone afterwards.
    ///
    /// The room depends on what has arrived, not on what a header announces.
    pub fn inbox(&mut self) -> &mut Vec<u8> {
        self.inbox.drain(..self.latest.end);
        self.latest = 0..0;
        let have = self.inbox.len();
        let room = match Header::peek(&self.inbox, self.config.max_reply_bytes) {
            Ok(Some(header)) => header.len.saturating_sub(have).min(have.max(GROWTH_BYTES)).max(1),
            _ => READ_BYTES,
        };
        let inbox = match &mut self.tls {
            Some(tls) => &mut tls.received,
            None => &mut self.inbox,
        };
        if inbox.capacity() - inbox.len() < room.min(READ_BYTES) {
            inbox.reserve(room);
        }
        inbox
    }

    /// Makes pmcd deliver the instances of a profile from the next fetch on. The
    /// profile must fit into one request ([`Profile::fits`]). Without this call, pmcd
    /// delivers all instances.
    pub fn set_profile(&mut self, profile: &InstanceProfile) {
        let mut encoded = Vec::new();
        Profile::of(0, profile).encode(&mut encoded);
        if encoded != self.profile {
            self.profile = encoded;
            self.profile_sent = false;
        }
    }

    /// Queues a request. Earlier requests need not be answered yet. The first fetch,
    /// and the first one after a change of the profile, also sends the profile.
    ///
    /// # Errors
    /// The handshake is not complete, or an error occurred before.
    pub fn request(&mut self, request: Request<'_>) -> Result<(), ProtocolError> {
        if self.phase != Phase::Ready {
            return Err(ProtocolError::NotReady);
        }
        // Unexpected bytes would be mistaken for the reply.
        self.refuse_unsolicited().inspect_err(|_| self.phase = Phase::Broken)?;
        let with_profile = matches!(request, Request::Fetch(_)) && !self.profile_sent;
        let profile = if with_profile { self.profile.clone() } else { Vec::new() };
        let mut expected = self.queue(|out| {
            out.extend_from_slice(&profile);
            request.encode(out)
        })?;
        self.profile_sent |= with_profile;
        if let ExpectedReply::Result { after_profile, .. } = &mut expected {
            *after_profile = with_profile;
        }
        self.expected.push_back(expected);
        Ok(())
    }

    /// The next event, if it has arrived completely. The reply that was delivered
    /// before is gone afterwards.
    ///
    /// # Errors
    /// The peer violates the protocol or refuses the connection.
    pub fn poll(&mut self) -> Result<Option<Event>, ProtocolError> {
        let event = self.decrypt().and_then(|()| self.next_event());
        if event.is_err() {
            self.phase = Phase::Broken;
        }
        event
    }

    /// The error that the end of the stream means at this point.
    pub fn closed(&mut self) -> ProtocolError {
        let phase = std::mem::replace(&mut self.phase, Phase::Broken);
        self.closed_during(phase)
    }

    /// Decodes the reply that [`Event::Reply`] announced.
    ///
    /// # Errors
    /// The reply is malformed or does not fit the request.
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

    /// Adds the values that [`Event::Reply`] announced to a batch as columns, if they
    /// differ only in numbers from earlier ones for the list with that identity.
    /// Otherwise [`Connection::reply`] decodes them.
    pub(crate) fn add_as_before(&mut self, list: u64, batch: &mut ResultBatch) -> bool {
        let Some(ExpectedReply::Result { request, .. }) = &self.answered else { return false };
        let pdu = self.inbox.get(self.latest.clone()).unwrap_or_default();
        let is_added = request.add_as_before(pdu, list, batch);
        if is_added {
            self.answered = None;
        }
        is_added
    }

    /// Lets a batch record the values of [`Reply::Result`], before they become its
    /// next part.
    pub(crate) fn notice(&self, frame: ResultFrame, list: u64, batch: &mut ResultBatch) {
        let pdu = self.inbox.get(self.latest.clone()).unwrap_or_default();
        frame.notice(list, pdu, batch);
    }

    /// Moves the values of [`Reply::Result`] into a part. The part's old buffer becomes
    /// the inbox.
    pub fn take_result(&mut self, frame: ResultFrame, part: &mut ResultPart) {
        let Range { start, end } = self.latest.clone();
        part.timestamp = frame.timestamp;
        let wire = part.set_wire();
        std::mem::swap(&mut self.inbox, &mut wire.bytes);
        self.inbox.extend_from_slice(wire.bytes.get(end..).unwrap_or_default());
        wire.bytes.truncate(end);
        self.latest = 0..0;
        self.answered = None;
        wire.first_set = start + frame.first_set;
        wire.set_count = frame.set_count;
        // An offset in memory is far below the limit.
        wire.block_origin = i64::try_from(start).unwrap_or(i64::MAX);
    }

    /// Uses the lent buffers to receive and send from now on, unless there are bytes in
    /// the connection's own buffers.
    pub(crate) fn lend_buffers(&mut self, buffers: &mut Spare) {
        if self.inbox.is_empty() {
            std::mem::swap(&mut self.inbox, &mut buffers.inbox);
        }
        if self.outbox.is_empty() {
            std::mem::swap(&mut self.outbox, &mut buffers.outbox);
        }
    }

    /// Returns the buffers, emptied, unless bytes wait in them. Most connections are
    /// idle, so few buffers are in use. The reply that was delivered last is gone
    /// afterwards.
    pub(crate) fn return_buffers(&mut self, buffers: &mut Spare) {
        if self.unread().is_empty() {
            self.inbox.clear();
            self.latest = 0..0;
            self.answered = None;
            buffers.inbox = std::mem::take(&mut self.inbox);
        }
        if self.outbox.is_empty() {
            buffers.outbox = std::mem::take(&mut self.outbox);
        }
    }

    /// Frees all empty buffers, for example after many questions at once. A fetch needs
    /// only little besides lent buffers; the next one allocates it again and it is
    /// kept.
    pub fn release_buffers(&mut self) {
        self.return_buffers(&mut Spare::default());
        if self.expected.is_empty() {
            self.expected = VecDeque::new();
        }
        if let Some(tls) = &mut self.tls {
            tls.release_buffers();
        }
    }

    /// Appends what `encode` writes to the bytes to send, encrypted once TLS has begun.
    pub(super) fn queue<T>(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> T,
    ) -> Result<T, ProtocolError> {
        match &mut self.tls {
            Some(tls) => tls.seal(&mut self.outbox, encode),
            None => Ok(encode(&mut self.outbox)),
        }
    }

    fn decrypt(&mut self) -> Result<(), ProtocolError> {
        match &mut self.tls {
            Some(tls) if !tls.received.is_empty() => tls.open(&mut self.inbox, &mut self.outbox),
            _ => Ok(()),
        }
    }

    /// The bytes that were received but not looked at yet.
    pub(super) fn unread(&self) -> &[u8] {
        self.inbox.get(self.latest.end..).unwrap_or_default()
    }

    fn next_event(&mut self) -> Result<Option<Event>, ProtocolError> {
        self.answered = None;
        if !matches!(self.phase, Phase::Verifying | Phase::Ready) {
            match self.shake_hands()? {
                None if self.phase == Phase::Verifying => {}
                outcome => return Ok(outcome),
            }
        }
        self.refuse_unsolicited()?;
        self.refuse_other_replies()?;
        let Some(code) = self.next_pdu(self.config.max_reply_bytes)? else { return Ok(None) };
        if code == PduType::Error.code() {
            let ErrorPdu { status } = ErrorPdu::decode(self.latest_pdu())?;
            return self.failed(status).map(Some);
        }
        self.answer().map(Some)
    }

    /// Fails if bytes have arrived while no reply is due.
    fn refuse_unsolicited(&self) -> Result<(), ProtocolError> {
        match self.unread().len() {
            bytes if bytes > 0 && self.expected.is_empty() => {
                Err(ProtocolError::Unsolicited { bytes })
            }
            _ => Ok(()),
        }
    }

    /// Fails if the header of the next PDU is not that of the due reply. No caller then
    /// waits for megabytes of a wrong reply.
    fn refuse_other_replies(&self) -> Result<(), ProtocolError> {
        let Some(header) = Header::peek(self.unread(), self.config.max_reply_bytes)? else {
            return Ok(());
        };
        let Some(due) = self.expected.front().map(ExpectedReply::pdu_type) else { return Ok(()) };
        if header.code == PduType::Error.code() {
            return Ok(ErrorPdu::check_length(header.len)?);
        }
        if header.code != due.code() {
            return Err(ProtocolError::UnexpectedReply { found: header.code, due });
        }
        Ok(())
    }

    /// Moves to the next PDU if it has arrived completely. Returns the number of its
    /// type.
    pub(super) fn next_pdu(&mut self, limit: usize) -> Result<Option<u32>, ProtocolError> {
        self.latest.start = self.latest.end;
        let unread = self.unread();
        let Some(header) = Header::peek(unread, limit)? else { return Ok(None) };
        if unread.len() < header.len {
            return Ok(None);
        }
        self.latest.end += header.len;
        Ok(Some(header.code))
    }

    /// The PDU that [`Connection::next_pdu`] moved to.
    pub(super) fn latest_pdu(&self) -> &[u8] {
        self.inbox.get(self.latest.clone()).unwrap_or_default()
    }

    fn failed(&mut self, status: i32) -> Result<Event, ProtocolError> {
        if self.phase == Phase::Verifying && status < 0 {
            return Err(self.rejected(status));
        }
        let fetch = matches!(self.expected.front(), Some(ExpectedReply::Result { .. }));
        if status == 0 && matches!(self.expected.front(), Some(ExpectedReply::Stored)) {
            self.notices = 0;
            self.answered = self.expected.pop_front();
            return Ok(Event::Reply);
        }
        if status >= 0 {
            if status == 0 || !fetch {
                return Err(ProtocolError::UnexpectedStatus { status });
            }
            self.notices += 1;
            if self.notices > MAX_NOTICES {
                return Err(ProtocolError::TooManyNotices { limit: MAX_NOTICES });
            }
            return Ok(Event::Changed(StateChange::of_bits(status)));
        }
        self.notices = 0;
        match self.expected.pop_front() {
            // If this answers the profile, the reply to the fetch is still to come.
            Some(ExpectedReply::Result { after_profile: true, .. }) => {
                Err(ProtocolError::ProfileOrFetch(PmStatus(status)))
            }
            _ => Ok(Event::Failed(PmStatus(status))),
        }
    }

    fn answer(&mut self) -> Result<Event, ProtocolError> {
        let Some(expected) = self.expected.pop_front() else {
            return Err(ProtocolError::NotReady);
        };
        self.notices = 0;
        if self.phase == Phase::Verifying {
            PmnsNames::decode(self.latest_pdu())?;
            self.phase = Phase::Ready;
            return Ok(Event::Ready);
        }
        self.answered = Some(expected);
        Ok(Event::Reply)
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
