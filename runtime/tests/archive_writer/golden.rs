//! The same bytes as PCP's own writers, and the examples of the format's
//! description.

use std::path::Path;

use pmderive_runtime::archive::Version;
use pmderive_runtime::archive_writer::{ArchiveWriter, WriterOptions};
use pmderive_runtime::model::{
    InDom, LabelFlags, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, RawValue, Semantics,
    TextKind, TextSubject, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};

use crate::copies::copy;
use crate::synthetic::domain;
use crate::tools::scratch;

/// The bytes of a text of hexadecimal words, and of quoted strings as they are.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, piece) in text.split('"').enumerate() {
        if number % 2 == 1 {
            bytes.extend_from_slice(piece.as_bytes());
            continue;
        }
        let digits: Vec<u8> = piece.bytes().filter(u8::is_ascii_hexdigit).collect();
        bytes.extend(digits.chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).expect("digits");
            u8::from_str_radix(pair, 16).expect("digits")
        }));
    }
    bytes
}

/// The files of an archive with one metric over a domain, a mark and labels:
/// index, metadata, volume.
fn small(version: Version) -> [Vec<u8>; 3] {
    let start = Timestamp::new(0x6249_43cf, 0x17f0_4d1d);
    let options = WriterOptions {
        version,
        start,
        host: "h".into(),
        timezone: "UTC".into(),
        zoneinfo: ":UTC".into(),
        pid: 0x151b,
        volume_bytes: None,
    };
    let indom = InDom(0x0740_000c);
    let desc = MetricDesc {
        pmid: Pmid(0x0080_0c03),
        value_type: ValueType::String,
        indom: Some(indom),
        semantics: Semantics::Discrete,
        units: Units::from_wire(0x1234_5600),
    };
    let (mut writer, written) = ArchiveWriter::in_memory(options).expect("the label is good");
    writer.describe(&desc, &["pmcd.pmlogger.host"]).expect("it is new");
    writer.text(TextSubject::Metric(desc.pmid), TextKind::OneLine, "one").expect("it is new");
    let labels = LabelSet::parse("{\"a\":1}", LabelFlags(1)).expect("it is JSON");
    writer.labels(start, LabelLevel::Context, &[labels]).expect("it fits");
    let instances = [(5, "0005 five"), (6, "0006 six"), (1, "0001 one and more of it")];
    writer.instances(start, indom, &domain(&instances)).expect("it is new");
    let block = |text: &[u8]| RawValue::Block { code: 6, bytes: text.into() };
    let value = |instance, text: &[u8]| InstanceValue { instance, value: block(text) };
    let mut record = |sec, outcome| {
        let sets = vec![MetricValues { pmid: desc.pmid, outcome }];
        let timestamp = Timestamp::new(start.sec + sec, start.nsec.into());
        if sec == 1 {
            writer.instances(timestamp, indom, &domain(&instances[1..])).expect("it changed");
        }
        let result = FetchResult { timestamp, sets, ..FetchResult::default() };
        writer.record(&result).expect("it is good");
    };
    record(0, Ok(vec![value(5, b"abc\0"), value(6, b"abcd\0")]));
    record(1, Err(PmStatus(-12350)));
    writer.mark(Timestamp::new(start.sec + 2, 0x2833_0beb)).expect("in order");
    writer.finish().expect("there is room");
    let folder = scratch();
    let base = folder.path().join("small");
    written.save(&base, written.sizes().len(), 0).expect("there is room");
    ["index", "meta", "0"]
        .map(|suffix| std::fs::read(base.with_extension(suffix)).expect("it was saved"))
}

/// A metric with its help text, alike in both versions.
const METRIC: &str = "0000003a 00000001 00800c03 00000006 0740000c 00000004 12345600 00000001 00000012 \
     \"pmcd.pmlogger.host\" 0000003a 00000018 00000004 00000005 00800c03 \"one\" 00 00000018";

/// Labels of the context behind their time, alike in both versions.
const LABELS: &str = "00000001 ffffffff 00000001 ffffffff 00000007 \
     \"{\" 22 \"a\" 22 \":1}\" 00000001 00020101 00050001";

/// Instances behind their time, alike in both versions.
const INSTANCES: &str = "0740000c 00000003 00000001 00000005 00000006 00000000 00000018 00000022 \
     \"0001 one and more of it\" 00 \"0005 five\" 00 \"0006 six\" 00";

#[test]
fn version_3_is_as_described() {
    let [index, metadata, volume] = small(Version::V3);
    let zeros = |count| "00".repeat(count);
    let label = |volume: &str| {
        bytes(&format!(
            "00000328 50052603 0000151b 624943cf 00000000 17f04d1d {volume} 00000000 00000000 \
             \"h\" {} \"UTC\" {} \":UTC\" {} 00000328",
            zeros(255),
            zeros(253),
            zeros(252)
        ))
    };
    let expected = [
        label("ffffffff"),
        bytes(&format!(
            "{METRIC} \
             0000003f 00000007 624943cf 00000000 17f04d1d {LABELS} 0000003f \
             00000063 00000005 624943cf 00000000 17f04d1d {INSTANCES} 00000063 \
             00000028 00000006 624943d0 00000000 17f04d1d 0740000c 00000001 \
             00000005 ffffffff 00000028"
        )),
    ]
    .concat();
    assert_eq!(metadata, expected);
    let expected = [
        label("00000000"),
        bytes(
            "00000048 624943cf 00000000 17f04d1d 00000001 \
             00800c03 00000002 00000001 00000005 0000000e 00000006 00000010 \
             06000008 \"abc\" 00 06000009 \"abcd\" 00 7e7e7e 00000048 \
             00000020 624943d0 00000000 17f04d1d 00000001 00800c03 ffffcfc2 00000020 \
             00000018 624943d1 00000000 28330beb 00000000 00000018",
        ),
    ]
    .concat();
    assert_eq!(volume, expected);
    let expected = [
        label("fffffffe"),
        bytes(
            "624943cf 00000000 17f04d1d 00000000 0000000000000328 0000000000000328 \
             624943d0 00000000 17f04d1d 00000000 0000000000000444 0000000000000370 \
             624943d1 00000000 28330beb 00000000 0000000000000444 0000000000000390",
        ),
    ]
    .concat();
    assert_eq!(index, expected);
}

#[test]
fn version_2_is_as_described() {
    let [index, metadata, volume] = small(Version::V2);
    let zeros = |count| "00".repeat(count);
    let label = |volume: &str| {
        bytes(&format!(
            "00000084 50052602 0000151b 624943cf 000620d8 {volume} \"h\" {} \"UTC\" {} 00000084",
            zeros(63),
            zeros(37)
        ))
    };
    let expected = [
        label("ffffffff"),
        bytes(&format!(
            "{METRIC} \
             0000003b 00000003 624943cf 000620d8 {LABELS} 0000003b \
             0000005f 00000002 624943cf 000620d8 {INSTANCES} 0000005f \
             0000004d 00000002 624943d0 000620d8 0740000c 00000002 \
             00000001 00000006 00000000 00000018 \
             \"0001 one and more of it\" 00 \"0006 six\" 00 0000004d"
        )),
    ]
    .concat();
    assert_eq!(metadata, expected);
    let expected = [
        label("00000000"),
        bytes(
            "00000044 624943cf 000620d8 00000001 \
             00800c03 00000002 00000001 00000005 0000000d 00000006 0000000f \
             06000008 \"abc\" 00 06000009 \"abcd\" 00 7e7e7e 00000044 \
             0000001c 624943d0 000620d8 00000001 00800c03 ffffcfc2 0000001c \
             00000014 624943d1 000a4a82 00000000 00000014",
        ),
    ]
    .concat();
    assert_eq!(volume, expected);
    assert_eq!(index[..132], label("fffffffe"));
}

#[test]
fn volumes_of_pmlogger_are_written_byte_for_byte() {
    let own = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/archives"));
    let folder = scratch();
    for (name, version) in [("own-fleet", Version::V3), ("own-dyn2", Version::V2)] {
        let to = folder.path().join(name);
        copy(&own.join(name), &to, version).expect("it can be copied");
        let volume = |base: &Path| std::fs::read(base.with_extension("0")).expect("it is there");
        assert!(volume(&own.join(name)) == volume(&to), "{name}");
    }
}
