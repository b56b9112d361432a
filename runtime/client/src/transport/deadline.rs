//! When something has to be done at the latest.

use std::io;
use std::time::{Duration, Instant};

/// A point in time, or none.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// `limit` from `now`; without a limit, never.
    pub fn after(now: Instant, limit: Option<Duration>) -> Deadline {
        // A limit beyond what the clock can express is none.
        Deadline(limit.and_then(|limit| now.checked_add(limit)))
    }

    /// The point in time; `None` for never.
    pub fn instant(self) -> Option<Instant> {
        self.0
    }

    /// Time that is left as of `now`, more than zero; `None` for any time.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when none is left.
    pub fn remaining(self, now: Instant) -> io::Result<Option<Duration>> {
        let Some(end) = self.0 else { return Ok(None) };
        match end.saturating_duration_since(now) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}
