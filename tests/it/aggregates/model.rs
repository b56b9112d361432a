//! A plain model of aggregates: it keeps every value, and computes every slot afresh.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pmderive::internal::fleet::labels::Labels;
use pmderive::internal::fleet::targets::target::Target;

use super::fleet::Shown;

/// What is computed; the model has it once more in [`Model::finish`].
pub const DEFINITIONS: &str = r"
f.all = sum(x)
f.avg = avg(x) by (dc, rack)
f.bottom = bottomk(2, n)
f.count = count(x) by (rack)
f.delta = delta(sum(c))
f.max = max(x) by (dc)
f.mean = avg(n)
f.min = min(x) by (dc)
f.quantile = quantile(0.37, x) by (rack)
f.rate = rate(sum(c) by (rack))
f.share = sum(x) by (rack) / sum(x)
f.sum = sum(x) by (rack)
f.top = topk(3, x) by (rack)
f.whole = sum(n) by (dc)
";

/// A value of the fleet, in the units of the first class.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Whole(i128),
    Float(f64),
}

/// What a host has of one metric in a slot.
#[derive(Clone, Debug)]
pub enum Has {
    /// Values by instance.
    Values(BTreeMap<String, Number>),
    Nothing,
    LeftOut,
}

#[derive(Clone, Debug)]
pub enum Heard {
    Frame(BTreeMap<&'static str, Has>),
    Failed,
    Missed,
}

#[derive(Debug)]
struct Host {
    target: Arc<Target>,
    own: Option<Labels>,
    slots: BTreeMap<u64, Heard>,
}

/// One value with its host and instance.
type Value<'m> = (&'m str, &'m str, Number);
/// Values by shard, and by host and instance in it.
type Values<'m> = BTreeMap<u8, Vec<Value<'m>>>;

#[derive(Default)]
pub struct Model {
    hosts: BTreeMap<String, Host>,
    /// The sums of `c` by group, with their members, of the slot before.
    counters: BTreeMap<String, (i128, BTreeSet<String>)>,
    finished: u64,
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

impl Model {
    pub fn set_targets(&mut self, targets: &[Arc<Target>]) {
        let names: BTreeSet<&str> = targets.iter().map(|target| &*target.name).collect();
        self.hosts.retain(|name, _| names.contains(name.as_str()));
        for target in targets {
            let new = || Host { target: target.clone(), own: None, slots: BTreeMap::new() };
            self.hosts.entry(target.name.to_string()).or_insert_with(new);
        }
    }

    pub fn hear(&mut self, target: &Target, own: &Labels, slot: u64, heard: Heard) {
        if slot <= self.finished {
            return;
        }
        let Some(host) = self.hosts.get_mut(&*target.name) else { return };
        if let Heard::Frame(_) = heard {
            host.own = Some(own.clone());
        }
        host.slots.insert(slot, heard);
    }

    /// Names of groups of hosts by labels; none for hosts of which that is not known.
    fn group(host: &Host, by: &[&str]) -> Option<String> {
        let label = |name: &&str| {
            let of_host = || host.own.as_ref().map(|own| own.get(name).unwrap_or_default());
            let value = host.target.labels.get(name).or_else(of_host)?;
            Some(format!("{name}={value:?}"))
        };
        let labels: Vec<String> = by.iter().map(label).collect::<Option<_>>()?;
        Some(if by.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) })
    }

    /// The values of a metric by group.
    fn values(&self, slot: u64, metric: &str, by: &[&str]) -> BTreeMap<String, Values<'_>> {
        let mut groups: BTreeMap<String, Values<'_>> = BTreeMap::new();
        for (name, host) in &self.hosts {
            let Some(group) = Model::group(host, by) else { continue };
            let Some(Heard::Frame(frame)) = host.slots.get(&slot) else { continue };
            let Some(Has::Values(values)) = frame.get(metric) else { continue };
            let shard = groups.entry(group).or_default().entry(host.target.shard()).or_default();
            shard.extend(values.iter().map(|(instance, value)| (&**name, &**instance, *value)));
        }
        groups
    }

    /// The numbers of hosts of each group: expected, present, failed, missed, without
    /// a value, left out.
    pub fn hosts(&self, slot: u64, metric: &str, by: &[&str]) -> BTreeMap<String, [u64; 6]> {
        let mut groups: BTreeMap<String, [u64; 6]> = BTreeMap::new();
        for host in self.hosts.values() {
            let group = Model::group(host, by).unwrap_or_else(|| "unknown".to_owned());
            let numbers = groups.entry(group).or_default();
            numbers[0] += 1;
            numbers[match host.slots.get(&slot) {
                None | Some(Heard::Missed) => 3,
                Some(Heard::Failed) => 2,
                Some(Heard::Frame(frame)) => match frame.get(metric) {
                    Some(Has::Values(_)) => 1,
                    Some(Has::LeftOut) => 5,
                    Some(Has::Nothing) | None => 4,
                },
            }] += 1;
        }
        groups
    }

    /// All definitions in a slot.
    pub fn finish(&mut self, slot: u64) -> Shown {
        self.finished = slot;
        let mut shown = Shown::new();
        let mut show = |metric: &str, group: String, bits: Option<u64>| {
            if let Some(bits) = bits {
                shown.entry(metric.to_owned()).or_default().insert(group, bits);
            }
        };
        let all = flat;
        let total = self.values(slot, "x", &[]).remove("").map(|values| sum(&values));
        show("f.all", String::new(), total.map(f64::to_bits));
        for (group, values) in self.values(slot, "x", &["rack"]) {
            let own = sum(&values);
            show("f.sum", group.clone(), Some(own.to_bits()));
            let share = total.map(|total| if own == 0.0 { 0.0 } else { own / total });
            show("f.share", group.clone(), share.map(f64::to_bits));
            show("f.count", group.clone(), Some(all(&values).len() as u64));
            let floats = all(&values).iter().map(|(_, _, value)| value.float()).collect();
            show("f.quantile", group.clone(), Some(quantile(0.37, floats).to_bits()));
            for (name, bits) in ranking(all(&values), 3, true) {
                let name = format!("{},{name}}}", &group[..group.len() - 1]);
                show("f.top", name, Some(bits));
            }
        }
        for (group, values) in self.values(slot, "x", &["dc", "rack"]) {
            let mean = sum(&values) / all(&values).len() as f64;
            show("f.avg", group, Some(mean.to_bits()));
        }
        for (group, values) in self.values(slot, "x", &["dc"]) {
            let floats: Vec<f64> = all(&values).iter().map(|(_, _, value)| value.float()).collect();
            let is_nan = floats.iter().any(|value| value.is_nan());
            let extreme = |of: f64| Some(if is_nan { f64::NAN } else { of }.to_bits());
            let of =
                |start, better: fn(f64, f64) -> f64| floats.iter().copied().fold(start, better);
            show("f.max", group.clone(), extreme(of(f64::NEG_INFINITY, f64::max)));
            show("f.min", group, extreme(of(f64::INFINITY, f64::min)));
        }
        for (group, values) in self.values(slot, "n", &["dc"]) {
            show("f.whole", group, u64::try_from(whole(&values)).ok());
        }
        if let Some(values) = self.values(slot, "n", &[]).get("") {
            let mean = whole(values) as f64 / all(values).len() as f64;
            show("f.mean", String::new(), Some(mean.to_bits()));
            for (name, bits) in ranking(all(values), 2, false) {
                show("f.bottom", format!("{{{name}}}"), Some(bits));
            }
        }
        let mut counters = BTreeMap::new();
        for by in [&["rack"][..], &[]] {
            for (group, values) in self.values(slot, "c", by) {
                let name = |(host, instance, _): Value<'_>| format!("{host} {instance}");
                let members = all(&values).into_iter().map(name).collect();
                counters.insert(group, (whole(&values), members));
            }
        }
        for (group, (now, members)) in &counters {
            let before = self.counters.get(group).filter(|(_, of)| of == members);
            let change = before.map(|(before, _)| now - before).filter(|change| *change >= 0);
            let Some(change) = change else { continue };
            match group.is_empty() {
                true => show("f.delta", group.clone(), Some((change as f64).to_bits())),
                false => show("f.rate", group.clone(), Some((change as f64 / 10.0).to_bits())),
            }
        }
        self.counters = counters;
        for host in self.hosts.values_mut() {
            host.slots.retain(|of, _| *of > slot);
        }
        shown
    }
}

/// All values, by shard.
fn flat<'m>(values: &Values<'m>) -> Vec<Value<'m>> {
    values.values().flatten().copied().collect()
}

/// The sum of the sums of shards.
fn sum(values: &Values<'_>) -> f64 {
    let of_shard =
        |shard: &Vec<Value<'_>>| shard.iter().fold(0.0, |sum, (_, _, value)| sum + value.float());
    values.values().map(of_shard).fold(0.0, |sum, shard| sum + shard)
}

fn whole(values: &Values<'_>) -> i128 {
    let of = |(_, _, value): &Value<'_>| match value {
        Number::Whole(value) => *value,
        Number::Float(value) => panic!("{value} is no whole number"),
    };
    values.values().flatten().map(of).sum()
}

fn quantile(q: f64, mut values: Vec<f64>) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    values.sort_by(f64::total_cmp);
    let rank = q * (values.len() - 1) as f64;
    let (low, share) = (rank as usize, rank - rank.floor());
    match values.get(low + 1) {
        Some(high) if share > 0.0 && *high != values[low] => {
            values[low] + (high - values[low]) * share
        }
        _ => values[low],
    }
}

/// The first ones, named as instances of hosts.
fn ranking(mut values: Vec<Value<'_>>, k: usize, top: bool) -> Vec<(String, u64)> {
    values.sort_by(|(host, instance, value), (other_host, other_instance, other)| {
        let (a, b) = (value.float(), other.float());
        let by_value = match (a.is_nan(), b.is_nan()) {
            (false, false) if top => b.partial_cmp(&a).expect("numbers"),
            (false, false) => a.partial_cmp(&b).expect("numbers"),
            (a, b) => a.cmp(&b),
        };
        by_value.then((host, instance).cmp(&(other_host, other_instance)))
    });
    let name = |(host, instance, value): &Value<'_>| {
        let place = match *instance {
            "" => format!("instance={host:?}"),
            instance => format!("instance={host:?},instname={instance:?}"),
        };
        let bits = match value {
            Number::Whole(value) => *value as u64,
            Number::Float(value) => value.to_bits(),
        };
        (place, bits)
    };
    values.iter().take(k).map(name).collect()
}
