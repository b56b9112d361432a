//! Encodes results as data records. `archive::volume` has the layout; value sets are
//! encoded like [`pmderive_core::result::Wire`].
//!
//! Input: value sets of a result, and the known metrics and instances. Output: the
//! bytes of one record, or an error. Every value has its descriptor's type and every
//! instance has a name.

use pmderive_core::model::{PmStatus, RawValue, RawValueRef, Timestamp, UtcTime, ValueType};
use pmderive_core::result::{InstanceValue, MetricValues};

use crate::archive::framing::{LENGTH_WORD, Version};
use crate::archive::values::BLOCK_ORIGIN;
use crate::archive_writer::WriteError;
use crate::archive_writer::encode::{record, stamp, word};
use crate::archive_writer::error::invalid;
use crate::archive_writer::written_metadata::WrittenMetadata;

/// Maximum number of data bytes in a block: its length has 24 bits and includes 4 of
/// the header.
const MAX_BLOCK: usize = 0xff_ffff - 4;

/// Encodes data records. The buffers are kept from record to record.
#[derive(Debug, Default)]
pub(super) struct DataEncoder {
    /// The record encoded last.
    pub(super) record: Vec<u8>,
    blocks: Vec<u8>,
    /// Positions in [`WrittenMetadata::metrics`] of the last record's metrics, in its order. Most
    /// records list the same metrics, so this saves looking them up.
    order: Vec<usize>,
    /// Number of the record, and of the value set, that was encoded last.
    records: u64,
    sets: u64,
}

impl DataEncoder {
    /// Encodes a record into [`DataEncoder::record`].
    pub(super) fn encode(
        &mut self,
        version: Version,
        time: Timestamp,
        sets: &[MetricValues],
        known: &mut WrittenMetadata,
    ) -> Result<(), WriteError> {
        self.records += 1;
        self.blocks.clear();
        // Values hold the positions of their blocks, which follow all sets, so the size of
        // the sets has to be known first.
        let size = |set: &MetricValues| match &set.outcome {
            Ok(values) if !values.is_empty() => 12 + 8 * values.len(),
            _ => 8,
        };
        let blocks_start =
            2 * LENGTH_WORD + version.stamp_size() + sets.iter().map(size).sum::<usize>();
        if sets.is_empty() {
            let problem = format!(
                "the record of {} has no metric; if recording was interrupted, write a mark",
                UtcTime(time)
            );
            return Err(WriteError::misuse(PmStatus::NODATA, problem));
        }
        let mut encoded = Ok(());
        let DataEncoder { record: out, blocks, order, records, sets: numbers } = self;
        let framed = record(out, |out| {
            stamp(out, version, time);
            word(out, sets.len() as u32);
            for (position, set) in sets.iter().enumerate() {
                *numbers += 1;
                let numbers = (position, *records, *numbers);
                encoded = encode_set(out, blocks, blocks_start, set, known, order, numbers);
                if encoded.is_err() {
                    return;
                }
            }
            out.extend_from_slice(blocks);
        });
        encoded?;
        framed.map_err(|length| {
            WriteError::too_long("the data record", length, i32::MAX as usize, version)
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
    set: &MetricValues,
    known: &mut WrittenMetadata,
    order: &mut Vec<usize>,
    (position, record, number): (usize, u64, u64),
) -> Result<(), WriteError> {
    let pmid = set.pmid;
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
    let WrittenMetadata { metrics, domains, may_lack_names, .. } = known;
    let metric = &mut metrics[at];
    if std::mem::replace(&mut metric.record, record) == record {
        let problem = format!("metric {pmid} occurs twice in one record");
        return Err(WriteError::misuse(invalid(), problem));
    }
    word(out, pmid.0);
    let values = match &set.outcome {
        Ok(values) => values,
        Err(PmStatus(code)) if *code < 0 => {
            word(out, code.cast_unsigned());
            return Ok(());
        }
        Err(PmStatus(code)) => {
            let problem =
                format!("metric {pmid}: status {code} is not a failure: those are negative");
            return Err(WriteError::misuse(invalid(), problem));
        }
    };
    // A larger count would not fit into a record; the check of the record's length
    // finds that.
    word(out, values.len() as u32);
    if values.is_empty() {
        return Ok(());
    }
    let in_place = matches!(metric.desc.value_type, ValueType::I32 | ValueType::U32);
    word(out, u32::from(!in_place));
    for (at, InstanceValue { instance, value }) in values.iter().enumerate() {
        let refused = match metric.domain {
            None if *instance == -1 && values.len() == 1 => None,
            None => Some((
                PmStatus::INST,
                format!(
                    "metric {pmid} has no instance domain, so its only value has instance -1, \
                     not {instance}"
                ),
            )),
            Some((indom, domain)) => match domains[domain].meet(*instance, at, number) {
                Some(true) => None,
                Some(false) => Some((
                    PmStatus::INST,
                    format!("metric {pmid} has two values of instance {instance}"),
                )),
                None if *may_lack_names => None,
                None => Some((
                    PmStatus::INST_LOG,
                    format!(
                        "metric {pmid}: instance {instance} has no name in domain {indom} at \
                         this time; call instances first"
                    ),
                )),
            },
        };
        if let Some((status, problem)) = refused {
            return Err(WriteError::misuse(status, problem));
        }
        word(out, instance.cast_unsigned());
        let value_type = metric.desc.value_type;
        encode_value(out, blocks, blocks_start, value_type, value).map_err(|problem| {
            let problem = format!(
                "metric {pmid}, instance {instance}: {problem}, but its type is {value_type}"
            );
            WriteError::misuse(PmStatus::TYPE, problem)
        })?;
    }
    Ok(())
}

/// Appends the last word of a value to `out`: the value itself, or the place of its block,
/// which goes to `blocks`. Fails with the fault of a value that is not of `value_type`.
fn encode_value(
    out: &mut Vec<u8>,
    blocks: &mut Vec<u8>,
    blocks_start: usize,
    value_type: ValueType,
    value: &RawValue,
) -> Result<(), String> {
    let mut put_block = |data: &[u8]| {
        let offset = (blocks_start + blocks.len()) as i64;
        word(out, ((offset - BLOCK_ORIGIN) / 4) as u32);
        block(blocks, value_type, data);
    };
    match (value, value_type) {
        (RawValue::InPlace(bits), ValueType::I32 | ValueType::U32) => word(out, *bits),
        // Other tools store a FLOAT as a block too.
        (RawValue::InPlace(bits), ValueType::F32) => put_block(&bits.to_be_bytes()),
        (RawValue::InPlace(_), _) => return Err("the value is 32 bits in place".to_owned()),
        (RawValue::Block { code, bytes }, _) => {
            check_block(value_type, *code, bytes)?;
            put_block(bytes);
        }
    }
    Ok(())
}

/// The fault of a block as the value of a metric of type `value_type`.
fn check_block(value_type: ValueType, code: u8, bytes: &[u8]) -> Result<(), String> {
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
        let found = ValueType::from_code(code.into());
        return Err(format!("the value is a block of type {found} (code {})", found.code()));
    }
    let size_is_right = match value_type {
        ValueType::F32 => bytes.len() == 4,
        ValueType::I64 | ValueType::U64 | ValueType::F64 => bytes.len() == 8,
        _ => bytes.len() <= MAX_BLOCK,
    };
    if !size_is_right {
        return Err(format!("the value is a block of {} bytes", bytes.len()));
    }
    if value_type.is_event() {
        let events = RawValueRef::Block { code, bytes }.events();
        events.map_err(|status| format!("the value is not a valid array of events: {status}"))?;
    }
    Ok(())
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
