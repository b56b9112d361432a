//! Finds the place of a time in the volumes of an archive, and their ends.
//!
//! Input: a time, and the temporal index. The index may be wrong: it only saves time.
//! Output: a position in the volumes.

use std::sync::Arc;

use pmderive_core::model::Timestamp;
use pmderive_core::source::SourceError;

use crate::archive::positions::VolumeId;
use crate::archive::volume::open_volume;
use crate::archive::volumes::{LeftOut, Volumes};

/// Number of index entries that are tried before a volume is read from its start.
const INDEX_TRIES: usize = 8;

impl Volumes {
    /// Moves after the last record at `time` or earlier.
    ///
    /// # Errors
    /// The volumes that are early enough cannot be opened.
    pub(in crate::archive) fn seek_after(&mut self, time: Timestamp) -> Result<(), SourceError> {
        self.seek(time)?;
        let mut end = None;
        loop {
            let before = (self.entered, self.volume.position());
            match self.next() {
                Ok(Some(record)) if record.stamp <= time => end = None,
                Ok(Some(record)) => {
                    self.volume.seek(record.offset);
                    break;
                }
                Ok(None) => break,
                // Damage after this position is reported again on the way back.
                Err(error) => {
                    let has_moved = before != (self.entered, self.volume.position());
                    end = Some(error).filter(|_| !has_moved);
                    // Damage at the very end cannot be skipped.
                    if !std::mem::take(&mut self.lost) {
                        break;
                    }
                }
            }
        }
        self.begin_elsewhere();
        self.left_out.extend(end.map(|error| LeftOut { error, count: 0 }));
        Ok(())
    }

    /// Moves after the last record of all volumes.
    pub(in crate::archive) fn seek_end(&mut self) {
        self.begin_elsewhere();
        for at in self.archive.files.volume_ids().rev() {
            if self.open_at(at).is_ok() {
                self.current = at;
                self.go_to_end_of_volume();
                return;
            }
        }
    }

    /// Reading continues at another place.
    fn begin_elsewhere(&mut self) {
        self.order.begin_anywhere();
        self.left_out.clear();
        self.lost = false;
    }

    /// Moves after the last record of the current volume. Notes bytes after it that are
    /// not a record.
    pub(super) fn go_to_end_of_volume(&mut self) {
        // The size of a damaged compressed volume is unknown, so it is read forward.
        let size = self.volume.size().unwrap_or(u64::MAX);
        if self.volume.sound_record_before(size).is_some() {
            self.volume.seek(size);
            return;
        }
        let boundary = self.boundary_before(size);
        self.volume.seek(boundary);
        // There may be a whole record after the last boundary before the limit.
        let (end, read) = loop {
            let at = self.volume.position();
            match self.volume.next() {
                Ok(Some(_)) => {}
                read => break (at, read),
            }
        };
        let has_moved = self.volume.position() != end;
        let end = self.volume.position();
        self.volume.seek(end);
        // A damaged record with a valid length is reported again on the way
        // back.
        if let Err(error) = read
            && !has_moved
        {
            let error = error.in_file(&self.name);
            if self.is_taken_for_end() {
                self.tail = Some(error);
                return;
            }
            self.pass_over(error);
        }
    }

    /// The last end of a record before `offset` in the current volume.
    pub(super) fn boundary_before(&mut self, offset: u64) -> u64 {
        let entries = self.archive.entries_of(self.entered).rev();
        let mut hints =
            entries.map(|entry| entry.offset).filter(|at| *at < offset).take(INDEX_TRIES);
        let hint = hints.find(|at| self.volume.stamp_at(*at).is_some());
        self.volume.last_boundary(hint.unwrap_or(self.volume.first_offset()), offset)
    }

    /// The first beginning of a record after damage at `offset` in the current volume (see
    /// [`Volume::boundary_after`]).
    ///
    /// [`Volume::boundary_after`]: crate::archive::volume::Volume::boundary_after
    pub(super) fn boundary_after(&mut self, offset: u64) -> Option<u64> {
        let entries = self.archive.entries_of(self.entered);
        let hints = entries.map(|entry| entry.offset).filter(|at| *at > offset);
        self.volume.boundary_after(offset, hints.take(INDEX_TRIES))
    }

    /// Moves to a record before `time` that the index leads to. False if the index
    /// leads to no such record, or if `time` is after its last entry. Opens only the
    /// volume of that record.
    fn seek_by_index(&mut self, time: Timestamp) -> bool {
        let archive = Arc::clone(&self.archive);
        let index = archive.index();
        if index.last().is_none_or(|last| last.stamp < time) {
            return false;
        }
        let before = index.iter().rev().filter(|entry| entry.stamp < time);
        for entry in before.take(INDEX_TRIES) {
            let volumes = &archive.files.volumes;
            let position = volumes.iter().position(|(number, _)| *number == entry.volume);
            if position.is_some_and(|position| self.enter(VolumeId::at(position)).is_ok())
                && self.volume.stamp_at(entry.offset).is_some_and(|stamp| stamp < time)
            {
                self.volume.seek(entry.offset);
                return true;
            }
        }
        false
    }

    /// Moves to a record such that no record at `time` or later is missed from there
    /// on.
    ///
    /// # Errors
    /// The volumes that are early enough cannot be opened.
    pub(in crate::archive) fn seek(&mut self, time: Timestamp) -> Result<(), SourceError> {
        self.begin_elsewhere();
        let is_before = |stamp: Option<Timestamp>| stamp.is_some_and(|stamp| stamp < time);
        if self.seek_by_index(time) {
            return Ok(());
        }
        // From the start on, every record follows. No volume is opened to check.
        if time <= self.archive.label.start && self.enter(VolumeId::FIRST).is_ok() {
            let first = self.volume.first_offset();
            self.volume.seek(first);
            self.order.begin_at_start();
            return Ok(());
        }
        for at in self.archive.files.volume_ids().rev() {
            // The current volume stays open, because it may have been expanded already.
            let mut opened = None;
            let volume = if at == self.entered {
                &mut self.volume
            } else {
                match open_volume(&self.archive.files, at) {
                    Ok((volume, _, name)) => &mut opened.insert((volume, name)).0,
                    Err(error) if at == VolumeId::FIRST => return Err(error),
                    Err(_) => continue,
                }
            };
            let first = volume.first_offset();
            if at != VolumeId::FIRST && !is_before(volume.stamp_at(first)) {
                continue;
            }
            let hints = self.archive.entries_of(at).rev().filter(|entry| entry.stamp < time);
            let start = hints
                .take(INDEX_TRIES)
                .find(|entry| is_before(volume.stamp_at(entry.offset)))
                .map_or(first, |entry| entry.offset);
            volume.seek(start);
            if let Some((volume, name)) = opened {
                (self.entered, self.volume, self.name) = (at, volume, name);
            }
            self.current = at;
            if at == VolumeId::FIRST && start == first {
                self.order.begin_at_start();
            }
            return Ok(());
        }
        Ok(())
    }
}
