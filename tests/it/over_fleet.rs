//! Definitions over a fleet in the commands: `check`, `explain` and `eval --targets`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pmderive_runtime::model::{Timestamp, Value, ValueType};
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};
use pmderive_testkit::fleet::{FakeFleet, Plan, Shares};
use pmderive_testkit::real_pmcd::RealPmcd;
use serde_json::Value as Json;

use crate::command::{Run, finished, pmderive, settings, transcript};

const METADATA: &str = "tests/over_fleet/shop.json";

/// What is typed, what is said, and the exit status.
#[test]
fn definitions_are_checked_and_explained() {
    let (shop, racks) = ("tests/over_fleet/shop.conf", "tests/over_fleet/racks.conf");
    let (wrong, hosts) = ("tests/over_fleet/wrong.conf", "tests/over_fleet/hosts.json");
    settings("over_fleet").bind(|| {
        for (name, arguments) in [
            ("check", &["check", "-c", shop, "--fleet", racks, "--targets", hosts][..]),
            (
                "check_with_metadata",
                &["check", "-c", shop, "--fleet", racks, "--metadata", METADATA],
            ),
            ("check_of_wrong_ones", &["check", "-c", shop, "--fleet", wrong, "--targets", hosts]),
            (
                "check_of_wrong_ones_with_metadata",
                &["check", "-c", shop, "--fleet", wrong, "--metadata", METADATA],
            ),
            ("check_of_a_configuration", &["check", "--serve", "tests/over_fleet/serve.toml"]),
            (
                "check_of_a_configuration_with_metadata",
                &["check", "--serve", "tests/over_fleet/serve.toml", "--metadata", METADATA],
            ),
            (
                "check_of_a_wrong_configuration",
                &["check", "--serve", "tests/over_fleet/wrong.toml", "--metadata", METADATA],
            ),
            ("check_of_no_definitions", &["check", "-c", "tests/over_fleet/serve.toml"]),
            (
                "check_of_an_expression",
                &["check", "--targets", hosts, "sum(shop.requests / 2) by (rak)"],
            ),
            (
                "check_of_a_number_of_hosts",
                &["check", "--targets", hosts, "fleet.hosts.failed / 2"],
            ),
            (
                "explain",
                &["explain", "-c", shop, "--fleet", racks, "--metadata", METADATA, "racks.rate"],
            ),
            (
                "explain_each_function",
                &["explain", "-c", shop, "--fleet", racks, "--metadata", METADATA],
            ),
            (
                "explain_an_expression",
                &[
                    "explain",
                    "--targets",
                    hosts,
                    "--metadata",
                    METADATA,
                    "rate(sum(shop.requests) by (rack))",
                ],
            ),
        ] {
            insta::assert_snapshot!(name, transcript(arguments, &[]));
        }
    });
}

#[test]
fn an_explanation_as_json_has_the_fleet() {
    let arguments = [
        "explain",
        "--format",
        "json",
        "-c",
        "tests/over_fleet/shop.conf",
        "--fleet",
        "tests/over_fleet/racks.conf",
        "--metadata",
        METADATA,
        "racks.rate",
    ];
    let Run { status, out, err } = crate::command::run(&arguments);
    assert_eq!((status, &*err), (Some(0), ""));
    let json: Json = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["fleet"][0]["name"], "racks.rate");
    let nodes = json["fleet"][0]["nodes"].as_array().expect("a list");
    assert_eq!(nodes.last().expect("a node")["instances"], "by (rack)");
    assert_eq!(json["definitions"][0]["name"], "shop.rate");
}

/// A folder with the targets of a fake fleet.
struct Site {
    folder: tempfile::TempDir,
    fleet: FakeFleet,
}

impl Site {
    fn new(hosts: u32, shares: Shares) -> Site {
        Site::of(Plan { hosts, classes: 3, shares, ..Plan::default() })
    }

    fn of(plan: Plan) -> Site {
        let fleet = FakeFleet::start(plan, 0).expect("the loopback device");
        let site = Site { folder: tempfile::tempdir().expect("a folder"), fleet };
        std::fs::write(site.path("hosts.json"), site.fleet.targets()).expect("a file");
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn eval(&self, arguments: &[&str]) -> Run {
        let mut command = pmderive(&["eval", "--targets"]);
        command.arg(self.path("hosts.json")).args(arguments);
        finished(command.output().expect("the command runs"))
    }

    fn value(&self, host: u32, name: &str, instance: i32, time: Timestamp) -> f64 {
        let plan = self.fleet.plan();
        let mut metrics = plan.metrics(plan.class(host));
        let number = metrics.find(|metric| metric.name == name).expect("a metric").number;
        match plan.value(host, number, instance, time) {
            Value::F64(value) => value,
            other => panic!("{other:?}"),
        }
    }
}

/// Values of a metric in a sample, by the name of the instance.
fn values(sample: &Json, metric: usize) -> Vec<(String, f64)> {
    let values = sample["metrics"][metric]["values"].as_array().expect("values");
    let one = |value: &Json| {
        (value[1].as_str().unwrap_or_default().to_owned(), value[2].as_f64().expect("a number"))
    };
    values.iter().map(one).collect()
}

/// The values of hosts are those of some second of the run, and those of groups are
/// made of them.
#[test]
fn hosts_and_groups_have_the_values_of_the_fleet() {
    let site = Site::new(90, Shares::NONE);
    let before = Timestamp::now().sec;
    let arguments = [
        "--format",
        "json",
        "fleet.g0",
        "fleet.d0.g0 * 2",
        "max(fleet.d0.g0 * 2) by (rack)",
        "count(fleet.g0) by (rack)",
    ];
    let Run { status, out, err } = site.eval(&arguments);
    assert_eq!((status, &*err), (Some(0), ""), "{out}");
    let seconds = before..=Timestamp::now().sec;
    let sample: Json = serde_json::from_str(&out).expect("one sample");
    let each = values(&sample, 0);
    assert_eq!(each.len(), 90);
    let rack = |host: u32| format!("{{rack=\"r{:03}\"}}", host / 40);
    let mut most: BTreeMap<String, f64> = BTreeMap::new();
    let doubled = values(&sample, 1);
    for host in 0..90 {
        let address = site.fleet.address(host);
        let name = format!("{{instance=\"{address}\"}}");
        let found = each.iter().find(|(known, _)| *known == name).expect("a host").1;
        let at = |second| site.value(host, "fleet.g0", -1, Timestamp::new(second, 0));
        assert!(seconds.clone().any(|second| at(second) == found), "{name} {found}");
        let own = format!("{{instance=\"{address}\",");
        let most = most.entry(rack(host)).or_insert(f64::MIN);
        let values = doubled.iter().filter(|(name, _)| name.starts_with(&own));
        *most = values.fold(*most, |most, (_, value)| most.max(*value));
    }
    assert_eq!(values(&sample, 2), most.into_iter().collect::<Vec<_>>());
    let counted = [40.0, 40.0, 10.0].into_iter().enumerate();
    let counted: Vec<(String, f64)> =
        counted.map(|(at, count)| (rack(at as u32 * 40), count)).collect();
    assert_eq!(values(&sample, 3), counted);
}

/// `serve` has a limit of instances, which its configuration raises.
#[test]
fn a_host_may_have_more_instances_than_serve_exports() {
    let mut world = World::new();
    let names: Vec<String> = (0..10_001).map(|number| format!("p{number}")).collect();
    let domain = world.add_domain(&names);
    world.add(Metric::new("h.load", Script::counter(1.5)).per(domain));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let folder = tempfile::tempdir().expect("a folder");
    let hosts = folder.path().join("hosts.json");
    let targets = serde_json::json!([{ "targets": [format!("localhost:{}", pmcd.port())] }]);
    std::fs::write(&hosts, targets.to_string()).expect("a file");
    let mut command = pmderive(&["eval", "--format", "json", "--targets"]);
    command.arg(hosts).arg("count(h.load) by (rack)");
    let Run { status, out, err } = finished(command.output().expect("the command runs"));
    assert_eq!(status, Some(0), "{out}{err}");
    let sample: Json = serde_json::from_str(&out).expect("one sample");
    assert_eq!(values(&sample, 0), [("{rack=\"\"}".to_owned(), 10_001.0)]);
}

/// Each form shows texts, and says so if no host has a value.
#[test]
fn texts_and_missing_values_of_hosts_have_every_form() {
    let mut world = World::new();
    let domain = world.add_domain(&["a", "b"]);
    let text = Script::constant(Value::Text("up".into()));
    world.add(Metric::new("h.state", text).of_type(ValueType::String).per(domain));
    world.add(Metric::new("h.none", Script::cycle(Vec::<Value>::new())).of_type(ValueType::U32));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let folder = tempfile::tempdir().expect("a folder");
    let hosts = folder.path().join("hosts.json");
    let host = format!("localhost:{}", pmcd.port());
    let targets = serde_json::json!([{ "targets": [host] }]);
    std::fs::write(&hosts, targets.to_string()).expect("a file");
    let eval = |format: &str| {
        let mut command = pmderive(&["eval", "--format", format, "--targets"]);
        command.arg(&hosts).args(["h.state", "h.none"]);
        let Run { status, out, err } = finished(command.output().expect("the command runs"));
        assert_eq!((status, &*err), (Some(0), ""), "{out}");
        out
    };
    let instance = |name: &str| format!("{{instance=\"{host}\",instname=\"{name}\"}}");

    let sample: Json = serde_json::from_str(&eval("json")).expect("one sample");
    let [state, none] = [&sample["metrics"][0], &sample["metrics"][1]];
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        assert_eq!(state["values"][at][1], *instance(name), "{sample}");
        assert_eq!(state["values"][at][2], "up", "{sample}");
    }
    assert_eq!((&none["n"], &none["why"]["reason"]), (&0.into(), &"operand-empty".into()));

    let csv = eval("csv");
    let fields = |name: &str| format!(",h.state,\"{}\",up", instance(name).replace('"', "\"\""));
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    assert!(rows.len() == 2 && rows[0].ends_with(&fields("a")), "{csv}");
    assert!(rows[1].ends_with(&fields("b")), "{csv}");

    let text = eval("text");
    assert!(text.contains(&format!(" or \"{}\"] value \"up\"\n", instance("b"))), "{text}");
    assert!(
        text.ends_with("\nh.none\n    Semantics: instant  Units: none\nNo value(s) available!\n")
    );
}

#[test]
fn rates_have_a_first_sample_on_hosts_and_over_the_fleet() {
    let site = Site::of(Plan { hosts: 4, classes: 1, ..Plan::default() });
    let arguments = [
        "--format",
        "json",
        "-s",
        "2",
        "-t",
        "200 msec",
        "rate(fleet.c0)",
        "rate(sum(fleet.c0) by (dc))",
        "sum(rate(fleet.c0)) by (dc)",
        "fleet.hosts.present",
    ];
    let Run { status, out, err } = site.eval(&arguments);
    assert_eq!((status, &*err), (Some(0), ""), "{out}");
    let samples: Vec<Json> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(samples.len(), 2);
    for sample in &samples {
        assert_eq!(values(sample, 0).len(), 4, "{sample}");
        assert_eq!(values(sample, 1).len(), 1, "{sample}");
        assert_eq!(values(sample, 2).len(), 1, "{sample}");
        let of_hosts: f64 = values(sample, 0).iter().map(|(_, rate)| rate).sum();
        let sum = values(sample, 2)[0].1;
        assert!((sum - of_hosts).abs() <= 1e-9 * of_hosts.abs(), "{sum} {of_hosts}");
        assert!(values(sample, 3).iter().all(|(_, present)| *present == 4.0), "{sample}");
    }
}

#[test]
fn hosts_that_fail_are_told_with_their_reasons() {
    let shares = Shares { refusing: 0.3, silent: 0.2, ..Shares::NONE };
    let site = Site::new(40, shares);
    let plan = site.fleet.plan();
    let dead: Vec<u32> = (0..40).filter(|host| plan.fate(*host).is_dead()).collect();
    assert!(!dead.is_empty() && dead.len() < 40);
    let text = [
        "--deadline",
        "2 sec",
        "--format",
        "csv",
        "count(fleet.g0) by (rack)",
        "fleet.hosts.failed",
        "fleet.hosts.expected",
    ];
    let Run { status, out, err } = site.eval(&text);
    assert_eq!(status, Some(1), "{err}");
    assert_eq!(err.lines().count(), dead.len(), "{err}");
    for host in &dead {
        let address = site.fleet.address(*host).to_string();
        let line = err.lines().find(|line| line.contains(&address)).expect("told by its name");
        let reason = ["refused", "no answer within 2 seconds"];
        assert!(reason.iter().any(|reason| line.contains(reason)), "{line}");
    }
    let line = |metric: &str, value: usize| {
        let is_it = |line: &&str| line.contains(metric) && line.ends_with(&format!(",{value}"));
        assert!(out.lines().any(|line| is_it(&line)), "{metric} {value}: {out}");
    };
    line("count(fleet.g0) by (rack)", 40 - dead.len());
    line("fleet.hosts.failed", dead.len());
    line("fleet.hosts.expected", 40);
}

#[test]
fn what_is_wrong_on_hosts_is_told_once() {
    let site = Site::new(6, Shares::NONE);
    let Run { status, out, err } =
        site.eval(&["fleet.g0", "no.such.metric", "sum(no.such) by (dc)"]);
    assert_eq!(status, Some(1), "{err}");
    assert_eq!(err.matches("PMD0100").count(), 2, "{err}");
    assert!(out.contains("\nno.such.metric\n"), "{out}");
    let Run { status, err, .. } = site.eval(&["sum(fleet.g0) by (rack) by (dc)"]);
    assert_eq!(status, Some(2), "{err}");
}

/// Two texts may have the same mistake at the same place in them.
#[test]
fn a_cycle_is_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let racks = folder.path().join("racks.conf");
    std::fs::write(&racks, "f.a = sum(f.b)\nf.b = sum(f.a)\n").expect("a file");
    let racks = racks.to_str().expect("UTF-8");
    for command in [&["check"][..], &["explain", "--format", "json"]] {
        let rest = ["--extensions", "--fleet", racks, "--metadata", METADATA];
        let Run { out, err, .. } = crate::command::run(&[command, &rest].concat());
        assert_eq!(format!("{out}{err}").matches("PMD0104").count(), 1, "{command:?}: {out}{err}");
    }
}

#[test]
fn what_is_wrong_is_told_of_each_text() {
    let site = Site::new(2, Shares::NONE);
    let Run { status, err, .. } = site.eval(&["fleet.g0", "no.such + 1", "no.such + 2"]);
    assert_eq!(status, Some(1), "{err}");
    for text in ["no.such + 1", "no.such + 2"] {
        assert!(err.contains(text), "{err}");
    }
    assert_eq!(err.matches("PMD0100").count(), 2, "{err}");
}

#[test]
fn all_hosts_fail() {
    let site = Site::new(2, Shares { refusing: 1.0, ..Shares::NONE });
    let Run { status, err, .. } = site.eval(&["fleet.g0"]);
    assert_eq!((status, err.lines().count()), (Some(3), 2), "{err}");
}

/// There are no groups whose keys could be set.
#[test]
fn advice_about_hosts_is_about_the_environment() {
    let site = Site::new(1, Shares::NONE);
    let mut command = pmderive(&["eval", "--targets"]);
    command.arg(site.path("hosts.json")).arg("fleet.g0").env("PCP_SECURE_SOCKETS", "1");
    let Run { status, err, .. } = finished(command.output().expect("the command runs"));
    assert_eq!(status, Some(3), "{err}");
    assert!(err.contains("without PCP_SECURE_SOCKETS") && !err.contains("group"), "{err}");
}

#[test]
fn usage_of_targets() {
    let site = Site::new(1, Shares::NONE);
    let hosts = site.path("hosts.json");
    let hosts = hosts.to_str().expect("UTF-8");
    for (arguments, expected) in [
        (&["--fleet", "x.conf"][..], "which hosts? --fleet goes with --targets FILE"),
        (&["--targets", hosts, "-L", "x"], "-h, -a and -L cannot be given beside it"),
        (
            &["--targets", hosts, "-T", "10 sec", "x"],
            "cannot be used with --targets; -s and -t say how many samples",
        ),
        (&["--targets", hosts, "-z", "x"], "hosts have several zones: give one with -Z"),
        (&["--targets", hosts], "nothing to evaluate"),
        (
            &["--targets", hosts, "fleet.hosts.failed"],
            "fleet.hosts.failed is counted beside aggregates",
        ),
        (&["--targets", "/no/such", "x"], "cannot read /no/such"),
    ] {
        let Run { status, err, .. } = crate::command::run(&[&["eval"], arguments].concat());
        assert_eq!(status, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}

/// A row without a value says what was told of it.
#[test]
fn rows_that_were_refused_say_why() {
    let site = Site::new(1, Shares::NONE);
    for (expression, expected) in [
        ("fleet.hosts.failed / 2", "definitions cannot take `fleet.hosts.failed`"),
        ("sum(no.such) by (job)", "unknown metric `no.such`"),
        ("sum(sample.bin) by (job) + no.such", "`no.such` has values on each host"),
    ] {
        let Run { out, err, .. } = site.eval(&[expression]);
        assert!(out.contains(&format!("Error: {expected}")), "{out}{err}");
    }
}

/// Its hosts are those of one file, however it is named.
#[test]
fn a_file_of_targets_counts_once() {
    let site = Site::new(1, Shares::NONE);
    let hosts = site.path("hosts.json");
    let other = hosts.parent().expect("a folder").join("./hosts.json");
    let paths = [&hosts, &other].map(|path| path.to_str().expect("UTF-8").to_owned());
    let Run { out, err, .. } = crate::command::run(&[
        "eval",
        "--targets",
        &paths[0],
        "--targets",
        &paths[1],
        "count(sample.bin) by (job)",
    ]);
    assert_eq!(err.matches("is named twice").count(), 1, "{out}{err}");
    assert!(err.contains("here it is first") && err.contains("is left out here"), "{err}");
    assert!(!err.contains("is listed twice"), "{err}");
}

/// One pmcd under two names: both have the same values, and so have their groups.
#[test]
fn a_real_pmcd_under_two_names() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let hosts = folder.path().join("hosts.json");
    let entry = |host: &str, rack: &str| serde_json::json!({ "targets": [format!("{host}:{}", pmcd.port)], "labels": { "rack": rack } });
    let entries = serde_json::json!([entry("127.0.0.1", "a"), entry("localhost", "b")]);
    std::fs::write(&hosts, entries.to_string()).expect("a file");
    let mut command = pmderive(&[
        "eval",
        "--format",
        "json",
        "--deadline",
        "100 sec",
        "sample.bin",
        "max(sample.bin / sample.long.ten) by (rack)",
        "sum(sample.bin) by (hostname)",
        "--targets",
    ]);
    let Run { status, out, err } = finished(command.arg(&hosts).output().expect("it runs"));
    assert_eq!((status, &*err), (Some(0), ""), "{out}");
    let sample: Json = serde_json::from_str(&out).expect("JSON");
    let each = values(&sample, 0);
    assert_eq!(each.len(), 18, "{out}");
    let of = |host: &str| -> Vec<f64> {
        let own = each.iter().filter(|(name, _)| name.contains(host));
        own.map(|(_, value)| *value).collect()
    };
    let bins: Vec<f64> = (1..10).map(|bin| f64::from(bin) * 100.0).collect();
    assert_eq!((of("127.0.0.1"), of("localhost")), (bins.clone(), bins));
    let racks = ["a", "b"].map(|rack| (format!("{{rack=\"{rack}\"}}"), 90.0));
    assert_eq!(values(&sample, 1), racks);
    let hosts = hosts.to_str().expect("UTF-8");
    let Run { out, err, .. } = crate::command::run(&["eval", "--targets", hosts, "sample.long"]);
    assert!(err.contains("Help: name a metric below `sample.long`"), "{out}{err}");
    // Its own label is one, whatever it was asked by.
    let all = values(&sample, 2);
    assert_eq!((all.len(), all[0].1), (1, 9000.0), "{out}");
}
