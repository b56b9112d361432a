//! The records around the time of a fetch, as far as they were looked at.
//!
//! Input: the data volumes. Output: consecutive records with their times and places,
//! numbered by ordinals that stay the same while the stretch grows at both
//! ends, and the marks among them. Which metrics are in a record is for
//! others to keep.

use std::collections::VecDeque;

use pmderive_core::model::Timestamp;
use pmderive_core::source::SourceError;

use crate::archive::interpolation::rules::MarkRule;
use crate::archive::record::Damage;
use crate::archive::sequence::{Place, Sequence, Travel};
use crate::archive::volume::Record;

/// Number of a record, relative to the one that was read first.
pub(super) type Ordinal = i64;

/// A record that was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    /// Seconds since the start of the archive.
    pub(super) time: f64,
    pub(super) place: Place,
    pub(super) length: usize,
}

/// Direction in which a stretch of records grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ahead,
    Behind,
}

/// A stretch of consecutive records.
pub(super) struct Coverage {
    start: Timestamp,
    rule: MarkRule,
    records: VecDeque<Covered>,
    /// Ordinal of the first of `records`.
    first: Ordinal,
    /// Ordinals of the marks in force.
    marks: VecDeque<Ordinal>,
    /// Reads on behind the last record.
    ahead: Sequence,
    /// Reads on before the first record.
    behind: Sequence,
    /// True while `ahead` stands behind the last record.
    is_ahead_placed: bool,
    /// True while `behind` stands before the first record.
    is_behind_placed: bool,
    travel: Travel,
    is_at_start: bool,
    is_at_end: bool,
    /// The last record that counts, where the archive is followed.
    last_counted: Option<Place>,
    /// Marks at the end that grows, until the record behind them tells whether they are in force.
    pending: Vec<Ordinal>,
    /// Damage that nobody was told of.
    damage: Vec<Met>,
}

/// Damage in a stretch of records.
pub(super) struct Met {
    /// That of the mark that stands for it; if there is none, of the record beyond.
    ordinal: Ordinal,
    /// Where it was met.
    side: Side,
    pub(super) error: SourceError,
    /// All that is lost are records that were left out.
    pub(super) is_passed_over: bool,
}

impl Coverage {
    /// Covers no record yet.
    pub(super) fn new(
        records: &Sequence,
        start: Timestamp,
        rule: MarkRule,
    ) -> Result<Coverage, SourceError> {
        Ok(Coverage {
            start,
            rule,
            records: VecDeque::new(),
            first: 0,
            marks: VecDeque::new(),
            ahead: records.another()?,
            behind: records.another()?,
            is_ahead_placed: true,
            is_behind_placed: false,
            travel: Travel::Forward,
            is_at_start: false,
            is_at_end: false,
            last_counted: None,
            pending: Vec::new(),
            damage: Vec::new(),
        })
    }

    /// Begins anew before `when`.
    pub(super) fn begin(&mut self, when: Timestamp) -> Result<(), SourceError> {
        self.clear();
        self.ahead.seek(when)
    }

    /// Chooses the direction in which time passes. If it is another one,
    /// what is covered is of no use.
    pub(super) fn set_travel(&mut self, travel: Travel) -> bool {
        self.ahead.set_travel(travel);
        self.behind.set_travel(travel);
        std::mem::replace(&mut self.travel, travel) != travel
    }

    /// The direction in which time passes.
    pub(super) fn travel(&self) -> Travel {
        self.travel
    }

    /// Covers nothing any more.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.marks.clear();
        self.damage.clear();
        (self.first, self.is_ahead_placed, self.is_behind_placed) = (0, true, false);
        (self.is_at_start, self.is_at_end) = (false, false);
    }

    /// Covers no records behind the last one that counts, if that is given.
    pub(super) fn count_up_to(&mut self, last_counted: Option<Place>) {
        self.last_counted = last_counted;
    }

    /// Time of the last record that is covered, in seconds since the start.
    pub(super) fn last_time(&self) -> f64 {
        self.records.back().map_or(f64::NEG_INFINITY, |last| last.time)
    }

    fn first_time(&self) -> f64 {
        self.records.front().map_or(f64::INFINITY, |first| first.time)
    }

    /// A coverage of the same archive.
    pub(super) fn another(&self) -> Result<Coverage, SourceError> {
        let coverage = Coverage::new(&self.ahead, self.start, self.rule)?;
        Ok(Coverage { last_counted: self.last_counted, ..coverage })
    }

    /// Covers the outermost record of another coverage on a side, and nothing else.
    pub(super) fn continue_from(&mut self, other: &Coverage, side: Side) {
        self.clear();
        self.set_travel(other.travel);
        // Damage and marks between archives, which have no place, are met again.
        let is_record = |record: &&Covered| record.length > 0;
        let outermost = match side {
            Side::Ahead => other.records.iter().rposition(|record| is_record(&record)),
            Side::Behind => other.records.iter().position(|record| is_record(&record)),
        };
        let Some(at) = outermost else {
            (self.is_at_start, self.is_at_end) = (true, true);
            return;
        };
        self.is_ahead_placed = false;
        self.first = other.first + at as Ordinal;
        self.records.push_back(other.records[at]);
    }

    /// The mark that is met first in a direction.
    pub(super) fn first_mark(&self, side: Side) -> Option<Ordinal> {
        match side {
            Side::Ahead => self.marks.front().copied(),
            Side::Behind => self.marks.back().copied(),
        }
    }

    /// Number of records covered.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// True when a time lies among the records covered.
    pub(super) fn spans(&self, time: f64) -> bool {
        let (Some(first), Some(last)) = (self.records.front(), self.records.back()) else {
            return false;
        };
        (self.is_at_start || first.time < time) && (self.is_at_end || last.time > time)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Ordinal of the first record.
    pub(super) fn first(&self) -> Ordinal {
        self.first
    }

    /// Ordinal behind the last record.
    pub(super) fn end(&self) -> Ordinal {
        self.first + self.records.len() as Ordinal
    }

    pub(super) fn is_complete(&self, side: Side) -> bool {
        match side {
            Side::Ahead => self.is_at_end,
            Side::Behind => self.is_at_start,
        }
    }

    pub(super) fn record(&self, ordinal: Ordinal) -> Option<&Covered> {
        self.records.get(usize::try_from(ordinal - self.first).ok()?)
    }

    /// True when records up to `time` and the first one after it are covered,
    /// as far as there are any.
    pub(super) fn reaches(&self, side: Side, time: f64) -> bool {
        self.is_complete(side)
            || match side {
                Side::Ahead => self.records.back().is_some_and(|last| last.time > time),
                Side::Behind => self.records.front().is_some_and(|first| first.time < time),
            }
    }

    /// Ordinal of the first record at `time` or later.
    pub(super) fn from(&self, time: f64) -> Ordinal {
        self.first + self.records.partition_point(|record| record.time < time) as Ordinal
    }

    /// Ordinal of the first record after `time`.
    pub(super) fn after(&self, time: f64) -> Ordinal {
        self.first + self.records.partition_point(|record| record.time <= time) as Ordinal
    }

    /// Ordinals of the first record at `time` or later and of the first one
    /// after it, given what they were at another time: between two records
    /// they stay the same.
    pub(super) fn around(&self, time: f64, other: (Ordinal, Ordinal)) -> (Ordinal, Ordinal) {
        match self.is_between(time, other) {
            true => other,
            false => (self.from(time), self.after(time)),
        }
    }

    /// True if a time lies between two records that follow each other, and
    /// these are its ordinals in the sense of [`Coverage::around`].
    fn is_between(&self, time: f64, (from, after): (Ordinal, Ordinal)) -> bool {
        from == after
            && self.record(from - 1).is_some_and(|record| record.time < time)
            && self.record(from).is_some_and(|record| record.time > time)
    }

    /// The last mark up to an ordinal.
    pub(super) fn mark_up_to(&self, ordinal: Ordinal) -> Option<Ordinal> {
        let count = self.marks.partition_point(|mark| *mark <= ordinal);
        count.checked_sub(1).map(|last| self.marks[last])
    }

    /// The first mark from an ordinal on.
    pub(super) fn mark_from(&self, ordinal: Ordinal) -> Option<Ordinal> {
        self.marks.get(self.marks.partition_point(|mark| *mark < ordinal)).copied()
    }

    /// True when a mark lies between two times or at one of them. `around` are
    /// the ordinals of one of them.
    pub(super) fn has_mark_within(
        &self,
        (earlier, later): (f64, f64),
        around: (Ordinal, Ordinal),
    ) -> bool {
        let are_together = || self.is_between(earlier, around) && self.is_between(later, around);
        !self.marks.is_empty()
            && !are_together()
            && self.mark_from(self.from(earlier)).is_some_and(|mark| mark < self.after(later))
    }

    /// Damage that nobody was told of and that has been passed at a time:
    /// `from` and `after` are the first record at that time or later, and the
    /// first one after it.
    pub(super) fn take_damage(&mut self, from: Ordinal, after: Ordinal) -> Option<Met> {
        let at = self.damage.iter().position(|met| match met.side {
            Side::Ahead => met.ordinal < after,
            Side::Behind => met.ordinal >= from,
        })?;
        Some(self.damage.remove(at))
    }

    /// All damage that was met ahead and that nobody was told of.
    pub(super) fn take_damage_ahead(&mut self) -> impl Iterator<Item = Met> + '_ {
        self.damage.extract_if(.., |met| met.side == Side::Ahead)
    }

    /// What archives that were read have behind their ends, see
    /// [`Sequence::take_tails`].
    pub(super) fn take_tails(&mut self) -> Vec<SourceError> {
        let mut tails = self.ahead.take_tails();
        tails.extend(self.behind.take_tails());
        tails
    }

    /// Covers one more record that is no mark. `None` where there are no more.
    pub(super) fn extend(&mut self, side: Side) -> Option<(Ordinal, Record)> {
        if self.is_complete(side) || self.place_reader(side).is_err() {
            self.finish(side);
            return None;
        }
        loop {
            let read = match side {
                Side::Ahead if self.ahead.is_behind(self.last_counted) => Ok(None),
                Side::Ahead => self.ahead.next(),
                Side::Behind => self.behind.previous(),
            };
            let lost = self.reader(side).take_lost();
            let (record, error) = match read {
                Ok(record) => (record, None),
                Err(error) => (None, Some(error)),
            };
            let failed = error.is_some();
            let left_out = self.reader(side).take_left_out();
            // Nothing is known of what lies behind damage, be it at the very end.
            if lost || failed {
                self.add_gap(side);
            }
            let left_out = left_out.into_iter().map(|left_out| (left_out.error, true));
            for (error, is_passed_over) in left_out.chain(error.map(|error| (error, false))) {
                let ordinal = match side {
                    Side::Ahead => self.end() - Ordinal::from(lost || failed),
                    Side::Behind => self.first - Ordinal::from(!(lost || failed)),
                };
                self.damage.push(Met { ordinal, side, error, is_passed_over });
            }
            let Some(record) = record else {
                if failed && lost {
                    continue;
                }
                self.finish(side);
                return None;
            };
            let place = self.reader(side).place_of(&record);
            let time = record.stamp.seconds_since(self.start);
            // Behind damage there may be a record of the time before it.
            let time = match side {
                Side::Ahead => time.max(self.last_time()),
                Side::Behind => time.min(self.first_time()),
            };
            let ordinal = self.add(side, Covered { time, place, length: record.length });
            if record.is_mark() {
                self.pending.push(ordinal);
                continue;
            }
            self.settle_marks(side, Some(time));
            return Some((ordinal, record));
        }
    }

    /// The bytes of the record that [`Coverage::extend`] gave last on that side.
    pub(super) fn bytes(&mut self, side: Side, record: &Record) -> Result<&[u8], SourceError> {
        self.reader(side).bytes(record)
    }

    /// The bytes of a record that is covered, if they were read not long ago.
    pub(super) fn held(&self, record: &Covered) -> Option<&[u8]> {
        let ahead = self.ahead.held(record.place, record.length);
        ahead.or_else(|| self.behind.held(record.place, record.length))
    }

    /// Makes the record that was covered last on a side a gap: it is damaged.
    pub(super) fn spoil(&mut self, side: Side, ordinal: Ordinal, error: SourceError) {
        self.put_mark(side, ordinal);
        self.damage.push(Met { ordinal, side, error, is_passed_over: false });
    }

    /// Describes damage inside of the record that was covered last on a side.
    pub(super) fn damaged(&mut self, side: Side, damage: Damage) -> SourceError {
        self.reader(side).damaged(damage)
    }

    /// Forgets the records before an ordinal.
    pub(super) fn keep_from(&mut self, first: Ordinal) {
        let count = usize::try_from(first - self.first).unwrap_or(0).min(self.records.len());
        if count == 0 {
            return;
        }
        self.records.drain(..count);
        self.first += count as Ordinal;
        while self.marks.front().is_some_and(|mark| *mark < self.first) {
            self.marks.pop_front();
        }
        (self.is_at_start, self.is_behind_placed) = (false, false);
    }

    /// Forgets the records from an ordinal on.
    pub(super) fn keep_up_to(&mut self, end: Ordinal) {
        let count = usize::try_from(end - self.first).unwrap_or(0);
        if count >= self.records.len() {
            return;
        }
        self.records.truncate(count);
        while self.records.back().is_some_and(|record| record.length == 0) {
            self.records.pop_back();
        }
        let end = self.end();
        while self.marks.back().is_some_and(|mark| *mark >= end) {
            self.marks.pop_back();
        }
        self.damage.retain(|met| met.ordinal < end);
        (self.is_at_end, self.is_ahead_placed) = (false, false);
    }

    fn reader(&mut self, side: Side) -> &mut Sequence {
        match side {
            Side::Ahead => &mut self.ahead,
            Side::Behind => &mut self.behind,
        }
    }

    /// Brings the reader of a side to where the records end there.
    fn place_reader(&mut self, side: Side) -> Result<(), SourceError> {
        match side {
            Side::Ahead if !self.is_ahead_placed => {
                self.is_ahead_placed = true;
                let Some(last) = self.records.iter().rfind(|record| record.length > 0) else {
                    return Ok(());
                };
                self.ahead.move_to(last.place)?;
                self.ahead.next()?;
            }
            Side::Behind if !self.is_behind_placed => {
                self.is_behind_placed = true;
                match self.records.iter().find(|record| record.length > 0) {
                    // Read again, so that it is known what comes before its time.
                    Some(first) => {
                        let offset = first.place.offset + first.length as u64;
                        self.behind.move_to(Place { offset, ..first.place })?;
                        self.behind.previous()?;
                    }
                    None => self.behind.seek_end()?,
                }
            }
            Side::Ahead | Side::Behind => {}
        }
        Ok(())
    }

    fn add(&mut self, side: Side, record: Covered) -> Ordinal {
        match side {
            Side::Ahead => {
                self.records.push_back(record);
                self.end() - 1
            }
            Side::Behind => {
                self.records.push_front(record);
                self.first -= 1;
                self.first
            }
        }
    }

    fn put_mark(&mut self, side: Side, ordinal: Ordinal) {
        match side {
            Side::Ahead => self.marks.push_back(ordinal),
            Side::Behind => self.marks.push_front(ordinal),
        }
    }

    /// Damage is a gap of its own, right behind the record next to it: what is
    /// known at the time of that record is not in doubt.
    fn add_gap(&mut self, side: Side) {
        self.settle_marks(side, None);
        let time = match side {
            Side::Ahead => self.last_time().next_up(),
            Side::Behind => self.first_time().next_down(),
        };
        let nowhere = Place { archive: 0, volume: 0, offset: 0 };
        let ordinal = self.add(side, Covered { time, place: nowhere, length: 0 });
        self.put_mark(side, ordinal);
    }

    fn finish(&mut self, side: Side) {
        self.settle_marks(side, None);
        match side {
            Side::Ahead => self.is_at_end = true,
            Side::Behind => self.is_at_start = true,
        }
    }

    /// Decides on pending marks, given the time of the record behind them.
    fn settle_marks(&mut self, side: Side, time: Option<f64>) {
        let Some(first) = self.pending.first().copied() else { return };
        let before = match side {
            Side::Ahead => self.record(first - 1),
            Side::Behind => self.record(first + 1),
        };
        let apart = time.zip(before).map(|(time, record)| (time - record.time).abs());
        let in_force = match self.rule {
            MarkRule::All => true,
            MarkRule::Never => false,
            MarkRule::Beyond(limit) => apart.is_none_or(|apart| apart > limit.as_secs_f64()),
        };
        for mark in std::mem::take(&mut self.pending) {
            if in_force {
                self.put_mark(side, mark);
            }
        }
    }
}
