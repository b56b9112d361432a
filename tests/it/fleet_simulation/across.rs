//! Every line about the fleet itself against sums over the lines of its hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pmderive::internal::fleet::slot::hash_of;

use super::history::{History, due};
use super::lines::{Column, Line};
use super::{GRACE, INTERVAL, labels, name, world::BEGINNING};

/// What is computed across hosts.
pub const DEFINITIONS: &str = "
racks.sum = sum(fleet.derived.m10) by (rack)
racks.most = max(fleet.derived.m17) by (rack)
racks.count = count(fleet.derived.m17) by (dc)
racks.mean = avg(fleet.derived.m17)
racks.top = topk(3, fleet.derived.m17)
racks.least = min(fleet.derived.m17) by (dc)
racks.middle = quantile(0.37, fleet.derived.m17) by (rack)
racks.rate = rate(sum(fleet.derived.m10) by (rack))
";

/// The aggregates as they are named, what they read, and by which labels.
const AGGREGATES: [(&str, &str, &[&str]); 7] = [
    ("sum(fleet.derived.m10) by (rack)", "fleet.derived.m10", &["rack"]),
    ("max(fleet.derived.m17) by (rack)", "fleet.derived.m17", &["rack"]),
    ("count(fleet.derived.m17) by (dc)", "fleet.derived.m17", &["dc"]),
    ("avg(fleet.derived.m17)", "fleet.derived.m17", &[]),
    ("topk(3, fleet.derived.m17)", "fleet.derived.m17", &[]),
    ("min(fleet.derived.m17) by (dc)", "fleet.derived.m17", &["dc"]),
    ("quantile(0.37, fleet.derived.m17) by (rack)", "fleet.derived.m17", &["rack"]),
];

/// Values by metric and name of instance.
type Shown = BTreeMap<String, BTreeMap<String, f64>>;

/// The values of a host that count, by metric and name of instance.
type OfHost = BTreeMap<&'static str, Vec<(String, f64)>>;

/// Checks lines of the fleet.
pub struct Checker<'c> {
    pub history: &'c History,
    /// By slot and host.
    frames: BTreeMap<u64, BTreeMap<u32, OfHost>>,
    live: BTreeSet<(String, String)>,
    latest: Option<u64>,
    /// By group, the sums of the slot before, and of what.
    sums: BTreeMap<String, (f64, Members)>,
    pub slots: u64,
    pub values: u64,
}

/// Names of hosts and instances.
type Members = BTreeSet<(String, String)>;

/// A value, with the names of its host and its instance.
type Valued = (String, String, f64);

impl<'c> Checker<'c> {
    pub fn new(history: &'c History) -> Checker<'c> {
        let (frames, live, sums) = Default::default();
        Checker { history, frames, live, latest: None, sums, slots: 0, values: 0 }
    }

    /// Takes note of a frame of a host.
    pub fn note(&mut self, host: u32, line: &Line<'_>) {
        let Some(metrics) = &line.metrics else { return };
        let mut values = OfHost::new();
        for operand in ["fleet.derived.m10", "fleet.derived.m17"] {
            if let Some(column) = metrics.get(operand) {
                let named = column.0.iter().map(|(_, name, value)| (name.to_string(), *value));
                values.insert(operand, named.collect());
            }
        }
        self.frames.entry(line.slot).or_default().insert(host, values);
    }

    pub fn line(&mut self, line: &Line<'_>) {
        let place = format!("the fleet, slot {} at {:?}", line.slot, line.at());
        if let Some(stale) = &line.stale {
            for one in series(stale) {
                assert!(self.live.remove(&one), "{place}: {one:?} ends, and was not there");
            }
            return;
        }
        let metrics = line.metrics.as_ref().expect("a frame");
        let now: BTreeSet<_> = series(metrics).collect();
        let silent: Vec<_> = self.live.difference(&now).collect();
        assert!(silent.is_empty(), "{place}: {silent:?} are not there, and were not said to end");
        self.live = now;
        assert!(
            self.latest.is_none_or(|latest| line.slot == latest + 1),
            "{place}: a slot is left out"
        );
        self.latest = Some(line.slot);
        let end = Duration::from_nanos((line.slot + 1) * INTERVAL.as_nanos() as u64 - BEGINNING);
        assert_eq!(line.at(), end, "{place}");
        let expected = self.expected(line.slot, end + GRACE);
        let found: Shown = metrics
            .iter()
            .map(|(name, column)| {
                let values = column.0.iter().map(|(_, name, value)| (name.to_string(), *value));
                ((*name).to_owned(), values.collect())
            })
            .collect();
        assert_eq!(found, expected, "{place}");
        self.slots += 1;
        self.values += found.values().map(|values| values.len() as u64).sum::<u64>();
        self.frames.retain(|slot, _| *slot > line.slot);
    }

    /// All that is computed of a slot at a time.
    fn expected(&mut self, slot: u64, at: Duration) -> Shown {
        let mut shown = Shown::new();
        let before = std::mem::take(&mut self.sums);
        let told = self.history.told_at(at);
        let none = BTreeMap::new();
        let frames = self.frames.get(&slot).unwrap_or(&none);
        let mut show = |metric: &str, group: String, value: f64| {
            shown.entry(metric.to_owned()).or_default().insert(group, value);
        };
        for (aggregate, operand, by) in AGGREGATES {
            // By group, shard and name of the host.
            let mut groups: BTreeMap<String, BTreeMap<u8, Vec<Valued>>> = BTreeMap::new();
            let mut hosts: BTreeMap<String, [f64; 6]> = BTreeMap::new();
            let mut watched: Vec<(String, u32)> =
                told.hosts.iter().map(|host| (target(*host), *host)).collect();
            watched.sort();
            for (target, host) in watched {
                let own = labels(host);
                let pairs: Vec<String> =
                    by.iter().map(|label| format!("{label}={:?}", own[label])).collect();
                let group =
                    if by.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
                let about: Vec<String> =
                    std::iter::once(format!("aggregate={aggregate:?}")).chain(pairs).collect();
                let numbers = hosts.entry(format!("{{{}}}", about.join(","))).or_default();
                numbers[0] += 1.0;
                let values = frames.get(&host).map(|frame| frame.get(operand));
                let began = due(&target, slot) >= self.history.watched_since(host, at);
                match values {
                    Some(Some(values)) => {
                        numbers[1] += 1.0;
                        let shard = (hash_of(&target) >> 56) as u8;
                        let all = groups.entry(group).or_default().entry(shard).or_default();
                        let mut named: Vec<_> = values.clone();
                        named.sort_by(|(a, _), (b, _)| a.cmp(b));
                        all.extend(
                            named.into_iter().map(|(name, value)| (target.clone(), name, value)),
                        );
                    }
                    Some(None) => numbers[4] += 1.0,
                    None if began => numbers[2] += 1.0,
                    None => numbers[3] += 1.0,
                }
            }
            let kinds = ["expected", "present", "failed", "missed", "no_value", "left_out"];
            for (group, numbers) in hosts {
                for (kind, number) in kinds.iter().zip(numbers) {
                    show(&format!("fleet.hosts.{kind}"), group.clone(), number);
                }
            }
            for (group, shards) in groups {
                let all: Vec<_> = shards.values().flatten().cloned().collect();
                let sum = shards
                    .values()
                    .map(|shard| shard.iter().fold(0.0, |sum, (.., value)| sum + value))
                    .fold(0.0, |sum, shard: f64| sum + shard);
                let most = all.iter().map(|(.., value)| *value).fold(f64::NEG_INFINITY, f64::max);
                match aggregate.split('(').next() {
                    Some("sum") => {
                        let members: Members =
                            all.into_iter().map(|(host, name, _)| (host, name)).collect();
                        if let Some((former, _)) =
                            before.get(&group).filter(|(_, former)| *former == members)
                        {
                            show("racks.rate", group.clone(), (sum - former) / 10.0);
                        }
                        self.sums.insert(group.clone(), (sum, members));
                        show("racks.sum", group, sum);
                    }
                    Some("min") => {
                        let values = all.iter().map(|(.., value)| *value);
                        show("racks.least", group, values.fold(f64::INFINITY, f64::min));
                    }
                    Some("quantile") => {
                        let values = all.iter().map(|(.., value)| *value).collect();
                        show("racks.middle", group, quantile(0.37, values));
                    }
                    Some("max") => show("racks.most", group, most),
                    Some("count") => show("racks.count", group, all.len() as f64),
                    Some("avg") => show("racks.mean", group, sum / all.len() as f64),
                    _ => {
                        let mut all = all;
                        all.sort_by(|(a, _, x), (b, _, y)| y.total_cmp(x).then(a.cmp(b)));
                        for (target, _, value) in all.iter().take(3) {
                            show("racks.top", format!("{{instance={target:?}}}"), *value);
                        }
                    }
                }
            }
        }
        shown
    }
}

fn quantile(q: f64, mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = q * (values.len() - 1) as f64;
    let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// The name of a host as a target.
fn target(host: u32) -> String {
    format!("{}:44321", name(host))
}

fn series(metrics: &BTreeMap<&str, Column<'_>>) -> impl Iterator<Item = (String, String)> {
    let all = metrics.iter().flat_map(|(metric, column)| {
        column.0.iter().map(|(_, name, _)| ((*metric).to_owned(), name.to_string()))
    });
    all.collect::<Vec<_>>().into_iter()
}
