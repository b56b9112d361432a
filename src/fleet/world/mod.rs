//! The machine as the engine of a fleet uses it: clock, connections, files, random numbers and
//! threads. A simulation has its own world, in which a seed decides all of them.

pub mod clock;
pub mod socket;
#[cfg(test)]
pub mod tests;

use std::fs::File;
use std::future::Future;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use pmderive_runtime::escape;
use pmderive_runtime::locks::lock;
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::transport::{AsyncSocket, Transport};
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::sinks::client::{Client, HttpClient};
use super::slot::Nanos;
use crate::engine::Engine;
use clock::Clock;
use socket::{LOOKUPS, NamedSocket};

/// A machine.
pub trait World: 'static {
    /// Transport of connections to hosts.
    type Transport: Transport + 'static;

    /// Client of receivers of remote write.
    type Client: Client;

    /// The engine's clock, by which slots are counted. It never goes back ([`Clock`]).
    fn now() -> Nanos;

    /// Time that this clock had lost when it showed `at`: it is slow after the machine's clock
    /// was set back.
    fn slowed(at: Nanos) -> Duration {
        let _ = at;
        Duration::ZERO
    }

    /// A random number from 0 to 1.
    fn chance() -> f64;

    /// Looks the name of a host up, unless it is cached. The next attempt to connect finds the
    /// address, or fails if there is none.
    fn resolve(host: &str) -> impl Future<Output = ()>;

    /// An engine that compiles in the background.
    fn engine(engine: Engine) -> Engine {
        engine
    }

    /// Runs work in the background, as a task that may spawn others on the local set.
    ///
    /// # Errors
    /// The system has no thread for it.
    fn spawn<W: Future<Output = ()> + 'static>(
        name: &str,
        work: impl FnOnce() -> W + Send + 'static,
    ) -> io::Result<Job>;

    /// Opens a file for appending; without a path, standard output.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(path: Option<&Path>) -> io::Result<Box<dyn io::Write + Send>>;
}

/// Work that runs in the background.
#[derive(Debug, Default)]
pub struct Job {
    /// Closed at the end of the thread; `None` in a simulation.
    over: Option<Receiver<()>>,
    beat: Arc<AtomicU64>,
}

impl Job {
    /// Waits for its end until a deadline, if it is a thread. In a simulation it is a task, and
    /// this returns at once. Returns false if the thread still runs.
    pub fn join(self, deadline: Instant) -> bool {
        let Some(over) = self.over else { return true };
        let patience = deadline.saturating_duration_since(Instant::now());
        over.recv_timeout(patience) != Err(RecvTimeoutError::Timeout)
    }

    /// True once its thread has ended; always true for a task.
    pub fn is_over(&self) -> bool {
        self.over.as_ref().is_none_or(|over| over.try_recv() == Err(TryRecvError::Disconnected))
    }

    /// A number that grows every second unless the thread is stuck.
    pub fn beat(&self) -> u64 {
        self.beat.load(Ordering::Relaxed)
    }
}

/// Runs work in a new thread with a tokio runtime of its own. The last argument limits its
/// threads for blocking calls.
///
/// # Errors
/// The system has no more threads or descriptors.
pub fn thread<W: Future<Output = ()> + 'static>(
    name: &str,
    blocking: usize,
    work: impl FnOnce() -> W + Send + 'static,
) -> io::Result<Job> {
    // The system refuses names with a NUL.
    let name = name.replace('\0', "");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(blocking)
        .thread_name(&name)
        .build()?;
    let (ends, over) = channel();
    let beat = Arc::<AtomicU64>::default();
    let own_beat = Arc::clone(&beat);
    std::thread::Builder::new().name(name).spawn(move || {
        let _ends: Sender<()> = ends;
        let local = LocalSet::new();
        local.spawn_local(keep_beating(own_beat));
        local.block_on(&runtime, async { work().await });
        // A lookup or a page in progress does not delay the end.
        runtime.shutdown_background();
    })?;
    Ok(Job { over: Some(over), beat })
}

/// Time between two beats of a thread. It is shorter than the time between two checks, so a
/// beat that is a little late looks like no trouble.
pub const BEAT: Duration = Duration::from_millis(250);

/// Continues to count as long as the thread makes progress.
async fn keep_beating(beat: Arc<AtomicU64>) {
    loop {
        beat.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(BEAT).await;
    }
}

/// The engine's clock: all threads have one.
static CLOCK: Mutex<Clock> = Mutex::new(Clock::new());

/// This machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl World for Machine {
    type Transport = NamedSocket<AsyncSocket>;

    type Client = HttpClient;

    fn now() -> Nanos {
        static BEGAN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        let mut clock = lock(&CLOCK);
        clock.read(Nanos::from(Timestamp::now()), BEGAN.elapsed())
    }

    fn slowed(at: Nanos) -> Duration {
        lock(&CLOCK).slowed(at)
    }

    fn chance() -> f64 {
        fastrand::f64()
    }

    async fn resolve(host: &str) {
        NamedSocket::<AsyncSocket>::resolve(host).await;
    }

    fn spawn<W: Future<Output = ()> + 'static>(
        name: &str,
        work: impl FnOnce() -> W + Send + 'static,
    ) -> io::Result<Job> {
        thread(name, LOOKUPS, work)
    }

    fn open(path: Option<&Path>) -> io::Result<Box<dyn io::Write + Send>> {
        let Some(path) = path else { return Ok(Box::new(standard_output())) };
        // Opened for reading as well, a FIFO does not wait for its reader, which may come and
        // go.
        let is_fifo = std::fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo());
        let file = File::options().read(is_fifo).append(true).create(true).open(path);
        match file.and_then(|file| end_line(file, path)) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => {
                let words = format!("cannot write {}: {error}", escape::path(path));
                Err(io::Error::new(error.kind(), words))
            }
        }
    }
}

/// Ends the last line of a file, if an earlier writer was stopped within it.
fn end_line(mut file: File, path: &Path) -> io::Result<File> {
    let about = file.metadata()?;
    if about.is_file() && about.len() > 0 {
        let mut last = [0];
        let mut before = File::open(path)?;
        before.seek(io::SeekFrom::End(-1))?;
        before.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

#[allow(clippy::disallowed_methods, reason = "what a terminal would obey is escaped in JSON")]
fn standard_output() -> io::Stdout {
    io::stdout()
}
