//! Values of metrics: the answer to a fetch.
//!
//! | offset | size | field   | RESULT       |   | offset | size | field   | HIGHRES_RESULT |
//! |--------|------|---------|--------------|---|--------|------|---------|----------------|
//! | 0      | 12   | header  |              |   | 0      | 12   | header  |                |
//! | 12     | 4    | sec     | seconds      |   | 12     | 4    | numpmid | value sets     |
//! | 16     | 4    | usec    | microseconds |   | 16     | 8    | sec     | seconds        |
//! | 20     | 4    | numpmid | value sets   |   | 24     | 8    | nsec    | nanoseconds    |
//! | 24     | ...  | sets    |              |   | 32     | ...  | sets    |                |
//!
//! Value sets and blocks are encoded as in [`pmderive_core::result`]. Positions of
//! blocks count words from the start of the PDU. The blocks follow the last set without
//! gaps, in the order of the values that refer to them. Each is padded to a multiple of
//! four bytes. The last block ends the PDU.
//!
//! Values are not copied. Decoding checks the whole result and finds its sets, so the
//! PDU itself can become a part of a [`pmderive_core::result::ResultBatch`].

use pmderive_core::model::{Pmid, Timestamp};
use pmderive_core::result::{Encoded, ResultBatch, ResultPart, Wire, end_of_blocks_of_8};

use super::block::{EVENT, HIGHRES_EVENT, read_block_head};
use super::event_array;
use super::header::Header;
use super::{DecodeError, PduType, Problem, Reader, Resolution, Writer};

/// The fields of a result, without the value sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultFrame {
    /// The time at which pmcd collected the values.
    pub timestamp: Timestamp,
    /// Offset of the first value set in the PDU.
    pub first_set: usize,
    /// Number of value sets.
    pub set_count: usize,
    /// Number of values of the largest set.
    pub most_values: usize,
}

const NAME: &str = "result";

/// Minimum size in bytes of a value set: metric and number of values.
const SET_BYTES: usize = 8;

/// Size in bytes of one value in a set: the instance, and the value or a block's
/// position.
const LANE_BYTES: usize = 8;

impl ResultFrame {
    /// Checks a whole RESULT or HIGHRES_RESULT. For an answer, `requested` are the
    /// requested metrics.
    ///
    /// # Errors
    /// The sets are not those of `requested` in the same order; a set or block is not
    /// in its place, or contradicts its header.
    pub fn decode(
        pdu: &[u8],
        resolution: Resolution,
        requested: Option<&[Pmid]>,
    ) -> Result<ResultFrame, DecodeError> {
        let (mut frame, mut reader) = ResultFrame::read_head(pdu, resolution, requested)?;
        let ResultFrame { first_set, set_count, .. } = frame;
        let mut with_blocks = false;
        for slot in 0..set_count {
            let (count, is_in_blocks) = skip_set(&mut reader, requested.map(|pmids| pmids[slot]))?;
            frame.most_values = frame.most_values.max(count);
            with_blocks |= is_in_blocks;
        }
        if with_blocks {
            check_blocks(pdu, first_set, set_count, reader.offset())?;
        } else {
            reader.finish()?;
        }
        Ok(frame)
    }

    /// Reads the fields before the value sets, which are not counted yet. The reader is at the
    /// first set.
    fn read_head<'p>(
        pdu: &'p [u8],
        resolution: Resolution,
        requested: Option<&[Pmid]>,
    ) -> Result<(ResultFrame, Reader<'p>), DecodeError> {
        let mut reader = Reader::new(pdu, NAME);
        let due = match resolution {
            Resolution::Micro => PduType::Result,
            Resolution::Nano => PduType::HighresResult,
        };
        Header::read(&mut reader)?.expect(NAME, &[due])?;
        let (timestamp, set_count) = match resolution {
            Resolution::Micro => {
                let sec = reader.i32("sec")?;
                let usec = reader.i32("usec")?;
                let timestamp = Timestamp::new(sec.into(), i64::from(usec) * 1000);
                (timestamp, read_set_count(&mut reader, requested)?)
            }
            Resolution::Nano => {
                let set_count = read_set_count(&mut reader, requested)?;
                let sec = reader.i64("sec")?;
                (Timestamp::new(sec, reader.i64("nsec")?), set_count)
            }
        };
        let first_set = reader.offset();
        Ok((ResultFrame { timestamp, first_set, set_count, most_values: 0 }, reader))
    }

    /// Adds a PDU to a batch as columns, if it differs only in numbers from an earlier one. That
    /// one must have answered the same part of the list with that identity. False only means that
    /// the PDU must be decoded.
    pub(crate) fn add_as_before(
        pdu: &[u8],
        (list, resolution): (u64, Resolution),
        requested: &[Pmid],
        batch: &mut ResultBatch,
    ) -> bool {
        let head = ResultFrame::read_head(pdu, resolution, Some(requested));
        head.is_ok_and(|(frame, _)| {
            let encoded = frame.encoded(list, pdu);
            batch.add_part_as_before(&encoded, frame.timestamp).is_some()
        })
    }

    /// Lets a batch record a PDU with this frame, which will be its next part.
    pub(crate) fn notice(&self, list: u64, pdu: &[u8], batch: &mut ResultBatch) {
        let encoded = self.encoded(list, pdu);
        batch.notice(&encoded, || encoded.sets().map(|(pmid, offset)| (pmid, Some(offset))));
    }

    fn encoded<'p>(&self, list: u64, bytes: &'p [u8]) -> Encoded<'p> {
        let ResultFrame { first_set, set_count, .. } = *self;
        Encoded { list, bytes, first_set, set_count, block_origin: 0 }
    }

    /// Makes a PDU with this frame a part of a batch.
    pub fn into_part(self, pdu: Vec<u8>) -> ResultPart {
        let ResultFrame { timestamp, first_set, set_count, .. } = self;
        let mut part = ResultPart::default();
        part.timestamp = timestamp;
        *part.set_wire() = Wire { bytes: pdu, first_set, set_count, block_origin: 0 };
        part
    }
}

fn read_set_count(
    reader: &mut Reader<'_>,
    requested: Option<&[Pmid]>,
) -> Result<usize, DecodeError> {
    let offset = reader.offset();
    let count = reader.count(SET_BYTES, "numpmid")?;
    match requested {
        Some(pmids) if pmids.len() != count => {
            Err(reader.error_at(offset, "numpmid", Problem::mismatch(count, pmids.len())))
        }
        _ => Ok(count),
    }
}

/// Skips a value set. Returns the number of its values, and whether they are in blocks.
fn skip_set(
    reader: &mut Reader<'_>,
    requested: Option<Pmid>,
) -> Result<(usize, bool), DecodeError> {
    let offset = reader.offset();
    let pmid = reader.u32("pmid")?;
    if let Some(requested) = requested
        && requested.0 != pmid
    {
        return Err(reader.error_at(offset, "pmid", Problem::mismatch(pmid, requested.0)));
    }
    let offset = reader.offset();
    let numval = reader.i32("numval")?;
    let Some(count) = usize::try_from(numval).ok().filter(|count| *count > 0) else {
        return Ok((0, false));
    };
    let format = reader.i32("valfmt")?;
    if !(0..=2).contains(&format) {
        let problem = Problem::OutOfRange { found: format.into(), low: 0, high: 2 };
        return Err(reader.error_at(offset + 4, "valfmt", problem));
    }
    let left = reader.remaining();
    if count > left / LANE_BYTES {
        return Err(reader.error_at(
            offset,
            "numval",
            Problem::TooMany { count: numval.into(), left },
        ));
    }
    reader.bytes(count * LANE_BYTES, "values")?;
    Ok((count, format != 0))
}

/// Checks that values refer to the blocks after `sets_end` in order, and that the
/// blocks fill the rest of the PDU.
fn check_blocks(
    pdu: &[u8],
    first_set: usize,
    set_count: usize,
    sets_end: usize,
) -> Result<(), DecodeError> {
    let mut sets = Reader::starting_at(pdu, first_set, NAME);
    let mut blocks = Reader::starting_at(pdu, sets_end, NAME);
    for _ in 0..set_count {
        sets.u32("pmid")?;
        let count = usize::try_from(sets.i32("numval")?).unwrap_or(0);
        if count == 0 {
            continue;
        }
        if sets.i32("valfmt")? == 0 {
            sets.bytes(count * LANE_BYTES, "values")?;
            continue;
        }
        if let Some(end) = end_of_regular_blocks(pdu, (&sets, count), &blocks) {
            sets.bytes(count * LANE_BYTES, "values")?;
            blocks = Reader::starting_at(pdu, end, NAME);
            continue;
        }
        for _ in 0..count {
            sets.i32("inst")?;
            let offset = sets.offset();
            let position = u64::from(sets.u32("position")?) * 4;
            if u64::try_from(blocks.offset()) != Ok(position) {
                let problem = Problem::mismatch(position / 4, blocks.offset() / 4);
                return Err(sets.error_at(offset, "position", problem));
            }
            check_block(pdu, &mut blocks)?;
        }
    }
    blocks.finish()
}

/// The end of the blocks of a set, if they are regular. `None` only means that
/// each block needs a look.
fn end_of_regular_blocks(
    pdu: &[u8],
    (sets, count): (&Reader<'_>, usize),
    blocks: &Reader<'_>,
) -> Option<usize> {
    let (lanes, _) = pdu.get(sets.offset()..)?.as_chunks();
    // Event arrays have contents to check.
    let is_number = !matches!(pdu.get(blocks.offset())?, &EVENT | &HIGHRES_EVENT);
    end_of_blocks_of_8(pdu, blocks.offset(), 0, lanes.get(..count)?).filter(|_| is_number)
}

fn check_block(pdu: &[u8], blocks: &mut Reader<'_>) -> Result<(), DecodeError> {
    let (kind, len) = read_block_head(blocks, "vlen")?;
    let start = blocks.offset();
    blocks.padded(len, "vlen")?;
    let end = start + len;
    match kind {
        EVENT => event_array::check(&pdu[..end], start, 8),
        HIGHRES_EVENT => event_array::check(&pdu[..end], start, 16),
        _ => Ok(()),
    }
}

/// Appends a part to `out` as a RESULT or HIGHRES_RESULT. A block that does not lie
/// within the part becomes an empty aggregate.
pub fn encode_result(part: &ResultPart, resolution: Resolution, out: &mut Vec<u8>) {
    let seconds = part.timestamp.sec;
    let nanoseconds = part.timestamp.nsec;
    let mut writer = match resolution {
        Resolution::Micro => {
            let mut writer = Writer::begin(out, PduType::Result);
            // The 32-bit stamp has no valid value after 2038.
            writer.i32(i32::try_from(seconds).unwrap_or(i32::MAX));
            writer.u32(nanoseconds / 1000);
            writer.count(part.set_count());
            writer
        }
        Resolution::Nano => {
            let mut writer = Writer::begin(out, PduType::HighresResult);
            writer.count(part.set_count());
            writer.i64(seconds);
            writer.i64(nanoseconds.into());
            writer
        }
    };
    let mut sets = Wire::default();
    sets.append(part, writer.written());
    writer.bytes(&sets.bytes);
    writer.finish();
}
