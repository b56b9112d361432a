//! Expands files of `xz`: streams of blocks, or a file of the older format lzma.
//!
//! ```text
//!   stream: magic │ flags │ CRC32       12 bytes
//!           block: header │ compressed │ zeros to a multiple of 4 │ check
//!           ...
//!           index: 0 │ number of blocks │ sizes of each │ zeros │ CRC32
//!           footer: CRC32 │ size of the index │ flags │ magic   12 bytes
//!   zeros, and perhaps a further stream
//! ```
//!
//! The index gives two sizes for each block: the block without its zeros, and its
//! contents. Numbers have seven bits in each byte, low bits first. The indexes tell
//! where each block is, so a block can be expanded without those before it. A file
//! without indexes, such as one that was cut, is expanded in order. LZMA and the
//! filters are left to a crate.

mod index;

use std::io::{self, Read};

use crc::{CRC_64_XZ, Crc, Digest, Table};
use lzma_rust2::filter::bcj::BcjReader;
use lzma_rust2::filter::delta::DeltaReader;
use lzma_rust2::{Lzma2Reader, LzmaReader};
use sha2::{Digest as _, Sha256};

pub(super) use self::index::blocks;

use self::index::read_index;
use super::input::Input;
use super::output::Output;

/// The tables handle sixteen bytes at a time.
static CRC64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

const MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// Size in bytes of a stream's header, and of its footer.
const ENDS: u64 = 12;

/// Memory that a decoder may use, in KiB. The strongest preset needs a quarter of it.
const MEMORY_KIB: u32 = 256 * 1024;

fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("xz: {message}"))
}

fn check_crc(bytes: &[u8], stored: [u8; 4], of: &str) -> io::Result<()> {
    match crc32fast::hash(bytes) == u32::from_le_bytes(stored) {
        true => Ok(()),
        false => Err(bad(&format!("the checksum of {of} differs"))),
    }
}

/// The kind of checksum that blocks have, by its number in the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Check(u8);

impl Check {
    fn of_flags(flags: [u8; 2]) -> io::Result<Check> {
        match flags {
            [0, kind @ 0..16] => Ok(Check(kind)),
            _ => Err(bad("its flags are unknown")),
        }
    }

    /// Number of bytes of the checksum after a block.
    fn size(self) -> usize {
        [0, 4, 8, 16, 32, 64][usize::from(self.0).div_ceil(3)]
    }
}

/// Computes a checksum.
enum Checker {
    /// No checksum, or one of an undefined kind.
    Unknown,
    Crc32(crc32fast::Hasher),
    Crc64(Digest<'static, u64, Table<16>>),
    Sha256(Sha256),
}

impl Checker {
    fn new(check: Check) -> Checker {
        match check {
            Check(1) => Checker::Crc32(crc32fast::Hasher::new()),
            Check(4) => Checker::Crc64(CRC64.digest()),
            Check(10) => Checker::Sha256(Sha256::new()),
            _ => Checker::Unknown,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Checker::Unknown => {}
            Checker::Crc32(hasher) => hasher.update(bytes),
            Checker::Crc64(digest) => digest.update(bytes),
            Checker::Sha256(hasher) => hasher.update(bytes),
        }
    }

    fn agrees(self, stored: &[u8]) -> bool {
        match self {
            Checker::Unknown => true,
            Checker::Crc32(hasher) => hasher.finalize().to_le_bytes() == stored,
            Checker::Crc64(digest) => digest.finalize().to_le_bytes() == stored,
            Checker::Sha256(hasher) => hasher.finalize().as_slice() == stored,
        }
    }
}

/// The next number; each byte holds seven bits of it.
fn number(bytes: &mut &[u8]) -> io::Result<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let Some((byte, rest)) = bytes.split_first() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(bad("a number is too long"))
}

/// The next `length` bytes.
fn take<'a>(bytes: &mut &'a [u8], length: usize) -> io::Result<&'a [u8]> {
    let (taken, rest) =
        bytes.split_at_checked(length).ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
    *bytes = rest;
    Ok(taken)
}

/// The place of a block in the file, and the place of its contents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Offset of the block's header in the file.
    at: u64,
    /// Size in the file, without zeros.
    length: u64,
    check: Check,
    /// Offset of the block's contents in the contents of the file.
    pub(super) start: u64,
    /// Size of the block's contents.
    pub(super) size: u64,
}

impl Block {
    /// End of the block's contents in the contents of the file.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }

    /// Expands this block.
    pub(super) fn expand(&self, input: &mut Input, output: &mut Output<'_>) -> io::Result<()> {
        input.seek(self.at);
        match expand_block(input, self.check, output)? {
            Some(sizes) if sizes == (self.length, self.size) => Ok(()),
            _ => Err(bad("the sizes of a block differ from those in the index")),
        }
    }
}

fn read_header(input: &mut Input) -> io::Result<Check> {
    let header = input.array::<{ ENDS as usize }>()?;
    let [magic @ .., f0, f1, c0, c1, c2, c3] = header;
    if magic != MAGIC {
        return Err(bad("this is not a stream"));
    }
    check_crc(&[f0, f1], [c0, c1, c2, c3], "a stream's header")?;
    Check::of_flags([f0, f1])
}

/// A filter of a block: its number and its properties.
struct Filter<'a> {
    kind: u64,
    properties: &'a [u8],
}

impl Filter<'_> {
    /// A reader that applies this filter to `inner`.
    fn reader<'r>(&self, inner: Box<dyn Read + 'r>) -> io::Result<Box<dyn Read + 'r>> {
        let unknown = || bad("a filter is unknown");
        Ok(match (self.kind, self.properties) {
            (0x21, [exponent]) => {
                let dictionary = match *exponent {
                    40 => u32::MAX,
                    exponent @ 0..40 => (2 | u32::from(exponent) & 1) << (exponent / 2 + 11),
                    _ => return Err(unknown()),
                };
                Box::new(Lzma2Reader::new_mem_limit(inner, dictionary, MEMORY_KIB, None)?)
            }
            (3, [distance]) => Box::new(DeltaReader::new(inner, usize::from(*distance) + 1)),
            (kind, offset) => {
                let offset = match *offset {
                    [] => 0,
                    [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
                    _ => return Err(unknown()),
                };
                // The crate's filters require an aligned offset.
                let alignment = [1, 4, 16, 4, 2, 4, 4, 2];
                let known = kind.checked_sub(4).and_then(|kind| usize::try_from(kind).ok());
                match known.and_then(|known| alignment.get(known)) {
                    Some(alignment) if offset % alignment == 0 => {}
                    _ => return Err(unknown()),
                }
                Box::new(match kind {
                    4 => BcjReader::new_x86(inner, offset),
                    5 => BcjReader::new_ppc(inner, offset),
                    6 => BcjReader::new_ia64(inner, offset),
                    7 => BcjReader::new_arm(inner, offset),
                    8 => BcjReader::new_arm_thumb(inner, offset),
                    9 => BcjReader::new_sparc(inner, offset),
                    10 => BcjReader::new_arm64(inner, offset),
                    _ => BcjReader::new_riscv(inner, offset),
                })
            }
        })
    }
}

/// The filters of a block in the order in which they were applied, and the size of the
/// contents if the header has it.
fn parse_header(header: &[u8]) -> io::Result<(Vec<Filter<'_>>, Option<u64>)> {
    let Some((body, stored)) = header.split_last_chunk() else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    check_crc(body, *stored, "a block's header")?;
    let mut rest = body;
    let flags = take(&mut rest, 2)?[1];
    if flags & 0x3c != 0 {
        return Err(bad("a block has unknown flags"));
    }
    if flags & 0x40 != 0 {
        // The compressed size is not needed: the end of the data tells it.
        number(&mut rest)?;
    }
    let size = if flags & 0x80 != 0 { Some(number(&mut rest)?) } else { None };
    let mut filters = Vec::new();
    for _ in 0..=flags & 3 {
        let kind = number(&mut rest)?;
        let length = usize::try_from(number(&mut rest)?).unwrap_or(usize::MAX);
        filters.push(Filter { kind, properties: take(&mut rest, length)? });
    }
    let is_last = |position: usize| position + 1 == filters.len();
    let ends_well = filters.iter().enumerate().all(|(i, f)| (f.kind == 0x21) == is_last(i));
    match ends_well && rest.iter().all(|byte| *byte == 0) {
        true => Ok((filters, size)),
        false => Err(bad("the filters of a block are invalid")),
    }
}

/// Expands the next block. Returns its size without zeros, and the size of its
/// contents. `None` if the index comes next.
fn expand_block(
    input: &mut Input,
    check: Check,
    output: &mut Output<'_>,
) -> io::Result<Option<(u64, u64)>> {
    let start = input.position();
    let words = match input.peek()? {
        None => return Err(io::ErrorKind::UnexpectedEof.into()),
        Some([0]) => return Ok(None),
        Some([words]) => usize::from(words) + 1,
    };
    let mut header = vec![0; 4 * words];
    input.read_exact(&mut header)?;
    let (filters, announced) = parse_header(&header)?;
    let mut reader: Box<dyn Read + '_> = Box::new(&mut *input);
    for filter in filters.iter().rev() {
        reader = filter.reader(reader)?;
    }
    let mut checker = Checker::new(check);
    output.take_all(&mut reader, |bytes| checker.update(bytes))?;
    drop(reader);
    if announced.is_some_and(|announced| announced != output.written()) {
        return Err(bad("the size of a block differs from that in its header"));
    }
    let length = input.position() - start;
    let zeros = length.next_multiple_of(4) - length;
    for _ in 0..zeros {
        if input.array()? != [0] {
            return Err(bad("something follows the contents of a block"));
        }
    }
    let mut stored = vec![0; check.size()];
    input.read_exact(&mut stored)?;
    match checker.agrees(&stored) {
        true => Ok(Some((length + stored.len() as u64, output.written()))),
        false => Err(bad("the checksum of a block differs")),
    }
}

/// The blocks of a file, one after the other.
#[derive(Default)]
pub(super) struct Units {
    /// The stream that is being read.
    stream: Option<Stream>,
}

struct Stream {
    check: Check,
    /// Sizes of the blocks so far, as the index should have them.
    sizes: Vec<(u64, u64)>,
}

impl super::units::Units for Units {
    fn next(&mut self, input: &mut Input, output: &mut Output<'_>) -> io::Result<bool> {
        loop {
            let is_first = input.position() == 0;
            let Some(Stream { check, sizes }) = &mut self.stream else {
                let end = input.position();
                if !is_first && input.skip_zeros()? {
                    return match (input.position() - end).is_multiple_of(4) {
                        true => Ok(false),
                        false => Err(bad("the number of zeros after a stream is wrong")),
                    };
                }
                if !is_first && input.peek()? != Some([MAGIC[0]]) {
                    return Err(bad("bytes that are not a stream follow the end of the data"));
                }
                if is_first && input.peek()?.is_some_and(|magic| magic != MAGIC) {
                    if !is_lzma(input.peek()?) {
                        return Err(bad("this is not xz or lzma data"));
                    }
                    output.take_all(
                        &mut LzmaReader::new_mem_limit(input, MEMORY_KIB, None)?,
                        |_| {},
                    )?;
                    // The decoder may have read beyond the end of the data. That does
                    // not matter, because nothing follows a file of lzma.
                    return Ok(true);
                }
                self.stream = Some(Stream { check: read_header(input)?, sizes: Vec::new() });
                continue;
            };
            if let Some(size) = expand_block(input, *check, output)? {
                sizes.push(size);
                return Ok(true);
            }
            read_index(input, *check, sizes)?;
            self.stream = None;
        }
    }
}

/// True for the beginning of a file of lzma. It has no magic, only a byte of
/// properties and the size of a dictionary; writers choose round sizes.
fn is_lzma(start: Option<[u8; 5]>) -> bool {
    start.is_some_and(|[properties, size @ ..]| {
        let size = u32::from_le_bytes(size);
        properties < 225 && (size == u32::MAX || size.count_ones() <= 2)
    })
}
