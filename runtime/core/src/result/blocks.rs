//! Blocks in the order of the values that refer to them, one after the other,
//! as nearly all writers write them.
//!
//! Input: bytes, and the lanes of a value set. Output: where their blocks end.
//! This module only confirms the regular case. It never says what is wrong.

/// Size in bytes of a block with 8 bytes of data.
const SIZE: usize = 12;

/// The end of the blocks of some lanes, if these blocks are regular. They must begin at `at`,
/// follow each other in the order of the lanes, and all have one type and 8 bytes of data.
/// Positions count words from `block_origin`.
#[inline]
pub fn end_of_blocks_of_8(
    bytes: &[u8],
    at: usize,
    block_origin: i64,
    lanes: &[[u8; 8]],
) -> Option<usize> {
    let end = at.checked_add(lanes.len().checked_mul(SIZE)?)?;
    let (blocks, _) = bytes.get(at..end)?.as_chunks::<SIZE>();
    let [first, ..] = blocks else { return Some(end) };
    let [_, 0, 0, 12, ..] = *first else { return None };
    let words = i64::try_from(at).ok()?.checked_sub(block_origin)?;
    let mut position = u32::try_from(words / 4).ok().filter(|_| words % 4 == 0)?;
    let head = head_of(first);
    // A few values at once, because usually all are as they should be.
    for (blocks, lanes) in blocks.chunks(64).zip(lanes.chunks(64)) {
        let mut wrong = 0;
        for (block, [_, _, _, _, e, f, g, h]) in blocks.iter().zip(lanes) {
            wrong |= head_of(block) ^ head;
            wrong |= u32::from_be_bytes([*e, *f, *g, *h]) ^ position;
            position = position.wrapping_add(3);
        }
        if wrong != 0 {
            return None;
        }
    }
    Some(end)
}

#[inline]
fn head_of(&[a, b, c, d, ..]: &[u8; SIZE]) -> u32 {
    u32::from_ne_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 blocks behind 16 other bytes, and lanes that refer to these.
    fn regular() -> (Vec<u8>, Vec<[u8; 8]>) {
        let mut bytes = vec![0; 16];
        let mut lanes = Vec::new();
        for value in 0..100u32 {
            let position = (bytes.len() as u32 + 8) / 4;
            let [[a, b, c, d], [e, f, g, h]] = [value, position].map(u32::to_be_bytes);
            lanes.push([a, b, c, d, e, f, g, h]);
            bytes.extend([3, 0, 0, 12, 0, 0, 0, 0, a, b, c, d]);
        }
        (bytes, lanes)
    }

    #[test]
    fn regular_blocks_end_where_they_end() {
        let (bytes, lanes) = regular();
        assert_eq!(end_of_blocks_of_8(&bytes, 16, -8, &lanes), Some(bytes.len()));
        assert_eq!(end_of_blocks_of_8(&bytes, 16, -8, &lanes[..1]), Some(28));
        assert_eq!(end_of_blocks_of_8(&bytes, 16, -8, &[]), Some(16));
        for (at, origin) in [(15, -8), (16, -7), (16, -4), (28, -8), (4, -20), (usize::MAX, -8)] {
            assert_eq!(end_of_blocks_of_8(&bytes, at, origin, &lanes), None, "{at} {origin}");
        }
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(end_of_blocks_of_8(cut, 16, -8, &lanes), None);
    }

    #[test]
    fn every_wrong_head_and_position_counts() {
        let (bytes, lanes) = regular();
        for block in 0..lanes.len() {
            for byte in 0..4 {
                let (mut other, mut misplaced) = (bytes.clone(), lanes.clone());
                other[16 + 12 * block + byte] ^= 1;
                misplaced[block][4 + byte] ^= 1;
                assert_eq!(end_of_blocks_of_8(&other, 16, -8, &lanes), None);
                assert_eq!(end_of_blocks_of_8(&bytes, 16, -8, &misplaced), None);
            }
        }
    }
}
