//! Reads fields from received bytes, and never beyond their end.
//!
//! Every read names its field, so an error tells which field of which structure is
//! wrong, and where.

use pmderive_core::model::Pmid;

/// Received bytes do not form a valid structure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{structure}.{field} at byte {offset}: {problem}")]
pub struct DecodeError {
    /// The structure that was being read.
    pub structure: &'static str,
    /// The field, under its name in the layout table of the structure.
    pub field: &'static str,
    /// Offset of the field in the PDU.
    pub offset: usize,
    /// The problem with the field.
    pub problem: Problem,
}

/// The problem with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The field does not fit into the rest of the PDU.
    #[error("{needed} bytes needed, {left} left")]
    Truncated {
        /// Size of the field in bytes.
        needed: usize,
        /// Number of bytes left.
        left: usize,
    },
    /// The rest of the PDU cannot hold as many entries as announced.
    #[error("{count} entries do not fit into the {left} bytes left")]
    TooMany {
        /// Number of entries announced.
        count: i64,
        /// Number of bytes left.
        left: usize,
    },
    /// A number that is not allowed here.
    #[error("{found} is not between {low} and {high}")]
    OutOfRange {
        /// The number.
        found: i64,
        /// The smallest number allowed.
        low: i64,
        /// The largest number allowed.
        high: i64,
    },
    /// A number that contradicts the request or another field.
    #[error("{found} where {expected} is due")]
    Mismatch {
        /// The number.
        found: i64,
        /// The number that should be here.
        expected: i64,
    },
    /// The PDU has another type than expected.
    #[error("{found:#x} is not the type that is due")]
    Type {
        /// Number of the type.
        found: u32,
    },
    /// There are bytes after the last field.
    #[error("{bytes} bytes too many")]
    Trailing {
        /// Number of these bytes.
        bytes: usize,
    },
    /// Any other problem, in words.
    #[error("{0}")]
    Other(&'static str),
}

impl Problem {
    /// A mismatch. A number that is too large for a message becomes the largest one.
    pub(crate) fn mismatch(found: impl TryInto<i64>, expected: impl TryInto<i64>) -> Problem {
        let found = found.try_into().unwrap_or(i64::MAX);
        Problem::Mismatch { found, expected: expected.try_into().unwrap_or(i64::MAX) }
    }
}

/// A size for a message.
pub(super) fn as_i64(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// A position within the bytes of one structure.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    structure: &'static str,
}

impl<'a> Reader<'a> {
    /// Begins at the first of `bytes`. Errors contain the name `structure`.
    pub fn new(bytes: &'a [u8], structure: &'static str) -> Reader<'a> {
        Reader { bytes, offset: 0, structure }
    }

    /// Begins at `offset` in `bytes`, or at their end if that is earlier.
    pub fn starting_at(bytes: &'a [u8], offset: usize, structure: &'static str) -> Reader<'a> {
        Reader { bytes, offset: offset.min(bytes.len()), structure }
    }

    /// Number of bytes that were not read yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Number of bytes read so far.
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

    /// A number of entries. Each entry needs at least `entry` bytes of the rest.
    pub fn count(&mut self, entry: usize, field: &'static str) -> Result<usize, DecodeError> {
        let start = self.offset;
        let found = self.i32(field)?;
        let left = self.remaining();
        usize::try_from(found).ok().filter(|count| *count <= left / entry).ok_or_else(|| {
            self.error_at(start, field, Problem::TooMany { count: i64::from(found), left })
        })
    }

    /// The number of metrics, and the metrics.
    pub fn pmids(&mut self, count: &'static str) -> Result<Vec<Pmid>, DecodeError> {
        let count = self.count(4, count)?;
        let mut pmids = Vec::with_capacity(count);
        for _ in 0..count {
            pmids.push(Pmid(self.u32("pmids")?));
        }
        Ok(pmids)
    }

    /// A length, that many bytes, and padding to a multiple of four.
    pub fn text(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = self.count(1, field)?;
        self.padded(len, field)
    }

    /// `len` bytes, and padding to a multiple of four.
    pub fn padded(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let text = self.bytes(len, field)?;
        self.bytes(len.next_multiple_of(4) - len, field)?;
        Ok(text)
    }

    /// Fails if there are bytes left.
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
