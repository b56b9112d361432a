//! The archives of a context as one sequence of records.
//!
//! ```text
//!   first archive        second archive            last archive
//!   ─ volumes ─  mark    ──── volumes ────  mark   ── volumes ──
//! ```
//!
//! Input: archives in order of their starts, of which one is open at a time.
//! Output: their records, and between two archives a mark that stands in none of
//! them: nobody knows what was between them. Of a single archive nothing is
//! added. Records are not looked into here beyond their headers.

use std::sync::Arc;

use pmderive_core::model::{PmStatus, Timestamp};
use pmderive_core::source::SourceError;

use crate::archive::order::Rule;
use crate::archive::record::ReadError;
use crate::archive::single::SingleArchive;
use crate::archive::volume::Record;
use crate::archive::volumes::Volumes;

/// How far a mark stands from the archive that it belongs to, in nanoseconds.
const MARK_DISTANCE: i64 = 1_000_000;

/// Where a record stands: positions of its archive and of its volume, and
/// offset there. Places are in the order of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) archive: usize,
    pub(super) volume: usize,
    pub(super) offset: u64,
}

/// The direction in which time passes for whoever reads. Of what lies
/// between two archives the mark takes the far part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travel {
    /// A mark stands behind the end of the earlier archive.
    Forward,
    /// A mark stands before the start of the later archive.
    Backward,
}

/// Records that were passed over.
pub(super) struct LeftOut {
    /// What is wrong with them.
    pub(super) error: SourceError,
    /// How many they are; 0 where nobody knows.
    pub(super) count: u64,
}

/// All archives and a position in them.
pub(super) struct Sequence {
    /// In order of their starts; never empty.
    archives: Arc<[Arc<SingleArchive>]>,
    /// The archive that reading has come to.
    current: usize,
    /// The archive of `volumes`: another than `current` when that could not be opened.
    entered: usize,
    volumes: Volumes,
    travel: Travel,
    /// What is left of the archive is passed over: its mark was given, or
    /// damage is in the way.
    is_done: bool,
    /// Of archives that overlap: where the records of this one begin to count.
    limit: Option<Timestamp>,
    rule: Rule,
    /// Whatever cannot be read is passed over.
    passes_over_damage: bool,
    /// Records may have been skipped because of damage.
    lost: bool,
    /// What archives have behind their ends that is too short for a record.
    tails: Vec<SourceError>,
}

impl Sequence {
    /// Positioned at the first record. `first` are the volumes of the first archive.
    pub(super) fn new(archives: Arc<[Arc<SingleArchive>]>, first: Volumes) -> Sequence {
        Sequence {
            archives,
            current: 0,
            entered: 0,
            volumes: first,
            travel: Travel::Forward,
            is_done: false,
            limit: None,
            rule: Rule::default(),
            passes_over_damage: true,
            lost: false,
            tails: Vec::new(),
        }
    }

    /// The same archives with a position of their own: at the first record. It
    /// gives no records that are out of order.
    pub(super) fn another(&self) -> Result<Sequence, SourceError> {
        let mut first = self.volumes_of(0)?;
        // It was the label that was read.
        first.rest();
        let passes_over_damage = self.passes_over_damage;
        let archives = Arc::clone(&self.archives);
        let mut another = Sequence { passes_over_damage, ..Sequence::new(archives, first) };
        another.set_rule(match self.rule {
            Rule::Fewest => Rule::Fewest,
            Rule::AsInLibpcp | Rule::Nothing => Rule::AsInLibpcp,
        });
        Ok(another)
    }

    /// The same archives with a position of their own: where this one is.
    pub(super) fn duplicate(&self) -> Result<Sequence, SourceError> {
        let volumes = self.volumes.duplicate()?;
        let archives = Arc::clone(&self.archives);
        Ok(Sequence { archives, volumes, tails: Vec::new(), ..*self })
    }

    /// Holds nothing of the files until something is read again; the position stays.
    pub(super) fn rest(&mut self) {
        self.volumes.rest();
    }

    /// Damage is in the way for good, as with libpcp before 7.1.4: unless the
    /// same archive can be read behind it, nothing further is. Records come
    /// whatever their times are.
    pub(super) fn stop_at_damage(&mut self) {
        self.passes_over_damage = false;
        self.set_rule(Rule::Nothing);
    }

    /// Chooses which records are left out because they are out of order.
    fn set_rule(&mut self, rule: Rule) {
        self.rule = rule;
        self.volumes.set_rule(rule);
    }

    /// The volumes of an archive, at its first record.
    fn volumes_of(&self, archive: usize) -> Result<Volumes, SourceError> {
        let mut volumes = Volumes::of(&self.archives[archive])?;
        volumes.set_rule(self.rule);
        Ok(volumes)
    }

    /// Chooses where marks between archives stand.
    pub(super) fn set_travel(&mut self, travel: Travel) {
        self.travel = travel;
    }

    pub(super) fn archives(&self) -> &[Arc<SingleArchive>] {
        &self.archives
    }

    /// The archive being read.
    pub(super) fn archive(&self) -> &SingleArchive {
        self.volumes.archive()
    }

    /// The last archive, with the volumes that were found since it was opened.
    pub(super) fn last_archive(&self) -> &SingleArchive {
        let last = self.archives.len() - 1;
        if self.entered == last { self.volumes.archive() } else { &self.archives[last] }
    }

    /// Moves to the next record or mark. `None` at the end, which may be one for now only.
    ///
    /// After an error reading continues behind the damage; a record that is
    /// cut short at the very end is tried again.
    pub(super) fn next(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let record = match self.is_done {
                true => None,
                false => self.volumes.next().map_err(|error| self.met(error))?,
            };
            match record {
                Some(record) if self.limit.is_some_and(|limit| record.stamp < limit) => {}
                Some(record) => return Ok(Some(record)),
                None if self.current + 1 >= self.archives.len() => return Ok(None),
                None if self.is_done => self.enter_next()?,
                None => {
                    self.is_done = true;
                    return Ok(Some(self.mark(self.current, Travel::Forward)));
                }
            }
        }
    }

    /// Moves before the previous record or mark and gives it. `None` at the
    /// first one. After an error reading continues before the damage.
    pub(super) fn previous(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let record = match self.is_done {
                true => None,
                false => self.volumes.previous()?,
            };
            match record {
                Some(record) if self.limit.is_some_and(|limit| record.stamp > limit) => {}
                Some(record) => return Ok(Some(record)),
                None if self.current == 0 => return Ok(None),
                None if self.is_done => self.enter_previous()?,
                None => {
                    self.is_done = true;
                    return Ok(Some(self.mark(self.current - 1, Travel::Backward)));
                }
            }
        }
    }

    /// What archives that were read have behind their ends: less than the
    /// length of a record, which may still become one.
    pub(super) fn take_tails(&mut self) -> Vec<SourceError> {
        self.tails.extend(self.volumes.take_tail());
        std::mem::take(&mut self.tails)
    }

    /// Takes note of damage in a volume. Where an archive before the last one
    /// cannot be read further, the next one is.
    fn met(&mut self, error: SourceError) -> SourceError {
        let is_last = self.current + 1 >= self.archives.len();
        if self.passes_over_damage && !is_last && self.volumes.is_stuck() {
            self.is_done = true;
            self.lost = true;
        }
        error
    }

    /// The mark between an archive and the one after it. Where these overlap
    /// it stands as for whoever reads in the direction of `reading`.
    fn mark(&self, earlier: usize, reading: Travel) -> Record {
        let start = self.archives[earlier + 1].label.start;
        let end = self.archives[earlier].end_time().unwrap_or(start);
        let travel = if start < end { reading } else { self.travel };
        let stamp = match travel {
            Travel::Forward => moved(end, MARK_DISTANCE),
            Travel::Backward => moved(start, -MARK_DISTANCE),
        };
        Record { offset: 0, length: 0, stamp, set_count: 0, first_set: 0 }
    }

    fn enter_next(&mut self) -> Result<(), SourceError> {
        let next = self.current + 1;
        self.open(next)?;
        let (before, after) = (&self.archives[next - 1], &self.archives[next]);
        let overlap = before.end_time().ok().filter(|end| after.label.start < *end);
        self.limit = overlap.map(|end| moved(end, MARK_DISTANCE));
        overlap.map_or(Ok(()), |end| {
            self.lost = true;
            Err(overlapping(before, after, end))
        })
    }

    fn enter_previous(&mut self) -> Result<(), SourceError> {
        let previous = self.current - 1;
        self.open(previous)?;
        self.volumes.seek_end();
        let (before, after) = (&self.archives[previous], &self.archives[previous + 1]);
        let overlap = before.end_time().ok().filter(|end| after.label.start < *end);
        self.limit = overlap.map(|_| moved(after.label.start, -MARK_DISTANCE));
        overlap.map_or(Ok(()), |end| {
            self.lost = true;
            Err(overlapping(before, after, end))
        })
    }

    /// Goes on to another archive; if it cannot be opened, to that behind it.
    fn open(&mut self, archive: usize) -> Result<(), SourceError> {
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

    /// Moves to a record from which on no record at `time` or later is missed.
    ///
    /// # Errors
    /// The archive of that time cannot be opened.
    pub(super) fn seek(&mut self, time: Timestamp) -> Result<(), SourceError> {
        self.enter(self.archive_of(time))?;
        self.volumes.seek(time)
    }

    /// Moves behind the last record up to `time`.
    ///
    /// # Errors
    /// The archive of that time cannot be opened.
    pub(super) fn seek_behind(&mut self, time: Timestamp) -> Result<(), SourceError> {
        self.enter(self.archive_of(time))?;
        self.volumes.seek_behind(time)
    }

    /// Moves behind the last record of all.
    ///
    /// # Errors
    /// The last archive cannot be opened.
    pub(super) fn seek_end(&mut self) -> Result<(), SourceError> {
        self.enter(self.archives.len() - 1)?;
        self.volumes.seek_end();
        Ok(())
    }

    /// The last archive that starts up to `time`, or the first one.
    fn archive_of(&self, time: Timestamp) -> usize {
        let count = self.archives.partition_point(|archive| archive.label.start <= time);
        count.saturating_sub(1)
    }

    fn enter(&mut self, archive: usize) -> Result<(), SourceError> {
        if self.entered != archive {
            self.volumes = self.volumes_of(archive)?;
            self.entered = archive;
        }
        self.current = archive;
        (self.is_done, self.limit, self.lost) = (false, None, false);
        Ok(())
    }

    /// Where the record stands that [`Sequence::next`] or
    /// [`Sequence::previous`] gave last; of no use for a mark between archives.
    pub(super) fn place_of(&self, record: &Record) -> Place {
        Place { archive: self.entered, volume: self.volumes.entered(), offset: record.offset }
    }

    /// True when the record that [`Sequence::next`] would give stands behind
    /// the last one that counts.
    pub(super) fn is_behind(&self, last_counted: Option<Place>) -> bool {
        let (volume, offset) = (self.volumes.entered(), self.volumes.position());
        let next = Place { archive: self.entered, volume, offset };
        last_counted.is_some_and(|last| next > last)
    }

    /// Where the volume being read ends by now.
    ///
    /// # Errors
    /// The file does not tell its size.
    pub(super) fn present_end(&mut self) -> Result<Place, SourceError> {
        let (volume, offset) = (self.volumes.entered(), self.volumes.size()?);
        Ok(Place { archive: self.entered, volume, offset })
    }

    /// Moves so that [`Sequence::next`] gives the record at `place`.
    pub(super) fn move_to(&mut self, place: Place) -> Result<(), SourceError> {
        self.enter(place.archive)?;
        self.volumes.move_to(place.volume, place.offset)
    }

    /// The bytes of a record that was met before; the position is lost.
    pub(super) fn bytes_at(&mut self, place: Place, length: usize) -> Result<&[u8], SourceError> {
        if self.entered != place.archive {
            self.enter(place.archive)?;
        }
        self.volumes.bytes_at(place.volume, place.offset, length)
    }

    /// The same if they were read for another reason and are still there.
    pub(super) fn held(&self, place: Place, length: usize) -> Option<&[u8]> {
        let is_here = self.entered == place.archive;
        is_here.then(|| self.volumes.held(place.volume, place.offset, length))?
    }

    /// The bytes of the record that [`Sequence::next`] or
    /// [`Sequence::previous`] gave last: none of a mark between archives.
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

    /// Records that were left out since this was asked last, since their times
    /// are out of order: what is wrong with each series of them.
    pub(super) fn take_left_out(&mut self) -> Vec<LeftOut> {
        self.volumes.take_left_out()
    }

    /// True when records may have been skipped because of damage since this
    /// was asked last.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost) | self.volumes.take_lost()
    }
}

fn moved(stamp: Timestamp, nanoseconds: i64) -> Timestamp {
    Timestamp::new(stamp.sec, i64::from(stamp.nsec) + nanoseconds)
}

/// Two archives of one context have records of the same time.
pub(super) fn overlapping(
    before: &SingleArchive,
    after: &SingleArchive,
    end: Timestamp,
) -> SourceError {
    let start = after.label.start;
    SourceError::Damaged {
        target: after.name(),
        status: PmStatus::LOGOVERLAP,
        message: format!(
            "it starts at {start}, before the end of {} at {end}; archives of one context have \
             to follow each other in time: leave one of them out, or join them with pmlogextract",
            before.name()
        ),
    }
}
