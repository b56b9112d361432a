//! The archives of a context as one sequence of records.
//!
//! ```text
//!   first archive        second archive            last archive
//!   ─ volumes ─  mark    ──── volumes ────  mark   ── volumes ──
//! ```
//!
//! Input: archives in the order of their starts; one of them is open at a time. Output:
//! their records. The sequence adds a mark between two archives, because the time
//! between them is not recorded. It adds nothing to a single archive. This module looks
//! only at the headers of records.

use std::sync::Arc;

use pmderive_core::model::{PmStatus, Timestamp, UtcTime};
use pmderive_core::source::SourceError;

use crate::archive::framing::{Damage, ReadError};
use crate::archive::order::{OrderRule, Travel};
use crate::archive::positions::{ArchiveId, VolumeId};
use crate::archive::single::SingleArchive;
use crate::archive::volume::Record;
use crate::archive::volumes::{LeftOut, Volumes};

/// Distance in nanoseconds between a mark and the archive that it belongs to.
const MARK_DISTANCE: i64 = 1_000_000;

/// The place of a record: its archive, the volume, and the offset in the volume. Places
/// compare in the order of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) archive: ArchiveId,
    pub(super) volume: VolumeId,
    pub(super) offset: u64,
}

/// All archives of a context, and a position in them.
pub(super) struct Sequence {
    /// In the order of their starts. There is at least one.
    archives: Arc<[Arc<SingleArchive>]>,
    /// The archive that reading has come to.
    current: ArchiveId,
    /// The archive of `volumes`. It differs from `current` if that could not be opened.
    entered: ArchiveId,
    volumes: Volumes,
    travel: Travel,
    /// The rest of the archive is skipped, because its mark was delivered or damage is
    /// in the way.
    is_done: bool,
    /// For archives that overlap: the time from which records of this archive count.
    limit: Option<Timestamp>,
    rule: OrderRule,
    /// Reading continues in the next archive if one cannot be read.
    passes_over_damage: bool,
    /// Records may have been skipped because of damage.
    lost: bool,
    /// Bytes after the ends of archives that are too short for a record.
    tails: Vec<SourceError>,
}

impl Sequence {
    /// Begins at the first record. `first` are the volumes of the first archive.
    pub(super) fn new(archives: Arc<[Arc<SingleArchive>]>, first: Volumes) -> Sequence {
        Sequence {
            archives,
            current: ArchiveId::FIRST,
            entered: ArchiveId::FIRST,
            volumes: first,
            travel: Travel::Forward,
            is_done: false,
            limit: None,
            rule: OrderRule::default(),
            passes_over_damage: true,
            lost: false,
            tails: Vec::new(),
        }
    }

    /// A new reader of the same archives, at the first record. It leaves out records
    /// that are out of order.
    pub(super) fn another(&self) -> Result<Sequence, SourceError> {
        let mut first = self.volumes_of(ArchiveId::FIRST)?;
        // Only the label was read through this window.
        first.release();
        let passes_over_damage = self.passes_over_damage;
        let archives = Arc::clone(&self.archives);
        let mut another = Sequence { passes_over_damage, ..Sequence::new(archives, first) };
        another.set_rule(match self.rule {
            OrderRule::Fewest => OrderRule::Fewest,
            OrderRule::AsInLibpcp | OrderRule::Nothing => OrderRule::AsInLibpcp,
        });
        Ok(another)
    }

    /// A new reader of the same archives, at the same position.
    pub(super) fn duplicate(&self) -> Result<Sequence, SourceError> {
        let volumes = self.volumes.duplicate()?;
        let archives = Arc::clone(&self.archives);
        Ok(Sequence { archives, volumes, tails: Vec::new(), ..*self })
    }

    /// Frees the buffers until the next read. The position stays.
    pub(super) fn release(&mut self) {
        self.volumes.release();
    }

    /// Ends at damage, like libpcp before 7.1.4. If an archive cannot be read past its
    /// damage, later archives are not read either. Records are delivered even if their
    /// times are out of order.
    pub(super) fn stop_at_damage(&mut self) {
        self.passes_over_damage = false;
        self.set_rule(OrderRule::Nothing);
    }

    /// Chooses which records are left out because they are out of order.
    fn set_rule(&mut self, rule: OrderRule) {
        self.rule = rule;
        self.volumes.set_rule(rule);
    }

    /// The volumes of an archive, at its first record.
    fn volumes_of(&self, archive: ArchiveId) -> Result<Volumes, SourceError> {
        let mut volumes = Volumes::of(self.at(archive))?;
        volumes.set_rule(self.rule);
        Ok(volumes)
    }

    /// Chooses on which side marks between archives stand.
    pub(super) fn set_travel(&mut self, travel: Travel) {
        self.travel = travel;
    }

    /// Goes on with further archives after the last one: `archives` has all of them.
    pub(super) fn go_on_with(&mut self, archives: &Arc<[Arc<SingleArchive>]>) {
        self.archives = Arc::clone(archives);
    }

    pub(super) fn archives(&self) -> &[Arc<SingleArchive>] {
        &self.archives
    }

    fn at(&self, archive: ArchiveId) -> &Arc<SingleArchive> {
        &self.archives[archive.index()]
    }

    /// Position of the last archive.
    pub(super) fn last(&self) -> ArchiveId {
        ArchiveId::at(self.archives.len() - 1)
    }

    /// The archive that is being read.
    pub(super) fn archive(&self) -> &SingleArchive {
        self.volumes.archive()
    }

    /// The last archive, with volumes that were found since it was opened.
    pub(super) fn last_archive(&self) -> &SingleArchive {
        let last = self.last();
        if self.entered == last { self.volumes.archive() } else { self.at(last) }
    }

    /// Moves to the next record or mark. `None` at the end; an archive that grows may
    /// have more later.
    ///
    /// After an error reading continues after the damage. An incomplete record at the
    /// very end is tried again.
    pub(super) fn next(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let record = match self.is_done {
                true => None,
                false => self.volumes.next().map_err(|error| self.met(error))?,
            };
            match record {
                Some(record) if self.limit.is_some_and(|limit| record.stamp < limit) => {}
                Some(record) => return Ok(Some(record)),
                None if self.current >= self.last() => return Ok(None),
                None if self.is_done => self.cross(self.current, Travel::Forward)?,
                None => {
                    self.is_done = true;
                    return Ok(Some(self.mark(self.current, Travel::Forward)));
                }
            }
        }
    }

    /// Moves to the previous record or mark and returns it. `None` before the first
    /// one. After an error reading continues before the damage.
    pub(super) fn previous(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let record = match self.is_done {
                true => None,
                false => self.volumes.previous()?,
            };
            match record {
                Some(record) if self.limit.is_some_and(|limit| record.stamp > limit) => {}
                Some(record) => return Ok(Some(record)),
                None => {
                    let Some(previous) = self.current.previous() else { return Ok(None) };
                    if self.is_done {
                        self.cross(previous, Travel::Backward)?;
                    } else {
                        self.is_done = true;
                        return Ok(Some(self.mark(previous, Travel::Backward)));
                    }
                }
            }
        }
    }

    /// Bytes after the ends of archives that were read: less than the length of a
    /// record. They may still become one.
    pub(super) fn take_tails(&mut self) -> Vec<SourceError> {
        self.tails.extend(self.volumes.take_tail());
        std::mem::take(&mut self.tails)
    }

    /// Notes damage in a volume. If an archive that is not the last one cannot be read
    /// further, the next one is read.
    fn met(&mut self, error: SourceError) -> SourceError {
        let is_last = self.current >= self.last();
        if self.passes_over_damage && !is_last && self.volumes.is_stuck() {
            self.is_done = true;
            self.lost = true;
        }
        error
    }

    /// The mark between archive `earlier` and the next one. If the two overlap, it
    /// stands on the side for the direction `reading`.
    fn mark(&self, earlier: ArchiveId, reading: Travel) -> Record {
        let start = self.at(earlier.next()).label.start;
        let end = self.at(earlier).end_time().unwrap_or(start);
        let travel = if start < end { reading } else { self.travel };
        let stamp = match travel {
            Travel::Forward => moved(end, MARK_DISTANCE),
            Travel::Backward => moved(start, -MARK_DISTANCE),
        };
        Record { offset: 0, length: 0, stamp, set_count: 0, first_set: 0 }
    }

    /// Crosses the border between archive `earlier` and the next one.
    fn cross(&mut self, earlier: ArchiveId, reading: Travel) -> Result<(), SourceError> {
        let later = earlier.next();
        match reading {
            Travel::Forward => self.open(later)?,
            Travel::Backward => {
                self.open(earlier)?;
                self.volumes.seek_end();
            }
        }
        let (before, after) = (&self.archives[earlier.index()], &self.archives[later.index()]);
        let overlap = before.end_time().ok().filter(|end| after.label.start < *end);
        self.limit = overlap.map(|end| match reading {
            Travel::Forward => moved(end, MARK_DISTANCE),
            Travel::Backward => moved(after.label.start, -MARK_DISTANCE),
        });
        overlap.map_or(Ok(()), |end| {
            self.lost = true;
            Err(overlapping(before, after, end))
        })
    }

    /// Moves to another archive. If it cannot be opened, the next call moves to the one
    /// after it.
    fn open(&mut self, archive: ArchiveId) -> Result<(), SourceError> {
        match self.volumes_of(archive) {
            Ok(volumes) => {
                self.lost |= self.volumes.take_lost();
                self.tails.extend(self.volumes.take_tail());
                (self.current, self.entered, self.volumes) = (archive, archive, volumes);
                self.is_done = false;
                Ok(())
            }
            Err(error) => {
                if self.passes_over_damage {
                    self.current = archive;
                    self.lost = true;
                }
                Err(error)
            }
        }
    }

    /// Moves to a record such that no record at `time` or later is missed from there
    /// on.
    ///
    /// # Errors
    /// The archive of that time cannot be opened.
    pub(super) fn seek(&mut self, time: Timestamp) -> Result<(), SourceError> {
        self.enter(self.archive_of(time))?;
        self.volumes.seek(time)
    }

    /// Moves after the last record at `time` or earlier.
    ///
    /// # Errors
    /// The archive of that time cannot be opened.
    pub(super) fn seek_after(&mut self, time: Timestamp) -> Result<(), SourceError> {
        // The mark before the next archive may be before this time already.
        self.enter(self.archive_of(moved(time, MARK_DISTANCE)))?;
        self.volumes.seek_after(time)
    }

    /// Moves after the last record of all archives.
    ///
    /// # Errors
    /// The last archive cannot be opened.
    pub(super) fn seek_end(&mut self) -> Result<(), SourceError> {
        self.enter(self.last())?;
        self.volumes.seek_end();
        Ok(())
    }

    /// The last archive that starts at `time` or earlier; if there is none, the first
    /// archive.
    fn archive_of(&self, time: Timestamp) -> ArchiveId {
        let count = self.archives.partition_point(|archive| archive.label.start <= time);
        ArchiveId::at(count.saturating_sub(1))
    }

    fn enter(&mut self, archive: ArchiveId) -> Result<(), SourceError> {
        if self.entered != archive {
            self.volumes = self.volumes_of(archive)?;
            self.entered = archive;
        }
        self.current = archive;
        (self.is_done, self.limit, self.lost) = (false, None, false);
        Ok(())
    }

    /// The place of the record that [`Sequence::next`] or [`Sequence::previous`]
    /// returned last. A mark between archives has no place.
    pub(super) fn place_of(&self, record: &Record) -> Place {
        Place { archive: self.entered, volume: self.volumes.entered(), offset: record.offset }
    }

    /// True if the record that [`Sequence::next`] would return comes after the last one
    /// that counts.
    pub(super) fn is_past(&self, last_counted: Option<Place>) -> bool {
        let (volume, offset) = (self.volumes.entered(), self.volumes.position());
        let next = Place { archive: self.entered, volume, offset };
        last_counted.is_some_and(|last| next > last)
    }

    /// The current end of the volume that is being read. A damaged compressed one has no
    /// size, and does not grow.
    pub(super) fn present_end(&mut self) -> Place {
        let (volume, size) = (self.volumes.entered(), self.volumes.size());
        Place { archive: self.entered, volume, offset: size.unwrap_or(u64::MAX) }
    }

    /// Fails if nothing can be appended to what was read (see [`Volumes::check_file`]).
    pub(super) fn check_file(&mut self) -> Result<(), SourceError> {
        self.volumes.check_file()
    }

    /// Moves so that [`Sequence::next`] returns the record at `place`.
    pub(super) fn move_to(&mut self, place: Place) -> Result<(), SourceError> {
        self.enter(place.archive)?;
        self.volumes.move_to(place.volume, place.offset)
    }

    /// The bytes of a record that was read before. The position is lost.
    pub(super) fn bytes_at(&mut self, place: Place, length: usize) -> Result<&[u8], SourceError> {
        if self.entered != place.archive {
            self.enter(place.archive)?;
        }
        self.volumes.bytes_at(place.volume, place.offset, length)
    }

    /// The bytes of a record if they happen to be in the buffer.
    pub(super) fn held(&self, place: Place, length: usize) -> Option<&[u8]> {
        let is_here = self.entered == place.archive;
        is_here.then(|| self.volumes.held(place.volume, place.offset, length))?
    }

    /// The bytes of the record that [`Sequence::next`] or [`Sequence::previous`]
    /// returned last; empty for a mark between archives.
    pub(super) fn bytes(&mut self, record: &Record) -> Result<&[u8], SourceError> {
        if record.length == 0 {
            return Ok(&[]);
        }
        self.volumes.bytes(record)
    }

    /// Describes damage inside of a record.
    pub(super) fn damaged(&self, error: impl Into<ReadError>) -> SourceError {
        self.volumes.damaged(error)
    }

    /// The same, for a record that is passed over.
    pub(super) fn lose(&mut self, damage: Damage) -> SourceError {
        self.lost = true;
        self.damaged(damage)
    }

    /// The series of records that were left out since the last call because their times
    /// are out of order.
    pub(super) fn take_left_out(&mut self) -> Vec<LeftOut> {
        self.volumes.take_left_out()
    }

    /// True if records may have been skipped because of damage since the last call.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost) | self.volumes.take_lost()
    }
}

fn moved(stamp: Timestamp, nanoseconds: i64) -> Timestamp {
    Timestamp::new(stamp.sec, i64::from(stamp.nsec) + nanoseconds)
}

/// The error for two archives of one context that have records of the same time.
pub(super) fn overlapping(
    before: &SingleArchive,
    after: &SingleArchive,
    end: Timestamp,
) -> SourceError {
    let (start, end) = (UtcTime(after.label.start), UtcTime(end));
    SourceError::Damaged {
        target: after.name(),
        status: PmStatus::LOGOVERLAP,
        message: format!(
            "it starts at {start}, before the end of {} at {end}. Archives of one context have \
             to follow each other in time: leave one out, or join them with pmlogextract",
            before.name()
        ),
    }
}
