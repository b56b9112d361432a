//! Event records (unpacking, flags), and the order of instances.

use pmderive_runtime::model::{
    EVENT_FLAGS, EVENT_MISSED, EventFlags, EventRecord, PmStatus, RawValue,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};
use serde_json::{Value as Json, json};

use crate::{bytes, code, compare, hex, number, text};

/// Converts the words of an array from the byte order of the recording machine
/// to that of the wire, as far as the array's layout is right.
fn to_wire(bytes: &mut [u8], is_high_resolution: bool) -> Option<()> {
    fn swap(bytes: &mut [u8], length: usize) -> Option<&mut [u8]> {
        let (word, rest) = bytes.split_at_mut_checked(length)?;
        word.reverse();
        Some(rest)
    }
    let le = |bytes: &[u8]| Some(u32::from_le_bytes(*bytes.first_chunk()?));
    let stamp = if is_high_resolution { 8 } else { 4 };
    let records = le(bytes)?.cast_signed();
    let mut rest = swap(bytes, 4)?;
    for _ in 0..records {
        rest = swap(swap(rest, stamp)?, stamp)?;
        let flags = le(rest)?;
        rest = swap(rest, 4)?;
        let parameters = if flags >> 31 == 1 { 0 } else { le(rest)? };
        rest = swap(rest, 4)?;
        for _ in 0..parameters {
            rest = swap(rest, 4)?;
            let head = le(rest)?;
            // The length stands in the lower bytes on the recording machine.
            let (length, kind) = ((head & 0xff_ffff) as usize, head >> 24);
            let swapped = ((kind << 24) | (head & 0xff_ffff)).to_be_bytes();
            rest.first_chunk_mut::<4>()?.copy_from_slice(&swapped);
            let (_, data) = rest.split_at_mut_checked(4)?;
            let size = length.checked_sub(4)?;
            let (value, after) = data.split_at_mut_checked(size.next_multiple_of(4))?;
            if kind < 6 {
                value.reverse();
            }
            rest = after;
        }
    }
    Some(())
}

/// A record in the form of the table.
fn record(record: &EventRecord, is_high_resolution: bool) -> Json {
    let timestamp = record.timestamp.to_string();
    let timestamp =
        if is_high_resolution { &*timestamp } else { &timestamp[..timestamp.len() - 3] };
    let in_place = |word: u32| RawValue::InPlace(word);
    let flags = (record.flags != EventFlags(0)).then(|| (EVENT_FLAGS, in_place(record.flags.0)));
    let missed = record.missed.map(|count| (EVENT_MISSED, in_place(count)));
    let parameters = record.parameters.iter().map(|one| (one.pmid, one.value.clone()));
    let sets = flags.into_iter().chain(missed).chain(parameters);
    let set = |(pmid, value): (pmderive_runtime::model::Pmid, RawValue)| match value {
        RawValue::InPlace(word) => json!([pmid.to_string(), 0, word.cast_signed().to_string()]),
        RawValue::Block { code, bytes } => {
            let mut bytes = bytes.into_vec();
            if code < 6 {
                bytes.reverse();
            }
            json!([pmid.to_string(), 1, format!("{code}:{}", hex(&bytes))])
        }
    };
    json!([timestamp, sets.map(set).collect::<Vec<_>>()])
}

#[test]
fn records_unpack_as_by_libpcp() {
    compare("events", "unpack", |row| {
        let is_high_resolution = number(&row[0]) == 1;
        let mut data = bytes(&row[3]);
        let length = usize::try_from(number(&row[2])).unwrap() - 4;
        to_wire(&mut data, is_high_resolution);
        data.truncate(length);
        let code = u8::try_from(number(&row[1])).unwrap();
        let value = RawValue::Block { code, bytes: data.into() };
        let theirs = json!([row[4], row[5]]).to_string();
        let ours = match value.events() {
            Ok(records) => {
                let list: Vec<Json> =
                    records.iter().map(|one| record(one, is_high_resolution)).collect();
                json!([records.len(), list])
            }
            Err(status) => json!([status.0, []]),
        };
        (theirs, ours.to_string())
    });
}

#[test]
fn what_is_no_array_of_events_is_refused() {
    assert_eq!(RawValue::InPlace(0).events(), Err(PmStatus::CONV));
    let unpacked = |bytes: &[u8]| RawValue::Block { code: 9, bytes: bytes.into() }.events();
    assert_eq!(unpacked(&[]), Err(PmStatus::TOOSMALL));
    let one = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0];
    // A negative number of parameters counts as none.
    assert_eq!(unpacked(&[&one[..], &[255; 4]].concat()).map(|records| records.len()), Ok(1));
    // A parameter whose length does not even hold itself, and a 64 of 4 bytes.
    let parameter = |head: [u8; 4]| [&one[..], &[0, 0, 0, 1, 1, 1, 1, 1], &head, &[0; 4]].concat();
    assert_eq!(unpacked(&parameter([6, 0, 0, 3])), Err(PmStatus::TOOSMALL));
    assert_eq!(unpacked(&parameter([2, 0, 0, 8])), Err(PmStatus::TOOSMALL));
    assert_eq!(unpacked(&parameter([1, 0, 0, 8])).map(|records| records.len()), Ok(1));
}

#[test]
fn flags_print_as_by_libpcp() {
    compare("strings", "event_flags_str", |row| {
        let flags = EventFlags(u32::try_from(number(&row[0])).unwrap());
        (text(&row[1]).to_owned(), flags.to_string())
    });
}

#[test]
fn instances_sort_as_by_libpcp() {
    compare("events", "sort_instances", |row| {
        let value = |instance: &Json| InstanceValue {
            instance: code(instance),
            value: RawValue::InPlace(0),
        };
        let values = row[0].as_array().unwrap().iter().map(value).collect();
        let set = MetricValues { pmid: EVENT_FLAGS, outcome: Ok(values) };
        let mut result = FetchResult { sets: vec![set], ..FetchResult::default() };
        result.sort_instances();
        let values = result.sets[0].outcome.as_ref().unwrap();
        let sorted: Vec<i32> = values.iter().map(|value| value.instance).collect();
        (row[1].to_string(), json!(sorted).to_string())
    });
}
