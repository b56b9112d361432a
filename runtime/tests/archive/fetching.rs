//! Positioning, gaps, volumes, compression and archives that are still being
//! written.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pmderive_runtime::archive::{ArchiveContext, Version};
use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid, Timestamp, ValueType};
use pmderive_runtime::result::{ResultBatch, ValueSet};
use pmderive_runtime::source::{
    FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, Mode,
};

use crate::suite::{everything, installed, own};

/// A fetch that accepts every record.
fn any_record() -> FetchList {
    FetchList::new(Vec::new(), Vec::new())
}

/// Stamps of all records from the position on, and whether a gap came before each.
pub fn stamps(context: &mut ArchiveContext) -> Vec<(Timestamp, bool)> {
    let (list, mut batch) = (any_record(), ResultBatch::default());
    let mut stamps = Vec::new();
    loop {
        match context.fetch(&list, &mut batch) {
            Ok(FetchEvents { gap, .. }) => stamps.push((batch.timestamp(), gap)),
            Err(error) if error.is_end_of_archive() => return stamps,
            Err(error) => panic!("{error}"),
        }
    }
}

fn open(path: &Path) -> ArchiveContext {
    ArchiveContext::open(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Copies files of an archive. `rename` gives the new name of each, or `None`
/// to leave it out.
fn copy(path: &Path, directory: &Path, rename: impl Fn(&str) -> Option<String>) {
    let base = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
    let folder = path.parent().expect("it is in a folder");
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let name = entry.expect("readable").file_name().into_string().expect("a plain name");
        let Some(suffix) = name.strip_prefix(base).and_then(|rest| rest.strip_prefix('.')) else {
            continue;
        };
        if let Some(new) = rename(suffix) {
            fs::copy(folder.join(&name), directory.join(new)).expect("it can be copied");
        }
    }
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Name, version, start, metrics, records without marks, gaps, end.
type Facts = (&'static str, Version, i64, usize, usize, usize, (i64, i64));

const OWN: &[Facts] = &[
    ("own-dyn", Version::V3, 1_700_020_000, 28, 24, 2, (1_700_020_041, 750_000_000)),
    ("own-dyn2", Version::V2, 1_700_040_000, 28, 18, 2, (1_700_040_028, 250_000_000)),
    ("own-types", Version::V2, 1_700_000_000, 66, 10, 0, (1_700_000_009, 0)),
    ("own-units", Version::V3, 1_700_005_000, 198, 8, 0, (1_700_005_014, 0)),
    ("own-sample", Version::V2, 1_700_060_000, 311, 8, 0, (1_700_060_010, 0)),
    ("own-fleet", Version::V3, 1_700_080_000, 625, 12, 1, (1_700_080_026, 0)),
];

#[test]
fn labels_counts_and_ends() {
    for (name, version, start, metrics, records, gaps, end) in OWN {
        let mut context = open(&own(name));
        let label = context.label().clone();
        assert_eq!(label.version, *version, "{name}");
        assert_eq!(label.start, Timestamp::new(*start, 0), "{name}");
        assert_eq!((&*label.host, &*label.timezone, label.pid), ("qa.example.com", "UTC", 20180));
        assert_eq!(context.traverse("").expect("the root exists").len(), *metrics, "{name}");
        let end = Timestamp::new(end.0, end.1);
        assert_eq!(context.end_time().expect("it has records"), end, "{name}");
        let stamps = stamps(&mut context);
        assert_eq!(stamps.len(), *records, "{name}");
        assert_eq!(stamps.iter().filter(|(_, gap)| *gap).count(), *gaps, "{name}");
    }
}

#[test]
fn every_member_opens_the_archive() {
    let path = own("own-dyn");
    for suffix in ["", ".0", ".meta", ".index"] {
        let mut member = path.clone().into_os_string();
        member.push(suffix);
        assert_eq!(stamps(&mut open(Path::new(&member))).len(), 24);
    }
    let error = ArchiveContext::open(own("own-nothing")).expect_err("there is none");
    assert_eq!(error.status(), PmStatus(-2));
}

/// Positions at, just before and just behind every record.
fn check_positions(path: &Path) {
    let mut context = open(path);
    let all = stamps(&mut context);
    let list = any_record();
    let mut batch = ResultBatch::default();
    for (stamp, _) in &all {
        for nsec in [-1, 0, 1] {
            let when = Timestamp::new(stamp.sec, i64::from(stamp.nsec) + nsec);
            context.set_position(when).expect("the volumes are there");
            assert_eq!(context.origin(), when);
            let expected = all.iter().map(|(stamp, _)| *stamp).find(|stamp| *stamp >= when);
            match (context.fetch(&list, &mut batch), expected) {
                (Ok(_), Some(expected)) => assert_eq!(batch.timestamp(), expected),
                (Err(error), None) => assert!(error.is_end_of_archive(), "{error}"),
                (other, expected) => panic!("{}: {other:?} {expected:?}", path.display()),
            }
        }
    }
    context.set_position(Timestamp::default()).expect("the volumes are there");
    assert_eq!(stamps(&mut context).len(), all.len());
}

#[test]
fn positioning_finds_the_first_record_at_or_after_a_time() {
    for (name, ..) in OWN {
        check_positions(&own(name));
    }
    for name in ["gap", "multi-vm00", "ok-mv-bar", "ok-mv-bigbin", "ok-noti-bigbin", "binning"] {
        if let Some(path) = installed("archives", name) {
            check_positions(&path);
        }
    }
}

#[test]
fn a_missing_index_and_a_lying_one_change_nothing() {
    let directory = temporary();
    let base = directory.path().join("a");
    copy(&own("own-dyn"), directory.path(), |suffix| {
        (suffix != "index").then(|| format!("a.{suffix}"))
    });
    check_positions(&base);
    let index = fs::read(own("own-dyn").with_extension("index")).expect("it is there");
    for shift in [1u8, 40, 200] {
        let mut lying = index.clone();
        for entry in lying[808..].chunks_exact_mut(32) {
            entry[31] = entry[31].wrapping_add(shift);
        }
        fs::write(base.with_extension("index"), &lying).expect("it can be written");
        check_positions(&base);
        assert_eq!(
            open(&base).end_time().expect("the volume is good"),
            Timestamp::new(1_700_020_041, 750_000_000)
        );
    }
    fs::write(base.with_extension("index"), b"no index").expect("it can be written");
    check_positions(&base);
}

#[test]
fn marks_are_skipped_and_reported_as_gaps() {
    let mut context = open(&own("own-dyn"));
    let gaps: Vec<_> = stamps(&mut context).into_iter().filter(|(_, gap)| *gap).collect();
    assert_eq!(gaps.len(), 2);
    // A gap before the position does not count.
    context.set_position(gaps[1].0).expect("the volume is there");
    assert_eq!(stamps(&mut context)[0], (gaps[1].0, false));
}

#[test]
fn requested_metrics_come_in_order_and_absent_ones_without_values() {
    let mut context = open(&own("own-types"));
    let mut pmids = everything(&mut context).pmids().to_vec();
    pmids.reverse();
    pmids.insert(3, Pmid::new(1, 2, 3));
    let list = FetchList::new(pmids.clone(), vec![]);
    let mut batch = ResultBatch::default();
    for _ in 0..10 {
        context.fetch(&list, &mut batch).expect("there are ten records");
        let sets: Vec<_> = batch.parts()[0].sets().collect();
        assert_eq!(sets.iter().map(|set| set.pmid).collect::<Vec<_>>(), pmids);
        assert_eq!(sets[3].count, Ok(0));
        assert!(sets.iter().any(|set| !set.is_empty()));
    }
    // A list of nothing but unknown metrics finds no record.
    context.set_position(Timestamp::default()).expect("the volume is there");
    let error = context.fetch(&FetchList::new(vec![Pmid::new(1, 2, 3)], vec![]), &mut batch);
    assert!(error.expect_err("no record has it").is_end_of_archive());
}

#[test]
fn statuses_of_names_and_descriptors() {
    let mut context = open(&own("own-dyn"));
    let names = context.traverse("").expect("the root exists");
    let leaf = names[0].as_str();
    let (node, _) = leaf.rsplit_once('.').expect("names have components");
    let unknown = format!("{leaf}.more");
    let found = context.lookup_names(&[leaf, node, &unknown, ""]).expect("archives can answer");
    assert!(found[0].is_ok());
    let rest = [Err(PmStatus::NONLEAF), Err(PmStatus::NAME), Err(PmStatus::NAME)];
    assert_eq!(found[1..], rest);
    let descs = context.lookup_descs(&[Pmid::new(1, 2, 3)]).expect("archives can answer");
    assert_eq!(descs, [Err(PmStatus::PMID_LOG)]);
    assert!(context.traverse(node).expect("it is a node").contains(&leaf.to_string()));
    assert_eq!(context.traverse(leaf).expect("it is a leaf"), [leaf]);
    assert_eq!(context.traverse(&unknown).expect_err("unknown").status(), PmStatus::NAME);
}

#[test]
fn a_domain_keeps_its_identity_while_it_stays_in_force() {
    let mut context = open(&own("own-dyn"));
    let list = everything(&mut context);
    let mut batch = ResultBatch::default();
    let mut before: Vec<Result<_, PmStatus>> = Vec::new();
    let (mut same, mut changed) = (0, 0);
    while context.fetch(&list, &mut batch).is_ok() {
        for (old, new) in before.iter().zip(&batch.domains) {
            let (Ok(old), Ok(new)) = (old, new) else { continue };
            let pointers: (&Arc<_>, &Arc<_>) = (old, new);
            assert_eq!(Arc::ptr_eq(pointers.0, pointers.1), old == new);
            *(if old == new { &mut same } else { &mut changed }) += 1;
        }
        before.clone_from(&batch.domains);
        for (indom, domain) in list.domains().iter().zip(&batch.domains) {
            let again = context.instance_domain(*indom, Freshness::Current).expect("readable");
            assert_eq!(again, *domain);
        }
    }
    assert!(same > 0 && changed > 0, "{same} {changed}");
}

#[test]
fn domains_are_those_of_the_origin() {
    // The instances of this domain change; before its first record it is unknown.
    let Some(path) = installed("archives", "mirage") else { return };
    let mut context = open(&path);
    let indom = pmderive_runtime::model::InDom::new(29, 3);
    let start = context.label().start;
    let mut at = |seconds: i64| {
        context.set_position(Timestamp::new(start.sec + seconds, 500_000_000)).expect("there");
        let domain = context.instance_domain(indom, Freshness::Cached).expect("readable");
        domain.map(|domain| domain.instances().map(|(id, _)| id).collect::<Vec<_>>())
    };
    assert_eq!(at(0), Err(PmStatus::INDOM_LOG));
    assert_eq!(at(70), Ok(vec![0, 12, 13, 14, 15]));
    let later = at(121).expect("known");
    assert!(!later.contains(&14) && later.contains(&16), "{later:?}");
}

#[test]
fn volumes_follow_one_another_and_holes_are_passed() {
    let Some(path) = installed("archives", "ok-mv-bar") else { return };
    let all = stamps(&mut open(&path));
    let directory = temporary();
    copy(&path, directory.path(), |suffix| (suffix != "1").then(|| format!("a.{suffix}")));
    let base = directory.path().join("a");
    let without = stamps(&mut open(&base));
    assert!(without.len() < all.len() && !without.is_empty());
    assert!(without.iter().all(|(stamp, _)| all.iter().any(|(other, _)| other == stamp)));
    check_positions(&base);

    // A volume under a false number is damage.
    copy(&path, directory.path(), |suffix| (suffix == "0").then(|| "a.1".to_string()));
    let (list, mut batch) = (any_record(), ResultBatch::default());
    let mut context = open(&base);
    let error = std::iter::from_fn(|| Some(context.fetch(&list, &mut batch)))
        .find_map(Result::err)
        .expect("the second volume is bad");
    assert_eq!(error.status(), PmStatus::LABEL, "{error}");
    let rest = stamps(&mut context);
    assert!(rest[0].1, "what was lost is a gap");
    assert_eq!(rest.last(), all.last());
}

#[test]
fn a_volume_that_is_cut_is_left_for_the_next_one() {
    let Some(path) = installed("archives", "ok-mv-bar") else { return };
    let directory = temporary();
    copy(&path, directory.path(), |suffix| Some(format!("a.{suffix}")));
    let base = directory.path().join("a");
    let first = base.with_extension("0");
    let mut bytes = fs::read(&first).expect("it is there");
    bytes.pop();
    fs::write(&first, &bytes).expect("it can be written");
    let all = stamps(&mut open(&path));
    let mut context = open(&base);
    let (list, mut batch) = (any_record(), ResultBatch::default());
    let mut outcomes = Vec::new();
    for _ in 0..all.len() {
        outcomes.push(context.fetch(&list, &mut batch).map_err(|error| error.status()));
    }
    let failed = outcomes.iter().position(Result::is_err).expect("the first volume is cut");
    assert_eq!(outcomes[failed], Err(PmStatus::LOGREC));
    // Only the record behind the damage reports that something is missing.
    let gap = FetchEvents { gap: true, ..FetchEvents::default() };
    assert_eq!(outcomes[failed + 1], Ok(gap));
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1);
    assert!(context.fetch(&list, &mut batch).expect_err("the end").is_end_of_archive());
}

/// A reused batch recognises records that differ only in numbers; a new one does
/// not.
#[test]
fn known_records_are_read_like_unknown_ones() {
    let mut known = 0;
    for (name, ..) in OWN {
        let path = own(name);
        let (mut context, mut other) = (open(&path), open(&path));
        let numbers = numbers_of(&mut context);
        for list in [everything(&mut context), numbers] {
            let mut kept = ResultBatch::default();
            for context in [&mut context, &mut other] {
                let start = context.label().start;
                context.set_mode(Mode::Forward, Some(start)).expect("archives have this mode");
            }
            while let Ok(events) = context.fetch(&list, &mut kept) {
                let mut fresh = ResultBatch::default();
                assert_eq!(other.fetch(&list, &mut fresh).expect("the same"), events);
                known += usize::from(kept.parts()[0].columns().is_some());
                assert!(fresh.parts()[0].columns().is_none());
                kept.encode();
                fresh.encode();
                assert_eq!(format!("{:?}", values(&kept)), format!("{:?}", values(&fresh)));
                assert_eq!(kept.timestamp(), fresh.timestamp());
                for pmid in list.pmids() {
                    assert_eq!(context.record_holds(*pmid), other.record_holds(*pmid));
                }
            }
            assert!(other.fetch(&list, &mut kept).expect_err("the end").is_end_of_archive());
        }
    }
    assert!(known > 10, "{known}");
}

/// The metrics that have numbers, without domains.
fn numbers_of(context: &mut ArchiveContext) -> FetchList {
    use ValueType::{F32, F64, I32, I64, U32, U64};
    let all = everything(context);
    let descs = context.lookup_descs(all.pmids()).expect("the file is readable");
    let is_number =
        |desc: &MetricDesc| matches!(desc.value_type, I32 | U32 | I64 | U64 | F32 | F64);
    let numbers = descs.into_iter().flatten().filter(is_number);
    FetchList::new(numbers.map(|desc| desc.pmid).collect(), Vec::new())
}

fn values(batch: &ResultBatch) -> Vec<ValueSet<'_>> {
    batch.sets().collect()
}

#[test]
fn compressed_files_read_as_plain_ones() {
    let directory = temporary();
    for (name, ..) in OWN {
        let path = own(name);
        for suffix in ["0", "meta", "index"] {
            let plain = fs::read(path.with_extension(suffix)).expect("it is there");
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            let compressed = ruzstd::encoding::compress_to_vec(&plain[..], level);
            let file = directory.path().join(format!("{name}.{suffix}.zst"));
            fs::write(file, compressed).expect("it can be written");
        }
        let (mut plain, mut compressed) = (open(&path), open(&directory.path().join(name)));
        assert_eq!(plain.end_time().expect("good"), compressed.end_time().expect("good"));
        let (list, mut a, mut b) =
            (everything(&mut plain), ResultBatch::default(), ResultBatch::default());
        while plain.fetch(&list, &mut a).is_ok() {
            compressed.fetch(&list, &mut b).expect("it has as many records");
            let bytes = |batch: &mut ResultBatch| {
                batch.encode();
                batch.parts()[0].wire().map(|wire| wire.bytes.clone())
            };
            assert!(bytes(&mut a).is_some() && bytes(&mut a) == bytes(&mut b));
            assert_eq!(a.domains, b.domains);
        }
        assert!(compressed.fetch(&list, &mut b).expect_err("the end").is_end_of_archive());
        check_positions(&directory.path().join(name));
    }
}

#[test]
fn a_damaged_compressed_volume_is_read_up_to_the_damage() {
    let directory = temporary();
    copy(&own("own-fleet"), directory.path(), |suffix| {
        (suffix != "0").then(|| format!("a.{suffix}"))
    });
    let plain = fs::read(own("own-fleet").with_extension("0")).expect("it is there");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let compressed = ruzstd::encoding::compress_to_vec(&plain[..], level);
    let file = directory.path().join("a.0.zst");
    fs::write(file, &compressed[..compressed.len() - 100]).expect("it can be written");
    let mut context = open(&directory.path().join("a"));
    let (list, mut batch) = (any_record(), ResultBatch::default());
    let mut last = None;
    let error = loop {
        match context.fetch(&list, &mut batch) {
            Ok(_) => last = Some(batch.timestamp()),
            Err(error) => break error,
        }
    };
    assert_eq!(error.status(), PmStatus::LOGREC);
    let text = error.to_string();
    assert!(text.contains("a.0.zst: at byte ") && text.contains("cannot be expanded"), "{text}");
    assert_eq!(context.end_time().ok(), last);
    assert!(last.is_some());
}

#[test]
fn an_archive_that_is_being_written_is_followed() {
    let source = own("own-dyn");
    let read = |suffix: &str| fs::read(source.with_extension(suffix)).expect("it is there");
    let (volume, metadata) = (read("0"), read("meta"));
    let all = stamps(&mut open(&source));

    // Offsets of the records.
    let boundaries = |bytes: &[u8]| {
        let mut at = 808;
        let mut list = vec![at];
        while let Some(word) = bytes.get(at..at + 4) {
            at += u32::from_be_bytes([word[0], word[1], word[2], word[3]]) as usize;
            list.push(at);
        }
        list
    };
    let (records, entries) = (boundaries(&volume), boundaries(&metadata));

    let directory = temporary();
    let base = directory.path().join("a");
    let write = |suffix: &str, bytes: &[u8]| {
        fs::write(base.with_extension(suffix), bytes).expect("it can be written");
    };
    // All metrics are described before the first record; the last instance list is still to come.
    write("meta", &metadata[..entries[entries.len() - 2]]);
    write("0", &volume[..records[3]]);
    let mut context = open(&base);
    assert_eq!(stamps(&mut context), all[..3]);
    write("0", &volume[..records[4]]);
    assert_eq!(stamps(&mut context).len(), 1);

    // Fewer bytes than a length are not a record yet.
    let (list, mut batch) = (any_record(), ResultBatch::default());
    write("0", &volume[..records[4] + 3]);
    assert!(context.fetch(&list, &mut batch).expect_err("no record").is_end_of_archive());
    // Half a record is an error until the other half is there.
    write("0", &volume[..records[4] + 100]);
    for _ in 0..2 {
        let error = context.fetch(&list, &mut batch).expect_err("it is cut");
        assert_eq!(error.status(), PmStatus::LOGREC, "{error}");
    }
    write("meta", &metadata);
    write("0", &volume);
    assert_eq!(stamps(&mut context), all[4..]);

    let list = everything(&mut open(&source));
    let mut complete = open(&source);
    while complete.fetch(&list, &mut batch).is_ok() {}
    for indom in list.domains() {
        let expected = complete.instance_domain(*indom, Freshness::Cached).expect("readable");
        let followed = context.instance_domain(*indom, Freshness::Cached).expect("readable");
        assert_eq!(followed, expected, "{indom}");
    }

    // The writer begins another volume.
    let mut second = volume[..records[1]].to_vec();
    second[27] = 1;
    let later = i64::to_be_bytes(all.last().expect("not empty").0.sec + 60);
    second[812..816].copy_from_slice(&later[4..]);
    for begun in [0, 100, 808] {
        write("1", &second[..begun]);
        assert_eq!(stamps(&mut context).len(), 0, "{begun}");
    }
    write("1", &second);
    assert_eq!(stamps(&mut context).len(), 1);
}
