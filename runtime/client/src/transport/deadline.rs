//! The latest time for something to happen.

use std::io;
use std::time::{Duration, Instant};

/// A point in time, or never.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The deadline `limit` after `now`; without a limit, never.
    pub fn after(now: Instant, limit: Option<Duration>) -> Deadline {
        // If the clock cannot express the deadline, there is none.
        Deadline(limit.and_then(|limit| now.checked_add(limit)))
    }

    /// The point in time; `None` for never.
    pub fn instant(self) -> Option<Instant> {
        self.0
    }

    /// Time left at `now`, more than zero; `None` for no limit.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if no time is left.
    pub fn remaining(self, now: Instant) -> io::Result<Option<Duration>> {
        let Some(end) = self.0 else { return Ok(None) };
        match end.saturating_duration_since(now) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}
