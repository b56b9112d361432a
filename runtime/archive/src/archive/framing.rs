//! The common parts of all records of an archive: framing by length words, big-endian
//! fields, time stamps, and the description of damage.
//!
//! Input: the bytes of a record and their place in the file. Output: fields, or a
//! [`Damage`] that names the field and its offset.

use std::io;
use std::ops::Range;

use pmderive_core::model::{PmStatus, Timestamp};
use pmderive_core::source::SourceError;

use crate::archive::decompress::ExpandError;

/// Size in bytes of each of the two length words around a record.
pub(crate) const LENGTH_WORD: usize = 4;

/// Version of an archive's format (`LOGARCHIVE(5)`). It decides the width of time
/// stamps and of offsets in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Time stamps with 32-bit seconds and microseconds.
    V2,
    /// Time stamps with 64-bit seconds and nanoseconds.
    V3,
}

impl Version {
    /// Size of an encoded time stamp in bytes.
    pub(crate) const fn stamp_size(self) -> usize {
        match self {
            Version::V2 => 8,
            Version::V3 => 12,
        }
    }

    /// Size of the label record in bytes.
    pub(crate) const fn label_size(self) -> usize {
        match self {
            Version::V2 => 132,
            Version::V3 => 808,
        }
    }

    /// The bytes of the label that hold the number of the file.
    pub(super) const fn volume_in_label(self) -> Range<usize> {
        match self {
            Version::V2 => 20..24,
            Version::V3 => 24..28,
        }
    }
}

/// A problem in a file. The caller adds the file's name.
#[derive(Clone, Debug)]
pub(super) struct Damage {
    /// The PMAPI status for the problem.
    pub(super) status: PmStatus,
    /// Offset in the file.
    pub(super) offset: u64,
    /// The record or field, and its fault.
    pub(super) message: String,
}

impl Damage {
    pub(super) fn new(status: PmStatus, offset: u64, message: impl Into<String>) -> Damage {
        Damage { status, offset, message: message.into() }
    }
}

/// A file could not be read, either by the system or because its bytes are bad.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    Damage(Damage),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

impl From<Damage> for ReadError {
    fn from(damage: Damage) -> ReadError {
        ReadError::Damage(damage)
    }
}

impl ReadError {
    /// The same damage, because of which the bytes before `next` are not read.
    pub(super) fn up_to(mut self, next: u64) -> ReadError {
        if let ReadError::Damage(damage) = &mut self {
            damage.message += &format!(", so everything before byte {next} is left out");
        }
        self
    }

    /// Adds the name of the file.
    pub(super) fn in_file(self, file: &str) -> SourceError {
        match self {
            ReadError::Io(source) => match source.downcast::<ExpandError>() {
                Ok(error) => SourceError::Damaged {
                    target: file.to_string(),
                    status: PmStatus::LOGREC,
                    message: format!("at byte {}: cannot be expanded: {error}", error.offset),
                },
                Err(source) => SourceError::Io { target: file.to_string(), source },
            },
            ReadError::Damage(damage) => SourceError::Damaged {
                target: file.to_string(),
                status: damage.status,
                message: format!("at byte {}: {}", damage.offset, damage.message),
            },
        }
    }
}

/// Reads the fields of one record in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Offset of the first byte in the file.
    origin: u64,
    /// The kind of record, for messages.
    kind: &'static str,
}

impl<'a> Fields<'a> {
    /// Reads `bytes`, which begin at `origin` in the file.
    pub(super) fn new(kind: &'static str, bytes: &'a [u8], origin: u64) -> Fields<'a> {
        Fields { bytes, position: 0, origin, kind }
    }

    /// Damage at the current position.
    pub(super) fn damage(&self, field: &str, problem: impl std::fmt::Display) -> Damage {
        Damage::new(
            PmStatus::LOGREC,
            self.origin.saturating_add(self.position as u64),
            format!("{}.{field}: {problem}", self.kind),
        )
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: usize, field: &str) -> Result<&'a [u8], Damage> {
        let rest = &self.bytes[self.position..];
        match rest.get(..length) {
            Some(bytes) => {
                self.position += length;
                Ok(bytes)
            }
            None => Err(self.damage(
                field,
                format_args!("{length} bytes wanted, but the record has {} left", rest.len()),
            )),
        }
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N], Damage> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, field)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self, field: &str) -> Result<u32, Damage> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }

    pub(super) fn i32(&mut self, field: &str) -> Result<i32, Damage> {
        Ok(i32::from_be_bytes(self.array(field)?))
    }

    pub(super) fn u64(&mut self, field: &str) -> Result<u64, Damage> {
        Ok(u64::from_be_bytes(self.array(field)?))
    }

    /// A count of items. Each needs at least `size` bytes of the rest of the record.
    pub(super) fn count(&mut self, size: usize, field: &str) -> Result<usize, Damage> {
        let before = *self;
        let count = self.i32(field)?;
        let room = self.rest().len() / size;
        usize::try_from(count).ok().filter(|count| *count <= room).ok_or_else(|| {
            before.damage(field, format_args!("{count} is not between 0 and {room}"))
        })
    }

    /// A time stamp. In version 3 the seconds are two big-endian words, the low word
    /// first.
    pub(super) fn timestamp(&mut self, version: Version, field: &str) -> Result<Timestamp, Damage> {
        match version {
            Version::V2 => {
                let seconds = self.i32(field)?;
                let microseconds = self.i32(field)?;
                Ok(Timestamp::new(i64::from(seconds), i64::from(microseconds) * 1000))
            }
            Version::V3 => {
                let low = self.u32(field)?;
                let high = self.i32(field)?;
                let nanoseconds = self.i32(field)?;
                let seconds = i64::from(high) << 32 | i64::from(low);
                Ok(Timestamp::new(seconds, i64::from(nanoseconds)))
            }
        }
    }

    /// The bytes that were not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_3_seconds_have_their_low_word_first() {
        let bytes = [0x62, 0x49, 0x43, 0xcf, 0, 0, 0, 0, 0x17, 0xf0, 0x4d, 0x1d];
        let mut fields = Fields::new("label", &bytes, 12);
        let stamp = fields.timestamp(Version::V3, "start").expect("complete");
        assert_eq!(stamp, Timestamp::new(1_648_968_655, 401_624_349));
        let mut early = [0; 12];
        early[..8].fill(0xff);
        let stamp = Fields::new("label", &early, 0).timestamp(Version::V3, "start");
        assert_eq!(stamp.expect("complete"), Timestamp::new(-1, 0));
    }

    #[test]
    fn damage_names_the_field_and_its_offset() {
        let bytes = [0, 0, 0, 9, 1, 2];
        let mut fields = Fields::new("desc", &bytes, 100);
        let damage = fields.count(1, "names").expect_err("only two bytes follow");
        assert_eq!(damage.offset, 100);
        assert_eq!(damage.message, "desc.names: 9 is not between 0 and 2");
        let damage = fields.u32("pmid").expect_err("only two bytes follow");
        assert_eq!(damage.offset, 104);
        assert_eq!(damage.message, "desc.pmid: 4 bytes wanted, but the record has 2 left");
    }
}
