//! Connections to a unix socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::Socket;

/// Connects to the socket at `path`.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] without such a socket,
/// [`io::ErrorKind::ConnectionRefused`] when no one listens there.
pub fn connect_unix(path: &Path, timeout: Option<Duration>) -> io::Result<Socket> {
    let address = SocketAddrUnix::new(path)?;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The time-out of sends is also that of the wait for a place in the queue
    // of the listener.
    set_socket_timeout(&fd, Timeout::Send, timeout)?;
    match connect(&fd, &address) {
        Ok(()) => Ok(Socket::new(fd)),
        Err(rustix::io::Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(error.into()),
    }
}
