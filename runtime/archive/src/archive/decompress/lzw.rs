//! Expands files of `compress`.
//!
//! | offset | size | field                                                        |
//! |--------|------|--------------------------------------------------------------|
//! | 0      | 2    | magic                                                        |
//! | 2      | 1    | bits 0-4: maximum bits of a code; bit 7: clear codes occur     |
//! | 3      |      | codes, low bits first, of 9 bits at first                    |
//!
//! A code stands for a byte, or for an entry of the table: the string of an older code
//! plus one byte. Code 256 clears the table. Codes become one bit longer when the table
//! outgrows them. They are written in groups of eight; when their length changes, the
//! rest of the group is skipped.

use std::io::{self, BufRead, Write};

use super::input::Input;
use super::output::Output;

const FIRST_BITS: u32 = 9;
const MOST_BITS: u32 = 16;
const CLEAR: u16 = 256;

fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("compress: {message}"))
}

/// Expands the rest of the file.
pub(super) fn expand(input: &mut Input, output: &mut Output<'_>) -> io::Result<()> {
    let [_, _, flags] = input.array()?;
    let most = u32::from(flags & 0x1f);
    if !(FIRST_BITS..=MOST_BITS).contains(&most) || flags & 0x60 != 0 {
        return Err(bad("its kind of codes is unknown"));
    }
    let clears = flags & 0x80 != 0;
    let mut codes = Codes { input, bits: FIRST_BITS, kept: 0, kept_bits: 0, in_group: 0 };
    let mut table = Table::new(clears, most);
    // The previous code, and the first byte of its string.
    let mut last: Option<(u16, u8)> = None;
    let mut string = Vec::new();
    let mut is_begun = false;
    loop {
        if table.outgrows(codes.bits) {
            codes.end_group()?;
            codes.bits += 1;
        }
        let Some(code) = codes.next()? else { return output.write_all(&string) };
        // There is nothing to clear at the start, and gzip refuses a clear code there
        // too.
        if code == CLEAR && clears && is_begun {
            codes.end_group()?;
            codes.bits = FIRST_BITS;
            table = Table::new(clears, most);
            last = None;
            continue;
        }
        is_begun = true;
        let start = string.len();
        match last {
            None if code < 256 => string.push(code as u8),
            None => return Err(bad("the first code is not a byte")),
            Some((before, first)) if usize::from(code) == table.next() => {
                table.spell(before, &mut string);
                string.push(first);
            }
            Some(_) if usize::from(code) > table.next() => {
                return Err(bad("a code is not in the table"));
            }
            Some(_) => table.spell(code, &mut string),
        }
        let first = string[start];
        if let Some((before, _)) = last {
            table.add(before, first);
        }
        last = Some((code, first));
        if string.len() > 64 * 1024 {
            output.write_all(&string)?;
            string.clear();
        }
    }
}

/// The strings that codes stand for.
struct Table {
    /// For each code from `base` on: the code of its string without the last byte, and
    /// that byte.
    entries: Vec<(u16, u8)>,
    base: usize,
    /// Maximum number of bits of a code.
    most: u32,
}

impl Table {
    fn new(clears: bool, most: u32) -> Table {
        Table { entries: Vec::new(), base: 256 + usize::from(clears), most }
    }

    /// The code that the next entry will have.
    fn next(&self) -> usize {
        self.base + self.entries.len()
    }

    /// True if codes of `bits` bits are too short for the next entry.
    fn outgrows(&self, bits: u32) -> bool {
        bits < self.most && self.next() >= 1 << bits
    }

    fn add(&mut self, beginning: u16, byte: u8) {
        if self.next() < 1 << self.most {
            self.entries.push((beginning, byte));
        }
    }

    /// Appends the string of a code of the table.
    fn spell(&self, mut code: u16, string: &mut Vec<u8>) {
        let start = string.len();
        // The code of the shorter string is always older, so this ends.
        while let Some((beginning, byte)) =
            usize::from(code).checked_sub(self.base).and_then(|at| self.entries.get(at))
        {
            string.push(*byte);
            code = *beginning;
        }
        string.push(code as u8);
        string[start..].reverse();
    }
}

/// Reads codes of `bits` bits.
struct Codes<'a> {
    input: &'a mut Input,
    bits: u32,
    /// Bits that were read and belong to the next code, and their number.
    kept: u32,
    kept_bits: u32,
    /// Number of codes read in the current group.
    in_group: u32,
}

impl Codes<'_> {
    /// The next code. `None` at the end of the file, where bits may be left over.
    fn next(&mut self) -> io::Result<Option<u16>> {
        while self.kept_bits < self.bits {
            let Some(byte) = self.input.fill_buf()?.first().copied() else { return Ok(None) };
            self.input.consume(1);
            self.kept |= u32::from(byte) << self.kept_bits;
            self.kept_bits += 8;
        }
        let code = self.kept & ((1 << self.bits) - 1);
        self.kept >>= self.bits;
        self.kept_bits -= self.bits;
        self.in_group = (self.in_group + 1) % 8;
        // No code has more than 16 bits.
        Ok(Some(code as u16))
    }

    /// Skips the rest of a group.
    fn end_group(&mut self) -> io::Result<()> {
        while self.in_group != 0 && self.next()?.is_some() {}
        self.in_group = 0;
        Ok(())
    }
}
