//! The engine's clock. It follows the machine's clock forward at once, and never goes back:
//! slots are counted by it, and no slot comes twice.
//!
//! ```text
//!  engine │        ╱ set forward: it follows      ╱ they meet again
//!         │       │                        __──‾‾╱
//!         │       │               __──‾‾‾‾      ╱   half speed
//!         │      ╱         __╱‾‾‾‾             ╱
//!         └─────────────────── │ set back ───────────► machine
//! ```
//!
//! The caller reads the clocks of the machine.

use std::time::Duration;

use crate::fleet::slot::Nanos;

/// Smallest step back of the clock that is logged.
const TOLD: Duration = Duration::from_secs(1);

/// The engine's clock.
#[derive(Debug, Default)]
pub struct Clock {
    latest: Option<Reading>,
    slow: Slow,
}

/// The last stretch at half speed, by the engine's clock. It lost as much time as it shows.
#[derive(Clone, Copy, Debug, Default)]
struct Slow {
    /// Time lost in earlier stretches.
    before: Duration,
    began: Nanos,
    ended: Nanos,
}

/// The last reading.
#[derive(Debug)]
struct Reading {
    engine: Nanos,
    machine: Nanos,
    steady: Duration,
}

impl Clock {
    /// A clock before the first reading.
    pub const fn new() -> Clock {
        let slow = Slow { before: Duration::ZERO, began: Nanos(0), ended: Nanos(0) };
        Clock { latest: None, slow }
    }

    /// Time that the engine's clock had lost when it showed `at`, since the first reading.
    pub fn slowed(&self, at: Nanos) -> Duration {
        let Slow { before, began, ended } = self.slow;
        before + at.min(ended).since(began)
    }

    /// The engine's time. `machine` is the time of the machine's clock, which users can set.
    /// `steady` is the time of a clock that nobody can set.
    pub fn read(&mut self, machine: Nanos, steady: Duration) -> Nanos {
        let mut engine = machine;
        if let Some(latest) = &self.latest {
            let passed = steady.saturating_sub(latest.steady);
            engine = machine.max(latest.engine.after(passed / 2));
            let was_slow = latest.engine > latest.machine;
            if engine > machine && !was_slow {
                let before = self.slowed(self.slow.ended);
                self.slow = Slow { before, began: latest.engine, ended: latest.engine };
            }
            if engine > machine || was_slow {
                let lost = passed.saturating_sub(engine.since(latest.engine));
                self.slow.ended = self.slow.ended.after(lost);
            }
            let back = latest.machine.after(passed).since(machine);
            if back > TOLD {
                tracing::warn!(
                    "the machine's clock was set back by {} seconds; slots take twice as long until it has caught up",
                    back.as_secs()
                );
            }
        }
        self.latest = Some(Reading { engine, machine, steady });
        engine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_forward_and_never_goes_back() {
        let mut clock = Clock::new();
        let mut read = |machine, steady| {
            let engine = clock.read(Nanos(machine), Duration::from_nanos(steady)).0;
            (engine, clock.slowed(Nanos(engine)).as_nanos())
        };
        assert_eq!(read(1000, 0), (1000, 0));
        assert_eq!(read(1010, 10), (1010, 0));
        // A user sets the machine's clock forward.
        assert_eq!(read(2020, 20), (2020, 0));
        // And back: it goes on at half speed until both are the same.
        assert_eq!(read(1030, 30), (2025, 5));
        assert_eq!(read(1030, 30), (2025, 5));
        assert_eq!(read(1530, 530), (2275, 255));
        assert_eq!(read(3010, 2010), (3015, 995));
        assert_eq!(read(3030, 2030), (3030, 1000));
        assert_eq!(read(3040, 2040), (3040, 1000));
        // The losses at earlier times.
        let lost = [2000, 2020, 2025, 2275, 4000].map(|at| clock.slowed(Nanos(at)).as_nanos());
        assert_eq!(lost, [0, 0, 5, 255, 1000]);
    }
}
