//! The data volumes of one archive as one sequence of records.
//!
//! Input: the files of an archive. Output: its records in order, volume after volume,
//! and the place in the volumes where a time begins. This module looks only at the
//! headers of records, and does not know what comes before or after the archive.

mod entering;
mod seeking;

use std::sync::Arc;

use pmderive_core::model::PmStatus;
use pmderive_core::source::SourceError;

use crate::archive::files::ArchiveFiles;
use crate::archive::framing::{Damage, ReadError};
use crate::archive::order::{Order, OrderRule, Travel};
use crate::archive::positions::VolumeId;
use crate::archive::single::SingleArchive;
use crate::archive::volume::{Record, Volume, open_volume};

/// All data volumes of an archive, and a position in them.
pub(super) struct Volumes {
    archive: Arc<SingleArchive>,
    /// The volume that reading has come to.
    current: VolumeId,
    /// Number of `volume`. It differs from `current` if that could not be
    /// opened.
    entered: VolumeId,
    volume: Volume,
    /// Name of the file of `volume`.
    name: String,
    /// Records may have been skipped because of damage.
    lost: bool,
    /// The last error will occur again unless the file grows.
    is_stuck: bool,
    order: Order,
    /// Series of records that were left out because they are out of order.
    left_out: Vec<LeftOut>,
    /// The problem after the end: too few bytes for a record, or no volume that the index has.
    tail: Option<SourceError>,
    /// Missing volumes before the first one were noted.
    has_noted_start: bool,
}

/// A series of records that were skipped.
pub(super) struct LeftOut {
    /// The problem with these records.
    pub(super) error: SourceError,
    /// Number of records; 0 if it is unknown.
    pub(super) count: u64,
}

impl Volumes {
    /// Opens an archive by its first volume. Its label is the archive's label.
    pub(super) fn open(files: ArchiveFiles) -> Result<Volumes, SourceError> {
        let (mut volume, label, name) = open_volume(&files, VolumeId::FIRST)?;
        if volume.is_empty().map_err(|error| error.in_file(&name))? {
            return Err(SourceError::Damaged {
                target: name,
                status: PmStatus::NODATA,
                message: "there is nothing after the label".to_string(),
            });
        }
        Ok(Volumes::at_start(Arc::new(SingleArchive::new(files, label)), volume, name))
    }

    /// The volumes of an archive that was opened before, at the first record.
    pub(super) fn of(archive: &Arc<SingleArchive>) -> Result<Volumes, SourceError> {
        let (volume, _, name) = open_volume(&archive.files, VolumeId::FIRST)?;
        Ok(Volumes::at_start(Arc::clone(archive), volume, name))
    }

    fn at_start(archive: Arc<SingleArchive>, volume: Volume, name: String) -> Volumes {
        let order = Order::from(archive.label.start);
        Volumes {
            archive,
            current: VolumeId::FIRST,
            entered: VolumeId::FIRST,
            volume,
            name,
            lost: false,
            is_stuck: false,
            order,
            left_out: Vec::new(),
            tail: None,
            has_noted_start: false,
        }
    }

    /// Chooses which records are left out because they are out of order.
    pub(super) fn set_rule(&mut self, rule: OrderRule) {
        self.order.set_rule(rule);
    }

    /// A new reader of the same volumes, at the same position.
    pub(super) fn duplicate(&self) -> Result<Volumes, SourceError> {
        let mut duplicate = Volumes::of(&self.archive)?;
        duplicate.enter(self.entered)?;
        duplicate.volume.take_position(&self.volume);
        (duplicate.current, duplicate.lost) = (self.current, self.lost);
        duplicate.has_noted_start = self.has_noted_start;
        duplicate.order = self.order.clone();
        Ok(duplicate)
    }

    /// Frees the buffer until the next read.
    pub(super) fn release(&mut self) {
        self.volume.release();
    }

    /// The archive, with volumes that were found since it was opened.
    pub(super) fn archive(&self) -> &Arc<SingleArchive> {
        &self.archive
    }

    /// Moves to the next record. `None` at the end; an archive that grows may have more
    /// later. Records that are out of order are left out (see
    /// [`Volumes::take_left_out`]).
    ///
    /// After an error reading continues after the damage. An incomplete record at the
    /// very end is tried again.
    pub(super) fn next(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let read = self.next_of_any_time();
            if self.admits(Travel::Forward, &read) {
                self.note_left_out();
                return read;
            }
        }
    }

    /// False for a record that is out of order.
    fn admits(&mut self, travel: Travel, read: &Result<Option<Record>, SourceError>) -> bool {
        let Ok(Some(record)) = read else { return true };
        let beyond = match travel {
            _ if !self.order.looks_beyond() => None,
            Travel::Forward => self.volume.stamp_after(),
            Travel::Backward => self.volume.stamp_before(),
        };
        self.order.admits(travel, (record.offset, record.stamp), beyond)
    }

    /// Notes the records that were left out up to here. They are a gap.
    fn note_left_out(&mut self) {
        if let Some((damage, count)) = self.order.take_left_out() {
            self.lost |= self.order.looks_beyond();
            let error = self.damaged(damage);
            self.left_out.push(LeftOut { error, count });
        }
    }

    /// The series of records that were left out since the last call.
    pub(super) fn take_left_out(&mut self) -> Vec<LeftOut> {
        std::mem::take(&mut self.left_out)
    }

    /// The problem after the last record that was read: bytes that count as the end (see
    /// [`Volumes::is_taken_for_end`]), or a missing volume.
    pub(super) fn take_tail(&mut self) -> Option<SourceError> {
        self.tail.take()
    }

    /// True if a volume ends within the length word of a record. At the end of the
    /// archive that is not a record yet. libpcp counts it as the end of any volume.
    fn is_taken_for_end(&self) -> bool {
        let may_be = self.is_last() || !self.order.looks_beyond();
        may_be && self.volume.is_hardly_begun()
    }

    fn next_of_any_time(&mut self) -> Result<Option<Record>, SourceError> {
        self.note_missing_before_first();
        loop {
            let offset = self.volume.position();
            let read = match self.volume.next() {
                Err(error) if self.is_taken_for_end() => {
                    self.tail = Some(error.in_file(&self.name));
                    Ok(None)
                }
                read => read,
            };
            let error = match read {
                Ok(Some(record)) => {
                    (self.current, self.tail) = (self.entered, None);
                    return Ok(Some(record));
                }
                Ok(None) if self.is_last() => {
                    if !self.discover() {
                        if self.tail.is_none() {
                            self.tail = self.missing_after_last();
                        }
                        return Ok(None);
                    }
                    // The old volume may have grown before the new one appeared.
                    continue;
                }
                Ok(None) => {
                    self.enter_next()?;
                    continue;
                }
                Err(error) => error,
            };
            if self.order.looks_beyond()
                && let Some(next) = self.boundary_after(offset)
            {
                self.volume.seek(next);
                self.lost = true;
                return Err(error.up_to(next).in_file(&self.name));
            }
            let unreadable = self.volume.is_stuck() || matches!(error, ReadError::Io(_));
            let error = error.in_file(&self.name);
            // At the very end the writer may still complete the record.
            self.is_stuck = unreadable && self.is_last();
            if !self.is_stuck {
                self.lost = true;
                if unreadable {
                    self.volume.abandon();
                }
            }
            return Err(error);
        }
    }

    /// Moves to the previous record and returns it. `None` before the first one. After
    /// an error reading continues before the damage. Records that are out of order are
    /// left out.
    pub(super) fn previous(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let read = self.previous_of_any_time();
            if self.admits(Travel::Backward, &read) {
                self.note_left_out();
                return read;
            }
        }
    }

    fn previous_of_any_time(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let error = match self.volume.previous() {
                Ok(Some(record)) => {
                    self.current = self.entered;
                    return Ok(Some(record));
                }
                Ok(None) if self.enter_previous()? => continue,
                Ok(None) => {
                    self.note_missing_before_first();
                    return Ok(None);
                }
                Err(error) => error,
            };
            self.lost = true;
            self.current = self.entered;
            let end = self.volume.position();
            let boundary = self.boundary_before(end);
            self.volume.seek(boundary);
            return Err(error.in_file(&self.name));
        }
    }

    /// The volume whose record [`Volumes::next`] or
    /// [`Volumes::previous`] returned last.
    pub(super) fn entered(&self) -> VolumeId {
        self.entered
    }

    /// Offset of the next record in the current volume.
    pub(super) fn position(&self) -> u64 {
        self.volume.position()
    }

    /// Size in bytes of the current volume.
    ///
    /// # Errors
    /// The system does not tell the file's size.
    pub(super) fn size(&mut self) -> Result<u64, SourceError> {
        self.volume.size().map_err(|error| error.in_file(&self.name))
    }

    /// Fails if the volume that is being read cannot grow any more: its file is gone, was
    /// replaced, or has become shorter. A compressed file counts as complete.
    pub(super) fn check_file(&mut self) -> Result<(), SourceError> {
        let (_, member) = &self.archive.files.volumes[self.entered.index()];
        let named = match member.size_on_disk() {
            _ if !member.can_grow() => return Ok(()),
            Ok(size) => size,
            Err(_) if member.open().is_ok() => return Ok(()),
            Err(source) => return Err(SourceError::Io { target: self.name.clone(), source }),
        };
        // The same file is at least as long by now.
        if named <= self.size()? && named >= self.position() {
            return Ok(());
        }
        let message = "data volume: it was replaced or cut after it was read up to here";
        Err(self.damaged(Damage::new(PmStatus::LOGREC, self.position(), message)))
    }

    /// Moves so that [`Volumes::next`] returns the record at `offset` of `volume`.
    pub(super) fn move_to(&mut self, volume: VolumeId, offset: u64) -> Result<(), SourceError> {
        self.enter(volume)?;
        self.volume.seek(offset);
        self.order.begin_anywhere();
        Ok(())
    }

    fn enter(&mut self, at: VolumeId) -> Result<(), SourceError> {
        // Another reader may have found this volume first.
        while at.index() >= self.archive.files.volumes.len() {
            if !self.discover() {
                let source = rustix::io::Errno::NOENT.into();
                return Err(SourceError::Io { target: self.archive.name(), source });
            }
        }
        self.open_at(at)?;
        self.current = at;
        Ok(())
    }

    /// Opens a volume at its first record, unless it is the open one.
    fn open_at(&mut self, at: VolumeId) -> Result<(), SourceError> {
        if self.entered != at {
            let (volume, _, name) = open_volume(&self.archive.files, at)?;
            (self.entered, self.volume, self.name) = (at, volume, name);
        }
        Ok(())
    }

    /// The bytes of a record that was read before. The position is lost.
    pub(super) fn bytes_at(
        &mut self,
        volume: VolumeId,
        offset: u64,
        length: usize,
    ) -> Result<&[u8], SourceError> {
        self.enter(volume)?;
        self.volume.bytes_at(offset, length).map_err(|error| error.in_file(&self.name))
    }

    /// The bytes of a record if they happen to be in the buffer.
    pub(super) fn held(&self, volume: VolumeId, offset: u64, length: usize) -> Option<&[u8]> {
        (self.entered == volume).then(|| self.volume.held(offset, length))?
    }

    /// The bytes of the record that [`Volumes::next`] or [`Volumes::previous`] returned
    /// last.
    pub(super) fn bytes(&mut self, record: &Record) -> Result<&[u8], SourceError> {
        self.volume.bytes(record).map_err(|error| error.in_file(&self.name))
    }

    /// Describes damage inside of a record.
    pub(super) fn damaged(&self, error: impl Into<ReadError>) -> SourceError {
        error.into().in_file(&self.name)
    }

    /// True if records may have been skipped because of damage since the last call.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// True if the last error of [`Volumes::next`] will occur again unless the file
    /// grows.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck
    }
}
