//! Random fleets against the model, in one process and in several.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmderive::internal::fleet::aggregates::Aggregates;
use pmderive::internal::fleet::frame::{Frame, Instances, Schema};
use pmderive::internal::fleet::labels::Labels;
use pmderive::internal::fleet::sinks::samples::Given;
use pmderive::internal::fleet::slot::Slot;
use pmderive::internal::fleet::targets::target::Target;
use pmderive::runtime::model::{Semantics, ValueType};

use super::fleet::{
    Shared, Shown, aggregates, column, definitions, dropped, exported, finish, frame, instances,
    labels, schema, shown, target,
};
use super::model::{DEFINITIONS, Has, Heard, Model, Number};

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) % limit as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
}

/// The kinds of hosts; the first decides about types and units.
fn classes() -> Vec<Arc<Schema>> {
    use Semantics::{Counter, Instant};
    use ValueType::{F32, F64, I32, I64, String, U32, U64};
    vec![
        schema([
            exported("c", U64, Counter, "count"),
            exported("n", U32, Instant, ""),
            exported("x", F64, Instant, "Kbyte"),
        ]),
        schema([
            exported("c", U32, Counter, "count"),
            exported("n", U64, Instant, ""),
            exported("other", U64, Instant, ""),
            exported("x", F32, Instant, "byte"),
        ]),
        schema([
            exported("c", I64, Counter, "count"),
            exported("n", I32, Instant, ""),
            exported("x", U64, Instant, "Kbyte"),
        ]),
        schema([exported("n", U32, Instant, ""), exported("x", F64, Instant, "sec")]),
        schema([exported("c", U64, Instant, "count"), exported("x", String, Instant, "")]),
    ]
}

/// A random value of a metric, and what it is in the fleet; nothing for what does
/// not convert.
fn value(class: usize, metric: &str, slot: u64, random: &mut Random) -> (u64, Option<Number>) {
    let float = |random: &mut Random| match random.below(200) {
        0 => f64::NAN,
        1 => 0.0,
        _ => (random.below(1 << 20) as f64 - 1e5) / 7.0,
    };
    match (metric, class) {
        ("c", 0) | ("c", 1) => {
            // Sometimes it begins anew.
            let bits = if random.one_in(100) { 1 } else { slot * 1000 + random.below(100) as u64 };
            (bits, Some(Number::Whole(i128::from(bits))))
        }
        ("n", 0) | ("n", 1) | ("n", 3) => {
            let bits = random.below(u32::MAX as usize) as u64;
            (bits, Some(Number::Whole(i128::from(bits))))
        }
        ("x", 0) => {
            let value = float(random);
            (value.to_bits(), Some(Number::Float(value)))
        }
        ("x", 1) => {
            let value = float(random) as f32;
            (u64::from(value.to_bits()), Some(Number::Float(f64::from(value) / 1024.0)))
        }
        ("x", 2) => {
            let value = random.below(1 << 40) as u64;
            (value, Some(Number::Float(value as f64)))
        }
        _ => (random.below(100) as u64, None),
    }
}

struct Host {
    target: Arc<Target>,
    own: &'static str,
    class: usize,
    instances: Arc<Instances>,
    is_listed: bool,
}

fn some_instances(random: &mut Random) -> Arc<Instances> {
    let mut names = vec!["sda", "sdb", "nvme0n1", "m", "Z"];
    random.shuffle(&mut names);
    names.truncate(1 + random.below(4));
    if random.one_in(4) {
        names = vec![""];
    }
    instances(&names)
}

fn hosts(random: &mut Random) -> Vec<Host> {
    let of_target = ["rack=a,dc=x", "rack=b,dc=x", "rack=b", "dc=y", "rack=c,dc=y", ""];
    let own = ["", "rack=a", "dc=z", "dc=x,rack=b", "hostname=h"];
    (0..60)
        .map(|at| Host {
            target: target(&format!("h{at}:44321"), of_target[random.below(of_target.len())]),
            own: own[random.below(own.len())],
            class: if random.one_in(3) { random.below(5) } else { 0 },
            instances: some_instances(random),
            is_listed: random.below(10) > 0,
        })
        .collect()
}

/// A frame, and what the model hears of it.
fn answer(host: &Host, slot: u64, classes: &[Arc<Schema>], random: &mut Random) -> (Frame, Heard) {
    let mut heard: BTreeMap<&'static str, Has> = BTreeMap::new();
    let mut columns: Vec<Given> = Vec::new();
    for metric in &classes[host.class].metrics {
        let Some(name) = ["c", "n", "x"].into_iter().find(|name| *name == &*metric.name) else {
            columns.push(column(&host.instances, &[1; 0]));
            continue;
        };
        if random.one_in(20) {
            heard.insert(name, Has::Nothing);
            columns.push(column(&host.instances, &[]));
            continue;
        }
        let mut bits = Vec::new();
        let mut values: Option<BTreeMap<String, Number>> = Some(BTreeMap::new());
        for lane in 0..host.instances.ids.len() {
            let (own, number) = value(host.class, name, slot, random);
            bits.push(own);
            let instance = host.instances.names.get(lane).map_or("", |name| name);
            values = values.zip(number).map(|(mut values, number)| {
                values.insert(instance.to_owned(), number);
                values
            });
        }
        heard.insert(name, values.map_or(Has::LeftOut, Has::Values));
        columns.push(column(&host.instances, &bits));
    }
    let frame = frame(&host.target, host.own, slot, &classes[host.class], &columns);
    (frame, Heard::Frame(heard))
}

/// All that is compared: any NaN is as good as another.
fn comparable(shown: Shown) -> Shown {
    let is_definition = |(name, _): &(String, BTreeMap<String, u64>)| name.starts_with("f.");
    let mut shown: Shown = shown.into_iter().filter(is_definition).collect();
    for bits in shown.values_mut().flat_map(BTreeMap::values_mut) {
        if f64::from_bits(*bits).is_nan() {
            *bits = f64::NAN.to_bits();
        }
    }
    shown
}

struct Fleet {
    alone: Aggregates,
    shared: Vec<Shared>,
    model: Model,
}

impl Fleet {
    fn set_targets(&mut self, hosts: &[Host]) {
        let listed = hosts.iter().filter(|host| host.is_listed);
        let targets: Vec<Arc<Target>> = listed.map(|host| Arc::clone(&host.target)).collect();
        self.alone.collector.set_targets(&targets);
        self.shared.iter_mut().for_each(|shared| shared.set_targets(&targets));
        self.model.set_targets(&targets);
    }

    fn tell(
        &mut self,
        target: &Target,
        own: &Labels,
        slot: u64,
        frame: Option<&Frame>,
        heard: Heard,
    ) {
        match (&heard, frame) {
            (Heard::Frame(_), Some(frame)) => {
                let before = dropped(&self.alone.collector);
                self.alone.collector.frame(frame);
                let taken = more(before, dropped(&self.alone.collector));
                for shared in &mut self.shared {
                    let collector = shared.of(target);
                    let before = dropped(collector);
                    collector.frame(frame);
                    assert_eq!(more(before, dropped(collector)), taken);
                }
            }
            (Heard::Failed, _) => {
                self.alone.collector.failed(target, Slot(slot));
                self.shared.iter_mut().for_each(|one| one.of(target).failed(target, Slot(slot)));
            }
            _ => {
                self.alone.collector.missed(target, Slot(slot));
                self.shared.iter_mut().for_each(|one| one.of(target).missed(target, Slot(slot)));
            }
        }
        self.model.hear(target, own, slot, heard);
    }
}

/// What has been left aside since before.
fn more(before: (u64, u64), now: (u64, u64)) -> (u64, u64) {
    (now.0 - before.0, now.1 - before.1)
}

/// Runs a fleet of a seed for some slots, and compares everything.
fn run(seed: u64, slots: u64) {
    let mut random = Random(seed);
    let classes = classes();
    let definitions = definitions(DEFINITIONS, &["c", "n", "x"]);
    let mut alone = aggregates(&definitions);
    alone.announce(&classes[0]);
    assert!(alone.evaluation.diagnostics().is_empty(), "{:?}", alone.evaluation.diagnostics());
    let shared = [1, 2, 3, 7].map(|count| Shared::new(&definitions, count, &classes[0])).into();
    let mut fleet = Fleet { alone, shared, model: Model::default() };
    let mut hosts = hosts(&mut random);
    fleet.set_targets(&hosts);
    // Frames that are sent early or late.
    let mut waiting: Vec<(u64, usize, Frame, Heard)> = Vec::new();
    for slot in 1..=slots {
        for host in &mut hosts {
            if random.one_in(8) {
                host.instances = some_instances(&mut random);
            }
            if random.one_in(40) {
                host.class = random.below(classes.len());
            }
            if random.one_in(30) {
                host.is_listed = !host.is_listed;
            }
        }
        let mut sent: Vec<(u64, usize, Option<Frame>, Heard)> = Vec::new();
        for (at, host) in hosts.iter().enumerate() {
            match random.below(30) {
                0 => sent.push((slot, at, None, Heard::Failed)),
                1 => sent.push((slot, at, None, Heard::Missed)),
                2 => {}
                3 => {
                    let (frame, heard) = answer(host, slot, &classes, &mut random);
                    waiting.push((slot, at, frame, heard));
                }
                4 => {
                    // That of the next slot comes before this one is over.
                    let (frame, heard) = answer(host, slot + 1, &classes, &mut random);
                    sent.push((slot + 1, at, Some(frame), heard));
                }
                _ => {
                    let (frame, heard) = answer(host, slot, &classes, &mut random);
                    sent.push((slot, at, Some(frame), heard));
                }
            }
        }
        random.shuffle(&mut sent);
        let change = random.below(sent.len());
        for (place, (of, at, frame, heard)) in sent.into_iter().enumerate() {
            if place == change {
                fleet.set_targets(&hosts);
            }
            let host = &hosts[at];
            fleet.tell(&host.target, &labels(host.own), of, frame.as_ref(), heard);
        }
        let counted = fleet.model.hosts(slot, "x", &["rack"]);
        let expected = comparable(fleet.model.finish(slot));
        let events = finish(&mut fleet.alone, slot);
        let found = shown(&events);
        for (group, numbers) in counted {
            let group = match group.as_str() {
                "unknown" => "group=\"unknown\"}".to_owned(),
                group => group[1..].to_owned(),
            };
            let name = format!("{{aggregate=\"sum(x) by (rack)\",{group}");
            let of = ["expected", "present", "failed", "missed", "no_value", "left_out"];
            let found = of.map(|what| found[&format!("fleet.hosts.{what}")].get(&name).copied());
            assert_eq!(found, numbers.map(Some), "seed {seed}, slot {slot}, {name}");
        }
        let found = comparable(found);
        assert_eq!(found, expected, "seed {seed}, slot {slot}");
        for (at, shared) in fleet.shared.iter_mut().enumerate() {
            let events = shared.finish(slot);
            assert_eq!(comparable(shown(&events)), found, "seed {seed}, slot {slot}, {at}");
        }
        for (of, at, frame, heard) in waiting.drain(..) {
            let host = &hosts[at];
            fleet.tell(&host.target, &labels(host.own), of, Some(&frame), heard);
        }
    }
}

#[test]
fn random_fleets_are_as_the_model_says() {
    let first = std::env::var("AGGREGATES_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in first.map_or(0..12, |seed: u64| seed..seed + 1) {
        run(seed, 25);
    }
}
