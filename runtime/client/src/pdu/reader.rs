//! Reads fields out of received bytes and never beyond them.
//!
//! Every read names the field it is for, so that an error says which field of
//! which structure is wrong, and where. The reader knows no PDU.

use std::fmt;

/// Received bytes do not hold what they should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The structure that was being read.
    pub structure: &'static str,
    /// Its field, under the name it has in the layout table of the structure.
    pub field: &'static str,
    /// Where the field starts, in bytes from the start of the PDU.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The field does not fit into what is left of the PDU.
    Truncated {
        /// Bytes the field takes.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// More entries are announced than the rest of the PDU can hold.
    TooMany {
        /// Number of entries announced.
        count: i64,
        /// Bytes that are left.
        left: usize,
    },
    /// A number that cannot be in this place.
    OutOfRange {
        /// The number.
        found: i64,
        /// Least number allowed.
        low: i64,
        /// Greatest number allowed.
        high: i64,
    },
    /// A number that contradicts the request or another field.
    Mismatch {
        /// The number.
        found: i64,
        /// What it should be.
        expected: i64,
    },
    /// A PDU of another type than the one due.
    Type {
        /// Number of the type.
        found: u32,
    },
    /// Bytes after the last field.
    Trailing {
        /// Number of such bytes.
        bytes: usize,
    },
    /// Anything else, in words.
    Other(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} at byte {}: ", self.structure, self.field, self.offset)?;
        match &self.problem {
            Problem::Truncated { needed, left } => {
                write!(f, "{needed} bytes needed, {left} left")
            }
            Problem::TooMany { count, left } => {
                write!(f, "{count} entries do not fit into the {left} bytes left")
            }
            Problem::OutOfRange { found, low, high } => {
                write!(f, "{found} is not between {low} and {high}")
            }
            Problem::Mismatch { found, expected } => write!(f, "{found} where {expected} is due"),
            Problem::Type { found } => write!(f, "{found:#x} is not the type that is due"),
            Problem::Trailing { bytes } => write!(f, "{bytes} bytes too many"),
            Problem::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Position within the bytes of one structure.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    structure: &'static str,
}

impl<'a> Reader<'a> {
    /// Begins at the first of `bytes`; `structure` is what errors call them.
    pub fn new(bytes: &'a [u8], structure: &'static str) -> Reader<'a> {
        Reader { bytes, offset: 0, structure }
    }

    /// Begins at `offset` within `bytes`, or at their end if that is earlier.
    pub fn starting_at(bytes: &'a [u8], offset: usize, structure: &'static str) -> Reader<'a> {
        Reader { bytes, offset: offset.min(bytes.len()), structure }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Bytes read so far.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// An error about a field that starts at `offset`.
    pub fn error_at(&self, offset: usize, field: &'static str, problem: Problem) -> DecodeError {
        DecodeError { structure: self.structure, field, offset, problem }
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let left = self.remaining();
        if len > left {
            let problem = Problem::Truncated { needed: len, left };
            return Err(self.error_at(self.offset, field, problem));
        }
        let (start, end) = (self.offset, self.offset + len);
        self.offset = end;
        Ok(&self.bytes[start..end])
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N, field)?);
        Ok(array)
    }

    /// An unsigned byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array(field).map(u8::from_be_bytes)
    }

    /// An unsigned half word.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_be_bytes)
    }

    /// An unsigned word.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_be_bytes)
    }

    /// A signed word.
    pub fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.array(field).map(i32::from_be_bytes)
    }

    /// A signed double word.
    pub fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.array(field).map(i64::from_be_bytes)
    }

    /// A number of entries of which each takes at least `entry` bytes further on.
    pub fn count(&mut self, entry: usize, field: &'static str) -> Result<usize, DecodeError> {
        let start = self.offset;
        let found = self.i32(field)?;
        let left = self.remaining();
        usize::try_from(found).ok().filter(|count| *count <= left / entry).ok_or_else(|| {
            self.error_at(start, field, Problem::TooMany { count: i64::from(found), left })
        })
    }

    /// A length, then as many bytes, then padding to a multiple of four.
    pub fn text(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = self.count(1, field)?;
        self.padded(len, field)
    }

    /// Bytes, then padding to a multiple of four.
    pub fn padded(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let text = self.bytes(len, field)?;
        self.bytes(len.next_multiple_of(4) - len, field)?;
        Ok(text)
    }

    /// The end: nothing may be left.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            bytes => Err(self.error_at(self.offset, "end", Problem::Trailing { bytes })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_field_and_its_place() {
        let mut reader = Reader::new(&[0, 0, 0, 9, 1, 2], "sample");
        assert_eq!(
            reader.clone().text("name").expect_err("too long").to_string(),
            "sample.name at byte 0: 9 entries do not fit into the 2 bytes left"
        );
        assert_eq!(reader.u32("count"), Ok(9));
        assert_eq!(
            reader.u32("next").expect_err("two bytes").to_string(),
            "sample.next at byte 4: 4 bytes needed, 2 left"
        );
        assert_eq!(
            reader.finish().expect_err("two bytes").to_string(),
            "sample.end at byte 4: 2 bytes too many"
        );
    }

    #[test]
    fn negative_and_huge_counts_are_refused() {
        for count in [-1i32, i32::MIN, i32::MAX, 2] {
            let mut bytes = count.to_be_bytes().to_vec();
            bytes.extend_from_slice(&[0; 12]);
            let error = Reader::new(&bytes, "sample").count(8, "count");
            assert!(matches!(error, Err(DecodeError { problem: Problem::TooMany { .. }, .. })));
        }
    }
}
