//! Archives that grow while they are read: finished archives, rewritten step by
//! step, in the order of pmlogger and in worse ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::archive_writer::ArchiveWriter;
use pmderive_runtime::model::{
    InDom, InstanceDomain, MetricDesc, PmStatus, Pmid, RawValue, Semantics, Timestamp, Units,
    ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues, ResultBatch};
use pmderive_runtime::source::{FetchList, FetchSource, Freshness, MetadataSource, Mode};

use pmderive_testkit::archives;

use crate::choices::Choices;
use crate::suite::{everything, own};

/// The order in which a writer writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// Metadata, then the record that needs it, then the index.
    Pmlogger,
    /// A record, then the metadata that it needs.
    DataFirst,
    /// The index of records that are still to come.
    IndexFirst,
}

const ORDERS: [Order; 3] = [Order::Pmlogger, Order::DataFirst, Order::IndexFirst];

/// Bytes that are appended to a file of an archive.
struct Append {
    suffix: &'static str,
    bytes: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The records behind a label, by their lengths.
fn records(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = &bytes[word(bytes, 0) as usize..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (record, behind) = rest.split_at(word(rest, 0) as usize);
        records.push(record);
        rest = behind;
    }
    records
}

/// A time stamp as a number that has the same order.
fn stamp(bytes: &[u8], is_v3: bool) -> (u32, u32) {
    (word(bytes, 0), word(bytes, if is_v3 { 8 } else { 4 }))
}

fn metrics(record: &[u8], is_v3: bool) -> Vec<u32> {
    let mut at = if is_v3 { 20 } else { 16 };
    let mut metrics = Vec::new();
    for _ in 0..word(record, at - 4) {
        metrics.push(word(record, at));
        let count = word(record, at + 4).cast_signed();
        at += usize::try_from(count).map_or(8, |count| if count > 0 { 12 + 8 * count } else { 8 });
    }
    metrics
}

/// The writes of an archive's writer, in order. Metrics are described when they
/// occur first, and there are two volumes.
fn appends(path: &Path, order: Order) -> Vec<Append> {
    let read = |suffix: &str| std::fs::read(path.with_extension(suffix)).expect("it is there");
    let (metadata, volume, index) = (read("meta"), read("0"), read("index"));
    let size = word(&metadata, 0) as usize;
    let is_v3 = size > 132;
    let (stamp_size, entry_size) = if is_v3 { (12, 32) } else { (8, 20) };
    let data = records(&volume);
    let needs = |record: &[u8]| match word(record, 4) {
        1 => data.iter().position(|data| metrics(data, is_v3).contains(&word(record, 8))),
        4 => Some(0),
        kind => {
            let since = stamp(&record[8..], kind >= 5);
            data.iter().position(|data| stamp(&data[4..], is_v3) >= since)
        }
    };
    let needed: Vec<(usize, &[u8])> = records(&metadata)
        .into_iter()
        .map(|record| (needs(record).unwrap_or(data.len() - 1), record))
        .collect();
    let half = data.len() / 2;
    let first_size: usize = size + data[..half].iter().map(|record| record.len()).sum::<usize>();
    let volume_of = |number: usize| if number < half { "0" } else { "1" };
    let mut appends = Vec::new();
    let mut append = |suffix, bytes: &[u8]| appends.push(Append { suffix, bytes: bytes.to_vec() });

    append("index", &index[..size]);
    append("meta", &metadata[..size]);
    append("0", &volume[..size]);
    let mut entries: Vec<Vec<u8>> = index[size..].chunks(entry_size).map(<[u8]>::to_vec).collect();
    for entry in &mut entries {
        let offset = word(entry, entry_size - 4) as usize;
        if offset >= first_size {
            let offset = u32::try_from(offset - first_size + size).expect("small");
            entry[stamp_size..stamp_size + 4].copy_from_slice(&1u32.to_be_bytes());
            entry[entry_size - 4..].copy_from_slice(&offset.to_be_bytes());
        }
    }
    if order == Order::IndexFirst {
        entries.drain(..).for_each(|entry| append("index", &entry));
    }
    for (number, record) in data.iter().enumerate() {
        if number == half {
            let mut label = volume[..size].to_vec();
            let at = if is_v3 { 27 } else { 23 };
            label[at] = 1;
            append("1", &label);
        }
        if order == Order::DataFirst {
            append(volume_of(number), record);
        }
        for (_, record) in needed.iter().filter(|(first, _)| *first == number) {
            append("meta", record);
        }
        if order != Order::DataFirst {
            append(volume_of(number), record);
        }
        while entries.first().is_some_and(|e| stamp(e, is_v3) <= stamp(&record[4..], is_v3)) {
            append("index", &entries.remove(0));
        }
    }
    appends
}

/// An archive on the way from nothing to `appends`, some of them in pieces.
struct Writer {
    folder: tempfile::TempDir,
    pieces: std::vec::IntoIter<Append>,
}

impl Writer {
    fn new(path: &Path, order: Order, seed: u64) -> Writer {
        let mut choices = Choices(seed);
        // Two of three writes are done at once.
        let mut cut = |length: usize| choices.below(3 * length);
        let mut pieces = Vec::new();
        for Append { suffix, mut bytes } in appends(path, order) {
            let rest = bytes.split_off(cut(bytes.len()).min(bytes.len()));
            for bytes in [bytes, rest] {
                pieces.push(Append { suffix, bytes });
            }
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        Writer { folder, pieces: pieces.into_iter() }
    }

    fn base(&self) -> std::path::PathBuf {
        self.folder.path().join("a")
    }

    /// Appends a piece; false when the archive is finished.
    fn write(&mut self) -> bool {
        let Some(Append { suffix, bytes }) = self.pieces.next() else { return false };
        let path = self.base().with_extension(suffix);
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(&bytes)).expect("it can be written");
        true
    }
}

type Values = Vec<(i32, Option<String>, String)>;

/// One fetch: its time, a preceding gap, and all values.
#[derive(Debug, PartialEq)]
struct Sample {
    time: Timestamp,
    gap: bool,
    values: BTreeMap<Pmid, Values>,
}

/// Fetches all metrics until the end, which may be one for now.
fn samples(context: &mut ArchiveContext) -> Vec<Sample> {
    let list = everything(context);
    std::iter::from_fn(|| sample(context, &list)).collect()
}

/// True for a message about a record or label whose file ends within it.
fn is_incomplete(message: &str) -> bool {
    ["the file ends before its end", "the file is shorter"].iter().any(|end| message.contains(end))
}

fn sample(context: &mut ArchiveContext, list: &FetchList) -> Option<Sample> {
    let mut batch = ResultBatch::default();
    let events = match context.fetch(list, &mut batch) {
        Ok(events) => events,
        Err(error) if error.is_end_of_archive() => return None,
        // Half a record or half a label, where the archive is not followed.
        Err(error) if is_incomplete(&error.to_string()) => return None,
        Err(error) if error.to_string().contains("too short for a label") => return None,
        Err(error) => panic!("{error}"),
    };
    let result = FetchResult::of_batch(&batch, events.changes);
    let mut values = BTreeMap::new();
    for set in &result.sets {
        let desc = context.lookup_descs(&[set.pmid]).expect("known")[0].expect("known");
        let decoded: Vec<_> = set.decode(desc.value_type).expect("values").into_iter().collect();
        let names = desc
            .indom
            .map(|indom| context.instance_domain(indom, Freshness::Cached).expect("readable").ok());
        let name = |id| Some(names.as_ref()?.as_ref()?.name(id)?.to_owned());
        let decoded: Values =
            decoded.into_iter().map(|(id, value)| (id, name(id), format!("{value:?}"))).collect();
        if !decoded.is_empty() {
            values.insert(set.pmid, decoded);
        }
    }
    Some(Sample { time: result.timestamp, gap: events.gap, values })
}

fn open(path: &Path) -> ArchiveContext {
    ArchiveContext::open(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Steps at which values are interpolated, and reading record by record.
const MODES: [Mode; 3] = [
    Mode::Forward,
    Mode::Interpolated { step: 333_000_000 },
    Mode::Interpolated { step: 2_500_000_000 },
];

#[test]
fn what_is_followed_is_what_the_finished_archive_has() {
    let (mut at_once, mut all) = (0, 0);
    for name in ["own-dyn", "own-dyn2", "own-types", "own-fleet"] {
        for (seed, order) in (1..).zip(ORDERS) {
            for mode in MODES {
                let place = format!("{name} {order:?} {mode:?}");
                let mut writer = Writer::new(&own(name), order, seed);
                let (mut context, mut followed, mut looks) = (None, Vec::new(), 0);
                while writer.write() {
                    let context = match &mut context {
                        Some(context) => context,
                        None => {
                            // Too little of it is there at first.
                            let Ok(mut early) = ArchiveContext::open(writer.base()) else {
                                continue;
                            };
                            early.set_mode(mode, None).expect("archives have it");
                            early.follow().expect("it can be followed");
                            context.insert(early)
                        }
                    };
                    assert!(context.can_grow());
                    looks += usize::from(context.look().expect("it can be read"));
                    assert!(!context.look().expect("it can be read"), "there was a look before");
                    followed.extend(samples(context));
                }
                assert!(looks > 8 && !followed.is_empty(), "{place}");
                let mut context = context.expect("it was opened");
                let before = followed.len();
                context.stop_following().expect("it can be read");
                followed.extend(samples(&mut context));
                let mut finished = open(&writer.base());
                finished.set_mode(mode, None).expect("archives have it");
                let mut wanted = samples(&mut finished);
                // Their order depends on instances that are still to come.
                for sample in wanted.iter_mut().chain(&mut followed) {
                    sample.values.values_mut().for_each(|values| values.sort());
                }
                for (want, got) in wanted.iter().zip(&followed) {
                    assert_eq!((want.time, want.gap), (got.time, got.gap), "{place}");
                    let all = want.values.keys().chain(got.values.keys());
                    for pmid in all.copied().collect::<BTreeSet<_>>() {
                        let of = |sample: &Sample| sample.values.get(&pmid).cloned();
                        assert_eq!(of(want), of(got), "{place} {pmid} at {}", want.time);
                    }
                }
                assert_eq!(followed.len(), wanted.len(), "{place}");
                at_once += before;
                all += wanted.len();
            }
        }
    }
    assert!(at_once > all / 2, "{at_once} of {all} did not have to wait for the end");
}

#[test]
fn an_archive_that_has_grown_is_as_one_opened_now() {
    for (name, order) in [("own-dyn", Order::Pmlogger), ("own-dyn2", Order::IndexFirst)] {
        let mut writer = Writer::new(&own(name), order, 7);
        let (mut record_by_record, mut between) = (None, None);
        let (mut seen, mut comparisons) = (0, 0);
        let mut turn = 0;
        while writer.write() {
            turn += 1;
            let Ok(mut now) = ArchiveContext::open(writer.base()) else { continue };
            let again = || open(&writer.base());
            // The same contexts all the time, against new ones.
            let old = record_by_record.get_or_insert_with(again);
            let all: Vec<Sample> = samples(&mut now);
            let new = samples(old);
            assert_eq!(new[..], all[seen..], "{name}");
            seen = all.len();
            if turn % 5 > 0 {
                continue;
            }
            let old: &mut ArchiveContext = between.get_or_insert_with(again);
            let mut now = again();
            let end = now.end_time().expect("records are there");
            assert_eq!(old.end_time().expect("records are there"), end);
            for mode in MODES.into_iter().skip(1).chain([Mode::Backward]) {
                for back in [0, 3, 20] {
                    let from = Timestamp::new(end.sec - back, i64::from(end.nsec));
                    for context in [&mut *old, &mut now] {
                        context.set_mode(mode, Some(from)).expect("archives have it");
                    }
                    assert_eq!(samples(old), samples(&mut now), "{name} {mode:?}");
                    comparisons += 1;
                }
            }
        }
        assert!(seen > 10 && comparisons > 50, "{seen} {comparisons}");
    }
}

/// Seconds in which a metric has values, those of a metric that has one each second.
const RARE: [&[(&str, &[i64])]; 4] = [
    // Only once at first.
    &[("every ten", &[0, 10, 20, 30])],
    &[("ever later", &[0, 2, 9, 25, 30])],
    // A value of each instance is a value of the metric.
    &[("every two", &[0, 2, 4, 6, 8, 10, 12, 14, 30]), ("late", &[3, 9, 15, 30])],
    // Instances have longer intervals than their metric.
    &[("every five", &[0, 5, 10, 15, 20, 25, 30]), ("new", &[9, 24, 30])],
];

#[test]
fn rare_values_are_awaited() {
    let indom = InDom::new(60, 1);
    let desc = |item, indom| MetricDesc {
        pmid: Pmid::new(60, 0, item),
        value_type: ValueType::U32,
        indom,
        semantics: Semantics::Instant,
        units: Units::NONE,
    };
    let start = Timestamp::new(1_700_000_000, 0);
    for instances in RARE {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let base = folder.path().join("a");
        let options = archives::options("rare.example", start);
        let mut writer = ArchiveWriter::create(&base, options).expect("a new archive");
        let (often, rare) = (desc(1, None), desc(2, Some(indom)));
        writer.describe(&often, &["often"]).expect("it is new");
        writer.describe(&rare, &["rare"]).expect("it is new");
        let names = (0..).zip(instances.iter().map(|(name, _)| (*name).into())).collect();
        writer.instances(start, indom, &InstanceDomain::new(names)).expect("good names");
        let (mut context, mut followed) = (None, Vec::new());
        for second in 0..=30 {
            let value = |instance| InstanceValue { instance, value: RawValue::InPlace(second) };
            let is_there = |(_, (_, at)): &(i32, &(&str, &[i64]))| at.contains(&second.into());
            let present = (0..).zip(instances).filter(is_there);
            let of_rare: Vec<_> = present.map(|(instance, _)| value(instance)).collect();
            let mut sets = vec![MetricValues { pmid: often.pmid, outcome: Ok(vec![value(-1)]) }];
            if !of_rare.is_empty() {
                sets.push(MetricValues { pmid: rare.pmid, outcome: Ok(of_rare) });
            }
            let timestamp = Timestamp::new(start.sec + i64::from(second), 0);
            writer
                .record(&FetchResult { timestamp, sets, ..FetchResult::default() })
                .expect("good");
            writer.flush().expect("there is room");
            let context = context.get_or_insert_with(|| {
                let mut context = open(&base);
                let mode = Mode::Interpolated { step: 1_000_000_000 };
                context.set_mode(mode, None).expect("archives have it");
                context.follow().expect("it can be followed");
                context
            });
            context.look().expect("it can be read");
            followed.extend(samples(context));
        }
        let mut finished = open(&base);
        let mode = Mode::Interpolated { step: 1_000_000_000 };
        finished.set_mode(mode, None).expect("archives have it");
        let wanted = samples(&mut finished);
        assert_eq!((followed.len(), wanted.len()), (31, 31), "{instances:?}");
        for (got, want) in followed.iter().zip(&wanted) {
            assert_eq!(got, want, "{instances:?}");
        }
    }
}

#[test]
fn a_volume_with_half_a_label_is_waited_for() {
    for (name, label) in [("own-dyn", 808), ("own-dyn2", 132)] {
        let mut writer = Writer::new(&own(name), Order::Pmlogger, 1);
        while writer.write() {}
        let finished = samples(&mut open(&writer.base()));
        for part in [0, 1, 8, 77, label - 1] {
            for is_followed in [false, true] {
                let folder = tempfile::tempdir().expect("a temporary directory");
                let base = folder.path().join("a");
                let append = |suffix: &str, bytes: &[u8]| {
                    let path = base.with_extension(suffix);
                    let file = OpenOptions::new().create(true).append(true).open(path);
                    file.and_then(|mut file| file.write_all(bytes)).expect("it can be written");
                };
                let mut pieces = appends(&own(name), Order::Pmlogger).into_iter();
                let begun = pieces.find(|piece| {
                    let is_new = piece.suffix == "1";
                    append(
                        piece.suffix,
                        &piece.bytes[..if is_new { part } else { piece.bytes.len() }],
                    );
                    is_new
                });
                let mut context = open(&base);
                if is_followed {
                    context.follow().expect("it can be followed");
                }
                let mut found = samples(&mut context);
                assert!(samples(&mut context).is_empty(), "{name} {part}: nothing new");
                append("1", &begun.expect("there are two volumes").bytes[part..]);
                pieces.for_each(|piece| append(piece.suffix, &piece.bytes));
                assert_eq!(context.look().expect("it can be read"), is_followed);
                found.extend(samples(&mut context));
                assert_eq!(found.len(), finished.len(), "{name} {part} {is_followed}");
                for (found, finished) in found.iter().zip(&finished) {
                    assert_eq!(
                        (found.time, found.gap),
                        (finished.time, finished.gap),
                        "{name} {part}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_time_behind_the_end_stays_the_next_one_where_the_archive_is_followed() {
    let mut writer = Writer::new(&own("own-dyn"), Order::Pmlogger, 3);
    while writer.write() {}
    let mut context = open(&writer.base());
    context.follow().expect("it can be followed");
    let end = context.end_time().expect("records are there");
    let list = everything(&mut context);
    let late = Timestamp::new(end.sec + 1, 0);
    context.set_mode(Mode::Interpolated { step: 1 }, Some(late)).expect("archives have it");
    assert!(sample(&mut context, &list).is_none() && sample(&mut context, &list).is_none());
    let mut plain = open(&writer.base());
    plain.set_mode(Mode::Interpolated { step: 1 }, Some(late)).expect("archives have it");
    let error = plain.fetch_values(list.pmids()).expect_err("the end");
    assert_eq!(error.status(), PmStatus::EOL);
}

#[test]
fn nothing_is_appended_to_compressed_archives() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for suffix in ["0", "meta", "index"] {
        let plain = std::fs::read(own("own-types").with_extension(suffix)).expect("it is there");
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let compressed = ruzstd::encoding::compress_to_vec(&plain[..], level);
        let file = folder.path().join(format!("a.{suffix}.zst"));
        std::fs::write(file, compressed).expect("it can be written");
    }
    let mut context = open(&folder.path().join("a"));
    assert!(!context.can_grow() && open(&own("own-types")).can_grow());
    let all = samples(&mut open(&own("own-types")));
    context.follow().expect("it is of no use, but does no harm");
    assert!(!context.look().expect("it can be read"));
    assert_eq!(samples(&mut context), all);
}
