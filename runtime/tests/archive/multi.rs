//! Contexts of several archives: the names that users may give, the order of
//! records and the marks between them, and archives that cannot be used or do
//! not fit together.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::archive_writer::{ArchiveWriter, WriterOptions};
use pmderive_runtime::model::{
    MetricDesc, PmStatus, Pmid, RawValue, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues, ResultBatch};
use pmderive_runtime::source::{
    FetchEvents, FetchList, FetchSource, MetadataSource, Mode, SourceError,
};
use pmderive_testkit::archives;
use serde_json::Value;

use crate::choices::Choices;
use crate::libpcp::{Case, Kind, Libpcp, RULES, Tally, own_answers};
use crate::modes::{cases, nanoseconds};
use crate::suite::{available, installed};

/// The names of a list in the test suite.
fn in_suite(list: &str) -> Option<PathBuf> {
    let names: Option<Vec<String>> = list
        .split(',')
        .map(|name| match name {
            "" => Some(String::new()),
            _ => Some(installed("archives", name)?.display().to_string()),
        })
        .collect();
    Some(names?.join(",").into())
}

/// The results of `pmFetchArchive(3)`, in the form of the recorded rows.
fn records(context: &mut ArchiveContext, mode: Mode, count: usize) -> Vec<Value> {
    if mode == Mode::Backward {
        let end = context.end_time().expect("it has an end");
        context.set_mode(mode, Some(end)).expect("a mode of archives");
    }
    let mut rows = Vec::new();
    while rows.len() < count {
        match context.next_record() {
            Ok(record) => {
                let stamp = record.timestamp.to_string();
                rows.push(serde_json::json!([stamp, record.sets.len()]));
            }
            Err(error) => {
                rows.push(serde_json::json!([error.status().0]));
                if error.is_end_of_archive() {
                    break;
                }
            }
        }
    }
    rows
}

/// Compares with the answers of one version of libpcp for an argument.
fn check(row: &Value, spec: &str, path: &Path, is_old: bool) {
    let opened = ArchiveContext::open(path).and_then(|mut context| {
        if is_old {
            context.pass_over_nothing()?;
        }
        Ok(context)
    });
    let mut context = match opened {
        Err(error) => return assert_eq!(row["open"], error.status().0, "{spec}: {error}"),
        Ok(context) => context,
    };
    assert_eq!(row["open"], 0, "{spec}");
    assert_eq!(row["start"], context.label().start.to_string(), "{spec}");
    let end = context.end_time().expect("it has an end");
    assert_eq!(row["end"], end.to_string(), "{spec}");
    assert_eq!(row["host"], context.host_name().expect("it has a host"), "{spec}");
    let newer = &row["fetcharchive_forward_v721"];
    let forward = if is_old || newer.is_null() { &row["fetcharchive_forward"] } else { newer };
    for (mode, rows) in [(Mode::Forward, forward), (Mode::Backward, &row["fetcharchive_backward"])]
    {
        if let Some(rows) = rows.as_array() {
            assert_eq!(&records(&mut context, mode, rows.len()), rows, "{spec} {mode:?}");
        }
    }
}

#[test]
fn recorded_answers_of_both_versions() {
    let rows = include_str!("../data/archive/multi.json");
    let rows: Vec<Value> = serde_json::from_str(rows).expect("the rows are well formed");
    assert_eq!(rows.len(), 11);
    for row in &rows {
        let spec = row["spec"].as_str().expect("an argument");
        let Some(path) = in_suite(spec) else { return };
        check(&row["v603"], spec, &path, true);
        let newer = &row["v721"];
        check(if newer.is_null() { &row["v603"] } else { newer }, spec, &path, false);
    }
}

/// Lists of the test suite that libpcp opens.
const LISTS: &[&str] = &[
    "multi",
    "multi-xz",
    "multi-xz-1k",
    "multi/20150508.11.57,multi/20150508.11.44",
    "section-d,section-a",
    "mark_no_mark_0,mark_no_mark_1,mark_no_mark_2,mark_no_mark_3,mark_no_mark_4",
    "diff2,diff1",
    "ok-foo,ok-foo,",
];

/// Archives that are cut into parts, which then are read as one.
const WHOLE: &[&str] = &["20041125", "dyninsts", "gap", "kenj-pc-1", "pcp-mpstat", "bug1057"];

/// Cuts an archive into parts of random length, with pmlogextract.
fn parts(archive: &Path, folder: &Path, choices: &mut Choices) -> Option<PathBuf> {
    let mut context = ArchiveContext::open(archive).expect("a good archive");
    let (start, end) = (context.label().start, context.end_time().expect("it ends"));
    let span = ((end.sec - start.sec) as usize).max(1);
    let count = 2 + choices.below(3);
    let mut cuts: Vec<usize> = (1..count).map(|_| choices.below(span * 1000)).collect();
    cuts.sort_unstable();
    let edges = [vec![0], cuts, vec![span * 1000 + 2000]].concat();
    let (mut made, mut last) = (Vec::new(), None);
    for (number, edge) in edges.windows(2).enumerate() {
        let part = folder.join(format!("part{number}"));
        let seconds = |edge: usize| format!("{}sec", edge as f64 / 1000.0);
        let cut = Command::new("pmlogextract")
            .args(["-S", &seconds(edge[0] + 1), "-T", &seconds(edge[1])])
            .args([archive, &part])
            .env("PCP_DERIVED_CONFIG", "")
            .output()
            .expect("pmlogextract");
        // A part may hold no record, or those of another window.
        let Some(context) = ArchiveContext::open(&part).ok().filter(|_| cut.status.success())
        else {
            continue;
        };
        if last.is_none_or(|last| last < context.label().start) {
            let mut context = context;
            last = Some(context.end_time().expect("it was just written"));
            made.push(part.display().to_string());
        }
    }
    made.reverse();
    (made.len() > 1).then(|| made.join(",").into())
}

/// Times of the marks from the start on.
fn marks(context: &mut ArchiveContext) -> Vec<Timestamp> {
    let records = std::iter::from_fn(|| context.next_record().ok());
    records.filter(|record| record.sets.is_empty()).map(|record| record.timestamp).collect()
}

/// True when a case interpolates within the millisecond before a mark: there,
/// and at the next time, what libpcp answers for one metric depends on which
/// others are fetched with it.
fn is_just_before(case: &Case, mark: Timestamp) -> bool {
    let Kind::Interpolated { step } = case.kind else { return false };
    let distance = nanoseconds(case.start, mark);
    let count = distance / step;
    (count - 1..=count + 1).any(|number| {
        let left = distance - number * step;
        number >= 0 && (-1_000_000..=1_000_000).contains(&left)
    })
}

/// Leaves off everything after the last record: unless it reads the last archive at that moment,
/// libpcp answers one more fetch.
fn leave_off_end(answer: &mut Vec<String>, end: Timestamp) {
    let is_behind = |line: &String| {
        let stamp = line.strip_prefix("@ ").and_then(|stamp| stamp.split_once('.'));
        line == "! -12370"
            || stamp.is_some_and(|(sec, nsec)| {
                Timestamp::new(sec.parse().expect("seconds"), nsec.parse().expect("nanoseconds"))
                    > end
            })
    };
    answer.truncate(answer.iter().position(is_behind).unwrap_or(answer.len()));
}

#[test]
fn every_mode_answers_as_libpcp() {
    let Some(oracle) = Libpcp::new() else { return };
    let rounds = std::env::var("ARCHIVE_ROUNDS").ok().and_then(|text| text.parse().ok());
    let folders = tempfile::tempdir().expect("a folder");
    let mut choices = Choices(20);
    let mut lists: Vec<(String, PathBuf)> =
        LISTS.iter().filter_map(|list| Some(((*list).to_owned(), in_suite(list)?))).collect();
    for name in WHOLE {
        let Some(archive) = installed("archives", name) else { return };
        let folder = folders.path().join(name);
        fs::create_dir(&folder).expect("a new folder");
        let parts = parts(&archive, &folder, &mut choices);
        lists.extend(parts.map(|parts| (format!("parts of {name}"), parts)));
    }
    assert!(lists.len() > LISTS.len() + 3, "most archives can be cut");
    let mut tally = Tally::default();
    for (name, path) in lists {
        let seed = name.bytes().fold(17u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
        let mut all = cases(&path, rounds.unwrap_or(18), &mut Choices(seed));
        let backward: Vec<_> =
            all.iter().filter(|case| case.kind == Kind::Backward).cloned().collect();
        all.extend(backward.into_iter().map(|case| Case { kind: Kind::RecordsBackward, ..case }));
        let mut context = ArchiveContext::open(&path).expect("good archives");
        let end = context.end_time().expect("it has an end");
        let marks = marks(&mut context);
        let before_archive = |mark: &Timestamp| Case {
            kind: Kind::RecordsBackward,
            start: Timestamp::new(mark.sec, i64::from(mark.nsec) + 500_000),
            count: 3,
            archive: path.clone(),
            pmids: Vec::new(),
            admitted: Vec::new(),
        };
        all.extend(marks.iter().map(before_archive));
        all.retain(|case| marks.iter().all(|mark| !is_just_before(case, *mark)));
        let answers = oracle.answers(&all, &[]);
        assert_eq!(answers.len(), all.len(), "{name}: one answer a case");
        for (case, mut want) in all.iter().zip(answers) {
            let mut got = own_answers(case, RULES);
            if matches!(case.kind, Kind::Interpolated { .. }) {
                [&mut want, &mut got].into_iter().for_each(|answer| leave_off_end(answer, end));
            }
            tally.compare(&name, case, &want, &got);
        }
    }
    tally.finish();
}

const COUNTER: Pmid = Pmid::new(242, 0, 1);

/// Writes an archive with a record every second: the value is the second.
fn write(base: &Path, host: &str, units: Units, seconds: std::ops::Range<i64>) {
    let options = WriterOptions {
        timezone: format!("UTC{}", seconds.start % 10).into(),
        ..archives::options(host, Timestamp::new(seconds.start, 0))
    };
    let mut writer = ArchiveWriter::create(base, options).expect("a new archive");
    let desc = MetricDesc {
        pmid: COUNTER,
        value_type: ValueType::U32,
        indom: None,
        semantics: Semantics::Counter,
        units,
    };
    writer.describe(&desc, &["test.counter"]).expect("a good metric");
    for second in seconds {
        let bits = u32::try_from(second).expect("small");
        let value = InstanceValue { instance: -1, value: RawValue::InPlace(bits) };
        let sets = vec![MetricValues { pmid: COUNTER, outcome: Ok(vec![value]) }];
        let result =
            FetchResult { timestamp: Timestamp::new(second, 0), sets, ..FetchResult::default() };
        writer.record(&result).expect("room for it");
    }
    writer.finish().expect("room for it");
}

/// Times of fetches from the position on, each with whether there was a gap,
/// and the statuses of failed ones.
fn fetched(context: &mut ArchiveContext) -> Vec<Result<(i64, bool), i32>> {
    let list = FetchList::new(vec![COUNTER], vec![]);
    let mut batch = ResultBatch::default();
    let mut all = Vec::new();
    while all.len() < 1000 {
        match context.fetch(&list, &mut batch) {
            Ok(FetchEvents { gap, .. }) => all.push(Ok((batch.timestamp().sec, gap))),
            Err(error) if error.is_end_of_archive() => break,
            Err(error) => all.push(Err(error.status().0)),
        }
    }
    all
}

fn list(folder: &Path, names: &[&str]) -> PathBuf {
    let names: Vec<_> = names.iter().map(|name| folder.join(name).display().to_string()).collect();
    names.join(",").into()
}

fn warnings(context: &mut ArchiveContext) -> Vec<i32> {
    context.take_warnings().iter().map(|error| error.status().0).collect()
}

#[test]
fn archives_that_do_not_fit_together_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let units = Units::default();
    let other = Units { dim_count: 1, ..units };
    let base = |name: &str| folder.path().join(name);
    write(&base("a"), "h", units, 100..110);
    write(&base("b"), "h", units, 200..210);
    write(&base("overlapping"), "h", units, 205..215);
    write(&base("same-start"), "h", units, 100..105);
    write(&base("other-host"), "g", units, 300..310);
    write(&base("other-units"), "h", other, 400..410);
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let cases: &[(&[&str], PmStatus, &str)] = &[
        (&["a", "other-host"], PmStatus::LOGHOST, "it is of the host g, but"),
        (
            &["a", "same-start"],
            PmStatus::LOGOVERLAP,
            "it starts at 1970-01-01T00:01:40.000000000Z, before the end of",
        ),
        (&["a.meta", "a"], PmStatus::LOGOVERLAP, "before the end of"),
        (
            &["b", "other-units"],
            PmStatus::LOGCHANGEUNITS,
            "metric 242.0.1 (test.counter) has units",
        ),
        (&["empty"], PmStatus::LOGFILE, "no archive in this directory"),
        (&["none", "neither"], PmStatus::LOGFILE, "none of the archives can be used"),
    ];
    for (names, status, message) in cases {
        let error = ArchiveContext::open(list(folder.path(), names)).expect_err("refused");
        assert_eq!(error.status(), *status, "{names:?}: {error}");
        assert!(error.to_string().contains(message), "{names:?}: {error}");
    }
    // An overlap shows where the reader leaves one archive for the other.
    let mut context =
        ArchiveContext::open(list(folder.path(), &["overlapping", "b"])).expect("opens");
    let all = fetched(&mut context);
    let after: Vec<_> = (210..215).map(|second| Ok((second, second == 210))).collect();
    let before: Vec<_> = (200..210).map(|second| Ok((second, false))).collect();
    assert_eq!(all, [before, vec![Err(PmStatus::LOGOVERLAP.0)], after].concat());
}

#[test]
fn archives_that_cannot_be_used_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = |name: &str| folder.path().join(name);
    write(&base("a"), "h", Units::default(), 100..110);
    write(&base("b"), "h", Units::default(), 200..210);
    write(&base("c"), "h", Units::default(), 300..310);
    let file = |name: &str| folder.path().join(name);
    let all = list(folder.path(), &["c", "a", "b"]);
    let times = |from: std::ops::Range<i64>| -> Vec<_> {
        let start = from.start;
        from.map(|second| Ok((second, second == start && start > 100))).collect()
    };
    let mut context = ArchiveContext::open(&all).expect("all are good");
    assert_eq!(fetched(&mut context), [times(100..110), times(200..210), times(300..310)].concat());
    assert!(warnings(&mut context).is_empty());
    // The zone is that of the current archive, the label that of the first.
    assert_eq!(context.time_zone().expect("known").as_deref(), Some("UTC0"));
    assert_eq!(&*context.label().timezone, "UTC0");

    // Damage in the middle: the records before and behind it are read.
    let good = fs::read(file("b.0")).expect("a file");
    fs::write(file("b.0"), &good[..good.len() - 100]).expect("a file");
    let mut context = ArchiveContext::open(&all).expect("the labels are good");
    let read = fetched(&mut context);
    let before = read.iter().flatten().filter(|(second, _)| (200..210).contains(second)).count();
    assert!((5..10).contains(&before), "{read:?}");
    assert_eq!(read.len(), 20 + before);
    assert_eq!(warnings(&mut context), [PmStatus::LOGREC.0]);
    context.set_mode(Mode::Backward, Some(Timestamp::new(400, 0))).expect("a mode");
    assert_eq!(fetched(&mut context).len(), 20 + before);
    // Interpolation continues as well, and has no values where data are missing.
    let mode = Mode::Interpolated { step: 1_000_000_000 };
    let mut context = ArchiveContext::open(&all).expect("the labels are good");
    context.set_mode(mode, Some(Timestamp::new(100, 0))).expect("a mode");
    assert_eq!(fetched(&mut context).len(), 210);
    assert_eq!(warnings(&mut context), [PmStatus::LOGREC.0]);
    // As before 7.1.4, the damaged archive blocks the later ones.
    let mut context = ArchiveContext::open(&all).expect("the labels are good");
    context.pass_over_nothing().expect("nothing was left out");
    let read = fetched(&mut context);
    assert_eq!(read[10 + before..], vec![Err(PmStatus::LOGREC.0); 1000 - 10 - before]);

    // Bad files: the archive is left out.
    for (suffix, status) in [("0", PmStatus::LABEL), ("meta", PmStatus::LABEL)] {
        let path = file(&format!("b.{suffix}"));
        let good = fs::read(&path).expect("a file");
        fs::write(&path, [&[0; 16], &good[16..]].concat()).expect("a file");
        let mut context = ArchiveContext::open(&all).expect("two are good");
        assert_eq!(warnings(&mut context), [status.0], "{suffix}");
        assert_eq!(fetched(&mut context), [times(100..110), times(300..310)].concat());
        let mut context = ArchiveContext::open(&all).expect("two are good");
        let error = context.pass_over_nothing().expect_err("one is bad");
        assert_eq!(error.status(), status);
        fs::remove_file(&path).expect("a file");
        let mut context = ArchiveContext::open(&all).expect("two are good");
        assert_eq!(warnings(&mut context), [PmStatus::LOGFILE.0], "{suffix}");
        fs::write(&path, good).expect("a file");
    }

    // An archive that disappears while others are read.
    let mut context = ArchiveContext::open(&all).expect("the labels are good");
    for suffix in ["0", "meta", "index"] {
        fs::remove_file(file(&format!("b.{suffix}"))).expect("a file");
    }
    assert_eq!(fetched(&mut context), [times(100..110), times(300..310)].concat());
    assert_eq!(context.take_warnings().len(), 1);
    assert_eq!(fs::remove_file(file("c.0")).map_err(|error| error.kind()), Ok(()));
    context.set_position(Timestamp::new(0, 0)).expect("the first is there");
    assert_eq!(fetched(&mut context), times(100..110));
}

#[test]
fn a_directory_of_many_archives_keeps_few_files_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let days = 60;
    for day in 0..days {
        let base = folder.path().join(format!("day{day}"));
        write(&base, "h", Units::default(), 100 * day..100 * day + 3);
    }
    let open_here = || {
        let entries = fs::read_dir("/proc/self/fd").expect("this is Linux");
        let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        targets.filter(|target| target.starts_with(folder.path())).count()
    };
    // A few compressed archives stay open for later readers.
    let compressed = folder.path().join("compressed");
    fs::create_dir(&compressed).expect("a folder");
    for day in 0..days {
        let base = compressed.join(format!("day{day}"));
        write(&base, "h", Units::default(), 100 * day..100 * day + 3);
    }
    let files =
        fs::read_dir(&compressed).expect("a folder").map(|entry| entry.expect("a file").path());
    if available(Command::new("xz").arg("-q").args(files).status().is_ok(), "xz") {
        let mut context = ArchiveContext::open(&compressed).expect("good archives");
        assert!(open_here() <= 6, "{}", open_here());
        assert_eq!(fetched(&mut context).len(), 3 * usize::try_from(days).expect("few"));
        assert!(open_here() <= 6, "{}", open_here());
    }
    let mut context = ArchiveContext::open(folder.path()).expect("good archives");
    assert!(open_here() <= 2, "{}", open_here());
    let read = fetched(&mut context);
    assert_eq!(read.len(), 3 * usize::try_from(days).expect("few"));
    assert!(open_here() <= 2, "{}", open_here());
    let mode = Mode::Interpolated { step: 50_000_000_000 };
    context.set_mode(mode, Some(Timestamp::new(0, 0))).expect("a mode");
    assert_eq!(fetched(&mut context).len(), 2 * usize::try_from(days).expect("few") - 1);
    let mut other = context.duplicate().expect("the files are there");
    assert!(open_here() <= 8, "{}", open_here());
    other.set_mode(Mode::Backward, Some(Timestamp::new(250, 0))).expect("a mode");
    let back = fetched(&mut other);
    assert_eq!(back[..4], [Ok((202, false)), Ok((201, false)), Ok((200, false)), Ok((102, true))]);
    assert_eq!(context.metadata_epoch(), other.metadata_epoch());
}

#[test]
fn the_last_archive_may_grow() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder.path().join("a"), "h", Units::default(), 100..110);
    write(&folder.path().join("b"), "h", Units::default(), 200..210);
    let volume = folder.path().join("b.0");
    let whole = fs::read(&volume).expect("a file");
    let record = (whole.len() - 808) / 10;
    fs::write(&volume, &whole[..808 + 4 * record]).expect("a file");
    let mut context = ArchiveContext::open(folder.path()).expect("good archives");
    assert_eq!(fetched(&mut context).len(), 14);
    fs::write(&volume, &whole).expect("a file");
    let last: Vec<_> = (204..210).map(|second| Ok((second, false))).collect();
    assert_eq!(fetched(&mut context), last);
    assert_eq!(
        context.end_time().map_err(|error: SourceError| error.status()),
        Ok(Timestamp::new(209, 0))
    );
}
