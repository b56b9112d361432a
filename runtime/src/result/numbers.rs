//! The values of a set that are all numbers, as a whole.
//!
//! Nearly all writers put the blocks of a set one behind the other, so that
//! numbers stand at equal distances. Knows the encoding of value sets, not
//! where numbers come from or go to.

use crate::model::{InstId, ValueType};
use crate::result::{ResultPart, ValueSet};

/// Where the numbers of a set stand. It holds for all parts of the same
/// [`LayoutId`](crate::result::LayoutId).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberPlace {
    /// Offset of the first lane or block.
    offset: usize,
    count: usize,
    /// Bytes of a number.
    size: usize,
}

impl NumberPlace {
    /// Number of values.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The bits of the numbers in the bytes of a part, for each `write` is
    /// called with in turn; those of 32 bits are in the low half.
    #[inline]
    pub fn read(&self, part: &[u8], mut write: impl FnMut(u64)) {
        let bytes = part.get(self.offset..).unwrap_or_default();
        if self.size == 8 {
            for [_, _, _, _, number @ ..] in bytes.as_chunks::<12>().0.iter().take(self.count) {
                write(u64::from_be_bytes(*number));
            }
        } else {
            // Behind an instance or the header of a block.
            for [_, _, _, _, number @ ..] in bytes.as_chunks::<8>().0.iter().take(self.count) {
                write(u64::from(u32::from_be_bytes(*number)));
            }
        }
    }

    /// Writes bits of numbers over those in the bytes of a part; as many as
    /// there are.
    #[inline]
    pub fn overwrite(&self, part: &mut [u8], values: impl Iterator<Item = u64>) {
        let bytes = part.get_mut(self.offset..).unwrap_or_default();
        if self.size == 8 {
            let blocks = bytes.as_chunks_mut::<12>().0.iter_mut().take(self.count);
            for ([_, _, _, _, number @ ..], bits) in blocks.zip(values) {
                *number = bits.to_be_bytes();
            }
        } else {
            let lanes = bytes.as_chunks_mut::<8>().0.iter_mut().take(self.count);
            for ([_, _, _, _, number @ ..], bits) in lanes.zip(values) {
                *number = (bits as u32).to_be_bytes();
            }
        }
    }
}

impl ResultPart {
    /// Where the numbers of one of its sets stand, if all its values are
    /// numbers of `value_type` at equal distances. `offset` is that of the set.
    pub fn numbers(
        &self,
        offset: usize,
        set: &ValueSet<'_>,
        value_type: ValueType,
    ) -> Option<NumberPlace> {
        use ValueType::{F32, F64, I32, I64, U32, U64};
        let count = set.lanes().len();
        let size = match (value_type, set.in_blocks) {
            (I32 | U32, false) => {
                return Some(NumberPlace { offset: offset + 12, count, size: 4 });
            }
            (I64 | U64 | F64, true) => 8,
            (F32, true) => 4,
            _ => return None,
        };
        let first = set.lanes().next()?.word;
        let header = header(value_type, size);
        let mut position = first;
        for lane in set.lanes() {
            let is_here = lane.word == position;
            let is_block = self.block_header(lane.word) == Some(header);
            if !is_here || !is_block {
                return None;
            }
            position = position.wrapping_add(1 + size as u32 / 4);
        }
        let offset = usize::try_from(self.block_origin + 4 * i64::from(first)).ok()?;
        let place = NumberPlace { offset, count, size };
        let end = offset.checked_add(count.checked_mul(4 + size)?)?;
        (end <= self.bytes.len()).then_some(place)
    }

    #[inline]
    fn block_header(&self, position: u32) -> Option<[u8; 4]> {
        let offset = usize::try_from(self.block_origin + 4 * i64::from(position)).ok()?;
        self.bytes.get(offset..)?.first_chunk().copied()
    }
}

/// What stands in front of a number in a block.
fn header(value_type: ValueType, size: usize) -> [u8; 4] {
    ((value_type.code() as u32) << 24 | (size as u32 + 4)).to_be_bytes()
}

/// Appends what follows the metric in a value set: the number of values and,
/// if there are any, their form and a lane for each; blocks go to `blocks`,
/// whose first byte is the block origin.
///
/// `values` are bits of numbers of `value_type`, those of 32 bits in the low
/// half. Numbers of 64 bits are always in blocks, integers of 32 bits never,
/// and [`ValueType::F32`] if `in_blocks` says so.
pub fn append_numbers(
    sets: &mut Vec<u8>,
    blocks: &mut Vec<u8>,
    value_type: ValueType,
    in_blocks: bool,
    values: impl ExactSizeIterator<Item = (InstId, u64)>,
) {
    use ValueType::{F32, F64, I64, U64};
    let count = values.len();
    let size = match value_type {
        I64 | U64 | F64 => 8,
        F32 if in_blocks => 4,
        _ => 0,
    };
    sets.extend_from_slice(&(count as u32).to_be_bytes());
    if count == 0 {
        return;
    }
    sets.extend_from_slice(&u32::from(size > 0).to_be_bytes());
    let lanes = sets.len();
    sets.resize(lanes + 8 * count, 0);
    let lanes = sets[lanes..].as_chunks_mut::<8>().0.iter_mut();
    let header = header(value_type, size);
    let first = blocks.len();
    let position = (first / 4) as u32;
    blocks.resize(first + (4 + size) * count * usize::from(size > 0), 0);
    let blocks = &mut blocks[first..];
    let lane = |lane: &mut [u8; 8], instance: InstId, word: u32| {
        lane[..4].copy_from_slice(&instance.to_be_bytes());
        lane[4..].copy_from_slice(&word.to_be_bytes());
    };
    match size {
        8 => {
            let blocks = blocks.as_chunks_mut::<12>().0.iter_mut();
            for (((at, block), out), (instance, bits)) in
                (0u32..).zip(blocks).zip(lanes).zip(values)
            {
                lane(out, instance, position + 3 * at);
                block[..4].copy_from_slice(&header);
                block[4..].copy_from_slice(&bits.to_be_bytes());
            }
        }
        4 => {
            let blocks = blocks.as_chunks_mut::<8>().0.iter_mut();
            for (((at, block), out), (instance, bits)) in
                (0u32..).zip(blocks).zip(lanes).zip(values)
            {
                lane(out, instance, position + 2 * at);
                block[..4].copy_from_slice(&header);
                block[4..].copy_from_slice(&(bits as u32).to_be_bytes());
            }
        }
        _ => {
            lanes.zip(values).for_each(|(out, (instance, bits))| lane(out, instance, bits as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Pmid, Timestamp};
    use crate::result::{BlockValue, ResultBatch, ResultPart, ResultWriter};

    /// The same as value by value.
    #[test]
    fn numbers_are_written_as_by_the_writer() {
        use ValueType::{F32, F64, I32, I64, U32, U64};
        let bits = [0xc05e_dd2f_1a9f_be77_u64, 7, u64::MAX];
        for value_type in [I32, U32, I64, U64, F32, F64] {
            for (count, in_blocks) in [(0, true), (1, true), (3, true), (3, false)] {
                let numbers = || (5..).zip(bits[..count].iter().copied());
                let mut batch = ResultBatch::default();
                let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
                writer.set(Pmid(9));
                let mut has_blocks = count > 0;
                for (instance, bits) in numbers() {
                    match (value_type, in_blocks) {
                        (I64, _) => writer.block(instance, BlockValue::I64(bits as i64)),
                        (U64, _) => writer.block(instance, BlockValue::U64(bits)),
                        (F64, _) => writer.block(instance, BlockValue::F64(f64::from_bits(bits))),
                        (F32, true) => {
                            let number = f32::from_bits(bits as u32);
                            writer.block(instance, BlockValue::F32(number));
                        }
                        _ => {
                            writer.in_place(instance, bits as u32);
                            has_blocks = false;
                        }
                    }
                }
                writer.finish();
                let (mut sets, mut blocks) = (Pmid(9).0.to_be_bytes().to_vec(), Vec::new());
                let listed = numbers().collect::<Vec<_>>().into_iter();
                append_numbers(&mut sets, &mut blocks, value_type, in_blocks, listed);
                let mut part = ResultPart {
                    set_count: 1,
                    first_set: blocks.len(),
                    bytes: [blocks, sets].concat(),
                    ..ResultPart::default()
                };
                let (expected, set) = (&batch.parts()[0], part.sets().next().expect("a set"));
                let like = expected.sets().next().expect("a set");
                assert_eq!(
                    (set.pmid, set.count, set.in_blocks),
                    (like.pmid, like.count, has_blocks)
                );
                assert_eq!(set.lanes().len(), count);
                for (lane, like_lane) in set.lanes().zip(like.lanes()) {
                    assert_eq!(lane.instance, like_lane.instance);
                    let value = part.value(&set, lane);
                    assert!(value.is_some());
                    assert_eq!(value, expected.value(&like, like_lane));
                }
                if count == 0 {
                    continue;
                }
                let place = part.numbers(part.first_set, &set, value_type);
                // Single precision in place is what old archives have.
                assert_eq!(place.is_some(), value_type != F32 || in_blocks);
                let Some(place) = place else { continue };
                let shortened = |bits| if place.size == 8 { bits } else { bits & 0xffff_ffff };
                let read = |part: &ResultPart| {
                    let mut read = Vec::new();
                    place.read(&part.bytes, |bits| read.push(bits));
                    read
                };
                let wanted: Vec<u64> = bits[..count].iter().copied().map(shortened).collect();
                assert_eq!(read(&part), wanted);
                let others = [1, u64::MAX - 1, 77];
                place.overwrite(&mut part.bytes, others.into_iter());
                let wanted: Vec<u64> = others[..count].iter().copied().map(shortened).collect();
                assert_eq!(read(&part), wanted);
            }
        }
    }
}
