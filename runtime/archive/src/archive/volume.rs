//! One data volume: its label and its records in order.
//!
//! | offset v2 | v3 | size  | field                             |
//! |-----------|----|-------|-----------------------------------|
//! | 0         | 0  | 4     | length of the record              |
//! | 4         | 4  | 8, 12 | time stamp                        |
//! | 12        | 16 | 4     | number of value sets; 0 is a mark |
//! | 16        | 20 |       | value sets, then value blocks     |
//! |           |    | 4     | length of the record              |
//!
//! Input: the file of a volume. Output: records with their bounds. Records are read
//! into a sliding window and not copied. `values` knows what is in the value sets.

use pmderive_core::model::{PmStatus, Timestamp};
use pmderive_core::result::Encoded;
use pmderive_core::source::SourceError;

use crate::archive::bytes::Window;
use crate::archive::files::ArchiveFiles;
use crate::archive::framing::{Damage, Fields, LENGTH_WORD, ReadError, Version};
use crate::archive::label::{ArchiveLabel, Role};
use crate::archive::positions::VolumeId;
use crate::archive::values::{self, BLOCK_ORIGIN};

/// A data volume and a position in it.
pub(super) struct Volume {
    window: Window,
    version: Version,
    /// Offset of the next record.
    next: u64,
    condition: Condition,
}

/// The outcome of the last reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Good,
    /// The file ends within the next record, or the length of that is impossible.
    Stuck,
    /// The rest of the volume was given up.
    Abandoned,
}

/// The place of a record, and the fields of its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Offset in the volume of its first length word.
    pub(super) offset: u64,
    /// Length in bytes, including both length words.
    pub(super) length: usize,
    pub(super) stamp: Timestamp,
    /// Number of value sets.
    pub(super) set_count: usize,
    /// Offset of the first value set in the record.
    pub(super) first_set: usize,
}

impl Record {
    /// True for a mark: the recording has a gap here.
    pub(super) fn is_mark(&self) -> bool {
        self.set_count == 0
    }

    /// The value sets and blocks of the record, whose bytes are given. They answer a list.
    pub(super) fn encoded<'r>(&self, list: u64, bytes: &'r [u8]) -> Encoded<'r> {
        Encoded {
            list,
            bytes: &bytes[..bytes.len().saturating_sub(LENGTH_WORD)],
            first_set: self.first_set,
            set_count: self.set_count,
            block_origin: BLOCK_ORIGIN,
        }
    }
}

/// Opens a data volume. Also returns its label and the file's name.
pub(super) fn open_volume(
    files: &ArchiveFiles,
    at: VolumeId,
) -> Result<(Volume, ArchiveLabel, String), SourceError> {
    let (number, member) = &files.volumes[at.index()];
    let name = member.name();
    let opened = member.open().map_err(ReadError::Io);
    match opened.and_then(|file| Volume::open(Window::new(file), *number)) {
        Ok((volume, label)) => Ok((volume, label, name)),
        Err(error) => Err(error.in_file(&name)),
    }
}

impl Volume {
    /// Opens volume `number` at its first record.
    pub(super) fn open(
        mut window: Window,
        number: i32,
    ) -> Result<(Volume, ArchiveLabel), ReadError> {
        let label = ArchiveLabel::read(&mut window, Role::Volume(number))?;
        let version = label.version;
        let next = version.label_size() as u64;
        Ok((Volume { window, version, next, condition: Condition::Good }, label))
    }

    /// Continues at `offset`, which must be the beginning of a record.
    pub(super) fn seek(&mut self, offset: u64) {
        self.next = offset;
        self.condition = Condition::Good;
    }

    /// Continues at the position of another reader of the same volume.
    pub(super) fn take_position(&mut self, other: &Volume) {
        (self.next, self.condition) = (other.next, other.condition);
    }

    /// Frees the buffer until the next read.
    pub(super) fn release(&mut self) {
        self.window.release();
    }

    /// Gives up the rest of the volume, which will never become readable.
    pub(super) fn abandon(&mut self) {
        self.condition = Condition::Abandoned;
    }

    /// Offset of the first record.
    pub(super) fn first_offset(&self) -> u64 {
        self.version.label_size() as u64
    }

    /// Offset of the next record.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// True if the file has nothing after its label.
    pub(super) fn is_empty(&mut self) -> Result<bool, ReadError> {
        Ok(self.window.at(self.first_offset(), 1)?.is_empty())
    }

    /// Current size of the file in bytes.
    pub(super) fn size(&mut self) -> Result<u64, ReadError> {
        Ok(self.window.size()?)
    }

    /// True if the file ends within the next record, or if the length of that is
    /// impossible.
    pub(super) fn is_stuck(&self) -> bool {
        self.condition == Condition::Stuck
    }

    /// True if the file ends within the length word of the next record. libpcp counts
    /// that as the end of the file.
    pub(super) fn is_hardly_begun(&self) -> bool {
        self.is_stuck() && self.window.held(self.next, LENGTH_WORD).is_none()
    }

    /// Moves to the next record. `None` at the end; a file that grows may have more
    /// later.
    ///
    /// The position after an error depends on the damage:
    ///
    /// * If the record is incomplete or its length is impossible, the position stays before
    ///   it, to read it once it is complete.
    /// * If its lengths or its header contradict each other, the position is after it.
    pub(super) fn next(&mut self) -> Result<Option<Record>, ReadError> {
        if self.condition == Condition::Abandoned {
            return Ok(None);
        }
        let offset = self.next;
        let header = self.window.at(offset, LENGTH_WORD)?;
        let damage = |message: String| Damage::new(PmStatus::LOGREC, offset, message);
        let Some(word) = header.first_chunk::<LENGTH_WORD>() else {
            let begun = header.len();
            if begun == 0 {
                return Ok(None);
            }
            self.condition = Condition::Stuck;
            let message = format!(
                "data record: its length has {LENGTH_WORD} bytes, but the file ends after {begun} \
                 of them"
            );
            return Err(damage(message).into());
        };
        let length = usize::try_from(u32::from_be_bytes(*word)).unwrap_or(usize::MAX);
        if length < self.least_length() || i32::try_from(length).is_err() {
            self.condition = Condition::Stuck;
            let message = format!("data record: its length, {length}, is impossible");
            return Err(damage(message).into());
        }
        if !self.window.holds(offset, length)? {
            self.condition = Condition::Stuck;
            let message =
                format!("data record: {length} bytes long, but the file ends before its end");
            return Err(damage(message).into());
        }
        self.condition = Condition::Good;
        self.next = offset + length as u64;
        let record = &self.window.at(offset, length)?[..length];
        Ok(Some(decode_header(record, offset, self.version)?))
    }

    /// Moves to the previous record and returns it. `None` before the first one. After
    /// an error the position has not changed.
    pub(super) fn previous(&mut self) -> Result<Option<Record>, ReadError> {
        let end = self.next;
        if end <= self.first_offset() {
            return Ok(None);
        }
        let damage = |message: String| Damage::new(PmStatus::LOGREC, end, message);
        let trailer_at = end - LENGTH_WORD as u64;
        let trailer = self.window.before(trailer_at, LENGTH_WORD)?;
        let Some(word) = trailer.first_chunk::<LENGTH_WORD>() else {
            return Err(damage("data record: the file became shorter".to_owned()).into());
        };
        let length = u32::from_be_bytes(*word);
        let start =
            end.checked_sub(u64::from(length)).filter(|start| *start >= self.first_offset());
        let least = self.least_length() as u64;
        let Some(start) = start.filter(|_| u64::from(length) >= least) else {
            let message =
                format!("data record that ends here: its length, {length}, is impossible");
            return Err(damage(message).into());
        };
        // A wrong length must not take much of the file into memory.
        if let Some(before) = self.window.peek(start)?.map(u32::from_be_bytes)
            && before != length
        {
            let message = format!("data record.trailer: {length} instead of {before}");
            return Err(Damage::new(PmStatus::LOGREC, trailer_at, message).into());
        }
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(record) = self.window.before(start, size)?.get(..size) else {
            return Err(damage("data record: the file became shorter".to_owned()).into());
        };
        let record = decode_header(record, start, self.version)?;
        self.seek(start);
        Ok(Some(record))
    }

    /// The last end of a record before `limit`, found by reading forward from `start`.
    pub(super) fn last_boundary(&mut self, start: u64, limit: u64) -> u64 {
        self.seek(start);
        let mut boundary = start;
        while self.next < limit {
            boundary = self.next;
            if !matches!(self.next(), Ok(Some(_))) && self.next == boundary {
                break;
            }
        }
        boundary
    }

    /// The first beginning of a record after damage at `offset`, found by reading backward from one
    /// of `hints` or from the end. `None` if there is none, or if the position after the damage is
    /// right. The position stays.
    pub(super) fn boundary_after(
        &mut self,
        offset: u64,
        mut hints: impl Iterator<Item = u64>,
    ) -> Option<u64> {
        let (next, condition) = (self.next, self.condition);
        let is_end = |window: &mut Window| window.at(next, 1).is_ok_and(<[u8]>::is_empty);
        let mut boundary = None;
        if next == offset || !self.has_record_at(next) && !is_end(&mut self.window) {
            boundary = hints.find(|hint| self.has_record_at(*hint));
            let start = boundary.or_else(|| self.size().ok()).unwrap_or(0);
            self.seek(start);
            while let Ok(Some(record)) = self.previous()
                && record.offset >= offset
            {
                boundary = Some(record.offset);
            }
        }
        (self.next, self.condition) = (next, condition);
        // A writer may have completed the record at `offset` meanwhile.
        boundary.filter(|boundary| *boundary > offset)
    }

    /// True if the lengths of a record at `offset` agree.
    fn has_record_at(&mut self, offset: u64) -> bool {
        let Ok(Some(before)) = self.window.peek::<LENGTH_WORD>(offset) else { return false };
        let length = u64::from(u32::from_be_bytes(before));
        let behind = offset.saturating_add(length).saturating_sub(LENGTH_WORD as u64);
        length >= self.least_length() as u64
            && self.window.peek(behind).is_ok_and(|behind| behind == Some(before))
    }

    /// The bytes of a record that [`Volume::next`] or [`Volume::previous`] returned
    /// last.
    pub(super) fn bytes(&mut self, record: &Record) -> Result<&[u8], ReadError> {
        self.bytes_at(record.offset, record.length)
    }

    /// Time of the record after the one that [`Volume::next`] returned last, if its
    /// length is possible.
    pub(super) fn stamp_after(&mut self) -> Option<Timestamp> {
        self.peek_stamp(self.next)
    }

    /// Time of the record before the one that [`Volume::previous`] returned last, if
    /// its length is possible.
    pub(super) fn stamp_before(&mut self) -> Option<Timestamp> {
        let trailer_at = self.next.checked_sub(LENGTH_WORD as u64)?;
        let trailer = self.window.peek::<LENGTH_WORD>(trailer_at).ok()??;
        let start = self.next.checked_sub(u64::from(u32::from_be_bytes(trailer)))?;
        if start < self.first_offset() { None } else { self.peek_stamp(start) }
    }

    fn peek_stamp(&mut self, offset: u64) -> Option<Timestamp> {
        // The shortest record of either version is longer.
        let header = self.window.peek::<16>(offset).ok()??;
        let mut fields = Fields::new("data record", &header, offset);
        let length = usize::try_from(fields.u32("length").ok()?).ok()?;
        let is_possible = length >= self.least_length() && i32::try_from(length).is_ok();
        is_possible.then(|| fields.timestamp(self.version, "stamp").ok())?
    }

    /// Length in bytes of a mark, which consists of header and trailer.
    fn least_length(&self) -> usize {
        3 * LENGTH_WORD + self.version.stamp_size()
    }

    /// Time of the record at `offset`, if a record begins there.
    pub(super) fn stamp_at(&mut self, offset: u64) -> Option<Timestamp> {
        if offset < self.first_offset() {
            return None;
        }
        self.seek(offset);
        self.next().ok().flatten().map(|record| record.stamp)
    }

    /// Moves to the next record and checks all of it. `None` at the end, and at
    /// anything that is not a sound record.
    pub(super) fn next_sound(&mut self) -> Option<Record> {
        let record = self.next().ok().flatten()?;
        self.is_sound(&record).then_some(record)
    }

    fn is_sound(&mut self, record: &Record) -> bool {
        let bytes = self.bytes(record);
        bytes.is_ok_and(|bytes| values::check(bytes, record.first_set, record.set_count).is_ok())
    }

    /// `length` bytes of a record at `offset` that was read before.
    pub(super) fn bytes_at(&mut self, offset: u64, length: usize) -> Result<&[u8], ReadError> {
        let bytes = self.window.at(offset, length)?;
        bytes.get(..length).ok_or_else(|| {
            Damage::new(PmStatus::LOGREC, offset, "data record: the file became shorter").into()
        })
    }

    /// The bytes of a record if they happen to be in the buffer.
    pub(super) fn held(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.window.held(offset, length)?.get(..length)
    }

    /// Moves to the sound record that ends at `end`.
    pub(super) fn sound_record_before(&mut self, end: u64) -> Option<Record> {
        self.seek(end);
        let record = self.previous().ok().flatten()?;
        self.is_sound(&record).then_some(record)
    }
}

fn decode_header(bytes: &[u8], offset: u64, version: Version) -> Result<Record, Damage> {
    let body = bytes.len() - LENGTH_WORD;
    let mut fields = Fields::new("data record", &bytes[..body], offset);
    let length = fields.u32("length")?;
    let stamp = fields.timestamp(version, "stamp")?;
    let at_count = fields;
    let set_count = fields.i32("numpmid")?;
    let trailer = Fields::new("data record", &bytes[body..], offset + body as u64);
    let trailing = { trailer }.u32("trailer")?;
    if trailing != length {
        return Err(trailer.damage("trailer", format_args!("{trailing} instead of {length}")));
    }
    let set_count = usize::try_from(set_count)
        .map_err(|_| at_count.damage("numpmid", format_args!("{set_count} is negative")))?;
    let first_set = body - fields.rest().len();
    // A mark consists of nothing but its header.
    if set_count == 0 && first_set != body {
        return Err(at_count.damage("numpmid", "0, but there is more than a mark in the record"));
    }
    Ok(Record { offset, length: bytes.len(), stamp, set_count, first_set })
}
