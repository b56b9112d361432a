//! When to take the samples of a live source, and waiting until then.

use std::time::{Duration, Instant};

/// A clock that can wait.
pub trait Clock {
    /// The time now.
    fn now(&self) -> Instant;

    /// Waits for this time, or shorter if there is nothing to wait for any more.
    fn pause(&self, time: Duration);

    /// True once there is nothing to wait for any more.
    fn is_over(&self) -> bool {
        false
    }
}

/// The clock of this machine.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Times to fetch at: multiples of an interval, counted from the start.
pub struct Pace {
    interval: Duration,
    last: Instant,
}

impl Pace {
    /// Times from now on.
    pub fn new(interval: Duration, now: Instant) -> Pace {
        Pace { interval, last: now }
    }

    /// Waits for the next time; those that have passed are left out.
    pub fn wait(&mut self, clock: &dyn Clock) {
        clock.pause(self.until_next(clock.now()));
    }

    /// How long it is until the next time, which the caller waits for.
    pub fn until_next(&mut self, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.last).as_nanos();
        // Below the interval, which is no more than 10^18 nanoseconds.
        let since = u64::try_from(since % self.interval.as_nanos()).unwrap_or(0);
        let wait = self.interval.saturating_sub(Duration::from_nanos(since));
        self.last = now + wait;
        wait
    }
}

#[cfg(test)]
pub mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A clock that only pauses set forward. It records the pauses.
    #[derive(Clone)]
    pub struct Made {
        start: Instant,
        pauses: Arc<Mutex<Vec<Duration>>>,
    }

    impl Made {
        pub fn new() -> Made {
            Made { start: Instant::now(), pauses: Arc::default() }
        }

        /// The pauses so far, in seconds.
        pub fn pauses(&self) -> Vec<f64> {
            let pauses = self.pauses.lock().expect("nobody panics");
            pauses.iter().map(Duration::as_secs_f64).collect()
        }
    }

    impl Clock for Made {
        fn now(&self) -> Instant {
            self.start + self.pauses.lock().expect("nobody panics").iter().sum::<Duration>()
        }

        fn pause(&self, time: Duration) {
            self.pauses.lock().expect("nobody panics").push(time);
        }
    }

    #[test]
    fn times_that_have_passed_are_left_out() {
        let clock = Made::new();
        let mut pace = Pace::new(Duration::from_secs(1), clock.now());
        pace.wait(&clock);
        clock.pause(Duration::from_millis(2250));
        pace.wait(&clock);
        pace.wait(&clock);
        assert_eq!(clock.pauses(), [1.0, 2.25, 0.75, 1.0]);
    }
}
