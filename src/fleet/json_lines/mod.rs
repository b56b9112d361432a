//! The sink that writes events as lines of JSON, into a file or standard output.
//! It formats and writes in a thread of its own.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::sinks::numbers::Numbers;
use super::sinks::ring::{Popped, Ring};
use crate::escape;

/// Bytes of lines that are written at once.
const BLOCK: usize = 1 << 20;

/// How long lines wait for more to come.
const LINGER: Duration = Duration::from_millis(100);

/// Between two attempts to write what could not be written.
const PAUSE: Duration = Duration::from_secs(1);

/// Between two lines of the log about the same trouble.
const QUIET: Duration = Duration::from_secs(60);

/// A sink that runs.
#[derive(Debug)]
pub struct JsonLines {
    thread: JoinHandle<()>,
    is_to_reopen: Arc<AtomicBool>,
}

/// The thread of a sink.
struct Writer {
    name: String,
    /// Position of the sink in the configuration.
    sink: usize,
    path: Option<PathBuf>,
    out: Box<dyn Write + Send>,
    ring: Arc<Ring>,
    numbers: Arc<Numbers>,
    is_to_reopen: Arc<AtomicBool>,
    told: Option<Instant>,
}

impl JsonLines {
    /// Writes what comes into a ring to a file, at its end, or to standard output
    /// without one.
    ///
    /// # Errors
    /// The file cannot be opened, or there is no thread.
    pub fn start(
        name: &str,
        sink: usize,
        path: Option<PathBuf>,
        ring: Arc<Ring>,
        numbers: Arc<Numbers>,
    ) -> Result<JsonLines, String> {
        let out = open(path.as_ref())?;
        let is_to_reopen = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            name: name.to_owned(),
            sink,
            path,
            out,
            ring,
            numbers,
            is_to_reopen: Arc::clone(&is_to_reopen),
            told: None,
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(|| writer.run());
        Ok(JsonLines { thread: thread.map_err(|error| error.to_string())?, is_to_reopen })
    }

    /// Opens the file anew before the next line, after it was moved away.
    pub fn reopen(&self) {
        self.is_to_reopen.store(true, Ordering::Relaxed);
    }

    /// Waits for its end, once its ring is closed.
    pub fn join(self) {
        // One that panicked has said so.
        let _ = self.thread.join();
    }
}

fn open(path: Option<&PathBuf>) -> Result<Box<dyn Write + Send>, String> {
    let Some(path) = path else { return Ok(Box::new(standard_output())) };
    let file: io::Result<File> = OpenOptions::new().append(true).create(true).open(path);
    match file {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(format!("cannot write {}: {error}", escape::path(path))),
    }
}

#[allow(clippy::disallowed_methods, reason = "what a terminal would obey is escaped in JSON")]
fn standard_output() -> io::Stdout {
    io::stdout()
}

impl Writer {
    fn run(mut self) {
        let mut lines = String::new();
        let mut is_closed = false;
        while !is_closed {
            match self.ring.pop(if lines.is_empty() { Duration::MAX } else { LINGER }) {
                Popped::Event(event) => {
                    let before = lines.len();
                    line::write_event(&mut lines, &event, self.sink);
                    self.numbers.samples.add(u64::from(lines.len() > before));
                    if lines.len() < BLOCK {
                        continue;
                    }
                }
                Popped::Nothing => {}
                Popped::Closed => is_closed = true,
            }
            self.write(&lines);
            lines.clear();
        }
        self.ring.abandon();
    }

    /// Writes whole lines, and tries again as long as it takes: meanwhile the ring
    /// fills, and drops the oldest.
    fn write(&mut self, lines: &str) {
        let mut left = lines.as_bytes();
        while !left.is_empty() {
            if self.is_to_reopen.swap(false, Ordering::Relaxed) {
                match open(self.path.as_ref()) {
                    Ok(out) => self.out = out,
                    Err(problem) => self.tell(&problem),
                }
            }
            match self.out.write(left) {
                Ok(count) if count > 0 => {
                    self.numbers.bytes.add(count as u64);
                    left = &left[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) => self.pause("nothing is taken any more"),
                Err(error) => self.pause(&error.to_string()),
            }
            if self.ring.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                return;
            }
        }
        // What is not flushed is written with what comes next.
        let _ = self.out.flush();
    }

    fn pause(&mut self, problem: &str) {
        let place = self.path.as_ref().map_or("standard output".into(), escape::path);
        self.tell(&format!("cannot write {place}: {problem}; trying again"));
        self.numbers.retries.add(1);
        self.ring.sleep(PAUSE);
        if self.ring.deadline().is_some() {
            // The ring does not let us sleep any more, and there is some time left.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn tell(&mut self, problem: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= QUIET) {
            self.told = Some(Instant::now());
            tracing::error!(sink = self.name, "{problem}");
        }
    }
}
