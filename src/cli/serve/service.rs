//! `serve` as a service of systemd: it says when it is ready, reads again or ends,
//! and that it is not stuck (sd_notify(3)). Without systemd nothing is said.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;

use crate::fleet::server::Server;

/// Files beside those of the hosts: sinks, definitions, connections to the listener.
const OTHER_FILES: u64 = 256;

/// What is said to the service manager.
pub struct Service {
    /// How often it wants to hear that nothing is stuck.
    watchdog: Option<Duration>,
    told: Instant,
    /// What threads had counted when they were looked at last.
    beats: Vec<u64>,
}

impl Service {
    /// Says that everything is under way.
    pub fn ready() -> Service {
        tell(&[NotifyState::Ready]);
        let mut microseconds = 0;
        let is_watched = sd_notify::watchdog_enabled(false, &mut microseconds);
        let watchdog = is_watched.then(|| Duration::from_micros(microseconds / 2));
        Service { watchdog, told: Instant::now(), beats: Vec::new() }
    }

    /// Says in time that nothing is stuck, if all threads have come along.
    pub fn alive(&mut self, server: &Server) {
        if self.watchdog.is_none_or(|watchdog| self.told.elapsed() < watchdog) {
            return;
        }
        let beats = server.beats();
        let goes_on = beats.iter().zip(&self.beats).all(|(now, before)| now > before);
        if goes_on {
            tell(&[NotifyState::Watchdog]);
            self.told = Instant::now();
        }
        self.beats = beats;
    }

    /// Says that files are read again, and when that is over.
    pub fn reloading(&self, read: impl FnOnce()) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(_) => tell(&[NotifyState::Reloading]),
        }
        read();
        tell(&[NotifyState::Ready]);
    }

    /// Says that the end has begun.
    pub fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(false, state) {
        tracing::warn!("cannot notify the service manager: {error}");
    }
}

/// Raises the limit of open files as far as the system lets us.
///
/// # Errors
/// That is not enough for so many hosts; in words.
pub fn allow_files(hosts: usize) -> Result<(), String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = hosts as u64 + OTHER_FILES;
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let wanted = Rlimit { current: maximum, maximum };
    if maximum.is_none_or(|most| most >= needed) && setrlimit(Resource::Nofile, wanted).is_ok() {
        return Ok(());
    }
    let most = maximum.map_or("what the system allows".to_owned(), |most| most.to_string());
    Err(format!(
        "{hosts} hosts need {needed} open files, and the limit is {most}: raise it \
         (`ulimit -n`, `LimitNOFILE=` of the unit), or divide the fleet between processes"
    ))
}
