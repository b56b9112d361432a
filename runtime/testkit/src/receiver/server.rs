//! A receiver's server: on a socket, on any stream of a tokio runtime, or called
//! directly.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::http::{Request, read_request, response};
use super::remote_write::Sample;
use super::store::{ReceivedRequest, Reply, Store};

/// Remembers requests and answers them. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    store: Arc<Mutex<Store>>,
}

impl Receiver {
    /// A receiver that judges each request by its merit.
    pub fn new() -> Receiver {
        Receiver::default()
    }

    /// A receiver on a free port of the loopback interface, in a thread of its
    /// own.
    ///
    /// # Errors
    /// The system has no thread or no port.
    pub fn listen() -> io::Result<Listening> {
        Listening::start(Receiver::new())
    }

    /// Adds replies to the next requests, in turn, after those of earlier calls.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.store().add_script(replies);
    }

    /// Sets the reply to all requests from now on.
    pub fn always(&self, reply: Reply) {
        self.store().reply_otherwise(reply);
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.store().seen.clone()
    }

    /// All accepted samples, by the labels of their series.
    pub fn stored(&self) -> HashMap<Vec<(String, String)>, Vec<Sample>> {
        self.store().stored.clone()
    }

    /// The faults of requests that were accepted by their merit. A sample that
    /// comes again, as after a lost response, is not a fault.
    pub fn complaints(&self) -> Vec<String> {
        self.store().complaints.clone()
    }

    /// Handles a request without HTTP: returns the status, if there is one, and
    /// the time to come again. Nothing waits: late replies come at once, and
    /// garbage or missing replies have no status.
    pub fn answer(&self, request: Request) -> Option<(u16, Option<Box<str>>)> {
        let (reply, (status, _)) = self.store().take(request);
        match reply {
            Reply::ByMerit | Reply::Late(_) => Some((status, None)),
            Reply::Status { status, retry_after } => Some((status, retry_after)),
            Reply::Garbage(_) | Reply::Cut(_) | Reply::Never => None,
        }
    }

    /// Answers the requests of a connection until its end.
    ///
    /// # Errors
    /// The stream breaks, or its bytes are not a request.
    pub async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut read = Vec::new();
        while let Some(request) = read_request(&mut stream, &mut read).await? {
            let (reply, (status, reason)) = self.store().take(request);
            let by_merit = response(status, None, &reason);
            match reply {
                Reply::ByMerit => stream.write_all(&by_merit).await?,
                Reply::Late(time) => {
                    tokio::time::sleep(time).await;
                    stream.write_all(&by_merit).await?;
                }
                Reply::Status { status, retry_after } => {
                    let told = response(status, retry_after.as_deref(), "as told");
                    stream.write_all(&told).await?;
                }
                Reply::Garbage(bytes) => {
                    stream.write_all(&bytes).await?;
                    return stream.shutdown().await;
                }
                Reply::Cut(after) => {
                    stream.write_all(&by_merit[..after.min(by_merit.len())]).await?;
                    return stream.shutdown().await;
                }
                Reply::Never => {
                    // Further bytes are ignored.
                    while stream.read_buf(&mut read).await? > 0 {
                        read.clear();
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A receiver on a port until it is dropped.
#[derive(Debug)]
pub struct Listening {
    receiver: Receiver,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    fn start(receiver: Receiver) -> io::Result<Listening> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let shared = receiver.clone();
        let thread = std::thread::Builder::new().name("receiver".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::spawn(accept(listener, shared));
                // Ends when the sender is dropped, too; all tasks go with the runtime.
                drop(stopped.await);
            });
        })?;
        Ok(Listening { receiver, address, stop: Some(stop), thread: Some(thread) })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for remote write requests.
    pub fn url(&self) -> String {
        format!("http://{}/api/v1/write", self.address)
    }
}

async fn accept(listener: std::net::TcpListener, receiver: Receiver) {
    let Ok(listener) = TcpListener::from_std(listener) else { return pending().await };
    while let Ok((stream, _)) = listener.accept().await {
        let receiver = receiver.clone();
        // The client handles a broken connection.
        tokio::spawn(async move { drop(receiver.serve(stream).await) });
    }
}

impl Deref for Listening {
    type Target = Receiver;

    fn deref(&self) -> &Receiver {
        &self.receiver
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
