//! Signals that ask a command to come to its end (see pmlogger(1)).

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::patience::Clock;

/// Takes note of SIGINT and SIGTERM from its making on. A second one ends the
/// process at once, as if nobody took note.
pub struct Ending {
    is_asked: Arc<AtomicBool>,
    /// Readable once a signal came.
    wake: UnixStream,
}

impl Ending {
    /// From now on signals are noted.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn watch() -> io::Result<Ending> {
        let is_asked = Arc::new(AtomicBool::new(false));
        let (wake, waker) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first one only sets the flag.
            flag::register_conditional_default(signal, Arc::clone(&is_asked))?;
            flag::register(signal, Arc::clone(&is_asked))?;
            low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Ending { is_asked, wake })
    }

    /// True once a signal came.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Waits for a time, or until a signal comes.
    pub fn wait(&self, time: Duration) {
        let end = Instant::now().checked_add(time);
        while !self.is_asked() {
            // A time beyond what the clock can tell never comes.
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return;
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // Whatever it ends by, the next round looks why.
            let _ = poll(&mut [PollFd::new(&self.wake, PollFlags::IN)], left.as_ref());
        }
    }
}

/// A signal ends a pause.
impl Clock for Ending {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn pause(&self, time: Duration) {
        self.wait(time);
    }
}
