//! The data volumes of one archive as one sequence of records.
//!
//! Input: the files of an archive. Output: records in order, volume after volume,
//! and the place in the volumes where a time begins. Records are not looked
//! into here beyond their headers, and what comes before or after the archive
//! is not known.

mod entering;
mod seeking;

use std::sync::Arc;

use pmderive_core::model::PmStatus;
use pmderive_core::source::SourceError;

use crate::archive::bytes::Window;
use crate::archive::files::ArchiveFiles;
use crate::archive::label::ArchiveLabel;
use crate::archive::order::{Order, Rule};
use crate::archive::record::ReadError;
use crate::archive::sequence::{LeftOut, Travel};
use crate::archive::single::SingleArchive;
use crate::archive::volume::{Record, Volume};

/// All data volumes and a position in them.
pub(super) struct Volumes {
    archive: Arc<SingleArchive>,
    /// Position in `files.volumes` of the volume that reading has come to.
    current: usize,
    /// Position of `volume`: another than `current` when that could not be opened.
    entered: usize,
    volume: Volume,
    /// Name of the file of `volume`.
    name: String,
    /// Records may have been skipped because of damage.
    lost: bool,
    /// The error that was met last stays in the way.
    is_stuck: bool,
    order: Order,
    /// What was left out because it is out of order.
    left_out: Vec<LeftOut>,
    /// What is behind the end, and too short for a record.
    tail: Option<SourceError>,
}

/// Opens a data volume; also gives the file's name.
pub(super) fn open_volume(
    files: &ArchiveFiles,
    position: usize,
) -> Result<(Volume, ArchiveLabel, String), SourceError> {
    let (number, member) = &files.volumes[position];
    let name = member.name();
    let opened = member.open().map_err(ReadError::Io);
    match opened.and_then(|file| Volume::open(Window::new(file), *number)) {
        Ok((volume, label)) => Ok((volume, label, name)),
        Err(error) => Err(error.in_file(&name)),
    }
}

impl Volumes {
    /// Opens an archive: its first volume, whose label is that of the archive.
    pub(super) fn open(files: ArchiveFiles) -> Result<Volumes, SourceError> {
        let (mut volume, label, name) = open_volume(&files, 0)?;
        if volume.is_empty().map_err(|error| error.in_file(&name))? {
            return Err(SourceError::Damaged {
                target: name,
                status: PmStatus::NODATA,
                message: "there is nothing behind the label".to_string(),
            });
        }
        Ok(Volumes::at_start(Arc::new(SingleArchive::new(files, label)), volume, name))
    }

    /// The volumes of an archive that was opened before, at the first record.
    pub(super) fn of(archive: &Arc<SingleArchive>) -> Result<Volumes, SourceError> {
        let (volume, _, name) = open_volume(&archive.files, 0)?;
        Ok(Volumes::at_start(Arc::clone(archive), volume, name))
    }

    fn at_start(archive: Arc<SingleArchive>, volume: Volume, name: String) -> Volumes {
        let order = Order::from(archive.label.start);
        Volumes {
            archive,
            current: 0,
            entered: 0,
            volume,
            name,
            lost: false,
            is_stuck: false,
            order,
            left_out: Vec::new(),
            tail: None,
        }
    }

    /// Chooses which records are left out because they are out of order.
    pub(super) fn set_rule(&mut self, rule: Rule) {
        self.order.set_rule(rule);
    }

    /// The same volumes with a position of their own: where this one is.
    pub(super) fn duplicate(&self) -> Result<Volumes, SourceError> {
        let mut duplicate = Volumes::of(&self.archive)?;
        duplicate.enter(self.entered)?;
        duplicate.volume.take_position(&self.volume);
        (duplicate.current, duplicate.lost) = (self.current, self.lost);
        duplicate.order = self.order.clone();
        Ok(duplicate)
    }

    /// Holds nothing of the files until something is read again.
    pub(super) fn rest(&mut self) {
        self.volume.rest();
    }

    /// The archive, with the volumes that were found since it was opened.
    pub(super) fn archive(&self) -> &Arc<SingleArchive> {
        &self.archive
    }

    /// Moves to the next record. `None` at the end, which may be one for now only.
    ///
    /// After an error reading continues behind the damage; a record that is
    /// cut short at the very end is tried again. Records that are out of order
    /// are left out, see [`Volumes::take_left_out`].
    pub(super) fn next(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let read = self.next_of_any_time();
            if let Ok(Some(record)) = &read {
                let looks = self.order.looks_beyond();
                let beyond = looks.then(|| self.volume.stamp_behind()).flatten();
                let place = (record.offset, record.stamp);
                if !self.order.admits(Travel::Forward, place, beyond) {
                    continue;
                }
            }
            self.note_left_out();
            return read;
        }
    }

    /// Notes what was left out up to here, which is a gap.
    fn note_left_out(&mut self) {
        if let Some((damage, count)) = self.order.take_left_out() {
            self.lost |= self.order.looks_beyond();
            let error = self.damaged(damage);
            self.left_out.push(LeftOut { error, count });
        }
    }

    /// What was left out since this was asked last.
    pub(super) fn take_left_out(&mut self) -> Vec<LeftOut> {
        std::mem::take(&mut self.left_out)
    }

    /// What stands behind the last record that was read and is taken for the
    /// end, see [`Volumes::is_taken_for_end`].
    pub(super) fn take_tail(&mut self) -> Option<SourceError> {
        self.tail.take()
    }

    /// True where a volume ends within the length of a record: at the very end
    /// that is no record yet, and to libpcp it is none anywhere.
    fn is_taken_for_end(&self) -> bool {
        let may_be = self.is_last() || !self.order.looks_beyond();
        may_be && self.volume.is_hardly_begun()
    }

    fn next_of_any_time(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
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
            let unreadable = self.volume.is_cut() || matches!(error, ReadError::Io(_));
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

    /// Moves before the previous record and gives it. `None` at the first
    /// one. After an error reading continues before the damage. Records that
    /// are out of order are left out.
    pub(super) fn previous(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let read = self.previous_of_any_time();
            if let Ok(Some(record)) = &read {
                let looks = self.order.looks_beyond();
                let beyond = looks.then(|| self.volume.stamp_before()).flatten();
                let place = (record.offset, record.stamp);
                if !self.order.admits(Travel::Backward, place, beyond) {
                    continue;
                }
            }
            self.note_left_out();
            return read;
        }
    }

    fn previous_of_any_time(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let error = match self.volume.previous() {
                Ok(Some(record)) => {
                    self.current = self.entered;
                    return Ok(Some(record));
                }
                Ok(None) => match self.enter_previous()? {
                    true => continue,
                    false => return Ok(None),
                },
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

    /// Position among the files of the volume of the record that
    /// [`Volumes::next`] or [`Volumes::previous`] gave last.
    pub(super) fn entered(&self) -> usize {
        self.entered
    }

    /// Offset of the next record in the volume being read.
    pub(super) fn position(&self) -> u64 {
        self.volume.position()
    }

    /// Size of the volume being read.
    ///
    /// # Errors
    /// The file does not tell it.
    pub(super) fn size(&mut self) -> Result<u64, SourceError> {
        self.volume.size().map_err(|error| error.in_file(&self.name))
    }

    /// Moves so that [`Volumes::next`] gives the record at an offset of the
    /// volume at a position among the files.
    pub(super) fn move_to(&mut self, volume: usize, offset: u64) -> Result<(), SourceError> {
        self.enter(volume)?;
        self.volume.seek(offset);
        self.order.begin_anywhere();
        Ok(())
    }

    fn enter(&mut self, position: usize) -> Result<(), SourceError> {
        if self.entered != position {
            // Another reader may have found it first.
            while position >= self.archive.files.volumes.len() {
                if !self.discover() {
                    return Err(SourceError::Io {
                        target: self.archive.name(),
                        source: rustix::io::Errno::NOENT.into(),
                    });
                }
            }
            let (volume, _, name) = open_volume(&self.archive.files, position)?;
            (self.entered, self.volume, self.name) = (position, volume, name);
        }
        self.current = position;
        Ok(())
    }

    /// The bytes of a record that was met before; the position is lost.
    pub(super) fn bytes_at(
        &mut self,
        volume: usize,
        offset: u64,
        length: usize,
    ) -> Result<&[u8], SourceError> {
        self.enter(volume)?;
        self.volume.bytes_at(offset, length).map_err(|error| error.in_file(&self.name))
    }

    /// The bytes of a record if they were read and are still there.
    pub(super) fn held(&self, volume: usize, offset: u64, length: usize) -> Option<&[u8]> {
        (self.entered == volume).then(|| self.volume.held(offset, length))?
    }

    /// The bytes of the record that [`Volumes::next`] or [`Volumes::previous`] gave last.
    pub(super) fn bytes(&mut self, record: &Record) -> Result<&[u8], SourceError> {
        self.volume.bytes(record).map_err(|error| error.in_file(&self.name))
    }

    /// Describes damage inside of a record.
    pub(super) fn damaged(&self, error: impl Into<ReadError>) -> SourceError {
        error.into().in_file(&self.name)
    }

    /// True when records may have been skipped because of damage since this
    /// was asked last.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// True when the error that [`Volumes::next`] gave is one that it will
    /// give again, unless the file grows.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck
    }
}
