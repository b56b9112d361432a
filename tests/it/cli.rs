//! The command line as its users see it: arguments in; output, messages and
//! exit status out.
//!
//! The snapshots in `tests/cli` hold whole runs over the archives in
//! `tests/archives`. What depends on the machine is checked for its parts.
//! After a change of wording run the test with `INSTA_UPDATE=always` and read
//! the difference.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use pmderive_testkit::real_pmcd;
use serde_json::Value;

use crate::command;
use command::{finished, pmderive, run, settings, transcript};

/// Whole runs, by the name of their snapshot.
const RUNS: &[(&str, &[&str])] = &[
    ("metrics_of_a_file", &["eval", "-a", FLEET, "-c", SHOP, "-s", "2"]),
    ("one_sample_has_no_time", &["eval", "-a", FLEET, "-c", SHOP, "-s", "1", "shop.memory"]),
    (
        "names_and_expressions",
        &["eval", "-a", TYPES, "-s", "2", "a.i.u32", "sum(a.i.u32) / 3", "s.str"],
    ),
    (
        "columns",
        &[
            "eval",
            "-a",
            DYN,
            "-s",
            "30",
            "--format",
            "columns",
            "dyn.i.u32 * 2",
            "dyn.str",
            "no.such",
        ],
    ),
    ("json", &["eval", "-a", TYPES, "-s", "2", "--format", "json", "a.c.u64", "rate(s.c.f64)"]),
    (
        "csv",
        &["eval", "-a", DYN, "-s", "3", "--format", "csv", "dyn.i.u32 * 2", "dyn.str", "no.such"],
    ),
    (
        "failures_are_beside_the_metric",
        &["eval", "-a", TYPES, "-s", "1", "s.i.i32", "s.i.i32 + nosuch.metric", "s.i.i32 + a.str"],
    ),
    (
        "failures_in_json",
        &["eval", "-a", TYPES, "-s", "1", "--format", "json", "s.i.i32 + nosuch", "a.i.i32[none]"],
    ),
    (
        "reasons",
        &[
            "eval",
            "-a",
            DYN,
            "-s",
            "2",
            "--why",
            "delta(dyn.c.u32[none])",
            "no.such",
            "dyn.i.u32[x]",
        ],
    ),
    ("mistakes_that_follow", &["check", "--extensions", "-a", FLEET, FOLLOW]),
    (
        "a_mistake_below_the_one_that_is_asked_for",
        &["info", "--extensions", "-a", FLEET, "-c", FOLLOW, "follow.both", "follow.good"],
    ),
    ("a_mistyped_expression", &["eval", "-a", TYPES, "s.i.i32 +* 2"]),
    ("the_rest_is_evaluated", &["eval", "-a", TYPES, "-s", "1", "(s.i.i32", "s.i.i32"]),
    // The first record has values of one, and no difference yet.
    (
        "each_of_several",
        &["eval", "-a", TYPES, "-T", "+2", "--format", "csv", "m.once.i32", "delta(s.c.u32)"],
    ),
    ("only_one_record", &["eval", "-a", TYPES, "delta(m.once.i32)"]),
    ("no_archive", &["eval", "-a", "tests/archives/none", "x"]),
    ("not_an_archive", &["eval", "-a", "tests/cli/shop.conf", "x"]),
    (
        "eval_interpolated",
        &["eval", "-a", TYPES, "-t", "1.5", "-s", "4", "s.c.u32", "s.i.u32", "rate(s.c.u32)"],
    ),
    (
        "a_window",
        &[
            "eval",
            "-a",
            FLEET,
            "-S",
            "@20:26:41",
            "-T",
            "@20:26:48",
            "-A",
            "2sec",
            "-t",
            "2sec",
            "-Z",
            "UTC",
            "--format",
            "csv",
            "disk.all.total",
            "rate(disk.all.total)",
        ],
    ),
    (
        "a_window_of_records_in_a_zone",
        &["eval", "-a", FLEET, "-O", "3sec", "-T", "7sec", "-Z", "Asia/Kolkata", "mem.util.free"],
    ),
    (
        "reverse_from_an_origin",
        &[
            "eval",
            "-a",
            FLEET,
            "-O",
            "7sec",
            "-t",
            "2500msec",
            "--reverse",
            "--format",
            "csv",
            "disk.all.total",
        ],
    ),
    (
        "reverse_there_are_no_rates",
        &["eval", "-a", FLEET, "-s", "2", "--reverse", "--why", "rate(disk.all.total)"],
    ),
    ("a_window_without_samples", &["eval", "-a", FLEET, "-S", "1day", "mem.util.free"]),
    ("no_time_at_all", &["eval", "-a", FLEET, "-S", "@yesterdaynoon", "mem.util.free"]),
    ("a_window_of_the_present", &["eval", "-L", "-S", "1day", "mem.util.free"]),
    ("an_unreadable_file", &["eval", "-a", TYPES, "-c", "tests/cli/none.conf", "4 + 5", "-s", "1"]),
    ("nothing_to_evaluate", &["eval", "-L"]),
    ("nothing_defined", &["eval", "-L", "-c", "/dev/null"]),
    ("two_sources", &["eval", "-L", "-a", TYPES, "x"]),
    ("no_samples", &["eval", "-s", "0", "x"]),
    ("no_interval", &["eval", "-t", "2fortnights", "x"]),
    ("an_interval_of_nothing", &["eval", "-t", "0", "x"]),
    ("a_bad_host", &["eval", "-h", "host:port", "x"]),
    ("a_bad_host_with_a_password", &["eval", "-h", "host:port?user=me&pass=secret", "x"]),
    ("check_offline", &["check", "-c", "tests/cli/mistakes.conf"]),
    ("check_as_json", &["check", "-c", "tests/cli/mistakes.conf", "--format", "json"]),
    ("check_against_a_source", &["check", "-a", FLEET, "-c", SHOP, "rate(disk.dev.totl)"]),
    ("check_of_good_ones", &["check", "-a", FLEET, "-c", SHOP, "disk.dev.total"]),
    ("check_of_nothing", &["check"]),
    (
        "check_in_libpcps_words",
        &[
            "check",
            "--diag",
            "pcp",
            "-c",
            "tests/cli/mistakes.conf",
            "-a",
            FLEET,
            "a +",
            "rate(1 / 0)",
        ],
    ),
    (
        "check_with_lint",
        &["check", "--lint", "-a", FLEET, "-c", SHOP, "rate(mem.physmem)", "disk.dev.read[vbd]"],
    ),
    (
        "check_with_lint_as_json",
        &["check", "--lint", "--format", "json", "-a", FLEET, "mem.util.free < swap.free"],
    ),
    ("check_of_what_is_wanted", &["check", "--lint", "-c", SHOP, "shop.busy"]),
    ("the_wrong_version", &["check", "--compat", "6.0", "delta(a + b)"]),
    ("a_version_that_joins_no_lines", &["check", "--compat", "6.0", "hinv.ncpu \\"]),
    ("help", &["-?"]),
    ("help_of_eval", &["eval", "-?"]),
];

const DYN: &str = "tests/archives/own-dyn";
const FLEET: &str = "tests/archives/own-fleet";
const TYPES: &str = "tests/archives/own-types";
const SHOP: &str = "tests/cli/shop.conf";
const FOLLOW: &str = "tests/cli/follow.conf";

#[test]
fn whole_runs() {
    settings("cli").bind(|| {
        for (name, arguments) in RUNS {
            // Whether there is native code is not what these tests are about.
            let interpreted: &[&str] =
                if arguments.first() == Some(&"eval") { &["--backend", "interp"] } else { &[] };
            insta::assert_snapshot!(*name, transcript(arguments, interpreted));
        }
    });
}

#[test]
fn metrics_of_this_machine() {
    let run = run(&[
        "eval",
        "-L",
        "-s",
        "2",
        "-t",
        "1msec",
        "--format",
        "json",
        "hinv.ncpu",
        "rate(kernel.all.pswitch)",
    ]);
    assert_eq!(run.status, Some(0), "{}", run.err);
    let samples: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(samples.len(), 2);
    for sample in &samples {
        let [ncpu, switches] = &sample["metrics"].as_array().expect("metrics")[..] else {
            panic!("{sample}");
        };
        assert!(ncpu["values"][0][2].as_u64().is_some_and(|ncpu| ncpu > 0), "{ncpu}");
        assert_eq!(switches["desc"]["units"], "count / sec");
        assert!(switches["values"][0][2].as_f64().is_some_and(|rate| rate >= 0.0), "{switches}");
    }
}

/// Every way to compute gives the same output.
#[test]
fn backends_agree() {
    let arguments = ["eval", "-a", FLEET, "-c", SHOP, "--format", "json"];
    let with = |backend: &'static str| run(&[&arguments[..], &["--backend", backend]].concat());
    let interpreted = with("interp");
    assert_eq!(interpreted.status, Some(0), "{}", interpreted.err);
    assert!(interpreted.out.lines().count() > 5);
    for backend in ["jit", "auto"] {
        let run = with(backend);
        assert_eq!((run.status, run.out), (Some(0), interpreted.out.clone()), "{backend}");
    }
}

#[test]
fn large_and_deep_expressions() {
    let folder = tempfile::tempdir().expect("a folder");
    let value = |name: &str, expression: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("{name} = {expression}\n")).expect("a file");
        let path = path.to_str().expect("UTF-8");
        let run = run(&["eval", "-a", TYPES, "-s", "1", "--format", "csv", "-c", path]);
        assert_eq!(run.status, Some(0), "{}", run.err);
        run.out.trim_end().rsplit(',').next().map(str::to_owned).expect("a value")
    };
    assert_eq!(value("large", vec!["4"; 1 << 18].join(" + ")), (4 << 18).to_string());
    let deep = format!("{}4{}", "(".repeat(9_997), ")".repeat(9_997));
    assert_eq!(value("deep", deep), "4");
}

/// A copy of an archive, one file of which lacks the end.
fn cut_off(cut: &str, length: impl Fn(usize) -> usize) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join(TYPES);
    for suffix in ["0", "meta", "index"] {
        let mut bytes = std::fs::read(original.with_extension(suffix)).expect("a file");
        if suffix == cut {
            bytes.truncate(length(bytes.len()));
        }
        std::fs::write(folder.path().join(format!("cut.{suffix}")), bytes).expect("a file");
    }
    let archive = folder.path().join("cut").to_str().expect("UTF-8").to_owned();
    (folder, archive)
}

#[test]
fn an_archive_that_is_cut_off() {
    let (_folder, archive) = cut_off("0", |length| length / 2);
    let evaluated = run(&["eval", "-a", &archive, "--format", "csv", "s.i.i32"]);
    assert_eq!(evaluated.status, Some(3));
    assert!(evaluated.out.lines().count() > 2, "{}", evaluated.out);
    let err = &evaluated.err;
    assert!(err.contains("cut.0: at byte ") && err.contains("file ends"), "{err}");
    // However often the record at the end is tried, it is one damaged place.
    let scanned = run(&["archive", "--scan", &archive]);
    assert_eq!(scanned.status, Some(3));
    assert!(scanned.out.ends_with("damaged places: 1\n"), "{}", scanned.out);
    assert_eq!(scanned.err.lines().count(), 1, "{}", scanned.err);
}

#[test]
fn an_archive_whose_metadata_are_cut_off() {
    let whole = run(&["val", "-a", TYPES, "-s", "2", "s.i.i32"]);
    let (_folder, archive) = cut_off("meta", |length| length - 5);
    let cut = run(&["val", "-a", &archive, "-s", "2", "s.i.i32"]);
    assert_eq!((cut.status, cut.out.replace(&archive, TYPES)), (Some(1), whole.out));
    let is_told = |err: &str| err.contains("cut.meta: at byte ") && err.contains("file ends");
    assert!(is_told(&cut.err), "{}", cut.err);
    let scanned = run(&["archive", "--scan", &archive]);
    assert_eq!(scanned.status, Some(3));
    assert!(scanned.out.ends_with("damaged places: 1\n"), "{}", scanned.out);
    // libpcp refuses it, and so do its answers of 6.0.
    let refused = run(&["val", "--compat", "6.0", "-a", &archive, "s.i.i32"]);
    assert_eq!((refused.status, &*refused.out), (Some(1), ""));
    // In its words, and no others.
    let corrupted = "Corrupted record in a PCP archive log";
    assert_eq!(refused.err, format!("pmval: Cannot open archive \"{archive}\": {corrupted}\n"));
}

#[test]
fn hosts_that_cannot_be_reached() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    for (host, expected) in [
        (format!("127.0.0.1:{port}"), "is pmcd running there"),
        ("unix:/nonexistent/socket".to_owned(), "`--local`"),
    ] {
        let run = run(&["eval", "-h", &host, "x"]);
        assert_eq!((run.status, &*run.out), (Some(3), ""), "{host}");
        assert!(run.err.starts_with("pmderive: cannot connect to "), "{}", run.err);
        assert!(run.err.contains(expected), "{}", run.err);
    }
}

#[test]
fn a_closed_output_ends_quietly() {
    let mut child = pmderive(&[
        "eval",
        "-L",
        "-s",
        "100000",
        "-t",
        "1msec",
        "--format",
        "json",
        "--backend",
        "interp",
        "hinv.ncpu",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the command runs");
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert!(line.starts_with("{\"t\":"), "{line}");
    // The reader is gone now.
    let run = finished(child.wait_with_output().expect("it ends"));
    assert_eq!((run.status, &*run.err), (Some(0), ""));
}

#[test]
fn an_output_that_is_full() {
    for (given, status) in [
        (&["eval", "-L", "hinv.ncpu"][..], 3),
        (&["--version"], 3),
        (&["eval", "--help"], 3),
        (&["info", "--version"], 1),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let output = pmderive(given).stdout(full).output().expect("it runs");
        let run = finished(output);
        assert_eq!(run.status, Some(status), "{given:?}");
        assert!(run.err.starts_with("pmderive: cannot write the output: "), "{}", run.err);
    }
}

/// `eval` prints the fewest digits that give a number back; with `--compat`,
/// and by the commands called after PCP's tools, numbers have PCP's form.
#[test]
fn digits_of_floating_point() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("digits.conf");
    let definitions = "t.float = mkconst(3.42, type=float)\n\
                       t.double = mkconst(0.1, type=double) + mkconst(0.2, type=double)\n\
                       t.whole = mkconst(104, type=double)\n";
    std::fs::write(&file, definitions).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let values = |command: &[&str]| -> Vec<String> {
        let names = ["t.float", "t.double", "t.whole"];
        let run = run(&[command, &["-a", FLEET, "-c", file], &names].concat());
        assert_eq!((run.status, &*run.err), (Some(0), ""), "{command:?}");
        let values = run.out.lines().filter_map(|line| line.strip_prefix("    value "));
        values.map(str::to_owned).collect()
    };
    let shortest = ["3.42", "0.30000000000000004", "104"];
    let of_pcp = ["3.4200001", "0.3", "104"];
    assert_eq!(values(&["eval", "-s", "1"]), shortest);
    for compat in ["6.0", "7.2"] {
        assert_eq!(values(&["eval", "-s", "1", "--compat", compat]), of_pcp, "{compat}");
    }
    assert_eq!(values(&["info", "-f"]), of_pcp);
    assert_eq!(values(&["info", "-f", "--compat", "6.0"]), of_pcp);
}

/// Metrics whose values stand still, in many shapes.
const STEADY: &str = r#"
steady.memory = hinv.physmem * 1024
steady.share = mem.physmem / hinv.ncpu
steady.sum = sample.bin * 2 + sample.long.bin
steady.double = sample.double.bin / 3
steady.float = sample.float.bin / 3
steady.average = avg(sample.bin)
steady.one = sample.bin[bin-300]
steady.some = matchinst(/[13]00/, sample.bin)
steady.below = sample.longlong.bin - 7000
steady.text = sample.string.hullo
steady.choice = sample.bin > 400 ? sample.bin : sample.long.bin
steady.count = count(sample.bin)
steady.scaled = rescale(hinv.physmem, "Gbyte")
steady.defined = defined(no.such) ? 1 : 2
steady.infinite = sample.bin / 0
steady.zero = 0 / sample.bin
steady.same = sample.longlong.one == 1
steady.negative = max(sample.float.hundred) * -1
"#;

/// Text output equals that of PCP's own tool, except the line of the type.
#[test]
fn values_are_printed_as_by_pminfo() {
    let Some(pmcd) = real_pmcd::RealPmcd::start() else { return };
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), STEADY).expect("a file");
    let config = file.path().to_str().expect("UTF-8");
    for host in [format!("unix:{}", pmcd.socket.display()), format!("localhost:{}", pmcd.port)] {
        let run = run(&["eval", "-h", &host, "-c", config, "--compat", "6.0"]);
        assert_eq!((run.status, &*run.err), (Some(0), ""), "{host}");
        let names = STEADY.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
        let tool: String = names
            .flat_map(|name| {
                let out = pmcd.tool("pminfo", &["-c", config, "-d", "-f", name]);
                let lines = out.lines().filter(|line| !line.starts_with("    Data Type:"));
                lines.map(|line| format!("{line}\n")).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(run.out, tool, "{host}");
    }
}

/// Lines that are no definitions count as wrong ones.
#[test]
fn refused_lines_are_counted_by_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines.conf");
    for (text, compat, status, summary) in [
        ("a b\n", "off", 2, "1 definition, 1 error"),
        ("= 1\n", "off", 2, "1 definition, 1 error"),
        ("a.. = 1\n", "off", 2, "1 definition, 1 error"),
        ("a. = 1\n", "off", 2, "1 definition, 1 error"),
        ("a. = 1\n", "6.0", 2, "1 definition, 1 error"),
        ("a =\n", "off", 2, "1 definition, 1 error"),
        ("a b\n= 1\na = 1\nb = 1 +\n", "off", 2, "4 definitions, 3 errors"),
        ("# a b\n\n", "off", 0, "0 definitions, 0 errors"),
    ] {
        std::fs::write(&file, text).expect("space");
        let run = run(&["check", "--compat", compat, file.to_str().expect("UTF-8")]);
        assert_eq!((run.status, run.err.lines().last()), (Some(status), Some(summary)), "{text:?}");
    }
}

/// All that PCP delivers registers, and what fails on a pmcd lacks an operand there.
#[test]
fn shipped_definitions() {
    let Some(pmcd) = real_pmcd::RealPmcd::start() else { return };
    let shipped = "/etc/pcp/derived";
    let offline = run(&["check", "-c", shipped]);
    assert_eq!((offline.status, &*offline.out), (Some(0), ""));
    assert!(offline.err.ends_with(" definitions, 0 errors\n"), "{}", offline.err);
    let host = format!("unix:{}", pmcd.socket.display());
    let run = run(&["eval", "-h", &host, "-c", shipped, "--format", "json"]);
    assert_eq!(run.status, Some(1), "{}", run.err);
    let sample: Value = serde_json::from_str(&run.out).expect("one sample");
    let metrics = sample["metrics"].as_array().expect("metrics");
    let mut evaluated = 0;
    for metric in metrics {
        match &metric["desc"] {
            Value::Null => {
                let why = metric["why"]["text"].as_str().expect("a reason");
                assert!(why.starts_with("unknown metric `"), "{metric}");
            }
            // Agents refuse some of them to some users.
            _ => evaluated += usize::from(metric["err"].is_null()),
        }
    }
    assert!(evaluated > 40, "{evaluated} of {}", metrics.len());
}

/// Samples go on after pmcd was away, and no difference spans the gap.
#[test]
fn a_pmcd_that_goes_and_comes_back() {
    let Some(mut pmcd) = real_pmcd::RealPmcd::start() else { return };
    let host = format!("localhost:{}", pmcd.port);
    let mut child = pmderive(&[
        "eval",
        "-h",
        &host,
        "-s",
        "600",
        "-t",
        "200msec",
        "--format",
        "json",
        "--backend",
        "interp",
        "delta(sample.seconds)",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the command runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("another sample").expect("a line");
    let first = next();
    assert!(first.contains("\"n\":1"), "{first}");
    pmcd.restart();
    while !next().contains("\"reason\":\"gap\"") {}
    let after = next();
    assert!(after.contains("\"n\":1"), "{after}");
    child.kill().expect("it still runs");
    child.wait().expect("it ends");
    let mut err = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
    assert!(err.starts_with(&format!("pmderive: {host}: ")), "{err}");
}

/// Domains that the machine's configuration declares equal are that to every command.
#[test]
fn equivalent_domains_are_known_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let indoms = folder.path().join("indom.conf");
    std::fs::write(&indoms, "60.5 400.0\n").expect("a file");
    let expression = "instant(shop.requests) * (filesys.used * 0)";
    let metadata = ["--metadata", "tests/over_fleet/shop.json"];
    for (command, refused) in [("check", 2), ("explain", 2)] {
        let run = |indoms: &std::ffi::OsStr| {
            let mut command = pmderive(&[&[command], &metadata[..], &[expression]].concat());
            finished(command.env("PCP_INDOM_CONFIG", indoms).output().expect("the command runs"))
        };
        assert_eq!(run(std::ffi::OsStr::new("")).status, Some(refused), "{command}");
        let good = run(indoms.as_os_str());
        assert_eq!(good.status, Some(0), "{command}: {}{}", good.out, good.err);
    }
}

/// With `-v` a scan lists what it otherwise counts.
#[test]
fn all_damaged_places_are_listed_if_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |suffix: &str| folder.path().join(format!("a.{suffix}"));
    for suffix in ["meta", "index", "0"] {
        std::fs::copy(format!("{FLEET}.{suffix}"), path(suffix)).expect("a copy");
    }
    let mut volume = std::fs::read(path("0")).expect("the volume");
    let length = |volume: &[u8], at: usize| {
        u32::from_be_bytes(volume[at..at + 4].try_into().expect("a word")) as usize
    };
    let mut at = length(&volume, 0);
    let record = volume[at..][..length(&volume, at)].to_vec();
    at = volume.len();
    (0..30).for_each(|_| volume.extend_from_slice(&record));
    // The word behind each record is not the one before it.
    while at < volume.len() {
        at += length(&volume, at);
        volume[at - 1] ^= 1;
    }
    std::fs::write(path("0"), volume).expect("written");
    let archive = folder.path().join("a").display().to_string();
    let told = |options: &[&str]| {
        let scanned = run(&[&["archive", "--scan"], options, &[&archive]].concat());
        assert!(scanned.out.ends_with("damaged places: 30\n"), "{}", scanned.out);
        scanned.err
    };
    let few = told(&[]);
    assert_eq!(few.lines().count(), 21, "{few}");
    assert!(few.ends_with("10 more damaged places are not listed (-v lists them)\n"), "{few}");
    assert_eq!(told(&["-v"]).matches("at byte").count(), 30);
}

/// What PCP ignores in silence is told, before the connection fails for it; with `--compat`
/// its tools are as silent.
#[test]
fn settings_without_a_meaning_are_told() {
    let host = "unix:/nosuch?contianer=shop&secure=nonsense";
    let own = [
        "warning: PMCD_PORT=x is not a list of ports: ignored\n",
        "warning: PMPROXY_PORT=x is not a port: ignored\n",
        "warning: `contianer` is no attribute of a host and is ignored; ",
        "warning: `secure=nonsense` is read as `secure=enforce`; ",
    ];
    for command in ["eval", "val"] {
        let mut told = pmderive(&[command, "-h", host, "hinv.ncpu"]);
        let told = told.env("PMCD_PORT", "x").env("PMPROXY_PORT", "x").output();
        let told = finished(told.expect("the command")).err;
        assert!(own.iter().all(|warning| told.contains(warning)), "{told}");
    }
    let is_unknown = "this machine knows no time zone";
    let zones = [
        ("Europe/Berln", is_unknown),
        ("", is_unknown),
        ("XYZ", is_unknown),
        (
            "EET",
            "three letters alone are a name of UTC, as in PCP; for the time zone EET write `:EET`",
        ),
        ("XYZ5", ""),
        ("Etc/UTC", ""),
        ("UTC", ""),
        (":EET", ""),
    ];
    for command in [&["eval", "-s", "1"][..], &["val", "-s", "1"], &["info", "-f"]] {
        for (zone, warning) in zones {
            let zoned = run(&[command, &["-a", FLEET, "-Z", zone, "hinv.ncpu"]].concat());
            let found = zoned.err.matches("warning: ").count();
            assert_eq!(found, usize::from(!warning.is_empty()), "{command:?}: {}", zoned.err);
            assert!(zoned.err.contains(warning), "{command:?}: {}", zoned.err);
        }
    }
    for arguments in [["-h", host], ["-Z", "Europe/Berln"], ["-Z", "EET"]] {
        let silent =
            run(&[&["val", "--compat", "6.0", "-s", "1"], &arguments[..], &["nosuch"]].concat());
        assert!(!silent.err.contains("warning"), "{}", silent.err);
    }
}
