//! Signals: those that ask a command to come to its end (see pmlogger(1)), and
//! the one that would end it in the middle of a write.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use super::samples::pace::Clock;

/// Takes note of SIGHUP, SIGINT, SIGQUIT and SIGTERM from its making on. A
/// second one ends the process at once, as if nobody took note.
pub struct Ending {
    is_asked: Arc<AtomicBool>,
    /// Readable once a signal came.
    wake: UnixStream,
}

impl Ending {
    /// From now on signals are noted. Under nohup(1) SIGHUP is none of them.
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

    fn is_over(&self) -> bool {
        self.is_asked()
    }
}

/// Has a write beyond the limit of the size of files (`ulimit -f`) fail, as on
/// a full disk, where SIGXFSZ would end the process.
pub fn outlive_file_size_limit() {
    // The flag is of no interest. If there is no handler, it is as it was.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// True for a signal that the process was told to ignore when it began.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}
