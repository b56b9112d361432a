//! Byte streams to a peer, with a deadline for every wait.
//!
//! Input: addresses. Output: a [`Transport`]. [`crate::proto`] knows what the bytes
//! mean.
//!
//! Sending never waits for the peer to read, so requests can be pipelined without a
//! deadlock. [`Socket`] waits in the calling thread. [`AsyncSocket`] lets the thread do
//! other things meanwhile. Both share the code on top of them.

mod asynchronous;
mod deadline;
#[cfg(test)]
mod late_tests;
mod socket;
mod tcp;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

pub use asynchronous::{AsyncSocket, within};
pub use deadline::Deadline;
pub use socket::Socket;

/// A stream of bytes in both directions.
///
/// If a transport blocks, its futures are ready when they are first polled (see
/// [`ready`]).
pub trait Transport: Send + Sized {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such socket,
    /// [`io::ErrorKind::ConnectionRefused`] if no process listens there.
    fn connect_unix(
        path: &Path,
        timeout: Option<Duration>,
    ) -> impl Future<Output = io::Result<Self>> + Send;

    /// Connects to the first of `ports` that answers on any address of `host`, which is a
    /// name or a numeric address. `timeout` is for each attempt.
    ///
    /// # Errors
    /// [`io::ErrorKind::HostUnreachable`] if the name has no address; otherwise the error
    /// of the last attempt.
    fn connect_tcp(
        host: &str,
        ports: &[u16],
        timeout: Option<Duration>,
    ) -> impl Future<Output = io::Result<Self>> + Send;

    /// The addresses of a host; [`io::ErrorKind::HostUnreachable`] if it has none.
    /// Transports without names need not implement this.
    fn lookup(
        host: &str,
        port: u16,
        timeout: Option<Duration>,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send {
        let _ = (host, port, timeout);
        async { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// Sends as many of `bytes` as the system accepts at once; 0 if it accepts none at
    /// the moment.
    ///
    /// # Errors
    /// The connection is broken.
    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Waits for bytes and appends them to `inbox`, as many as are there and fit into
    /// its spare capacity. Returns 0 at the end of the stream.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if the deadline has passed and nothing is there.
    /// Received bytes are read even after the deadline.
    fn receive(
        &mut self,
        inbox: &mut Vec<u8>,
        deadline: Deadline,
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Waits until bytes can be sent or received, and returns which.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if the deadline has passed and neither is possible.
    fn wait(&mut self, deadline: Deadline) -> impl Future<Output = io::Result<Readiness>> + Send;

    /// The clock for deadlines.
    fn now() -> Instant {
        Instant::now()
    }
}

/// The operations that need no waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Bytes, the end of the stream, or an error can be received.
    pub receive: bool,
    /// Bytes can be sent.
    pub send: bool,
}

/// The output of a future that waits only for a blocking [`Transport`]. Such a future
/// is ready when it is first polled.
///
/// # Panics
/// If the future is not ready.
pub fn ready<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(outcome) => outcome,
        std::task::Poll::Pending => unreachable!("a transport that blocks is always ready"),
    }
}
