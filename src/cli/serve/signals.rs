//! The signals that `serve` obeys. SIGTERM and SIGINT end it. After SIGHUP it reads its
//! files again. After SIGUSR1 it reopens the files that it writes to.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// To end.
    End,
    /// To read the files again.
    Reload,
    /// To open the files that are written to anew.
    Reopen,
}

/// Signals that came, until somebody asks.
pub struct Signals {
    came: Vec<(Signal, Arc<AtomicBool>)>,
    /// Readable once a signal came.
    wake: UnixStream,
}

impl Signals {
    /// From now on they are noted. A second one that asks for the end gets it at once.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn watch() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let mut came = Vec::new();
        let end = Arc::new(AtomicBool::new(false));
        for (number, signal) in [
            (SIGTERM, Signal::End),
            (SIGINT, Signal::End),
            (SIGHUP, Signal::Reload),
            (SIGUSR1, Signal::Reopen),
        ] {
            let is_asked = Arc::new(AtomicBool::new(false));
            if signal == Signal::End {
                flag::register_conditional_default(number, Arc::clone(&end))?;
                flag::register(number, Arc::clone(&end))?;
            }
            flag::register(number, Arc::clone(&is_asked))?;
            low_level::pipe::register(number, waker.try_clone()?)?;
            came.push((signal, is_asked));
        }
        Ok(Signals { came, wake })
    }

    /// The next signal, if one came or comes within a time.
    pub fn wait(&self, time: Duration) -> Option<Signal> {
        if let Some(signal) = self.next() {
            return Some(signal);
        }
        let time = Timespec::try_from(time).ok();
        // Whatever it ends by, we look what came.
        let _ = poll(&mut [PollFd::new(&self.wake, PollFlags::IN)], time.as_ref());
        let mut wakes = [0; 16];
        while matches!(io::Read::read(&mut &self.wake, &mut wakes), Ok(read) if read > 0) {}
        self.next()
    }

    fn next(&self) -> Option<Signal> {
        let mut came = self.came.iter();
        came.find_map(|(signal, is_asked)| {
            is_asked.swap(false, Ordering::Relaxed).then_some(*signal)
        })
    }
}
