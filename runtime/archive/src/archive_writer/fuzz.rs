//! Fuzz target of the writer: reading returns the written data.
//!
//! Input: arbitrary bytes, taken as a sequence of calls, many of them wrong. Output:
//! none. Our reader must return everything that the writer accepted, in order and with
//! its time, and nothing that it refused. This does not touch the file system.

use std::collections::HashMap;

use pmderive_core::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, RawValue,
    Semantics, TextKind, TextSubject, Timestamp, Units, ValueType,
};
use pmderive_core::result::{FetchResult, InstanceValue, MetricValues};
use pmderive_core::source::{Freshness, MetadataSource};

use crate::archive::{ArchiveContext, Version};
use crate::archive_writer::{ArchiveWriter, WriterOptions};

/// Maximum number of calls that one input makes.
const MAX_CALLS: usize = 500;

/// Number of different metrics and of instance domains.
const METRICS: u8 = 24;
const DOMAINS: u8 = 3;

/// Everything that the writer accepted and a reader can give back.
#[derive(Default)]
struct Expected {
    version: Option<Version>,
    descs: HashMap<Pmid, MetricDesc>,
    domains: HashMap<InDom, Vec<(i32, Box<str>)>>,
    labels: HashMap<LabelLevel, Vec<LabelSet>>,
    texts: HashMap<TextSubject, Box<str>>,
    /// Each record with the instances and labels in force at its time.
    records: Vec<Moment>,
}

struct Moment {
    result: FetchResult,
    domains: HashMap<InDom, Vec<(i32, Box<str>)>>,
    labels: HashMap<LabelLevel, Vec<LabelSet>>,
}

/// Reads small numbers and strings from the input; zeros after its end.
struct Input<'d>(&'d [u8]);

impl<'d> Input<'d> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    fn bytes(&mut self, length: usize) -> &'d [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    fn text(&mut self) -> String {
        let length = self.below(8).into();
        self.bytes(length).iter().map(|byte| char::from(*byte)).collect()
    }
}

/// Writes an archive and reads it again.
///
/// # Panics
/// If the data read differ from the data written.
#[doc(hidden)]
pub fn fuzz_archive_writer(data: &[u8]) {
    let mut input = Input(data);
    let first = input.byte();
    let options = WriterOptions {
        version: if first & 1 == 0 { Version::V3 } else { Version::V2 },
        start: Timestamp::new(i64::from(first) << (first & 0x1f), 5000),
        host: input.text().into(),
        timezone: input.text().into(),
        zoneinfo: input.text().into(),
        pid: i32::from(first),
        volume_bytes: (first & 2 != 0).then(|| 1000 + 8 * u64::from(input.byte())),
    };
    let mut time = options.start;
    let Ok((mut writer, written)) = ArchiveWriter::in_memory(options.clone()) else { return };
    let mut expected = Expected { version: Some(options.version), ..Expected::default() };
    for _ in 0..MAX_CALLS {
        if input.0.is_empty() {
            break;
        }
        let call = input.byte();
        // Time moves forward, stands still or moves back.
        time = Timestamp::new(time.sec, i64::from(time.nsec) + 1001 * i64::from(call >> 4) - 1001);
        match call & 7 {
            0 | 1 => expected.describe(&mut writer, &mut input),
            2 => expected.instances(&mut writer, &mut input, time),
            3 => expected.labels(&mut writer, &mut input, time),
            4 => expected.text(&mut writer, &mut input),
            5 if call & 8 == 0 => {
                if writer.mark(time).is_ok() {
                    expected.recorded(FetchResult { timestamp: time, ..FetchResult::default() });
                }
            }
            _ => {
                let result = expected.result(&mut input, time);
                if writer.record(&result).is_ok() {
                    expected.recorded(result);
                }
            }
        }
        time = time.max(options.start);
    }
    let is_empty = expected.records.is_empty();
    assert_eq!(writer.finish().is_err(), is_empty, "only an archive without records is none");
    if !is_empty && !expected.descs.is_empty() {
        let context = written.open(written.sizes().len(), 0);
        expected.compare(context.expect("what was written can be opened"), options.version);
    }
}

fn indom(number: u8) -> InDom {
    InDom::new(60, number.into())
}

impl Expected {
    fn describe(&mut self, writer: &mut ArchiveWriter, input: &mut Input<'_>) {
        let number = input.below(METRICS);
        let desc = MetricDesc {
            pmid: Pmid::new(60, 0, number.into()),
            value_type: ValueType::from_code(i32::from(number) % 12 - 1),
            indom: (number & 4 != 0).then(|| indom(number % DOMAINS)),
            semantics: Semantics::from_code(input.below(5).into()),
            units: Units::from_wire(u32::from(input.below(3)) << 20),
        };
        let name = format!("a.{}", input.text());
        if writer.describe(&desc, &[&name]).is_ok() {
            self.descs.insert(desc.pmid, desc);
        }
    }

    fn instances(&mut self, writer: &mut ArchiveWriter, input: &mut Input<'_>, time: Timestamp) {
        let indom = indom(input.below(DOMAINS));
        let count = input.below(12);
        let instance = |_| (i32::from(input.byte()) - 2, Box::from(input.text()));
        let domain = InstanceDomain::new((0..count).map(instance).collect());
        if writer.instances(time, indom, &domain).is_ok() {
            let mut list: Vec<_> = domain.instances().map(|(id, name)| (id, name.into())).collect();
            list.sort_by_key(|(id, _)| *id);
            list.dedup_by_key(|(id, _)| *id);
            self.domains.insert(indom, list);
            self.holds_at_last_record(time);
        }
    }

    fn labels(&mut self, writer: &mut ArchiveWriter, input: &mut Input<'_>, time: Timestamp) {
        let pmid = Pmid::new(60, 0, input.below(METRICS).into());
        let level = match input.below(6) {
            0 => LabelLevel::Context,
            1 => LabelLevel::Domain(60),
            2 => LabelLevel::InDom(indom(input.below(DOMAINS))),
            3 => LabelLevel::Cluster(pmid).of_cluster(),
            4 => LabelLevel::Item(pmid),
            _ => LabelLevel::Instances(indom(input.below(DOMAINS))),
        };
        let mut set = |_| {
            let instance = i32::from(input.below(5)) - 1;
            match input.below(3) {
                0 => LabelSet::empty(instance),
                1 => LabelSet::failed(instance, PmStatus(i32::from(input.byte()) - 200)),
                _ => {
                    let text = format!("{{\"a\":{}}}", input.byte());
                    let set = LabelSet::parse(&text, LabelFlags(level.bit()));
                    set.expect("it is JSON").of_instance(instance)
                }
            }
        };
        let sets: Vec<LabelSet> = (0..1 + level.bit() / 32 * 2).map(&mut set).collect();
        if writer.labels(time, level, &sets).is_ok() {
            self.labels.insert(level, sets);
            self.holds_at_last_record(time);
        }
    }

    fn text(&mut self, writer: &mut ArchiveWriter, input: &mut Input<'_>) {
        let of = match input.below(2) {
            0 => TextSubject::Metric(Pmid::new(60, 0, input.below(METRICS).into())),
            _ => TextSubject::Domain(indom(input.below(DOMAINS))),
        };
        let text = input.text();
        if writer.text(of, TextKind::OneLine, &text).is_ok() {
            self.texts.insert(of, text.into());
        }
    }

    /// A result that is mostly valid, as far as this model knows.
    fn result(&self, input: &mut Input<'_>, timestamp: Timestamp) -> FetchResult {
        let mut sets = Vec::new();
        for _ in 0..input.below(6) {
            let pmid = Pmid::new(60, 0, input.below(METRICS).into());
            let kind = input.byte();
            let outcome = match kind & 7 {
                0 => Err(PmStatus(i32::from(kind) - 250)),
                1 => Ok(Vec::new()),
                _ => Ok(self.values(input, pmid, kind)),
            };
            sets.push(MetricValues { pmid, outcome });
        }
        FetchResult { timestamp, sets, ..FetchResult::default() }
    }

    fn values(&self, input: &mut Input<'_>, pmid: Pmid, kind: u8) -> Vec<InstanceValue> {
        let desc = self.descs.get(&pmid);
        let list = desc.and_then(|desc| self.domains.get(&desc.indom?));
        let instances: Vec<i32> = match (desc.map(|desc| desc.indom), list) {
            (Some(Some(_)), Some(list)) => list.iter().map(|(id, _)| *id).collect(),
            _ => vec![-1],
        };
        let count = usize::from(kind >> 5);
        let of_type = desc.map_or(ValueType::U32, |desc| desc.value_type);
        let mut value = |instance| {
            let value_type = match kind & 0x18 {
                0x18 => ValueType::from_code(input.below(12).into()),
                _ => of_type,
            };
            let bytes: Box<[u8]> = match value_type {
                ValueType::I32 | ValueType::U32 => {
                    let value = RawValue::InPlace(input.byte().into());
                    return InstanceValue { instance, value };
                }
                ValueType::F32 => vec![input.byte(); 4].into(),
                ValueType::I64 | ValueType::U64 | ValueType::F64 => vec![input.byte(); 8].into(),
                ValueType::Event | ValueType::HighResEvent => vec![0; 4].into(),
                _ => input.text().into_bytes().into(),
            };
            let code = value_type.code() as u8;
            InstanceValue { instance, value: RawValue::Block { code, bytes } }
        };
        match kind & 0x10 {
            0 => instances.into_iter().take(count.max(1)).map(&mut value).collect(),
            _ => instances.into_iter().rev().take(count.max(1)).map(&mut value).collect(),
        }
    }

    /// Instances and labels written after the last record may have its time.
    fn holds_at_last_record(&mut self, time: Timestamp) {
        if let Some(last) = self.records.last_mut()
            && stored(self.version, last.result.timestamp) == stored(self.version, time)
        {
            last.domains = self.domains.clone();
            last.labels = self.labels.clone();
        }
    }

    fn recorded(&mut self, result: FetchResult) {
        let (domains, labels) = (self.domains.clone(), self.labels.clone());
        self.records.push(Moment { result, domains, labels });
    }

    fn compare(self, mut context: ArchiveContext, version: Version) {
        let stored = |time| stored(Some(version), time);
        for (number, moment) in self.records.iter().enumerate() {
            let read = context.next_record().expect("there is a further record");
            assert_eq!(read.timestamp, stored(moment.result.timestamp), "record {number}");
            compare_sets(&read.sets, &moment.result.sets);
            // Only after the last record of a time is everything of that time in force.
            let next = self.records.get(number + 1);
            let at = |moment: &Moment| stored(moment.result.timestamp);
            if next.is_some_and(|next| at(next) == read.timestamp) {
                continue;
            }
            compare_moment(&mut context, moment, version);
        }
        assert!(context.next_record().is_err_and(|error| error.is_end_of_archive()));
        for (pmid, desc) in self.descs {
            assert_eq!(context.lookup_descs(&[pmid]).expect("in memory"), [Ok(desc)]);
        }
        for (of, text) in self.texts {
            assert_eq!(context.text(of, TextKind::OneLine).expect("in memory"), Ok(text));
        }
    }
}

/// The time as the archive stores it.
fn stored(version: Option<Version>, time: Timestamp) -> Timestamp {
    match version {
        Some(Version::V2) => Timestamp { sec: time.sec, nsec: time.nsec / 1000 * 1000 },
        _ => time,
    }
}

/// Asserts that both lists have the same metrics with the same values. The two kinds of
/// aggregates count as one.
fn compare_sets(read: &[MetricValues], written: &[MetricValues]) {
    assert_eq!(read.len(), written.len());
    for (read, written) in read.iter().zip(written) {
        assert_eq!((read.pmid, read.outcome.is_ok()), (written.pmid, written.outcome.is_ok()));
        let (Ok(read), Ok(written)) = (&read.outcome, &written.outcome) else {
            assert_eq!(read.outcome, written.outcome);
            continue;
        };
        assert_eq!(read.len(), written.len());
        for (read, written) in read.iter().zip(written) {
            assert_eq!(read.instance, written.instance);
            match (&read.value, &written.value) {
                (
                    RawValue::Block { code: 7 | 8, bytes },
                    RawValue::Block { code: 7 | 8, bytes: b },
                ) => {
                    assert_eq!(bytes, b);
                }
                (RawValue::Block { code: 4, bytes }, RawValue::InPlace(word)) => {
                    assert_eq!(**bytes, word.to_be_bytes());
                }
                (read, written) => assert_eq!(read, written),
            }
        }
    }
}

/// Asserts that the instances and labels in force at a record are those written for it.
fn compare_moment(context: &mut ArchiveContext, moment: &Moment, version: Version) {
    for (indom, list) in &moment.domains {
        let read = context.instance_domain(*indom, Freshness::Cached).expect("in memory");
        // Version 2 cannot say that a domain has become empty.
        if list.is_empty() && version == Version::V2 {
            continue;
        }
        let read = read.map(|domain| {
            domain.instances().map(|(id, name)| (id, Box::from(name))).collect::<Vec<_>>()
        });
        assert!(read.as_ref() == Ok(list) || list.is_empty() && read.is_err(), "{read:?} {list:?}");
    }
    for (level, sets) in &moment.labels {
        let read = context.labels(*level).expect("in memory").expect("labels");
        assert_eq!(&read, sets, "{level:?}");
    }
}
