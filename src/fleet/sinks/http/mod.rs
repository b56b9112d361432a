//! The listener: whoever asks is shown the newest frames, the program's own
//! numbers, and pages of others ([`Pages`]). It has a thread of its own, and
//! bounds on connections, requests and time.
//!
//! ```text
//! GET  /metrics               aggregates across hosts, and the program's own
//! GET  /metrics?target=NAME   the newest frame of one host; &times=true with times
//! GET  /healthz               200, with what is wrong; needs no token
//! GET  /-/...                 Pages::page
//! POST /-/reload              Pages::reload
//! ```

mod answer;
mod places;
mod serving;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pmderive_runtime::locks::write;
use tokio::sync::watch;

use super::names;
use super::newest::Newest;
use super::secret::Secret;
use super::text::Writer;
use super::tls::{self, Identity};
use crate::fleet::sink_set::SinkPlace;
pub use answer::Answer;

/// Where a listener listens, and what of.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Address and port; port 0 is any that is free.
    pub address: SocketAddr,
    /// Certificate and key; without them nothing is encrypted.
    pub tls: Option<Identity>,
    /// The file of the token that requests have to bring (`Authorization: Bearer`).
    pub token_file: Option<PathBuf>,
    /// Place of the sink whose metrics are shown at first; none are without.
    pub sink: Option<SinkPlace>,
    /// Bounds of labels.
    pub labels: names::LabelLimits,
    /// Bounds of requests.
    pub limits: RequestLimits,
}

/// Bounds of requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Connections at once. One more takes the place of the one that has been still for
    /// the longest time.
    pub connections: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Time for the head of a request, and between two of them.
    pub head_time: Duration,
    /// Time that a connection may last.
    pub connection_time: Duration,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            connections: 256,
            head_bytes: 16 << 10,
            head_time: Duration::from_secs(30),
            connection_time: Duration::from_secs(300),
        }
    }
}

impl Listen {
    /// A listener on an address, without anything else.
    pub fn on(address: SocketAddr) -> Listen {
        Listen {
            address,
            tls: None,
            token_file: None,
            sink: None,
            labels: names::LabelLimits::default(),
            limits: RequestLimits::default(),
        }
    }

    /// Whether it may listen there.
    ///
    /// # Errors
    /// [`ListenError::Open`].
    pub fn check(&self) -> Result<(), ListenError> {
        let is_safe = self.tls.is_some() && self.token_file.is_some();
        if is_safe || self.address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        Err(ListenError::Open { address: self.address })
    }

    /// Checks that certificate, key and token can be used.
    ///
    /// # Errors
    /// [`ListenError::File`].
    pub fn check_files(&self) -> Result<(), ListenError> {
        Files::read(self).map(drop)
    }
}

/// What others show through the listener. Calls come from threads of the
/// listener, several at once, and may take their time.
pub trait Pages: Send + Sync {
    /// Writes the program's own numbers into `/metrics`.
    fn write_own(&self, writer: &mut Writer<'_>) {
        let _ = writer;
    }

    /// Writes what is known of a host beside its values into `/metrics?target=`.
    fn write_target(&self, target: &str, writer: &mut Writer<'_>) {
        let _ = (target, writer);
    }

    /// What is wrong with the program, if anything.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// The page at a path that begins with `/-/`, as an `Accept` header wants it.
    fn page(&self, path: &str, accept: &str) -> Option<Answer> {
        let _ = (path, accept);
        None
    }

    /// Reads targets, configuration and definitions again.
    fn reload(&self) -> Answer {
        Answer::text(501, "this program reads nothing again\n")
    }
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// It would be open to others.
    #[error(
        "{address} can be reached by others: give the listener a certificate, a key and a token. \
         An address of this machine alone needs none, such as 127.0.0.1:{}",
        address.port()
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// Somebody else listens there.
    #[error("{address} is taken: end the program that listens there, or choose another port")]
    Taken {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", advice(source))]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A file of its certificate, key or token.
    #[error("{0}")]
    File(String),
    /// There is no thread for it.
    #[error("no thread for the listener: {0}")]
    Thread(io::Error),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; only root may use ports below 1024",
        io::ErrorKind::AddrNotAvailable => "; choose an address that this machine has",
        _ => "",
    }
}

/// Certificate, key and token of a listener, as they were read.
pub struct Files {
    tls: Option<Arc<rustls::ServerConfig>>,
    token: Option<Secret>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Files {
    fn read(listen: &Listen) -> Result<Files, ListenError> {
        let tls = listen.tls.as_ref().map(tls::server).transpose().map_err(ListenError::File)?;
        let token = listen.token_file.as_deref().map(Secret::read).transpose();
        Ok(Files { tls, token: token.map_err(ListenError::File)? })
    }
}

/// What can change of a listener while it runs.
#[derive(Clone, Debug)]
pub struct Changing {
    listen: Listen,
    files: Arc<RwLock<Files>>,
    sink: Arc<AtomicU64>,
    beat: Arc<AtomicU64>,
}

/// No sink in [`Changing::sink`]: places have 32 bits.
const NO_SINK: u64 = u64::MAX;

impl Changing {
    /// Reads certificate, key and token again. They hold once [`Changing::renew`] is
    /// given them.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn read(&self) -> Result<Files, ListenError> {
        Files::read(&self.listen)
    }

    /// Connections and requests that come from now on get these files.
    pub fn renew(&self, files: Files) {
        *write(&self.files) = files;
    }

    /// Shows what the sink at a place gets from now on.
    pub fn show(&self, sink: Option<SinkPlace>) {
        self.sink.store(sink.map_or(NO_SINK, |place| u64::from(place.0)), Ordering::Relaxed);
    }

    /// Place of the sink whose metrics are shown.
    fn shown(&self) -> Option<SinkPlace> {
        u32::try_from(self.sink.load(Ordering::Relaxed)).ok().map(SinkPlace)
    }

    /// Grows every second unless the listener's thread is stuck.
    pub fn beat(&self) -> u64 {
        self.beat.load(Ordering::Relaxed)
    }
}

/// A listener that runs.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    changing: Changing,
    /// When everything has to be over, once it is to end.
    end: watch::Sender<Option<Instant>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens, and answers from now on. Requests count as those of the sink whose frames
    /// are the newest.
    ///
    /// # Errors
    /// The address or a file cannot be used.
    pub fn start(
        listen: Listen,
        newest: Arc<Newest>,
        pages: Arc<dyn Pages>,
    ) -> Result<Listener, ListenError> {
        listen.check()?;
        let changing = Changing {
            files: Arc::new(RwLock::new(Files::read(&listen)?)),
            sink: Arc::default(),
            beat: Arc::default(),
            listen: listen.clone(),
        };
        changing.show(listen.sink);
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::Taken { address: listen.address },
            _ => ListenError::Address { address: listen.address, source },
        };
        let socket = TcpListener::bind(listen.address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let (end, ending) = watch::channel(None);
        let serving = serving::Serving {
            answers: Arc::new(answer::Answers {
                newest,
                pages,
                changing: changing.clone(),
                labels: listen.labels,
            }),
            changing: changing.clone(),
            limits: listen.limits,
            ending,
        };
        let thread = std::thread::Builder::new()
            .name("listener".into())
            .spawn(move || serving.run(socket))
            .map_err(ListenError::Thread)?;
        tracing::info!("listening on {address}");
        Ok(Listener { address, changing, end, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What can change of it.
    pub fn changing(&self) -> &Changing {
        &self.changing
    }

    /// Ends it: requests that are under way have until the deadline.
    pub fn stop(mut self, deadline: Instant) {
        self.end.send_replace(Some(deadline));
        if let Some(thread) = self.thread.take() {
            // A panic in there has been told of.
            let _ = thread.join();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end.send_replace(Some(Instant::now()));
    }
}
