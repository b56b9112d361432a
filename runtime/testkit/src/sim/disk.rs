//! A modelled file. It accepts bytes; by a seed it is full for a while, accepts a part
//! of a write, or is interrupted.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::periods::{Periods, periods};
use crate::mix::mix;

/// A file; clones are the same one.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    seed: u64,
    began: Instant,
    is_full: Periods<bool>,
    writes: u64,
    bytes: Vec<u8>,
    failures: u64,
}

impl Disk {
    /// A file on a disk that is full `full` times an hour, within a period of
    /// `length` from now on.
    ///
    /// # Panics
    /// Outside a task of a tokio runtime with time.
    pub fn new(seed: u64, length: Duration, full: f64) -> Disk {
        Disk(Arc::new(Mutex::new(State {
            seed,
            began: Instant::now(),
            is_full: periods(mix(&[seed, 18]), length, full, false, |_| true),
            writes: 0,
            bytes: Vec::new(),
            failures: 0,
        })))
    }

    /// Removes and returns the written bytes.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().bytes)
    }

    /// Number of failed writes.
    pub fn failures(&self) -> u64 {
        self.lock().failures
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        state.writes += 1;
        if state.is_full.at(state.began.elapsed()) {
            state.failures += 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let drawn = mix(&[state.seed, state.writes]);
        if drawn.is_multiple_of(50) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // Now and then, only a part is accepted.
        let count = if drawn % 50 == 1 {
            (drawn as usize >> 8) % bytes.len().max(1) + 1
        } else {
            bytes.len()
        };
        let count = count.min(bytes.len());
        state.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
