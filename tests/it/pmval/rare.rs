//! Archives written for this test, under all options that matter to them.

use std::path::Path;

use super::comparison::Comparison;
use super::odd;

/// Options for every metric.
const ALWAYS: &[&[&str]] = &[
    &[],
    &["-t", "2", "-T", "30"],
    &["-t", "1.5"],
    &["-t", "0.0005", "-s", "3"],
    &["-t", "2.0004", "-S", "3", "-O", "1", "-T", "11", "-X"],
    &["-r"],
    &["-U"],
    &["-U", "-r", "-XX", "-s", "7"],
    &["-s", "0"],
    &["-s", "1", "-z"],
    &["-s", "3", "-Z", "EST5EDT", "-X"],
    &["-f", "2", "-s", "8"],
    &["-f", "0", "-w", "9", "-s", "20"],
    &["-f", "7", "-w", "8", "-s", "4"],
    &["-f", "15", "-w", "24", "-s", "9"],
    &["-w", "2", "-s", "4"],
    &["-w", "12", "-s", "4"],
    &["-w", "40", "-XX", "-s", "4"],
    &["-S", "100"],
    &["-S", "10", "-T", "5"],
    &["-T", "-45sec", "-A", "1min"],
    &["-A", "7sec", "-t", "3"],
    &["-A", "0"],
    &["-O", "-4", "-t", "0.4"],
    &["-S", "@nonsense"],
    &["-t", "nonsense"],
    &["-s", "-1"],
    &["-i", "one"],
    &["-i", "nosuch", "-s", "2"],
];

/// Options for metrics with instances.
const INSTANCES: &[&[&str]] = &[
    &["-i", "one,nine"],
    &["-i", "'two words' one", "-U"],
    &["-i", "two", "-i", "\"seven\"", "-t", "0.5"],
    &["-i", "one one", "-s", "3"],
    &["-i", "nine"],
    &["-i", ""],
    &["-i", "", "-w", "1"],
    &["-w", "3", "-i", "one", "-s", "3"],
    &["-w", "1", "-i", "one,nine"],
    &["-w", "5", "-s", "3"],
    &["-w", "6", "-i", "one,nine"],
    &["-w", "7", "-i", "one,nine"],
    &["-f", "1", "-w", "4", "-i", "one,nine"],
];

/// Options for event records.
const EVENTS: &[&[&str]] = &[
    &[],
    &["-U"],
    &["-v"],
    &["-v", "-XX", "-U"],
    &["-X", "-Z", "EST5EDT"],
    &["-s", "3", "-t", "2"],
    &["-i", "two words"],
    &["-S", "3", "-T", "9"],
];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Each metric with each list of options.
fn compare(base: &Path, metrics: &[&str], options: &[&[&str]]) {
    let Some(comparison) = Comparison::new() else { return };
    let archive = base.to_str().expect("UTF-8");
    for metric in metrics {
        for options in options {
            let mut arguments = vec!["-a", archive];
            arguments.extend(*options);
            if options.contains(&"-U") {
                arguments.retain(|argument| *argument != "-U");
                arguments[0] = "-U";
            }
            comparison.add(&[&arguments[..], &[metric]].concat());
        }
    }
    comparison.finish();
}

#[test]
fn numbers_of_all_kinds() {
    let folder = folder();
    let base = folder.path().join("numbers");
    odd::numbers(&base);
    compare(&base, odd::NUMBER_METRICS, ALWAYS);
}

#[test]
fn instances_that_come_and_go() {
    let folder = folder();
    let base = folder.path().join("instances");
    odd::instances(&base);
    compare(&base, odd::INSTANCE_METRICS, ALWAYS);
    compare(&base, odd::INSTANCE_METRICS, INSTANCES);
}

#[test]
fn event_records() {
    let folder = folder();
    let base = folder.path().join("events");
    odd::events(&base);
    compare(&base, odd::EVENT_METRICS, EVENTS);
}

#[test]
fn specifications_of_metrics() {
    let Some(comparison) = Comparison::new() else { return };
    let folder = folder();
    let (numbers, instances) = (folder.path().join("numbers"), folder.path().join("instances"));
    odd::numbers(&numbers);
    odd::instances(&instances);
    let (numbers, instances) = (numbers.to_str().unwrap(), instances.to_str().unwrap());
    let of = |archive: &str, metric: &str| format!("{archive}/{metric}");
    for metric in [
        of(numbers, "odd.i32"),
        of(instances, "dyn.i32[one]"),
        of(instances, "dyn.i32[nine,one]"),
        of(instances, "dyn.i32[\"two words\", seven]"),
        of(instances, "dyn.i32[]"),
        of(instances, "dyn.i32[nosuch]"),
        of(instances, "dyn.single[one]"),
        of(instances, "dyn.i32[one"),
        of(instances, ""),
        of("/nonexistent/archive", "dyn.i32"),
        "/dyn.i32".to_owned(),
        "dyn.i32]".to_owned(),
    ] {
        comparison.add(&["-s", "3", &metric]);
        comparison.add(&["-s", "3", "-i", "two", &metric]);
        comparison.add(&["-s", "3", "-a", numbers, &metric]);
        comparison.add(&["-s", "3", "-U", numbers, &metric]);
        comparison.add(&["-s", "3", "-h", "127.0.0.1", &metric]);
    }
    comparison.add(&["-s", "3", "-a", numbers, "127.0.0.1:odd.i32"]);
    comparison.finish();
}
