//! Connections over TCP, version 4 or 6 of IP.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::Socket;

/// Connects to the first of `ports` that answers on any address of `host`: a
/// name, or an address in numbers.
///
/// # Errors
/// [`io::ErrorKind::HostUnreachable`] when the name has no address; else what
/// the last attempt said. `timeout` is for each attempt.
pub fn connect_tcp(host: &str, ports: &[u16], timeout: Option<Duration>) -> io::Result<Socket> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no port to connect to");
    for port in ports {
        for address in lookup(host, *port)? {
            let attempt = match timeout {
                Some(timeout) => TcpStream::connect_timeout(&address, timeout),
                None => TcpStream::connect(address),
            };
            match attempt {
                Ok(stream) => {
                    // A request waits for its reply: it must not wait for more bytes first.
                    stream.set_nodelay(true)?;
                    return Ok(Socket::new(OwnedFd::from(stream)));
                }
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

/// Addresses of a host.
///
/// # Errors
/// [`io::ErrorKind::HostUnreachable`] when it has none.
pub(super) fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found = (host, port).to_socket_addrs().map(Iterator::collect);
    found.map_err(|error| unknown_host(&error))
}

/// What it means that the name of a host could not be looked up: the resolver
/// has no kind of error for that.
pub(super) fn unknown_host(error: &io::Error) -> io::Error {
    io::Error::new(io::ErrorKind::HostUnreachable, error.to_string())
}
