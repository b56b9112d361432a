//! An archive with what is hard to bring into a table.

use std::path::Path;

use pmderive_runtime::archive_writer::{ArchiveWriter, WriterOptions};
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, RawValue,
    Semantics, TextKind, TextSubject, Timestamp, Units, Value, ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};
use pmderive_testkit::archives;

const INDOM: InDom = InDom::new(60, 1);

const START: i64 = 1_700_000_000;

/// Texts that need quotes or escapes, or look like something else.
const TEXTS: [&str; 6] = ["", "a,b", "say \"x\"", "two\nlines\r", "hex:00", "f\u{fc}nf \u{1f41f}"];

const DOUBLES: [f64; 6] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, 0.1];

/// Writes the archive `base`: metrics `odd.TYPE` and `odd.set`, a record each
/// second for six seconds in two volumes; the instances of `odd.set` come and
/// go, and it fails once and has no values once.
pub fn write(base: &Path) {
    let options = WriterOptions {
        volume_bytes: Some(1500),
        ..archives::options("odd, or \"not\"", Timestamp::new(START, 0))
    };
    let mut writer = ArchiveWriter::create(base, options).expect("nothing is there");
    let desc = |item, value_type, indom, units| MetricDesc {
        pmid: Pmid::new(60, 0, item),
        value_type,
        indom,
        semantics: Semantics::Instant,
        units,
    };
    let types = [
        (1, ValueType::I32, "odd.i32"),
        (2, ValueType::U32, "odd.u32"),
        (3, ValueType::I64, "odd.i64"),
        (4, ValueType::U64, "odd.u64"),
        (5, ValueType::F32, "odd.float"),
        (6, ValueType::F64, "odd.double"),
        (7, ValueType::String, "odd.text"),
        (8, ValueType::Aggregate, "odd.block"),
        (9, ValueType::Event, "odd.events"),
    ];
    for (item, value_type, name) in types {
        writer.describe(&desc(item, value_type, None, Units::default()), &[name]).expect("new");
    }
    let bytes = Units { dim_space: 1, ..Units::default() };
    let set = desc(20, ValueType::String, Some(INDOM), bytes);
    writer.describe(&set, &["odd.set"]).expect("new");
    let metric = TextSubject::Metric(set.pmid);
    writer.text(metric, TextKind::OneLine, "one \"line\"").expect("it is described");
    writer.text(metric, TextKind::Help, "one line\nand another").expect("it is described");
    let start = Timestamp::new(START, 0);
    for (level, text) in
        [(LabelLevel::Context, "{\"a\":1,\"b\":\"x\"}"), (LabelLevel::Item(set.pmid), "{\"b\":2}")]
    {
        let labels = LabelSet::parse(text, LabelFlags(level.bit())).expect("JSON");
        writer.labels(start, level, &[labels]).expect("they fit");
    }
    for step in 0..6 {
        let at = usize::try_from(step).expect("small");
        let stamp = Timestamp::new(START + step, 123_456_789);
        // Two instances at a time; their names are as odd as the values.
        let ids = [at, at + 1];
        let name = |id: &usize| {
            let name = format!("{id} {}", TEXTS[id % TEXTS.len()]).replace(['\n', '\r'], ";");
            (i32::try_from(*id).expect("small"), name.into_boxed_str())
        };
        let domain = InstanceDomain::new(ids.iter().map(name).collect());
        writer.instances(stamp, INDOM, &domain).expect("in order");
        let single = |item, value| values(item, &[(-1, value)]);
        let texts: Vec<(i32, Value)> = ids
            .iter()
            .map(|id| (i32::try_from(*id).expect("small"), text(TEXTS[id % TEXTS.len()])))
            .collect();
        let sets = vec![
            single(1, Value::I32(i32::MIN + at as i32)),
            single(2, Value::U32(u32::MAX - at as u32)),
            single(3, Value::I64(i64::MIN + step)),
            single(4, Value::U64(u64::MAX - at as u64)),
            single(5, Value::F32(DOUBLES[at] as f32)),
            single(6, Value::F64(DOUBLES[at])),
            single(7, text(TEXTS[at])),
            single(8, Value::Aggregate(TEXTS[at].as_bytes().into())),
            single(9, Value::Event([0; 4].into())),
            match step {
                2 => MetricValues { pmid: set.pmid, outcome: Err(PmStatus::AGAIN) },
                3 => MetricValues { pmid: set.pmid, outcome: Ok(Vec::new()) },
                _ => values(20, &texts),
            },
        ];
        let result = FetchResult { timestamp: stamp, sets, ..FetchResult::default() };
        writer.record(&result).expect("all is described");
    }
    writer.finish().expect("it can be written");
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn values(item: u32, values: &[(i32, Value)]) -> MetricValues {
    let value = |(instance, value): &(i32, Value)| InstanceValue {
        instance: *instance,
        value: RawValue::encode(value),
    };
    MetricValues { pmid: Pmid::new(60, 0, item), outcome: Ok(values.iter().map(value).collect()) }
}
