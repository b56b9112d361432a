//! Connections to fake hosts without sockets, and with a clock that stands
//! still. A client's whole context runs against them, faults and time-outs
//! included, and nothing ever waits.
//!
//! The reachable hosts and the clock belong to the thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pmderive_client::transport::{Deadline, Readiness, Transport};

use super::host::FakeHost;
use super::session::{Flow, Session};

/// Requests and replies in bytes that a connection holds in each direction.
const BUFFER_BYTES: usize = 64 << 10;

/// The hosts and the clock of a thread.
#[derive(Default)]
struct Network {
    hosts: HashMap<Box<str>, Arc<FakeHost>>,
    passed: Duration,
    attempts: u64,
    conversations: u64,
}

thread_local! {
    static NETWORK: RefCell<Network> = RefCell::default();
    static START: Instant = Instant::now();
}

fn network<R>(work: impl FnOnce(&mut Network) -> R) -> R {
    NETWORK.with(|network| work(&mut network.borrow_mut()))
}

/// The client's end of a connection to a fake host of this thread, for
/// [`pmderive_client::context::AsyncHostContext`].
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use pmderive_client::context::{AsyncHostContext, ConnectOptions};
/// use pmderive_testkit::fake_pmcd::{Direct, FakeHost, Fault, Rule, World};
/// use pmderive_client::transport::ready;
///
/// let host = Arc::new(FakeHost::new(World::new()));
/// Direct::attach("web1", &host);
/// let options = ConnectOptions { request_timeout: Some(Duration::from_secs(10)), ..Default::default() };
/// let mut context =
///     ready(AsyncHostContext::<Direct>::open_over(&"pcp://web1".parse()?, options))?;
/// assert_eq!(ready(context.traverse("pmcd.hostname"))?, ["pmcd.hostname"]);
///
/// // Nobody waits for this time-out.
/// host.inject(Rule::new(Fault::Stall { after: 3 }));
/// assert!(ready(context.traverse("pmcd")).is_err());
/// assert_eq!(Direct::passed(), Duration::from_secs(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Direct {
    session: Session,
}

impl Direct {
    /// Lets clients of this thread reach a host under a name, or under the path
    /// of a socket.
    pub fn attach(name: &str, host: &Arc<FakeHost>) {
        network(|network| network.hosts.insert(name.into(), Arc::clone(host)));
    }

    /// Refuses connections to a name from now on.
    pub fn detach(name: &str) {
        network(|network| network.hosts.remove(name));
    }

    /// Sets the clock of this thread's connections forward.
    pub fn advance(time: Duration) {
        network(|network| network.passed += time);
    }

    /// The time that tests and waits have added to the clock.
    pub fn passed() -> Duration {
        network(|network| network.passed)
    }

    /// Number of attempts of this thread to connect.
    pub fn attempts() -> u64 {
        network(|network| network.attempts)
    }

    /// Number of times that clients of this thread sent something while no
    /// reply was on its way: the round trips that they waited for.
    pub fn conversations() -> u64 {
        network(|network| network.conversations)
    }

    fn connect(name: &str) -> io::Result<Direct> {
        let host = network(|network| {
            network.attempts += 1;
            network.hosts.get(name).cloned()
        });
        let host = host.ok_or(io::ErrorKind::ConnectionRefused)?;
        Ok(Direct { session: Session::new(&host) })
    }

    /// Lets time pass until the peer does something, at most until the deadline.
    fn progress(&mut self, deadline: Deadline) -> io::Result<Flow> {
        loop {
            let flow = self.session.flow();
            if !self.session.outgoing().is_empty() {
                return Ok(flow);
            }
            let time = match flow {
                Flow::Closed => return Ok(flow),
                Flow::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
                Flow::Waiting(time) => Some(time),
                Flow::Open | Flow::Stalled => None,
            };
            let left = deadline.remaining(Self::now())?;
            match (time, left) {
                (Some(time), None) => Direct::advance(time),
                (Some(time), Some(left)) if time < left => Direct::advance(time),
                (_, Some(left)) => {
                    Direct::advance(left);
                    return Err(io::ErrorKind::TimedOut.into());
                }
                // The wait would never end.
                (None, None) => return Err(io::ErrorKind::WouldBlock.into()),
            }
            self.session.resume();
        }
    }
}

impl Transport for Direct {
    async fn connect_unix(path: &Path, _: Option<Duration>) -> io::Result<Direct> {
        Direct::connect(&path.to_string_lossy())
    }

    async fn connect_tcp(host: &str, _: &[u16], _: Option<Duration>) -> io::Result<Direct> {
        Direct::connect(host)
    }

    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.session.flow() == Flow::Reset && self.session.outgoing().is_empty() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let room = BUFFER_BYTES.saturating_sub(self.session.unread()).min(bytes.len());
        if room > 0 && self.session.unread() == 0 && self.session.outgoing().is_empty() {
            network(|network| network.conversations += 1);
        }
        self.session.receive(&bytes[..room]);
        Ok(room)
    }

    async fn receive(&mut self, inbox: &mut Vec<u8>, deadline: Deadline) -> io::Result<usize> {
        self.progress(deadline)?;
        let room = inbox.capacity() - inbox.len();
        let outgoing = self.session.outgoing();
        let count = room.min(outgoing.len()).min(BUFFER_BYTES);
        inbox.extend_from_slice(&outgoing[..count]);
        self.session.sent(count);
        Ok(count)
    }

    async fn wait(&mut self, deadline: Deadline) -> io::Result<Readiness> {
        let send = self.session.unread() < BUFFER_BYTES;
        if !send {
            self.progress(deadline)?;
        }
        let receive = !self.session.outgoing().is_empty() || self.session.flow() != Flow::Open;
        Ok(Readiness { receive, send })
    }

    fn now() -> Instant {
        START.with(|start| *start) + Direct::passed()
    }
}
