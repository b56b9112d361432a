//! Byte streams to a peer, blocking, with a deadline for everything that waits.
//!
//! In go addresses, out comes a [`ByteStream`]; what the bytes mean is the
//! business of [`crate::proto`]. Sending never waits for the peer to read, so
//! that requests can be pipelined without the two ends blocking each other.

mod deadline;
mod socket;
mod tcp;
mod unix;

use std::io;

pub use deadline::Deadline;
pub use socket::Socket;
pub use tcp::connect_tcp;
pub use unix::connect_unix;

/// A stream of bytes in both directions.
pub trait ByteStream: Send {
    /// Sends as many of `bytes` as the system takes at once; 0 when it takes
    /// none at the moment.
    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Waits for bytes and appends them to `inbox`, as many as are there and
    /// its spare capacity holds. 0 at the end of the stream.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when nothing came before the deadline.
    fn receive(&mut self, inbox: &mut Vec<u8>, deadline: Deadline) -> io::Result<usize>;

    /// Waits until bytes can be sent or received, and tells which.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when neither was possible before the deadline.
    fn wait(&mut self, deadline: Deadline) -> io::Result<Readiness>;
}

/// What can be done without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Bytes, the end of the stream or an error can be received.
    pub receive: bool,
    /// Bytes can be sent.
    pub send: bool,
}
