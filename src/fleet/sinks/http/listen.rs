//! Settings of a listener: its address, limits, certificate, key and token. Some of them can
//! change while it runs.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use pmderive_runtime::locks::write;

use crate::fleet::sinks::secret::Secret;
use crate::fleet::sinks::sink_set::SinkPlace;
use crate::fleet::sinks::tls::{self, Identity};

/// Settings of a listener.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Address and port; port 0 is any that is free.
    pub address: SocketAddr,
    /// Certificate and key; without them nothing is encrypted.
    pub tls: Option<Identity>,
    /// File of the token that requests must have (`Authorization: Bearer`).
    pub token_file: Option<PathBuf>,
    /// Place of the sink whose metrics are shown at first; `None` for no sink.
    pub sink: Option<SinkPlace>,
    /// Limits of requests.
    pub limits: RequestLimits,
}

/// Limits of requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Connections at once. One more takes the place of the one that was still for the longest
    /// time, or else of the oldest between requests.
    pub connections: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Duration of a connection.
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
    /// Default settings for an address.
    pub fn on(address: SocketAddr) -> Listen {
        Listen {
            address,
            tls: None,
            token_file: None,
            sink: None,
            limits: RequestLimits::default(),
        }
    }

    /// Checks whether it may listen there.
    ///
    /// # Errors
    /// It would be open to others.
    pub fn check(&self) -> Result<(), String> {
        let Listen { address, tls, token_file, .. } = self;
        let is_safe = tls.is_some() && token_file.is_some();
        if is_safe || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        Err(format!(
            "{address} can be reached by others: give the listener a certificate, a key and a \
             token (`[web]` of a configuration). An address of this machine alone needs none, such \
             as 127.0.0.1:{}",
            address.port()
        ))
    }

    /// Checks that certificate, key and token can be used.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn check_files(&self) -> Result<(), String> {
        Files::read(self).map(drop)
    }
}

/// Certificate, key and token of a listener, from their files.
pub struct Files {
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) token: Option<Secret>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Files {
    fn read(listen: &Listen) -> Result<Files, String> {
        let tls = listen.tls.as_ref().map(tls::server).transpose()?;
        let token = listen.token_file.as_deref().map(Secret::read).transpose()?;
        Ok(Files { tls, token })
    }
}

/// Settings of a running listener, some of which can change.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    pub(super) listen: Listen,
    pub(super) files: Arc<RwLock<Files>>,
    sink: Arc<AtomicU64>,
}

/// No sink in [`ListenerSettings::sink`]: places have 32 bits.
const NO_SINK: u64 = u64::MAX;

impl ListenerSettings {
    /// The settings of a new listener.
    ///
    /// # Errors
    /// One of its files cannot be used.
    pub(super) fn new(listen: Listen) -> Result<ListenerSettings, String> {
        let files = Arc::new(RwLock::new(Files::read(&listen)?));
        let settings = ListenerSettings { files, sink: Arc::default(), listen };
        settings.show(settings.listen.sink);
        Ok(settings)
    }

    /// Reads certificate, key and token again. They take effect with
    /// [`ListenerSettings::renew`].
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn read(&self) -> Result<Files, String> {
        Files::read(&self.listen)
    }

    /// Replaces certificate, key and token, for later connections and requests.
    pub fn renew(&self, files: Files) {
        *write(&self.files) = files;
    }

    /// Shows the metrics of this sink from now on.
    pub fn show(&self, sink: Option<SinkPlace>) {
        self.sink.store(sink.map_or(NO_SINK, |place| u64::from(place.0)), Ordering::Relaxed);
    }

    /// Place of the sink whose metrics are shown.
    pub(super) fn shown(&self) -> Option<SinkPlace> {
        u32::try_from(self.sink.load(Ordering::Relaxed)).ok().map(SinkPlace)
    }
}
