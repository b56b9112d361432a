//! A connection to pmcd in use: the state machine together with its byte stream.
//!
//! In go requests, out come events, each within the time-out. Anything that
//! goes wrong leaves replies of unknown number in the stream: whoever gets an
//! error from here must drop the link.

use std::io;
use std::time::Duration;

use crate::proto::{Connection, ConnectionConfig, Event, ProtocolError, Request};
use crate::transport::{ByteStream, Deadline};

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

pub(super) struct Link {
    pub(super) connection: Connection,
    stream: Box<dyn ByteStream>,
    timeout: Option<Duration>,
}

impl Link {
    /// Performs the handshake on a stream that was just connected.
    pub(super) fn establish(
        stream: Box<dyn ByteStream>,
        config: ConnectionConfig,
        timeout: Option<Duration>,
    ) -> Result<Link, LinkError> {
        let mut link = Link { connection: Connection::new(config), stream, timeout };
        while link.next_event()? != Event::Ready {}
        let sent = link.send();
        sent.map_err(|error| link.failure(error))?;
        Ok(link)
    }

    /// Queues a request; it is sent when the next event is waited for.
    pub(super) fn request(&mut self, request: Request<'_>) -> Result<(), LinkError> {
        Ok(self.connection.request(request)?)
    }

    /// Sends what the system takes and waits for the next event.
    pub(super) fn next_event(&mut self) -> Result<Event, LinkError> {
        let deadline = Deadline::after(self.timeout);
        loop {
            if let Some(event) = self.connection.poll()? {
                return Ok(event);
            }
            match self.transfer(deadline) {
                Ok(true) => {}
                Ok(false) => return Err(self.connection.closed().into()),
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
            match self.stream.send_now(self.connection.outgoing())? {
                0 => return Ok(false),
                count => self.connection.sent(count),
            }
        }
        Ok(true)
    }

    /// Sends and receives some bytes; false at the end of the stream.
    fn transfer(&mut self, deadline: Deadline) -> io::Result<bool> {
        // A peer that does not take more requests may be waiting for us to
        // read its replies.
        if !self.send()? && !self.stream.wait(deadline)?.receive {
            return Ok(true);
        }
        Ok(self.stream.receive(self.connection.inbox(), deadline)? > 0)
    }
}
