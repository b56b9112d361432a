//! Connections whose addresses are looked up once in a while, not for each host
//! and attempt: after a cut, thousands of hosts come back at once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use pmderive_runtime::transport::{AsyncSocket, Deadline, Readiness, Transport};

/// How long an address is believed.
const KEEP: Duration = Duration::from_secs(60);

/// Names that are kept at most; an engine has fewer hosts.
const MAX_NAMES: usize = 200_000;

/// Addresses by name, and when they were found.
type Known = HashMap<Box<str>, (Instant, Vec<SocketAddr>)>;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// An [`AsyncSocket`] to a host whose address may be known already.
#[derive(Debug)]
pub struct NamedSocket(AsyncSocket);

impl Transport for NamedSocket {
    async fn connect_unix(path: &Path, timeout: Option<Duration>) -> io::Result<NamedSocket> {
        AsyncSocket::connect_unix(path, timeout).await.map(NamedSocket)
    }

    async fn connect_tcp(
        host: &str,
        ports: &[u16],
        timeout: Option<Duration>,
    ) -> io::Result<NamedSocket> {
        // An address needs no looking up.
        if host.parse::<std::net::IpAddr>().is_ok() {
            return AsyncSocket::connect_tcp(host, ports, timeout).await.map(NamedSocket);
        }
        let addresses = match known(host) {
            Some(addresses) => addresses,
            None => {
                let found = AsyncSocket::lookup(host, 0, timeout).await?;
                keep(host, &found);
                found
            }
        };
        let mut failure = io::Error::from(io::ErrorKind::HostUnreachable);
        for address in addresses {
            let address = address.ip().to_string();
            match AsyncSocket::connect_tcp(&address, ports, timeout).await {
                Ok(socket) => return Ok(NamedSocket(socket)),
                Err(error) => failure = error,
            }
        }
        // It may have moved.
        KNOWN.with_borrow_mut(|known| known.remove(host));
        Err(failure)
    }

    async fn lookup(
        host: &str,
        port: u16,
        timeout: Option<Duration>,
    ) -> io::Result<Vec<SocketAddr>> {
        AsyncSocket::lookup(host, port, timeout).await
    }

    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_now(bytes)
    }

    async fn receive(&mut self, inbox: &mut Vec<u8>, deadline: Deadline) -> io::Result<usize> {
        self.0.receive(inbox, deadline).await
    }

    async fn wait(&mut self, deadline: Deadline) -> io::Result<Readiness> {
        self.0.wait(deadline).await
    }
}

fn known(host: &str) -> Option<Vec<SocketAddr>> {
    KNOWN.with_borrow(|known| {
        let (found, addresses) = known.get(host)?;
        (found.elapsed() < KEEP).then(|| addresses.clone())
    })
}

fn keep(host: &str, addresses: &[SocketAddr]) {
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MAX_NAMES {
            known.clear();
        }
        known.insert(host.into(), (Instant::now(), addresses.to_vec()));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_looked_up_once() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let timeout = Some(Duration::from_secs(60));
        NamedSocket::connect_tcp("localhost", &[port], timeout).await.expect("a connection");
        let first = KNOWN.with_borrow(|known| known["localhost"].0);
        NamedSocket::connect_tcp("localhost", &[port], timeout).await.expect("a connection");
        assert_eq!(KNOWN.with_borrow(|known| known["localhost"].0), first);
        drop(listener);
        let refused = NamedSocket::connect_tcp("localhost", &[port], timeout).await;
        assert!(refused.is_err());
        assert!(KNOWN.with_borrow(|known| !known.contains_key("localhost")), "it may have moved");
    }
}
