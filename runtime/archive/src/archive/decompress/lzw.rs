//! What `compress` makes.
//!
//! | offset | size | field                                                        |
//! |--------|------|--------------------------------------------------------------|
//! | 0      | 2    | magic                                                        |
//! | 2      | 1    | bits 0-4: most bits of a code; bit 7: there are clear codes   |
//! | 3      |      | codes, low bits first, of 9 bits at first                    |
//!
//! A code is a byte, or 256 which clears the table, or an entry of the table:
//! the string of an older code and one byte more. Codes get a bit longer when
//! the table has outgrown them. They are written in groups of eight, and what
//! is left of a group is skipped when their length changes.

use std::io::{self, BufRead, Write};

use super::input::Input;
use super::output::Output;

const FIRST_BITS: u32 = 9;
const MOST_BITS: u32 = 16;
const CLEAR: u16 = 256;

fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("compress: {message}"))
}

/// Expands all that follows.
pub(super) fn expand(input: &mut Input, output: &mut Output<'_>) -> io::Result<()> {
    let [_, _, flags] = input.array()?;
    let most = u32::from(flags & 0x1f);
    if !(FIRST_BITS..=MOST_BITS).contains(&most) || flags & 0x60 != 0 {
        return Err(bad("its codes are of an unknown kind"));
    }
    let clears = flags & 0x80 != 0;
    let mut codes = Codes { input, bits: FIRST_BITS, kept: 0, kept_bits: 0, in_group: 0 };
    let mut table = Table::new(clears, most);
    // The code before, and the first byte of its string.
    let mut last: Option<(u16, u8)> = None;
    let mut string = Vec::new();
    let mut is_begun = false;
    loop {
        if table.outgrows(codes.bits) {
            codes.end_group()?;
            codes.bits += 1;
        }
        let Some(code) = codes.next()? else { return output.write_all(&string) };
        // There is nothing to clear at first, and gzip refuses it as well.
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
            None => return Err(bad("a string begins with none")),
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

/// Strings by their codes.
struct Table {
    /// Of each code from `base` on: the code of its beginning, its last byte.
    entries: Vec<(u16, u8)>,
    base: usize,
    /// Bits of the longest codes.
    most: u32,
}

impl Table {
    fn new(clears: bool, most: u32) -> Table {
        Table { entries: Vec::new(), base: 256 + usize::from(clears), most }
    }

    /// The code of the next entry.
    fn next(&self) -> usize {
        self.base + self.entries.len()
    }

    /// True when codes of so many bits do not reach the next entry.
    fn outgrows(&self, bits: u32) -> bool {
        bits < self.most && self.next() >= 1 << bits
    }

    fn add(&mut self, beginning: u16, byte: u8) {
        if self.next() < 1 << self.most {
            self.entries.push((beginning, byte));
        }
    }

    /// Appends the string of a code that is there.
    fn spell(&self, mut code: u16, string: &mut Vec<u8>) {
        let start = string.len();
        // An entry's beginning is always older, so this ends.
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

/// Reads codes of a number of bits.
struct Codes<'a> {
    input: &'a mut Input,
    bits: u32,
    /// Bits that were read and are no code yet, and how many.
    kept: u32,
    kept_bits: u32,
    /// Codes read in the present group.
    in_group: u32,
}

impl Codes<'_> {
    /// The next code. `None` at the end, where bits may be left over.
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

    /// Skips what is left of a group.
    fn end_group(&mut self) -> io::Result<()> {
        while self.in_group != 0 && self.next()?.is_some() {}
        self.in_group = 0;
        Ok(())
    }
}
