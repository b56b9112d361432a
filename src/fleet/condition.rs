//! The condition of a host: what pages and metrics about the fleet say of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pmderive_runtime::locks::lock;

use super::numbers::Reason;
use super::slot::{Nanos, Slot};
use super::target::Target;

/// The condition of a host. The host's task writes it once in a slot, and anybody may
/// read it.
#[derive(Debug)]
pub struct Condition {
    target: Arc<Target>,
    latest: Mutex<Latest>,
}

/// What became of the latest slots of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latest {
    /// What it is doing.
    pub state: State,
    /// The latest slot that came to an end.
    pub slot: Option<Slot>,
    /// When that slot came to an end.
    pub at: Nanos,
    /// How late it began.
    pub lateness: Duration,
    /// How long it took.
    pub took: Duration,
    /// By how much the host's clock is ahead of ours, in seconds; negative behind.
    pub skew: f64,
    /// The latest failure. Slots that are skipped because of it are no new failures.
    pub error: Option<HostError>,
    /// A number of its kind: hosts of one kind share a program.
    pub kind: Option<u64>,
    /// Series of the latest frame.
    pub series: usize,
    /// Bytes of memory of the host itself, most of them its previous samples, at the latest
    /// slot that was answered.
    pub bytes: usize,
}

/// Why a slot of a host failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// In words.
    pub words: Arc<str>,
    /// When that slot came to an end.
    pub at: Nanos,
}

/// What a host is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Its first slot has not come.
    #[default]
    New,
    /// Its latest slot was answered.
    Up,
    /// Its latest slot was never begun, and the one before did not fail.
    Missed,
    /// Its latest slot failed; why, as of the latest attempt.
    Failing(Reason),
}

impl State {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            State::New => "new",
            State::Up => "up",
            State::Missed => "missed",
            State::Failing(reason) => Reason::ALL[reason as usize].1,
        }
    }
}

impl Condition {
    /// Of a host that is new.
    pub fn new(target: Arc<Target>) -> Condition {
        Condition { target, latest: Mutex::default() }
    }

    /// Of the same host, whose group has another position now.
    pub fn moved(&self, target: Arc<Target>) -> Condition {
        Condition { target, latest: Mutex::new(self.latest()) }
    }

    /// The host.
    pub fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// What became of its latest slots.
    pub fn latest(&self) -> Latest {
        lock(&self.latest).clone()
    }

    /// Writes down what became of a slot.
    pub fn update(&self, change: impl FnOnce(&mut Latest)) {
        change(&mut lock(&self.latest));
    }
}
