//! Writes the values of a set that are all numbers, sooner than one by one.
//!
//! Knows the encoding of value sets, not where the numbers come from.

use crate::model::{InstId, ValueType};

/// Appends what follows the metric in a value set: the number of values and,
/// if there are any, their form and a lane for each; blocks go to `blocks`,
/// whose first byte is the block origin. True if there are blocks.
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
) -> bool {
    use ValueType::{F32, F64, I64, U64};
    let count = values.len();
    let size = match value_type {
        _ if count == 0 => 0,
        I64 | U64 | F64 => 8,
        F32 if in_blocks => 4,
        _ => 0,
    };
    sets.extend_from_slice(&(count as u32).to_be_bytes());
    if count == 0 {
        return false;
    }
    sets.extend_from_slice(&u32::from(size > 0).to_be_bytes());
    let lanes = sets.len();
    sets.resize(lanes + 8 * count, 0);
    let lanes = sets[lanes..].as_chunks_mut::<8>().0.iter_mut();
    let header = ((value_type.code() as u32) << 24 | (size as u32 + 4)).to_be_bytes();
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
    size > 0
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
                let numbers = numbers().collect::<Vec<_>>().into_iter();
                let written =
                    append_numbers(&mut sets, &mut blocks, value_type, in_blocks, numbers);
                assert_eq!(written, has_blocks);
                let part = ResultPart {
                    set_count: 1,
                    first_set: blocks.len(),
                    bytes: [blocks, sets].concat(),
                    ..ResultPart::default()
                };
                let (expected, set) = (&batch.parts()[0], part.sets().next().expect("a set"));
                let like = expected.sets().next().expect("a set");
                assert_eq!((set.pmid, set.count, set.in_blocks), (like.pmid, like.count, has_blocks));
                assert_eq!(set.lanes().len(), count);
                for (lane, like_lane) in set.lanes().zip(like.lanes()) {
                    assert_eq!(lane.instance, like_lane.instance);
                    let value = part.value(&set, lane);
                    assert!(value.is_some());
                    assert_eq!(value, expected.value(&like, like_lane));
                }
            }
        }
    }
}
