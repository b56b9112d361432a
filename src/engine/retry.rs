//! When to look again for metrics that a source lacks.
//!
//! A metric may appear without a notice, for example if its agent was not ready before. So the
//! search is repeated, less and less often.

use std::ops::Add;
use std::time::Duration;

/// The next look for missing metrics. `I` is a clock's instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry<I> {
    at: I,
    /// Time since the last look.
    wait: Duration,
}

impl<I: Copy + PartialOrd + Add<Duration, Output = I>> Retry<I> {
    /// The next look, after one now. `before` is the retry that led to this look, unless the source
    /// has announced changes since. Each wait is twice as long as the one before, up to the
    /// longest.
    pub fn after(
        before: Option<Retry<I>>,
        now: I,
        (first, longest): (Duration, Duration),
    ) -> Retry<I> {
        let wait = before.map_or(first, |before| (2 * before.wait).min(longest));
        Retry { at: now + wait, wait }
    }

    /// True if it is time to look again.
    pub fn is_due(&self, now: I) -> bool {
        self.at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_twice_as_long_up_to_the_longest() {
        let seconds = Duration::from_secs;
        let (mut now, mut before, mut waits) = (seconds(0), None, Vec::new());
        for _ in 0..5 {
            let next = Retry::after(before, now, (seconds(2), seconds(9)));
            assert!(!next.is_due(now) && next.is_due(next.at));
            waits.push((next.at - now).as_secs());
            (now, before) = (next.at, Some(next));
        }
        assert_eq!(waits, [2, 4, 8, 9, 9]);
    }
}
