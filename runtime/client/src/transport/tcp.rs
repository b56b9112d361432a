//! TCP connections over IPv4 or IPv6.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

use super::{Deadline, Socket};

/// Begins to connect. The socket does not block. Once it is writable, [`outcome`] tells
/// the result.
pub(super) fn begin(address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // A request must not wait for more bytes, because its reply is awaited.
    sockopt::set_tcp_nodelay(&fd, true)?;
    match connect(&fd, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(fd)),
        Err(error) => Err(error.into()),
    }
}

/// The result of an attempt that is over.
///
/// A connection that was made and has since been reset counts as a success, because the
/// peer's last words can still be read. pmcd resets a connection (`SO_LINGER` without
/// time) directly after it has said why it refuses the connection.
pub(super) fn outcome(stream: impl AsFd) -> io::Result<()> {
    match sockopt::socket_error(stream)? {
        Ok(()) | Err(Errno::CONNRESET | Errno::PIPE) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until an attempt is over.
pub(super) fn finish(stream: TcpStream, timeout: Option<Duration>) -> io::Result<Socket> {
    let deadline = Deadline::after(Instant::now(), timeout);
    loop {
        let left = deadline.remaining(Instant::now())?;
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&stream, PollFlags::OUT)], left.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    outcome(&stream)?;
    stream.set_nonblocking(false)?;
    Ok(Socket::new(OwnedFd::from(stream)))
}

/// The error for the name of a host that could not be looked up. The resolver has no
/// kind of its own for that.
pub(super) fn unknown_host(error: &io::Error) -> io::Error {
    io::Error::new(io::ErrorKind::HostUnreachable, error.to_string())
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;
    use crate::transport::{Transport, ready};

    #[test]
    fn what_a_peer_said_before_a_reset_is_there() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let attempt = begin(listener.local_addr().expect("an address")).expect("an attempt");
        reset_after(&listener, b"no more clients");
        let mut socket = finish(attempt, Some(Duration::from_secs(60))).expect("a connection");
        let mut inbox = Vec::with_capacity(100);
        let deadline = Deadline::after(Instant::now(), None);
        assert_eq!(ready(socket.receive(&mut inbox, deadline)).expect("the words"), 15);
        assert_eq!(inbox, b"no more clients");
    }

    /// Accepts a connection, says something, and resets it.
    pub(in super::super) fn reset_after(listener: &TcpListener, words: &[u8]) {
        let (mut peer, _) = listener.accept().expect("a client");
        peer.write_all(words).expect("room");
        sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).expect("a socket");
    }

    #[test]
    fn nobody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        for timeout in [None, Some(Duration::from_secs(60))] {
            let error =
                ready(Socket::connect_tcp("127.0.0.1", &[port], timeout)).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
    }
}
