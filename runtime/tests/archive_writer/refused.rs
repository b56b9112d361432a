//! Input that cannot be written: the writer refuses it with a reason, and
//! leaves no trace.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pmderive_runtime::archive::{ArchiveContext, Version};
use pmderive_runtime::archive_writer::{ArchiveWriter, WriteError, WriterOptions, logged_pmid};
use pmderive_runtime::model::{
    InDom, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, RawValue, Semantics, TextKind,
    TextSubject, Timestamp, ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};

use crate::synthetic::{INDOM, desc, domain, options, result};
use crate::tools::scratch;

const START: Timestamp = Timestamp { sec: 1_700_000_000, nsec: 500_000_000 };

fn raw(item: u32, values: &[(i32, RawValue)]) -> MetricValues {
    let value = |(instance, value): &(i32, RawValue)| InstanceValue {
        instance: *instance,
        value: value.clone(),
    };
    let outcome = Ok(values.iter().map(value).collect());
    MetricValues { pmid: Pmid::new(60, 0, item), outcome }
}

fn block(code: u8, length: usize) -> RawValue {
    RawValue::Block { code, bytes: vec![0; length].into() }
}

/// Tries a record with one set a second after the start.
fn try_set(writer: &mut ArchiveWriter, set: MetricValues) -> Result<(), WriteError> {
    writer.record(&result(START.sec + 1, 0, vec![set]))
}

type Call = fn(&mut ArchiveWriter) -> Result<(), WriteError>;

/// Refused calls, with their messages.
const REFUSED: &[(Call, &str)] = &[
    (
        |w| w.mark(Timestamp::new(START.sec, 0)),
        "2023-11-14T22:13:20.000000000Z is earlier than 2023-11-14T22:13:20.500000000Z: archives are written in order of time",
    ),
    (
        |w| w.record(&result(START.sec + 1, 0, Vec::new())),
        "the record of 2023-11-14T22:13:21.000000000Z has no metric; if recording was interrupted, write a mark",
    ),
    (|w| try_set(w, raw(99, &[])), "metric 60.0.99 was not described before; call describe first"),
    (
        |w| try_set(w, raw(1, &[(-1, block(3, 8))])),
        "metric 60.0.1, instance -1: the value is a block of type U64 (code 3), but its type is 32",
    ),
    (
        |w| try_set(w, raw(4, &[(-1, RawValue::InPlace(1))])),
        "metric 60.0.4, instance -1: the value is 32 bits in place, but its type is U64",
    ),
    (
        |w| try_set(w, raw(4, &[(-1, block(2, 8))])),
        "metric 60.0.4, instance -1: the value is a block of type 64 (code 2), but its type is U64",
    ),
    (
        |w| try_set(w, raw(4, &[(-1, block(3, 7))])),
        "metric 60.0.4, instance -1: the value is a block of 7 bytes, but its type is U64",
    ),
    (
        |w| try_set(w, raw(9, &[(-1, block(9, 3))])),
        "metric 60.0.9, instance -1: the value is not a valid array of events: Insufficient elements in list, but its type is EVENT",
    ),
    (
        |w| try_set(w, raw(7, &[(-1, block(6, 0xff_ffff))])),
        "metric 60.0.7, instance -1: the value is a block of 16777215 bytes, but its type is STRING",
    ),
    (
        |w| try_set(w, raw(1, &[(0, RawValue::InPlace(1))])),
        "metric 60.0.1 has no instance domain, so its only value has instance -1, not 0",
    ),
    (
        |w| try_set(w, raw(20, &[(5, RawValue::InPlace(1))])),
        "metric 60.0.20: instance 5 has no name in domain 60.1 at this time; call instances first",
    ),
    (
        |w| try_set(w, raw(20, &[(1, RawValue::InPlace(1)), (1, RawValue::InPlace(1))])),
        "metric 60.0.20 has two values of instance 1",
    ),
    (
        |w| w.record(&result(START.sec + 1, 0, vec![raw(1, &[]), raw(1, &[])])),
        "metric 60.0.1 occurs twice in one record",
    ),
    (
        |w| try_set(w, MetricValues { pmid: Pmid::new(60, 0, 1), outcome: Err(PmStatus(3)) }),
        "metric 60.0.1: status 3 is not a failure: those are negative",
    ),
    (
        |w| {
            w.describe(
                &MetricDesc { semantics: Semantics::Counter, ..desc(1, ValueType::I32, None) },
                &[],
            )
        },
        "metric 60.0.1 was described before, with another semantics",
    ),
    (
        |w| w.describe(&desc(2, ValueType::U32, None), &["test.1"]),
        "test.1 is the name of metric 60.0.1 and cannot be that of 60.0.2",
    ),
    (
        |w| w.describe(&desc(30, ValueType::U32, None), &["a..b"]),
        "the name of metric 60.0.30 \"a..b\" has an empty component",
    ),
    (
        |w| w.describe(&desc(30, ValueType::U32, None), &["a\0b"]),
        "the name of metric 60.0.30 \"a\\0b\" contains a NUL, which ends names",
    ),
    (
        |w| {
            w.describe(
                &MetricDesc { pmid: Pmid::new(511, 3, 4), ..desc(1, ValueType::I32, None) },
                &["d"],
            )
        },
        "511.3.4 cannot be the identifier of a metric in an archive; record a derived metric as 511.2051.4 (see logged_pmid)",
    ),
    (
        |w| w.text(TextSubject::Domain(InDom::new(3, 3)), TextKind::Help, "x"),
        "a metric with domain 3.3 was not described before; call describe first",
    ),
    (
        |w| w.text(TextSubject::Domain(INDOM), TextKind::Help, "x\0"),
        "a help text of instance domain 60.1 \"x\\0\" contains a NUL, which ends texts",
    ),
    (
        |w| w.instances(START, INDOM, &domain(&[(-1, "x")])),
        "instance domain 60.1: -1 cannot be an instance: it is negative",
    ),
    (
        |w| w.instances(START, InDom::new(9, 9), &domain(&[(1, "x")])),
        "a metric with domain 9.9 was not described before; call describe first",
    ),
    (
        |w| w.labels(START, LabelLevel::Context, &[LabelSet::empty(-1), LabelSet::empty(-1)]),
        "labels of the context: only one set is allowed, of instance -1",
    ),
    (
        |w| {
            w.labels(START, LabelLevel::Instances(INDOM), &[LabelSet::empty(1), LabelSet::empty(1)])
        },
        "labels of the instances of 60.1: there are two sets for instance 1",
    ),
    (
        |w| w.labels(START, LabelLevel::Context, &[long_labels()]),
        "labels of the context: a set of 70002 bytes; there is room for 65535",
    ),
    (
        |w| w.describe(&desc(30, ValueType::U32, None), &[&"x".repeat(5000)]),
        "the name of metric 60.0.30 is 5000 bytes long; version 3 has room for 4095",
    ),
];

fn long_labels() -> LabelSet {
    LabelSet::new(-1, format!("{{{}}}", " ".repeat(70_000)), Vec::new()).expect("no label is wrong")
}

fn writer(base: &Path, options: WriterOptions) -> ArchiveWriter {
    let mut writer = ArchiveWriter::create(base, options).expect("nothing is there");
    for (item, value_type) in
        [(1, ValueType::I32), (4, ValueType::U64), (7, ValueType::String), (9, ValueType::Event)]
    {
        let name = format!("test.{item}");
        writer.describe(&desc(item, value_type, None), &[&name]).expect("it is new");
    }
    writer.describe(&desc(20, ValueType::U32, Some(INDOM)), &["test.20"]).expect("it is new");
    writer.instances(START, INDOM, &domain(&[(1, "one")])).expect("it is new");
    let good = raw(20, &[(1, RawValue::InPlace(1))]);
    writer
        .record(&FetchResult { timestamp: START, ..result(0, 0, vec![good]) })
        .expect("it is good");
    writer
}

#[test]
fn bad_calls_are_refused_and_leave_no_trace() {
    let folder = scratch();
    let base = folder.path().join("a");
    let mut writer = writer(&base, options(Version::V3));
    let sizes = || {
        [".meta", ".index", ".0"].map(|suffix| {
            let path = folder.path().join(format!("a{suffix}"));
            std::fs::metadata(path).expect("it is there").len()
        })
    };
    let before = sizes();
    for (call, message) in REFUSED {
        let error = call(&mut writer).expect_err(message);
        assert_eq!(error.to_string(), *message);
        assert!(error.status().0 < 0, "{message}");
        assert_eq!(sizes(), before, "{message}");
    }
    let good = raw(20, &[(1, RawValue::InPlace(2))]);
    try_set(&mut writer, good).expect("everything is as it was");
    writer.finish().expect("there is room");
    let mut context = ArchiveContext::open(&base).expect("it is good");
    assert_eq!((context.next_record().is_ok(), context.next_record().is_ok()), (true, true));
    assert!(context.next_record().expect_err("there are two").is_end_of_archive());
}

/// Until the first record nothing is on disk, not even while a file waits for
/// its name. The next writer takes over the files that a killed process leaves there in between.
/// libpcp breaks down on two differences of one time. Whole lists may follow each other.
#[test]
fn a_domain_with_differences_changes_once_at_a_time() {
    let folder = scratch();
    let names: Vec<String> = (0..20).map(|id| format!("instance {id}")).collect();
    let first = |count: usize| {
        let instances: Vec<_> = (0..).zip(names[..count].iter().map(String::as_str)).collect();
        domain(&instances)
    };
    let later = Timestamp { sec: START.sec + 1, ..START };
    for (version, is_refused) in [(Version::V2, false), (Version::V3, true)] {
        let mut writer = writer(&folder.path().join(format!("{version:?}")), options(version));
        writer.instances(START, INDOM, &first(10)).expect("a whole list again");
        writer.instances(later, INDOM, &first(11)).expect("the first change of this time");
        let again = writer.instances(later, INDOM, &first(12));
        assert_eq!(matches!(again, Err(WriteError::ChangedTwice { .. })), is_refused, "{again:?}");
        let last = Timestamp { sec: START.sec + 2, ..START };
        writer.instances(last, INDOM, &first(12)).expect("another time");
        writer.finish().expect("there is a record");
    }
}

#[test]
fn an_archive_comes_into_being_as_a_whole() {
    let folder = scratch();
    let base = folder.path().join("a");
    let metadata = folder.path().join("a.meta");
    let files = || std::fs::read_dir(folder.path()).expect("it is there").count();
    let begin = || ArchiveWriter::create(&base, options(Version::V3));
    let mut writer = begin().expect("nothing is there");
    writer.describe(&desc(1, ValueType::I32, None), &["test.1"]).expect("it is new");
    assert_eq!(files(), 0);
    drop(writer);
    assert_eq!(files(), 0);
    std::fs::write(&metadata, "begun").expect("there is room");
    assert!(matches!(begin(), Err(WriteError::Exists { .. })), "any other file is left alone");
    // The mark of metadata whose archive has no volume yet.
    std::fs::set_permissions(&metadata, Permissions::from_mode(0o1644)).expect("it is ours");
    let lock = std::fs::File::open(&metadata).expect("it is there");
    lock.lock().expect("nobody has it");
    assert!(matches!(begin(), Err(WriteError::Exists { .. })), "its process still runs");
    drop(lock);
    let mut writer = begin().expect("it is taken over");
    assert_eq!(files(), 0);
    writer.describe(&desc(1, ValueType::I32, None), &["test.1"]).expect("it is new");
    try_set(&mut writer, raw(1, &[(-1, RawValue::InPlace(1))])).expect("it is good");
    let mode = std::fs::metadata(&metadata).expect("it is there").permissions().mode();
    assert_eq!((files(), mode & 0o1600), (3, 0o600));
    assert!(matches!(begin(), Err(WriteError::Exists { .. })));
    drop(writer);
    ArchiveContext::open(&base).expect("it is good");
}

#[test]
fn archives_are_not_overwritten() {
    let folder = scratch();
    for name in ["a.meta", "b.index", "c.0", "d.17.xz", "e.meta.gz"] {
        std::fs::write(folder.path().join(name), "x").expect("there is room");
        let base = folder.path().join(&name[..1]);
        let error = ArchiveWriter::create(&base, options(Version::V3)).expect_err(name);
        let there = folder.path().join(name).display().to_string();
        assert!(error.to_string().starts_with(&format!("{there} exists already")), "{error}");
    }
    // A file that comes while we write.
    let base = folder.path().join("z");
    let mut writer = ArchiveWriter::create(&base, options(Version::V3)).expect("nothing is there");
    writer.describe(&desc(1, ValueType::I32, None), &["test.1"]).expect("it is new");
    let volume = folder.path().join("z.0");
    std::fs::write(&volume, "x").expect("there is room");
    let error =
        try_set(&mut writer, raw(1, &[(-1, RawValue::InPlace(1))])).expect_err("it is there");
    assert!(matches!(error, WriteError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read(&volume).expect("it is there"), b"x");
    std::fs::remove_file(&volume).expect("it is there");
    try_set(&mut writer, raw(1, &[(-1, RawValue::InPlace(1))])).expect("the name is free again");
    writer.finish().expect("there is room");
    ArchiveContext::open(&base).expect("it is good");
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("it is there").collect();
    assert_eq!(left.len(), 8, "no temporary file is left");
}

#[test]
fn bad_places_and_labels_are_refused() {
    let folder = scratch();
    let missing = folder.path().join("missing/a");
    let error = ArchiveWriter::create(&missing, options(Version::V3)).expect_err("no folder");
    let expected = format!(
        "{}: No such file or directory (os error 2)",
        folder.path().join("missing").display()
    );
    assert_eq!(error.to_string(), expected);
    let base = folder.path().join("a");
    let cases: [(WriterOptions, &str); 6] = [
        (
            WriterOptions { host: "h".repeat(64).into(), ..options(Version::V2) },
            "the host name is 64 bytes long; version 2 has room for 63",
        ),
        (
            WriterOptions { timezone: "z".repeat(40).into(), ..options(Version::V2) },
            "the time zone is 40 bytes long; version 2 has room for 39",
        ),
        (
            WriterOptions { zoneinfo: "z".repeat(256).into(), ..options(Version::V3) },
            "the place of the time zone is 256 bytes long; version 3 has room for 255",
        ),
        (
            WriterOptions { host: "a\0".into(), ..options(Version::V3) },
            "the host name \"a\\0\" contains a NUL, which ends texts",
        ),
        (
            WriterOptions { start: Timestamp::new(1 << 31, 0), ..options(Version::V2) },
            "2038-01-19T03:14:08.000000000Z is out of reach of version 2, whose times go from 1901-12-13T20:45:52.000000000Z to 2038-01-19T03:14:07.999999000Z; use version 3",
        ),
        (
            WriterOptions { start: Timestamp::new(-(1 << 31) - 1, 0), ..options(Version::V2) },
            "1901-12-13T20:45:51.000000000Z is out of reach of version 2, whose times go from 1901-12-13T20:45:52.000000000Z to 2038-01-19T03:14:07.999999000Z; use version 3",
        ),
    ];
    for (options, message) in cases {
        let error = ArchiveWriter::create(&base, options).expect_err(message);
        assert_eq!(error.to_string(), message);
        assert_eq!(folder.path().read_dir().expect("it is there").count(), 0);
    }
    let writer = ArchiveWriter::create(&base, options(Version::V2)).expect("nothing is there");
    let error = writer.finish().expect_err("there is no record");
    let expected = format!("{}: no record was written, so there is no archive", base.display());
    assert_eq!(error.to_string(), expected);
    assert_eq!(folder.path().read_dir().expect("it is there").count(), 0);
}

#[test]
fn a_full_disk_leaves_the_records_before() {
    // A limit on the size of a file stands for a full disk.
    let folder = scratch();
    let base = folder.path().join("full");
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().expect("a test"))
        .args(["--exact", "refused::fills_the_disk", "--ignored", "--nocapture"])
        .env("FULL_BASE", &base)
        .output()
        .expect("it can be run again");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("refused at record"), "{printed}");
    let mut context = ArchiveContext::open(&base).expect("it is good");
    let mut count = 0;
    let end = loop {
        match context.next_record() {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(end.is_end_of_archive(), "{end}");
    assert!(printed.contains(&format!("refused at record {count}: ")), "{printed} {count}");
}

/// The body of the test above, in a process of its own.
#[test]
#[ignore = "run by another test"]
fn fills_the_disk() {
    let base = std::env::var_os("FULL_BASE").expect("the other test runs this one");
    let mut writer = writer(Path::new(&base), options(Version::V3));
    let mut number = 1;
    let error = loop {
        let sets = vec![raw(7, &[(-1, block(6, 100))])];
        match writer.record(&result(START.sec + number, 0, sets)) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
    };
    println!("refused at record {number}: {error}");
    assert!(matches!(error, WriteError::Io { .. }), "{error}");
    // The same again, and texts that still fit.
    let sets = vec![raw(7, &[(-1, block(6, 100))])];
    writer.record(&result(START.sec + number, 0, sets)).expect_err("it is full");
    drop(writer);
}

#[test]
fn derived_metrics_have_another_identifier_in_archives() {
    assert_eq!(logged_pmid(Pmid::new(511, 3, 4)), Pmid::new(511, 3 | 2048, 4));
    for pmid in [Pmid::new(60, 3, 4), Pmid::new(511, 2051, 4), Pmid::new(511, 3, 0)] {
        assert_eq!(logged_pmid(pmid), pmid);
    }
}
