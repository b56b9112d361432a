//! The client's end of a connection to a host of a simulated fleet. Requests
//! arrive at once, replies after a delay. Only the clock of the tokio runtime
//! advances time.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pmderive_client::transport::{Deadline, Readiness, Transport};
use tokio::time::{Instant, sleep_until};

use super::fleet::{Network, SimHost};
use super::log::What;
use crate::fake_pmcd::{FakeHost, Flow, Session, first};

/// Longest time until a connection is there, and a reply.
const MOST_DELAY: Duration = Duration::from_millis(20);

/// Requests in bytes that a connection holds.
const BUFFER_BYTES: usize = 64 << 10;

/// A connection, for [`pmderive_client::context::AsyncHostContext`]. The name or
/// address of a host leads to that host of the thread's [`super::Fleet`], on any
/// port.
#[derive(Debug)]
pub struct Socket {
    network: Arc<Network>,
    host: u32,
    session: Session,
    /// The time at which the host's last bytes arrive.
    arrives: Instant,
    /// The end of a pause in the middle of a reply.
    resumes: Option<Instant>,
}

impl Socket {
    pub(super) async fn connect(
        network: Arc<Network>,
        host: u32,
        timeout: Option<Duration>,
    ) -> io::Result<Socket> {
        let limit = timeout.map(|timeout| Instant::now() + timeout);
        let found = network.host(host).ok_or(io::ErrorKind::HostUnreachable)?;
        let answered = Instant::now() + network.delay(host, MOST_DELAY);
        let is_late = |limit: &Instant| *limit < answered;
        let mut until = limit.filter(is_late).or(Some(answered));
        loop {
            let mut changed = pin!(found.pmcd.changed());
            changed.as_mut().enable();
            let now = Instant::now();
            if now >= answered && !found.is_absent() {
                break;
            }
            if limit.is_some_and(|limit| now >= limit) {
                network.note(host, What::GivenUp);
                return Err(io::ErrorKind::TimedOut.into());
            }
            if now >= answered {
                until = limit;
            }
            pause(until, changed).await;
        }
        if found.refuses() {
            network.note(host, What::Refused);
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        network.note(host, What::Connected);
        let session = Session::new(&found.pmcd);
        let arrives = Instant::now() + network.delay(host, MOST_DELAY);
        Ok(Socket { network, host, session, arrives, resumes: None })
    }

    fn sim_host(&self) -> io::Result<&SimHost> {
        self.network.host(self.host).ok_or(io::ErrorKind::HostUnreachable.into())
    }

    /// Lets pmcd act, and logs the result.
    fn with_session<R>(&mut self, act: impl FnOnce(&mut Session) -> R) -> R {
        let counts = |pmcd: &FakeHost| (pmcd.fetches(), pmcd.rules());
        let before = counts(self.session.host());
        let outcome = act(&mut self.session);
        let after = counts(self.session.host());
        if after.0 != before.0 {
            self.network.note_answer(self.host);
        }
        if after.1 < before.1 {
            self.network.note(self.host, What::Struck);
        }
        outcome
    }

    /// Waits until bytes, or the end of the stream, are there.
    async fn arrival(&mut self, deadline: Deadline) -> io::Result<Flow> {
        let limit = deadline.instant().map(Instant::from_std);
        loop {
            let pmcd = Arc::clone(self.session.host());
            let mut changed = pin!(pmcd.changed());
            // From here on, every change is noticed.
            changed.as_mut().enable();
            let now = Instant::now();
            let mut until = None;
            if !self.sim_host()?.is_absent() {
                let flow = self.with_session(Session::flow);
                match flow {
                    Flow::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
                    _ if now < self.arrives => until = Some(self.arrives),
                    Flow::Closed => return Ok(flow),
                    _ if !self.session.outgoing().is_empty() => return Ok(flow),
                    Flow::Waiting(time) => {
                        let resumes = *self.resumes.get_or_insert(now + time);
                        if now >= resumes {
                            self.resumes = None;
                            self.with_session(Session::resume);
                            continue;
                        }
                        until = Some(resumes);
                    }
                    Flow::Open | Flow::Stalled => {}
                }
            }
            if limit.is_some_and(|limit| now >= limit) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let until = match (until, limit) {
                (Some(until), Some(limit)) => Some(until.min(limit)),
                (until, limit) => until.or(limit),
            };
            pause(until, changed).await;
        }
    }
}

/// Waits for a time, or for something to change; without a time, for that alone.
async fn pause(until: Option<Instant>, changed: impl Future) {
    match until {
        Some(until) => drop(first(sleep_until(until), changed).await),
        None => drop(changed.await),
    }
}

impl Transport for Socket {
    async fn connect_unix(_: &Path, _: Option<Duration>) -> io::Result<Socket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn connect_tcp(name: &str, _: &[u16], timeout: Option<Duration>) -> io::Result<Socket> {
        let network = Network::current().ok_or(io::ErrorKind::NetworkDown)?;
        let host = network.find(name).ok_or(io::ErrorKind::HostUnreachable)?;
        Socket::connect(network, host, timeout).await
    }

    /// The address of a name of the fleet, after a delay.
    async fn lookup(name: &str, port: u16, _: Option<Duration>) -> io::Result<Vec<SocketAddr>> {
        let network = Network::current().ok_or(io::ErrorKind::NetworkDown)?;
        let host = network.find(name).ok_or(io::ErrorKind::HostUnreachable)?;
        sleep_until(Instant::now() + network.delay(host, MOST_DELAY)).await;
        match network.host(host) {
            Some(found) if !found.is_forgotten() => Ok(vec![(network.address(host), port).into()]),
            _ => {
                network.note(host, What::Unknown);
                Err(io::ErrorKind::HostUnreachable.into())
            }
        }
    }

    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = Instant::now();
        // Into the void; the connection will be reset.
        if self.sim_host()?.is_absent() {
            return Ok(bytes.len());
        }
        if self.with_session(Session::flow) == Flow::Reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let room = BUFFER_BYTES.saturating_sub(self.session.unread()).min(bytes.len());
        let is_answer = self.session.outgoing().is_empty() && now >= self.arrives;
        self.with_session(|session| session.receive(&bytes[..room]));
        if is_answer {
            self.arrives = now + self.network.delay(self.host, MOST_DELAY);
        }
        Ok(room)
    }

    async fn receive(&mut self, inbox: &mut Vec<u8>, deadline: Deadline) -> io::Result<usize> {
        self.arrival(deadline).await?;
        let room = inbox.capacity() - inbox.len();
        let outgoing = self.session.outgoing();
        let count = room.min(outgoing.len());
        inbox.extend_from_slice(&outgoing[..count]);
        self.with_session(|session| session.sent(count));
        Ok(count)
    }

    async fn wait(&mut self, deadline: Deadline) -> io::Result<Readiness> {
        let send = self.session.unread() < BUFFER_BYTES;
        if !send {
            self.arrival(deadline).await?;
        }
        let flow = self.with_session(Session::flow);
        let receive = !self.session.outgoing().is_empty() || flow != Flow::Open;
        Ok(Readiness { receive, send })
    }

    fn now() -> std::time::Instant {
        Instant::now().into_std()
    }
}
