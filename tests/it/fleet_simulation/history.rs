//! The events of a fleet and its orders, by time, for the checks.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use pmderive::internal::fleet::slot::{Due, Nanos, Slot, hash_of};
use pmderive_testkit::sim::{Entry, What};

use super::across::Choice;
use super::clock::Clock;
use super::lines::Line;
use super::world::BEGINNING;
use super::{DEADLINE, INTERVAL};

/// A plan that the engine went over to.
#[derive(Clone, Debug)]
pub struct Told {
    pub at: Duration,
    /// Lines that were there before, and those that were there when all of the engine had
    /// been told.
    pub lines: Range<u64>,
    pub hosts: BTreeSet<u32>,
    /// The constants of the definitions.
    pub constants: Vec<u32>,
    /// What is computed across hosts.
    pub across: Choice,
    /// The receiver gets more metrics than otherwise.
    pub is_wide: bool,
    /// There is a second receiver, with this number in the name of its sink.
    pub other: Option<u64>,
}

/// All of it that is known so far.
pub struct History {
    /// In their order; the first is from the beginning.
    pub told: Vec<Told>,
    pub clock: Clock,
    /// By host, when something other than an answer happened.
    disturbed: Vec<Vec<Duration>>,
    pub end: Duration,
}

impl History {
    /// Nothing has happened to so many hosts.
    pub fn new(hosts: u32, clock: Clock) -> History {
        let (told, disturbed) = (Vec::new(), vec![Vec::new(); hosts as usize]);
        History { told, clock, disturbed, end: Duration::ZERO }
    }

    /// More has happened, until a time.
    pub fn go_on(&mut self, told: Vec<Told>, log: &[Entry], until: Duration) {
        self.told.extend(told);
        for entry in log {
            if !matches!(entry.what, What::Answered { .. }) {
                self.disturbed[entry.host as usize].push(entry.at);
            }
        }
        self.end = until;
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.disturbed.len()
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

    /// The number of what the engine had been told when it wrote a line.
    pub fn told_by(&self, line: u64) -> usize {
        self.told.partition_point(|told| told.lines.start <= line) - 1
    }

    /// False for a line that was written while parts of the engine were being told.
    pub fn is_certain(&self, line: u64) -> bool {
        !self.told.iter().any(|told| told.lines.contains(&line))
    }

    /// True if the plan changed between two times.
    pub fn was_told(&self, from: Duration, to: Duration) -> bool {
        self.told.iter().any(|told| told.at >= from && told.at <= to)
    }

    /// Since when a host has been watched, by what the engine was told up to a number.
    pub fn watched_since(&self, host: u32, told: usize) -> Duration {
        let before = self.told[..=told].iter().rev();
        let told = before.take_while(|told| told.hosts.contains(&host)).last();
        told.expect("it is watched").at
    }

    /// When a line says that it was, since the beginning.
    pub fn at(&self, line: &Line<'_>) -> Duration {
        self.clock.real(line.clock())
    }

    /// When a host is due in a slot, since the beginning.
    pub fn due(&self, target: &str, slot: u64) -> Duration {
        self.clock.real(due(target, slot))
    }

    /// The first slot of a host that begins at a time, or later.
    pub fn first_slot(&self, target: &str, at: Duration) -> u64 {
        first_slot(target, self.clock.engine(at))
    }

    /// When a host has answered in a slot, or has failed. Tokio's time goes by
    /// milliseconds.
    pub fn over(&self, target: &str, slot: u64) -> Duration {
        let begun = self.due(target, slot);
        // A host that overslept begins later, and how much later the engine's clock tells,
        // which may be slow.
        let over = match self.clock.has_jumped(begun, begun) {
            true => self.clock.real(due(target, slot) + DEADLINE).max(begun + DEADLINE),
            false => begun + DEADLINE,
        };
        over + Duration::from_millis(2)
    }
}

/// When a host is due in a slot by the engine's clock, since the beginning.
pub fn due(target: &str, slot: u64) -> Duration {
    let due = Due::new(INTERVAL, hash_of(target)).at(Slot(slot));
    Duration::from_nanos(due.0.saturating_sub(BEGINNING))
}

fn first_slot(target: &str, clock: Duration) -> u64 {
    let now = Nanos(BEGINNING + u64::try_from(clock.as_nanos()).expect("some hours"));
    Due::new(INTERVAL, hash_of(target)).next(now).0
}

/// True if a host is due when the engine's clock shows about this time.
pub fn is_near(target: &str, clock: Duration) -> bool {
    let about = Duration::from_millis(3);
    let slot = first_slot(target, clock.saturating_sub(about));
    due(target, slot) <= clock + about
}
