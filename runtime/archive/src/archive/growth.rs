//! Archives that a writer still appends to.
//!
//! Input: an open archive. Output: the last valid record. For a context that
//! follows an archive, the archive ends after that record, until [`ArchiveContext::look`] has read
//! the new data.
//!
//! A record counts once it is complete and the metadata describe its metrics and
//! instances. Not all writers write metadata first. If a writer has gone on to further
//! records without describing a record, that record counts too.
//!
//! A directory goes on with the next archive in it: pmlogger begins one each day, and when
//! it is started again.
//!
//! This module never waits: the caller decides how often to look.

use std::collections::HashSet;
use std::sync::Arc;

use pmderive_core::model::InstId;
use pmderive_core::source::SourceError;

use crate::archive::context::ArchiveContext;
use crate::archive::following::Following;
use crate::archive::opening::{is_contradiction, other_host};
use crate::archive::positions::ArchiveId;
use crate::archive::resolve::resolve;
use crate::archive::sequence::{Place, Sequence};
use crate::archive::single::SingleArchive;
use crate::archive::values::walk;
use crate::archive::volume::Record;
use crate::archive::volumes::Volumes;

impl ArchiveContext {
    /// False if nothing can be appended because the archive is compressed, or because its
    /// last volume has gone or was replaced while it was followed.
    pub fn can_grow(&self) -> bool {
        if self.following.as_ref().is_some_and(|following| following.is_over) {
            return false;
        }
        let files = &self.records.last_archive().files;
        let last = files.volumes.last();
        files.metadata.can_grow() && last.is_some_and(|(_, member)| member.can_grow())
    }

    /// Follows an archive that grows: fetches end with `PM_ERR_EOL` after everything
    /// written so far, until [`ArchiveContext::look`] has found more.
    ///
    /// Other contexts notice new data while they read. This one differs:
    ///
    /// * It never delivers a record that its metadata do not describe.
    /// * An interpolated fetch waits until the records after its time are known. At the
    ///   end it does not skip a time.
    /// * An incomplete last record of the metadata is no warning, because the rest is
    ///   still to come.
    ///
    /// # Errors
    /// A file can no longer be read.
    pub fn follow(&mut self) -> Result<(), SourceError> {
        let mut scout = self.records.another()?;
        scout.seek_end()?;
        // Among the existing records, only the last one may lack its metadata.
        let before = scout.previous().and_then(|_| scout.previous()).ok().flatten();
        let (last_counted, end) = match before.filter(|record| record.length > 0) {
            Some(record) => (scout.place_of(&record), Some(record.stamp)),
            None => (Place { archive: self.records.last(), ..Place::default() }, None),
        };
        self.following = Some(Box::new(Following {
            scout,
            last_counted,
            end,
            held: None,
            no_continuation: HashSet::new(),
            is_over: false,
        }));
        self.expect_rest_of_metadata();
        self.look()?;
        self.take_growth()
    }

    /// Ends [`ArchiveContext::follow`]. From now on every record counts, and an
    /// incomplete last record of the metadata is a warning.
    ///
    /// # Errors
    /// The metadata cannot be read.
    pub fn stop_following(&mut self) -> Result<(), SourceError> {
        self.following = None;
        self.refresh_metadata()?;
        if let Some(error) = self.metadata.unfinished() {
            self.warn(error);
        }
        self.take_growth()
    }

    /// Reads everything written since the last look: data, volumes and metadata. True if there is
    /// anything new; [`MetadataSource::metadata_epoch`] tells whether there are new metrics. Does
    /// nothing in a context that does not follow its archive.
    ///
    /// # Errors
    /// A file can no longer be read, or the metadata are damaged.
    ///
    /// [`MetadataSource::metadata_epoch`]: pmderive_core::source::MetadataSource::metadata_epoch
    pub fn look(&mut self) -> Result<bool, SourceError> {
        let Some(mut following) = self.following.take() else { return Ok(false) };
        let looked = self.look_with(&mut following).and_then(|is_new| {
            if !is_new
                && self.directory.is_none()
                && !following.is_over
                && let Err(error) = following.scout.check_file()
            {
                following.is_over = true;
                self.warn(error);
            }
            Ok(is_new || self.adopt_next(&mut following)? && self.look_with(&mut following)?)
        });
        self.following = Some(following);
        let is_new = looked?;
        if is_new {
            self.take_growth()?;
        }
        Ok(is_new)
    }

    /// Goes on with the archive that a writer has begun in the directory after the last
    /// one. False if there is none, or if too little of it is there.
    fn adopt_next(&mut self, following: &mut Following) -> Result<bool, SourceError> {
        let Some((directory, max_expanded)) = &self.directory else { return Ok(false) };
        // Files may be renamed at this moment.
        let Ok(found) = resolve(directory, *max_expanded) else { return Ok(false) };
        let Following { scout, no_continuation, .. } = following;
        let known = self.records.archives();
        let Some(last) = known.last().cloned() else { return Ok(false) };
        let mut next: Option<Arc<SingleArchive>> = None;
        for files in found.into_iter().filter_map(|named| named.files.ok()) {
            let base = files.base.clone();
            if no_continuation.contains(&base) || known.iter().any(|one| one.files.base == base) {
                continue;
            }
            let Ok(volumes) = Volumes::open(files) else { continue };
            let archive = volumes.archive();
            if archive.label.start <= last.label.start {
                no_continuation.insert(base);
            } else if next.as_ref().is_none_or(|next| archive.label.start < next.label.start) {
                next = Some(Arc::clone(archive));
            }
        }
        let Some(next) = next else { return Ok(false) };
        let added = match next.label.host == last.label.host {
            true => self.metadata.add_later(&next.files.metadata, &next.label),
            false => Err(other_host(&last, &next)),
        };
        match added {
            Ok(()) => {}
            Err(error) if is_contradiction(error.status()) => {
                no_continuation.insert(next.files.base.clone());
                self.warn(error);
                return Ok(false);
            }
            // Its metadata are still to come.
            Err(_) => return Ok(false),
        }
        self.epoch += 1;
        let archives = known.iter().cloned().chain([next]).collect();
        scout.go_on_with(&archives);
        self.records.go_on_with(&archives);
        if let Some(interpolator) = &mut self.interpolator {
            interpolator.go_on_with(&archives);
        }
        Ok(true)
    }

    fn look_with(&mut self, following: &mut Following) -> Result<bool, SourceError> {
        let Following { scout, last_counted, end, held, .. } = following;
        // Data are read before metadata, and so the metadata of all these records are
        // there.
        let mut seen = Vec::new();
        loop {
            match scout.next() {
                Ok(Some(record)) if record.length == 0 => {}
                Ok(Some(record)) => seen.push((scout.place_of(&record), record)),
                Ok(None) => break,
                // The reader of this part reports the error. An incomplete record
                // at the very end is still being written.
                Err(_) if scout.take_lost() => {}
                Err(_) => break,
            }
        }
        let mut is_new = self.metadata.has_grown();
        self.refresh_metadata()?;
        for (number, (place, record)) in (1..).zip(&seen) {
            if *place > *last_counted {
                // If records came after this one since the last look, its writer has gone
                // on, and its metadata will not come.
                let later = seen.len() - number;
                let was_passed_by = held.is_some_and(|(at, count)| at == *place && later > count);
                if !was_passed_by && !self.is_described(scout, *place, record)? {
                    is_new |= held.replace((*place, later)) != Some((*place, later));
                    scout.move_to(*place)?;
                    return Ok(is_new);
                }
                *last_counted = *place;
                is_new = true;
            }
            *end = (*end).max(Some(record.stamp));
        }
        if let Some((place, record)) = seen.last() {
            scout.move_to(Place { offset: place.offset + record.length as u64, ..*place })?;
        }
        Ok(is_new)
    }

    /// Tells interpolation about data written since.
    pub(super) fn take_growth(&mut self) -> Result<(), SourceError> {
        let last_counted = self.last_counted();
        let Some(mut interpolator) = self.interpolator.take() else { return Ok(()) };
        let taken = interpolator.take_growth(last_counted, &mut self.surroundings());
        self.interpolator = Some(interpolator);
        taken
    }

    /// The last record that counts if the archive is followed.
    pub(super) fn last_counted(&self) -> Option<Place> {
        self.following.as_ref().map(|following| following.last_counted)
    }

    /// Reads metadata that were written since the last reading, unless `record` is
    /// older than that reading.
    pub(super) fn describe(&mut self, record: &Record) -> Result<(), SourceError> {
        if self.records.place_of(record) < self.described || self.following.is_some() {
            return Ok(());
        }
        if !self.can_grow() {
            self.described = Place { archive: ArchiveId::at(usize::MAX), ..Place::default() };
            return Ok(());
        }
        self.described = self.records.present_end();
        self.refresh_metadata()
    }

    /// True if the metadata describe all metrics and instances of a record.
    fn is_described(
        &mut self,
        scout: &mut Sequence,
        place: Place,
        record: &Record,
    ) -> Result<bool, SourceError> {
        let bytes = scout.bytes_at(place, record.length)?;
        let mut sets = Vec::new();
        let walked = walk(bytes, record.first_set, record.set_count, |pmid, set| {
            sets.push((pmid, set));
        });
        if walked.is_err() {
            // The caller that reads this record gets the error.
            return Ok(true);
        }
        for (pmid, set) in sets {
            let Some(desc) = self.metadata.desc(pmid) else { return Ok(false) };
            let Some(indom) = desc.indom else { continue };
            let lanes = bytes.get(set.start + 12..set.end).unwrap_or_default().as_chunks::<8>().0;
            if lanes.is_empty() {
                continue;
            }
            let Ok(domain) = self.metadata.domain(indom, record.stamp)? else { return Ok(false) };
            let is_known = |[a, b, c, d, ..]: &[u8; 8]| {
                domain.name(InstId::from_be_bytes([*a, *b, *c, *d])).is_some()
            };
            if !lanes.iter().all(is_known) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
