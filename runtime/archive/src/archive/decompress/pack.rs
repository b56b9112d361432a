//! Expands files of `pack`. They use one Huffman code for the whole file.
//!
//! | offset | size | field                                                     |
//! |--------|------|-----------------------------------------------------------|
//! | 0      | 2    | magic                                                     |
//! | 2      | 4    | size of the contents                                      |
//! | 6      | 1    | length of the longest codes in bits                       |
//! | 7      |      | for each length from 1 on, the number of codes, one byte; |
//! |        |      | for the longest codes, the number less two                |
//! |        |      | the bytes that codes stand for, shortest codes first; the |
//! |        |      | last code has none, it marks the end                      |
//! |        |      | codes, high bits first                                    |
//!
//! Among the codes of one length, the lowest are prefixes of longer codes.

use std::io::{self, BufRead, Write};

use super::input::Input;
use super::output::Output;

/// Length in bits of the longest code that `pack` writes.
const MOST_BITS: u8 = 25;

fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("pack: {message}"))
}

/// The codes of one length.
struct Length {
    /// Smaller codes are prefixes of longer ones.
    beginnings: u32,
    /// Number of codes of this length.
    count: u32,
    /// Position in the list of bytes of the first code's byte.
    first: usize,
}

/// Expands the rest of the file.
pub(super) fn expand(input: &mut Input, output: &mut Output<'_>) -> io::Result<()> {
    let [_, _, a, b, c, d, most] = input.array()?;
    let size = u64::from(u32::from_be_bytes([a, b, c, d]));
    if !(1..=MOST_BITS).contains(&most) {
        return Err(bad("its codes are too long"));
    }
    let mut lengths = Vec::new();
    let mut first = 0;
    for bits in 1..=most {
        let [count] = input.array()?;
        // The longest length has two more codes than stored: one for a byte, one for
        // the end.
        let bytes = u32::from(count) + u32::from(bits == most);
        let count = bytes + u32::from(bits == most);
        lengths.push(Length { beginnings: 0, count, first });
        first += bytes as usize;
    }
    if first > 256 {
        return Err(bad("there are too many codes"));
    }
    let mut nodes = 0;
    for length in lengths.iter_mut().rev() {
        if nodes % 2 != 0 {
            return Err(bad("its codes contradict each other"));
        }
        length.beginnings = nodes / 2;
        nodes = length.beginnings + length.count;
    }
    if nodes != 2 {
        return Err(bad("its codes contradict each other"));
    }
    let mut bytes = vec![0; first];
    io::Read::read_exact(input, &mut bytes)?;

    let mut contents = Vec::new();
    let (mut code, mut depth) = (0, 0);
    loop {
        let Some(byte) = input.fill_buf()?.first().copied() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        input.consume(1);
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            let length: &Length = &lengths[depth];
            depth += 1;
            let Some(number) = code.checked_sub(length.beginnings) else { continue };
            let is_longest = depth == lengths.len();
            match bytes.get(length.first + number as usize) {
                Some(byte) if number < length.count => contents.push(*byte),
                _ if is_longest => {
                    output.write_all(&contents)?;
                    return match output.written() == size {
                        true => Ok(()),
                        false => Err(bad("its size differs from that in its header")),
                    };
                }
                _ => return Err(bad("a code stands for nothing")),
            }
            (code, depth) = (0, 0);
        }
        if contents.len() > 64 * 1024 {
            output.write_all(&contents)?;
            contents.clear();
        }
    }
}
