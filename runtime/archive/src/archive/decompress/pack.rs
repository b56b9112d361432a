//! What `pack` makes: one Huffman code for the whole file.
//!
//! | offset | size | field                                                     |
//! |--------|------|-----------------------------------------------------------|
//! | 0      | 2    | magic                                                     |
//! | 2      | 4    | size of the contents                                      |
//! | 6      | 1    | length of the longest codes in bits                       |
//! | 7      |      | for each length from 1 on, how many codes have it, a byte; |
//! |        |      | of the longest ones, two more than that                   |
//! |        |      | bytes by their codes, the shortest first, without the last |
//! |        |      | code: it is the end                                       |
//! |        |      | codes, high bits first                                    |
//!
//! Among codes of one length the highest belong to the beginnings of longer ones.

use std::io::{self, BufRead, Write};

use super::input::Input;
use super::output::Output;

/// Bits of the longest code that `pack` makes.
const MOST_BITS: u8 = 25;

fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("pack: {message}"))
}

/// The codes of one length.
struct Length {
    /// Codes below this are beginnings of longer ones.
    beginnings: u32,
    /// Codes of this length.
    count: u32,
    /// Position in the list of bytes of the first code.
    first: usize,
}

/// Expands all that follows.
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
        // Of the longest ones one more has a byte, and one is the end.
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
                        false => Err(bad("its size is not what it says")),
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
