//! An archive, and a pmcd, in which every text is one that a terminal would obey.

use std::path::Path;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::archive_writer::{ArchiveWriter, WriterOptions};
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelSet, MetricDesc, Pmid, RawValue, Semantics,
    TextKind, TextSubject, Timestamp, Units, Value, ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};
use pmderive_testkit::archives;
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Script, World};

/// A colour, the title of the window, one control character of each kind, an
/// overriding of the direction, invisible characters, and an end of line behind
/// which a line of one's own might be expected.
pub const HOSTILE: &str = "\x1b[45m\x1b]0;x\x07\u{9b}45m\u{202e}\u{200b}\u{feff}\u{e0041}\r\x08\x7f\tTAB\u{2028}\nINJECTED";

/// The same as it is shown on one line.
pub const SHOWN: &str = "\\x1b[45m\\x1b]0;x\\x07\\u{9b}45m\\u{202e}\\u{200b}\\u{feff}\\u{e0041}\\x0d\\x08\\x7f\\x09TAB\\u{2028}\\x0aINJECTED";

const INDOM: InDom = InDom::new(60, 1);

fn metric(item: u32, value_type: ValueType, indom: Option<InDom>) -> MetricDesc {
    let semantics = Semantics::Instant;
    let units = Units::default();
    MetricDesc { pmid: Pmid::new(60, 0, item), value_type, indom, semantics, units }
}

/// An event with such a text as the value of a metric.
pub fn event(pmid: Pmid) -> Vec<u8> {
    let text = format!("event{HOSTILE}\0");
    let head = ValueType::String.code().cast_unsigned() << 24 | (text.len() as u32 + 4);
    let mut bytes = Vec::new();
    for word in [1, 1_700_000_000, 0, 1, 1, pmid.0, head] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(text.bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Writes the archive: `evil.set` has instances with such names, one of them
/// not UTF-8, `evil.text` such values, `evil.number` is what it should be.
pub fn write(base: &Path) {
    let start = Timestamp::new(1_700_000_000, 0);
    let options = WriterOptions {
        timezone: format!("UTC{HOSTILE}").into(),
        zoneinfo: format!(":UTC{HOSTILE}").into(),
        ..archives::options(&format!("host{HOSTILE}"), start)
    };
    let mut writer = ArchiveWriter::create(base, options).expect("an archive");
    let metrics = [
        (metric(1, ValueType::U32, Some(INDOM)), "evil.set"),
        (metric(2, ValueType::String, None), "evil.text"),
        (metric(3, ValueType::U32, None), "evil.number"),
        (metric(4, ValueType::String, Some(INDOM)), "evil.texts"),
        (metric(5, ValueType::Event, None), "evil.events"),
    ];
    for (desc, name) in &metrics {
        writer.describe(desc, &[name]).expect("it is new");
        let subject = TextSubject::Metric(desc.pmid);
        let line = format!("one line{HOSTILE}");
        writer.text(subject, TextKind::OneLine, &line).expect("it is described");
        // Tabs and ends of lines of a help text are its own.
        let own: String = HOSTILE.chars().filter(|c| !matches!(c, '\n' | '\t')).collect();
        let help = format!("help\ngoes on{own}");
        writer.text(subject, TextKind::Help, &help).expect("it is described");
    }
    // In JSON control characters of ASCII are escaped already.
    let text = HOSTILE.chars().filter(|c| !c.is_ascii_control()).collect::<String>();
    for level in [LabelLevel::Context, LabelLevel::Item(metrics[0].0.pmid)] {
        let json = format!("{{\"label{}\":\"{text}\"}}", level.bit());
        let set = LabelSet::parse(&json, LabelFlags(level.bit())).expect("it is JSON");
        writer.labels(start, level, &[set]).expect("they fit");
    }
    let names = [format!("inst{HOSTILE}"), "\u{9b}45m gr\u{fc}n".to_owned(), "plain".to_owned()];
    let instances = (0..).zip(names.map(String::into_boxed_str)).collect();
    let domain = InstanceDomain::new(instances).with_names_in_bytes(vec![1]);
    writer.instances(start, INDOM, &domain).expect("new");
    for step in 0..3 {
        let stamp = Timestamp::new(1_700_000_000 + step, 0);
        let one = |instance, value: RawValue| InstanceValue { instance, value };
        let text = || RawValue::encode(&Value::Text(format!("text{HOSTILE}").into()));
        let number = |value| RawValue::encode(&Value::U32(value));
        let bytes = RawValue::Block { code: 6, bytes: b"\x9b45m gr\xfcn\0".as_slice().into() };
        let sets = [
            (0..3).map(|id| one(id, number(step as u32))).collect(),
            vec![one(-1, text())],
            vec![one(-1, number(step as u32))],
            vec![one(0, text()), one(1, bytes)],
            vec![one(-1, RawValue::encode(&Value::Event(event(metrics[1].0.pmid).into())))],
        ];
        let values = |(desc, values): (&(MetricDesc, &str), Vec<InstanceValue>)| MetricValues {
            pmid: desc.0.pmid,
            outcome: Ok(values),
        };
        let sets = metrics.iter().zip(sets).map(values).collect();
        let record = FetchResult { timestamp: stamp, sets, ..FetchResult::default() };
        writer.record(&record).expect("it is recorded");
    }
    writer.finish().expect("it is written");
}

/// A pmcd with the metrics of the archive, whose values are such texts as well.
pub fn serve(base: &Path) -> FakePmcd {
    let mut archive = ArchiveContext::open(base).expect("an archive");
    let mut world = World::new();
    let script = |_: &str, desc: &MetricDesc| match desc.value_type {
        ValueType::String => Script::constant(Value::Text(format!("text{HOSTILE}").into())),
        ValueType::Event => Script::constant(Value::Event(event(Pmid::new(60, 0, 2)).into())),
        _ => Script::constant(7u32),
    };
    world.take_over(&mut archive, &["evil"], script).expect("they are in the archive");
    FakePmcd::start(FakeHost::new(world).named(format!("host{HOSTILE}")))
}
