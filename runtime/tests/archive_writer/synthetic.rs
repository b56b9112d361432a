//! Small archives that contain everything the format has.

use pmderive_runtime::archive::{ArchiveContext, Version};
use pmderive_runtime::archive_writer::{ArchiveWriter, WriterOptions};
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, RawValue,
    Semantics, TextKind, TextSubject, Timestamp, Units, Value, ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};

use pmderive_runtime::source::{Freshness, MetadataSource};

use crate::tools::{print, scratch};

pub const INDOM: InDom = InDom::new(60, 1);

pub fn options(version: Version) -> WriterOptions {
    WriterOptions {
        version,
        start: Timestamp::new(1_700_000_000, 500_000_000),
        host: "writer.example".into(),
        timezone: "AEST-10".into(),
        zoneinfo: ":Australia/Brisbane".into(),
        pid: 4711,
        volume_bytes: None,
    }
}

/// A metric whose item is the code of its type.
pub fn desc(item: u32, value_type: ValueType, indom: Option<InDom>) -> MetricDesc {
    let pmid = Pmid::new(60, 0, item);
    let semantics = Semantics::Instant;
    MetricDesc { pmid, value_type, indom, semantics, units: Units::default() }
}

pub fn domain(instances: &[(i32, &str)]) -> InstanceDomain {
    InstanceDomain::new(instances.iter().map(|(id, name)| (*id, Box::from(*name))).collect())
}

/// A set of the metric with item `item`, with a value for each of the instances.
fn set(item: u32, values: &[(i32, Value)]) -> MetricValues {
    let value = |(instance, value): &(i32, Value)| InstanceValue {
        instance: *instance,
        value: RawValue::encode(value),
    };
    MetricValues { pmid: Pmid::new(60, 0, item), outcome: Ok(values.iter().map(value).collect()) }
}

pub fn result(sec: i64, nsec: i64, sets: Vec<MetricValues>) -> FetchResult {
    FetchResult { timestamp: Timestamp::new(sec, nsec), sets, ..FetchResult::default() }
}

/// Writes an archive with every type, an instance that comes and one that
/// goes, a mark, two volumes, labels of all levels and texts.
pub fn write_everything(mut writer: ArchiveWriter) {
    let types = [
        ValueType::I32,
        ValueType::U32,
        ValueType::I64,
        ValueType::U64,
        ValueType::F32,
        ValueType::F64,
        ValueType::String,
        ValueType::Aggregate,
    ];
    for (value_type, item) in types.into_iter().zip(1..) {
        let name = format!("test.{}", value_type.name().to_lowercase());
        writer.describe(&desc(item, value_type, None), &[&name]).expect("it is new");
    }
    writer
        .describe(&desc(20, ValueType::U32, Some(INDOM)), &["test.set", "test.other"])
        .expect("new");
    let metric = Pmid::new(60, 0, 20);
    let start = Timestamp::new(1_700_000_000, 500_000_000);
    for (of, text) in
        [(TextSubject::Metric(metric), "a metric"), (TextSubject::Domain(INDOM), "a domain")]
    {
        writer.text(of, TextKind::OneLine, text).expect("it is described");
        writer
            .text(of, TextKind::Help, &format!("{text}\nand more of it"))
            .expect("it is described");
    }
    let levels = [
        LabelLevel::Context,
        LabelLevel::Domain(60),
        LabelLevel::InDom(INDOM),
        LabelLevel::Cluster(metric),
        LabelLevel::Item(metric),
    ];
    for level in levels {
        let text = format!("{{\"level\":{},\"name\":\"x\"}}", level.bit());
        let set = LabelSet::parse(&text, LabelFlags(level.bit())).expect("it is JSON");
        writer.labels(start, level, &[set]).expect("they fit");
    }
    writer.instances(start, INDOM, &domain(&[(0, "zero"), (1, "one"), (7, "seven")])).expect("new");
    let level = LabelLevel::Instances(INDOM);
    let sets = [0, 7].map(|id| {
        let text = format!("{{\"id\":{id}}}");
        LabelSet::parse(&text, LabelFlags(level.bit())).expect("it is JSON").of_instance(id)
    });
    writer.labels(start, level, &sets).expect("they fit");
    for step in 0..20 {
        let stamp = Timestamp::new(1_700_000_000 + step, 500_000_123);
        if step == 5 {
            let list = domain(&[(0, "zero"), (3, "three of them"), (7, "seven")]);
            writer.instances(stamp, INDOM, &list).expect("it changed");
        }
        if step == 10 {
            writer.mark(Timestamp::new(1_700_000_009, 501_000_123)).expect("in order");
        }
        let sets = vec![
            set(1, &[(-1, Value::I32(-5 - step as i32))]),
            set(2, &[(-1, Value::U32(u32::MAX))]),
            set(3, &[(-1, Value::I64(i64::MIN + step))]),
            set(4, &[(-1, Value::U64(u64::MAX))]),
            set(5, &[(-1, Value::F32(1.5))]),
            set(6, &[(-1, Value::F64(-2.25))]),
            set(7, &[(-1, Value::Text("five\u{fc}".into()))]),
            set(8, &[(-1, Value::Aggregate(Box::new([1, 2, 3, 4, 5])))]),
            match step {
                3 => MetricValues { pmid: metric, outcome: Err(PmStatus::AGAIN) },
                4 => MetricValues { pmid: metric, outcome: Ok(Vec::new()) },
                _ => set(20, &[(0, Value::U32(10)), (7, Value::U32(70))]),
            },
        ];
        writer.record(&result(stamp.sec, stamp.nsec.into(), sets)).expect("all is described");
    }
    writer.finish().expect("there is room");
}

#[test]
fn pmlogcheck_finds_nothing() {
    for version in [Version::V2, Version::V3] {
        let folder = scratch();
        let base = folder.path().join("all");
        let options = WriterOptions { volume_bytes: Some(2000), ..options(version) };
        write_everything(ArchiveWriter::create(&base, options).expect("nothing is there"));
        let Some(found) = print("pmlogcheck", &[], &base) else { return };
        assert_eq!(found, "");
    }
}

#[test]
fn pcps_tools_read_and_copy_them() {
    for version in [Version::V2, Version::V3] {
        let folder = scratch();
        let base = folder.path().join("all");
        let options = WriterOptions { volume_bytes: Some(2000), ..options(version) };
        write_everything(ArchiveWriter::create(&base, options).expect("nothing is there"));
        let text = |path: &str| folder.path().join(path).display().to_string();
        let (all, copy, rules) = (text("all"), text("copy"), text("rules"));
        std::fs::write(&rules, "metric test.u32 { name -> test.other_u32 }\n")
            .expect("there is room");
        // Commands, and lines of their output.
        let runs: [(&str, &[&str], &[&str]); 5] = [
            (
                "pminfo",
                &["-f", "-l", "-t", "-a", &all, "test.set"],
                &[
                    "test.set [a metric]",
                    "    inst [0 or \"zero\"] labels {\"id\":0,\"level\":16,\"name\":\"x\"}",
                    "    inst [7 or \"seven\"] value 70",
                ],
            ),
            (
                "pmval",
                &["-z", "-s", "1", "-S", "@24:00", "-O", "0", "-a", &all, "test.double"],
                &["metric:    test.double", "host:      writer.example"],
            ),
            (
                "pmrep",
                &["-a", &all, "-s", "3", "-o", "csv", "test.set"],
                &[
                    "Time,\"test.set-zero\",\"test.set-three of them\",\"test.set-seven\",\"test.set-one\"",
                ],
            ),
            ("pmlogextract", &[&all, &copy], &[]),
            ("pmlogrewrite", &["-i", "-c", &rules, &copy], &[]),
        ];
        for (tool, arguments, lines) in runs {
            let (last, first) = arguments.split_last().expect("there are some");
            let Some(printed) = print(tool, first, last.as_ref()) else { return };
            for line in lines {
                assert!(printed.lines().any(|found| found == *line), "{tool}:\n{printed}");
            }
            assert!(!printed.contains("exit status"), "{tool} {arguments:?}:\n{printed}");
            if lines.is_empty() {
                assert_eq!(printed, "", "{tool} {arguments:?}");
            }
        }
        let dump =
            |base: &str| print("pmdumplog", &["-m"], base.as_ref()).expect("it is installed");
        assert!(dump(&copy).contains("test.other_u32"), "rewritten");
        let values = |text: String| text.replace("test.other_u32", "test.u32");
        assert_eq!(values(dump(&copy)), dump(&all));
    }
}

/// A domain and labels that come, go, and come again.
#[test]
fn domains_and_labels_may_become_empty() {
    for version in [Version::V2, Version::V3] {
        let folder = scratch();
        let base = folder.path().join("empty");
        let mut writer = ArchiveWriter::create(&base, options(version)).expect("nothing is there");
        writer.describe(&desc(20, ValueType::U32, Some(INDOM)), &["test.set"]).expect("it is new");
        let level = LabelLevel::Instances(INDOM);
        for step in 0..5 {
            let stamp = Timestamp::new(1_700_000_001 + step, 0);
            let list: &[(i32, &str)] = if step % 2 == 0 { &[] } else { &[(1, "one"), (2, "two")] };
            let label = |(id, _): &(i32, &str)| {
                let text = format!("{{\"step\":{step}}}");
                LabelSet::parse(&text, LabelFlags(32)).expect("it is JSON").of_instance(*id)
            };
            let labels: Vec<LabelSet> = list.iter().map(label).collect();
            writer.instances(stamp, INDOM, &domain(list)).expect("in order");
            writer.labels(stamp, level, &labels).expect("in order");
            let values: Vec<_> = list.iter().map(|(id, _)| (*id, Value::U32(5))).collect();
            writer.record(&result(stamp.sec, 0, vec![set(20, &values)])).expect("it is good");
        }
        writer.finish().expect("there is room");
        let mut context = ArchiveContext::open(&base).expect("it is good");
        let mut sizes = Vec::new();
        while context.next_record().is_ok() {
            let domain = context.instance_domain(INDOM, Freshness::Cached).expect("it is good");
            let labels = context.labels(level).expect("it is good").expect("labels");
            let labels = labels.iter().flat_map(LabelSet::labels).count();
            sizes.push((domain.map(|domain| domain.len()).ok(), labels));
        }
        // Version 2 cannot say that a domain has become empty.
        let gone = if version == Version::V2 { 2 } else { 0 };
        let expected = [(None, 0), (Some(2), 2), (Some(gone), 0), (Some(2), 2), (Some(gone), 0)];
        assert_eq!(sizes, expected, "{version:?}");
        let Some(found) = print("pmlogcheck", &[], &base) else { return };
        assert_eq!(found, "", "{version:?}");
        let dump = print("pmdumplog", &["-i"], &base).expect("it is installed");
        let gone = dump.matches(" 0 instances").count();
        assert_eq!(gone, if version == Version::V2 { 0 } else { 2 }, "{dump}");
    }
}

/// Parts of event records may have no name. libpcp refuses an archive that does
/// not record the missing name.
#[test]
fn a_metric_without_a_name() {
    for version in [Version::V2, Version::V3] {
        let folder = scratch();
        let base = folder.path().join("a");
        let mut writer = ArchiveWriter::create(&base, options(version)).expect("it is new");
        writer.describe(&desc(1, ValueType::I32, None), &["test.named"]).expect("it is new");
        writer.describe(&desc(2, ValueType::U32, None), &[]).expect("it is new");
        let sets = vec![set(1, &[(-1, Value::I32(5))]), set(2, &[(-1, Value::U32(6))])];
        writer.record(&result(1_700_000_001, 0, sets)).expect("both are described");
        writer.finish().expect("there is room");
        let mut context = ArchiveContext::open(&base).expect("it is good");
        let record = context.next_record().expect("it is good");
        assert_eq!(record.sets.len(), 2, "{version:?}");
        let Some(dump) = print("pmdumplog", &["-d", "-m"], &base) else { return };
        assert!(dump.contains("60.0.2 (<noname"), "{version:?}: {dump}");
        assert!(dump.contains("60.0.1 (test.named): value 5"), "{version:?}: {dump}");
    }
}
