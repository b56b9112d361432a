//! Sockets for fake pmcds: one thread, any number of listeners and connections.
//!
//! A connection is a task that only moves bytes between its socket and its
//! [`Session`]. As pmcd does, it reads no further request until the client
//! reads the replies.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use pmderive_client::context::HostSpec;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::host::FakeHost;
use super::session::{Flow, Session};

/// Room for the bytes of one read, at first and for a client that sends a lot.
const LEAST_READ_BYTES: usize = 512;
const MOST_READ_BYTES: usize = 64 << 10;

/// Connections that may wait at a listener of many hosts. Thousands of clients
/// may connect at once, unlike to one pmcd.
const MANY_WAITING: u32 = 4096;

/// Pause of a listener when the system has no file for a connection.
const SHORTAGE: Duration = Duration::from_millis(100);

/// A thread that plays pmcd on sockets until it is dropped.
#[derive(Debug)]
pub struct FakePmcd {
    host: Arc<FakeHost>,
    address: SocketAddr,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakePmcd {
    /// Serves a host on a free port of the loopback interface.
    ///
    /// # Panics
    /// If the system has no thread or no port.
    pub fn start(host: FakeHost) -> FakePmcd {
        let started = FakePmcd::try_start(host);
        started.expect("a thread and a port of the loopback interface")
    }

    /// Serves a host on a free port of the loopback interface.
    ///
    /// # Errors
    /// The system has no thread or no port.
    pub fn try_start(host: FakeHost) -> io::Result<FakePmcd> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("fake-pmcd".to_owned()).spawn(move || {
            // Ends when the sender is dropped, too; all tasks go with the runtime.
            drop(runtime.block_on(stopped));
        })?;
        let unbound = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let host = Arc::new(host);
        let mut pmcd = FakePmcd {
            host: Arc::clone(&host),
            address: unbound,
            runtime: handle,
            stop: Some(stop),
            thread: Some(thread),
        };
        pmcd.address = pmcd.listen_tcp(&host, unbound)?;
        Ok(pmcd)
    }

    /// The host that it was started for.
    pub fn host(&self) -> &Arc<FakeHost> {
        &self.host
    }

    /// Its port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address for clients.
    pub fn spec(&self) -> HostSpec {
        let spec = format!("pcp://{}", self.address);
        spec.parse().expect("an address with its port is a specification")
    }

    /// Serves a host on an address; port 0 is a free one. Returns the address
    /// with its port.
    ///
    /// # Errors
    /// The address is not available.
    pub fn listen_tcp(&self, host: &Arc<FakeHost>, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let _entered = self.runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        let host = Arc::clone(host);
        self.runtime.spawn(async move {
            loop {
                let (stream, _) = accepted(&listener).await;
                tokio::spawn(serve_tcp(stream, Session::new(&host)));
            }
        });
        Ok(address)
    }

    /// Serves many hosts on one port of the loopback device; 0 is a free one.
    /// The client's address in 127.0.0.0/8 selects the host; at an address
    /// without a host the connection is closed. Returns the port.
    ///
    /// # Errors
    /// The port is not available.
    pub fn listen_for_many(
        &self,
        port: u16,
        host_at: impl Fn(Ipv4Addr) -> Option<Arc<FakeHost>> + Send + 'static,
    ) -> io::Result<u16> {
        let _entered = self.runtime.enter();
        let socket = loopback_socket(port)?;
        let port = socket.local_addr()?.port();
        let listener = socket.listen(MANY_WAITING)?;
        self.runtime.spawn(async move {
            loop {
                let (stream, peer) = accepted(&listener).await;
                let Ok(SocketAddr::V4(own)) = stream.local_addr() else { continue };
                let Some(host) = host_at(*own.ip()) else { continue };
                if peer.ip().is_loopback() && own.ip().is_loopback() {
                    tokio::spawn(serve_tcp(stream, Session::new(&host)));
                }
            }
        });
        Ok(port)
    }

    /// Serves a host on a unix socket, which must not exist yet.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn listen_unix(&self, host: &Arc<FakeHost>, path: &Path) -> io::Result<()> {
        let _entered = self.runtime.enter();
        let listener = UnixListener::bind(path)?;
        let host = Arc::clone(host);
        self.runtime.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let session = Session::new(&host);
                tokio::spawn(async move { drop(serve(&mut stream, session).await) });
            }
        });
        Ok(())
    }
}

impl Drop for FakePmcd {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// A socket for all addresses of the loopback device, and for no other: bound
/// to the device, it cannot be reached from outside.
pub(crate) fn loopback_socket(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.bind_device(Some(b"lo"))?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::UNSPECIFIED, port).into())?;
    Ok(socket)
}

/// The next connection. If the system has no descriptor left, it waits.
async fn accepted(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Without it, replies are late but right.
                drop(stream.set_nodelay(true));
                return (stream, peer);
            }
            Err(_) => tokio::time::sleep(SHORTAGE).await,
        }
    }
}

async fn serve_tcp(mut stream: TcpStream, session: Session) {
    if let Ok(Flow::Reset) = serve(&mut stream, session).await {
        // Without it the client sees an end instead of a reset.
        drop(stream.set_zero_linger());
    }
}

/// Moves bytes until the connection must be closed, and returns the way to
/// close it.
async fn serve<S>(stream: &mut S, mut session: Session) -> io::Result<Flow>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let host = Arc::clone(session.host());
    // There may be thousands of connections, and most of them send little.
    let mut bytes = Vec::with_capacity(LEAST_READ_BYTES);
    loop {
        let mut changed = pin!(host.changed());
        // From here on, every change is noticed.
        changed.as_mut().enable();
        let flow = session.flow();
        match flow {
            Flow::Reset => return Ok(flow),
            Flow::Closed => {
                // Closing with requests unread would reset the connection, and the client might
                // lose the last sent bytes.
                stream.shutdown().await?;
                while stream.read_buf(&mut bytes).await? > 0 {
                    bytes.clear();
                }
                return Ok(flow);
            }
            Flow::Waiting(time) => {
                if first(tokio::time::sleep(time), changed).await.is_some() {
                    session.resume();
                }
                continue;
            }
            Flow::Open | Flow::Stalled => {}
        }
        if !session.outgoing().is_empty() {
            if let Some(count) = first(stream.write(session.outgoing()), changed).await {
                session.sent(count?);
            }
            continue;
        }
        match first(stream.read_buf(&mut bytes), changed).await {
            Some(Ok(0)) => return Ok(Flow::Closed),
            Some(Ok(_)) => {
                session.receive(&bytes);
                if bytes.len() == bytes.capacity() {
                    bytes.reserve(bytes.len().min(MOST_READ_BYTES));
                }
                bytes.clear();
            }
            Some(Err(error)) => return Err(error),
            None => {}
        }
    }
}

/// The result of the first future, unless the second is ready earlier.
pub(crate) async fn first<T>(
    work: impl Future<Output = T>,
    interruption: impl Future,
) -> Option<T> {
    let mut work = pin!(work);
    let mut interruption = pin!(interruption);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => interruption.as_mut().poll(context).map(|_| None),
    })
    .await
}
