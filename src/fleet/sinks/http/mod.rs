//! The listener: it shows the newest frames, the program's own metrics, and pages of other
//! modules ([`Pages`]). It has a thread of its own, and limits of connections, requests and
//! time.
//!
//! ```text
//! GET  /metrics               aggregates across hosts, and the program's own
//! GET  /metrics?target=NAME   the newest frame of one host; &times=true with times
//! GET  /healthz               200, with what is wrong; needs no token
//! GET  /-/...                 Pages::page
//! POST /-/reload              Pages::reload
//! ```

mod answer;
mod listen;
mod places;
mod serving;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::newest_frames::NewestFrames;
use crate::fleet::world::{Job, thread};
use answer::Answers;
pub use answer::{Answer, Pages};
pub use listen::{Listen, ListenerSettings, RequestLimits};
use serving::{MAKERS, Serving};

/// Time for its thread to end after its deadline.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A running listener.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    settings: ListenerSettings,
    /// The deadline of the end, once it must end.
    end: watch::Sender<Option<Instant>>,
    job: Job,
}

impl Listener {
    /// Starts a listener. Requests count for the sink whose frames are the newest.
    ///
    /// # Errors
    /// The address or a file cannot be used.
    pub fn start(
        listen: Listen,
        newest: Arc<NewestFrames>,
        pages: Arc<dyn Pages>,
    ) -> Result<Listener, String> {
        listen.check()?;
        let address = listen.address;
        let settings = ListenerSettings::new(listen)?;
        let failed = |error: io::Error| unusable(address, &error);
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let (end, ending) = watch::channel(None);
        let answers = Answers { newest, pages, settings: settings.clone() };
        let serving = Arc::new(Serving::new(answers, ending));
        let job = thread("listener", MAKERS, move || serving.accept(socket))
            .map_err(|error| format!("no thread for the listener: {error}"))?;
        tracing::info!("listening on {address}");
        Ok(Listener { address, settings, end, job })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its settings, some of which can change.
    pub fn settings(&self) -> &ListenerSettings {
        &self.settings
    }

    /// A number that grows every second unless its thread is stuck.
    pub fn beat(&self) -> u64 {
        self.job.beat()
    }

    /// Ends the listener. Requests in progress have until the deadline.
    pub fn stop(mut self, deadline: Instant) {
        self.end.send_replace(Some(deadline));
        std::mem::take(&mut self.job).join((deadline + LAST_WORDS).into());
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end.send_replace(Some(Instant::now()));
    }
}

/// The message for an unusable address, with advice.
fn unusable(address: SocketAddr, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            return format!(
                "{address} is taken: end the program that listens there, or choose another port"
            );
        }
        io::ErrorKind::PermissionDenied => "; only root may use ports below 1024",
        io::ErrorKind::AddrNotAvailable => "; choose an address that this machine has",
        _ => "",
    };
    format!("cannot listen on {address}: {error}{advice}")
}
