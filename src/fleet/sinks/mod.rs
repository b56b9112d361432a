//! Sinks: who gets what the fleet measured. Each has its own [`ring::Ring`] or
//! keeps only what is newest, so that nobody waits for it.
//!
//! ```text
//!                 ┌─ ring ─► encode ─► remote_write ─► client ─► receiver
//! Event ─ Sinks ──┤
//!                 └─ newest ─► scrape, text ◄─ http ◄─ whoever asks
//! ```
//!
//! Names, labels and values of series are the same in all of them ([`names`]).

pub mod client;
pub mod delivery;
pub mod encode;
pub mod http;
pub mod names;
pub mod newest;
pub mod number;
pub mod numbers;
pub mod query;
pub mod remote_write;
pub mod ring;
#[cfg(any(test, feature = "fuzz"))]
pub mod samples;
pub mod scrape;
pub mod secret;
pub mod text;
pub mod tls;

use std::sync::Arc;

use super::frame::Event;
use newest::Newest;
use ring::Ring;

/// Where events go.
#[derive(Debug)]
pub enum Inlet {
    /// They wait for the sink's own thread.
    Ring(Arc<Ring>),
    /// The newest of each host is kept.
    Newest(Arc<Newest>),
}

/// All sinks, by their positions in the configuration, at most 64.
#[derive(Debug, Default)]
pub struct Sinks(pub Vec<Inlet>);

impl Sinks {
    /// Hands an event to the sinks that want any of its metrics. Waits for none
    /// of them.
    pub fn tell(&self, event: &Arc<Event>) {
        let metrics = &event.schema().metrics;
        let wanted = metrics.iter().fold(0, |wanted, metric| wanted | metric.sinks);
        for (at, inlet) in self.0.iter().enumerate() {
            let is_wanted =
                u32::try_from(at).is_ok_and(|at| wanted.checked_shr(at).unwrap_or(0) & 1 == 1);
            if !is_wanted {
                continue;
            }
            match inlet {
                Inlet::Ring(ring) => ring.push(event),
                Inlet::Newest(newest) => newest.tell(event),
            }
        }
    }
}
