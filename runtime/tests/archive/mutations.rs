//! Thousands of damaged copies of small archives. Whatever a byte is changed
//! to: errors name file and offset, values that the damage did not hit are
//! those of the undamaged archive, and memory stays small.
//!
//! `PMDERIVE_MUTATIONS=N` makes it N times as many copies.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{InstId, PmStatus, Pmid, Timestamp};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, Mode, SourceError};

use crate::counting::most;
use crate::suite::{available, everything, own};

/// What one metric has in a record.
type Set = (Pmid, Result<Vec<(InstId, Vec<u8>)>, PmStatus>);

/// What one fetch delivers.
type Fetched = (Timestamp, Vec<Set>);

/// Where a record is in its volume, and which of the archive's records it is.
type Place = (Range<usize>, Option<usize>);

/// A small archive: its files by their suffixes, and what is in it.
struct Subject {
    name: &'static str,
    folder: tempfile::TempDir,
    files: Vec<(String, Vec<u8>)>,
    label: usize,
    list: FetchList,
    /// All records but marks, in order.
    records: Vec<Fetched>,
    /// Of each volume by its suffix.
    places: Vec<(String, Vec<Place>)>,
    times: Vec<Timestamp>,
    between: Vec<Fetched>,
    end: Timestamp,
}

/// Most that damage may cost beside a few times the size of the files: buffers.
const BUFFERS: usize = 3 << 20;

/// A linear congruential generator: the same copies in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn records_of(bytes: &[u8], label: usize) -> Vec<Range<usize>> {
    let mut at = label;
    let mut places = Vec::new();
    while at < bytes.len() {
        let end = at + word(bytes, at) as usize;
        places.push(at..end);
        at = end;
    }
    places
}

fn fetched(batch: &ResultBatch) -> Fetched {
    let [part] = batch.parts() else { panic!("one part") };
    let sets = part.sets().map(|set| {
        let value = |word: u32| match set.in_blocks {
            true => part.block(word).expect("checked").1.to_vec(),
            false => word.to_be_bytes().to_vec(),
        };
        let values = set.lanes().map(|lane| (lane.instance, value(lane.word))).collect();
        (set.pmid, set.count.map(|_| values))
    });
    (part.timestamp, sets.collect())
}

/// Fetches up to the end, or until nothing but errors come.
fn read(context: &mut ArchiveContext, list: &FetchList) -> Vec<Result<Fetched, SourceError>> {
    let mut batch = ResultBatch::default();
    let (mut outcomes, mut in_a_row) = (Vec::new(), 0);
    while in_a_row < 5 && outcomes.len() < 2000 {
        match context.fetch(list, &mut batch) {
            Ok(_) => {
                in_a_row = 0;
                outcomes.push(Ok(fetched(&batch)));
            }
            Err(error) if error.is_end_of_archive() => break,
            Err(error) => {
                in_a_row += 1;
                outcomes.push(Err(error));
            }
        }
    }
    outcomes
}

fn backward(context: &mut ArchiveContext, list: &FetchList) -> Vec<Result<Fetched, SourceError>> {
    context.set_mode(Mode::Backward, Some(Timestamp::new(1 << 40, 0))).expect("a mode of archives");
    read(context, list)
}

fn at_times(
    context: &mut ArchiveContext,
    list: &FetchList,
    times: &[Timestamp],
) -> Vec<Result<Fetched, SourceError>> {
    let mut batch = ResultBatch::default();
    let mut fetch = |time: &Timestamp| {
        context.set_mode(Mode::Interpolated { step: 1 }, Some(*time)).expect("a mode of archives");
        context.fetch(list, &mut batch)?;
        Ok(fetched(&batch))
    };
    times.iter().map(&mut fetch).collect()
}

impl Subject {
    /// The first records of an archive, `limit` of them, in one volume or in two.
    fn new(name: &'static str, archive: &str, limit: usize, volumes: usize) -> Subject {
        let file =
            |suffix: &str| fs::read(own(&format!("{archive}.{suffix}"))).expect("it is there");
        let (metadata, index, mut volume) = (file("meta"), file("index"), file("0"));
        let label = word(&volume, 0) as usize;
        let places = records_of(&volume, label);
        let places: Vec<_> = places.into_iter().take(limit).collect();
        volume.truncate(places.last().expect("one fits").end);
        let mut files = vec![("meta".to_string(), metadata), ("index".to_string(), index)];
        if volumes == 2 {
            let middle = places[places.len() / 2].start;
            let mut second = volume[..label].to_vec();
            let number = if label == 808 { 24 } else { 20 };
            second[number..number + 4].copy_from_slice(&1u32.to_be_bytes());
            second.extend_from_slice(&volume[middle..]);
            files.push(("1".to_string(), second));
            volume.truncate(middle);
        }
        files.push(("0".to_string(), volume));
        let folder = tempfile::tempdir().expect("a folder");
        for (suffix, bytes) in &files {
            fs::write(folder.path().join(format!("a.{suffix}")), bytes).expect("space");
        }
        let mut context = ArchiveContext::open(&folder.path().join("a")).expect("a good archive");
        let list = everything(&mut context);
        let good = |outcomes: Vec<Result<Fetched, SourceError>>| -> Vec<Fetched> {
            outcomes.into_iter().map(|outcome| outcome.expect("it is good")).collect()
        };
        let records = good(read(&mut context, &list));
        let end = context.end_time().expect("it is good");
        let start = context.label().start;
        let span = end.seconds_since(start);
        let times: Vec<Timestamp> = (0..7)
            .map(|i| Timestamp::new(start.sec, (span * 1e9 / 7.0 * f64::from(i)) as i64 + 1000))
            .collect();
        let between = good(at_times(&mut context, &list, &times));
        let mut number = 0;
        let mut places = Vec::new();
        for suffix in ["0", "1"] {
            let Some((_, bytes)) = files.iter().find(|(name, _)| name == suffix) else { continue };
            let count_at = if label == 808 { 16 } else { 12 };
            let of_volume = records_of(bytes, label).into_iter().map(|place| {
                let is_mark = word(bytes, place.start + count_at) == 0;
                number += usize::from(!is_mark);
                (place, (!is_mark).then(|| number - 1))
            });
            places.push((suffix.to_string(), of_volume.collect()));
        }
        assert_eq!(number, records.len(), "{name}");
        assert!(records.len() > 3, "{name}: too few records");
        Subject { name, folder, files, label, list, records, places, times, between, end }
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("a.{suffix}"))
    }

    /// Works with a context while one file has other bytes. Gives what opening gives.
    fn with<T>(
        &self,
        suffix: &str,
        bytes: &[u8],
        work: impl FnOnce(&mut ArchiveContext) -> T,
    ) -> Result<T, SourceError> {
        let good = &self.files.iter().find(|(name, _)| name == suffix).expect("it has it").1;
        fs::write(self.path(suffix), bytes).expect("space");
        let mut result = None;
        let taken = most(|| {
            let opened = ArchiveContext::open(&self.folder.path().join("a"));
            result = Some(opened.map(|mut context| work(&mut context)));
        });
        fs::write(self.path(suffix), good).expect("space");
        assert!(taken < BUFFERS + 64 * bytes.len(), "{} {suffix}: {taken} bytes", self.name);
        result.expect("the work was done")
    }

    /// An error names its file, which is one of this archive's, and where in
    /// it the damage is.
    fn check_error(&self, error: &SourceError, suffix: &str, size: usize, what: &str) {
        let text = error.to_string();
        // What a volume's label lacks is found out when it is compared with another.
        let base = self.folder.path().join("a").display().to_string();
        let rest = text.strip_prefix(&base).unwrap_or_else(|| panic!("{what}: {text}"));
        if rest == ": no data volume holds a complete record" {
            return;
        }
        let is_named = rest.starts_with(&format!(".{suffix}: ")) || text.contains(": label.");
        assert!(is_named, "{what}: {text}");
        let Some(rest) = rest.split_once("at byte ") else {
            assert!(error.status() == PmStatus::NODATA, "{what}: {text}");
            return;
        };
        let digits = rest.1.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let offset: usize = digits.parse().unwrap_or_else(|_| panic!("{what}: {text}"));
        assert!(offset <= size, "{what}: {text}");
    }
}

/// What a byte of a data record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Length,
    Trailer,
    Stamp,
    Count,
    Pmid,
    Numval,
    Format,
    Instance,
    Value,
    Position,
    BlockHead,
    BlockType,
    Padding,
}

/// What each byte of a record is, and the metric that it belongs to.
fn fields(record: &[u8], label: usize) -> Vec<(Field, Option<Pmid>)> {
    let header = if label == 808 { 16 } else { 12 };
    let mut fields = vec![(Field::Padding, None); record.len()];
    let mut mark = |range: Range<usize>, field, pmid| fields[range].fill((field, pmid));
    mark(0..4, Field::Length, None);
    mark(4..header, Field::Stamp, None);
    mark(header..header + 4, Field::Count, None);
    let mut at = header + 4;
    for _ in 0..word(record, header) {
        let pmid = Some(Pmid(word(record, at)));
        let count = word(record, at + 4).cast_signed();
        mark(at..at + 4, Field::Pmid, pmid);
        mark(at + 4..at + 8, Field::Numval, pmid);
        at += 8;
        if count <= 0 {
            continue;
        }
        let in_blocks = word(record, at) != 0;
        mark(at..at + 4, Field::Format, pmid);
        at += 4;
        for _ in 0..count {
            mark(at..at + 4, Field::Instance, pmid);
            mark(at + 4..at + 8, if in_blocks { Field::Position } else { Field::Value }, pmid);
            if in_blocks {
                let block = 4 * word(record, at + 4) as usize - 8;
                let length = (word(record, block) & 0xff_ffff) as usize;
                mark(block..block + 1, Field::BlockType, pmid);
                mark(block + 1..block + 4, Field::BlockHead, pmid);
                mark(block + 4..block + length, Field::Value, pmid);
            }
            at += 8;
        }
    }
    mark(record.len() - 4..record.len(), Field::Trailer, None);
    fields
}

/// What damage to a volume may change.
#[derive(Debug, Default)]
struct Allowed {
    /// Records that may be missing.
    missing: BTreeSet<usize>,
    /// The record that may come with another stamp, or
    stamp: Option<usize>,
    /// with other values of these metrics.
    values: Option<(usize, BTreeSet<Pmid>)>,
}

/// How a file is damaged.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Flip {
        at: usize,
        bit: u8,
    },
    /// Bytes are overwritten by others of the file.
    Copy {
        from: usize,
        to: usize,
        length: usize,
    },
    Remove(Range<usize>),
    Insert {
        from: usize,
        to: usize,
        length: usize,
    },
}

impl Damage {
    fn random(random: &mut Random, size: usize) -> Damage {
        let length = 1 + random.below(12);
        let (from, to) = (random.below(size - length), random.below(size - length));
        match random.below(10) {
            0 => Damage::Copy { from, to, length },
            1 => Damage::Copy { from: from & !3, to: to & !3, length: 4 },
            2 => Damage::Remove(to..to + length),
            3 => Damage::Insert { from, to, length },
            _ => Damage::Flip { at: random.below(size), bit: 1 << random.below(8) },
        }
    }

    fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        match self.clone() {
            Damage::Cut(at) => damaged.truncate(at),
            Damage::Flip { at, bit } => damaged[at] ^= bit,
            Damage::Copy { from, to, length } => damaged.copy_within(from..from + length, to),
            Damage::Remove(range) => drop(damaged.drain(range)),
            Damage::Insert { from, to, length } => {
                drop(damaged.splice(to..to, bytes[from..from + length].iter().copied()));
            }
        }
        damaged
    }

    /// The bytes that it changes; from where on they have moved.
    fn touches(&self) -> (Range<usize>, bool) {
        match self.clone() {
            Damage::Cut(at) => (at..at, true),
            Damage::Flip { at, .. } => (at..at + 1, false),
            Damage::Copy { to, length, .. } => (to..to + length, false),
            Damage::Remove(range) => (range, true),
            Damage::Insert { to, .. } => (to..to, true),
        }
    }
}

impl Subject {
    /// What damage to a volume may change. `None` when its label is hit.
    fn allowed(&self, suffix: &str, damage: &Damage) -> Option<Allowed> {
        let (touched, has_moved) = damage.touches();
        if touched.start < self.label {
            return None;
        }
        let (_, places) = self.places.iter().find(|(name, _)| name == suffix).expect("a volume");
        let bytes = &self.files.iter().find(|(name, _)| name == suffix).expect("a volume").1;
        let mut allowed = Allowed::default();
        let mut is_lost = false;
        let mut is_moved_in_time = false;
        for (place, number) in places {
            let is_behind = has_moved && place.end > touched.start;
            if is_lost || is_behind {
                allowed.missing.extend(number);
            }
            if has_moved {
                continue;
            }
            let hit = place.start.max(touched.start)..place.end.min(touched.end);
            for at in hit {
                let (field, pmid) = fields(&bytes[place.clone()], self.label)[at - place.start];
                if !matches!(field, Field::Value | Field::Padding | Field::BlockType) {
                    allowed.missing.extend(number);
                }
                match field {
                    Field::Length => is_lost = true,
                    Field::Stamp => {
                        allowed.stamp = *number;
                        is_moved_in_time = true;
                    }
                    _ => {}
                }
                let is_soft = matches!(
                    field,
                    Field::Pmid
                        | Field::Numval
                        | Field::Instance
                        | Field::Value
                        // A text may lose bytes to its padding.
                        | Field::BlockHead
                );
                if let Some((number, pmid)) = number.zip(pmid).filter(|_| is_soft) {
                    let values = allowed.values.get_or_insert((number, BTreeSet::new()));
                    if values.0 == number {
                        values.1.insert(pmid);
                    }
                    if field == Field::Pmid {
                        let changed = damage.apply(bytes);
                        values.1.insert(Pmid(word(&changed, at & !3)));
                    }
                }
            }
        }
        // A record from the past is passed over, and those before one of the future are.
        if is_moved_in_time {
            allowed.missing.extend(0..self.records.len());
        }
        Some(allowed)
    }

    /// Compares what was delivered with the undamaged records, which come in
    /// the order of `order`.
    fn compare(
        &self,
        outcomes: &[Result<Fetched, SourceError>],
        order: &[usize],
        allowed: &Allowed,
        what: &str,
    ) {
        let mut expected = order.iter().copied().peekable();
        let may_be = |number: usize, found: &Fetched| {
            let truth = &self.records[number];
            if truth == found {
                return true;
            }
            let is_soft = |pmid: &Pmid| {
                allowed
                    .values
                    .as_ref()
                    .is_some_and(|(n, pmids)| *n == number && pmids.contains(pmid))
            };
            (truth.0 == found.0 || allowed.stamp == Some(number))
                && truth.1.iter().zip(&found.1).all(|(a, b)| a == b || is_soft(&a.0))
        };
        for found in outcomes.iter().flatten() {
            loop {
                let Some(number) = expected.next() else { panic!("{what}: surplus {found:?}") };
                if may_be(number, found) {
                    break;
                }
                assert!(
                    allowed.missing.contains(&number),
                    "{what}: record {number} is {:?}, not {found:?}; {allowed:?}",
                    self.records[number]
                );
            }
        }
        for number in expected {
            assert!(allowed.missing.contains(&number), "{what}: record {number} is missing");
        }
    }

    /// Damages a volume and reads it in every way.
    fn try_volume(&self, suffix: &str, damage: &Damage) {
        let what = format!("{} {suffix} {damage:?}", self.name);
        let bytes = &self.files.iter().find(|(name, _)| name == suffix).expect("it has it").1;
        let damaged = damage.apply(bytes);
        let read = self.with(suffix, &damaged, |context| {
            let end = context.end_time();
            let forward = read(context, &self.list);
            let back = backward(context, &self.list);
            (end, forward, back, at_times(context, &self.list, &self.times))
        });
        let Some(allowed) = self.allowed(suffix, damage) else {
            // The label is hit: the volume may be out of use, or as good as ever.
            match read {
                Err(error) => self.check_error(&error, suffix, damaged.len(), &what),
                Ok((_, forward, back, _)) => {
                    let all: BTreeSet<usize> = (0..self.records.len()).collect();
                    let allowed = Allowed { missing: all, ..Allowed::default() };
                    let order: Vec<usize> = (0..self.records.len()).collect();
                    if !matches!(damage, Damage::Cut(_) | Damage::Flip { .. }) {
                        return;
                    }
                    self.compare(&forward, &order, &allowed, &what);
                    let order: Vec<usize> = order.into_iter().rev().collect();
                    self.compare(&back, &order, &allowed, &what);
                }
            }
            return;
        };
        let (end, forward, back, between) = match read {
            Ok(read) => read,
            Err(error) => {
                // Nothing stands behind the label any more.
                assert_eq!(error.status(), PmStatus::NODATA, "{what}: {error}");
                return;
            }
        };
        let order: Vec<usize> = (0..self.records.len()).collect();
        self.compare(&forward, &order, &allowed, &format!("{what}, forward"));
        let reverse: Vec<usize> = order.iter().copied().rev().collect();
        self.compare(&back, &reverse, &allowed, &format!("{what}, backward"));
        if let (Damage::Cut(at), "0", 1) = (damage, suffix, self.places.len()) {
            let whole = self.places[0].1.iter().filter(|(place, _)| place.end <= *at);
            let count = whole.filter_map(|(_, number)| *number).count();
            for (outcomes, way) in [(&forward, "forward"), (&back, "backward")] {
                let found = outcomes.iter().flatten().count();
                assert_eq!(found, count, "{what}, {way}");
            }
        }
        if allowed.missing.is_empty() && allowed.values.is_none() {
            assert_eq!(end.as_ref().ok(), Some(&self.end), "{what}");
        }
        for error in forward.iter().chain(&back).filter_map(|outcome| outcome.as_ref().err()) {
            self.check_error(error, suffix, damaged.len(), &what);
        }
        // Of what is missing without a trace nobody can know.
        let is_told = forward.iter().any(Result::is_err) || allowed.missing.is_empty();
        if allowed.stamp.is_some() || !is_told {
            return;
        }
        let soft = allowed.values.map(|(_, pmids)| pmids).unwrap_or_default();
        for (outcome, truth) in between.iter().zip(&self.between) {
            match outcome {
                Ok(found) => {
                    for (set, good) in found.1.iter().zip(&truth.1) {
                        let is_empty = !matches!(&set.1, Ok(values) if !values.is_empty());
                        let is_part = match (&set.1, &good.1) {
                            (Ok(set), Ok(good)) => set.iter().all(|value| good.contains(value)),
                            _ => false,
                        };
                        assert!(
                            is_empty || is_part || soft.contains(&set.0),
                            "{what}, interpolated: {set:?} instead of {good:?} at {:?}",
                            truth.0
                        );
                    }
                }
                Err(error) if error.is_end_of_archive() => {
                    assert!(!allowed.missing.is_empty(), "{what}: {error}");
                }
                Err(error) => self.check_error(error, suffix, damaged.len(), &what),
            }
        }
    }

    /// Damages the metadata: opening fails, or it is as before but for the
    /// record that was hit, and where a warning says so for all behind it. A
    /// cut is no reason to fail unless there is no descriptor before it.
    fn try_metadata(&self, damage: &Damage, good: &Described) {
        let what = format!("{} meta {damage:?}", self.name);
        let bytes = &self.files[0].1;
        let damaged = damage.apply(bytes);
        let read = self.with("meta", &damaged, |context| {
            let described = Described::of(context, &self.list);
            let told = context.take_warnings();
            let forward = read(context, &self.list);
            at_times(context, &self.list, &self.times);
            (described, told, forward)
        });
        let places = records_of(bytes, self.label);
        if let Damage::Cut(at) = damage {
            let is_desc = |place: &&Range<usize>| word(bytes, place.start + 4) == 1;
            let first = places.iter().find(is_desc).expect("there are metrics");
            assert_eq!(read.is_ok(), *at >= first.end, "{what}");
        }
        let (described, told, forward) = match read {
            Ok(read) => read,
            Err(error) => return self.check_error(&error, "meta", damaged.len(), &what),
        };
        told.iter().for_each(|error| self.check_error(error, "meta", damaged.len(), &what));
        if let Damage::Cut(at) = damage {
            let is_between = *at == bytes.len() || places.iter().any(|place| place.start == *at);
            assert_eq!(told.len(), usize::from(!is_between), "{what}: {told:?}");
        }
        let order: Vec<usize> = (0..self.records.len()).collect();
        self.compare(&forward, &order, &Allowed::default(), &what);
        let (touched, has_moved) = damage.touches();
        let hit = places.into_iter().filter(|place| match has_moved || !told.is_empty() {
            // What is behind a cut is gone.
            true => place.end > touched.start,
            false => place.start < touched.end && touched.start < place.end,
        });
        let kinds: Vec<u32> = hit.map(|place| word(bytes, place.start + 4)).collect();
        let count = |kind: &[u32]| kinds.iter().filter(|found| kind.contains(found)).count();
        let differ = |a: &[String], b: &[String]| a.iter().zip(b).filter(|(a, b)| a != b).count();
        let descs = differ(&described.metrics, &good.metrics);
        assert!(descs <= 2 * count(&[1]), "{what}: {descs} metrics, {kinds:?}");
        let domains = differ(&described.domains, &good.domains);
        assert!(domains <= 2 * count(&[2, 5, 6]), "{what}: {domains} domains, {kinds:?}");
    }

    /// Damages the index: nothing changes.
    fn try_index(&self, damage: Option<&Damage>) {
        let what = format!("{} index {damage:?}", self.name);
        let bytes = &self.files[1].1;
        let damaged = damage.map_or_else(Vec::new, |damage| damage.apply(bytes));
        let middle = self.records[self.records.len() / 2].0;
        let read = self.with("index", &damaged, |context| {
            context.set_position(middle).expect("the volumes are good");
            let behind = read(context, &self.list);
            context.set_mode(Mode::Backward, Some(middle)).expect("a mode of archives");
            let before = read(context, &self.list);
            let between = at_times(context, &self.list, &self.times);
            (context.end_time(), behind, before, between, backward(context, &self.list))
        });
        let (end, behind, before, between, back) = read.unwrap_or_else(|e| panic!("{what}: {e}"));
        let good = |outcomes: Vec<Result<Fetched, SourceError>>| -> Vec<Fetched> {
            let one =
                |outcome: Result<_, SourceError>| outcome.unwrap_or_else(|e| panic!("{what}: {e}"));
            outcomes.into_iter().map(one).collect()
        };
        let from = self.records.iter().position(|record| record.0 >= middle).expect("it is there");
        assert!(good(behind) == self.records[from..], "{what}");
        let mut reverse = self.records.clone();
        reverse.reverse();
        assert!(good(back) == reverse, "{what}");
        reverse.retain(|record| record.0 <= middle);
        assert!(good(before) == reverse, "{what}");
        assert!(good(between) == self.between, "{what}");
        assert_eq!(end.ok(), Some(self.end), "{what}");
    }
}

/// What metadata says of metrics and domains.
struct Described {
    metrics: Vec<String>,
    domains: Vec<String>,
}

impl Described {
    fn of(context: &mut ArchiveContext, list: &FetchList) -> Described {
        let descs = context.lookup_descs(list.pmids()).expect("the file is there");
        let metrics = list.pmids().iter().zip(descs).map(|(pmid, desc)| {
            let names = context.names_of(*pmid).expect("the file is there");
            format!("{desc:?} {names:?}")
        });
        let metrics = metrics.collect();
        let domain = |indom| {
            let known = context.known_instances(indom).expect("the file is there");
            format!(
                "{:?}",
                known.map(|domain| format!("{:?}", domain.instances().collect::<Vec<_>>()))
            )
        };
        Described { metrics, domains: list.domains().iter().copied().map(domain).collect() }
    }
}

fn subjects() -> Vec<Subject> {
    vec![
        Subject::new("version 3", "own-dyn", 6, 1),
        Subject::new("version 2", "own-dyn2", 6, 1),
        Subject::new("two volumes", "own-dyn", 9, 2),
        Subject::new("all types", "own-types", 5, 1),
    ]
}

/// How many times the usual number of copies.
fn times() -> usize {
    std::env::var("PMDERIVE_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn volumes_cut_anywhere_give_what_is_left() {
    for subject in subjects() {
        for (suffix, bytes) in &subject.files {
            if suffix == "0" || suffix == "1" {
                for cut in 0..=bytes.len() {
                    // Within records every byte is like its neighbours.
                    let is_near = subject.places.iter().any(|(name, places)| {
                        name == suffix
                            && places.iter().any(|(place, _)| place.end.abs_diff(cut) < 6)
                    });
                    if is_near || cut.is_multiple_of((47 / times()).max(1)) {
                        subject.try_volume(suffix, &Damage::Cut(cut));
                    }
                }
            }
        }
    }
}

#[test]
fn damaged_volumes_give_no_wrong_number() {
    let mut random = Random(0x5eed);
    for subject in subjects() {
        for (suffix, bytes) in &subject.files {
            if suffix == "0" || suffix == "1" {
                for _ in 0..500 * times() {
                    subject.try_volume(suffix, &Damage::random(&mut random, bytes.len()));
                }
            }
        }
    }
}

#[test]
fn damaged_metadata_is_told_or_harmless() {
    let mut random = Random(0x3e7a);
    for subject in subjects() {
        let bytes = &subject.files[0].1;
        let good = subject.with("meta", bytes, |context| Described::of(context, &subject.list));
        let good = good.expect("it is good");
        for cut in (0..bytes.len()).step_by((7 / times()).max(1)) {
            subject.try_metadata(&Damage::Cut(cut), &good);
        }
        for _ in 0..400 * times() {
            subject.try_metadata(&Damage::random(&mut random, bytes.len()), &good);
        }
    }
}

#[test]
fn a_damaged_index_changes_nothing() {
    let mut random = Random(0x1dec);
    for subject in subjects() {
        let bytes = &subject.files[1].1;
        subject.try_index(None);
        for cut in (0..bytes.len()).step_by((41 / times()).max(1)) {
            subject.try_index(Some(&Damage::Cut(cut)));
        }
        for _ in 0..120 * times() {
            subject.try_index(Some(&Damage::random(&mut random, bytes.len())));
        }
    }
}

/// Programs that compress, with the suffix of what they make.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("xz", &["-0", "--block-size=1000"], ".xz"),
    ("xz", &["-0"], ".xz"),
    ("gzip", &[], ".gz"),
    ("bzip2", &["-1"], ".bz2"),
    ("zstd", &["-q", "--check"], ".zst"),
];

#[test]
fn damaged_compressed_files_give_a_prefix_and_an_error() {
    let mut random = Random(0xc0de);
    for (program, options, extension) in PROGRAMS {
        for changed in ["0", "meta", "index"] {
            let mut subject = Subject::new("compressed", "own-dyn", 7, 1);
            let made =
                Command::new(program).args(*options).arg("-c").arg(subject.path(changed)).output();
            let is_there = made.as_ref().is_ok_and(|output| output.status.success());
            if !available(is_there, program) {
                continue;
            }
            let made = made.expect("it was made").stdout;
            fs::remove_file(subject.path(changed)).expect("it is there");
            let suffix = format!("{changed}{extension}");
            fs::write(subject.path(&suffix), &made).expect("space");
            subject.files.push((suffix.clone(), made.clone()));
            let order: Vec<usize> = (0..subject.records.len()).collect();
            let reverse: Vec<usize> = order.iter().copied().rev().collect();
            let all = Allowed { missing: order.iter().copied().collect(), ..Allowed::default() };
            let cuts = (0..made.len()).step_by((43 / times()).max(1)).map(Damage::Cut);
            let others: Vec<Damage> =
                (0..60 * times()).map(|_| Damage::random(&mut random, made.len())).collect();
            for damage in cuts.chain(others) {
                let what = format!("{program} {options:?} {suffix} {damage:?}");
                let damaged = damage.apply(&made);
                // Decoders have tables and windows of their own.
                let read = subject.with(&suffix, &damaged, |context| {
                    let end = context.end_time();
                    (end, read(context, &subject.list), backward(context, &subject.list))
                });
                let (_, forward, back) = match read {
                    Ok(read) => read,
                    Err(error) => {
                        assert_ne!(changed, "index", "{what}: {error}");
                        subject.check_error(&error, &suffix, 1 << 20, &what);
                        continue;
                    }
                };
                let none = Allowed::default();
                let allowed = if changed == "0" { &all } else { &none };
                subject.compare(&forward, &order, allowed, &format!("{what}, forward"));
                subject.compare(&back, &reverse, allowed, &format!("{what}, backward"));
                let found = forward.iter().flatten().count();
                assert!(found == order.len() || forward.iter().any(Result::is_err), "{what}");
                for error in forward.iter().chain(&back).filter_map(|o| o.as_ref().err()) {
                    subject.check_error(error, &suffix, 1 << 20, &what);
                }
            }
        }
    }
}
