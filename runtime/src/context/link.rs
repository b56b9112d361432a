//! A connection to pmcd in use: the state machine together with its byte stream.
//!
//! In go requests, out come events, each within the time-out. Anything that
//! goes wrong leaves replies of unknown number in the stream: whoever gets an
//! error from here, or does not wait for an event to its end, must drop the link.

use std::io;
use std::time::Duration;

use crate::proto::{Connection, ConnectionConfig, Event, ProtocolError, Request};
use crate::transport::{Deadline, Transport};

/// The link cannot go on.
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

pub(super) struct Link<T> {
    pub(super) connection: Connection,
    transport: T,
    timeout: Option<Duration>,
}

impl<T: Transport> Link<T> {
    /// Performs the handshake on a stream that was just connected.
    pub(super) async fn establish(
        transport: T,
        config: ConnectionConfig,
        timeout: Option<Duration>,
    ) -> Result<Link<T>, LinkError> {
        let mut link = Link { connection: Connection::new(config), transport, timeout };
        while link.next_event().await? != Event::Ready {}
        let sent = link.send();
        sent.map_err(|error| link.failure(error))?;
        Ok(link)
    }

    /// Queues a request; it is sent when the next event is waited for.
    pub(super) fn request(&mut self, request: Request<'_>) -> Result<(), LinkError> {
        Ok(self.connection.request(request)?)
    }

    /// Sends what the system takes and waits for the next event.
    pub(super) async fn next_event(&mut self) -> Result<Event, LinkError> {
        let deadline = Deadline::after(T::now(), self.timeout);
        let mut is_drained = false;
        loop {
            if let Some(event) = self.connection.poll()? {
                return Ok(event);
            }
            // After what had arrived comes the clock: bytes that drip in without
            // end are no reason to go on for ever.
            if is_drained && let Err(error) = deadline.remaining(T::now()) {
                return Err(self.failure(error));
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

    /// Sends what can be sent now; true when that was everything.
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
        // A peer that does not take more requests may be waiting for us to
        // read its replies.
        if !self.send()? && !self.transport.wait(deadline).await?.receive {
            return Ok(Transfer::Partial);
        }
        let inbox = self.connection.inbox();
        let room = inbox.capacity() - inbox.len();
        Ok(match self.transport.receive(inbox, deadline).await? {
            0 => Transfer::Closed,
            count if count < room => Transfer::Partial,
            _ => Transfer::Filled,
        })
    }
}

/// What came of moving bytes.
enum Transfer {
    /// There was room for more bytes than came.
    Partial,
    /// As many came as there was room for: there may be more.
    Filled,
    /// The stream has ended.
    Closed,
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;
    use crate::pdu::{Features, Hello, Pdu, PduType, PmnsNames, Writer};
    use crate::transport::{AsyncSocket, Readiness, Socket, ready};

    /// A peer that greets, takes every request and then gives one byte at a
    /// time of a reply that never ends.
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

    /// Other tasks may keep the thread of an executor for longer than a time-out.
    #[tokio::test(start_paused = true)]
    async fn a_reply_that_is_read_late_is_no_time_out() {
        const TIMEOUT: Duration = Duration::from_secs(10);
        let (ours, mut peer) = UnixStream::pair().expect("two sockets");
        ours.set_nonblocking(true).expect("a socket");
        let socket = AsyncSocket::Unix(ours.try_into().expect("a runtime"));
        let mut greeting = Vec::new();
        Hello { refusal: None, version: 2, features: Features(0) }.encode(&mut greeting);
        peer.write_all(&greeting).expect("room");
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

    #[test]
    fn links_can_be_handed_to_other_threads() {
        fn check<T: Send>() {}
        check::<Link<Socket>>();
    }
}
