//! Signals for a command, such as those that end it (see pmlogger(1)), and the signal that
//! would end it in the middle of a write.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

use super::samples::pace::Clock;

/// Signals that have arrived.
pub struct Signals {
    /// Pairs of a signal and a flag: true once it has arrived.
    noted: Vec<(i32, Arc<AtomicBool>)>,
    /// Readable once a signal has arrived.
    wake: UnixStream,
}

impl Signals {
    /// Watches SIGHUP, SIGINT, SIGQUIT and SIGTERM, which ask a command to end; not SIGHUP
    /// under nohup(1).
    pub fn to_end() -> io::Result<Signals> {
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        let signals: Vec<i32> = [SIGINT, SIGQUIT, SIGTERM].into_iter().chain(hangup).collect();
        Signals::watch(&signals, &signals)
    }

    /// Watches `signals` from now on. A second signal of those in `end` ends the process at
    /// once, as it would without this.
    pub fn watch(signals: &[i32], end: &[i32]) -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let is_second = Arc::new(AtomicBool::new(false));
        let mut noted = Vec::new();
        for signal in signals {
            // The flag comes first. Its handler must be there from the first line on, as a
            // signal between two lines must not be lost.
            let came = Arc::new(AtomicBool::new(false));
            flag::register(*signal, Arc::clone(&came))?;
            low_level::pipe::register(*signal, waker.try_clone()?)?;
            if end.contains(signal) {
                // In this order the first signal only sets the flag.
                flag::register_conditional_default(*signal, Arc::clone(&is_second))?;
                flag::register(*signal, Arc::clone(&is_second))?;
            }
            noted.push((*signal, came));
        }
        Ok(Signals { noted, wake })
    }

    /// True if a signal has arrived and was not yet taken.
    pub fn have_come(&self) -> bool {
        self.noted.iter().any(|(_, came)| came.load(Ordering::Relaxed))
    }

    /// Takes a signal that has arrived, the first in the order of their list.
    #[cfg(feature = "fleet")]
    pub fn take(&self) -> Option<i32> {
        let mut noted = self.noted.iter();
        noted.find_map(|(signal, came)| came.swap(false, Ordering::Relaxed).then_some(*signal))
    }

    /// Waits for a time, or until a signal arrives.
    pub fn wait(&self, time: Duration) {
        let end = Instant::now().checked_add(time);
        while !self.have_come() {
            // A time beyond the range of the clock never comes.
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return;
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // The next round finds out what ended the wait.
            let _ = poll(&mut [PollFd::new(&self.wake, PollFlags::IN)], left.as_ref());
            // A signal sets its flag before it wakes this thread, so none is lost here.
            let mut wakes = [0; 16];
            while matches!((&self.wake).read(&mut wakes), Ok(read) if read > 0) {}
        }
    }
}

/// A signal ends a pause, and the run.
impl Clock for Signals {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn pause(&self, time: Duration) {
        self.wait(time);
    }

    fn is_over(&self) -> bool {
        self.have_come()
    }
}

/// Makes a write beyond the limit of the size of files (`ulimit -f`) fail as on
/// a full disk, instead of letting SIGXFSZ end the process.
pub fn outlive_file_size_limit() {
    outlive(SIGXFSZ);
}

/// Keeps a signal from ending the process.
pub fn outlive(signal: i32) {
    // The flag is unused. If no handler can be installed, nothing changes.
    let _ = flag::register(signal, Arc::default());
}

/// True for a signal that the process ignored when it began.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}
