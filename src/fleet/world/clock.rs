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
        Clock { latest: None }
    }

    /// The engine's time. `machine` is the time of the machine's clock, which users can set.
    /// `steady` is the time of a clock that nobody can set.
    pub fn read(&mut self, machine: Nanos, steady: Duration) -> Nanos {
        let mut engine = machine;
        if let Some(latest) = &self.latest {
            let passed = steady.saturating_sub(latest.steady);
            engine = machine.max(latest.engine.after(passed / 2));
            let back = latest.machine.since(machine);
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
        let mut read = |machine, steady| clock.read(Nanos(machine), Duration::from_nanos(steady)).0;
        assert_eq!(read(1000, 0), 1000);
        assert_eq!(read(1010, 10), 1010);
        // A user sets the machine's clock forward.
        assert_eq!(read(2020, 20), 2020);
        // And back: it goes on at half speed until both are the same.
        assert_eq!(read(1030, 30), 2025);
        assert_eq!(read(1030, 30), 2025);
        assert_eq!(read(1530, 530), 2275);
        assert_eq!(read(3010, 2010), 3015);
        assert_eq!(read(3030, 2030), 3030);
        assert_eq!(read(3040, 2040), 3040);
    }
}
