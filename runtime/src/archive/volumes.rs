//! The data volumes of an archive as one sequence of records.
//!
//! In: the files of an archive. Out: records in order, volume after volume,
//! and the place in the volumes where a time begins. Records are not looked
//! into here beyond their headers.

use crate::archive::bytes::Window;
use crate::archive::files::ArchiveFiles;
use crate::archive::index::IndexEntry;
use crate::archive::label::ArchiveLabel;
use crate::archive::record::ReadError;
use crate::archive::volume::{Record, Volume};
use crate::model::{PmStatus, Timestamp};
use crate::source::SourceError;

/// How many entries of the index are tried before the volume is read from its start.
const INDEX_TRIES: usize = 8;

/// All data volumes and a position in them.
pub(super) struct Volumes {
    files: ArchiveFiles,
    /// Position in `files.volumes` of the volume that reading has come to.
    current: usize,
    /// Position of `volume`: behind `current` when that could not be opened.
    entered: usize,
    volume: Volume,
    /// Name of the file of `volume`.
    name: String,
    /// Records may have been skipped because of damage.
    lost: bool,
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
    /// Opens the first volume, whose label is that of the archive.
    pub(super) fn open(files: ArchiveFiles) -> Result<(Volumes, ArchiveLabel), SourceError> {
        let (mut volume, label, name) = open_volume(&files, 0)?;
        if volume.is_empty().map_err(|error| error.in_file(&name))? {
            return Err(SourceError::Damaged {
                target: name,
                status: PmStatus::NODATA,
                message: "there is nothing behind the label".to_string(),
            });
        }
        Ok((Volumes { files, current: 0, entered: 0, volume, name, lost: false }, label))
    }

    pub(super) fn files(&self) -> &ArchiveFiles {
        &self.files
    }

    /// Moves to the next record. `None` at the end, which may be one for now only.
    ///
    /// After an error reading continues behind the damage; a record that is
    /// cut short at the very end is tried again.
    pub(super) fn next(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let error = match self.volume.next() {
                Ok(Some(record)) => return Ok(Some(record)),
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
            if !(unreadable && self.is_last()) {
                self.lost = true;
                if unreadable {
                    self.volume.abandon();
                }
            }
            return Err(error);
        }
    }

    /// The bytes of the record that [`Volumes::next`] gave last.
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

    fn is_last(&self) -> bool {
        self.current + 1 >= self.files.volumes.len()
    }

    /// Looks for a volume that the writer has begun since, far enough to have a label.
    fn discover(&mut self) -> bool {
        let Some(volume) = self.files.next_volume() else {
            return false;
        };
        self.files.volumes.push(volume);
        let begun = open_volume(&self.files, self.files.volumes.len() - 1).is_ok();
        if !begun {
            self.files.volumes.pop();
        }
        begun
    }

    /// Enters the next volume. One that cannot be opened counts as missing,
    /// and missing volumes are passed over.
    fn enter_next(&mut self) -> Result<(), SourceError> {
        self.current += 1;
        match open_volume(&self.files, self.current) {
            Ok((volume, _, name)) => {
                (self.entered, self.volume, self.name) = (self.current, volume, name);
                Ok(())
            }
            Err(error) => {
                self.lost = true;
                if matches!(error, SourceError::Io { .. }) { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Moves to a record from which on no record at `time` or later is missed.
    ///
    /// # Errors
    /// No volume that is early enough can be opened.
    pub(super) fn seek(
        &mut self,
        time: Timestamp,
        index: &[IndexEntry],
    ) -> Result<(), SourceError> {
        self.lost = false;
        let is_before = |stamp: Option<Timestamp>| stamp.is_some_and(|stamp| stamp < time);
        for position in (0..self.files.volumes.len()).rev() {
            // The volume being read stays open, as it may have been expanded already.
            let mut opened = None;
            let volume = if position == self.entered {
                &mut self.volume
            } else {
                match open_volume(&self.files, position) {
                    Ok((volume, _, name)) => &mut opened.insert((volume, name)).0,
                    Err(error) if position == 0 => return Err(error),
                    Err(_) => continue,
                }
            };
            let number = self.files.volumes[position].0;
            let first = volume.first_offset();
            if position > 0 && !is_before(volume.stamp_at(first)) {
                continue;
            }
            let start = index
                .iter()
                .rev()
                .filter(|entry| entry.volume == number && entry.stamp < time)
                .take(INDEX_TRIES)
                .find(|entry| is_before(volume.stamp_at(entry.offset)))
                .map_or(first, |entry| entry.offset);
            volume.seek(start);
            if let Some((volume, name)) = opened {
                (self.entered, self.volume, self.name) = (position, volume, name);
            }
            self.current = position;
            return Ok(());
        }
        Ok(())
    }
}
