//! Moves from volume to volume of an archive, and notes missing volumes.

use std::sync::Arc;

use pmderive_core::model::PmStatus;
use pmderive_core::source::SourceError;

use crate::archive::framing::{Damage, ReadError};
use crate::archive::positions::VolumeId;
use crate::archive::volume::open_volume;
use crate::archive::volumes::{LeftOut, Volumes};

impl Volumes {
    /// Enters the volume before the current one at its end. False if there is none.
    /// Volumes that cannot be opened count as missing and are skipped, and to libpcp also
    /// those without a label.
    pub(super) fn enter_previous(&mut self) -> Result<bool, SourceError> {
        while let Some(position) = self.current.previous() {
            self.current = position;
            let (later, name) = (self.entered, self.name.clone());
            match self.open_at(position) {
                Ok(()) => {
                    self.note_missing(position, later, &name);
                    self.go_to_end_of_volume();
                    return Ok(true);
                }
                Err(error) if self.counts_as_missing(&error) => self.pass_over(error),
                Err(error) => {
                    self.lost = true;
                    return Err(error);
                }
            }
        }
        Ok(false)
    }

    pub(super) fn is_last(&self) -> bool {
        self.current.index() + 1 >= self.archive.files.volumes.len()
    }

    /// Looks for a volume that the writer has begun meanwhile. It must have a whole
    /// label.
    pub(super) fn discover(&mut self) -> bool {
        let Some(volume) = self.archive.files.next_volume() else {
            return false;
        };
        let files = &mut Arc::make_mut(&mut self.archive).files;
        files.volumes.push(volume);
        let begun = open_volume(files, VolumeId::at(files.volumes.len() - 1)).is_ok();
        if !begun {
            files.volumes.pop();
        }
        begun
    }

    /// Enters the next volume. Volumes that cannot be opened count as missing and are
    /// skipped, and to libpcp also those without a label. The last volume is tried again as
    /// long as the writer may complete its label.
    pub(super) fn enter_next(&mut self) -> Result<(), SourceError> {
        self.is_stuck = false;
        let (before, last) = (self.entered, self.current);
        let next = last.next();
        self.current = next;
        let error = match self.open_at(next) {
            Ok(()) => {
                self.note_missing(before, next, &self.name.clone());
                return Ok(());
            }
            Err(error) if self.counts_as_missing(&error) => {
                self.pass_over(error);
                return Ok(());
            }
            Err(error) => error,
        };
        self.is_stuck = self.is_last() && self.lacks_part_of_label(next);
        if self.is_stuck {
            self.current = last;
        } else {
            self.lost = true;
        }
        Err(error)
    }

    /// True if a volume that was not opened because of `error` is skipped.
    fn counts_as_missing(&self, error: &SourceError) -> bool {
        matches!(error, SourceError::Io { .. }) || !self.order.looks_beyond()
    }

    /// Notes that volumes are missing between two that are neighbours in the list of
    /// files. A volume that exists but cannot be opened is noted elsewhere.
    pub(super) fn note_missing(&mut self, earlier: VolumeId, later: VolumeId, name: &str) {
        let volumes = &self.archive.files.volumes;
        let (before, after) = (volumes[earlier.index()].0, volumes[later.index()].0);
        if earlier.next() == later && before.checked_add(1) != Some(after) {
            let message = format!("the previous volume is {before}, so at least one is missing");
            self.pass_over(missing(message, name));
        }
    }

    /// Notes that volumes are missing before the first one, if the index has any and reading
    /// stands at the first record.
    pub(super) fn note_missing_before_first(&mut self) {
        let first = self.archive.files.volumes[0].0;
        if self.has_noted_start || first <= 0 || self.entered != VolumeId::FIRST {
            return;
        }
        if self.volume.position() > self.archive.label.version.label_size() as u64 {
            return;
        }
        self.has_noted_start = true;
        let known = self.archive.index().iter().map(|entry| entry.volume).min();
        let known = known.filter(|known| *known < first);
        if let Some(known) = known
            && self.archive.fault_of_index().is_none()
        {
            let message = format!(
                "the index begins with volume {known}, so at least one is missing before this"
            );
            self.pass_over(missing(message, &self.name));
        }
    }

    /// The problem that volumes are missing after the last one, if the index has any, or that
    /// this index cannot be right.
    pub(super) fn missing_after_last(&self) -> Option<SourceError> {
        let last = self.archive.files.volumes[self.entered.index()].0;
        let known = self.archive.index().iter().map(|entry| entry.volume).max()?;
        if known <= last {
            return None;
        }
        let message =
            format!("the index ends with volume {known}, so at least one is missing after this");
        Some(self.archive.fault_of_index().unwrap_or_else(|| missing(message, &self.name)))
    }

    /// Notes a problem of a part that is skipped. It is a gap. libpcp does not notice
    /// these problems, and computes across them.
    pub(super) fn pass_over(&mut self, error: SourceError) {
        if self.order.looks_beyond() {
            self.lost = true;
            self.left_out.push(LeftOut { error, count: 0 });
        }
    }

    /// True for a volume that may grow and ends within its label.
    fn lacks_part_of_label(&self, at: VolumeId) -> bool {
        let (_, member) = &self.archive.files.volumes[at.index()];
        let label = self.archive.label.version.label_size() as u64;
        member.can_grow() && member.size_on_disk().is_ok_and(|size| size < label)
    }
}

/// The problem of a volume beside which others are missing.
fn missing(message: String, name: &str) -> SourceError {
    ReadError::from(Damage::new(PmStatus::LOGREC, 0, message)).in_file(name)
}
