//! The value sets of a data record.
//!
//! Input: the bytes of a data record. Output: the places of its value sets, and whether
//! the record is sound. Value sets are encoded as in [`pmderive_core::result::Wire`].

use pmderive_core::model::{PmStatus, Pmid};
use pmderive_core::result::end_of_blocks_of_8;

use crate::archive::framing::{Damage, LENGTH_WORD};

/// Positions of blocks count words from this offset, relative to the record's first
/// length word.
pub(crate) const BLOCK_ORIGIN: i64 = -8;

/// Size in bytes of a value set before its values: metric, count and format.
pub(super) const SET_HEADER: usize = 12;

/// Size in bytes of a value set without values.
pub(super) const EMPTY_SET: usize = 8;

/// One value set within a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetRange {
    /// Offset of its first byte in the record.
    pub(super) start: usize,
    /// Offset after its last byte in the record.
    pub(super) end: usize,
    /// True if it has values, and they are in blocks.
    pub(super) in_blocks: bool,
}

impl SetRange {
    /// True if it has values, and not just their number or a status.
    pub(super) fn has_values(&self) -> bool {
        self.end - self.start > EMPTY_SET
    }
}

/// The word at an offset.
pub(super) fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

fn bad(offset: usize, message: String) -> Damage {
    Damage::new(PmStatus::LOGREC, offset as u64, message)
}

/// Calls `visit` for each of `count` value sets that begin at `start`. Returns the
/// offset after the last one. Offsets in damage count from the record.
pub(super) fn walk(
    record: &[u8],
    start: usize,
    count: usize,
    mut visit: impl FnMut(Pmid, SetRange),
) -> Result<usize, Damage> {
    let limit = record.len().saturating_sub(LENGTH_WORD);
    let sets = &record[..limit];
    let mut at = start;
    for number in 0..count {
        let Some(head) = sets.get(at..).and_then(|rest| rest.first_chunk::<EMPTY_SET>()) else {
            let message = format!("value set {number} of {count} lies beyond the record");
            return Err(bad(at, message));
        };
        let pmid = Pmid(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        let numval = i32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let mut set = SetRange { start: at, end: at + EMPTY_SET, in_blocks: false };
        if numval > 0 {
            // The bound keeps the product from overflowing.
            let values = usize::try_from(numval).unwrap_or(usize::MAX);
            set.end = if values <= limit / 8 { at + SET_HEADER + 8 * values } else { usize::MAX };
            if set.end > limit {
                let message = format!("numval of metric {pmid}: {numval} values do not fit");
                return Err(bad(at + 4, message));
            }
            match word(sets, at + 8) {
                Some(0) => {}
                Some(1 | 2) => set.in_blocks = true,
                format => {
                    let format = format.unwrap_or_default();
                    let message = format!("valfmt of metric {pmid}: {format} is not 0, 1 or 2");
                    return Err(bad(at + 8, message));
                }
            }
        }
        at = set.end;
        visit(pmid, set);
    }
    Ok(at)
}

/// Checks a whole record. Its blocks must follow the sets, which begin at `start`,
/// without gaps up to the end of the record, and each block must belong to one value.
/// `pmGetArchiveEnd(3)` uses the same test to find the last record. Offsets in damage
/// count from the record.
pub(super) fn check(record: &[u8], start: usize, count: usize) -> Result<(), Damage> {
    match is_in_order(record, start, count)? {
        true => Ok(()),
        false => check_in_any_order(record, start, count),
    }
}

/// Does the work of [`check`] for blocks in any order.
fn check_in_any_order(record: &[u8], start: usize, count: usize) -> Result<(), Damage> {
    // Positions are compared by their sum, which any single wrong position changes.
    let (mut blocks, mut positions) = (0, 0);
    let sets_end = walk(record, start, count, |_, set| {
        if set.in_blocks {
            let lanes = record[set.start + SET_HEADER..set.end].chunks_exact(8);
            blocks += lanes.len();
            positions += lanes
                .map(|lane| u64::from(u32::from_be_bytes([lane[4], lane[5], lane[6], lane[7]])))
                .sum::<u64>();
        }
    })?;
    let limit = record.len().saturating_sub(LENGTH_WORD);
    let mut at = sets_end;
    for number in 0..blocks {
        let length = word(&record[..limit], at).map_or(0, |head| (head & 0xff_ffff) as usize);
        if length < LENGTH_WORD || length > limit - at {
            let message =
                format!("value block {number} of {blocks} does not lie within the record");
            return Err(bad(at, message));
        }
        // The position that refers to this block.
        positions = positions.wrapping_sub((at as u64).wrapping_add_signed(-BLOCK_ORIGIN) / 4);
        at += length.next_multiple_of(4);
        if at > limit {
            at = limit + 1;
            break;
        }
    }
    if at != limit {
        let message = format!("value blocks end at byte {at} of the record, not at byte {limit}");
        return Err(bad(sets_end, message));
    }
    if positions != 0 {
        return Err(bad(start, "a value refers to a place where no value block begins".into()));
    }
    Ok(())
}

/// True if the record is sound and its blocks are in the order of the values, as nearly
/// all writers write them. One pass over the sets finds that. False only means that the
/// blocks may be in another order.
fn is_in_order(record: &[u8], start: usize, count: usize) -> Result<bool, Damage> {
    let body = &record[..record.len().saturating_sub(LENGTH_WORD)];
    let (mut first, mut has_blocks) = (None, false);
    // Offset that the next block must have. `None` after a block in another place.
    let mut next = None;
    let sets_end = walk(record, start, count, |_, set| {
        if set.in_blocks {
            let (lanes, _) = record[set.start + SET_HEADER..set.end].as_chunks::<8>();
            if !has_blocks {
                first = lanes.first().and_then(block_of);
                (next, has_blocks) = (first, true);
            }
            next = next.and_then(|at| {
                end_of_blocks_of_8(body, at, BLOCK_ORIGIN, lanes)
                    .or_else(|| end_of_blocks(body, at, lanes))
            });
        }
    })?;
    Ok(match has_blocks {
        true => first == Some(sets_end) && next == Some(body.len()),
        false => sets_end == body.len(),
    })
}

/// The blocks of some values, if they follow each other in the order of the values, and
/// all have one type and 8 bytes of data.
pub(super) fn regular_blocks<'r>(record: &'r [u8], lanes: &[[u8; 8]]) -> Option<&'r [[u8; 12]]> {
    let body = record.get(..record.len().checked_sub(LENGTH_WORD)?)?;
    let at = block_of(lanes.first()?)?;
    let end = end_of_blocks_of_8(body, at, BLOCK_ORIGIN, lanes)?;
    Some(body.get(at..end)?.as_chunks().0)
}

/// Offset of the block of a value.
pub(super) fn block_of(&[_, _, _, _, a, b, c, d]: &[u8; 8]) -> Option<usize> {
    let position = i64::from(u32::from_be_bytes([a, b, c, d]));
    usize::try_from(4 * position + BLOCK_ORIGIN).ok()
}

/// The end of the blocks of some values, if they begin at `at` and are in the order of
/// the values.
fn end_of_blocks(body: &[u8], at: usize, lanes: &[[u8; 8]]) -> Option<usize> {
    lanes.iter().try_fold(at, |at, [_, _, _, _, a, b, c, d]| {
        let position = i64::from(u32::from_be_bytes([*a, *b, *c, *d]));
        let length = (word(body, at)? & 0xff_ffff) as usize;
        let is_here = 4 * position + BLOCK_ORIGIN == at as i64;
        let is_within = length >= LENGTH_WORD && length <= body.len() - at;
        (is_here && is_within).then(|| at + length.next_multiple_of(4))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::selection::Selection;
    use pmderive_core::source::FetchList;

    fn record(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// A record with a header of 4 words, then sets and blocks.
    fn sample() -> Vec<u8> {
        record(&[
            0,
            0,
            0,
            3, // header
            10,
            1,
            0,
            0xffff_ffff,
            42, // in place
            11,
            0xffff_cfc2, // status
            12,
            1,
            1,
            0xffff_ffff,
            18, // block at byte 64
            0x0600_0007,
            0x6869_007e, // "hi" and padding
            72,          // trailer
        ])
    }

    #[test]
    fn soundness_is_strict() {
        let good = sample();
        assert!(check(&good, 16, 3).is_ok());
        assert!(check(&good, 16, 2).is_err(), "the third set would be a gap");
        assert!(check(&good, 16, 4).is_err());
        for (word, value) in
            [(5, 9), (5, 2), (6, 3), (15, 17), (15, 19), (15, 0), (16, 3), (16, 99)]
        {
            let mut bad = good.clone();
            bad[4 * word..4 * word + 4].copy_from_slice(&u32::to_be_bytes(value));
            assert!(check(&bad, 16, 3).is_err(), "word {word} = {value}");
        }
    }

    /// [`check_in_any_order`] accepts everything that [`is_in_order`] accepts.
    #[test]
    fn order_is_seen_and_excuses_nothing() {
        const NUMBER: u32 = 0x0300_000c;
        let words = [
            &[0, 0, 0, 3][..],                           // header
            &[10, 3, 1, 0, 25, 1, 28, 2, 31],            // positions of the numbers
            &[11, 1, 1, 0, 34],                          // of the text
            &[12, 1, 0, 5, 42],                          // in place
            &[NUMBER, 0, 1, NUMBER, 0, 2, NUMBER, 0, 3], // from word 23 on
            &[0x0600_0006, 0x6869_7e7e, 140],            // text and trailer
        ]
        .concat();
        let good = record(&words);
        assert!(check_in_any_order(&good, 16, 3).is_ok());
        assert!(is_in_order(&good, 16, 3).expect("sound"));
        let mut others = 0;
        for at in 4..words.len() {
            for value in (0..40).chain([0x0300_000c, 0x0600_000c, 0x0600_0006, u32::MAX]) {
                let bad = record(&[&words[..at], &[value], &words[at + 1..]].concat());
                if is_in_order(&bad, 16, 3).unwrap_or(false) {
                    assert!(check_in_any_order(&bad, 16, 3).is_ok(), "word {at} = {value}");
                    others += 1;
                }
            }
        }
        assert!(others > words.len(), "{others}");
        // Blocks in another order are sound as well.
        let mut swapped = words.clone();
        swapped.swap(8, 10);
        assert!(!is_in_order(&record(&swapped), 16, 3).expect("sound"));
        assert!(check(&record(&swapped), 16, 3).is_ok());
    }

    #[test]
    fn damage_is_located() {
        let damage = |word: usize, value: u32| {
            let mut bad = sample();
            bad[4 * word..4 * word + 4].copy_from_slice(&value.to_be_bytes());
            let list = FetchList::new(vec![Pmid(10), Pmid(12)], vec![]);
            let mut selection = Selection::default();
            selection.prepare(&list);
            let damage = selection.scan(&bad, (16, 3), false).expect_err("it is bad");
            (damage.offset, damage.message)
        };
        let cases = [
            (5, 1000, 20, "numval of metric 0.0.10: 1000 values do not fit"),
            (6, 7, 24, "valfmt of metric 0.0.10: 7 is not 0, 1 or 2"),
            (15, 1, 16, "a value refers to a place where no value block begins"),
            (16, 0x0600_0009, 64, "value block 0 of 1 does not lie within the record"),
            (16, 0x0600_0004, 64, "value blocks end at byte 68 of the record, not at byte 72"),
        ];
        for (word, value, offset, message) in cases {
            assert_eq!(damage(word, value), (offset, message.to_string()));
        }
    }
}
