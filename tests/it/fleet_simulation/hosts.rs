//! Every line about a host against the model of what it answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pmderive_testkit::sim::Fleet;

use super::DEADLINE;
use super::definitions::{Base, Definitions, Expected};
use super::history::{History, due, first_slot, over};
use super::lines::{Cell, Column, Line};

/// A series of a host: metric and instance.
type Series = (usize, i32);

/// What is known of a host while its lines are gone through.
#[derive(Default)]
pub struct Host {
    live: BTreeSet<Series>,
    /// What has just been said to end, in which slot.
    ended: (u64, BTreeSet<Series>),
    /// The latest frame, unless a slot has failed since.
    before: Option<(Base, Vec<u32>)>,
    /// Slot and time of the latest frame.
    latest: Option<(u64, Duration)>,
}

/// Checks lines of hosts, in their order.
pub struct Checker<'c> {
    pub fleet: &'c Fleet,
    pub history: &'c History,
    pub definitions: &'c Definitions,
    pub hosts: BTreeMap<u32, Host>,
    pub frames: u64,
    pub marks: u64,
    /// Values that were compared.
    pub values: u64,
}

impl Checker<'_> {
    pub fn line(&mut self, host: u32, line: &Line<'_>) {
        let place = format!("host {host}, slot {} at {:?}", line.slot, line.at());
        let mut known = self.hosts.remove(&host).unwrap_or_default();
        match (&line.metrics, &line.stale) {
            (Some(metrics), None) => self.frame(host, line, metrics, &mut known, &place),
            (None, Some(stale)) => self.stale(host, line, stale, &mut known, &place),
            _ => panic!("{place}: neither a frame nor a mark"),
        }
        self.hosts.insert(host, known);
    }

    fn stale(
        &mut self,
        host: u32,
        line: &Line<'_>,
        stale: &BTreeMap<&str, Column<'_>>,
        known: &mut Host,
        place: &str,
    ) {
        self.marks += 1;
        if known.ended.0 != line.slot {
            known.ended = (line.slot, BTreeSet::new());
        }
        for one in series(stale) {
            assert!(known.live.remove(&one), "{place}: {one:?} ends, and was not there");
            known.ended.1.insert(one);
        }
        let reason = line.reason.as_deref().expect("a reason");
        match reason {
            "without values" | "the definition has changed" => {}
            "no target any more" => {
                let told = self.history.told_at(line.at());
                assert!(!told.hosts.contains(&host), "{place}: it is a target");
                assert!(known.live.is_empty(), "{place}: {:?} outlive it", known.live);
                known.before = None;
            }
            // The slot failed.
            words => {
                let name = line.target.split(':').next().expect("a name");
                assert!(words.contains(name), "{place}: {words}");
                assert!(known.live.is_empty(), "{place}: {:?} outlive it", known.live);
                assert!(due(line.target, line.slot) <= line.at(), "{place}: too soon");
                assert!(line.at() <= over(line.target, line.slot), "{place}: too late");
                known.before = None;
            }
        }
    }

    fn frame(
        &mut self,
        host: u32,
        line: &Line<'_>,
        metrics: &BTreeMap<&str, Column<'_>>,
        known: &mut Host,
        place: &str,
    ) {
        self.frames += 1;
        let due = due(line.target, line.slot);
        assert!(line.at() >= due && line.at() - due < DEADLINE, "{place}");
        assert!(known.latest.is_none_or(|(latest, _)| latest < line.slot), "{place}");
        let told = self.history.told_at(due);
        assert!(told.hosts.contains(&host), "{place}: it is no target");
        self.gap(host, line.target, known, line.slot, place);

        let now: BTreeSet<Series> = series(metrics).collect();
        let silent: Vec<_> = known.live.difference(&now).collect();
        assert!(silent.is_empty(), "{place}: {silent:?} are not there, and were not said to end");
        if known.ended.0 == line.slot {
            let both: Vec<_> = known.ended.1.intersection(&now).collect();
            assert!(both.is_empty(), "{place}: {both:?} have ended, and are there");
        }
        known.live = now;

        let answer = self.fleet.answer_before(host, line.at()).expect("the host has answered");
        assert_eq!(answer.stamp, line.stamp(), "{place}");
        let base = self.definitions.base(self.fleet, answer);
        let before = known.before.take();
        let is_quiet = before.as_ref().is_some_and(|(before, _)| {
            self.history.is_quiet(host, before.answer.at, answer.at)
                && before.answer.class == answer.class
        });
        // An instance may be gone when its name is asked for, and is called by its number.
        let left = answer.time + (line.at() - answer.at);
        let has_left = |id: i32| {
            let there = self.fleet.plan().instances(host, 0, left);
            there.iter().all(|(one, _)| *one != id)
        };
        for (index, constant) in told.constants.iter().enumerate() {
            let is_same = |(_, constants): &(Base, Vec<u32>)| constants[index] == *constant;
            let goes_on = is_quiet && before.as_ref().is_some_and(is_same);
            let before = before.as_ref().map(|(before, _)| before);
            let before = before.filter(|before| before.answer.class == answer.class);
            let name = format!("fleet.derived.m{index}");
            let found = metrics.get(&*name).map_or(&[][..], |column| &column.0);
            let place = format!("{place}: {name} ({constant})");
            let expected = |before| self.definitions.expected(index, *constant, &base, before);
            let near = self.definitions.tolerance(index);
            let compare = |expected: &Expected| compare(found, expected, near, &has_left);
            let differs = match compare(&expected(before)) {
                // What was before may have been forgotten.
                Some(_) if self.definitions.reads_before(index) && !goes_on => {
                    compare(&expected(None))
                }
                differs => differs,
            };
            if let Some(differs) = differs {
                panic!("{place}: {differs}");
            }
            self.values += found.len() as u64;
        }
        known.before = Some((base, told.constants.clone()));
        known.latest = Some((line.slot, line.at()));
    }

    /// Slots before this one without a frame are those in which something happened,
    /// and after each all has ended.
    fn gap(&self, host: u32, target: &str, known: &Host, slot: u64, place: &str) {
        let since = self.history.watched_since(host, due(target, slot));
        let from = known.latest.filter(|(_, at)| *at >= since);
        let (first, from) = match from {
            // What was done to the latest reply may show in the slots after it.
            Some((latest, _)) => (latest + 1, due(target, latest)),
            None => (first_slot(target, since), since),
        };
        assert!(
            first >= slot || known.live.is_empty(),
            "{place}: {:?} stay over a gap",
            known.live
        );
        for missing in first..slot {
            let is_quiet = self.history.is_quiet(host, from, over(target, missing))
                && !self.history.was_told(from, over(target, missing));
            assert!(!is_quiet, "{place}: nothing happened in slot {missing}, which is not there");
        }
    }

    /// After all lines: what is still there was there a short while ago.
    pub fn finish(&self, names: impl Fn(u32) -> String) {
        for (host, known) in &self.hosts {
            let target = names(*host);
            let is_target = self.history.told_at(self.history.end).hosts.contains(host);
            let place = format!("host {host} at the end");
            if is_target {
                let mut slot = first_slot(&target, self.history.end);
                while over(&target, slot) > self.history.end && slot > 0 {
                    slot -= 1;
                }
                // The last slot that is over counts as much as those before it.
                self.gap(*host, &target, known, slot + 1, &place);
            } else if self.history.told_at(self.history.end).at + DEADLINE < self.history.end {
                assert!(known.live.is_empty(), "{place}: {:?} outlive it", known.live);
            }
        }
    }
}

fn series<'l>(metrics: &'l BTreeMap<&str, Column<'_>>) -> impl Iterator<Item = Series> + 'l {
    metrics.iter().flat_map(|(name, column)| {
        let index = name.strip_prefix("fleet.derived.m").and_then(|index| index.parse().ok());
        let index: usize = index.expect("a definition");
        column.0.iter().map(move |(id, ..)| (index, *id))
    })
}

/// How values differ from those that are expected, if they do.
fn compare(
    found: &[Cell<'_>],
    expected: &Expected,
    near: f64,
    has_left: &dyn Fn(i32) -> bool,
) -> Option<String> {
    let expected = match expected {
        Expected::Values(values) => values,
        Expected::Nothing if found.is_empty() => return None,
        Expected::Nothing => return Some("a difference to nothing".to_owned()),
    };
    let ids: Vec<i32> = found.iter().map(|(id, ..)| *id).collect();
    let due: Vec<i32> = expected.iter().map(|(id, _)| *id).collect();
    if ids != due {
        return Some(format!("the instances are {ids:?}, not {due:?}"));
    }
    for ((id, name, value), (_, expected)) in found.iter().zip(expected) {
        if (value - expected).abs() > near * expected.abs().max(value.abs()) {
            return Some(format!("[{id}] is {value}, not {expected}"));
        }
        let is_named = match *id {
            -1 => name.is_empty(),
            id if id >= 1_000_000 => name.strip_prefix('p') == Some(&*(id - 1_000_000).to_string()),
            id => name.strip_prefix('i') == Some(&*id.to_string()),
        };
        let is_number = **name == *id.to_string() && has_left(*id);
        if !is_named && !is_number {
            return Some(format!("[{id}] is called {name}"));
        }
    }
    None
}
