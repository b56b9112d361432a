//! `serve` as a service of systemd (sd_notify(3)). It reports that it is ready, that it reads
//! its files again, that it ends, and regularly that no thread is stuck.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use crate::fleet::server::Server;

/// Connection to the service manager.
pub struct Service {
    /// Time between reports that no thread is stuck.
    watchdog: Option<Duration>,
    told: Instant,
    /// Map from the name of a thread to its count at the last check.
    beats: HashMap<String, u64>,
}

impl Service {
    /// Reports that the server runs.
    pub fn ready() -> Service {
        tell(&[NotifyState::Ready]);
        let watchdog = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        Service { watchdog, told: Instant::now(), beats: HashMap::new() }
    }

    /// Reports in time that no thread is stuck, if every thread has made progress.
    pub fn alive(&mut self, server: &Server) {
        if self.watchdog.is_none_or(|watchdog| self.told.elapsed() < watchdog) {
            return;
        }
        let beats: HashMap<String, u64> = server.beats().into_iter().collect();
        match stuck(&beats, &self.beats) {
            None => {
                tell(&[NotifyState::Watchdog]);
                self.told = Instant::now();
            }
            Some(thread) => tracing::warn!(thread, "is stuck"),
        }
        self.beats = beats;
    }

    /// Reports that the server ends.
    pub fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

/// Reports the start and the end of reading files.
pub fn reloading(read: impl FnOnce()) {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
    read();
    tell(&[NotifyState::Ready]);
}

/// A thread whose count has not changed. New and ended threads are not stuck.
fn stuck<'b>(now: &'b HashMap<String, u64>, before: &HashMap<String, u64>) -> Option<&'b str> {
    let mut all = now.iter();
    let is_stuck =
        |(name, now): &(&String, &u64)| before.get(*name).is_some_and(|before| now <= &before);
    all.find(is_stuck).map(|(name, _)| name.as_str())
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("cannot notify the service manager: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beat_more_often_than_they_are_looked_at() {
        assert!(crate::fleet::world::BEAT * 2 < super::super::LOOK);
    }

    #[test]
    fn a_thread_that_does_not_count_on_is_stuck() {
        let beats = |all: &[(&str, u64)]| -> HashMap<String, u64> {
            all.iter().map(|(name, beat)| ((*name).to_owned(), *beat)).collect()
        };
        let before = beats(&[("fleet 0", 3), ("stage two", 3), ("sink a", 9)]);
        assert_eq!(stuck(&before, &HashMap::new()), None);
        // One is new, one was restarted under another name, one has gone.
        let now = beats(&[("fleet 0", 4), ("sink b", 0), ("sink a", 10)]);
        assert_eq!(stuck(&now, &before), None);
        let now = beats(&[("fleet 0", 4), ("stage two", 3)]);
        assert_eq!(stuck(&now, &before), Some("stage two"));
    }
}
