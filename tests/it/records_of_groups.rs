//! Archives whose records hold groups of metrics: without an interval, text shows of each
//! record what it has, and forms for programs show every metric.

use std::path::Path;

use pmderive_runtime::archive_writer::ArchiveWriter;
use pmderive_runtime::model::{
    MetricDesc, PmStatus, Pmid, RawValue, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};
use pmderive_testkit::archives;

use crate::command::run;

const NAMES: [&str; 5] = ["g.fast", "g.slow", "g.none", "g.failed", "g.never"];

/// What each record has of which of the names: a value, nothing, or a status.
type Record = &'static [(u32, Result<Option<u32>, PmStatus>)];

const RECORDS: [Record; 4] = [
    &[(0, Ok(Some(1))), (2, Ok(None))],
    &[(1, Ok(Some(20)))],
    &[(0, Ok(Some(3))), (3, Err(PmStatus::PMID))],
    &[(1, Ok(Some(40)))],
];

fn write(base: &Path) {
    let at = |second: usize| Timestamp::new(1_700_000_000 + second as i64, 0);
    let pmid = |item: u32| Pmid::new(60, 0, item);
    let mut writer = ArchiveWriter::create(base, archives::options("web1", at(0))).expect("new");
    for (item, name) in (0..).zip(NAMES) {
        let desc = MetricDesc {
            pmid: pmid(item),
            value_type: ValueType::U32,
            indom: None,
            semantics: Semantics::Instant,
            units: Units::NONE,
        };
        writer.describe(&desc, &[name]).expect("it is new");
    }
    for (second, record) in RECORDS.iter().enumerate() {
        let set = |(item, value): &(u32, Result<Option<u32>, PmStatus>)| {
            let one = |word| InstanceValue { instance: -1, value: RawValue::InPlace(word) };
            let outcome = value.map(|value| value.map(one).into_iter().collect());
            MetricValues { pmid: pmid(*item), outcome }
        };
        let sets = record.iter().map(set).collect();
        let record = FetchResult { timestamp: at(second), sets, ..FetchResult::default() };
        writer.record(&record).expect("it is good");
    }
    writer.finish().expect("there is room");
}

const SHOWN: &str = "
2023-11-14T22:13:20.000000000Z

g.fast
    Semantics: instant  Units: none
    value 1

g.none
    Semantics: instant  Units: none
No value(s) available! (an operand has no values)

rate(g.fast)
    Semantics: instant  Units: / sec
No value(s) available! (a difference needs two samples, and this is the first)

g.slow + g.fast
    Semantics: instant  Units: none
No value(s) available! (an operand has no values)

2023-11-14T22:13:21.000000000Z

g.slow
    Semantics: instant  Units: none
    value 20

g.slow + g.fast
No value(s) available! (an operand has no values)

2023-11-14T22:13:22.000000000Z

g.fast
    value 3

g.failed
    Semantics: instant  Units: none
Error: Unknown or illegal metric identifier

rate(g.fast)
No value(s) available! (an operand has no values)

g.slow + g.fast
No value(s) available! (an operand has no values)

2023-11-14T22:13:23.000000000Z

g.slow
    value 40

g.slow + g.fast
No value(s) available! (an operand has no values)

g.never
    Semantics: instant  Units: none
No value(s) available! (an operand has no values)
";

#[test]
fn text_shows_of_each_record_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("a");
    write(&base);
    let archive = base.to_str().expect("a plain path");
    let expressions = [&NAMES[..], &["rate(g.fast)", "g.slow + g.fast"]].concat();
    let eval = |options: &[&str]| {
        let options = [&["eval", "-a", archive, "-v"], options, &expressions].concat();
        let run = run(&options);
        let is_warned = run.err.starts_with("pmderive: warning: towards the start rates");
        assert_eq!(is_warned, options.contains(&"--reverse"), "{options:?}: {}", run.err);
        (run.status, run.out)
    };
    assert_eq!(eval(&[]), (Some(1), SHOWN.to_owned()));
    // Towards the start, and of a part: what none of these records has.
    let (_, part) = eval(&["--reverse", "-O", "2500msec", "-s", "2"]);
    let names = part.lines().filter(|line| line.starts_with("g.") || line.starts_with("20"));
    let names: Vec<&str> = names.collect();
    let both = "g.slow + g.fast";
    let (first, second) = ("2023-11-14T22:13:22.000000000Z", "2023-11-14T22:13:21.000000000Z");
    let shown = [first, "g.fast", "g.failed", both, second, "g.slow", both, "g.none", "g.never"];
    assert_eq!(names, shown, "{part}");
    // With an interval there are no records, and programs get every metric of each.
    for options in [&["-t", "1"][..], &["--format", "json"]] {
        let (_, out) = eval(options);
        assert_eq!(out.matches("g.never").count(), RECORDS.len(), "{out}");
    }
}
