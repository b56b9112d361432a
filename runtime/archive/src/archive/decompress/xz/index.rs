//! The index at the end of a stream of xz.
//!
//! Input: a whole file, read from its end, or the bytes after the blocks of a stream.
//! Output: the places of the blocks, or whether the index agrees with the blocks.

use std::io::{self, Read};

use super::{Block, Check, ENDS, bad, check_crc, number, read_header, take};
use crate::archive::decompress::input::Input;

const FOOTER_MAGIC: [u8; 2] = *b"YZ";

/// Maximum size in bytes of an index that is read; it has some ten million blocks.
const LONGEST_INDEX: u64 = 64 << 20;

/// Maximum number of zeros between two streams that are skipped to find an index.
const MOST_ZEROS: u64 = 4096;

/// All blocks of a file in order. `None` if an index is wrong; expanding the file in
/// order then tells the reason.
pub(in crate::archive::decompress) fn blocks(input: &mut Input) -> Option<Vec<Block>> {
    let mut end = input.size().ok()?;
    let mut blocks = Vec::new();
    while end > 0 {
        end = without_zeros(input, end)?;
        let footer_at = end.checked_sub(ENDS)?;
        input.seek(footer_at);
        let (check, index_size) = read_footer(input).ok()?;
        let index_at = footer_at.checked_sub(index_size).filter(|_| index_size <= LONGEST_INDEX)?;
        input.seek(index_at);
        let mut index = vec![0; usize::try_from(index_size).ok()?];
        input.read_exact(&mut index).ok()?;
        let sizes = parse_index(&index).ok()?;
        let mut at = index_at;
        for (length, size) in sizes.into_iter().rev() {
            at = at.checked_sub(length.checked_next_multiple_of(4)?)?;
            blocks.push(Block { at, length, check, start: 0, size });
        }
        end = at.checked_sub(ENDS)?;
        input.seek(end);
        if read_header(input).ok()? != check {
            return None;
        }
    }
    blocks.reverse();
    let mut start = 0u64;
    for block in &mut blocks {
        block.start = start;
        start = start.checked_add(block.size)?;
    }
    Some(blocks)
}

/// The end of the file without its trailing zeros, which come in groups of four.
fn without_zeros(input: &mut Input, end: u64) -> Option<u64> {
    let first = end.saturating_sub(MOST_ZEROS);
    input.seek(first);
    let mut bytes = vec![0; usize::try_from(end - first).ok()?];
    input.read_exact(&mut bytes).ok()?;
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    (zeros % 4 == 0 && zeros < bytes.len()).then_some(end - zeros as u64)
}

/// The check of the blocks and the size of the index, from the footer.
fn read_footer(input: &mut Input) -> io::Result<(Check, u64)> {
    let footer = input.array::<{ ENDS as usize }>()?;
    let [c0, c1, c2, c3, s0, s1, s2, s3, f0, f1, magic @ ..] = footer;
    if magic != FOOTER_MAGIC {
        return Err(bad("this is not a stream's footer"));
    }
    check_crc(&footer[4..10], [c0, c1, c2, c3], "a stream's footer")?;
    let size = 4 * (u64::from(u32::from_le_bytes([s0, s1, s2, s3])) + 1);
    Ok((Check::of_flags([f0, f1])?, size))
}

/// The sizes in a complete index that begins with its 0. Each block has two: its size
/// without zeros, and the size of its contents.
fn parse_index(index: &[u8]) -> io::Result<Vec<(u64, u64)>> {
    let Some((body, stored)) = index.split_last_chunk() else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    check_crc(body, *stored, "an index")?;
    let mut rest = body;
    if take(&mut rest, 1)? != [0] {
        return Err(bad("this is not an index"));
    }
    let count = number(&mut rest)?;
    // Each block has at least two bytes.
    if count > rest.len() as u64 / 2 {
        return Err(bad("an index has fewer blocks than it says"));
    }
    let mut sizes = Vec::new();
    for _ in 0..count {
        sizes.push((number(&mut rest)?, number(&mut rest)?));
    }
    match rest.len() < 4 && rest.iter().all(|byte| *byte == 0) {
        true => Ok(sizes),
        false => Err(bad("something follows the last block of an index")),
    }
}

/// Reads the index and the footer that follow, and compares them with the blocks that
/// were read.
pub(super) fn read_index(input: &mut Input, check: Check, sizes: &[(u64, u64)]) -> io::Result<()> {
    let mut expected = vec![0];
    let numbers = sizes.iter().flat_map(|(length, size)| [*length, *size]);
    for mut number in std::iter::once(sizes.len() as u64).chain(numbers) {
        while number >= 0x80 {
            expected.push(number as u8 | 0x80);
            number >>= 7;
        }
        expected.push(number as u8);
    }
    expected.resize(expected.len().next_multiple_of(4), 0);
    expected.extend(crc32fast::hash(&expected).to_le_bytes());
    let mut index = vec![0; expected.len()];
    input.read_exact(&mut index)?;
    if index != expected {
        return Err(bad("an index does not agree with the blocks"));
    }
    match read_footer(input)? == (check, index.len() as u64) {
        true => Ok(()),
        false => Err(bad("a footer does not agree with the index")),
    }
}
