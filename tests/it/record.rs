//! Recording: the contents of an archive recorded from archives and from a pmcd whose metrics
//! change, and the messages if nothing can be recorded.
//!
//! Archives are compared record by record with pmderive's own reader. `record_real` tests how
//! PCP's tools read them.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Definitions, Engine, Session};
use pmderive::record::{Origin, Recorder, RecorderError, Recording, Sampled};
use pmderive_runtime::archive::{ArchiveContext, Version};
use pmderive_runtime::archive_writer::ArchiveWriter;
use pmderive_runtime::context::{ConnectOptions, HostContext};
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelLevel, MetricDesc, PmStatus, Pmid, RawValue, Semantics, TextKind,
    TextSubject, Timestamp, Units, ValueType,
};
use pmderive_runtime::pdu::PduType;
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};
use pmderive_runtime::source::{Freshness, MetadataSource};
use pmderive_testkit::archives;
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Fault, Metric, Rule, Script, World};

use crate::command;
use command::{Run, finished, pmderive, run, settings, transcript};

const ARCHIVES: [&str; 6] =
    ["own-dyn", "own-dyn2", "own-fleet", "own-sample", "own-types", "own-units"];
const FLEET: &str = "tests/archives/own-fleet";

fn source(name: &str) -> String {
    format!("tests/archives/{name}")
}

/// Runs the command with an archive in a folder as its output.
fn record(folder: &Path, arguments: &[&str]) -> (Run, PathBuf) {
    let out = folder.join("out");
    let run = run(&[&["record", "-o", out.to_str().expect("UTF-8")], arguments].concat());
    (run, out)
}

fn recorded(folder: &Path, arguments: &[&str]) -> PathBuf {
    let (run, out) = record(folder, arguments);
    assert_eq!((run.status, &*run.out), (Some(0), ""), "{}", run.err);
    out
}

fn open(archive: &Path) -> ArchiveContext {
    ArchiveContext::open(archive).expect("an archive")
}

/// One record: its time, and the values of each metric by instance. A mark has
/// no metrics.
type Record = (Timestamp, BTreeMap<Pmid, Result<BTreeMap<i32, RawValue>, PmStatus>>);

fn records(archive: &mut ArchiveContext) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        match archive.next_record() {
            Ok(result) => {
                let sets = result.sets.into_iter().map(|set| {
                    let values = set.outcome.map(|values| {
                        let pair = |value: InstanceValue| (value.instance, value.value);
                        values.into_iter().map(pair).collect()
                    });
                    (set.pmid, values)
                });
                records.push((result.timestamp, sets.collect()));
            }
            Err(error) if error.is_end_of_archive() => return records,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Everything that an archive says of a metric but its values.
#[derive(Debug, PartialEq)]
struct About {
    desc: MetricDesc,
    names: Vec<Box<str>>,
    texts: Vec<Option<Box<str>>>,
    /// Of each level, as JSON.
    labels: Vec<Vec<(i32, String)>>,
    instances: Option<BTreeMap<i32, String>>,
}

fn about(archive: &mut ArchiveContext, pmid: Pmid) -> About {
    let desc = archive.lookup_descs(&[pmid]).expect("answers")[0].expect("a descriptor");
    let mut names = archive.names_of(pmid).expect("answers").expect("a name");
    names.sort();
    let mut subjects = vec![TextSubject::Metric(pmid)];
    let mut levels = vec![
        LabelLevel::Context,
        LabelLevel::Domain(pmid.domain()),
        LabelLevel::Cluster(pmid),
        LabelLevel::Item(pmid),
    ];
    if let Some(indom) = desc.indom {
        subjects.push(TextSubject::Domain(indom));
        levels.extend([LabelLevel::InDom(indom), LabelLevel::Instances(indom)]);
    }
    let mut texts = Vec::new();
    for kind in [TextKind::OneLine, TextKind::Help] {
        let found = archive.text_of_each(&subjects, kind).expect("answers");
        texts.extend(found.into_iter().map(Result::ok));
    }
    let labels = archive.labels_of_each(&levels).expect("answers").into_iter().map(|sets| {
        let sets = sets.unwrap_or_default().into_iter();
        let sets = sets.map(|set| (set.instance(), set.json().to_owned()));
        // A level without labels may be written or not.
        sets.filter(|(_, json)| !json.is_empty()).collect()
    });
    let labels = labels.collect();
    let instances = desc.indom.and_then(|indom| {
        let domain = archive.instance_domain(indom, Freshness::Cached).expect("answers").ok()?;
        Some(domain.instances().map(|(id, name)| (id, name.to_owned())).collect())
    });
    About { desc, names, texts, labels, instances }
}

/// Checks that the second archive says what the first one says.
fn compare(from: &Path, to: &Path) {
    let (mut from, mut to) = (open(from), open(to));
    let label = |archive: &ArchiveContext| {
        let label = archive.label();
        (label.host.clone(), label.timezone.clone(), label.zoneinfo.clone(), label.start, label.pid)
    };
    assert_eq!(label(&from), label(&to));
    let (before, after) = (records(&mut from), records(&mut to));
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
        for archive in [&mut from, &mut to] {
            archive.set_position(before.0).expect("an archive");
            let _ = archive.next_record();
        }
        for pmid in before.1.keys() {
            assert_eq!(about(&mut from, *pmid), about(&mut to, *pmid), "{pmid} at {:?}", before.0);
        }
    }
}

#[test]
fn a_folder_that_was_removed_is_told() {
    let program = env!("CARGO_BIN_EXE_pmderive");
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(FLEET);
    for arguments in ["record -o new", "export -o new.csv"] {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            "cd {} && rmdir $PWD && exec {program} {arguments} -a {} hinv.ncpu",
            folder.path().display(),
            archive.display()
        );
        let ran = Command::new("sh").args(["-c", &script]).output().expect("it runs");
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{told}");
        assert!(told.contains("the folder was removed"), "{told}");
    }
}

#[test]
fn an_archive_of_an_archive_is_the_same() {
    for name in ARCHIVES {
        let folder = tempfile::tempdir().expect("a folder");
        let source = source(name);
        let out = recorded(folder.path(), &["-a", &source, "."]);
        compare(Path::new(&source), &out);
    }
}

/// Those between records and those behind the last one have their times.
#[test]
fn marks_are_those_of_the_archive() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source");
    let at = |seconds: i64| Timestamp::new(1_700_000_000 + seconds, 0);
    let options = archives::options("marks.example", at(0));
    let mut writer = ArchiveWriter::create(&source, options).expect("a new archive");
    let desc = MetricDesc {
        pmid: Pmid::new(60, 0, 1),
        value_type: ValueType::U32,
        indom: None,
        semantics: Semantics::Instant,
        units: Units::NONE,
    };
    writer.describe(&desc, &["a"]).expect("it is new");
    // An empty text is not the same as none.
    let empty = writer.text(TextSubject::Metric(desc.pmid), TextKind::OneLine, "");
    empty.expect("it is described");
    // A mark has no value.
    for (second, value) in [(0, Some(7)), (4, None), (10, Some(8)), (11, Some(9)), (19, None)] {
        let Some(word) = value else {
            writer.mark(at(second)).expect("in order");
            continue;
        };
        let value = InstanceValue { instance: -1, value: RawValue::InPlace(word) };
        let sets = vec![MetricValues { pmid: desc.pmid, outcome: Ok(vec![value]) }];
        let record = FetchResult { timestamp: at(second), sets, ..FetchResult::default() };
        writer.record(&record).expect("it is good");
    }
    writer.finish().expect("it is written");
    let out = recorded(folder.path(), &["-a", source.to_str().expect("UTF-8"), "."]);
    compare(&source, &out);
}

/// Derived values have these instances in them, so their operands must keep them.
#[test]
fn instances_of_an_archive_that_nobody_has_named_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source");
    let time = Timestamp::new(1_700_000_000, 0);
    let options = archives::options("nameless.example", time);
    let mut writer = ArchiveWriter::create(&source, options).expect("a new archive");
    let indom = InDom::new(60, 1);
    let desc = MetricDesc {
        pmid: Pmid::new(60, 0, 1),
        value_type: ValueType::U32,
        indom: Some(indom),
        semantics: Semantics::Instant,
        units: Units::NONE,
    };
    writer.describe(&desc, &["a"]).expect("it is new");
    let domain = InstanceDomain::new(vec![(1, "one".into())]);
    writer.instances(time, indom, &domain).expect("the name is good");
    writer.allow_instances_without_names();
    let value = |instance| InstanceValue { instance, value: RawValue::InPlace(10) };
    let sets = vec![MetricValues { pmid: desc.pmid, outcome: Ok(vec![value(1), value(2)]) }];
    let record = FetchResult { timestamp: time, sets, ..FetchResult::default() };
    writer.record(&record).expect("it is good");
    writer.finish().expect("it is written");
    let out = recorded(folder.path(), &["-a", source.to_str().expect("UTF-8"), "a", "s = sum(a)"]);
    let out = out.to_str().expect("UTF-8");
    let evaluated = run(&["eval", "-a", out, "-s", "1", "--format", "csv", "s", "sum(a)"]);
    assert_eq!(evaluated.out.matches(",20\n").count(), 2, "{}", evaluated.out);
}

#[test]
fn volumes_are_no_larger_than_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = source("own-types");
    let out = recorded(folder.path(), &["-a", &source, "-v", "20kb", "."]);
    compare(Path::new(&source), &out);
    let volumes = (0..).map(|number| out.with_extension(number.to_string()));
    let sizes: Vec<u64> = volumes.map_while(|volume| Some(volume.metadata().ok()?.len())).collect();
    assert!(sizes.len() > 1 && sizes.iter().all(|size| *size <= 20 << 10), "{sizes:?}");
}

const DEFINITIONS: &str = r#"
d.rate = rate(disk.dev.total)
d.rate(oneline) = requests a second
d.size = delta(disk.dev.total_bytes) / delta(disk.dev.total)
d.sum = sum(disk.dev.total)
d.memory = rescale(mem.physmem, "Gbyte")
d.busy = rate(disk.dev.total) > 300 ? disk.dev.total : novalue()
d.constant = mkconst(4, type=double)
"#;

/// Values of metrics as rows, as far as they are at `since` or later.
fn rows(arguments: &[&str], since: &str) -> Vec<String> {
    let run = run(&[&["eval", "--format", "csv"], arguments].concat());
    assert_eq!(run.status, Some(0), "{}", run.err);
    let rows = run.out.lines().skip(1).filter(|row| *row >= since);
    rows.map(str::to_owned).collect()
}

#[test]
fn derived_values_are_those_that_are_evaluated() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("d.conf");
    std::fs::write(&config, DEFINITIONS).expect("a file");
    let config = config.to_str().expect("UTF-8");
    let names = ["d.rate", "d.size", "d.sum", "d.memory", "d.busy", "d.constant"];
    // Record by record, and interpolated.
    for interval in [&[][..], &["-t", "700msec"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let of_source = [&["-a", FLEET, "-c", config], interval].concat();
        let out = recorded(folder.path(), &of_source);
        let out = out.to_str().expect("UTF-8");
        let expected = rows(&[&of_source[..], &names].concat(), "");
        let first = expected[0].split(',').next().expect("a time");
        assert!(expected.len() > 100);
        // A first sample, which has no differences, is recorded as well.
        assert_eq!(rows(&[&["-a", out][..], &names].concat(), first), expected);
    }
}

#[test]
fn operands_are_recorded_besides() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("d.conf");
    std::fs::write(&config, DEFINITIONS).expect("a file");
    let config = config.to_str().expect("UTF-8");
    let out = recorded(folder.path(), &["-a", FLEET, "-c", config, "--with-operands", "d.size"]);
    let mut archive = open(&out);
    let mut names = archive.traverse("").expect("names");
    names.sort();
    assert_eq!(names, ["d.size", "disk.dev.total", "disk.dev.total_bytes"]);
    let derived = archive.lookup_names(&["d.size"]).expect("answers")[0].expect("a metric");
    assert_eq!((derived.domain(), derived.cluster()), (511, 2048));
    let out = out.to_str().expect("UTF-8");
    let again = folder.path().join("again.conf");
    std::fs::write(&again, DEFINITIONS.replace("d.", "again.").replace("disk.again.", "disk.dev."))
        .expect("a file");
    let rows = |name: &str| {
        let arguments = ["-a", out, "-c", again.to_str().expect("UTF-8"), name];
        let rows = rows(&arguments, "").into_iter();
        rows.map(|row| row.replace("again.size", "d.size")).collect::<Vec<_>>()
    };
    assert_eq!(rows("again.size"), rows("d.size"));
}

/// A window of an archive begins a new archive.
#[test]
fn a_window_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = ["-S", "@20:26:45", "-T", "@20:26:50", "-Z", "UTC"];
    let out = recorded(folder.path(), &[&["-a", FLEET], &window[..], &["."]].concat());
    let window = Timestamp::new(1_700_080_005, 0)..=Timestamp::new(1_700_080_010, 0);
    let mut all = records(&mut open(Path::new(FLEET)));
    let length = all.len();
    all.retain(|(time, sets)| window.contains(time) && !sets.is_empty());
    assert!(!all.is_empty() && all.len() < length);
    let mut archive = open(&out);
    assert_eq!(archive.label().start, all[0].0);
    let mut found = records(&mut archive);
    found.retain(|(_, sets)| !sets.is_empty());
    assert_eq!(found, all);
}

/// Whole runs, by the name of their snapshot.
const RUNS: &[(&str, &[&str])] = &[
    ("nothing_to_record", &["record", "-a", FLEET, "-o", "OUT"]),
    ("an_unknown_metric", &["record", "-a", FLEET, "-o", "OUT", "disk.dev.totl", "disk.dev"]),
    ("an_expression", &["record", "-a", FLEET, "-o", "OUT", "rate(disk.dev.total)"]),
    ("an_archive_that_exists", &["record", "-a", FLEET, "-o", FLEET, "disk.dev"]),
    ("a_folder", &["record", "-a", FLEET, "-o", "tests/archives", "disk.dev"]),
    ("no_folder", &["record", "-a", FLEET, "-o", "tests/none/out", "disk.dev"]),
    ("a_size_without_unit", &["record", "-a", FLEET, "-o", "OUT", "-v", "100", "disk.dev"]),
    ("a_window_of_nothing", &["record", "-a", FLEET, "-o", "OUT", "-S", "@half past", "disk.dev"]),
    ("nothing_in_the_window", &["record", "-a", FLEET, "-o", "OUT", "-S", "@2030-01-01", "disk"]),
    (
        "a_definition_that_fails",
        &["record", "-a", FLEET, "-o", "OUT", "-c", "tests/tools/needs.conf", "needs.wrong"],
    ),
    (
        "a_definition_with_a_mistake",
        &["record", "-a", FLEET, "-o", "OUT", "-c", "tests/cli/mistakes.conf", "shop.function"],
    ),
    (
        "a_definition_with_the_name_of_a_metric",
        &["record", "-a", FLEET, "-o", "OUT", "hinv.ncpu=hinv.ncpu*2"],
    ),
    ("help_of_record", &["record", "--help"]),
];

#[test]
fn runs() {
    for (name, arguments) in RUNS {
        settings("record").bind(|| insta::assert_snapshot!(*name, transcript(arguments, &[])));
    }
    assert!(!Path::new("OUT.meta").exists(), "nothing was made");
}

/// A mistake in a file harms nothing beside it, whether its definitions are named or not;
/// one that is named, or among the arguments, does.
#[test]
fn mistakes_in_files_harm_nothing_beside_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let file = path("x.conf");
    std::fs::write(&file, "x.a = rate(disk.all.total)\nx.b = rate(\n").expect("a file");
    for (out, arguments, is_recorded) in [
        ("all", &[][..], true),
        ("named", &["x.a"], true),
        ("mistaken", &["x.a", "x.b"], false),
        ("argument", &["x.a", "y = rate("], false),
        ("metric", &["kernel.all.load = rate("], false),
        ("group", &["disk = rate("], false),
        ("twice", &["y.a = hinv.ncpu", "y.a = hinv.ndisk"], false),
        ("again", &["x.a = rate("], false),
    ] {
        let out = path(out);
        let run = run(&[&["record", "-a", FLEET, "-c", &file, "-o", &out], arguments].concat());
        assert_eq!(run.status, Some(2), "{arguments:?}: {}", run.err);
        assert!(run.err.contains("x.conf:2:"), "{arguments:?}: {}", run.err);
        let is_there = Path::new(&out).with_extension("meta").exists();
        assert_eq!(is_there, is_recorded, "{arguments:?}: {}", run.err);
    }
}

/// A disk that is full, or here a limit of the size of files: what was written
/// stays.
#[test]
fn no_more_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let arguments = ["record", "-a", FLEET, "-o", out, "disk.dev", "kernel"];
    let command = pmderive(&arguments);
    let script = format!("ulimit -f 12; exec {:?} {}", command.get_program(), arguments.join(" "));
    let limited = Command::new("bash").args(["-c", &script]).env("PCP_DERIVED_CONFIG", "").output();
    let run = finished(limited.expect("bash"));
    assert_eq!(run.status, Some(3), "{}", run.err);
    assert!(run.err.contains("the records before stay readable"), "{}", run.err);
    let mut archive = open(Path::new(out));
    let all = records(&mut open(Path::new(FLEET)));
    let written = records(&mut archive);
    assert!(!written.is_empty() && written.len() < all.len(), "{} records", written.len());
    let last = archive.end_time().expect("an end");
    assert_eq!(Some(last), written.last().map(|(time, _)| *time));
}

/// A name that no archive can have: the metric is left out, all of it.
#[test]
fn a_name_with_an_empty_component() {
    let folder = tempfile::tempdir().expect("a folder");
    let damaged = folder.path().join("damaged");
    for suffix in ["0", "index", "meta"] {
        let bytes = std::fs::read(Path::new(FLEET).with_extension(suffix)).expect("a file");
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        let text = text.replace("mem.physmem", "mem..hysmem");
        let bytes: Vec<u8> = text.chars().map(|character| character as u8).collect();
        std::fs::write(damaged.with_extension(suffix), bytes).expect("a file");
    }
    let (run, out) = record(folder.path(), &["-a", damaged.to_str().expect("UTF-8"), "."]);
    assert_eq!(run.status, Some(1), "{}", run.err);
    assert!(run.err.contains("mem..hysmem: the name has an empty component"), "{}", run.err);
    let (mut before, mut after) = (open(Path::new(FLEET)), open(&out));
    let left_out = before.lookup_names(&["mem.physmem"]).expect("answers")[0].expect("a metric");
    assert!(records(&mut before).iter().any(|(_, sets)| sets.contains_key(&left_out)));
    assert!(!records(&mut after).iter().any(|(_, sets)| sets.contains_key(&left_out)));
    assert_eq!(after.lookup_descs(&[left_out]).expect("answers")[0], Err(PmStatus::PMID_LOG));
    let names = |archive: &mut ArchiveContext| {
        let mut names = archive.traverse("mem").expect("names");
        names.sort_unstable();
        names
    };
    let others: Vec<String> =
        names(&mut before).into_iter().filter(|name| name != "mem.physmem").collect();
    assert_eq!(names(&mut after), others);
}

/// A leaf of the name space is no node: of two such names the archive has the first.
#[test]
fn a_name_below_another() {
    let (above, below) = ("x=hinv.ncpu", "x.y=hinv.ncpu*3");
    for (definitions, said, kept) in [
        ([above, below], "x.y: the name is below that of another metric", "x"),
        ([below, above], "x: the name is also that of a group of metrics", "x.y"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let (run, out) =
            record(folder.path(), &[&["-a", FLEET, "-s", "1"][..], &definitions].concat());
        assert_eq!(run.status, Some(1), "{}", run.err);
        assert!(run.err.contains(said), "{}", run.err);
        assert_eq!(open(&out).traverse("").expect("names"), [kept]);
    }
}

/// The source's metric is recorded in the place of a definition, and that is told.
#[test]
fn a_metric_that_hides_a_definition() {
    for arguments in [&[][..], &["hinv.ncpu"], &["hinv"], &["--compat", "6.0"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("d.conf");
        std::fs::write(&config, "hinv.ncpu = hinv.ncpu * 2\n").expect("a file");
        let config = config.to_str().expect("UTF-8");
        let (run, _) =
            record(folder.path(), &[&["-a", FLEET, "-s", "1", "-c", config], arguments].concat());
        assert_eq!(run.status, Some(1), "{}", run.err);
        assert!(run.err.starts_with("[PMD0103] Warning: `hinv.ncpu` "), "{}", run.err);
        assert!(run.err.contains(": 1 record of "), "{}", run.err);
    }
}

/// Not even the shortest file stays where another one would have too long a name.
#[test]
fn a_base_name_that_is_too_long() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("n".repeat(250));
    let out = out.to_str().expect("UTF-8");
    let run = run(&["record", "-a", FLEET, "-s", "1", "-o", out, "hinv.ncpu"]);
    assert_eq!(run.status, Some(3), "{}", run.err);
    assert!(run.err.contains("no file name has more than 255 bytes"), "{}", run.err);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// Metadata alone, with the mark of an archive that never came into being, is
/// in nobody's way; any other file is left alone.
#[test]
fn what_a_killed_recording_has_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let metadata = folder.path().join("out.meta");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(FLEET);
    let source = source.to_str().expect("UTF-8");
    for (mode, status) in [(0o644, 3), (0o1644, 0)] {
        std::fs::write(&metadata, "left").expect("a file");
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&metadata, permissions).expect("it is ours");
        let mut command = pmderive(&["record", "-a", source, "-o", "out", "hinv.ncpu"]);
        let run = finished(command.current_dir(folder.path()).output().expect("the command runs"));
        assert_eq!(run.status, Some(status), "{}", run.err);
        let is_left = std::fs::read(&metadata).is_ok_and(|contents| contents == b"left");
        assert_eq!(is_left, status != 0, "{}", run.err);
    }
    assert_eq!(records(&mut open(&folder.path().join("out"))).len(), 13);
}

/// While the source's clock is behind the last record nothing can be recorded.
/// What comes afterwards stands behind a mark.
#[test]
fn a_clock_that_is_set_back() {
    let host = FakeHost::new(world()).with_clock_set_back(8, Duration::from_millis(3500));
    let pmcd = FakePmcd::start(host);
    let folder = tempfile::tempdir().expect("a folder");
    let host = pmcd.spec().to_string();
    let (run, out) = record(folder.path(), &["-h", &host, "-t", "1msec", "-s", "15", "n"]);
    assert_eq!(run.status, Some(1), "{}", run.err);
    assert!(run.err.contains("warning: time went back from "), "{}", run.err);
    assert!(run.err.contains("; left out: 3 samples of earlier times"), "{}", run.err);
    let records = records(&mut open(&out));
    assert!(records.is_sorted_by_key(|(time, _)| *time));
    let marks: Vec<usize> = (0..records.len()).filter(|at| records[*at].1.is_empty()).collect();
    assert_eq!((records.len(), marks.len()), (13, 1), "12 of 15, and a mark");
    assert!(records[marks[0] + 1..].len() > 1);
}

/// Its samples count, so that the recording ends.
#[test]
fn a_recording_whose_metrics_are_all_away() {
    let pmcd = FakePmcd::start(FakeHost::new(world()));
    let folder = tempfile::tempdir().expect("a folder");
    let host = pmcd.spec().to_string();
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            let volume = folder.path().join("out.0");
            while !volume.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            pmcd.host().drop_agent(AGENT);
        });
        record(folder.path(), &["-h", &host, "-t", "50msec", "-s", "20", "m.count"]).0
    });
    assert_eq!(run.status, Some(1), "{}", run.err);
    assert!(run.err.contains("warning: m.count is left out: "), "{}", run.err);
    assert!(run.err.contains("; there was no metric to record for "), "{}", run.err);
}

const BYTES: Units = Units { dim_space: 1, ..Units::NONE };

fn world() -> World {
    let mut world = World::new();
    world.add(Metric::new("n.count", Script::counter(100.0)));
    world.add(Metric::new("n.size", Script::constant(4u32)));
    let indom = world.add_domain(&["a", "b"]);
    world.add(Metric::new("n.each", Script::constant(1u32)).per(indom));
    world.add(Metric::new("m.count", Script::counter(100.0)).of_agent(AGENT));
    world
}

/// The agent of a single metric.
const AGENT: u32 = 77;

/// A recording of a pmcd that tests can change.
struct Rig {
    pmcd: FakePmcd,
    recorder: Recorder<HostContext>,
    folder: tempfile::TempDir,
}

impl Rig {
    fn new(names: &[&str]) -> Rig {
        let pmcd = FakePmcd::start(FakeHost::new(world()));
        let shared = Arc::new(Definitions::new(Dialect::Fixed));
        for (name, text) in [("d.rate", "rate(n.count)"), ("d.twice", "n.size * 2")] {
            shared.register(name, text).expect("a good definition");
        }
        let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
        let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default());
        let mut context =
            Session::new(engine, shared, source.expect("a connection")).expect("one language");
        let folder = tempfile::tempdir().expect("a folder");
        let recording = Recording {
            base: folder.path().join("out"),
            version: Version::V3,
            volume_bytes: None,
            origin: Origin::of_live(&mut context).expect("a host"),
            names: names.iter().map(|name| Box::from(*name)).collect(),
            with_operands: false,
            end: None,
            is_archive: false,
            label_times: Vec::new(),
            records: None,
        };
        let recorder = Recorder::new(context, recording).expect("a pmcd");
        Rig { pmcd, recorder, folder }
    }

    fn domain_of(&mut self, name: &str) -> InDom {
        let pmid = self.recorder.context().lookup_names(&[name]).expect("answers")[0];
        let desc = self.recorder.context().lookup_descs(&[pmid.expect("a metric")]);
        desc.expect("answers")[0].expect("a descriptor").indom.expect("a domain")
    }

    fn sample(&mut self) {
        let step = self.recorder.sample().expect("a sample");
        assert!(matches!(step, Sampled::Recorded(_)), "{step:?}");
    }

    fn notices(&mut self) -> Vec<String> {
        self.recorder.take_notices().iter().map(ToString::to_string).collect()
    }

    /// Ends the recording, and gives the metrics with values of each record; of
    /// a mark none.
    fn records(self) -> (Vec<String>, tempfile::TempDir) {
        self.recorder.finish().expect("an archive");
        let mut archive = open(&self.folder.path().join("out"));
        let mut named = Vec::new();
        for (_, sets) in records(&mut archive) {
            let mut found: Vec<String> = Vec::new();
            for (pmid, values) in sets {
                let name = archive.names_of(pmid).expect("answers").expect("a name")[0].to_string();
                let count = values
                    .map_or_else(|status| status.0.to_string(), |values| values.len().to_string());
                found.push(format!("{name}:{count}"));
            }
            found.sort();
            named.push(found.join(" "));
        }
        (named, self.folder)
    }
}

/// A metric whose descriptor changes is left out until it is as before; what is
/// new below a node comes in.
#[test]
fn metrics_change_under_way() {
    let mut session = Rig::new(&["n", "d"]);
    session.sample();
    session.sample();
    session.pmcd.host().change_names(|world| {
        world.add(Metric::new("n.size", Script::constant(0.5f64)).in_units(BYTES));
        world.add(Metric::new("n.new", Script::constant(41u32)));
    });
    // The answer with the notice may be of metrics as they were or as they are.
    session.sample();
    assert_eq!(
        session.notices(),
        [
            "d.twice is left out: it had type U32, and has type DOUBLE now; it had no units, and \
             has units byte now; an archive can hold only one of them",
            "n.size is left out: it had type U32, and has type DOUBLE now; it had no units, and \
             has units byte now; an archive can hold only one of them",
        ]
    );
    session.sample();
    session.pmcd.host().change_names(|world| {
        world.add(Metric::new("n.size", Script::constant(5u32)));
    });
    session.sample();
    assert_eq!(
        session.notices(),
        ["d.twice is recorded from now on", "n.size is recorded from now on"]
    );
    session.sample();
    let (records, _) = session.records();
    assert_eq!(
        records,
        [
            "d.rate:0 d.twice:1 n.count:1 n.each:2 n.size:1",
            "d.rate:1 d.twice:1 n.count:1 n.each:2 n.size:1",
            "d.rate:1 n.count:1 n.each:2",
            "d.rate:1 n.count:1 n.each:2 n.new:1",
            "",
            // No rate spans the mark.
            "d.rate:0 d.twice:1 n.count:1 n.each:2 n.new:1 n.size:1",
            "d.rate:1 d.twice:1 n.count:1 n.each:2 n.new:1 n.size:1",
        ]
    );
}

/// An agent changes a type, and pmcd gives no notice of it: nobody can read the values.
#[test]
fn values_of_another_type_are_told() {
    let mut session = Rig::new(&["n.size"]);
    session.sample();
    let other = |world: &mut World| {
        world.add(Metric::new("n.size", Script::constant(0.5f64)));
    };
    session.pmcd.host().change(other);
    session.sample();
    session.sample();
    assert_eq!(
        session.notices(),
        ["n.size: values that are not of its type are left out: Impossible value or scale \
          conversion"]
    );
    let (records, _) = session.records();
    assert_eq!(records, ["n.size:1", "n.size:-12362", "n.size:-12362"]);
}

/// Its counters begin anew, whether a sample has seen it away or not.
#[test]
fn an_agent_that_is_added_again() {
    for is_seen in [true, false] {
        let mut session = Rig::new(&["n.size", "m.count"]);
        session.sample();
        session.pmcd.host().drop_agent(AGENT);
        if is_seen {
            session.sample();
        }
        session.pmcd.host().add_agent(AGENT, |_| {});
        session.sample();
        session.sample();
        let (records, _) = session.records();
        let expected: &[&str] = match is_seen {
            true => {
                &["m.count:1 n.size:1", "n.size:1", "", "m.count:1 n.size:1", "m.count:1 n.size:1"]
            }
            false => &["m.count:1 n.size:1", "", "m.count:1 n.size:1", "m.count:1 n.size:1"],
        };
        assert_eq!(records, expected);
    }
}

/// Once it is back it is recorded again.
#[test]
fn the_only_metric_is_away_for_a_while() {
    let mut session = Rig::new(&["m.count"]);
    session.sample();
    session.pmcd.host().drop_agent(AGENT);
    for _ in 0..3 {
        assert_eq!(session.recorder.sample().expect("an answer"), Sampled::NoMetrics);
    }
    session.pmcd.host().add_agent(AGENT, |_| {});
    // The answer brings the notice, and is asked for again.
    session.sample();
    let notices = session.notices();
    assert_eq!(notices.last().map(String::as_str), Some("m.count is recorded from now on"));
    let (records, _) = session.records();
    assert_eq!(records, ["m.count:1", "", "m.count:1"]);
}

/// It is told of by the name that was asked for.
#[test]
fn all_metrics_of_a_node_are_away_for_a_while() {
    let mut session = Rig::new(&["m", "n.size"]);
    session.sample();
    let world = session.pmcd.host().world();
    session.pmcd.host().change_names(|world| assert!(world.remove("m.count")));
    session.sample();
    session.sample();
    assert_eq!(session.notices(), ["m is left out: Unknown metric name"]);
    session.pmcd.host().change_names(|now| now.clone_from(&world));
    session.sample();
    session.sample();
    assert_eq!(session.notices(), ["m is recorded from now on"]);
    let (records, _) = session.records();
    assert_eq!(
        records,
        [
            "m.count:1 n.size:1",
            "n.size:1",
            "n.size:1",
            "",
            "m.count:1 n.size:1",
            "m.count:1 n.size:1"
        ]
    );
}

/// The numbers that a pmcd gives to metrics do not matter.
#[test]
fn a_pmcd_that_comes_back_as_another() {
    let mut session = Rig::new(&["n.count", "d.rate"]);
    session.sample();
    session.sample();
    session.pmcd.host().restart(|world| {
        world.remove("n.count");
        let metric = Metric::new("n.count", Script::counter(7.0)).meaning(Semantics::Counter);
        world.add(metric.numbered(Pmid::new(400, 9, 9)));
    });
    let lost = session.recorder.sample();
    assert!(matches!(lost, Err(RecorderError::Source(error)) if error.is_transient()));
    session.sample();
    session.sample();
    assert_eq!(session.notices(), [""; 0]);
    let (records, _) = session.records();
    assert_eq!(
        records,
        [
            "d.rate:0 n.count:1",
            "d.rate:1 n.count:1",
            "",
            "d.rate:0 n.count:1",
            "d.rate:1 n.count:1"
        ]
    );
}

/// What was written for a sample that then broke off is of a later time than
/// the last record, and of an earlier one than the mark.
#[test]
fn a_connection_that_breaks_between_instances_and_values() {
    let mut session = Rig::new(&["n.each"]);
    let indom = session.domain_of("n.each");
    session.sample();
    let others = [(0, "a"), (7, "seven"), (1, "another b")];
    session.pmcd.host().change(|world| world.set_instances(indom, &others));
    // The labels of the instances are asked for once these are written.
    let breaks = Rule::new(Fault::Close { after: 0 }).on(PduType::LabelRequest);
    session.pmcd.host().inject(breaks);
    let lost = session.recorder.sample();
    assert!(matches!(lost, Err(RecorderError::Source(error)) if error.is_transient()));
    session.sample();
    let (records, _) = session.records();
    assert_eq!(records, ["n.each:2", "", "n.each:3"]);
}

/// Instances are named before they have values, and again when they change.
#[test]
fn instances_come_and_go() {
    let mut session = Rig::new(&["n.each"]);
    let indom = session.domain_of("n.each");
    session.sample();
    let others = [(0, "a"), (7, "seven"), (1, "another b")];
    session.pmcd.host().change(|world| world.set_instances(indom, &others));
    session.sample();
    session.pmcd.host().change(|world| world.remove_instance(indom, 0));
    session.sample();
    // The last one gets another name, of which pmcd gives notice.
    session.pmcd.host().change_names(|world| world.add_instance(indom, 1, "no b"));
    session.sample();
    let (_, folder) = session.records();
    let mut archive = open(&folder.path().join("out"));
    let mut domains = Vec::new();
    while archive.next_record().is_ok() {
        let domain = archive.instance_domain(indom, Freshness::Cached).expect("answers");
        let domain = domain.expect("a domain");
        let mut names: Vec<&str> = domain.instances().map(|(_, name)| name).collect();
        names.sort_unstable();
        domains.push(names.join(","));
    }
    let expected = ["a,b", "a,another b,seven", "another b,seven", "no b,seven"];
    assert_eq!(domains, expected);
}
