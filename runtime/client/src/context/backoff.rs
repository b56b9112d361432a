//! Decides when the next attempt to connect may be made.
//!
//! Input: the outcomes of attempts, and the time. Output: how long to wait. This module
//! does not read a clock or wait.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// The reason for an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The user of the context.
    Asked,
    /// A call on a context that has lost its connection.
    Automatic,
}

/// The delays of pmReconnectContext(3): after a failure the next attempt has to wait,
/// and longer after each further failure. The first attempt is never delayed.
///
/// Contexts that lost their peers at the same moment must not all come back at the same
/// moment. So automatic attempts wait up to a quarter longer, by chance.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    /// Number of failures since the last success.
    failures: usize,
    /// The earliest times of the next requested and of the next automatic attempt.
    due: Option<[Instant; 2]>,
    random: u64,
}

impl Backoff {
    /// Each backoff has its own random delays.
    pub(super) fn new() -> Backoff {
        Backoff::with_seed(RandomState::new().hash_one(0))
    }

    /// The same seed gives the same random delays.
    pub(super) fn with_seed(seed: u64) -> Backoff {
        Backoff { failures: 0, due: None, random: seed }
    }

    /// The time that an attempt at `now` still has to wait. `None` if it may be
    /// made.
    pub(super) fn left(&self, attempt: Attempt, now: Instant) -> Option<Duration> {
        let [asked, automatic] = self.due?;
        let due = if attempt == Attempt::Asked { asked } else { automatic };
        Some(due.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// Notes that an attempt failed at `now`. `delays` are used one after the other,
    /// and the last one repeatedly. Without delays, nothing has to wait.
    pub(super) fn failed(&mut self, delays: &[Duration], now: Instant) {
        let delay = delays.get(self.failures).or(delays.last()).copied();
        self.failures += 1;
        let due = |delay: Duration| {
            let longer = delay.saturating_add(delay.mul_f64(0.25 * self.random_fraction()));
            [delay, longer].map(|delay| after(now, delay))
        };
        self.due = delay.map(due);
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    /// Notes that an attempt succeeded.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.due = None;
    }

    /// A number from 0 up to, but not including, 1 (splitmix64).
    fn random_fraction(&self) -> f64 {
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = (bits ^ (bits >> 31)) >> 32;
        bits as f64 / (1u64 << 32) as f64
    }
}

/// A delay that the clock cannot express lasts for the longest time that it can:
/// practically for ever.
fn after(now: Instant, delay: Duration) -> Instant {
    let mut delay = delay;
    loop {
        match now.checked_add(delay) {
            Some(time) => return time,
            None => delay /= 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAYS: [Duration; 3] =
        [Duration::from_secs(5), Duration::from_secs(10), Duration::from_secs(20)];

    #[test]
    fn delays_grow_to_the_last_and_success_ends_them() {
        let mut backoff = Backoff::with_seed(1);
        let mut now = Instant::now();
        assert_eq!(backoff.left(Attempt::Asked, now), None);
        for delay in [5, 10, 20, 20, 20] {
            backoff.failed(&DELAYS, now);
            let delay = Duration::from_secs(delay);
            assert_eq!(backoff.left(Attempt::Asked, now), Some(delay));
            let automatic = backoff.left(Attempt::Automatic, now).expect("a delay");
            assert!((delay..delay * 5 / 4).contains(&automatic), "{automatic:?}");
            now += delay - Duration::from_nanos(1);
            assert_eq!(backoff.left(Attempt::Asked, now), Some(Duration::from_nanos(1)));
            now += Duration::from_nanos(1);
            assert_eq!(backoff.left(Attempt::Asked, now), None);
            now += delay / 4;
            assert_eq!(backoff.left(Attempt::Automatic, now), None);
        }
        backoff.succeeded();
        backoff.failed(&DELAYS, now);
        assert_eq!(backoff.left(Attempt::Asked, now), Some(DELAYS[0]));
    }

    /// Contexts come back spread over the quarter. The same seed gives the same delays.
    #[test]
    fn chance_spreads_automatic_attempts() {
        let now = Instant::now();
        let left = |seed: u64| {
            let mut backoff = Backoff::with_seed(seed);
            backoff.failed(&DELAYS, now);
            let first = backoff.left(Attempt::Automatic, now).expect("a delay").as_secs_f64();
            backoff.failed(&DELAYS, now);
            (first, backoff.left(Attempt::Automatic, now).expect("a delay").as_secs_f64())
        };
        let mut quarters = [0; 4];
        for seed in 0..400 {
            let (first, second) = left(seed);
            assert_eq!(left(seed), (first, second));
            assert!((first / 5.0 - second / 10.0).abs() > 1e-9, "the chance is another each time");
            let share = (first - 5.0) / 1.25;
            quarters[(share * 4.0) as usize] += 1;
        }
        assert!(quarters.iter().all(|count| *count > 60), "{quarters:?}");
    }

    /// A delay beyond the clock does not panic. It means that no attempt follows.
    #[test]
    fn the_longest_delay_lasts() {
        for seed in 0..20 {
            let mut backoff = Backoff::with_seed(seed);
            let now = Instant::now();
            backoff.failed(&[Duration::MAX], now);
            let century = Duration::from_secs(100 * 365 * 86_400);
            for attempt in [Attempt::Asked, Attempt::Automatic] {
                assert!(backoff.left(attempt, now).is_some_and(|left| left > century));
            }
        }
    }

    #[test]
    fn without_delays_nothing_waits() {
        let mut backoff = Backoff::new();
        let now = Instant::now();
        backoff.failed(&[], now);
        assert_eq!(backoff.left(Attempt::Automatic, now), None);
    }
}
