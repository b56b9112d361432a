//! Interpolation and the directions of reading: recorded answers of libpcp
//! 6.0.3 and 7.2.1, and properties of every archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pmderive_runtime::archive::{ArchiveContext, InterpolationRules, Neighbour, Overflow};
use pmderive_runtime::model::{InDom, InstanceProfile, PmStatus, Timestamp, Value, ValueType};
use pmderive_runtime::result::{FetchResult, ResultBatch};
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, Mode};
use serde_json::Value as Json;

use crate::suite::{everything, installed, own};

const OWN: [&str; 6] = ["own-dyn", "own-dyn2", "own-fleet", "own-sample", "own-types", "own-units"];

fn archives() -> Vec<PathBuf> {
    let suite = ["gap", "dyninsts", "ok-mv-bigbin", "ok-noti-interp", "omnibus_v3", "pcp-ss"];
    let suite = suite.into_iter().filter_map(|name| installed("archives", name));
    OWN.into_iter().map(own).chain(suite).collect()
}

fn open(path: &Path) -> ArchiveContext {
    ArchiveContext::open(path).unwrap_or_else(|error| panic!("{error}"))
}

fn records(context: &mut ArchiveContext) -> Vec<FetchResult> {
    let mut records = Vec::new();
    loop {
        match context.next_record() {
            Ok(record) => records.push(record),
            Err(error) if error.is_end_of_archive() => return records,
            Err(error) => panic!("{error}"),
        }
    }
}

fn later(time: Timestamp, nanoseconds: i64) -> Timestamp {
    Timestamp::new(time.sec, i64::from(time.nsec) + nanoseconds)
}

fn timestamp(text: &str) -> Timestamp {
    let (sec, nsec) = text.split_once('.').expect("SEC.NNNNNNNNN");
    Timestamp::new(sec.parse().expect("seconds"), nsec.parse().expect("nanoseconds"))
}

/// Compares a value with its recorded form; numbers by their meaning.
fn same(value: &Value, text: &str) -> bool {
    match value {
        Value::I32(v) => text.parse() == Ok(*v),
        Value::U32(v) => text.parse() == Ok(*v),
        Value::I64(v) => text.parse() == Ok(*v),
        Value::U64(v) => text.parse() == Ok(*v),
        Value::F32(v) => text.parse::<f32>().is_ok_and(|t| t == *v || t.is_nan() && v.is_nan()),
        Value::F64(v) => text.parse::<f64>().is_ok_and(|t| t == *v || t.is_nan() && v.is_nan()),
        Value::Text(v) => text.trim_matches('"') == &**v,
        _ => false,
    }
}

#[test]
fn recorded_answers_of_both_versions() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/archive/interpolated.json");
    let series: Json =
        serde_json::from_slice(&std::fs::read(data).expect("it is there")).expect("it is JSON");
    let mut compared = 0;
    for one in series.as_array().expect("a list") {
        let name = one["archive"].as_str().expect("a name");
        // A context of several archives.
        if name == "multi-xz" {
            continue;
        }
        let Some(path) = installed("archives", name) else { return };
        for (version, neighbour) in [("v603", Neighbour::Earlier), ("v721", Neighbour::Nearer)] {
            let mut context = open(&path);
            let rules = InterpolationRules {
                neighbour,
                overflow: Overflow::AsInC,
                ..InterpolationRules::default()
            };
            context.set_interpolation_rules(rules);
            let delta: f64 = one["delta"].as_str().expect("text").parse().expect("a number");
            let mode = Mode::Interpolated { step: (delta * 1e9).round() as i64 };
            let start = timestamp(one["start"].as_str().expect("text"));
            context.set_mode(mode, Some(start)).expect("archives have it");
            let names = one["metrics"].as_array().expect("a list");
            let mut names: Vec<&str> =
                names.iter().map(|name| name.as_str().expect("text")).collect();
            // The archive does not have some of them.
            let pmids = context.lookup_names(&names).expect("the metadata is there");
            let mut known = pmids.iter().map(Result::is_ok);
            names.retain(|_| known.next() == Some(true));
            let pmids: Vec<_> = pmids.into_iter().flatten().collect();
            let descs = context.lookup_descs(&pmids).expect("known");
            for (number, fetch) in one["fetches"].as_array().expect("a list").iter().enumerate() {
                let place = format!("{name} {delta} fetch {number} {version}");
                let result = context.fetch_values(&pmids);
                if let Some(status) = fetch["status"].as_i64() {
                    let found = result.expect_err(&place).status();
                    assert_eq!(i64::from(found.0), status, "{place}");
                    continue;
                }
                let result = result.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(
                    result.timestamp,
                    timestamp(fetch["t"].as_str().expect("text")),
                    "{place}"
                );
                for ((set, desc), name) in result.sets.iter().zip(&descs).zip(&names) {
                    let newer = fetch.get(version).and_then(|answer| answer.get(name));
                    let want = newer.unwrap_or(&fetch["v603"][name]);
                    let desc = desc.expect("a metric");
                    let got = set.decode(desc.value_type);
                    let got: BTreeMap<_, _> = got.into_iter().flatten().collect();
                    let want = want.as_object().expect("values by instance");
                    assert_eq!(got.len(), want.len(), "{place} {name}: {got:?}, not {want:?}");
                    for (instance, text) in want {
                        let instance: i32 = instance.parse().expect("an instance");
                        let text = text.as_str().expect("text");
                        let value = got.get(&instance);
                        // One of the answers has pmval's escapes.
                        let is_same = value.is_some_and(|value| same(value, text));
                        assert!(is_same, "{place} {name}: {value:?}, not {text}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn both_directions_visit_the_same_records() {
    for path in archives() {
        let mut context = open(&path);
        let mut forward = records(&mut context);
        let end = context.end_time().expect("it has records");
        context.set_mode(Mode::Backward, Some(later(end, 1))).expect("archives have it");
        let backward = records(&mut context);
        assert!(backward.iter().eq(forward.iter().rev()), "{}", path.display());
        // And from anywhere back to the start.
        context.set_mode(Mode::Forward, Some(Timestamp::default())).expect("archives have it");
        assert_eq!(records(&mut context), forward, "{}", path.display());
        let middle = forward[forward.len() / 2].timestamp;
        context.set_mode(Mode::Backward, Some(middle)).expect("archives have it");
        forward.retain(|record| record.timestamp <= middle);
        assert!(records(&mut context).iter().eq(forward.iter().rev()), "{}", path.display());
    }
}

#[test]
fn seeks_land_next_to_every_record() {
    for path in archives() {
        let mut context = open(&path);
        let stamps: Vec<Timestamp> =
            records(&mut context).iter().map(|record| record.timestamp).collect();
        for stamp in stamps.iter().step_by(stamps.len().div_ceil(150)) {
            for when in [later(*stamp, -1), *stamp, later(*stamp, 1)] {
                let mut first = |mode| {
                    context.set_mode(mode, Some(when)).expect("archives have it");
                    context.next_record().ok().map(|record| record.timestamp)
                };
                let forward = stamps.iter().find(|stamp| **stamp >= when).copied();
                assert_eq!(first(Mode::Forward), forward, "{} {when}", path.display());
                let backward = stamps.iter().rfind(|stamp| **stamp <= when).copied();
                assert_eq!(first(Mode::Backward), backward, "{} {when}", path.display());
            }
        }
    }
}

#[test]
fn at_the_time_of_a_record_its_values_are_delivered() {
    for path in OWN.map(own) {
        let mut context = open(&path);
        let list = everything(&mut context);
        let records = records(&mut context);
        let once = |record: &&FetchResult| {
            let same = records.iter().filter(|other| other.timestamp == record.timestamp);
            same.count() == 1 && !record.sets.is_empty()
        };
        let mut compared = 0;
        for (number, record) in records.iter().filter(once).enumerate() {
            // Seeking and stepping, in both directions.
            let step = if number % 2 == 0 { 250_000_000 } else { -250_000_000 };
            let mode = Mode::Interpolated { step };
            let before = if number % 3 == 0 { step } else { 0 };
            context.set_mode(mode, Some(later(record.timestamp, -before))).expect("they have it");
            let mut batch = ResultBatch::default();
            while context.fetch(&list, &mut batch).is_ok() && batch.timestamp() != record.timestamp
            {
            }
            if batch.timestamp() != record.timestamp {
                continue;
            }
            let interpolated = FetchResult::of_batch(&batch, Default::default());
            for set in &record.sets {
                let found = interpolated.sets.iter().find(|other| other.pmid == set.pmid);
                let found = found.expect("all metrics were asked for");
                // Values after a mark may be held back from counters.
                let Ok(found) = &found.outcome else { continue };
                if found.is_empty() {
                    continue;
                }
                for value in set.outcome.iter().flatten() {
                    assert!(found.contains(value), "{} {value:?}", path.display());
                    compared += 1;
                }
            }
        }
        assert!(compared > 100, "{}: {compared}", path.display());
    }
}

/// A reused batch has the same contents as a fresh one, although it only gets new numbers while
/// only numbers change.
#[test]
fn results_do_not_depend_on_those_before() {
    for path in archives() {
        let mut kept_context = open(&path);
        let list = numbers(&mut kept_context);
        let mut fresh_context = kept_context.duplicate().expect("the files are there");
        let stamps: Vec<Timestamp> =
            records(&mut kept_context).iter().map(|record| record.timestamp).collect();
        let mut kept = ResultBatch::default();
        let (mut compared, mut again) = (0, 0);
        for number in 0..12 {
            let at = stamps.len() * number / 12;
            let next = stamps[(at + 1).min(stamps.len() - 1)];
            let gap = (next.seconds_since(stamps[at]) * 1e9) as i64;
            let step = (gap / [5, 13, 2][number % 3]).max(1_000_000);
            let step = if number % 2 == 0 { step } else { -step };
            let mode = Mode::Interpolated { step };
            let mut profile = InstanceProfile::default();
            for context in [&mut kept_context, &mut fresh_context] {
                context.set_mode(mode, Some(later(stamps[at], step / 3))).expect("they have it");
                context.set_profile(&profile).expect("archives have profiles");
            }
            for fetch in 0..80 {
                if fetch == 40 {
                    list.domains().iter().for_each(|indom| profile.exclude(*indom, &[0, 1, 60]));
                    for context in [&mut kept_context, &mut fresh_context] {
                        context.set_profile(&profile).expect("archives have profiles");
                    }
                }
                let before = kept.parts().first().and_then(|part| part.layout());
                let mut fresh = ResultBatch::default();
                let fetched = kept_context.fetch(&list, &mut kept);
                let like = fresh_context.fetch(&list, &mut fresh);
                match (fetched, like) {
                    (Ok(events), Ok(others)) => assert_eq!(events.gap, others.gap),
                    (Err(error), Err(other)) => assert_eq!(error.status(), other.status()),
                    (one, other) => panic!("{}: {one:?} {other:?}", path.display()),
                }
                let result = |batch| FetchResult::of_batch(batch, Default::default());
                assert_eq!(result(&kept), result(&fresh), "{} {mode:?}", path.display());
                let layout = kept.parts().first().and_then(|part| part.layout());
                again += usize::from(layout.is_some() && layout == before);
                compared += 1;
            }
        }
        assert!(compared == 960 && again > 50, "{}: {again} of {compared}", path.display());
    }
}

/// Samples after each record or two: all lanes of a metric then move at once. A
/// fresh context moves each by itself.
#[test]
fn crossing_records_gives_what_single_fetches_give() {
    for path in archives() {
        let mut series = open(&path);
        let list = numbers(&mut series);
        let stamps: Vec<Timestamp> = records(&mut series).iter().map(|one| one.timestamp).collect();
        let [first, second, .., last] = stamps[..] else { continue };
        let gap = (second.seconds_since(first) * 1e9) as i64;
        let (mut batch, mut compared) = (ResultBatch::default(), 0);
        for (from, step) in [(first, gap), (first, gap * 3 / 2), (last, -gap)] {
            let mut time = later(from, step / 3);
            let step = step.signum() * step.abs().max(1_000_000);
            let mode = Mode::Interpolated { step };
            series.set_mode(mode, Some(time)).expect("archives have this mode");
            for _ in 0..20 {
                let fetched = series.fetch(&list, &mut batch);
                let mut single = open(&path);
                single.set_mode(mode, Some(time)).expect("archives have this mode");
                let mut other = ResultBatch::default();
                let like = single.fetch(&list, &mut other);
                time = later(time, step);
                // A series has no counters after a gap, and reports damage once.
                if let (Ok(events), Ok(_)) = (fetched, like)
                    && !events.gap
                {
                    let result = |batch| FetchResult::of_batch(batch, Default::default());
                    assert_eq!(result(&batch), result(&other), "{} {mode:?}", path.display());
                    compared += 1;
                }
            }
        }
        assert!(compared > 2, "{}: {compared}", path.display());
    }
}

/// All metrics with numeric values.
fn numbers(context: &mut ArchiveContext) -> FetchList {
    use ValueType::{F32, F64, I32, I64, U32, U64};
    let list = everything(context);
    let descs = context.lookup_descs(list.pmids()).expect("it knows its metrics");
    let descs = descs.into_iter().flatten();
    let numbers = descs.filter(|desc| matches!(desc.value_type, I32 | U32 | I64 | U64 | F32 | F64));
    FetchList::new(numbers.map(|desc| desc.pmid).collect(), list.domains().to_vec())
}

#[test]
fn duplicates_go_their_own_way() {
    let mut original = open(&own("own-dyn"));
    let list = everything(&mut original);
    let mut profile = InstanceProfile::default();
    profile.exclude_everything();
    let mut batch = ResultBatch::default();
    original.set_profile(&profile).expect("archives have profiles");
    original.fetch(&list, &mut batch).expect("a record");
    let mut duplicate = original.duplicate().expect("the files are there");
    let next = original.fetch_values(list.pmids()).expect("another record");
    assert_eq!(duplicate.fetch_values(list.pmids()).expect("another record"), next);
    assert!(next.sets.iter().any(|set| set.outcome == Ok(vec![])), "the profile is the same");

    duplicate.set_profile(&InstanceProfile::default()).expect("archives have profiles");
    let mode = Mode::Interpolated { step: -1_000_000_000 };
    duplicate.set_mode(mode, None).expect("archives have it");
    let (first, second) =
        (duplicate.fetch_values(list.pmids()), duplicate.fetch_values(list.pmids()));
    assert_eq!(first.expect("a value").timestamp, next.timestamp);
    assert_eq!(second.expect("a value").timestamp, later(next.timestamp, -1_000_000_000));
    assert!(original.origin() == next.timestamp && original.next_record().is_ok());
    assert_eq!(original.host_name().expect("it has one"), duplicate.label().host.to_string());
    assert_eq!(original.time_zone().expect("known"), duplicate.time_zone().expect("known"));
}

#[test]
fn statuses_are_those_of_archives() {
    let mut context = open(&own("own-dyn"));
    let start = context.label().start;
    let status = context.set_mode(Mode::Live, None).expect_err("an archive is not live").status();
    assert_eq!(status, PmStatus::MODE);
    context.set_mode(Mode::Interpolated { step: 1 }, None).expect("archives have it");
    let status = context.next_record().expect_err("there are none between records").status();
    assert_eq!(status, PmStatus::MODE);
    let unknown = InDom::new(500, 1);
    assert_eq!(context.lookup_instance(unknown, "a").expect("read"), Err(PmStatus::INDOM_LOG));
    assert_eq!(context.known_instance_name(unknown, 1).expect("read"), Err(PmStatus::INDOM_LOG));
    let list = everything(&mut context);
    let indom = list.domains()[0];
    assert_eq!(
        context.lookup_known_instance(indom, "none").expect("read"),
        Err(PmStatus::INST_LOG)
    );
    assert_eq!(context.instance_name(indom, -7).expect("read"), Err(PmStatus::INST_LOG));
    let known = context.known_instances(indom).expect("read").expect("known");
    let (id, name) = known.instances().next().expect("an instance");
    assert_eq!(context.known_instance_name(indom, id).expect("read").as_deref(), Ok(name));
    context.set_position(later(start, -1)).expect("there");
    assert_eq!(context.instance_name(indom, id).expect("read"), Err(PmStatus::INDOM_LOG));
    assert_eq!(context.lookup_instance(indom, name).expect("read"), Err(PmStatus::INDOM_LOG));
    // A metric that is not there has a status between records, and no record of its own.
    let absent = FetchList::new(vec![pmderive_runtime::model::Pmid::new(500, 1, 1)], vec![]);
    let mut batch = ResultBatch::default();
    assert!(context.fetch(&absent, &mut batch).expect_err("no record").is_end_of_archive());
    context.set_mode(Mode::Interpolated { step: 1 }, Some(start)).expect("archives have it");
    context.fetch(&absent, &mut batch).expect("a time within the archive");
    assert_eq!(batch.parts()[0].sets().next().expect("a set").count, Err(PmStatus::PMID_LOG));
}
