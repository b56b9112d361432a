//! What the engine counts about itself. How it is shown is decided elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why a slot failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No connection came about.
    Connect,
    /// An attempt to connect failed not long ago, and the next one is not due.
    BackOff,
    /// No answer before the deadline.
    Timeout,
    /// The connection broke.
    Lost,
    /// What the host sent is not PCP's protocol.
    Malformed,
    /// The host refused: who logs in, or a status for the whole.
    Refused,
    /// It is one kind of host too many.
    Kinds,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 7] = [
        Reason::Connect,
        Reason::BackOff,
        Reason::Timeout,
        Reason::Lost,
        Reason::Malformed,
        Reason::Refused,
        Reason::Kinds,
    ];

    /// The word for it, a value of the label `reason`.
    pub const fn word(self) -> &'static str {
        match self {
            Reason::Connect => "connect",
            Reason::BackOff => "back-off",
            Reason::Timeout => "timeout",
            Reason::Lost => "lost",
            Reason::Malformed => "malformed",
            Reason::Refused => "refused",
            Reason::Kinds => "kinds",
        }
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Makes it at least so much, for what is counted elsewhere.
    pub fn raise_to(&self, count: u64) {
        self.0.fetch_max(count, Ordering::Relaxed);
    }

    /// What it has come to.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many times took how long.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Parallel to [`Histogram::BOUNDS`], and one for what is longer.
    counts: [AtomicU64; Histogram::BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    /// The longest time of each part, in seconds.
    pub const BOUNDS: [f64; 13] =
        [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0];

    /// Adds a time.
    pub fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let at = Histogram::BOUNDS.partition_point(|bound| *bound < seconds);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How many times there were in each part.
    pub fn counts(&self) -> [u64; Histogram::BOUNDS.len() + 1] {
        self.counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// All times together, in seconds.
    pub fn sum(&self) -> f64 {
        self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// All that hosts count.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Slots that were begun.
    pub started: Counter,
    /// Slots that were answered and evaluated.
    pub answered: Counter,
    /// Slots that were never begun.
    pub missed: Counter,
    /// Slots that failed, parallel to [`Reason::ALL`].
    pub failed: [Counter; Reason::ALL.len()],
    /// Connections that came about.
    pub connects: Counter,
    /// Times that definitions were bound to a host.
    pub binds: Counter,
    /// Metrics of frames that had too many instances.
    pub too_many_instances: Counter,
    /// How late slots began.
    pub lateness: Histogram,
    /// How long fetches took, from the request to the reply.
    pub fetch: Histogram,
    /// How long evaluating took.
    pub evaluate: Histogram,
}

impl Numbers {
    /// Counts a failed slot.
    pub fn failed(&self, reason: Reason) {
        self.failed[reason as usize].add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_count_up_to_their_bounds() {
        let histogram = Histogram::default();
        for seconds in [0.0001, 0.0002, 20.0] {
            histogram.add(Duration::from_secs_f64(seconds));
        }
        let counts = histogram.counts();
        assert_eq!((counts[0], counts[1], counts[12], counts[13]), (1, 1, 0, 1));
        assert!((histogram.sum() - 20.0003).abs() < 1e-9);
    }

    #[test]
    fn reasons_stand_at_their_numbers() {
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }
}
