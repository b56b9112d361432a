//! What was done to a fleet and what it was told, by time: what checks go by.

use std::collections::BTreeSet;
use std::time::Duration;

use pmderive::internal::fleet::slot::{Due, Nanos, Slot, hash_of};
use pmderive_testkit::sim::{Log, What};

use super::world::BEGINNING;
use super::{DEADLINE, INTERVAL};

/// A plan that the engine went over to.
#[derive(Clone, Debug)]
pub struct Told {
    pub at: Duration,
    pub hosts: BTreeSet<u32>,
    /// The constants of the definitions.
    pub constants: Vec<u32>,
}

/// All of it.
pub struct History {
    /// In their order; the first is from the beginning.
    pub told: Vec<Told>,
    /// By host, when something other than an answer happened.
    disturbed: Vec<Vec<Duration>>,
    pub end: Duration,
}

impl History {
    pub fn new(log: &Log, hosts: u32, told: Vec<Told>, end: Duration) -> History {
        let mut disturbed = vec![Vec::new(); hosts as usize];
        for entry in &log.0 {
            if !matches!(entry.what, What::Answered { .. }) {
                disturbed[entry.host as usize].push(entry.at);
            }
        }
        History { told, disturbed, end }
    }

    /// True if nothing happened to a host between two times, both included.
    pub fn is_quiet(&self, host: u32, from: Duration, to: Duration) -> bool {
        let all = &self.disturbed[host as usize];
        let first = all.partition_point(|at| *at < from);
        all.get(first).is_none_or(|at| *at > to)
    }

    /// What the engine had been told at a time.
    pub fn told_at(&self, at: Duration) -> &Told {
        let later = self.told.partition_point(|told| told.at <= at);
        &self.told[later - 1]
    }

    /// True if the plan changed between two times.
    pub fn was_told(&self, from: Duration, to: Duration) -> bool {
        self.told.iter().any(|told| told.at >= from && told.at <= to)
    }

    /// Since when a host has been watched, at a time at which it is.
    pub fn watched_since(&self, host: u32, at: Duration) -> Duration {
        let before = self.told.iter().rev().skip_while(|told| told.at > at);
        let told = before.take_while(|told| told.hosts.contains(&host)).last();
        told.expect("it is watched").at
    }
}

/// When a host is due in a slot, since the beginning.
pub fn due(target: &str, slot: u64) -> Duration {
    let due = Due::new(INTERVAL, hash_of(target)).at(Slot(slot));
    Duration::from_nanos(due.0.saturating_sub(BEGINNING))
}

/// The first slot of a host that begins at a time, or later.
pub fn first_slot(target: &str, at: Duration) -> u64 {
    let now = Nanos(BEGINNING + u64::try_from(at.as_nanos()).expect("some hours"));
    Due::new(INTERVAL, hash_of(target)).next(now).0
}

/// When a host has answered in a slot, or has failed. Tokio's time goes by milliseconds.
pub fn over(target: &str, slot: u64) -> Duration {
    due(target, slot) + DEADLINE + Duration::from_millis(2)
}

/// True if a host is due about now.
pub fn is_near(target: &str, at: Duration) -> bool {
    let about = Duration::from_millis(3);
    let slot = first_slot(target, at.saturating_sub(about));
    due(target, slot) <= at + about
}
