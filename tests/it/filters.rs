//! Filters by names. An interpolated archive may have values of instances that have left the
//! domain, are not yet in it, or have another name there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_writer::ArchiveWriter;
use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Engine, Registered, Registry, Space};
use pmderive_runtime::archive::{ArchiveContext, InterpolationRules};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, Pmid, Semantics, Timestamp, Units, Value, ValueType,
};
use pmderive_runtime::source::{FetchSource as _, Mode};

#[allow(dead_code, reason = "shared with tests that need more of it")]
use crate::archive_writer;
use crate::choosing::choosing;

const START: u32 = 1_700_000_000;
const RECORDS: u32 = 40;

/// Instances of a record, with their names: 1 is always there, 50 at both ends,
/// 7 comes back under another name, and one more is in no other record.
fn instances(record: u32) -> Vec<(InstId, String)> {
    let mut list = vec![(1, "always".to_owned())];
    match record {
        0..3 => list.extend([(7, "left".to_owned()), (50, "ends".to_owned())]),
        20..30 => list.push((7, "again".to_owned())),
        30.. => list.extend([(7, "again".to_owned()), (50, "ends".to_owned())]),
        _ => {}
    }
    list.push((100 + record as i32, format!("n-{record}")));
    list
}

fn write(folder: &Path) -> PathBuf {
    let base = folder.join("churn");
    let indom = InDom::new(100, 1);
    let mut archive = ArchiveWriter::new((START, 0));
    archive.metric(
        "churn.x",
        MetricDesc {
            pmid: Pmid::new(100, 1, 1),
            value_type: ValueType::F64,
            indom: Some(indom),
            semantics: Semantics::Instant,
            units: Units::NONE,
        },
    );
    for record in 0..RECORDS {
        let list = instances(record);
        let named: Vec<(InstId, &str)> = list.iter().map(|(id, name)| (*id, &**name)).collect();
        archive.instances((START + record, 0), indom, &named);
        let values = list.iter().map(|(id, _)| (*id, Value::F64(f64::from(*id)))).collect();
        archive.record((START + record, 0), &[("churn.x", Ok(values))]);
    }
    archive.finish(&base);
    base
}

/// Instances of each expression in turn, at each half second from `start` on.
fn walk(base: &Path, dialect: Dialect, start: f64, expressions: &[&str]) -> Vec<Vec<Vec<InstId>>> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(dialect);
    for (number, expression) in expressions.iter().enumerate() {
        let source = sources.add("<test>", *expression);
        let name = format!("t.x{number}");
        registry.register(&name, source, &sources, &mut diagnostics).expect("an expression");
    }
    let selection: Vec<&Registered> = registry.definitions().iter().map(|one| &**one).collect();
    let mut source = ArchiveContext::open(base).expect("an archive");
    source.set_interpolation_rules(dialect.interpolation(InterpolationRules::default()));
    let origin = Timestamp::from_seconds(f64::from(START) + start);
    let step = Mode::Interpolated { step: 500_000_000 };
    source.set_mode(step, Some(origin)).expect("a time of the archive");
    let engine = Arc::new(Engine::new(dialect, Backend::Interp));
    let mut session = choosing(engine, source, &registry, &selection, &mut diagnostics)
        .expect("a readable archive");
    let mut space = Space::default();
    let count = (f64::from(RECORDS - 1) - start) * 2.0;
    let samples = (0..count as usize).map(|_| {
        let sample = session.sample(&mut space).expect("a sample");
        sample.values.outputs().map(|(_, values)| values.instances.to_vec()).collect()
    });
    samples.collect()
}

#[test]
fn instances_that_have_left_their_domain_keep_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = write(folder.path());
    let expressions = [
        "churn.x",
        "matchinst(/./, churn.x)",
        "matchinst(!/nosuch/, churn.x)",
        "matchinst(/^(left|again)$/, churn.x)",
        "churn.x[left]",
        "churn.x[again]",
        "churn.x[ends]",
    ];
    for start in [0.0, 2.5, 10.25, 19.75, 25.0] {
        let samples = walk(&base, Dialect::Fixed, start, &expressions);
        let mut apart = 0;
        for (number, ids) in samples.iter().enumerate() {
            let time = start + number as f64 / 2.0;
            let at = format!("at {time} from {start}: {ids:?}");
            assert_eq!(ids[1], ids[0], "{at}");
            assert_eq!(ids[2], ids[0], "{at}");
            let only = |id: InstId, named: bool| match ids[0].contains(&id) && named {
                true => vec![id],
                false => vec![],
            };
            assert_eq!(ids[3], only(7, true), "{at}");
            assert_eq!(ids[4], only(7, time < 20.0), "{at}");
            assert_eq!(ids[5], only(7, time >= 20.0), "{at}");
            assert_eq!(ids[6], only(50, true), "{at}");
            apart += u32::from(ids[0].contains(&7) && (4.0..19.0).contains(&time));
        }
        // The test is about something.
        assert!(start > 19.0 || apart > 10, "{start}: {apart}");
    }
}

/// In libpcp a pattern says of an instance for ever what it said first, also
/// of one that had no name then.
#[test]
fn verdicts_stay_in_the_dialects_of_libpcp() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = write(folder.path());
    let expressions = [
        "churn.x",
        "matchinst(/./, churn.x)",
        "matchinst(/^left$/, churn.x)",
        "matchinst(/^again$/, churn.x)",
    ];
    for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2] {
        // From the start 7 is seen as `left`, and 50 with its name.
        for ids in walk(&base, dialect, 0.0, &expressions) {
            assert_eq!(ids[1], ids[0]);
            assert_eq!(ids[2].contains(&7), ids[0].contains(&7));
            assert!(ids[3].is_empty());
        }
        // From the middle neither has a name.
        let samples = walk(&base, dialect, 10.25, &expressions);
        assert!(samples.iter().any(|ids| ids[0].contains(&7) && ids[0].contains(&50)));
        for ids in samples {
            let named: Vec<InstId> =
                ids[0].iter().copied().filter(|id| ![7, 50].contains(id)).collect();
            assert_eq!(ids[1], named);
            assert!(ids[2].is_empty() && ids[3].is_empty());
        }
    }
}

/// Nor does it say anything of an instance that has no value yet: where a
/// change begins, 7 has no name, and when it has its first value, it is `again`.
#[test]
fn no_verdict_before_the_first_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = write(folder.path());
    let expressions = [
        "churn.x",
        "matchinst(/^again$/, delta(churn.x))",
        "matchinst(/^again$/, churn.x * rate(churn.x))",
        "matchinst(/^again$/, churn.x)",
    ];
    for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2] {
        let samples = walk(&base, dialect, 19.5, &expressions);
        assert!(samples[0][1..].iter().all(Vec::is_empty));
        for ids in &samples[1..] {
            assert!(ids[0].contains(&7), "{ids:?}");
            assert_eq!(ids[1..], [vec![7], vec![7], vec![]]);
        }
    }
}

/// There are very many ways from a filter down to the first of these definitions.
#[test]
fn definitions_that_stand_twice_in_each_other_are_looked_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("d.conf");
    let twice = |at: u32| format!("t.d{at} = t.d{} + t.d{}\n", at - 1, at - 1);
    let text: String = (1..=50).map(twice).collect();
    std::fs::write(&file, format!("t.d0 = rate(disk.dev.read)\n{text}")).expect("a file");
    let run = crate::command::run(&[
        "eval",
        "--compat=7.2",
        "--extensions",
        "-s2",
        "-atests/archives/own-fleet",
        "-c",
        file.to_str().expect("UTF-8"),
        "matchinst(/vd/, t.d50)",
    ]);
    assert_eq!(run.status, Some(0), "{}", run.err);
    assert!(run.out.contains("\"vdb\"") && !run.out.contains("\"sdc\""), "{}", run.out);
}
