//! The sink that writes events as lines of JSON, into a file or standard output.
//! It formats and writes in a thread of its own.

mod line;

use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::log::Trouble;
use super::sink_set::SinkPlace;
use super::sinks::numbers::{RequestOutcome, SinkNumbers};
use super::sinks::ring::{Popped, Ring};
use super::world::{Job, World};
use crate::escape;
use crate::syntax::counted;

/// Bytes of lines that are written at once.
const BLOCK: usize = 1 << 20;

/// How long lines wait for more to come.
const LINGER: Duration = Duration::from_millis(100);

/// Between two attempts to write what could not be written.
const PAUSE: Duration = Duration::from_secs(1);

/// What can be told to a sink that runs, and what it tells.
#[derive(Debug)]
pub struct JsonLines(Arc<State>);

/// What is told between the sink and who started it.
#[derive(Debug, Default)]
struct State {
    is_to_reopen: AtomicBool,
    /// It is writing or opening a file. A slow reader of a pipe can block it for any time.
    is_writing: AtomicBool,
    /// Nobody reads the standard output any more.
    is_closed: AtomicBool,
}

/// What may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Attempt {
    Open,
    Write,
}

/// What runs.
struct Writer<W: World> {
    name: String,
    /// Place of the sink.
    sink: SinkPlace,
    path: Option<PathBuf>,
    out: Box<dyn io::Write + Send>,
    ring: Arc<Ring>,
    numbers: Arc<SinkNumbers>,
    state: Arc<State>,
    trouble: Trouble<Attempt>,
    world: PhantomData<fn() -> W>,
}

impl JsonLines {
    /// Writes what comes into a ring to a file, at its end, or to standard output
    /// without one. The job ends once the ring is closed and empty.
    ///
    /// # Errors
    /// The file cannot be opened, or there is no thread.
    pub fn start<W: World>(
        name: &str,
        sink: SinkPlace,
        path: Option<PathBuf>,
        ring: Arc<Ring>,
        numbers: Arc<SinkNumbers>,
    ) -> Result<(JsonLines, Job), String> {
        let out = W::open(path.as_deref()).map_err(|error| error.to_string())?;
        let state = Arc::<State>::default();
        let writer = Writer {
            name: name.to_owned(),
            sink,
            path,
            out,
            ring,
            numbers,
            state: Arc::clone(&state),
            trouble: Trouble::default(),
            world: PhantomData::<fn() -> W>,
        };
        let job = W::spawn(name, || writer.run()).map_err(|error| error.to_string())?;
        Ok((JsonLines(state), job))
    }

    /// Opens the file anew before the next line, after it was moved away.
    pub fn reopen(&self) {
        self.0.is_to_reopen.store(true, Ordering::Relaxed);
    }

    /// True once whoever read the standard output is gone: nothing is written any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Relaxed)
    }

    /// True while it writes, which takes as long as whoever reads lets it.
    pub fn is_writing(&self) -> bool {
        self.0.is_writing.load(Ordering::Relaxed)
    }
}

impl<W: World> Writer<W> {
    async fn run(mut self) {
        let mut lines = String::new();
        // When the first of the lines came.
        let mut begun: Option<Instant> = None;
        // Where the lines of each event end, and how many samples they have.
        let mut ends: Vec<(usize, u64)> = Vec::new();
        let mut is_last = false;
        while !is_last {
            let patience =
                begun.map_or(Duration::MAX, |begun| LINGER.saturating_sub(begun.elapsed()));
            match self.ring.pop(patience).await {
                Popped::Event(event) => {
                    let before = lines.len();
                    let samples = line::write_event(&mut lines, &event, self.sink) as u64;
                    ends.push((lines.len(), samples));
                    if lines.len() > before {
                        begun = begun.or_else(|| Some(Instant::now()));
                    }
                    if lines.len() < BLOCK && begun.is_none_or(|begun| begun.elapsed() < LINGER) {
                        continue;
                    }
                }
                Popped::Nothing => {}
                Popped::Closed => is_last = true,
            }
            self.state.is_writing.store(true, Ordering::Relaxed);
            let written = self.write(&lines).await;
            for (end, samples) in ends.drain(..) {
                match end <= written {
                    true => self.numbers.samples.add(samples),
                    false => self.numbers.dropped_unsent.add(samples),
                }
            }
            self.state.is_writing.store(false, Ordering::Relaxed);
            lines.clear();
            begun = None;
            is_last |= self.state.is_closed.load(Ordering::Relaxed);
        }
        if self.state.is_closed.load(Ordering::Relaxed) {
            tracing::warn!(sink = self.name, "ends: the reader of the standard output has gone");
            // Others may go on, and nothing more is kept for this one.
            self.ring.close(Instant::now());
        }
        self.ring.abandon();
    }

    /// Opens the file; what was open before stays where that is not possible.
    fn open(&mut self) {
        match W::open(self.path.as_deref()) {
            Ok(out) => self.out = out,
            Err(problem) => self.tell(Attempt::Open, &problem.to_string()),
        }
    }

    /// Writes whole lines, and tries again as long as it takes: meanwhile the ring
    /// fills, and drops the oldest. Gives how many bytes were written, fewer than all if it
    /// was given up.
    async fn write(&mut self, lines: &str) -> usize {
        let lines = lines.as_bytes();
        let mut left = lines;
        let begun = Instant::now();
        while !left.is_empty() {
            if self.state.is_to_reopen.swap(false, Ordering::Relaxed) {
                self.open();
                // A line is whole in one of the files.
                let done = lines.len() - left.len();
                let begun = lines[..done].iter().rposition(|byte| *byte == b'\n');
                left = &lines[begun.map_or(0, |end| end + 1)..];
            }
            match self.out.write(left) {
                Ok(count) if count > 0 => {
                    self.numbers.bytes.add(count as u64);
                    left = &left[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe && self.path.is_none() => {
                    self.state.is_closed.store(true, Ordering::Relaxed);
                    return lines.len() - left.len();
                }
                Ok(_) => self.pause("nothing is taken any more").await,
                Err(error) => self.pause(&error.to_string()).await,
            }
            if self.ring.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                return lines.len() - left.len();
            }
        }
        // What is not flushed is written with what comes next.
        let _ = self.out.flush();
        if !lines.is_empty() {
            self.tell_end();
            self.numbers.request(RequestOutcome::Accepted);
            self.numbers.latency.observe(begun.elapsed());
        }
        lines.len()
    }

    async fn pause(&mut self, problem: &str) {
        let place = self.place();
        self.tell(Attempt::Write, &format!("cannot write {place}: {problem}; trying again"));
        self.numbers.request(RequestOutcome::Failed);
        self.numbers.retries.add(1);
        self.ring.sleep(PAUSE).await;
        if self.ring.deadline().is_some() {
            // The ring does not let us sleep any more, and there is some time left.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Where lines go, for people to read.
    fn place(&self) -> String {
        self.path.as_ref().map_or("standard output".into(), escape::path).into_owned()
    }

    fn tell(&mut self, attempt: Attempt, problem: &str) {
        let sink = &*self.name;
        match self.trouble.happens(attempt, attempt == Attempt::Write) {
            None => {}
            Some(0) => tracing::error!(sink, "{problem}"),
            Some(more) => tracing::error!(sink, "{problem} ({more} more like this)"),
        }
    }

    /// Tells, of a sink that writes, that it could not do so before.
    fn tell_end(&mut self) {
        if let Some(failed) = self.trouble.is_over() {
            let failed = counted(failed, "failed attempt");
            tracing::info!(sink = self.name, "writes {} again after {failed}", self.place());
        }
    }
}
