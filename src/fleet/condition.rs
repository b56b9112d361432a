//! The condition of a host, for pages and metrics about the fleet.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pmderive_runtime::locks::lock;

use super::numbers::Reason;
use super::slot::{Nanos, Slot};
use super::targets::target::Target;

/// The condition of a host. The host's task writes it once in a slot; any thread may read it.
#[derive(Debug)]
pub struct Condition {
    target: Arc<Target>,
    latest: Mutex<Latest>,
}

/// Results of a host's latest slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latest {
    /// The present state of the host.
    pub state: State,
    /// The latest slot that ended.
    pub slot: Option<Slot>,
    /// Time at which that slot ended.
    pub at: Nanos,
    /// The delay of its beginning.
    pub lateness: Duration,
    /// How long it lasted.
    pub took: Duration,
    /// Difference of the host's clock from ours, in seconds; positive if it is ahead.
    pub skew: f64,
    /// The latest failure. Slots that are skipped because of it are no new failures.
    pub error: Option<HostError>,
    /// A number of its kind: hosts of one kind share a program.
    pub kind: Option<u64>,
    /// Series of the latest frame.
    pub series: usize,
    /// Bytes of memory of the host at the latest answered slot, most of them previous samples.
    pub bytes: usize,
}

/// Failure of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// The reason, in words.
    pub words: Arc<str>,
    /// Time at which that slot ended.
    pub at: Nanos,
}

/// State of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Its first slot has not come.
    #[default]
    New,
    /// Its latest slot was answered.
    Up,
    /// Its latest slot was never begun, and the one before did not fail.
    Missed,
    /// Its latest slot failed, for the reason of the latest attempt.
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
    /// The condition of a new host.
    pub fn new(target: Arc<Target>) -> Condition {
        Condition { target, latest: Mutex::default() }
    }

    /// The condition of the same host, whose group has another position now.
    pub fn moved(&self, target: Arc<Target>) -> Condition {
        Condition { target, latest: Mutex::new(self.latest()) }
    }

    /// The host.
    pub fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// The results of its latest slots.
    pub fn latest(&self) -> Latest {
        lock(&self.latest).clone()
    }

    /// Writes down the result of a slot.
    pub fn update(&self, change: impl FnOnce(&mut Latest)) {
        change(&mut lock(&self.latest));
    }
}
