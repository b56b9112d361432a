//! A connected stream socket of any family that blocks.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};

use super::tcp::{begin, finish, unknown_host};
use super::{Deadline, Readiness, Transport};

/// A connected stream socket in blocking mode.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// The receive time-out that the system has for the socket; `None` for no limit.
    armed: Option<Duration>,
}

/// A wait may end this much later than its deadline. The tolerance saves the system
/// call that sets the time-out to the exact rest.
const SLACK: Duration = Duration::from_millis(50);

impl Socket {
    /// A socket over a connected one without a receive time-out.
    pub fn new(fd: OwnedFd) -> Socket {
        Socket { fd, armed: None }
    }

    /// Makes the system end a receive after `left`, within [`SLACK`].
    fn arm(&mut self, left: Option<Duration>) -> io::Result<()> {
        let fits = match (self.armed, left) {
            (None, None) => true,
            // If the system ends a receive too early, the caller's loop notices and
            // repeats it.
            (Some(armed), Some(left)) => {
                armed <= left.saturating_add(SLACK) && left <= armed.saturating_mul(2)
            }
            _ => false,
        };
        if !fits {
            set_socket_timeout(&self.fd, Timeout::Recv, left)?;
            self.armed = left;
        }
        Ok(())
    }
}

impl Transport for Socket {
    async fn connect_unix(path: &Path, timeout: Option<Duration>) -> io::Result<Socket> {
        let address = SocketAddrUnix::new(path)?;
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The time-out for sending also limits the wait for a place in the listener's
        // queue.
        set_socket_timeout(&fd, Timeout::Send, timeout)?;
        match connect(&fd, &address) {
            Ok(()) => Ok(Socket::new(fd)),
            Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
            Err(error) => Err(error.into()),
        }
    }

    async fn connect_tcp(
        host: &str,
        ports: &[u16],
        timeout: Option<Duration>,
    ) -> io::Result<Socket> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no port to connect to");
        for port in ports {
            for address in Socket::lookup(host, *port, timeout).await? {
                match begin(address).and_then(|stream| finish(stream, timeout)) {
                    Ok(socket) => return Ok(socket),
                    Err(error) => last = error,
                }
            }
        }
        Err(last)
    }

    /// The time-out is not used, because the resolver has its own.
    async fn lookup(host: &str, port: u16, _: Option<Duration>) -> io::Result<Vec<SocketAddr>> {
        let found = (host, port).to_socket_addrs().map(Iterator::collect);
        found.map_err(|error| unknown_host(&error))
    }

    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn receive(&mut self, inbox: &mut Vec<u8>, deadline: Deadline) -> io::Result<usize> {
        loop {
            let Ok(left) = deadline.remaining(Self::now()) else {
                return receive_now(&self.fd, inbox);
            };
            self.arm(left)?;
            let room = rustix::buffer::spare_capacity(inbox);
            match recv(&self.fd, room, RecvFlags::empty()) {
                Ok((count, _)) => return Ok(count),
                // The time-out may have been a little shorter than the deadline.
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn wait(&mut self, deadline: Deadline) -> io::Result<Readiness> {
        loop {
            let Ok(left) = deadline.remaining(Self::now()) else {
                return readiness_now(&self.fd);
            };
            if let Some(readiness) = readiness(&self.fd, left)? {
                return Ok(readiness);
            }
        }
    }
}

/// Appends the bytes in a socket to `inbox`, as many as fit into its spare capacity.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] if there are none.
pub(super) fn receive_now(socket: impl AsFd, inbox: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        let room = rustix::buffer::spare_capacity(inbox);
        match recv(&socket, room, RecvFlags::DONTWAIT) {
            Ok((count, _)) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The operations on a socket that need no waiting.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] if there are none.
pub(super) fn readiness_now(socket: impl AsFd) -> io::Result<Readiness> {
    let found = readiness(socket, Some(Duration::ZERO))?;
    found.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// Waits for at most `limit`; `None` if that has passed or a signal came.
fn readiness(socket: impl AsFd, limit: Option<Duration>) -> io::Result<Option<Readiness>> {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut fds = [PollFd::new(&socket, PollFlags::IN | PollFlags::OUT)];
    match poll(&mut fds, limit.as_ref()) {
        Ok(0) | Err(Errno::INTR) => Ok(None),
        Ok(_) => {
            let found = fds[0].revents();
            let send = found.contains(PollFlags::OUT);
            let broken = PollFlags::HUP | PollFlags::ERR;
            let receive = found.intersects(PollFlags::IN | broken);
            Ok(Some(Readiness { receive, send }))
        }
        Err(error) => Err(error.into()),
    }
}
