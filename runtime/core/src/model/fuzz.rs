//! The promises of readers of texts and of events about any bytes, for fuzzers.

use super::*;

/// Unpacks any bytes. The first byte chooses the type.
pub fn fuzz_events(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let value = RawValue::Block { code: 9 + (first & 1), bytes: bytes.into() };
    let native = native_events(ValueType::from_code((9 + (first & 1)).into()), bytes);
    assert!(native.is_ok_and(|native| native.len() == bytes.len()) || value.events().is_err());
    let Ok(records) = value.events() else { return };
    let parameters: usize = records.iter().map(|record| record.parameters.len()).sum();
    assert!(16 * records.len() + 8 * parameters < bytes.len(), "more than fits");
}

/// Reads any text as an interval and checks the place of the fault.
pub fn fuzz_interval(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = parse_interval(&text) {
        assert!(text.is_char_boundary(error.offset), "{error}");
    }
}

/// Reads a text of labels. Checks that merging the labels with themselves, or
/// reading them again, changes nothing.
pub fn fuzz_labels(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(set) = LabelSet::parse(text, LabelFlags(1)) else { return };
    assert_eq!(LabelSet::merged([&set, &set]), set);
    let again = LabelSet::parse(set.json(), LabelFlags(1)).expect("what was written can be read");
    assert_eq!(again.json(), set.json());
}

/// Reads any text as a specification and checks the place of the fault.
pub fn fuzz_metric_spec(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match MetricSpec::parse(&text, SpecSource::Host(None)) {
        Ok(spec) => {
            let length: usize = spec.instances.iter().map(String::len).sum();
            assert!(spec.metric.len() + length <= text.len(), "{spec:?}");
        }
        Err(error) => assert!(text.is_char_boundary(error.offset), "{error}"),
    }
}

/// Parses bytes as units. If that succeeds, prints the units and reads them
/// back. Panics if the result differs.
pub fn fuzz_units(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Units::parse(text) {
        Ok(parsed) => {
            let printed = parsed.units.to_string();
            let again = Units::parse(&printed);
            assert_eq!(again.map(|again| again.units), Ok(parsed.units), "{text:?} {printed:?}");
        }
        Err(error) => assert!(text.get(error.range).is_some_and(|word| !word.is_empty())),
    }
}

/// Reads any text as every type, and reads the text of the result again.
pub fn fuzz_value(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for code in 0..=6 {
        let Ok(value) = Value::parse(text, ValueType::from_code(code)) else { continue };
        for wanted in 0..=6 {
            let Ok(converted) = value.convert(ValueType::from_code(wanted)) else { continue };
            assert_eq!(converted.value_type().code(), wanted);
        }
        if let (0..=3, Ok(Value::Text(again))) = (code, value.convert(ValueType::String)) {
            assert_eq!(Value::parse(&again, ValueType::from_code(code)), Ok(value));
        }
    }
}
