//! A fleet behind sockets: one listener for all hosts that are alive, in one
//! thread. The address in 127.0.0.0/8 selects the host.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;

use tokio::net::TcpSocket;

use super::plan::{Fate, Plan};
use super::worlds;
use crate::fake_pmcd::{Clock, FakeHost, FakePmcd, World, loopback_socket};

/// A thread that plays the pmcds of a fleet until it is dropped.
///
/// ```
/// use pmderive_client::context::{ConnectOptions, HostContext};
/// use pmderive_core::model::Value;
/// use pmderive_core::source::{FetchSource, MetadataSource};
/// use pmderive_testkit::fleet::{FakeFleet, Plan};
///
/// let fleet = FakeFleet::start(Plan { hosts: 100, ..Plan::default() }, 0)?;
/// let spec = format!("pcp://{}", fleet.address(42)).parse()?;
/// let mut host = HostContext::open_with(&spec, ConnectOptions::default())?;
/// assert_eq!(host.host_name()?, "host00042");
///
/// // Who knows the stamp knows the values.
/// let gauge = fleet.plan().metric(fleet.plan().class(42), 1);
/// assert_eq!(gauge.name, "fleet.g0");
/// let result = host.fetch_values(&[gauge.desc.pmid])?;
/// let expected: Value = fleet.plan().value(42, gauge.number, -1, result.timestamp);
/// assert_eq!(result.sets[0].decode(gauge.desc.value_type)?, [(-1, expected)]);
///
/// fleet.cut_all();
/// assert!(host.fetch_values(&[gauge.desc.pmid]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FakeFleet {
    plan: Arc<Plan>,
    hosts: Vec<Arc<FakeHost>>,
    port: u16,
    refusing: ClosedPort,
    vanished: ClosedPort,
    _pmcd: FakePmcd,
}

impl FakeFleet {
    /// Serves the hosts of a plan on a port of the loopback device; 0 is a free
    /// one. A connection needs one file.
    ///
    /// # Errors
    /// The system has no thread or no port, or the plan has more hosts than
    /// there are addresses.
    pub fn start(plan: Plan, port: u16) -> io::Result<FakeFleet> {
        if plan.hosts > Plan::MOST_HOSTS {
            let most = Plan::MOST_HOSTS;
            return Err(io::Error::other(format!("{} hosts, at most {most}", plan.hosts)));
        }
        let plan = Arc::new(plan);
        let hosts = worlds::hosts(&plan, &worlds::worlds(&plan), |_| Clock::System);
        let pmcd = FakePmcd::try_start(FakeHost::new(World::empty()))?;
        let of_address = {
            let (plan, hosts) = (Arc::clone(&plan), hosts.clone());
            move |address| hosts.get(plan.host_at(address)? as usize).cloned()
        };
        let port = pmcd.listen_for_many(port, of_address)?;
        let [refusing, vanished] = [ClosedPort::refusing()?, ClosedPort::vanished()?];
        Ok(FakeFleet { plan, hosts, port, refusing, vanished, _pmcd: pmcd })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A host, to change it.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn host(&self, number: u32) -> &Arc<FakeHost> {
        &self.hosts[number as usize]
    }

    /// The address of a host.
    pub fn address(&self, host: u32) -> SocketAddrV4 {
        let port = match self.plan.fate(host) {
            Fate::Refuses => self.refusing.port,
            Fate::HasVanished => self.vanished.port,
            Fate::IsWell | Fate::Churns | Fate::Drips | Fate::IsSilent => self.port,
        };
        SocketAddrV4::new(self.plan.address(host), port)
    }

    /// All hosts with their labels, in the form of Prometheus' `file_sd`.
    pub fn targets(&self) -> String {
        let mut json = String::from("[");
        for host in 0..self.plan.hosts {
            let separator = if host == 0 { "\n" } else { ",\n" };
            let labels = self.plan.labels(host).map(|(name, value)| format!("{name:?}:{value:?}"));
            let (address, labels) = (self.address(host), labels.join(","));
            let _ = write!(json, r#"{separator}{{"targets":["{address}"],"labels":{{{labels}}}}}"#);
        }
        json + "\n]\n"
    }

    /// Resets all connections.
    pub fn cut_all(&self) {
        self.hosts.iter().for_each(|host| host.drop_connections());
    }
}

/// A port of the loopback device on which no connection succeeds.
#[derive(Debug)]
struct ClosedPort {
    port: u16,
    socket: TcpSocket,
    _queued: Option<TcpStream>,
}

impl ClosedPort {
    /// Connections are refused: the port is taken, and no process listens.
    fn refusing() -> io::Result<ClosedPort> {
        let socket = loopback_socket(0)?;
        Ok(ClosedPort { port: socket.local_addr()?.port(), socket, _queued: None })
    }

    /// Attempts to connect get no answer: the queue has one place, which a
    /// connection of our own fills for ever.
    fn vanished() -> io::Result<ClosedPort> {
        let closed = ClosedPort::refusing()?;
        rustix::net::listen(&closed.socket, 0)?;
        let queued = TcpStream::connect((Ipv4Addr::LOCALHOST, closed.port))?;
        Ok(ClosedPort { _queued: Some(queued), ..closed })
    }
}
