//! When to take samples of a live source.

use std::time::{Duration, Instant};

/// Times to fetch at: multiples of an interval, counted from the start.
pub struct Pace {
    interval: Duration,
    last: Instant,
}

impl Pace {
    /// Times from now on.
    pub fn new(interval: Duration) -> Pace {
        Pace { interval, last: Instant::now() }
    }

    /// Waits for the next time; those that have passed are left out.
    pub fn wait(&mut self) {
        std::thread::sleep(self.until_next());
    }

    /// How long it is until the next time, which the caller waits for.
    pub fn until_next(&mut self) -> Duration {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.last).as_nanos();
        // Below the interval, which is no more than 10^18 nanoseconds.
        let since = u64::try_from(since % self.interval.as_nanos()).unwrap_or(0);
        let wait = self.interval.saturating_sub(Duration::from_nanos(since));
        self.last = now + wait;
        wait
    }
}
