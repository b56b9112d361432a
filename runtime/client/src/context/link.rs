//! A connection to pmcd in use: the state machine with its byte stream.
//!
//! Input: requests. Output: events, each within the time-out. After an error an unknown
//! number of replies is still in the stream. A caller that gets an error from here, or
//! stops waiting for an event, must therefore drop the link.

use std::io;
use std::time::Duration;

use crate::proto::{Connection, ConnectionConfig, Event, ProtocolError, Request};
use crate::transport::{Deadline, Transport};

/// The link cannot be used any more.
#[derive(Debug)]
pub(super) enum LinkError {
    Io(io::Error),
    Timeout(Duration),
    Protocol(ProtocolError),
}

impl From<ProtocolError> for LinkError {
    fn from(error: ProtocolError) -> LinkError {
        LinkError::Protocol(error)
    }
}

/// Number of messages of a handshake that may be read after its time-out. TLS and an
/// authentication have fewer.
const MAX_LATE_ANSWERS: u32 = 8;

pub(super) struct Link<T> {
    pub(super) connection: Connection,
    transport: T,
    timeout: Option<Duration>,
}

impl<T: Transport> Link<T> {
    /// Performs the handshake on a new connection.
    pub(super) async fn establish(
        transport: T,
        config: ConnectionConfig,
        timeout: Option<Duration>,
    ) -> Result<Link<T>, LinkError> {
        let mut link = Link { connection: Connection::new(config), transport, timeout };
        while link.next_event().await? != Event::Ready {}
        let sent = link.send();
        sent.map_err(|error| link.failure(error))?;
        link.connection.release_buffers();
        Ok(link)
    }

    /// Queues a request. It is sent while waiting for the next event.
    pub(super) fn request(&mut self, request: Request<'_>) -> Result<(), LinkError> {
        Ok(self.connection.request(request)?)
    }

    /// Sends what the system accepts and waits for the next event.
    pub(super) async fn next_event(&mut self) -> Result<Event, LinkError> {
        let mut deadline = Deadline::after(T::now(), self.timeout);
        let mut late_answers = 0;
        let mut is_drained = false;
        loop {
            match self.connection.poll() {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(error) => {
                    // The peer of a TLS handshake waits for the alert that it has failed.
                    let _ = self.send();
                    return Err(error.into());
                }
            }
            // The clock is checked once everything that had arrived was read. A peer
            // that sends single bytes without end cannot prolong the wait.
            if is_drained && let Err(error) = deadline.remaining(T::now()) {
                // The messages that were read late may have arrived in time. If the
                // handshake now has something to send, the peer gets another time-out
                // to answer it.
                let asks = !self.connection.is_ready() && !self.connection.outgoing().is_empty();
                if !asks || late_answers == MAX_LATE_ANSWERS {
                    return Err(self.failure(error));
                }
                late_answers += 1;
                deadline = Deadline::after(T::now(), self.timeout);
            }
            match self.transfer(deadline).await {
                Ok(Transfer::Filled) => is_drained = false,
                Ok(Transfer::Partial) => is_drained = true,
                Ok(Transfer::Closed) => return Err(self.connection.closed().into()),
                Err(error) => return Err(self.failure(error)),
            }
        }
    }

    fn failure(&self, error: io::Error) -> LinkError {
        match (error.kind(), self.timeout) {
            (io::ErrorKind::TimedOut, Some(timeout)) => LinkError::Timeout(timeout),
            _ => LinkError::Io(error),
        }
    }

    /// Sends what can be sent now. True if that was everything.
    fn send(&mut self) -> io::Result<bool> {
        while !self.connection.outgoing().is_empty() {
            match self.transport.send_now(self.connection.outgoing())? {
                0 => return Ok(false),
                count => self.connection.sent(count),
            }
        }
        Ok(true)
    }

    /// Sends and receives some bytes.
    async fn transfer(&mut self, deadline: Deadline) -> io::Result<Transfer> {
        // A peer that does not accept more requests may be waiting until its replies
        // are read.
        match self.send() {
            Ok(true) => {}
            Ok(false) if self.transport.wait(deadline).await?.receive => {}
            Ok(false) => return Ok(Transfer::Partial),
            Err(error) => return self.receive_last(error).await,
        }
        let inbox = self.connection.inbox();
        let room = inbox.capacity() - inbox.len();
        Ok(match self.transport.receive(inbox, deadline).await? {
            0 => Transfer::Closed,
            count if count < room => Transfer::Partial,
            _ => Transfer::Filled,
        })
    }

    /// Receives the rest after sending has failed, because it may contain the reason.
    async fn receive_last(&mut self, broken: io::Error) -> io::Result<Transfer> {
        let at_once = Deadline::after(T::now(), Some(Duration::ZERO));
        match self.transport.receive(self.connection.inbox(), at_once).await {
            Ok(0) | Err(_) => Err(broken),
            Ok(_) => Ok(Transfer::Filled),
        }
    }
}

/// The outcome of a transfer.
enum Transfer {
    /// Fewer bytes came than there was room for.
    Partial,
    /// The room was filled, so there may be more.
    Filled,
    /// The stream has ended.
    Closed,
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;
    use crate::pdu::{ErrorPdu, Features, Hello, Pdu, PduType, PmnsNames, Writer};
    use crate::transport::{AsyncSocket, Readiness, Socket, ready};
    use pmderive_core::model::PmStatus;

    /// A peer that sends a greeting, accepts every request, and then sends one byte at
    /// a time of an endless reply.
    struct Drip {
        greeting: Vec<u8>,
        given: usize,
    }

    impl Transport for Drip {
        async fn connect_unix(_: &Path, _: Option<Duration>) -> io::Result<Drip> {
            Err(io::ErrorKind::Unsupported.into())
        }

        async fn connect_tcp(_: &str, _: &[u16], _: Option<Duration>) -> io::Result<Drip> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        async fn receive(&mut self, inbox: &mut Vec<u8>, _: Deadline) -> io::Result<usize> {
            inbox.push(self.greeting.get(self.given).copied().unwrap_or(0));
            self.given += 1;
            Ok(1)
        }

        async fn wait(&mut self, _: Deadline) -> io::Result<Readiness> {
            Ok(Readiness { receive: true, send: true })
        }
    }

    #[test]
    fn a_reply_that_drips_runs_into_the_deadline_of_the_whole() {
        let mut greeting = Vec::new();
        Hello { refusal: None, version: 2, features: Features(0) }.encode(&mut greeting);
        let start = greeting.len();
        Writer::begin(&mut greeting, PduType::PmnsNames).finish();
        greeting[start..start + 4].copy_from_slice(&(64u32 << 20).to_be_bytes());
        let timeout = Some(Duration::from_millis(20));
        let drip = Drip { greeting, given: 0 };
        let mut link =
            ready(Link::establish(drip, ConnectionConfig::default(), timeout)).expect("a greeting");
        link.request(Request::Traverse("")).expect("ready");
        let outcome = ready(link.next_event());
        assert!(matches!(outcome, Err(LinkError::Timeout(_))), "{outcome:?}");
    }

    /// A socket of the runtime, and its peer, which has sent a greeting.
    fn greeted() -> (AsyncSocket, UnixStream) {
        let (ours, mut peer) = UnixStream::pair().expect("two sockets");
        ours.set_nonblocking(true).expect("a socket");
        let mut greeting = Vec::new();
        Hello { refusal: None, version: 2, features: Features(0) }.encode(&mut greeting);
        peer.write_all(&greeting).expect("room");
        (AsyncSocket::Unix(ours.try_into().expect("a runtime")), peer)
    }

    /// Other tasks may occupy an executor's thread for longer than a time-out.
    #[tokio::test(start_paused = true)]
    async fn a_reply_that_is_read_late_is_no_time_out() {
        const TIMEOUT: Duration = Duration::from_secs(10);
        let (socket, mut peer) = greeted();
        let config = ConnectionConfig::default();
        let link = Link::establish(socket, config, Some(TIMEOUT)).await;
        let mut link = link.expect("a greeting");
        let mut reply = Vec::new();
        PmnsNames::encode_names(&["a.b"], &mut reply);
        let most = &reply[..reply.len() - 1];
        for (piece, is_whole) in [(&reply[..], true), (&reply, true), (most, false)] {
            link.request(Request::Traverse("")).expect("ready");
            let mut event = pin!(link.next_event());
            let first = poll_fn(|context| Poll::Ready(event.as_mut().poll(context).is_pending()));
            assert!(first.await, "nothing is there yet");
            peer.write_all(piece).expect("room");
            tokio::time::advance(TIMEOUT * 2).await;
            match event.await {
                Ok(event) => assert!(is_whole && event == Event::Reply, "{event:?}"),
                Err(LinkError::Timeout(timeout)) => assert!(!is_whole && timeout == TIMEOUT),
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// The peer answers only after it has read all requests, which are more than the socket holds.
    #[tokio::test]
    async fn requests_that_the_socket_does_not_hold_are_sent_on() {
        const REQUESTS: usize = 20;
        let (socket, mut peer) = greeted();
        let timeout = Some(Duration::from_secs(60));
        let link = Link::establish(socket, ConnectionConfig::default(), timeout).await;
        let mut link = link.expect("a greeting");
        let name = "n".repeat(60_000);
        for _ in 0..REQUESTS {
            link.request(Request::LookupNames(&[&name])).expect("ready");
        }
        let peer = std::thread::spawn(move || {
            let mut left = name.len() * REQUESTS;
            let mut piece = [0; 4096];
            while left > 0 {
                let count = peer.read(&mut piece).expect("requests");
                left -= piece[..count].iter().filter(|byte| **byte == b'n').count();
            }
            let mut answer = Vec::new();
            ErrorPdu { status: PmStatus::NAME.0 }.encode(&mut answer);
            peer.write_all(&answer.repeat(REQUESTS)).expect("room");
            peer
        });
        for _ in 0..REQUESTS {
            assert_eq!(link.next_event().await.expect("a status"), Event::Failed(PmStatus::NAME));
        }
        peer.join().expect("everything was read");
    }

    /// The greeting is read after the time-out of the handshake. The peer still gets
    /// time for its next answer, but not for ever.
    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_is_read_late_goes_on() {
        const TIMEOUT: Duration = Duration::from_secs(10);
        for answers in [true, false] {
            let (ours, mut peer) = UnixStream::pair().expect("two sockets");
            ours.set_nonblocking(true).expect("a socket");
            let socket = AsyncSocket::Unix(ours.try_into().expect("a runtime"));
            let container = Some("shop".to_owned());
            let config = ConnectionConfig { container, ..ConnectionConfig::default() };
            let mut link = pin!(Link::establish(socket, config, Some(TIMEOUT)));
            let mut greeting = Vec::new();
            let features = Features::CONTAINER;
            Hello { refusal: None, version: 2, features }.encode(&mut greeting);
            let mut reply = Vec::new();
            PmnsNames::encode_names(&["a"], &mut reply);
            for piece in [&[][..], &greeting] {
                peer.write_all(piece).expect("room");
                let is_pending =
                    poll_fn(|context| Poll::Ready(link.as_mut().poll(context).is_pending()));
                assert!(is_pending.await);
                tokio::time::advance(TIMEOUT * 2).await;
            }
            let most = &reply[..reply.len() - 1];
            peer.write_all(if answers { &reply } else { most }).expect("room");
            match link.await {
                Ok(_) => assert!(answers),
                Err(LinkError::Timeout(timeout)) => assert!(!answers && timeout == TIMEOUT),
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    #[test]
    fn what_the_peer_said_last_comes_before_its_end() {
        let (ours, mut peer) = UnixStream::pair().expect("two sockets");
        let mut greeting = Vec::new();
        Hello { refusal: None, version: 2, features: Features(0) }.encode(&mut greeting);
        peer.write_all(&greeting).expect("room");
        let link = Link::establish(Socket::new(ours.into()), ConnectionConfig::default(), None);
        let mut link = ready(link).expect("a greeting");
        let mut status = Vec::new();
        ErrorPdu { status: PmStatus::PERMISSION.0 }.encode(&mut status);
        peer.write_all(&status).expect("room");
        // The peer leaves the credentials unread.
        drop(peer);
        link.request(Request::Traverse("")).expect("ready");
        let event = ready(link.next_event()).expect("a status");
        assert_eq!(event, Event::Failed(PmStatus::PERMISSION));
        link.request(Request::Traverse("")).expect("ready");
        let error = ready(link.next_event()).expect_err("nothing more");
        assert!(
            matches!(&error, LinkError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe)
        );
    }

    #[test]
    fn links_can_be_handed_to_other_threads() {
        fn check<T: Send>() {}
        check::<Link<Socket>>();
    }
}
