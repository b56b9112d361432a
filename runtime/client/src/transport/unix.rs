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
/// [`io::ErrorKind::NotFound`] if there is no such socket,
/// [`io::ErrorKind::ConnectionRefused`] if no process listens there.
pub fn connect_unix(path: &Path, timeout: Option<Duration>) -> io::Result<Socket> {
    let address = SocketAddrUnix::new(path)?;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The time-out for sending also limits the wait for a place in the listener's
    // queue.
    set_socket_timeout(&fd, Timeout::Send, timeout)?;
    match connect(&fd, &address) {
        Ok(()) => Ok(Socket::new(fd)),
        Err(rustix::io::Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(error.into()),
    }
}
