//! Checks every line about the fleet itself with sums over the lines of its hosts. The
//! definitions across hosts differ from plan to plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use pmderive::internal::fleet::slot::hash_of;
use pmderive_testkit::mix::mix;

use super::history::History;
use super::lines::{Cell, Columns, Line};
use super::{GRACE, INTERVAL, labels, name, world::BEGINNING};

/// What may be computed across hosts: names, and what each is in one plan or another.
const DEFINITIONS: [(&str, &[&str]); 9] = [
    (
        "racks.sum",
        &[
            "sum(fleet.derived.m10) by (rack)",
            "sum(fleet.derived.m10) by (dc)",
            "sum(fleet.derived.m12) by (rack)",
        ],
    ),
    ("racks.most", &["max(fleet.derived.m17) by (rack)", "max(fleet.derived.m10) by (rack)"]),
    (
        "racks.count",
        &["count(fleet.derived.m17) by (dc)", "count(fleet.derived.m17) by (dc, rack)"],
    ),
    ("racks.mean", &["avg(fleet.derived.m17)", "avg(fleet.derived.m12)"]),
    ("racks.top", &["topk(3, fleet.derived.m17)", "topk(2, fleet.derived.m17)"]),
    ("racks.least", &["min(fleet.derived.m17) by (dc)", "min(fleet.derived.m12) by (rack)"]),
    (
        "racks.middle",
        &[
            "quantile(0.37, fleet.derived.m17) by (rack)",
            "quantile(0.61, fleet.derived.m17) by (rack)",
        ],
    ),
    (
        "racks.rate",
        &["rate(sum(fleet.derived.m10) by (rack))", "rate(sum(fleet.derived.m10) by (dc))"],
    ),
    ("racks.mixed", &["sum(fleet.derived.u0) by (dc)", "max(fleet.derived.u0) by (rack)"]),
];

/// The metric whose units depend on the class of the host.
const MIXED: &str = "fleet.derived.u0";

/// What aggregates read of hosts.
const OPERANDS: [&str; 4] = ["fleet.derived.m10", "fleet.derived.m12", "fleet.derived.m17", MIXED];

/// Which definitions there are: for each of them its number among those of its name.
#[derive(Clone, Debug)]
pub struct Choice([Option<usize>; 9]);

impl Choice {
    /// The first of each name.
    pub fn first(is_mixed: bool) -> Choice {
        let mut first = [Some(0); 9];
        first[8] = is_mixed.then_some(0);
        Choice(first)
    }

    /// The same with some that go, come or become others.
    pub fn next(&self, seed: u64, is_mixed: bool) -> Choice {
        let mut next = self.0;
        for (at, (name, all)) in DEFINITIONS.iter().enumerate() {
            let drawn = mix(&[seed, at as u64]);
            match drawn % 8 {
                // One stays, so that there are some.
                0 if *name != "racks.mean" => next[at] = None,
                1 | 2 => next[at] = Some((drawn >> 8) as usize % all.len()),
                _ => {}
            }
        }
        next[8] = next[8].filter(|_| is_mixed);
        Choice(next)
    }

    /// Definitions by name.
    fn definitions(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = DEFINITIONS.iter().zip(&self.0);
        all.filter_map(|((name, all), chosen)| Some((*name, all[(*chosen)?])))
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        self.definitions().map(|(name, text)| format!("{name} = {text}\n")).collect()
    }

    /// The aggregates, each once.
    fn aggregates(&self) -> BTreeMap<&'static str, Aggregate> {
        self.definitions().map(|(_, text)| (aggregate_of(text), Aggregate::read(text))).collect()
    }

    fn reads(&self, operand: &str) -> bool {
        self.definitions().any(|(_, text)| text.contains(operand))
    }
}

/// The aggregate that a definition is, or is the rate of.
fn aggregate_of(text: &'static str) -> &'static str {
    let inner = text.strip_prefix("rate(").and_then(|text| text.strip_suffix(')'));
    inner.unwrap_or(text)
}

/// An aggregate.
#[derive(Clone, Copy)]
struct Aggregate {
    function: &'static str,
    number: f64,
    operand: &'static str,
    by: &'static str,
}

impl Aggregate {
    fn read(text: &'static str) -> Aggregate {
        let (function, rest) = aggregate_of(text).split_once('(').expect("a function");
        let (inner, rest) = rest.split_once(')').expect("its end");
        let (number, operand) = inner.split_once(", ").unwrap_or(("0", inner));
        let by = rest.strip_prefix(" by (").and_then(|by| by.strip_suffix(')')).unwrap_or("");
        Aggregate { function, number: number.parse().expect("a number"), operand, by }
    }
}

/// Values by metric and name of instance.
type Shown = BTreeMap<String, BTreeMap<String, f64>>;

/// What a host had in a slot.
struct OfHost {
    /// The number of the plan when it came.
    told: usize,
    class: u32,
    /// By metric and name of instance.
    values: BTreeMap<&'static str, Vec<(String, f64)>>,
}

/// Checks lines of the fleet.
pub struct Checker {
    /// By slot and host.
    frames: BTreeMap<u64, BTreeMap<u32, OfHost>>,
    live: BTreeSet<(String, String)>,
    /// Hashes of all of them, unless some have ended since the latest frame.
    hashes: Option<Vec<u64>>,
    /// What has just been said to end, in which slot.
    ended: (u64, BTreeSet<(String, String)>),
    /// The latest slot, and the number of its plan.
    latest: Option<(u64, usize)>,
    /// By aggregate and group, the sums of the slot before, and of what.
    sums: BTreeMap<(&'static str, String), (f64, Members)>,
    /// Rates, with their groups, that may be absent: something has happened to a member since
    /// the slot before, which may have been a gap.
    uncertain: BTreeSet<(String, String)>,
    /// The class whose units the mixed metric has.
    units: Option<u32>,
    /// By the labels of a `by`, for each host the labels of its group.
    groups: HashMap<&'static str, Vec<String>>,
    pub slots: u64,
    pub values: u64,
    /// Hosts whose values were converted, and that were left out.
    pub converted: [u64; 2],
}

/// Names of hosts and instances.
type Members = BTreeSet<(String, String)>;

/// A value, with the names of its host and its instance.
type Valued<'v> = (&'v str, &'v str, f64);

/// What aggregates have of a group.
#[derive(Default)]
struct Group<'v> {
    /// By shard, the values in the order of hosts and of instances.
    shards: BTreeMap<u8, Vec<Valued<'v>>>,
    /// Expected, present, failed, missed, without value, left out.
    hosts: [f64; 6],
    /// True if something has happened to a member since the slot before.
    is_disturbed: bool,
}

/// How the numbers of hosts are called.
const KINDS: [&str; 6] = ["expected", "present", "failed", "missed", "no_value", "left_out"];

impl Checker {
    pub fn new() -> Checker {
        let (frames, live, hashes, ended, sums, uncertain, groups) = Default::default();
        let (latest, units) = (None, None);
        let (slots, values, converted) = (0, 0, [0; 2]);
        Checker {
            frames,
            live,
            hashes,
            ended,
            latest,
            sums,
            uncertain,
            units,
            groups,
            slots,
            values,
            converted,
        }
    }

    /// Takes note of a frame of a host of a class, which is the line of a number.
    pub fn note(&mut self, history: &History, number: u64, host: u32, class: u32, line: &Line<'_>) {
        let Some(metrics) = &line.metrics else { return };
        let told = history.told_by(number);
        let mut values = BTreeMap::new();
        for operand in OPERANDS {
            if let Some(cells) = metrics.get(operand) {
                let mut named: Vec<(String, f64)> =
                    cells.iter().map(|(_, name, value)| (name.to_string(), *value)).collect();
                named.sort_by(|(a, _), (b, _)| a.cmp(b));
                values.insert(operand, named);
            }
        }
        let frame = OfHost { told, class, values };
        self.frames.entry(line.slot).or_default().insert(host, frame);
    }

    /// Checks the line of a number.
    pub fn line(&mut self, history: &History, number: u64, line: &Line<'_>) {
        let told = history.told_by(number);
        let place = format!("the fleet, slot {} at {:?}", line.slot, history.at(line));
        if let Some(stale) = &line.stale {
            if self.ended.0 != line.slot {
                self.ended = (line.slot, BTreeSet::new());
            }
            self.hashes = None;
            for one in series(stale) {
                assert!(self.live.remove(&one), "{place}: {one:?} ends, and was not there");
                self.ended.1.insert(one);
            }
            return;
        }
        let metrics = line.metrics.as_ref().expect("a frame");
        let hashes = Some(hashes(metrics));
        // Mostly they are what they were.
        let now = match self.hashes == hashes {
            true => std::mem::take(&mut self.live),
            false => series(metrics).collect(),
        };
        self.hashes = hashes;
        let silent: Vec<_> = self.live.difference(&now).collect();
        assert!(silent.is_empty(), "{place}: {silent:?} are not there, and were not said to end");
        if self.ended.0 == line.slot {
            // In other units it is another series.
            let both = self.ended.1.intersection(&now).filter(|(name, _)| name != "racks.mixed");
            let both: Vec<_> = both.collect();
            assert!(both.is_empty(), "{place}: {both:?} have ended, and are there");
        }
        self.live = now;
        let nanoseconds = INTERVAL.as_nanos() as u64;
        let begin = Duration::from_nanos((line.slot * nanoseconds).saturating_sub(BEGINNING));
        let end = Duration::from_nanos((line.slot + 1) * nanoseconds - BEGINNING);
        let clock = &history.clock;
        let has_jumped = clock.has_jumped(clock.real(begin), clock.real(end + GRACE));
        let is_next = self.latest.is_none_or(|(latest, _)| line.slot == latest + 1);
        let is_later = self.latest.is_none_or(|(latest, _)| line.slot > latest);
        assert!(is_next || has_jumped && is_later, "{place}: a slot is left out");
        assert_eq!(line.clock(), end, "{place}");
        let mut expected = self.expected(history, line.slot, told);
        if !is_shown(metrics, &expected) {
            let of_metric = |(name, cells): (&str, &[Cell<'_>])| {
                let values = cells.iter().map(|(_, name, value)| (name.to_string(), *value));
                (name.to_owned(), values.collect())
            };
            let mut found: Shown = metrics.iter().map(of_metric).collect();
            for (name, group) in &self.uncertain {
                if found.get(name).is_none_or(|groups| !groups.contains_key(group))
                    && let Some(groups) = expected.get_mut(name)
                {
                    groups.remove(group);
                }
            }
            expected.retain(|_, groups| !groups.is_empty());
            if has_jumped {
                // Whether hosts that overslept began the slot is in no line.
                expected = together(expected);
                found = together(found);
            }
            assert_eq!(found, expected, "{place}");
        }
        self.slots += 1;
        self.values += metrics.iter().map(|(_, cells)| cells.len() as u64).sum::<u64>();
        self.frames.retain(|slot, _| *slot > line.slot);
        self.latest = Some((line.slot, told));
    }

    /// All that is computed of a slot by a plan.
    fn expected(&mut self, history: &History, slot: u64, told: usize) -> Shown {
        let all_told = &history.told;
        let plan = &all_told[told];
        // After a jump of the clock a rate is over several slots.
        let (before, since) = self.latest.unwrap_or((slot, told));
        let seconds = (slot - before) as f64 * INTERVAL.as_secs_f64();
        if !all_told[since..=told].iter().all(|told| told.across.reads(MIXED)) {
            self.units = None;
        }
        let sums = std::mem::take(&mut self.sums);
        self.uncertain.clear();
        let frames = self.frames.remove(&slot).unwrap_or_default();
        let mut watched: Vec<(u8, String, u32)> =
            plan.hosts.iter().map(|host| (shard(&target(*host)), target(*host), *host)).collect();
        watched.sort();
        if plan.across.reads(MIXED) && self.units.is_none() {
            let first = watched.iter().find_map(|(.., host)| frames.get(host));
            self.units = first.map(|frame| frame.class);
        }
        let mut shown = Shown::new();
        let mut show = |metric: &str, group: String, value: f64| match shown.get_mut(metric) {
            Some(groups) => drop(groups.insert(group, value)),
            None => drop(shown.insert(metric.to_owned(), [(group, value)].into())),
        };
        for (text, aggregate) in plan.across.aggregates() {
            let Aggregate { function, number, operand, by } = aggregate;
            let of_hosts = self.groups.entry(by).or_insert_with(|| {
                (0..).take(history.hosts()).map(|host| labels_by(host, by)).collect()
            });
            let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
            for (shard, target, host) in &watched {
                let group = groups.entry(&of_hosts[*host as usize]).or_default();
                group.hosts[0] += 1.0;
                let Some(frame) = frames.get(host) else {
                    let began = history.due(target, slot) >= history.watched_since(*host, told);
                    group.hosts[if began { 2 } else { 3 }] += 1.0;
                    continue;
                };
                // What nobody read when the frame came was not kept.
                let is_read =
                    all_told[frame.told..=told].iter().all(|told| told.across.reads(operand));
                let Some(values) = frame.values.get(operand).filter(|_| is_read) else {
                    group.hosts[4] += 1.0;
                    continue;
                };
                let factor = match self.units.filter(|_| operand == MIXED) {
                    None => 1.0,
                    Some(units) => match factor(frame.class, units) {
                        Some(factor) => {
                            self.converted[0] += u64::from(factor != 1.0);
                            factor
                        }
                        None => {
                            self.converted[1] += 1;
                            group.hosts[5] += 1.0;
                            continue;
                        }
                    },
                };
                group.hosts[1] += 1.0;
                let (from, to) = (history.due(target, before), history.over(target, slot));
                group.is_disturbed |=
                    !history.is_quiet(*host, from, to) || history.was_told(from, to);
                let of_shard = group.shards.entry(*shard).or_default();
                let values = values.iter();
                of_shard.extend(values.map(|(name, value)| (&**target, &**name, value * factor)));
            }
            // Definitions with this aggregate.
            let named = |is_rate: bool| {
                let all = plan.across.definitions();
                all.filter(move |(_, one)| (*one != text) == is_rate && aggregate_of(one) == text)
            };
            for (pairs, Group { shards, hosts, is_disturbed }) in groups {
                let about = match pairs {
                    "" => format!("{{aggregate={text:?}}}"),
                    pairs => format!("{{aggregate={text:?},{pairs}}}"),
                };
                for (kind, number) in KINDS.iter().zip(hosts) {
                    show(&format!("fleet.hosts.{kind}"), about.clone(), number);
                }
                if shards.is_empty() {
                    continue;
                }
                let group = if pairs.is_empty() { String::new() } else { format!("{{{pairs}}}") };
                let all = || shards.values().flatten().map(|(.., value)| *value);
                let of_shard = |shard: &Vec<Valued<'_>>| {
                    shard.iter().fold(0.0, |sum, (.., value)| sum + value)
                };
                let sum = shards.values().map(of_shard).fold(0.0, |sum, shard: f64| sum + shard);
                let value = match function {
                    "sum" => {
                        let of =
                            |(host, name, _): &Valued<'_>| (host.to_string(), name.to_string());
                        let members: Members = shards.values().flatten().map(of).collect();
                        let key = (text, group.clone());
                        let former = sums.get(&key).filter(|(_, former)| *former == members);
                        for (name, definition) in named(true) {
                            // It begins anew with the definition.
                            let goes_on = all_told[since..=told].iter().all(|told| {
                                told.across.definitions().any(|one| one == (name, definition))
                            });
                            if let Some((former, _)) = former.filter(|_| goes_on) {
                                if is_disturbed {
                                    self.uncertain.insert((name.to_owned(), group.clone()));
                                }
                                show(name, group.clone(), (sum - former) / seconds);
                            }
                        }
                        self.sums.insert(key, (sum, members));
                        sum
                    }
                    "min" => all().fold(f64::INFINITY, f64::min),
                    "max" => all().fold(f64::NEG_INFINITY, f64::max),
                    "quantile" => quantile(number, all().collect()),
                    "count" => all().count() as f64,
                    "avg" => sum / all().count() as f64,
                    _ => {
                        let mut all: Vec<_> = shards.values().flatten().collect();
                        all.sort_by(|(a, _, x), (b, _, y)| y.total_cmp(x).then(a.cmp(b)));
                        for (target, _, value) in all.iter().take(number as usize) {
                            for (name, _) in named(false) {
                                show(name, format!("{{instance={target:?}}}"), *value);
                            }
                        }
                        continue;
                    }
                };
                for (name, _) in named(false) {
                    show(name, group.clone(), value);
                }
            }
        }
        shown
    }
}

/// True if that is all that a line has.
fn is_shown(metrics: &Columns<'_>, expected: &Shown) -> bool {
    let is_same = |cells: &[Cell<'_>], values: &BTreeMap<String, f64>| {
        let is_it = |(_, name, value): &Cell<'_>| values.get(&**name) == Some(value);
        cells.len() == values.len() && cells.iter().all(is_it)
    };
    metrics.iter().count() == expected.len()
        && metrics.iter().zip(expected).all(|((name, cells), (expected_name, values))| {
            name == expected_name && is_same(cells, values)
        })
}

/// Counts hosts that failed and hosts that missed a slot together.
fn together(mut shown: Shown) -> Shown {
    let missed = shown.remove("fleet.hosts.missed").unwrap_or_default();
    let failed = shown.entry("fleet.hosts.failed".to_owned()).or_default();
    for (group, number) in missed {
        *failed.entry(group).or_default() += number;
    }
    shown
}

/// By which number values of a class of hosts become those of another, if they do: classes
/// have byte, Kbyte and sec in turn.
fn factor(from: u32, to: u32) -> Option<f64> {
    match (from % 3, to % 3) {
        (from, to) if from == to => Some(1.0),
        (0, 1) => Some(1.0 / 1024.0),
        (1, 0) => Some(1024.0),
        _ => None,
    }
}

fn quantile(q: f64, mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = q * (values.len() - 1) as f64;
    let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// The labels of the group of a host.
fn labels_by(host: u32, by: &str) -> String {
    let own = labels(host);
    let pairs = by.split(", ").filter(|label| !label.is_empty());
    let pairs: Vec<String> = pairs.map(|label| format!("{label}={:?}", own[label])).collect();
    pairs.join(",")
}

/// The name of a host as a target.
fn target(host: u32) -> String {
    format!("{}:44321", name(host))
}

fn shard(target: &str) -> u8 {
    (hash_of(target) >> 56) as u8
}

fn series<'l>(metrics: &'l Columns<'_>) -> impl Iterator<Item = (String, String)> + 'l {
    metrics.iter().flat_map(|(metric, cells)| {
        cells.iter().map(move |(_, name, _)| (metric.to_owned(), name.to_string()))
    })
}

/// Hashes of all series.
fn hashes(metrics: &Columns<'_>) -> Vec<u64> {
    let mut hashes: Vec<u64> = metrics
        .iter()
        .flat_map(|(metric, cells)| {
            let metric = hash_of(metric);
            cells.iter().map(move |(_, name, _)| mix(&[metric, hash_of(name)]))
        })
        .collect();
    hashes.sort_unstable();
    hashes
}
