//! Signals: those that ask a command to end (see pmlogger(1)), and the one that
//! would end it in the middle of a write.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use super::samples::pace::Clock;

/// Notes SIGHUP, SIGINT, SIGQUIT and SIGTERM as soon as it is made. A second
/// signal ends the process at once, as it would without this.
pub struct Ending {
    is_asked: Arc<AtomicBool>,
    /// Readable once a signal came.
    wake: UnixStream,
}

impl Ending {
    /// Begins to note signals; not SIGHUP under nohup(1).
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn watch() -> io::Result<Ending> {
        let is_asked = Arc::new(AtomicBool::new(false));
        let (wake, waker) = UnixStream::pair()?;
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        let is_asked_before = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGQUIT, SIGTERM].into_iter().chain(hangup) {
            // The note comes first: the handler is there from the first line on, and a signal that
            // comes between two lines must not be lost.
            flag::register(signal, Arc::clone(&is_asked))?;
            low_level::pipe::register(signal, waker.try_clone()?)?;
            // In this order: the first signal only sets the flag.
            flag::register_conditional_default(signal, Arc::clone(&is_asked_before))?;
            flag::register(signal, Arc::clone(&is_asked_before))?;
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
            // Whatever ended it, the next round finds out.
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

    fn is_over(&self) -> bool {
        self.is_asked()
    }
}

/// Makes a write beyond the limit of the size of files (`ulimit -f`) fail as on
/// a full disk, instead of letting SIGXFSZ end the process.
pub fn outlive_file_size_limit() {
    // Nobody reads the flag. If no handler can be installed, nothing changes.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// True for a signal that the process was told to ignore when it began.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}
