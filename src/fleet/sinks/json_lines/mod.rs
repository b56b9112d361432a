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

use super::numbers::{RequestOutcome, SinkNumbers};
use super::ring::{Popped, Ring};
use super::sink_set::SinkPlace;
use crate::escape;
use crate::fleet::log::Trouble;
use crate::fleet::world::{Job, World};
use crate::syntax::counted;

/// Bytes of lines for one write.
const BLOCK: usize = 1 << 20;

/// Time for which lines wait for more.
const LINGER: Duration = Duration::from_millis(100);

/// Time between two attempts to write.
const PAUSE: Duration = Duration::from_secs(1);

/// A running sink.
#[derive(Debug)]
pub struct JsonLines(Arc<State>);

/// State that the sink shares with its owner.
#[derive(Debug, Default)]
struct State {
    is_to_reopen: AtomicBool,
    /// True while it writes or opens a file. A slow reader of a pipe can block it for any time.
    is_writing: AtomicBool,
    /// True if the standard output has no reader any more.
    is_closed: AtomicBool,
}

/// An action that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Attempt {
    Open,
    Write,
}

/// The task of the sink.
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
    /// Writes the events of a ring to the end of a file, or to standard output without one. The
    /// job ends once the ring is closed and empty.
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

    /// Opens the file again before the next line, as it may have been moved away.
    pub fn reopen(&self) {
        self.0.is_to_reopen.store(true, Ordering::Relaxed);
    }

    /// True once the reader of the standard output is gone. Nothing is written then.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Relaxed)
    }

    /// True while it writes, which lasts as long as the reader allows.
    pub fn is_writing(&self) -> bool {
        self.0.is_writing.load(Ordering::Relaxed)
    }
}

impl<W: World> Writer<W> {
    async fn run(mut self) {
        let mut lines = String::new();
        // Time of the first waiting line.
        let mut begun: Option<Instant> = None;
        // The end of each event's lines, and the number of its samples.
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
            // Other sinks may continue; this one accepts no further events.
            self.ring.close(Instant::now());
        }
        self.ring.abandon();
    }

    /// Opens the file again. If that fails, the old one stays open, and the result is false.
    fn open(&mut self) -> bool {
        match W::open(self.path.as_deref()) {
            Ok(out) => self.out = out,
            Err(problem) => {
                self.tell(Attempt::Open, &problem.to_string());
                return false;
            }
        }
        true
    }

    /// Writes whole lines, with retries. Meanwhile the ring fills, and drops its oldest events.
    /// Returns the number of bytes written, fewer than all if it gave up.
    async fn write(&mut self, lines: &str) -> usize {
        let lines = lines.as_bytes();
        let mut left = lines;
        let begun = Instant::now();
        while !left.is_empty() {
            if self.state.is_to_reopen.swap(false, Ordering::Relaxed) && self.open() {
                // Each line is whole in one of the files.
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
        // Bytes that were not flushed go out with the next write.
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
            // The ring is closing, so its sleep ends at once. There is some time left.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The destination of lines, for messages.
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

    /// Logs that a sink can write again.
    fn tell_end(&mut self) {
        if let Some(failed) = self.trouble.end() {
            let failed = counted(failed, "failed attempt");
            tracing::info!(sink = self.name, "writes {} again after {failed}", self.place());
        }
    }
}
