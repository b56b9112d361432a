//! Numbers that one thread changes and others read: counts, gauges, and times in buckets.
//! Threads never wait for each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that other threads read while it changes.
#[derive(Debug, Default)]
pub struct Number(AtomicU64);

impl Number {
    /// Adds to the number.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Sets the number.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The present number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the buckets of a [`Histogram`], in seconds. One more bucket has no bound.
pub const BOUNDS: [f64; 15] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
    30.0,
];

/// Durations in buckets.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Number; BOUNDS.len() + 1],
    /// The bits of the sum in seconds. Nanoseconds in 64 bits are too few if clocks are decades
    /// apart.
    sum: AtomicU64,
}

impl Histogram {
    /// Counts a time.
    pub fn observe(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        self.buckets[BOUNDS.partition_point(|bound| *bound < seconds)].add(1);
        let added = |sum: u64| Some((f64::from_bits(sum) + seconds).to_bits());
        // The closure always returns a value, so this cannot fail.
        let _ = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
    }

    /// Times in each bucket, and their sum in seconds.
    pub fn counts(&self) -> ([u64; BOUNDS.len() + 1], f64) {
        let counts = std::array::from_fn(|at| self.buckets[at].get());
        (counts, f64::from_bits(self.sum.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_into_the_bucket_that_they_fit_in() {
        let histogram = Histogram::default();
        for microseconds in [0, 100, 101, 1_000, 250_000, 250_001, 29_999_000, 31_000_000] {
            histogram.observe(Duration::from_micros(microseconds));
        }
        let (counts, sum) = histogram.counts();
        assert_eq!(counts, [2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1]);
        assert!((sum - 61.500_202).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn a_sum_of_long_times_never_falls() {
        let histogram = Histogram::default();
        (0..20).for_each(|_| histogram.observe(Duration::from_secs(1_800_000_000)));
        assert_eq!(histogram.counts().1, 3.6e10);
        histogram.observe(Duration::MAX);
        assert!(histogram.counts().1 > 1e19);
    }
}
