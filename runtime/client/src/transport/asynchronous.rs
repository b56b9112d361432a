//! A connected stream socket that waits with tokio.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{Interest, Ready};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout, timeout_at};

use super::socket::{readiness_now, receive_now};
use super::tcp::{begin, outcome, unknown_host};
use super::{Deadline, Readiness, Transport};

/// Longest pause between two attempts to enter the queue of a socket on this machine.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A connected stream socket, for tasks of a tokio runtime with I/O and time enabled.
#[derive(Debug)]
pub enum AsyncSocket {
    /// A socket over the network.
    Tcp(TcpStream),
    /// A socket on this machine.
    Unix(UnixStream),
}

impl AsyncSocket {
    /// Waits until the socket is ready; `None` once the deadline has passed. The socket
    /// may be ready even then: if other tasks kept the thread busy, tokio may see the
    /// time before it sees the received bytes.
    async fn ready(&self, interest: Interest, deadline: Deadline) -> io::Result<Option<Ready>> {
        let ready = async {
            match self {
                AsyncSocket::Tcp(stream) => stream.ready(interest).await,
                AsyncSocket::Unix(stream) => stream.ready(interest).await,
            }
        };
        match deadline.instant() {
            Some(end) => timeout_at(end.into(), ready).await.ok().transpose(),
            None => ready.await.map(Some),
        }
    }

    /// What can be done now, if tokio calls the socket ready for `interest`. tokio still does so
    /// after a read that took everything.
    ///
    /// # Errors
    /// The kind is `WouldBlock` if nothing can be done. tokio knows that from then on.
    fn confirm(&self, interest: Interest) -> io::Result<Readiness> {
        let confirmed = || {
            readiness_now(self).map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => io::ErrorKind::WouldBlock.into(),
                _ => error,
            })
        };
        match self {
            AsyncSocket::Tcp(stream) => stream.try_io(interest, confirmed),
            AsyncSocket::Unix(stream) => stream.try_io(interest, confirmed),
        }
    }
}

impl AsFd for AsyncSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            AsyncSocket::Tcp(stream) => stream.as_fd(),
            AsyncSocket::Unix(stream) => stream.as_fd(),
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::from_std(begin(address)?)?;
    stream.writable().await?;
    outcome(&stream)?;
    Ok(stream)
}

/// Connects to a socket on this machine. If the queue of its listener is full, the system refuses at
/// once and tells nobody when there is room.
async fn connect_local(path: &Path) -> io::Result<UnixStream> {
    let mut pause = Duration::from_millis(1);
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(pause).await,
            connected => return connected,
        }
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Waits for work, but no longer than this; `None` if it is not done then. Bytes that arrived in
/// time count, even if other tasks kept the thread busy until it was too late.
#[doc(hidden)]
pub async fn within<F: Future>(limit: Duration, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    if let Ok(outcome) = timeout(limit, work.as_mut()).await {
        return Some(outcome);
    }
    // tokio may see the time before it sees what has arrived.
    yield_now().await;
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Waits for an attempt to connect, with a time limit.
async fn attempt_within<T>(
    limit: Option<Duration>,
    attempt: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match limit {
        Some(limit) => {
            within(limit, attempt).await.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
        }
        None => attempt.await,
    }
}

impl Transport for AsyncSocket {
    async fn connect_unix(path: &Path, timeout: Option<Duration>) -> io::Result<AsyncSocket> {
        attempt_within(timeout, connect_local(path)).await.map(AsyncSocket::Unix)
    }

    async fn connect_tcp(
        host: &str,
        ports: &[u16],
        timeout: Option<Duration>,
    ) -> io::Result<AsyncSocket> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no port to connect to");
        for port in ports {
            for address in AsyncSocket::lookup(host, *port, timeout).await? {
                match attempt_within(timeout, connect(address)).await {
                    Ok(stream) => return Ok(AsyncSocket::Tcp(stream)),
                    Err(error) => last = error,
                }
            }
        }
        Err(last)
    }

    /// Looks up the name in a thread that tokio keeps for blocking calls.
    async fn lookup(
        host: &str,
        port: u16,
        timeout: Option<Duration>,
    ) -> io::Result<Vec<SocketAddr>> {
        match attempt_within(timeout, lookup_host((host, port))).await {
            Ok(addresses) => Ok(addresses.collect()),
            Err(error) => Err(unknown_host(&error)),
        }
    }

    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = match self {
            AsyncSocket::Tcp(stream) => stream.try_write(bytes),
            AsyncSocket::Unix(stream) => stream.try_write(bytes),
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            sent => sent,
        }
    }

    async fn receive(&mut self, inbox: &mut Vec<u8>, deadline: Deadline) -> io::Result<usize> {
        loop {
            let received = match self {
                AsyncSocket::Tcp(stream) => stream.try_read_buf(inbox),
                AsyncSocket::Unix(stream) => stream.try_read_buf(inbox),
            };
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
            if self.ready(Interest::READABLE, deadline).await?.is_none() {
                return receive_now(&*self, inbox);
            }
        }
    }

    async fn wait(&mut self, deadline: Deadline) -> io::Result<Readiness> {
        loop {
            if self.ready(Interest::READABLE | Interest::WRITABLE, deadline).await?.is_none() {
                return readiness_now(&*self);
            }
            for interest in [Interest::READABLE, Interest::WRITABLE] {
                match self.confirm(interest) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    confirmed => return confirmed,
                }
            }
        }
    }

    /// Tests may stop this clock and advance it.
    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, accept, bind, listen, socket};

    use super::*;

    #[tokio::test]
    async fn a_place_in_a_full_queue_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        bind(&listener, &SocketAddrUnix::new(&path).expect("a short path")).expect("a free name");
        listen(&listener, 0).expect("a queue for one");
        AsyncSocket::connect_unix(&path, None).await.expect("it is free");
        let soon = Some(Duration::from_millis(20));
        let error = AsyncSocket::connect_unix(&path, soon).await.expect_err("it is full");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let late = Some(Duration::from_secs(60));
        let mut waiting = pin!(AsyncSocket::connect_unix(&path, late));
        let first = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending()));
        assert!(first.await);
        accept(&listener).expect("one waits");
        waiting.await.expect("there is room");
    }
}
