//! Connections to hosts by name. The address is cached, and not looked up for every attempt:
//! after an outage thousands of hosts come back at once.
//!
//! ```text
//! connect ─► known? ── yes ─────────────────────────► address ─► connection
//!              │ no                                      ▲
//!              └─► flight: one for a name, a few at once ┘
//! ```
//!
//! The address that worked last is tried first: one that is dead costs its share of the time
//! once, and not at every attempt.
//!
//! A lookup blocks a thread of the system until it ends, which may be half a minute. Giving up
//! does not end it. So only a few names are looked up at once. A name that waits for its turn
//! costs only its bytes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pmderive_runtime::transport::{AsyncSocket, Deadline, Readiness, Transport};
use tokio::sync::{Semaphore, watch};

/// Time for which a cached address is used.
const KEEP: Duration = Duration::from_secs(60);

/// Time for which an address is tried if there are others.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// Names in the cache, at most; an engine has fewer hosts.
const MAX_NAMES: usize = 200_000;

/// Names that each thread looks up at once.
pub const LOOKUPS: usize = 16;

/// The cache of a thread.
struct Names {
    known: HashMap<Box<str>, Name>,
    /// Of names with several addresses the one that worked last.
    worked: HashMap<Box<str>, SocketAddr>,
    free: Arc<Semaphore>,
}

enum Name {
    /// The addresses of the name, and the time of the lookup.
    Found(Instant, Vec<SocketAddr>),
    /// A lookup in progress; the channel closes at its end.
    Flying(watch::Receiver<Option<Lookup>>),
}

/// Addresses, or the reason for having none.
type Lookup = Result<Vec<SocketAddr>, (io::ErrorKind, String)>;

thread_local! {
    static NAMES: RefCell<Names> = RefCell::new(Names {
        known: HashMap::new(),
        worked: HashMap::new(),
        free: Arc::new(Semaphore::new(LOOKUPS)),
    });
}

/// A connection to a host whose address may be in the cache.
#[derive(Debug)]
pub struct NamedSocket<T = AsyncSocket>(T);

impl<T: Transport + 'static> NamedSocket<T> {
    /// Looks a name up unless the cache has it. A name without an address fails later, on
    /// connecting.
    pub async fn resolve(host: &str) {
        if host.parse::<IpAddr>().is_err() {
            let _ = find::<T>(host).await;
        }
    }
}

impl<T: Transport + 'static> Transport for NamedSocket<T> {
    async fn connect_unix(path: &Path, timeout: Option<Duration>) -> io::Result<NamedSocket<T>> {
        T::connect_unix(path, timeout).await.map(NamedSocket)
    }

    async fn connect_tcp(
        host: &str,
        ports: &[u16],
        timeout: Option<Duration>,
    ) -> io::Result<NamedSocket<T>> {
        // An address needs no lookup.
        if host.parse::<IpAddr>().is_ok() {
            return T::connect_tcp(host, ports, timeout).await.map(NamedSocket);
        }
        let mut addresses = find::<T>(host).await?;
        let worked = NAMES.with_borrow(|names| names.worked.get(host).copied());
        if let Some(at) = addresses.iter().position(|one| Some(*one) == worked) {
            addresses[..=at].rotate_right(1);
        }
        let each = timeout.map(|timeout| timeout / addresses.len().max(1) as u32);
        let connect = |address: SocketAddr| async move {
            let connected = T::connect_tcp(&address.ip().to_string(), ports, timeout).await;
            connected.map(|socket| (address, socket))
        };
        let connected = first_of(&addresses, each.unwrap_or(PATIENCE), connect).await;
        NAMES.with_borrow_mut(|names| match &connected {
            Ok((address, _)) if addresses.len() > 1 => {
                names.worked.insert(host.into(), *address);
            }
            Ok(_) => {}
            // The host may have moved.
            Err(_) => {
                names.known.remove(host);
            }
        });
        connected.map(|(_, socket)| NamedSocket(socket))
    }

    async fn lookup(
        host: &str,
        port: u16,
        timeout: Option<Duration>,
    ) -> io::Result<Vec<SocketAddr>> {
        T::lookup(host, port, timeout).await
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

    fn now() -> Instant {
        T::now()
    }
}

/// The first connection that succeeds. A silent address, such as one of IPv6 where that is
/// broken, makes way for the next one after some time.
///
/// # Errors
/// No address accepts connections; the error is that of the last one.
pub async fn first_of<S, F: Future<Output = io::Result<S>>>(
    addresses: &[SocketAddr],
    patience: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<S> {
    let Some((last, others)) = addresses.split_last() else {
        return Err(io::ErrorKind::HostUnreachable.into());
    };
    for address in others {
        if let Ok(Ok(connected)) = tokio::time::timeout(patience, connect(*address)).await {
            return Ok(connected);
        }
    }
    connect(*last).await
}

/// The addresses of a name. The lookup goes on even if this future is dropped.
async fn find<T: Transport + 'static>(host: &str) -> io::Result<Vec<SocketAddr>> {
    let mut flight = match known_or_flying::<T>(host) {
        Ok(addresses) => return Ok(addresses),
        Err(flight) => flight,
    };
    let outcome = match flight.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone(),
        Err(_) => None,
    };
    match outcome {
        Some(Ok(addresses)) => Ok(addresses),
        Some(Err((kind, words))) => Err(io::Error::new(kind, words)),
        None => Err(io::ErrorKind::HostUnreachable.into()),
    }
}

/// The addresses, or the lookup that will find them.
fn known_or_flying<T: Transport + 'static>(
    host: &str,
) -> Result<Vec<SocketAddr>, watch::Receiver<Option<Lookup>>> {
    NAMES.with_borrow_mut(|names| {
        let now = T::now();
        match names.known.get(host) {
            Some(Name::Found(at, addresses)) if now.saturating_duration_since(*at) < KEEP => {
                return Ok(addresses.clone());
            }
            // A lookup whose runtime has ended will not finish.
            Some(Name::Flying(flight)) if flight.has_changed().is_ok() => {
                return Err(flight.clone());
            }
            _ => {}
        }
        if names.known.len() >= MAX_NAMES {
            names.known.retain(|_, name| matches!(name, Name::Flying(_)));
            names.worked.clear();
        }
        let (sender, flight) = watch::channel(None);
        names.known.insert(host.into(), Name::Flying(flight.clone()));
        tokio::spawn(fly(PhantomData::<fn() -> T>, host.into(), Arc::clone(&names.free), sender));
        Err(flight)
    })
}

/// Looks a name up in its turn, and wakes all that wait for it.
async fn fly<T: Transport + 'static>(
    _: PhantomData<fn() -> T>,
    host: Box<str>,
    free: Arc<Semaphore>,
    told: watch::Sender<Option<Lookup>>,
) {
    // The semaphore is never closed; if it were, lookups would go on.
    let _permit = free.acquire().await;
    let found = T::lookup(&host, 0, None).await;
    NAMES.with_borrow_mut(|names| match &found {
        Ok(addresses) => {
            names.known.insert(host, Name::Found(T::now(), addresses.clone()));
        }
        Err(_) => {
            names.known.remove(&host);
        }
    });
    told.send_replace(Some(found.map_err(|error| (error.kind(), error.to_string()))));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn found_at(host: &str) -> Option<Instant> {
        NAMES.with_borrow(|names| match names.known.get(host) {
            Some(Name::Found(at, _)) => Some(*at),
            _ => None,
        })
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let timeout = Some(Duration::from_secs(60));
        type Named = NamedSocket<AsyncSocket>;
        Named::connect_tcp("localhost", &[port], timeout).await.expect("a connection");
        let first = found_at("localhost");
        assert!(first.is_some());
        Named::connect_tcp("localhost", &[port], timeout).await.expect("a connection");
        assert_eq!(found_at("localhost"), first);
        drop(listener);
        let refused = Named::connect_tcp("localhost", &[port], timeout).await;
        assert!(refused.is_err());
        assert_eq!(found_at("localhost"), None, "it may have moved");
    }

    /// A transport that counts lookups; each lasts an hour.
    struct Slow;

    static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static ALL: AtomicUsize = AtomicUsize::new(0);

    impl Transport for Slow {
        async fn connect_unix(_: &Path, _: Option<Duration>) -> io::Result<Slow> {
            Err(io::ErrorKind::Unsupported.into())
        }

        async fn connect_tcp(to: &str, _: &[u16], _: Option<Duration>) -> io::Result<Slow> {
            match to {
                "::1" => std::future::pending().await,
                _ => Ok(Slow),
            }
        }

        async fn lookup(_: &str, _: u16, _: Option<Duration>) -> io::Result<Vec<SocketAddr>> {
            let now = UNDER_WAY.fetch_add(1, Ordering::Relaxed) + 1;
            MOST.fetch_max(now, Ordering::Relaxed);
            ALL.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
            Ok(vec![([127, 0, 0, 1], 0).into()])
        }

        fn send_now(&mut self, _: &[u8]) -> io::Result<usize> {
            Ok(0)
        }

        async fn receive(&mut self, _: &mut Vec<u8>, _: Deadline) -> io::Result<usize> {
            Ok(0)
        }

        async fn wait(&mut self, _: Deadline) -> io::Result<Readiness> {
            Err(io::ErrorKind::TimedOut.into())
        }

        fn now() -> Instant {
            tokio::time::Instant::now().into_std()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_does_not_answer_keeps_no_other_from_being_tried() {
        let addresses = ["[::1]:0", "127.0.0.1:0"].map(|one| one.parse().expect("an address"));
        let found = Name::Found(Slow::now(), addresses.to_vec());
        NAMES.with_borrow_mut(|names| names.known.insert("both".into(), found));
        let time = Duration::from_secs(8);
        // It is known then which of them answers.
        for expected in [time / 2, Duration::ZERO] {
            let began = tokio::time::Instant::now();
            NamedSocket::<Slow>::connect_tcp("both", &[1], Some(time)).await.expect("the second");
            assert_eq!(began.elapsed(), expected);
        }
    }

    /// Giving up and coming again adds no lookup, and there are never many.
    #[tokio::test(start_paused = true)]
    async fn thousands_of_names_are_looked_up_a_few_at_once() {
        let names: Vec<String> = (0..1000).map(|at| format!("host{at}")).collect();
        for _ in 0..20 {
            let mut all = tokio::task::JoinSet::new();
            for name in names.clone() {
                all.spawn(async move {
                    let wait = Duration::from_secs(8);
                    tokio::time::timeout(wait, NamedSocket::<Slow>::resolve(&name)).await.is_ok()
                });
            }
            assert!(all.join_all().await.iter().all(|is_found| !is_found));
        }
        assert_eq!((MOST.load(Ordering::Relaxed), ALL.load(Ordering::Relaxed)), (LOOKUPS, LOOKUPS));
        let mut all = tokio::task::JoinSet::new();
        for name in names.clone() {
            all.spawn(async move { find::<Slow>(&name).await.map(|found| found.len()).ok() });
        }
        assert!(all.join_all().await.iter().all(|found| *found == Some(1)));
        let counts = [&MOST, &ALL].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [LOOKUPS, names.len()], "each once");
    }
}
