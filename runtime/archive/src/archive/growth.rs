//! Archives that a writer still appends to.
//!
//! Input: an open archive. Output: how far it counts. A context that follows an
//! archive is at its end for now behind the last record that counts, until
//! [`ArchiveContext::look`] has taken in what was written since. A record
//! counts once it is complete and the metadata knows its metrics and
//! instances, which writers do not always write first; if it still does not
//! when they have gone on to further records, it does not matter any more.
//!
//! Nothing waits here: the caller decides how often to look.

use pmderive_core::model::{InstId, Timestamp};
use pmderive_core::source::SourceError;

use crate::archive::context::ArchiveContext;
use crate::archive::sequence::{Place, Sequence};
use crate::archive::values::walk;
use crate::archive::volume::Record;

/// What a context that follows its archive knows of it.
pub(super) struct Following {
    /// Reads ahead of the context, and stands behind the last record that counts.
    scout: Sequence,
    pub(super) last_counted: Place,
    /// Latest time of a record that counts, if any does.
    pub(super) end: Option<Timestamp>,
    /// The record that does not count because of the metadata, and how many
    /// records stood behind it.
    held: Option<(Place, usize)>,
}

impl ArchiveContext {
    /// False when nothing can be appended: the archive is compressed.
    pub fn can_grow(&self) -> bool {
        let files = &self.records.last_archive().files;
        let last = files.volumes.last();
        files.metadata.can_grow() && last.is_some_and(|(_, member)| member.can_grow())
    }

    /// Lets fetches end, with `PM_ERR_EOL`, behind what was written so far,
    /// until [`ArchiveContext::look`] has found more. In contrast to other
    /// contexts, which notice what was written while they read, this one never
    /// delivers a record that the metadata known to it does not suffice for;
    /// and an interpolated fetch is not of a time before it is known what
    /// follows there, nor does it pass a time over at the end. That the last
    /// record of the metadata is not whole is no warning meanwhile: the rest is
    /// still to come.
    ///
    /// # Errors
    /// A file can no longer be read.
    pub fn follow(&mut self) -> Result<(), SourceError> {
        let mut scout = self.records.another()?;
        scout.seek_end()?;
        // Of what is there already only the last record is looked at.
        let before = scout.previous().and_then(|_| scout.previous()).ok().flatten();
        let (last_counted, end) = match before.filter(|record| record.length > 0) {
            Some(record) => (scout.place_of(&record), Some(record.stamp)),
            None => {
                let archive = self.records.archives().len() - 1;
                (Place { archive, ..Place::default() }, None)
            }
        };
        self.following = Some(Box::new(Following { scout, last_counted, end, held: None }));
        self.expect_rest_of_metadata();
        self.look()?;
        self.take_growth()
    }

    /// Ends [`ArchiveContext::follow`]: from now on whatever there is counts, and
    /// a last record of the metadata that is still not whole is a warning.
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

    /// Takes in what was written since the last look: data, volumes, metadata.
    /// True if there is any; [`MetadataSource::metadata_epoch`] tells whether
    /// there are metrics among it. Does nothing in a context that does not
    /// follow its archive.
    ///
    /// # Errors
    /// A file can no longer be read, or the metadata is damaged.
    ///
    /// [`MetadataSource::metadata_epoch`]: pmderive_core::source::MetadataSource::metadata_epoch
    pub fn look(&mut self) -> Result<bool, SourceError> {
        let Some(mut following) = self.following.take() else { return Ok(false) };
        let looked = self.look_with(&mut following);
        self.following = Some(following);
        let is_new = looked?;
        if is_new {
            self.take_growth()?;
        }
        Ok(is_new)
    }

    fn look_with(&mut self, following: &mut Following) -> Result<bool, SourceError> {
        let Following { scout, last_counted, end, held } = following;
        // Metadata are read after the data that they belong to was seen.
        let mut seen = Vec::new();
        loop {
            match scout.next() {
                Ok(Some(record)) if record.length == 0 => {}
                Ok(Some(record)) => seen.push((scout.place_of(&record), record)),
                Ok(None) => break,
                // Who comes there is told. At the very end, a record that is
                // cut is still being written.
                Err(_) if scout.take_lost() => {}
                Err(_) => break,
            }
        }
        let mut is_new = self.metadata.has_grown();
        self.refresh_metadata()?;
        for (number, (place, record)) in (1..).zip(&seen) {
            if *place > *last_counted {
                let behind = seen.len() - number;
                let is_let_pass = held.is_some_and(|(at, count)| at == *place && behind > count);
                if !is_let_pass && !self.is_described(scout, *place, record)? {
                    is_new |= held.replace((*place, behind)) != Some((*place, behind));
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

    /// Lets interpolation know of what was written since.
    pub(super) fn take_growth(&mut self) -> Result<(), SourceError> {
        let last_counted = self.last_counted();
        let Some(mut interpolator) = self.interpolator.take() else { return Ok(()) };
        let taken = interpolator.take_growth(last_counted, &mut self.surroundings());
        self.interpolator = Some(interpolator);
        taken
    }

    /// The last record that counts, where the archive is followed.
    pub(super) fn last_counted(&self) -> Option<Place> {
        self.following.as_ref().map(|following| following.last_counted)
    }

    /// Reads the metadata that belongs to a record: what was written before it
    /// and after the metadata was read last.
    pub(super) fn describe(&mut self, record: &Record) -> Result<(), SourceError> {
        if self.records.place_of(record) < self.described || self.following.is_some() {
            return Ok(());
        }
        if !self.can_grow() {
            self.described = Place { archive: usize::MAX, ..Place::default() };
            return Ok(());
        }
        self.described = self.records.present_end()?;
        self.refresh_metadata()
    }

    /// True when the metadata knows all metrics and instances of a record.
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
            // Whoever comes there is told.
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
