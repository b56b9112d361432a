//! From encoded value sets to lanes.
//!
//! The fast way ([`decode_column`]) checks that a value set is what the layout
//! expects while it writes the column; the slow way ([`survey`]) finds out
//! what a value set is like, so that a layout can be made for it. Where the
//! source says that nothing but numbers differs, these are all that is looked
//! at ([`Delivered`]).

use crate::kernel::interp::write;
use crate::model::{InstId, PmStatus, ValueType};
use crate::program::{InputSlot, Reason, Status, scalar_of};
use crate::result::{Lane, LayoutId, NumberPlace, ResultPart, ValueSet};

/// What was found out about a delivered part, for others of its layout.
#[derive(Debug, Default)]
pub struct Delivered {
    /// Layout of the part that was decoded last, and the frame's stamp then.
    seen: Option<(LayoutId, u64)>,
    /// Where its numbers stand, with the offsets and widths of their columns.
    columns: Vec<(NumberPlace, usize, usize)>,
    /// That was worth the while to find out, and there are no other values.
    is_known: bool,
}

impl Delivered {
    /// Decodes a part with all inputs of a program into a frame with that
    /// stamp. False if nothing is known of such parts.
    pub fn decode(&self, part: &ResultPart, stamp: u64, arena: &mut [u8]) -> bool {
        if !self.is_known || part.layout.is_none_or(|layout| self.seen != Some((layout, stamp))) {
            return false;
        }
        for (place, offset, width) in &self.columns {
            let column = &mut arena[*offset..][..place.count() * width];
            if *width == 8 {
                let mut column = column.as_chunks_mut::<8>().0.iter_mut();
                place.read(&part.bytes, |bits| {
                    if let Some(lane) = column.next() {
                        *lane = bits.to_ne_bytes();
                    }
                });
            } else {
                let mut column = column.as_chunks_mut::<4>().0.iter_mut();
                place.read(&part.bytes, |bits| {
                    if let Some(lane) = column.next() {
                        *lane = (bits as u32).to_ne_bytes();
                    }
                });
            }
        }
        true
    }

    /// Takes note of a part that was decoded into a frame; once for those
    /// that come again. `inputs` gives of each set in turn the type and the
    /// offset of the column, nothing for one without values.
    pub fn learn(
        &mut self,
        part: &ResultPart,
        stamp: u64,
        inputs: impl Iterator<Item = Option<(ValueType, usize)>>,
    ) {
        let Some(layout) = part.layout else { return };
        self.is_known = false;
        if self.seen.replace((layout, stamp)) != Some((layout, stamp)) {
            return;
        }
        self.columns.clear();
        let mut sets = part.sets();
        for input in inputs {
            let offset = sets.offset();
            let Some(set) = sets.next() else { return };
            let Some((value_type, column)) = input else { continue };
            let Some(place) = part.numbers(offset, &set, value_type) else { return };
            self.columns.push((place, column, value_type.lane_bytes()));
        }
        self.is_known = true;
    }
}

/// What a value set holds, apart from the values.
#[derive(Debug, PartialEq)]
pub struct Survey {
    /// Whether there are values.
    pub status: Status,
    /// The value set's own count or status.
    pub raw_count: i32,
    /// Instances of the values.
    pub ids: Vec<InstId>,
    /// False when a value could not be decoded, so that `status` says more
    /// than the value set's count does.
    pub sound: bool,
}

/// Surveys of some of a program's inputs.
#[derive(Debug, Default)]
pub struct Surveys(Vec<(InputSlot, Survey)>);

impl Surveys {
    /// Adds that of an input behind all before.
    pub fn push(&mut self, slot: InputSlot, survey: Survey) {
        self.0.push((slot, survey));
    }

    /// That of an input, if there is one.
    pub fn get(&self, slot: InputSlot) -> Option<&Survey> {
        let at = self.0.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        Some(&self.0[at].1)
    }

    /// Instances of an input's values.
    pub fn ids(&self, slot: InputSlot) -> &[InstId] {
        self.get(slot).map_or(&[], |survey| &survey.ids)
    }
}

/// The count word of a value set.
pub fn raw_count(set: &ValueSet<'_>) -> i32 {
    match set.count {
        Ok(count) => i32::try_from(count).unwrap_or(i32::MAX),
        Err(status) => status.0,
    }
}

/// Finds out what a value set of a metric of type `value_type` is like.
pub fn survey(part: &ResultPart, set: &ValueSet<'_>, value_type: ValueType) -> Survey {
    let raw_count = raw_count(set);
    let without = |status, sound| Survey { status, raw_count, ids: Vec::new(), sound };
    match set.count {
        Err(status) => return without(Status::Failed(status), true),
        Ok(0) => return without(Status::Empty(Reason::OperandEmpty), true),
        Ok(_) => {}
    }
    for lane in set.lanes() {
        if let Err(status) = bytes_of(part, set.in_blocks, lane, value_type) {
            return without(Status::Failed(status), false);
        }
    }
    let ids = set.lanes().map(|lane| lane.instance).collect();
    Survey { status: Status::Values, raw_count, ids, sound: true }
}

/// The value of a lane: its bits, or the bytes of text and aggregates.
enum Encoded<'a> {
    Bits(u64),
    Bytes(&'a [u8]),
}

fn bytes_of<'a>(
    part: &'a ResultPart,
    in_blocks: bool,
    lane: Lane,
    value_type: ValueType,
) -> Result<Encoded<'a>, PmStatus> {
    if !in_blocks {
        return match value_type {
            // Single precision stands in place in old archives.
            ValueType::I32 | ValueType::U32 | ValueType::F32 => {
                Ok(Encoded::Bits(u64::from(lane.word)))
            }
            ValueType::NoSupport | ValueType::Unknown | ValueType::Other(_) => Err(PmStatus::TYPE),
            _ => Err(PmStatus::LOGREC),
        };
    }
    let (_, data) = part.block(lane.word).ok_or(PmStatus::LOGREC)?;
    match value_type {
        ValueType::I32 | ValueType::U32 | ValueType::F32 => {
            let data: [u8; 4] = data.try_into().map_err(|_| PmStatus::CONV)?;
            Ok(Encoded::Bits(u64::from(u32::from_be_bytes(data))))
        }
        ValueType::I64 | ValueType::U64 | ValueType::F64 => {
            let data: [u8; 8] = data.try_into().map_err(|_| PmStatus::CONV)?;
            Ok(Encoded::Bits(u64::from_be_bytes(data)))
        }
        // Old archives pad texts with more than one NUL.
        ValueType::String => {
            Ok(Encoded::Bytes(data.split(|byte| *byte == 0).next().unwrap_or(data)))
        }
        ValueType::NoSupport | ValueType::Unknown | ValueType::Other(_) => Err(PmStatus::TYPE),
        _ => Ok(Encoded::Bytes(data)),
    }
}

/// Position of bytes in an arena, as the bits of a lane.
pub fn pack_range(start: usize, len: usize) -> u64 {
    (start as u64) << 32 | len as u64 & 0xffff_ffff
}

/// The inverse of [`pack_range`].
pub fn unpack_range(bits: u64) -> std::ops::Range<usize> {
    let start = (bits >> 32) as usize;
    start..start + (bits & 0xffff_ffff) as usize
}

/// Decodes the lanes of a value set whose first instances must be `ids`, into
/// the column at `column`; bytes go to `blobs`. False when the value set is not
/// as expected; then the column is unspecified.
pub fn decode_column(
    part: &ResultPart,
    set: &ValueSet<'_>,
    value_type: ValueType,
    ids: &[InstId],
    column: &mut [u8],
    blobs: &mut Vec<u8>,
) -> bool {
    if set.lanes().len() < ids.len() {
        return false;
    }
    let lanes = set.lanes().zip(ids);
    match (value_type, set.in_blocks) {
        (ValueType::I32 | ValueType::U32 | ValueType::F32, false) => {
            let mut same = true;
            for ((lane, id), out) in lanes.zip(column.chunks_exact_mut(4)) {
                same &= lane.instance == *id;
                out.copy_from_slice(&lane.word.to_ne_bytes());
            }
            same
        }
        (ValueType::I64 | ValueType::U64 | ValueType::F64, true) => {
            let mut same = true;
            for ((lane, id), out) in lanes.zip(column.chunks_exact_mut(8)) {
                let Some(data) = part.block_of_8(lane.word) else { return false };
                same &= lane.instance == *id;
                out.copy_from_slice(&u64::from_be_bytes(data).to_ne_bytes());
            }
            same
        }
        _ => {
            let width = value_type.lane_bytes();
            for (at, (lane, id)) in lanes.enumerate() {
                let Ok(encoded) = bytes_of(part, set.in_blocks, lane, value_type) else {
                    return false;
                };
                if lane.instance != *id {
                    return false;
                }
                match (encoded, scalar_of(value_type)) {
                    (Encoded::Bits(bits), Some(scalar)) => write(scalar, column, at * width, bits),
                    (Encoded::Bytes(bytes), _) => {
                        let bits = pack_range(blobs.len(), bytes.len());
                        blobs.extend_from_slice(bytes);
                        column[at * width..][..8].copy_from_slice(&bits.to_ne_bytes());
                    }
                    (Encoded::Bits(_), None) => return false,
                }
            }
            true
        }
    }
}
