//! Periods of unusual behaviour, drawn from a seed before anything runs.

use std::time::Duration;

use crate::mix::mix;

/// A condition at each time.
#[derive(Debug)]
pub(super) struct Periods<T> {
    usual: T,
    /// Start and end of each period with its condition, in order.
    others: Vec<(Duration, Duration, T)>,
}

/// This many periods an hour, on average, that begin and end within a length of time. They last
/// from some seconds to some minutes; each scale is as likely.
pub(super) fn periods<T>(
    seed: u64,
    length: Duration,
    an_hour: f64,
    usual: T,
    draw: impl Fn(u64) -> T,
) -> Periods<T> {
    let milliseconds = u64::try_from(length.as_millis()).unwrap_or(u64::MAX).max(1);
    let count = (an_hour * length.as_secs_f64() / 3600.0).ceil() as u64;
    let mut others: Vec<_> = (0..count)
        .map(|at| {
            let begin = mix(&[seed, at, 0]) % milliseconds;
            let most = [3_000, 30_000, 300_000][(mix(&[seed, at, 1]) % 3) as usize];
            let end = (begin + 1 + mix(&[seed, at, 2]) % most).min(milliseconds);
            let [begin, end] = [begin, end].map(Duration::from_millis);
            (begin, end, draw(mix(&[seed, at, 3])))
        })
        .collect();
    others.sort_by_key(|(begin, ..)| *begin);
    Periods { usual, others }
}

impl<T: Copy> Periods<T> {
    /// The condition at a time. Where periods overlap, the latest counts.
    pub fn at(&self, time: Duration) -> T {
        let begun = self.others.partition_point(|(begin, ..)| *begin <= time);
        let on = self.others[..begun].iter().rev().find(|(_, end, _)| time < *end);
        on.map_or(self.usual, |(.., how)| *how)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_begin_and_end() {
        let hour = Duration::from_secs(3600);
        let all = periods(7, hour, 20.0, 0, |number| 1 + number % 3);
        assert_eq!(all.others.len(), 20);
        assert!(all.others.iter().all(|(begin, end, _)| begin < end && *end <= hour));
        let found: Vec<_> = (0..3600).map(|at| all.at(Duration::from_secs(at))).collect();
        assert!((0..4).all(|how| found.contains(&how)), "{found:?}");
        assert_eq!(all.at(hour), 0);
    }
}
