//! Archives with what is rare in real ones: numbers at the borders of formats,
//! every type, every scale of time, instances that come and go, records with
//! errors and without values, marks, event records of every kind.

use std::path::Path;

use pmderive_runtime::model::{InDom, MetricDesc, Pmid, Semantics, Units, Value, ValueType};

use super::archive_writer::{ArchiveWriter, Values};

const START: u32 = 1_700_000_000;

/// Not supported by this version of the application (`PM_ERR_APPVERSION`).
const FAILURE: i32 = -12350;

/// What counts seconds.
const SECONDS: Units = Units { dim_time: 1, scale_time: 3, ..Units::NONE };

fn desc(item: u32, value_type: ValueType) -> MetricDesc {
    MetricDesc {
        pmid: Pmid::new(100, item / 1000, item % 1000),
        value_type,
        indom: None,
        semantics: Semantics::Instant,
        units: Units::NONE,
    }
}

fn single(value: Value) -> Values {
    Ok(vec![(-1, value)])
}

/// Numbers that are laid out differently, or just not yet.
const NUMBERS: [f64; 51] = [
    0.0,
    0.1,
    0.0999999,
    0.09999,
    0.05,
    1e-5,
    0.9999,
    0.99991,
    0.99989,
    0.99994,
    0.99995,
    1.0,
    9.999,
    9.9991,
    9.99899,
    9.9995,
    10.0,
    99.99,
    99.991,
    99.995,
    100.0,
    999.9,
    999.94,
    999.95,
    999.99,
    1000.0,
    9999.0,
    9998.9,
    9999.1,
    9999.5,
    10000.0,
    1e10,
    1e100,
    1e-100,
    -0.0,
    -1.0,
    -0.05,
    -5.5,
    -50.0,
    -500.0,
    -5000.0,
    -50000.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    3.25,
    31.4159,
    314.159,
    3141.59,
    1e-320,
    0.5,
];

/// Names of the metrics of [`numbers`].
pub const NUMBER_METRICS: &[&str] = &[
    "odd.f32",
    "odd.f64",
    "odd.i32",
    "odd.u32",
    "odd.i64",
    "odd.u64",
    "odd.text",
    "odd.bytes",
    "odd.discrete",
    "odd.bytes_count",
    "odd.wrapping",
    "odd.falling",
    "odd.nanosec",
    "odd.microsec",
    "odd.millisec",
    "odd.min",
    "odd.hour",
    "odd.day",
    "odd.time_squared",
    "odd.per_time",
    "odd.mbyte_time",
    "odd.thousands",
    "odd.plain",
    "odd.f32_count",
    "odd.f64_count",
    "odd.text_count",
    "odd.never",
    "odd.nosuch",
    "odd",
];

/// Single values of every type and counters of every unit, one record a second.
pub fn numbers(base: &Path) {
    use ValueType::*;
    let mut archive = ArchiveWriter::new((START, 0));
    let plain = [
        ("odd.f32", F32),
        ("odd.f64", F64),
        ("odd.i32", I32),
        ("odd.u32", U32),
        ("odd.i64", I64),
        ("odd.u64", U64),
        ("odd.text", String),
        ("odd.bytes", Aggregate),
    ];
    for (item, (name, value_type)) in (1..).zip(plain) {
        archive.metric(name, desc(item, value_type));
    }
    archive.metric("odd.discrete", MetricDesc { semantics: Semantics::Discrete, ..desc(9, U32) });
    archive.metric("odd.never", desc(10, U32));
    let time = |dim_time, scale_time| Units { dim_time, scale_time, ..Units::NONE };
    let bytes = Units { dim_space: 1, scale_space: 1, ..Units::NONE };
    let counters = [
        ("odd.bytes_count", U64, bytes),
        ("odd.wrapping", U32, Units { dim_count: 1, ..Units::NONE }),
        ("odd.falling", I32, Units { dim_count: 1, scale_count: -3, ..Units::NONE }),
        ("odd.nanosec", U64, time(1, 0)),
        ("odd.microsec", U64, time(1, 1)),
        ("odd.millisec", U64, time(1, 2)),
        ("odd.min", U32, time(1, 4)),
        ("odd.hour", U32, time(1, 5)),
        ("odd.day", U32, time(1, 6)),
        ("odd.time_squared", U64, time(2, 2)),
        ("odd.per_time", U64, Units { dim_count: 1, ..time(-1, 3) }),
        ("odd.mbyte_time", U64, Units { dim_space: 1, scale_space: 2, ..SECONDS }),
        ("odd.thousands", U64, Units { dim_count: 1, scale_count: 3, ..SECONDS }),
        ("odd.plain", U64, Units::NONE),
        ("odd.f32_count", F32, SECONDS),
        ("odd.f64_count", F64, time(1, 0)),
        ("odd.text_count", String, Units::NONE),
    ];
    for (item, (name, value_type, units)) in (20..).zip(counters) {
        let semantics = Semantics::Counter;
        archive.metric(name, MetricDesc { semantics, units, ..desc(item, value_type) });
    }
    for (n, number) in (0u32..).zip(NUMBERS) {
        let (wide, text) = (u64::from(n), "x".repeat(n as usize));
        let float = if number.is_finite() { number.clamp(-1e38, 1e38) } else { number };
        let record = [
            ("odd.f32", Value::F32(float as f32)),
            ("odd.f64", Value::F64(number)),
            ("odd.i32", Value::I32((-3i32).pow(n.min(19)))),
            ("odd.u32", Value::U32(3u32.pow(n.min(20)))),
            ("odd.i64", Value::I64(-(3i64.pow(n.min(39))))),
            ("odd.u64", Value::U64(3u64.pow(n.min(40)))),
            ("odd.text", Value::Text(text.as_str().into())),
            ("odd.bytes", Value::Aggregate(b"ab\0\xff".repeat(n as usize % 4).into())),
            ("odd.discrete", Value::U32(n / 3)),
            ("odd.bytes_count", Value::U64(wide.pow(3) * 12345)),
            ("odd.wrapping", Value::U32((n * n).wrapping_mul(1_000_000_007))),
            ("odd.falling", Value::I32((n * n) as i32 - 40 * n as i32)),
            ("odd.nanosec", Value::U64(wide * 500_000_000)),
            ("odd.microsec", Value::U64(wide * 250_000)),
            ("odd.millisec", Value::U64(wide * wide)),
            ("odd.min", Value::U32(2 * n)),
            ("odd.hour", Value::U32(n)),
            ("odd.day", Value::U32(n)),
            ("odd.time_squared", Value::U64(wide * 7)),
            ("odd.per_time", Value::U64(wide * 1000)),
            ("odd.mbyte_time", Value::U64(wide * 3)),
            ("odd.thousands", Value::U64(wide * 5)),
            ("odd.plain", Value::U64(wide * 7)),
            ("odd.f32_count", Value::F32((n * n) as f32)),
            ("odd.f64_count", Value::F64((f64::from(n.min(44)) - 10.0).exp())),
            ("odd.text_count", Value::Text(n.to_string().into())),
        ];
        let record: Vec<_> = record.map(|(name, value)| (name, single(value))).into();
        archive.record((START + n, 0), &record);
    }
    archive.finish(base);
}

/// Names of the metrics of [`instances`].
pub const INSTANCE_METRICS: &[&str] = &[
    "dyn.i32",
    "dyn.count",
    "dyn.f64",
    "dyn.f32_count",
    "dyn.text",
    "dyn.single",
    "dyn.single_count",
    "dyn.empty",
    "dyn.never",
];

/// Metrics whose instances come and go.
pub fn instances(base: &Path) {
    use ValueType::*;
    const NAMES: [(i32, &str); 5] = [
        (1, "one"),
        (2, "two words"),
        (3, "three, with a comma and a very long name indeed"),
        (7, "seven"),
        (9, "nine"),
    ];
    /// By record; the fifth fails, the sixth has no values.
    const PRESENT: [&[i32]; 14] = [
        &[1, 2],
        &[1, 2],
        &[1, 2, 3],
        &[1, 3],
        &[1, 3],
        &[],
        &[3, 1],
        &[1, 3, 2, 7],
        &[7],
        &[7],
        &[1, 2],
        &[1, 2],
        &[1, 2, 9],
        &[1, 2, 9],
    ];
    let mut archive = ArchiveWriter::new((START, 250_000));
    let (indom, other) = (InDom::new(100, 1), InDom::new(100, 2));
    let with = |item, value_type| MetricDesc { indom: Some(indom), ..desc(item, value_type) };
    let semantics = Semantics::Counter;
    archive.metric("dyn.i32", with(1001, I32));
    archive.metric("dyn.count", MetricDesc { semantics, ..with(1002, U64) });
    archive.metric("dyn.f64", with(1003, F64));
    archive.metric("dyn.f32_count", MetricDesc { semantics, units: SECONDS, ..with(1004, F32) });
    archive.metric("dyn.text", with(1005, String));
    archive.metric("dyn.single", desc(1006, U32));
    archive.metric("dyn.single_count", MetricDesc { semantics, ..desc(1007, U32) });
    archive.metric("dyn.empty", MetricDesc { indom: Some(other), ..desc(1008, U32) });
    archive.metric("dyn.never", MetricDesc { indom: Some(InDom::new(100, 3)), ..desc(1009, U32) });
    archive.instances((START, 250_000), other, &[(4, "four")]);
    let mut known: &[i32] = &[];
    for (n, present) in (0u32..).zip(PRESENT) {
        let at = (START + n, 250_000);
        if known != present && !present.is_empty() {
            let of = |(id, _): &&(i32, &str)| present.contains(id);
            let now: Vec<_> = NAMES.iter().filter(of).copied().collect();
            archive.instances(at, indom, &now);
            known = present;
        }
        if n == 11 {
            archive.mark((START + n - 1, 750_000));
        }
        let values = |value: &dyn Fn(i32) -> Value| match n {
            4 => Err(FAILURE),
            _ => Ok(present.iter().map(|id| (*id, value(*id))).collect()),
        };
        let one = |value: u32| match n {
            4 => Err(FAILURE),
            5 => Ok(Vec::new()),
            _ => single(Value::U32(value)),
        };
        let grown = |id: i32| id.unsigned_abs() * n * 1000;
        archive.record(
            at,
            &[
                ("dyn.i32", values(&|id| Value::I32(id * 100 - n as i32))),
                ("dyn.count", values(&|id| Value::U64(grown(id).into()))),
                ("dyn.f64", values(&|id| Value::F64(f64::from(id) * f64::from(n) * 0.37))),
                (
                    "dyn.f32_count",
                    values(&|id| Value::F32(if n == 12 { 1.0 } else { grown(id) as f32 })),
                ),
                ("dyn.text", values(&|id| Value::Text(format!("text {id} {n}").into()))),
                ("dyn.single", one(n)),
                ("dyn.single_count", one(n * 10)),
                ("dyn.empty", Ok(Vec::new())),
            ],
        );
    }
    archive.finish(base);
}

/// Names of the metrics of [`events`].
pub const EVENT_METRICS: &[&str] = &["event.records", "event.fine", "event.single"];

/// Event records of both resolutions.
pub fn events(base: &Path) {
    use ValueType::*;
    const PARAMETERS: [(&str, ValueType); 8] = [
        ("event.i32", I32),
        ("event.u32", U32),
        ("event.i64", I64),
        ("event.u64", U64),
        ("event.f32", F32),
        ("event.f64", F64),
        ("event.text", String),
        ("event.bytes", Aggregate),
    ];
    let mut archive = ArchiveWriter::new((START, 0));
    let indom = InDom::new(100, 1);
    archive.metric("event.records", MetricDesc { indom: Some(indom), ..desc(2001, Event) });
    archive.metric("event.fine", MetricDesc { indom: Some(indom), ..desc(2002, HighResEvent) });
    archive.metric("event.single", desc(2003, Event));
    for (item, (name, value_type)) in (2010..).zip(PARAMETERS) {
        let indom = (value_type == U32).then_some(indom);
        archive.metric(name, MetricDesc { indom, ..desc(item, value_type) });
    }
    archive.instances((START, 0), indom, &[(1, "one"), (2, "two words")]);
    for n in 0..12 {
        let at = (START + n, 0);
        if n == 6 {
            archive.mark((START + n - 1, 500_000));
        }
        let none = || Value::Event([0; 4].into());
        let (records, fine, single_one): (Values, Values, Values) = match n {
            8 => (Ok(vec![]), Err(FAILURE), Ok(vec![])),
            9 => (
                Ok(vec![(1, none())]),
                // The third has no name.
                Ok(vec![
                    (1, Value::HighResEvent([0; 4].into())),
                    (3, Value::HighResEvent(array(n, true))),
                ]),
                single(none()),
            ),
            _ => (
                Ok(vec![
                    (2, Value::Event(array(n, false))),
                    (1, Value::Event(array(n + 1, false))),
                ]),
                Ok(vec![(1, Value::HighResEvent(array(n, true)))]),
                single(Value::Event(array(n, false))),
            ),
        };
        archive.record(
            at,
            &[("event.records", records), ("event.fine", fine), ("event.single", single_one)],
        );
    }
    archive.finish(base);
}

/// An array of event records, see `runtime/client/src/pdu/event_array.rs`.
fn array(n: u32, is_fine: bool) -> Box<[u8]> {
    let parameter = |item: u32, code: u32, bytes: &[u8]| {
        let mut block = desc(item, ValueType::I32).pmid.0.to_be_bytes().to_vec();
        block.extend((code << 24 | (bytes.len() as u32 + 4)).to_be_bytes());
        block.extend(bytes);
        block.resize(block.len().next_multiple_of(4), 0);
        block
    };
    let parameters = [
        parameter(2010, 0, &(-5i32).to_be_bytes()),
        parameter(2011, 1, &7u32.to_be_bytes()),
        parameter(2012, 2, &(-1i64 << 40).to_be_bytes()),
        parameter(2013, 3, &(1u64 << 63).to_be_bytes()),
        parameter(2014, 4, &1.5f32.to_be_bytes()),
        parameter(2015, 5, &(1f64 / 3.0).to_be_bytes()),
        parameter(2016, 6, b"hello\0"),
        parameter(2017, 7, b"abcdefgh"),
        // Of a metric that nobody knows.
        parameter(9999, 0, &1u32.to_be_bytes()),
    ];
    let many = n as usize % 10;
    let records: [(u32, &[Vec<u8>]); 9] = [
        (1, &parameters[..many]),
        (0, &[]),
        (0, &parameters[8..]),
        (0, &parameters[..2]),
        (1 << 31, &[]),
        (0x1f, &parameters[6..7]),
        (0x40, &[]),
        (2, &[]),
        (2, &parameters[7..]),
    ];
    let mut bytes = (records.len() as u32).to_be_bytes().to_vec();
    for (position, (flags, parameters)) in (1u32..).zip(records) {
        let (sec, fraction) = (START + n, position * 1000);
        if is_fine {
            bytes.extend(u64::from(sec).to_be_bytes());
            bytes.extend(u64::from(fraction).to_be_bytes());
        } else {
            bytes.extend(sec.to_be_bytes());
            bytes.extend(fraction.to_be_bytes());
        }
        // Of records that were lost there is a number in place of parameters.
        let count = if flags == 1 << 31 { 42 } else { parameters.len() as u32 };
        bytes.extend(flags.to_be_bytes());
        bytes.extend(count.to_be_bytes());
        bytes.extend(parameters.concat());
    }
    bytes.into()
}
