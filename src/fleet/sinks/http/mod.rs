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
mod listen;
mod places;
mod serving;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::watch;

use super::newest::Newest;
use answer::Answers;
pub use answer::{Answer, Pages};
pub use listen::{Changing, Listen, ListenError, RequestLimits};
use serving::Serving;

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
        let address = listen.address;
        let changing = Changing::new(listen)?;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::Taken { address },
            _ => ListenError::Address { address, source },
        };
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let (end, ending) = watch::channel(None);
        let answers = Answers { newest, pages, changing: changing.clone() };
        let serving = Serving { answers: Arc::new(answers), ending };
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
