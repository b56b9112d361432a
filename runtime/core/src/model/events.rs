//! Event records: the contents of values of type EVENT or HIGHRES_EVENT.
//!
//! Input: the bytes of such a value, laid out as `pdu/event_array.rs`
//! describes. Output: records with parameters, which are values of other
//! metrics. The bytes may come from anywhere, so all of them are checked before
//! the first record is made.

use std::fmt;

use super::{PmStatus, Pmid, RawValue, RawValueRef, Timestamp, Value, ValueType};

/// The metric of a record's flags (`event.flags`).
pub const EVENT_FLAGS: Pmid = Pmid::new(511, 0, 1);

/// The metric of a record's number of lost records (`event.missed`).
pub const EVENT_MISSED: Pmid = Pmid::new(511, 0, 2);

/// An event, or a note that records were lost (one `pmResult` of
/// pmUnpackEventRecords(3)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Time of the event.
    pub timestamp: Timestamp,
    /// The kind of record. If the flags are not zero, libpcp presents them as
    /// the record's first value, of the metric [`EVENT_FLAGS`].
    pub flags: EventFlags,
    /// Number of lost records, if the record stands for lost ones. libpcp
    /// presents it as a value of the metric [`EVENT_MISSED`].
    pub missed: Option<u32>,
    /// The parameters, in order. A metric may occur more than once.
    pub parameters: Vec<EventParameter>,
}

/// One value within an event record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventParameter {
    /// The metric. Its descriptor gives the meaning of the value.
    pub pmid: Pmid,
    /// Its value: 32-bit integers in place, all others in a block.
    pub value: RawValue,
}

/// The kind of an event record (`PM_EVENT_FLAG_*`). Printed as
/// `pmEventFlagsStr(3)` does, without unknown flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventFlags(pub u32);

impl EventFlags {
    /// An event without duration.
    pub const POINT: EventFlags = EventFlags(1);
    /// The beginning of an event.
    pub const START: EventFlags = EventFlags(2);
    /// The end of an event that began earlier.
    pub const END: EventFlags = EventFlags(4);
    /// One of the parameters identifies the event.
    pub const ID: EventFlags = EventFlags(8);
    /// One of the parameters identifies the parent of the event.
    pub const PARENT: EventFlags = EventFlags(16);
    /// Records were lost.
    pub const MISSED: EventFlags = EventFlags(1 << 31);

    const NAMES: [(EventFlags, &str); 5] = [
        (EventFlags::POINT, "point"),
        (EventFlags::START, "start"),
        (EventFlags::END, "end"),
        (EventFlags::ID, "id"),
        (EventFlags::PARENT, "parent"),
    ];

    /// True when every bit of `other` is set.
    pub const fn has(self, other: EventFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Display for EventFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has(EventFlags::MISSED) {
            return f.write_str("missed");
        }
        let mut separator = "";
        for (flag, name) in EventFlags::NAMES {
            if self.has(flag) {
                write!(f, "{separator}{name}")?;
                separator = ",";
            }
        }
        Ok(())
    }
}

impl RawValue {
    /// The event records of a value of type EVENT or HIGHRES_EVENT
    /// (`pmUnpackEventRecords(3)`, `pmUnpackHighResEventRecords(3)`).
    ///
    /// # Errors
    /// - [`PmStatus::CONV`]: a value in place, or a record that is flagged as
    ///   missed and as something else;
    /// - [`PmStatus::TYPE`]: a block or parameter of another type;
    /// - [`PmStatus::TOOSMALL`]: too few bytes for the number of records or for
    ///   a parameter's value, or a negative number of records;
    /// - [`PmStatus::TOOBIG`]: a record reaches beyond the block.
    pub fn events(&self) -> Result<Vec<EventRecord>, PmStatus> {
        self.borrowed().events()
    }
}

impl RawValueRef<'_> {
    /// Like [`RawValue::events`].
    ///
    /// # Errors
    /// As for [`RawValue::events`].
    pub fn events(self) -> Result<Vec<EventRecord>, PmStatus> {
        let mut room = [0; 8];
        let (code, bytes) = self.encoded(&mut room).map_err(|_| PmStatus::CONV)?;
        unpack_events(ValueType::from_code(code.into()), bytes)
    }
}

impl Value {
    /// The event records of an EVENT or HIGHRES_EVENT; see [`RawValue::events`].
    pub fn events(&self) -> Result<Vec<EventRecord>, PmStatus> {
        match self {
            Value::Event(bytes) | Value::HighResEvent(bytes) => {
                unpack_events(self.value_type(), bytes)
            }
            _ => Err(PmStatus::TYPE),
        }
    }
}

/// The part of a record before its parameters.
#[derive(Clone, Copy)]
struct RecordHead {
    timestamp: Timestamp,
    flags: EventFlags,
    /// Number of parameters, or of lost records.
    count: u32,
}

impl RecordHead {
    fn is_missed(self) -> bool {
        self.flags.has(EventFlags::MISSED)
    }

    /// Number of parameters. A negative number counts as none, as in libpcp.
    fn parameters(self) -> u32 {
        let none = self.is_missed() || self.count.cast_signed() < 0;
        if none { 0 } else { self.count }
    }
}

/// Reads an array from its beginning.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    is_high_resolution: bool,
}

impl<'a> Cursor<'a> {
    /// The position of an array's first record, and the number of records.
    fn new(value_type: ValueType, bytes: &'a [u8]) -> Result<(Cursor<'a>, u32), PmStatus> {
        let is_high_resolution = match value_type {
            ValueType::Event => false,
            ValueType::HighResEvent => true,
            _ => return Err(PmStatus::TYPE),
        };
        let mut cursor = Cursor { bytes, is_high_resolution };
        let records = cursor.word().map_err(|_| PmStatus::TOOSMALL)?;
        if records.cast_signed() < 0 {
            return Err(PmStatus::TOOSMALL);
        }
        Ok((cursor, records))
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], PmStatus> {
        let (chunk, rest) = self.bytes.split_first_chunk().ok_or(PmStatus::TOOBIG)?;
        self.bytes = rest;
        Ok(*chunk)
    }

    fn word(&mut self) -> Result<u32, PmStatus> {
        Ok(u32::from_be_bytes(self.chunk()?))
    }

    fn record(&mut self) -> Result<RecordHead, PmStatus> {
        let timestamp = if self.is_high_resolution {
            let sec = i64::from_be_bytes(self.chunk()?);
            Timestamp::new(sec, i64::from_be_bytes(self.chunk()?))
        } else {
            let sec = i32::from_be_bytes(self.chunk()?);
            let usec = i32::from_be_bytes(self.chunk()?);
            Timestamp::new(sec.into(), i64::from(usec) * 1000)
        };
        let head = RecordHead { timestamp, flags: EventFlags(self.word()?), count: self.word()? };
        if head.is_missed() && head.flags != EventFlags::MISSED {
            return Err(PmStatus::CONV);
        }
        Ok(head)
    }

    /// Metric, type code and data of a parameter. Skips the padding to a
    /// multiple of four bytes.
    fn parameter(&mut self) -> Result<(Pmid, u8, &'a [u8]), PmStatus> {
        let pmid = Pmid(self.word()?);
        let [code, a, b, c] = self.chunk()?;
        let length = (usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
            .checked_sub(4)
            .ok_or(PmStatus::TOOSMALL)?;
        let rest = self.bytes.get(length.next_multiple_of(4)..).ok_or(PmStatus::TOOBIG)?;
        let data = &self.bytes[..length];
        self.bytes = rest;
        Ok((pmid, code, data))
    }
}

fn unpack_events(value_type: ValueType, bytes: &[u8]) -> Result<Vec<EventRecord>, PmStatus> {
    let (mut cursor, records) = Cursor::new(value_type, bytes)?;
    // A fault in the layout takes precedence over the types of parameters.
    let mut checked = cursor;
    for _ in 0..records {
        for _ in 0..checked.record()?.parameters() {
            checked.parameter()?;
        }
    }
    let record = |_| {
        let head = cursor.record()?;
        let parameters = (0..head.parameters()).map(|_| parameter(cursor.parameter()?));
        Ok(EventRecord {
            timestamp: head.timestamp,
            flags: head.flags,
            missed: head.is_missed().then_some(head.count),
            parameters: parameters.collect::<Result<_, _>>()?,
        })
    };
    (0..records).map(record).collect()
}

/// The bytes of a value of type EVENT or HIGHRES_EVENT as libpcp gives them to
/// programs: numbers in the byte order of this machine, other parameter data
/// unchanged.
///
/// # Errors
/// As for [`RawValue::events`], except for the types of parameters.
pub fn native_events(value_type: ValueType, bytes: &[u8]) -> Result<Vec<u8>, PmStatus> {
    let (mut cursor, records) = Cursor::new(value_type, bytes)?;
    let mut native = bytes.to_vec();
    let mut turn = |at: usize, size: usize| {
        if cfg!(target_endian = "little") {
            native[at..at + size].reverse();
        }
    };
    let place = |cursor: &Cursor<'_>| bytes.len() - cursor.bytes.len();
    let half_stamp = if cursor.is_high_resolution { 8 } else { 4 };
    turn(0, 4);
    for _ in 0..records {
        let start = place(&cursor);
        let head = cursor.record()?;
        let flags = start + 2 * half_stamp;
        turn(start, half_stamp);
        turn(start + half_stamp, half_stamp);
        turn(flags, 4);
        turn(flags + 4, 4);
        for _ in 0..head.parameters() {
            let start = place(&cursor);
            let (_, code, data) = cursor.parameter()?;
            turn(start, 4);
            turn(start + 4, 4);
            match (ValueType::from_code(code.into()), data.len()) {
                (ValueType::I32 | ValueType::U32 | ValueType::F32, 4..) => turn(start + 8, 4),
                (ValueType::I64 | ValueType::U64 | ValueType::F64, 8..) => turn(start + 8, 8),
                _ => {}
            }
        }
    }
    Ok(native)
}

/// A one-line summary of an event array.
pub(super) struct EventSummary {
    /// Number of records.
    pub(super) records: u32,
    /// Number of lost records.
    pub(super) missed: u64,
    /// Time stamps of the first and of the last record.
    pub(super) span: Option<(Timestamp, Timestamp)>,
}

/// The summary of an event array of this type. The parameters' types do not
/// matter.
pub(super) fn summarize_events(
    value: RawValueRef<'_>,
    value_type: ValueType,
) -> Result<EventSummary, PmStatus> {
    let mut room = [0; 8];
    let (_, bytes) = value.encoded(&mut room).map_err(|_| PmStatus::CONV)?;
    let (mut cursor, records) = Cursor::new(value_type, bytes)?;
    let mut summary = EventSummary { records, missed: 0, span: None };
    for _ in 0..records {
        let head = cursor.record()?;
        if head.is_missed() {
            summary.missed += u64::from(head.count);
        }
        for _ in 0..head.parameters() {
            cursor.parameter()?;
        }
        let (first, _) = summary.span.unwrap_or((head.timestamp, head.timestamp));
        summary.span = Some((first, head.timestamp));
    }
    Ok(summary)
}

/// [`summarize_events`] as libpcp 6 does it. Its loop does not move on from a record of missed
/// ones, but counts it again for each record that follows. The last record only gives the time.
pub(super) fn summarize_events_as_version_6(
    value: RawValueRef<'_>,
    value_type: ValueType,
) -> Result<EventSummary, PmStatus> {
    let summary = summarize_events(value, value_type)?;
    let mut room = [0; 8];
    let (_, bytes) = value.encoded(&mut room).map_err(|_| PmStatus::CONV)?;
    let (mut cursor, records) = Cursor::new(value_type, bytes)?;
    for at in 1..records {
        let head = cursor.record()?;
        if head.is_missed() {
            let missed = u64::from(head.count) * u64::from(records - at);
            let span = summary.span.map(|(first, _)| (first, head.timestamp));
            return Ok(EventSummary { missed, span, ..summary });
        }
        for _ in 0..head.parameters() {
            cursor.parameter()?;
        }
    }
    Ok(EventSummary { missed: 0, ..summary })
}

fn parameter((pmid, code, data): (Pmid, u8, &[u8])) -> Result<EventParameter, PmStatus> {
    let least = match ValueType::from_code(code.into()) {
        ValueType::I32 | ValueType::U32 | ValueType::F32 => 4,
        ValueType::I64 | ValueType::U64 | ValueType::F64 => 8,
        ValueType::String | ValueType::Aggregate | ValueType::AggregateStatic => data.len(),
        ValueType::Event
        | ValueType::HighResEvent
        | ValueType::NoSupport
        | ValueType::Unknown
        | ValueType::Other(_) => return Err(PmStatus::TYPE),
    };
    let data = data.get(..least).ok_or(PmStatus::TOOSMALL)?;
    let in_place = matches!(code, 0 | 1).then(|| data.first_chunk()).flatten();
    let value = match in_place {
        Some(word) => RawValue::InPlace(u32::from_be_bytes(*word)),
        None => RawValue::Block { code, bytes: data.into() },
    };
    Ok(EventParameter { pmid, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory that a program gets from libpcp's `pmFetch(3)` over an
    /// archive of PCP's test suite.
    #[test]
    #[cfg(target_endian = "little")]
    fn numbers_of_events_are_turned_and_texts_are_not() {
        let network = b"\0\0\0\x02\
            \x54\x64\x02\xc3\0\x08\x7b\xb3\0\0\0\x01\0\0\0\x02\
            \x07\x40\0\x86\x06\0\0\x09fetch\0\0\0\
            \x07\x40\0\x83\x03\0\0\x0c\0\0\0\0\0\0\0\x05\
            \x54\x64\x02\xbc\0\x08\x7b\xb3\x80\0\0\0\0\0\0\x07";
        let native = b"\x02\0\0\0\
            \xc3\x02\x64\x54\xb3\x7b\x08\0\x01\0\0\0\x02\0\0\0\
            \x86\0\x40\x07\x09\0\0\x06fetch\0\0\0\
            \x83\0\x40\x07\x0c\0\0\x03\x05\0\0\0\0\0\0\0\
            \xbc\x02\x64\x54\xb3\x7b\x08\0\0\0\0\x80\x07\0\0\0";
        assert_eq!(native_events(ValueType::Event, network), Ok(native.to_vec()));
        let cut = &network[..network.len() - 1];
        assert_eq!(native_events(ValueType::Event, cut), Err(PmStatus::TOOBIG));
        assert_eq!(native_events(ValueType::Aggregate, network), Err(PmStatus::TYPE));
    }
}
