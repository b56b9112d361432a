//! Checks every line about a host with the model of its answers.

use std::collections::BTreeMap;
use std::time::Duration;

use pmderive_testkit::sim::Answers;

use super::DEADLINE;
use super::definitions::{Base, Definitions};
use super::history::History;
use super::lines::{Cell, Columns, Line};

/// A series of a host: metric and instance.
type Series = (usize, i32);

/// What is known of a host while its lines are gone through. Series are in their order.
#[derive(Default)]
pub struct Host {
    live: Vec<Series>,
    /// What has just been said to end, in which slot.
    ended: (u64, Vec<Series>),
    /// The latest frame, unless a slot has failed since.
    before: Option<(Base, Vec<u32>)>,
    /// Slot and time of the latest frame.
    latest: Option<(u64, Duration)>,
}

/// A frame, beside what its host had when it answered.
struct Frame<'f> {
    /// By definition.
    found: &'f [&'f [Cell<'f>]],
    base: &'f Base,
    /// The frame before, with the constants of the definitions.
    before: Option<&'f (Base, Vec<u32>)>,
    /// Nothing happened to the host since.
    is_quiet: bool,
}

/// Checks lines of hosts, in their order.
pub struct Checker {
    fleet: Answers,
    definitions: Definitions,
    hosts: BTreeMap<u32, Host>,
    pub frames: u64,
    pub marks: u64,
    /// Values that were compared.
    pub values: u64,
}

impl Checker {
    /// For what these hosts answer.
    pub fn new(fleet: Answers, definitions: Definitions) -> Checker {
        let (hosts, frames, marks, values) = Default::default();
        Checker { fleet, definitions, hosts, frames, marks, values }
    }

    /// Checks a line. Gives the class of a host that has answered.
    pub fn line(&mut self, history: &History, host: u32, line: &Line<'_>) -> Option<u32> {
        let place = format!("host {host}, slot {} at {:?}", line.slot, history.at(line));
        let mut known = self.hosts.remove(&host).unwrap_or_default();
        match (&line.metrics, &line.stale) {
            (Some(metrics), None) => self.frame(history, host, line, metrics, &mut known, &place),
            (None, Some(stale)) => self.stale(history, host, line, stale, &mut known, &place),
            _ => panic!("{place}: neither a frame nor a mark"),
        }
        let class = known.before.as_ref().map(|(base, _)| base.answer.class);
        self.hosts.insert(host, known);
        class
    }

    fn stale(
        &mut self,
        history: &History,
        host: u32,
        line: &Line<'_>,
        stale: &Columns<'_>,
        known: &mut Host,
        place: &str,
    ) {
        self.marks += 1;
        if known.ended.0 != line.slot {
            known.ended = (line.slot, Vec::new());
        }
        let at = history.at(line);
        let ended = series(&by_definition(&self.definitions, stale));
        for one in &ended {
            let is_there = known.live.binary_search(one).is_ok();
            assert!(is_there, "{place}: {one:?} ends, and was not there");
        }
        known.live.retain(|one| ended.binary_search(one).is_err());
        known.ended.1.extend(ended);
        let reason = line.reason.as_deref().expect("a reason");
        match reason {
            "without values" | "the definition has changed" => {}
            "no target any more" => {
                let told = history.told_at(at);
                assert!(!told.hosts.contains(&host), "{place}: it is a target");
                assert!(known.live.is_empty(), "{place}: {:?} outlive it", known.live);
                known.before = None;
            }
            "the slot was never begun" => {
                assert!(history.clock.has_jumped(at, at), "{place}: why?");
                assert!(known.live.is_empty(), "{place}: {:?} outlive it", known.live);
                known.before = None;
            }
            // The slot failed.
            words => {
                let name = line.target.split(':').next().expect("a name");
                assert!(words.contains(name), "{place}: {words}");
                assert!(known.live.is_empty(), "{place}: {:?} outlive it", known.live);
                assert!(history.due(line.target, line.slot) <= at, "{place}: too soon");
                // A host that overslept has failed at once.
                let is_in_time =
                    at <= history.over(line.target, line.slot) || history.clock.has_jumped(at, at);
                assert!(is_in_time, "{place}: too late");
                known.before = None;
            }
        }
    }

    fn frame(
        &mut self,
        history: &History,
        host: u32,
        line: &Line<'_>,
        metrics: &Columns<'_>,
        known: &mut Host,
        place: &str,
    ) {
        self.frames += 1;
        let (at, due) = (history.at(line), history.due(line.target, line.slot));
        let over = history.over(line.target, line.slot);
        assert!(at >= due && at <= over, "{place}: it was due at {due:?}");
        assert!(known.latest.is_none_or(|(latest, _)| latest < line.slot), "{place}");
        let told = history.told_at(due);
        assert!(told.hosts.contains(&host), "{place}: it is no target");
        self.gap(history, host, line.target, known, line.slot, place);

        let answer = self.fleet.before(host, at).expect("the host has answered");
        let found = by_definition(&self.definitions, metrics);
        let now = series(&found);
        if known.live != now {
            let silent = known.live.iter().filter(|one| now.binary_search(one).is_err());
            let silent: Vec<_> = silent.collect();
            assert!(
                silent.is_empty(),
                "{place}: {silent:?} are not there, and were not said to end"
            );
        }
        if known.ended.0 == line.slot {
            // In other units it is another series.
            let former = known.before.as_ref().map(|(before, _)| before.answer.class);
            let is_other = |index| {
                self.definitions.is_mixed(index) && former.is_some_and(|one| one != answer.class)
            };
            // So it is if its name was known before, and is not to be had any more.
            let is_number = |(index, id): &Series| {
                found[*index].iter().any(|(one, name, _)| one == id && **name == *id.to_string())
            };
            let is_wrong = |one: &&Series| {
                now.binary_search(one).is_ok() && !is_other(one.0) && !is_number(one)
            };
            let both: Vec<_> = known.ended.1.iter().filter(is_wrong).collect();
            assert!(both.is_empty(), "{place}: {both:?} have ended, and are there");
        }
        known.live = now;

        assert_eq!(answer.stamp, line.stamp(), "{place}");
        let base = self.definitions.base(self.fleet.plan(), answer);
        let before = known.before.take();
        // The metrics may have been others for so long only that the reply had none of
        // those that were there before and are there again.
        let is_other = |(before, _): &(Base, Vec<u32>)| before.answer.class != answer.class;
        if metrics.iter().next().is_none()
            && before.as_ref().is_some_and(is_other)
            && !history.is_quiet(host, answer.at, over)
        {
            known.before = Some((base, told.constants.clone()));
            known.latest = Some((line.slot, at));
            return;
        }
        let is_quiet = before.as_ref().is_some_and(|(before, _)| {
            history.is_quiet(host, before.answer.at, answer.at)
                && before.answer.class == answer.class
        });
        // An instance may be gone when its name is asked for, or when that question is
        // answered at last, and is called by its number.
        let left = answer.time + (over - answer.at);
        let has_left = |id: i32| {
            let there = self.fleet.plan().instances(host, 0, left);
            there.iter().all(|(one, _)| *one != id)
        };
        // A host that overslept may have begun its slot with a later plan.
        let later = history.told_at(answer.at);
        let is_certain = told.at == later.at || !history.clock.has_jumped(due, answer.at);
        let plans = [told, later];
        let plans = if is_certain { &plans[..1] } else { &plans[..] };
        let of = Frame { found: &found, base: &base, before: before.as_ref(), is_quiet };
        let differs = plans.iter().map(|told| self.differs(&of, &told.constants, &has_left));
        let differs: Vec<Option<String>> = differs.collect();
        let Some(right) = differs.iter().position(Option::is_none) else {
            panic!("{place}: {differs:?}");
        };
        self.values += known.live.len() as u64;
        known.before = Some((base, plans[right].constants.clone()));
        known.latest = Some((line.slot, at));
    }

    /// How a frame differs from what definitions with these constants come to, if it does.
    fn differs(
        &self,
        frame: &Frame<'_>,
        constants: &[u32],
        has_left: &dyn Fn(i32) -> bool,
    ) -> Option<String> {
        let Frame { found, base, before, is_quiet } = *frame;
        let mixed = (constants.len()..self.definitions.count()).map(|_| &1);
        let mut expected = Vec::new();
        for (index, constant) in constants.iter().chain(mixed).enumerate() {
            let is_same =
                |(_, constants): &(Base, Vec<u32>)| constants.get(index) == Some(constant);
            let goes_on = is_quiet && before.is_some_and(is_same);
            let before = before.map(|(before, _)| before);
            let before = before.filter(|before| before.answer.class == base.answer.class);
            let found = found[index];
            let near = self.definitions.tolerance(index);
            let mut compare = |before| {
                let is_there =
                    self.definitions.expected(index, *constant, base, before, &mut expected);
                compare(found, is_there.then_some(&*expected), near, has_left)
            };
            let differs = match compare(before) {
                // What was before may have been forgotten.
                Some(_) if self.definitions.reads_before(index) && !goes_on => compare(None),
                differs => differs,
            };
            if let Some(differs) = differs {
                let name = self.definitions.name(index);
                return Some(format!("{name} ({constant}): {differs}"));
            }
        }
        None
    }

    /// Slots before this one without a frame are those in which something happened,
    /// and after each all has ended.
    fn gap(
        &self,
        history: &History,
        host: u32,
        target: &str,
        known: &Host,
        slot: u64,
        place: &str,
    ) {
        let (due, over) = (|slot| history.due(target, slot), |slot| history.over(target, slot));
        let told = history.told.partition_point(|told| told.at <= due(slot)) - 1;
        let since = history.watched_since(host, told);
        let from = known.latest.filter(|(_, at)| *at >= since);
        let (first, from) = match from {
            // What was done to the latest reply may show in the slots after it.
            Some((latest, _)) => (latest + 1, due(latest)),
            None => (history.first_slot(target, since), since),
        };
        assert!(
            first >= slot || known.live.is_empty(),
            "{place}: {:?} stay over a gap",
            known.live
        );
        for missing in first..slot {
            let is_quiet = history.is_quiet(host, from, over(missing))
                && !history.was_told(from, over(missing))
                && !history.clock.has_jumped(due(missing), over(missing));
            assert!(!is_quiet, "{place}: nothing happened in slot {missing}, which is not there");
        }
    }

    /// After all lines: what is still there was there a short while ago.
    pub fn finish(&self, history: &History, names: impl Fn(u32) -> String) {
        for (host, known) in &self.hosts {
            let target = names(*host);
            let is_target = history.told_at(history.end).hosts.contains(host);
            let place = format!("host {host} at the end");
            if is_target {
                let mut slot = history.first_slot(&target, history.end);
                while history.over(&target, slot) > history.end && slot > 0 {
                    slot -= 1;
                }
                // The last slot that is over counts as much as those before it.
                self.gap(history, *host, &target, known, slot + 1, &place);
            } else if history.told_at(history.end).at + DEADLINE < history.end {
                assert!(known.live.is_empty(), "{place}: {:?} outlive it", known.live);
            }
        }
    }
}

/// The cells of each definition; none of those that are not there.
fn by_definition<'c>(definitions: &Definitions, metrics: &'c Columns<'_>) -> Vec<&'c [Cell<'c>]> {
    let mut found: Vec<&[Cell<'_>]> = vec![&[]; definitions.count()];
    for (name, cells) in metrics.iter() {
        found[definitions.index(name)] = cells;
    }
    found
}

/// All series, in their order.
fn series(found: &[&[Cell<'_>]]) -> Vec<Series> {
    let mut series = Vec::with_capacity(128);
    for (index, cells) in found.iter().enumerate() {
        series.extend(cells.iter().map(|(id, ..)| (index, *id)));
    }
    series.sort_unstable();
    series
}

/// How values differ from those that are expected, if they do. None may be expected, for
/// a difference to nothing.
fn compare(
    found: &[Cell<'_>],
    expected: Option<&[(i32, f64)]>,
    near: f64,
    has_left: &dyn Fn(i32) -> bool,
) -> Option<String> {
    let expected = match expected {
        Some(values) => values,
        None if found.is_empty() => return None,
        None => return Some("a difference to nothing".to_owned()),
    };
    if !found.iter().map(|(id, ..)| id).eq(expected.iter().map(|(id, _)| id)) {
        let ids: Vec<i32> = found.iter().map(|(id, ..)| *id).collect();
        let due: Vec<i32> = expected.iter().map(|(id, _)| *id).collect();
        return Some(format!("the instances are {ids:?}, not {due:?}"));
    }
    for ((id, name, value), (_, expected)) in found.iter().zip(expected) {
        if (value - expected).abs() > near * expected.abs().max(value.abs()) {
            return Some(format!("[{id}] is {value}, not {expected}"));
        }
        let number = |text: &str| text.parse::<i32>().ok();
        let is_named = match *id {
            -1 => name.is_empty(),
            id if id >= 1_000_000 => {
                name.strip_prefix('p').and_then(number) == Some(id - 1_000_000)
            }
            id => name.strip_prefix('i').and_then(number) == Some(id),
        };
        let has_just_left = number(name) == Some(*id) && has_left(*id);
        if !is_named && !has_just_left {
            return Some(format!("[{id}] is called {name}"));
        }
    }
    None
}
