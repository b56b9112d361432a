//! The whole way to a real receiver: fake hosts, `serve` with aggregates across them, and
//! Debian's Prometheus by remote write (`tests/real-prometheus`). JSON lines of the same
//! process say what every sample is to be; they are checked against the fake hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pmderive::internal::fleet::slot::Nanos;
use pmderive_testkit::fleet::definitions;
use pmderive_testkit::real_receivers::Receiver;
use serde_json::Value as Json;

use super::{DEFINITIONS, Site, check_values, is_frame};
use crate::sinks::receivers::query;

/// Derived metrics of each host, and aggregates across hosts of each of them.
const METRICS: u32 = 40;

/// Slots that are compared: the first ones have no rates.
const SLOTS: usize = 3;

fn config(port: u16) -> String {
    format!(
        "interval = 2
[[group]]
name = 'web'
targets = ['hosts.json']
definitions = ['s.conf', 'more.conf']
export = ['s.gauge', 's.each', 'fleet.derived.*']
[fleet]
definitions = ['racks.conf']
[[sink]]
kind = 'json-lines'
[[sink]]
kind = 'remote-write'
url = 'http://127.0.0.1:{port}/api/v1/write'
"
    )
}

fn racks() -> String {
    let mut text = String::new();
    for metric in 0..METRICS {
        let function = ["sum", "avg", "max", "count"][metric as usize % 4];
        let _ = writeln!(text, "racks.m{metric} = {function}(fleet.derived.m{metric}) by (rack)");
        let mean = format!("sum(fleet.derived.m{metric}) / count(fleet.derived.m{metric})");
        let _ = writeln!(text, "racks.all{metric} = {mean}");
    }
    text
}

/// Bits of the values of each metric of a line, sorted, under the names that receivers
/// have.
fn written(line: &Json) -> BTreeMap<String, Vec<u64>> {
    let metrics = line["metrics"].as_object().expect("metrics");
    let bits = |value: &Json| value.as_f64().expect("a number").to_bits();
    let values = |value: &Json| match value.as_array() {
        Some(all) => all.iter().map(|one| bits(&one[2])).collect(),
        None => vec![bits(value)],
    };
    let sorted = |(name, value): (&String, &Json)| {
        let mut values: Vec<u64> = values(value);
        values.sort_unstable();
        (name.replace('.', "_"), values)
    };
    metrics.iter().map(sorted).filter(|(_, values)| !values.is_empty()).collect()
}

/// The same, as the receiver has it.
fn received(receiver: &Receiver, line: &Json) -> BTreeMap<String, Vec<u64>> {
    let time = line["t"].as_str().expect("a time");
    let (seconds, rest) = time.split_once('.').expect("seconds");
    let milliseconds = rest[..3].parse::<u64>().expect("digits") + 1;
    let seconds: u64 = seconds.parse().expect("digits");
    // Its times are milliseconds. The next sample of a series is a slot later.
    let at = Nanos(seconds * 1_000_000_000 + milliseconds * 1_000_000);
    let wanted = match line["target"] == "fleet" {
        // What is of no host has no instance.
        true => "{__name__=~\"racks_.*|fleet_hosts_.*\"}".to_owned(),
        false => format!("{{instance={}}}", line["target"]),
    };
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (labels, value) in query(receiver, &wanted, Some(at)) {
        let labels: Json = serde_json::from_str(&labels).expect("JSON");
        let name = labels["__name__"].as_str().expect("a name").to_owned();
        all.entry(name).or_default().push(value.to_bits());
    }
    all.values_mut().for_each(|values| values.sort_unstable());
    all
}

#[test]
fn prometheus_has_every_value_of_hosts_and_of_the_fleet() {
    let Some(receiver) = Receiver::prometheus(&[]) else { return };
    let site = Site::new(20, &config(receiver.port));
    site.write("s.conf", DEFINITIONS);
    site.write("more.conf", &definitions(site.fleet.plan(), METRICS));
    site.write("racks.conf", &racks());
    let mut serving = site.start();
    // Whole slots, each with the fleet's line at its end.
    let mut lines: Vec<Json> = Vec::new();
    let mut slots = BTreeSet::new();
    while slots.len() < SLOTS {
        let line = serving.line_like(is_frame);
        let metrics = line["metrics"].as_object().expect("metrics");
        if line["target"] == "fleet" && metrics.contains_key("racks.all0") {
            slots.insert(line["slot"].as_u64());
        }
        lines.push(line);
    }
    // At its end it delivers everything.
    serving.end();
    lines.retain(|line| slots.contains(&line["slot"].as_u64()));
    let (mut values, mut of_fleet) = (0, 0);
    for line in &lines {
        let expected = written(line);
        let found = received(&receiver, line);
        // A metric may have no value in a slot that had one before.
        assert_eq!(found, expected, "{} in slot {}", line["target"], line["slot"]);
        let count = expected.values().map(Vec::len).sum::<usize>();
        match line["target"] == "fleet" {
            true => of_fleet += count,
            false => {
                check_values(&site.fleet, line);
                values += count;
            }
        }
    }
    println!("{values} values of hosts and {of_fleet} of the fleet");
    // How many there are depends on the instances that there are by chance.
    assert!(lines.len() > SLOTS && values > 1_000 && of_fleet > 300, "{values} {of_fleet}");
}
