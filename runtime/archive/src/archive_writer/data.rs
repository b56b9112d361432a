//! Encodes results as data records. `archive::volume` has the layout; value sets are
//! encoded like [`pmderive_core::result::Wire`].
//!
//! Input: value sets from any source, and the known metrics and instances. Output: the
//! bytes of one record, or an error. Every value has its descriptor's type and every
//! instance has a name.

use pmderive_core::model::{InstId, PmStatus, Pmid, RawValueRef, Timestamp, ValueType};
use pmderive_core::result::{MetricValues, ValueSet};

use crate::archive::record::{LENGTH_WORD, Version};
use crate::archive::values::BLOCK_ORIGIN;
use crate::archive_writer::WriteError;
use crate::archive_writer::encode::{record, stamp, word};
use crate::archive_writer::known::{Known, Metric};

/// Maximum number of data bytes in a block: its length has 24 bits and includes 4 of
/// the header.
const MAX_BLOCK: usize = 0xff_ffff - 4;

/// The values of one metric that are to be written.
pub(super) trait Values {
    fn pmid(&self) -> Pmid;
    /// Number of values, or the reason why there are none.
    fn count(&self) -> Result<usize, PmStatus>;
    /// The values, as many as [`Values::count`] says. `None` stands for a value that
    /// the result lacks.
    fn values(&self) -> impl Iterator<Item = (InstId, Option<RawValueRef<'_>>)>;
}

impl Values for &MetricValues {
    fn pmid(&self) -> Pmid {
        self.pmid
    }

    fn count(&self) -> Result<usize, PmStatus> {
        self.outcome.as_ref().map(Vec::len).map_err(|status| *status)
    }

    fn values(&self) -> impl Iterator<Item = (InstId, Option<RawValueRef<'_>>)> {
        let values = self.outcome.as_deref().unwrap_or_default();
        values.iter().map(|value| (value.instance, Some(value.value.borrowed())))
    }
}

impl Values for ValueSet<'_> {
    fn pmid(&self) -> Pmid {
        self.pmid
    }

    fn count(&self) -> Result<usize, PmStatus> {
        self.count
    }

    fn values(&self) -> impl Iterator<Item = (InstId, Option<RawValueRef<'_>>)> {
        ValueSet::values(self)
    }
}

/// Encodes data records. The buffers are kept from record to record.
#[derive(Debug, Default)]
pub(super) struct DataEncoder {
    /// The record encoded last.
    pub(super) record: Vec<u8>,
    blocks: Vec<u8>,
    /// Positions in [`Known::metrics`] of the last record's metrics, in its order. Most
    /// records list the same metrics, so this saves looking them up.
    order: Vec<usize>,
    /// Number of the record, and of the value set, that was encoded last.
    records: u64,
    sets: u64,
}

impl DataEncoder {
    /// Encodes a record into [`DataEncoder::record`].
    pub(super) fn encode<S: Values>(
        &mut self,
        version: Version,
        time: Timestamp,
        sets: impl Iterator<Item = S> + Clone,
        known: &mut Known,
    ) -> Result<(), WriteError> {
        self.records += 1;
        self.blocks.clear();
        // Values hold the positions of their blocks, which follow all sets, so the size of
        // the sets has to be known first.
        let (mut count, mut blocks_start) = (0u32, 2 * LENGTH_WORD + version.stamp_size());
        for set in sets.clone() {
            count += 1;
            blocks_start += match set.count() {
                Ok(values) if values > 0 => 12 + 8 * values,
                _ => 8,
            };
        }
        if count == 0 {
            return Err(WriteError::NoMetrics { time });
        }
        let mut encoded = Ok(());
        let DataEncoder { record: out, blocks, order, records, sets: numbers } = self;
        let framed = record(out, |out| {
            stamp(out, version, time);
            word(out, count);
            for (position, set) in sets.enumerate() {
                *numbers += 1;
                let numbers = (position, *records, *numbers);
                encoded = encode_set(out, blocks, blocks_start, &set, known, order, numbers);
                if encoded.is_err() {
                    return;
                }
            }
            out.extend_from_slice(blocks);
        });
        encoded?;
        framed.map_err(|length| {
            let what = "the data record".to_owned();
            WriteError::TooLong { what, length, limit: i32::MAX as usize, version }
        })
    }
}

/// Appends a value set to `out` and its blocks to `blocks`. The blocks will begin at
/// `blocks_start` in the record. The three numbers are the set's position in the
/// record, the record's number, and the set's number among all records. They tell
/// whether a metric or an instance occurs twice.
fn encode_set(
    out: &mut Vec<u8>,
    blocks: &mut Vec<u8>,
    blocks_start: usize,
    set: &impl Values,
    known: &mut Known,
    order: &mut Vec<usize>,
    (position, record, number): (usize, u64, u64),
) -> Result<(), WriteError> {
    let pmid = set.pmid();
    let found = order.get(position).copied().filter(|at| known.metrics[*at].desc.pmid == pmid);
    let at = match found {
        Some(at) => at,
        None => {
            let at = known.metric(pmid)?;
            order.truncate(position);
            order.push(at);
            at
        }
    };
    let Known { metrics, domains, .. } = known;
    let metric = &mut metrics[at];
    if std::mem::replace(&mut metric.record, record) == record {
        return Err(WriteError::MetricTwice { pmid });
    }
    word(out, pmid.0);
    let count = match set.count() {
        Ok(count) => count,
        Err(status) if status.0 < 0 => {
            word(out, status.0.cast_unsigned());
            return Ok(());
        }
        Err(PmStatus(code)) => return Err(WriteError::Status { pmid, code }),
    };
    // A larger count would not fit into a record; the check of the record's length
    // finds that.
    word(out, count as u32);
    if count == 0 {
        return Ok(());
    }
    let in_place = matches!(metric.desc.value_type, ValueType::I32 | ValueType::U32);
    word(out, u32::from(!in_place));
    for (at, (instance, value)) in set.values().enumerate() {
        match metric.domain {
            None if instance == -1 && count == 1 => {}
            None => return Err(WriteError::NotSingular { pmid, instance }),
            Some((indom, domain)) => match domains[domain].meet(instance, at, number) {
                Some(true) => {}
                Some(false) => return Err(WriteError::InstanceTwice { pmid, instance }),
                None => return Err(WriteError::UnknownInstance { pmid, indom, instance }),
            },
        }
        word(out, instance.cast_unsigned());
        let form = form(metric, value).map_err(|problem| {
            let value_type = metric.desc.value_type;
            WriteError::ValueType { pmid, instance, value_type, problem }
        })?;
        match form {
            Form::InPlace(bits) => word(out, bits),
            Form::Block(bytes) => {
                let offset = (blocks_start + blocks.len()) as i64;
                word(out, ((offset - BLOCK_ORIGIN) / 4) as u32);
                block(blocks, metric.desc.value_type, bytes.as_slice());
            }
        }
    }
    Ok(())
}

/// A value as it is stored.
enum Form<'v> {
    InPlace(u32),
    Block(Bytes<'v>),
}

/// The data of a block: a number, or bytes as they came.
enum Bytes<'v> {
    Word([u8; 4]),
    Long([u8; 8]),
    Slice(&'v [u8]),
}

impl Bytes<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Word(bytes) => bytes,
            Bytes::Long(bytes) => bytes,
            Bytes::Slice(bytes) => bytes,
        }
    }
}

/// Decides how a value of a metric is stored, or says what is wrong with it. A FLOAT
/// may come in place; it is stored as a block, as other tools do.
fn form<'v>(metric: &Metric, value: Option<RawValueRef<'v>>) -> Result<Form<'v>, String> {
    let value_type = metric.desc.value_type;
    let (code, bytes) = match (value, value_type) {
        (None, _) => return Err("the result lacks the value".to_owned()),
        (Some(RawValueRef::InPlace(word)), ValueType::I32 | ValueType::U32) => {
            return Ok(Form::InPlace(word));
        }
        (Some(RawValueRef::InPlace(word)), ValueType::F32) => {
            return Ok(Form::Block(Bytes::Word(word.to_be_bytes())));
        }
        (Some(RawValueRef::InPlace(_)), _) => {
            return Err("the value is 32 bits in place".to_owned());
        }
        (Some(RawValueRef::Number { value_type: found, bits }), _) => {
            return match found {
                _ if found != value_type => Err(of_another_type(found)),
                ValueType::F32 => Ok(Form::Block(Bytes::Word((bits as u32).to_be_bytes()))),
                _ => Ok(Form::Block(Bytes::Long(bits.to_be_bytes()))),
            };
        }
        (Some(RawValueRef::Block { code, bytes }), _) => (code, bytes),
    };
    let same_type = match value_type {
        // Only agents tell the two kinds of aggregates apart.
        ValueType::Aggregate | ValueType::AggregateStatic => matches!(code, 7 | 8),
        ValueType::I32
        | ValueType::U32
        | ValueType::NoSupport
        | ValueType::Unknown
        | ValueType::Other(_) => false,
        _ => i32::from(code) == value_type.code(),
    };
    if !same_type {
        return Err(of_another_type(ValueType::from_code(code.into())));
    }
    let size_is_right = match value_type {
        ValueType::F32 => bytes.len() == 4,
        ValueType::I64 | ValueType::U64 | ValueType::F64 => bytes.len() == 8,
        _ => bytes.len() <= MAX_BLOCK,
    };
    if !size_is_right {
        return Err(format!("the value is a block of {} bytes", bytes.len()));
    }
    if matches!(value_type, ValueType::Event | ValueType::HighResEvent) {
        let events = RawValueRef::Block { code, bytes }.events();
        events.map_err(|status| format!("the value is not a valid array of events: {status}"))?;
    }
    Ok(Form::Block(Bytes::Slice(bytes)))
}

fn of_another_type(found: ValueType) -> String {
    format!("the value is a block of type {found} (code {})", found.code())
}

/// Appends a block: type and length, data, padding.
fn block(blocks: &mut Vec<u8>, value_type: ValueType, data: &[u8]) {
    // Types that have values have codes below 11, and the caller has checked the
    // length.
    let header = value_type.code().cast_unsigned() << 24 | (data.len() + LENGTH_WORD) as u32;
    word(blocks, header);
    blocks.extend_from_slice(data);
    blocks.resize(blocks.len().next_multiple_of(4), b'~');
}
