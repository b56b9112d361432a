//! Tables as `pmderive export` writes them: every form holds what `eval`
//! prints, bit for bit, and a file that has its name is complete.
//!
//! The snapshots in `tests/export` hold whole runs. Arrow and Parquet are read
//! back where they are built in (`--features columnar`).

#[path = "export/archive.rs"]
mod archive;
#[cfg(feature = "columnar")]
#[path = "it/choosing/mod.rs"]
mod choosing;
#[cfg(feature = "columnar")]
#[path = "export/columnar.rs"]
mod columnar;
#[path = "it/command/mod.rs"]
mod command;
#[path = "export/rows.rs"]
mod rows;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(feature = "columnar")]
use pmderive_testkit::counting;

use command::{finished, pmderive, run, settings, transcript};

#[cfg(feature = "columnar")]
#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const DYN: &str = "tests/archives/own-dyn";
const FLEET: &str = "tests/archives/own-fleet";
const TYPES: &str = "tests/archives/own-types";
const SHOP: &str = "tests/cli/shop.conf";

/// Whole runs, by the name of their snapshot.
const RUNS: &[(&str, &[&str])] = &[
    ("csv", &["-a", TYPES, "-s", "2", "a.c.u64", "rate(s.c.f64)", "s.str", "m.nan"]),
    ("csv_interpolated", &["-a", TYPES, "-t", "1.5", "-s", "3", "s.c.u32", "rate(s.c.u32)"]),
    ("csv_of_a_window", &["-a", DYN, "-S", "1", "-T", "3.5", "dyn.i.u32 * 2", "dyn.str"]),
    ("json", &["-a", FLEET, "-c", SHOP, "-s", "2", "--format", "json"]),
    ("csv_of_a_file_of_definitions", &["-a", FLEET, "-c", SHOP, "-s", "2"]),
    ("groups", &["-a", FLEET, "-c", SHOP, "-s", "1", "hinv", "shop"]),
    ("an_unknown_metric", &["-a", FLEET, "mem.physmem", "mem.phsymem"]),
    ("only_unknown_metrics", &["-a", FLEET, "-s", "1", "disk.dev.totl"]),
    ("nothing_to_export", &["-a", FLEET]),
    ("a_file_that_cannot_be_written", &["-a", FLEET, "-o", "tests/none/x.csv", "mem.physmem"]),
    ("a_folder", &["-a", FLEET, "--format", "csv", "-o", "tests", "mem.physmem"]),
    ("a_name_that_says_nothing", &["-a", FLEET, "-o", "x.dat", "mem.physmem"]),
    ("an_unknown_form", &["-a", FLEET, "--format", "xml", "mem.physmem"]),
    ("help", &["-?"]),
    #[cfg(not(feature = "columnar"))]
    ("a_form_that_is_not_built_in", &["-a", FLEET, "-o", "x.parquet", "mem.physmem"]),
];

#[test]
fn whole_runs() {
    settings("export").bind(|| {
        for (name, arguments) in RUNS {
            let interpreted: &[&str] = &["--backend", "interp"];
            let arguments = [&["export"], *arguments].concat();
            insta::assert_snapshot!(*name, transcript(&arguments, interpreted));
        }
    });
}

#[test]
fn a_point_is_all_metrics_as_for_record() {
    let of = ["-a", FLEET, "-c", SHOP];
    let exported = run(&[&["export"], &of[..], &["-s", "1", "."]].concat()).out;
    let name = |line: &str| line.split(',').nth(2).map(str::to_owned);
    let exported: BTreeSet<String> = exported.lines().skip(1).filter_map(name).collect();
    // A record has no values of the metrics that stand for events.
    let listed = run(&[&["info"], &of[..]].concat()).out;
    let listed = listed.lines().filter(|name| !name.starts_with("event."));
    assert_eq!(exported, listed.map(str::to_owned).collect());
    assert!(exported.contains("shop.size"), "{exported:?}");
}

/// What is exported and compared with `eval`: the archive, or nothing for that
/// of [`archive::write`]; and the other arguments.
const TABLES: &[(Option<&str>, &[&str])] = &[
    (Some(TYPES), &["s.i.i32", "s.i.u32", "s.i.i64", "s.i.u64", "s.i.f32", "s.i.f64", "s.str"]),
    (Some(TYPES), &["a.c.i32", "b.d.u64", "m.nan", "m.part.i32", "a.i.i32[none]", "m.once.i32"]),
    (Some(TYPES), &["rate(a.c.u64)", "delta(s.c.i64)", "avg(a.i.f32)", "s.i.i32 + nosuch"]),
    (Some(TYPES), &["-t", "700msec", "s.c.u64", "a.i.f32", "rate(s.c.u32)"]),
    (Some(DYN), &["dyn.i.u32 * 2", "dyn.str", "rate(dyn.c.u32)"]),
    (Some(DYN), &["-S", "2", "-T", "6", "-t", "0.9", "dyn.i.u32", "dyn.str"]),
    (Some(FLEET), &["-c", SHOP]),
    (None, &["odd.i32", "odd.u32", "odd.i64", "odd.u64", "odd.float", "odd.double"]),
    (None, &["odd.text", "odd.block", "odd.set", "delta(odd.double)"]),
    (None, &["-t", "0.5", "odd.set", "odd.double", "odd.block"]),
];

/// Runs a test for each of the tables, with its arguments and the rows that
/// `eval` gives. Where it has a sample less, for differences, rows are those of
/// the samples it has.
fn for_each_table(test: impl Fn(&[&str], &[rows::Row])) {
    let folder = tempfile::tempdir().expect("a folder");
    let odd = folder.path().join("odd");
    archive::write(&odd);
    for (archive, arguments) in TABLES {
        let archive = archive.unwrap_or(odd.to_str().expect("UTF-8"));
        let arguments = [&["-a", archive], *arguments].concat();
        let json = run(&[&["eval", "--format", "json"], &arguments[..]].concat());
        assert!(json.status.is_some_and(|status| status < 2), "{}", json.err);
        // A record that has nothing of a metric misses nothing.
        let without: &[&str] = if arguments.contains(&"-t") { &[] } else { &["operand-empty"] };
        let rows = rows::of_json(&json.out, without);
        assert!(rows.len() > 5, "{arguments:?}");
        test(&arguments, &rows);
    }
}

/// Compares the rows of a table with those of `eval`.
fn compare(arguments: &[&str], found: &[rows::Row], expected: &[rows::Row]) {
    let first = expected.iter().map(|row| row.time).min();
    let found: Vec<&rows::Row> = found.iter().filter(|row| Some(row.time) >= first).collect();
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(*found, expected, "{arguments:?}");
    }
    assert_eq!(found.len(), expected.len(), "{arguments:?}");
}

#[test]
fn csv_and_json_hold_what_eval_prints() {
    for_each_table(|arguments, expected| {
        let csv = run(&[&["export", "--format", "csv"], arguments].concat());
        compare(arguments, &rows::of_csv(&csv.out), expected);
        let json = run(&[&["export", "--format", "json"], arguments].concat());
        let without: &[&str] = if arguments.contains(&"-t") { &[] } else { &["operand-empty"] };
        compare(arguments, &rows::of_json(&json.out, without), expected);
        assert_eq!((csv.status, csv.err), (json.status, json.err));
    });
}

/// What stands in a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("UTF-8")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_file_is_what_goes_to_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    for form in ["csv", "json"] {
        let file = folder.path().join(format!("table.{form}"));
        // What is there is replaced.
        fs::write(&file, "something else").expect("it can be written");
        let file = file.to_str().expect("UTF-8");
        let arguments = ["export", "-a", FLEET, "-c", SHOP];
        let to_file = run(&[&arguments[..], &["-o", file]].concat());
        assert_eq!((to_file.status, &*to_file.out, &*to_file.err), (Some(0), "", ""));
        let to_output = run(&[&arguments[..], &["--format", form, "-o", "-"]].concat());
        assert_eq!(fs::read_to_string(file).expect("a file"), to_output.out);
    }
    assert_eq!(files(folder.path()), ["table.csv", "table.json"]);
}

/// Copies an archive whose volume is cut off in the middle.
fn cut_archive(folder: &Path) -> String {
    for suffix in ["0", "meta", "index"] {
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join(TYPES).with_extension(suffix);
        let mut bytes = fs::read(original).expect("a file");
        if suffix == "0" {
            bytes.truncate(bytes.len() / 2);
        }
        fs::write(folder.join(format!("cut.{suffix}")), bytes).expect("it can be written");
    }
    folder.join("cut").to_str().expect("UTF-8").to_owned()
}

#[test]
fn an_archive_that_is_cut_off_makes_no_complete_file() {
    let source = tempfile::tempdir().expect("a folder");
    let archive = cut_archive(source.path());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("table.csv");
    fs::write(&file, "of yesterday").expect("it can be written");
    let path = file.to_str().expect("UTF-8");
    let run = run(&["export", "-a", &archive, "-o", path, "s.i.i32"]);
    assert_eq!(run.status, Some(3), "{}", run.err);
    assert!(run.err.contains("samples so far are in ") && run.err.contains("cut.0"), "{}", run.err);
    assert_eq!(files(folder.path()), ["table.csv", "table.csv.partial"]);
    assert_eq!(fs::read_to_string(&file).expect("a file"), "of yesterday");
    let partial = fs::read_to_string(folder.path().join("table.csv.partial")).expect("a file");
    assert!(rows::of_csv(&partial).len() > 2, "{partial}");
}

/// Makes no complete file either.
#[test]
fn a_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.csv");
    let path = path.to_str().expect("UTF-8");
    let mut child =
        pmderive(&["export", "-L", "-s", "100000", "-t", "1msec", "-o", path, "hinv.ncpu"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
    // It writes when there is enough to write, to a file that has no name yet.
    let open = format!("/proc/{}/fd", child.id());
    let has_written = || {
        let is_written = |entry: fs::DirEntry| {
            let is_here = fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(folder.path()));
            is_here && fs::metadata(entry.path()).is_ok_and(|about| about.len() > 0)
        };
        fs::read_dir(&open).is_ok_and(|mut open| open.any(|entry| entry.is_ok_and(is_written)))
    };
    while !has_written() {
        assert_eq!(child.try_wait().expect("a child"), None);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("there is such a command").success());
    let run = finished(child.wait_with_output().expect("it ends"));
    assert_eq!(run.status, Some(1), "{}", run.err);
    assert_eq!(files(folder.path()), ["table.csv.partial"]);
    let partial = fs::read_to_string(folder.path().join("table.csv.partial")).expect("a file");
    assert!(rows::of_csv(&partial).len() > 1);
}

#[test]
fn what_cannot_be_exported_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("table.csv");
    let path = file.to_str().expect("UTF-8");
    for arguments in [&["-a", "tests/archives/none", "x"][..], &["-a", TYPES, "s.i.i32 +* 2"]] {
        let run = run(&[&["export", "-o", path], arguments].concat());
        assert!(run.status.is_some_and(|status| status > 1), "{}", run.err);
        assert_eq!(files(folder.path()), [""; 0]);
    }
}

#[test]
fn an_output_that_is_full() {
    let run = run(&["export", "-a", FLEET, "--format", "csv", "-o", "/dev/full", "disk.dev.total"]);
    assert_eq!(run.status, Some(3));
    assert!(run.err.starts_with("pmderive: cannot write the output: /dev/full: "), "{}", run.err);
}

/// The limit on the size of files stands for a full disk.
#[test]
fn a_full_disk_keeps_the_whole_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = run(&["export", "-q", "-a", FLEET, "disk", "kernel", "network", "filesys"]).out;
    let limited = "ulimit -f 600; exec \"$0\" export -q -a \"$1\" -o \"$2/x.csv\" disk kernel network filesys";
    let output = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_pmderive"), FLEET])
        .arg(folder.path())
        .env("PCP_DERIVED_CONFIG", "")
        .output();
    let output = output.expect("a shell");
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("the samples that could be written are in "), "{told}");
    assert_eq!(files(folder.path()), ["x.csv.partial"]);
    let kept = fs::read_to_string(folder.path().join("x.csv.partial")).expect("a table");
    let rest = whole.strip_prefix(&kept).expect("the beginning of the whole table");
    let time = |line: &str| line.split(',').next().map(str::to_owned);
    let (last, next) = (kept.lines().last(), rest.lines().next());
    assert!(
        kept.ends_with('\n') && last.and_then(time) != next.and_then(time),
        "{last:?} {next:?}"
    );
}

#[test]
fn a_closed_output_ends_quietly() {
    let mut child = pmderive(&["export", "-L", "-s", "100000", "-t", "1msec", "hinv.ncpu"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    drop(child.stdout.take());
    let run = finished(child.wait_with_output().expect("it ends"));
    assert_eq!((run.status, &*run.err), (Some(0), ""));
}

/// Whoever reads a stream has each sample at once. The next one is an hour away.
#[test]
fn samples_of_a_stream_are_not_held_back() {
    for format in ["csv", "json"] {
        let mut child =
            pmderive(&["export", "-L", "--format", format, "-s", "2", "-t", "1hour", "hinv.ncpu"])
                .stdout(Stdio::piped())
                .spawn()
                .expect("the command runs");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || out.lines().try_for_each(|line| send.send(line)));
        for _ in 0..2 {
            let line = lines.recv_timeout(std::time::Duration::from_secs(60));
            line.expect("a line before the next sample").expect("text");
        }
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }
}

#[test]
fn event_records_are_refused_and_harm_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let odd = folder.path().join("odd");
    archive::write(&odd);
    let run = run(&["export", "-a", odd.to_str().expect("UTF-8"), "odd.i32", "odd.events"]);
    assert_eq!(run.status, Some(1));
    assert!(run.err.contains("odd.events: a table cannot hold event records"), "{}", run.err);
    assert_eq!(rows::of_csv(&run.out).len(), 6);
    assert!(!run.out.contains("odd.events"));
}

/// Metadata that samples do not have.
#[test]
fn metadata_of_metrics() {
    let folder = tempfile::tempdir().expect("a folder");
    let odd = folder.path().join("odd");
    archive::write(&odd);
    let config = folder.path().join("c.conf");
    fs::write(&config, "x.double = odd.i64 * 2\nx.double(oneline) = twice\n").expect("a file");
    let (odd, config) = (odd.to_str().expect("UTF-8"), config.to_str().expect("UTF-8"));
    let run = run(&[
        "export",
        "-a",
        odd,
        "-c",
        config,
        "--format",
        "json",
        "odd.set",
        "x.double",
        "odd.i32 + 1",
        "odd.none",
    ]);
    let first = run.out.lines().next().expect("a line");
    let first: serde_json::Value = serde_json::from_str(first).expect("JSON");
    assert_eq!(first["source"]["host"], "odd, or \"not\"");
    let metrics = first["metrics"].as_array().expect("metrics");
    let [set, double, sum, none] = &metrics[..] else { panic!("{first}") };
    assert_eq!(set["pmid"], "60.0.20");
    assert_eq!(set["desc"]["units"], "byte");
    assert_eq!(set["help"], "one line\nand another");
    assert_eq!(set["oneline"], "one \"line\"");
    assert_eq!(set["labels"], serde_json::json!({"a": 1, "b": 2}));
    assert_eq!(double["expression"], "odd.i64 * 2");
    assert_eq!(double["oneline"], "twice");
    assert!(double["pmid"].as_str().is_some_and(|pmid| pmid.starts_with("511.")), "{double}");
    assert_eq!(double["labels"], serde_json::json!({"a": 1, "b": "x"}));
    assert!(sum["pmid"].is_null() && sum["expression"].is_null(), "{sum}");
    assert_eq!(none["errname"], "PM_ERR_BADDERIVE");
}
