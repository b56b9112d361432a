//! The records around the time of a fetch that have been looked at.
//!
//! Input: records that `extent` reads at both ends. Output: consecutive records with
//! their times and places, and the marks among them. Each record has an ordinal that
//! stays the same while the stretch grows.

mod extent;

use std::collections::VecDeque;

use pmderive_core::model::Timestamp;
use pmderive_core::source::SourceError;

use self::extent::Edge;
use crate::archive::interpolation::rules::MarkRule;
use crate::archive::order::Travel;
use crate::archive::sequence::{Place, Sequence};

/// Number of a record, relative to the record that was read first.
pub(super) type Ordinal = i64;

/// A record that was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    /// Seconds since the start of the archive.
    pub(super) time: f64,
    pub(super) place: Place,
    pub(super) length: usize,
}

/// The side on which a stretch of records grows: later records ahead, earlier ones
/// behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ahead,
    Behind,
}

impl Side {
    pub(super) fn opposite(self) -> Side {
        match self {
            Side::Ahead => Side::Behind,
            Side::Behind => Side::Ahead,
        }
    }

    /// True if `one` comes before `other` on the way to this side.
    pub(super) fn is_nearer(self, one: Ordinal, other: Ordinal) -> bool {
        match self {
            Side::Ahead => one < other,
            Side::Behind => one > other,
        }
    }
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
    /// Reads after the last record.
    ahead: Edge,
    /// Reads before the first record.
    behind: Edge,
    travel: Travel,
    /// The last result of [`Coverage::around`].
    around: (Ordinal, Ordinal),
    /// The last record that counts if the archive is followed.
    last_counted: Option<Place>,
    /// Marks at an end that grows. The record after them decides whether they are in
    /// force.
    pending: Vec<Ordinal>,
    /// Damage that was not reported yet.
    damage: Vec<MetDamage>,
}

/// Damage in a stretch of records.
pub(super) struct MetDamage {
    /// Ordinal of the mark that stands for the damage, or of the record beyond it.
    ordinal: Ordinal,
    /// The side on which it was met.
    side: Side,
    pub(super) error: SourceError,
    /// True if only records with wrong times are lost.
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
            ahead: Edge::new(records, Side::Ahead)?,
            behind: Edge::new(records, Side::Behind)?,
            travel: Travel::Forward,
            around: (0, 0),
            last_counted: None,
            pending: Vec::new(),
            damage: Vec::new(),
        })
    }

    /// Sets the direction in which time moves. True if it changed: then the covered
    /// records are useless.
    pub(super) fn set_travel(&mut self, travel: Travel) -> bool {
        self.ahead.reader.set_travel(travel);
        self.behind.reader.set_travel(travel);
        std::mem::replace(&mut self.travel, travel) != travel
    }

    /// The direction in which time moves.
    pub(super) fn travel(&self) -> Travel {
        self.travel
    }

    /// Forgets all records.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.marks.clear();
        self.damage.clear();
        self.first = 0;
        (self.ahead.is_placed, self.behind.is_placed) = (true, false);
        (self.ahead.is_complete, self.behind.is_complete) = (false, false);
    }

    /// Restricts coverage to records up to `last_counted`, if it is given.
    pub(super) fn count_up_to(&mut self, last_counted: Option<Place>) {
        self.last_counted = last_counted;
    }

    /// True if the archive is followed.
    pub(super) fn is_followed(&self) -> bool {
        self.last_counted.is_some()
    }

    /// Time of the last covered record, in seconds since the start.
    pub(super) fn last_time(&self) -> f64 {
        self.records.back().map_or(f64::NEG_INFINITY, |last| last.time)
    }

    fn first_time(&self) -> f64 {
        self.records.front().map_or(f64::INFINITY, |first| first.time)
    }

    /// A new coverage of the same archive.
    pub(super) fn another(&self) -> Result<Coverage, SourceError> {
        let coverage = Coverage::new(&self.ahead.reader, self.start, self.rule)?;
        Ok(Coverage { last_counted: self.last_counted, ..coverage })
    }

    /// Covers only the outermost record of `other` on `side`.
    pub(super) fn continue_from(&mut self, other: &Coverage, side: Side) {
        self.clear();
        self.set_travel(other.travel);
        // Damage and marks between archives have no place. They will be met again.
        let is_record = |record: &&Covered| record.length > 0;
        let outermost = match side {
            Side::Ahead => other.records.iter().rposition(|record| is_record(&record)),
            Side::Behind => other.records.iter().position(|record| is_record(&record)),
        };
        let Some(at) = outermost else {
            (self.ahead.is_complete, self.behind.is_complete) = (true, true);
            return;
        };
        self.ahead.is_placed = false;
        self.first = other.first + at as Ordinal;
        self.records.push_back(other.records[at]);
    }

    /// The first mark in the direction of `side`.
    pub(super) fn first_mark(&self, side: Side) -> Option<Ordinal> {
        match side {
            Side::Ahead => self.marks.front().copied(),
            Side::Behind => self.marks.back().copied(),
        }
    }

    /// Number of covered records.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// True if `time` lies among the covered records.
    pub(super) fn spans(&self, time: f64) -> bool {
        let (Some(first), Some(last)) = (self.records.front(), self.records.back()) else {
            return false;
        };
        (self.behind.is_complete || first.time < time)
            && (self.ahead.is_complete || last.time > time)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Ordinal of the first record.
    pub(super) fn first(&self) -> Ordinal {
        self.first
    }

    /// Ordinal after the last record.
    pub(super) fn end(&self) -> Ordinal {
        self.first + self.records.len() as Ordinal
    }

    /// Ordinal of the next record that will be covered on `side`.
    pub(super) fn beyond(&self, side: Side) -> Ordinal {
        match side {
            Side::Ahead => self.end(),
            Side::Behind => self.first - 1,
        }
    }

    /// True if there are no more records on `side`.
    pub(super) fn is_complete(&self, side: Side) -> bool {
        match side {
            Side::Ahead => self.ahead.is_complete,
            Side::Behind => self.behind.is_complete,
        }
    }

    pub(super) fn record(&self, ordinal: Ordinal) -> Option<&Covered> {
        self.records.get(usize::try_from(ordinal - self.first).ok()?)
    }

    /// True if all records up to `time` and the first one beyond it are covered, or
    /// there are none.
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
    fn after(&self, time: f64) -> Ordinal {
        self.first + self.records.partition_point(|record| record.time <= time) as Ordinal
    }

    /// Ordinals of the first record at `time` or later, and of the first record after
    /// `time`.
    pub(super) fn around(&mut self, time: f64) -> (Ordinal, Ordinal) {
        // They stay the same between two records.
        if !self.is_between(time, self.around) {
            self.around = (self.from(time), self.after(time));
        }
        self.around
    }

    /// True if `time` lies between two consecutive records, and the ordinals are what
    /// [`Coverage::around`] returns for it.
    fn is_between(&self, time: f64, (from, after): (Ordinal, Ordinal)) -> bool {
        from == after
            && self.record(from - 1).is_some_and(|record| record.time < time)
            && self.record(from).is_some_and(|record| record.time > time)
    }

    /// The first mark from `ordinal` on in the direction of `side`.
    pub(super) fn mark_from(&self, ordinal: Ordinal, side: Side) -> Option<Ordinal> {
        let at = match side {
            Side::Ahead => self.marks.partition_point(|mark| *mark < ordinal),
            Side::Behind => self.marks.partition_point(|mark| *mark <= ordinal).checked_sub(1)?,
        };
        self.marks.get(at).copied()
    }

    /// True if a mark lies between two times or at one of them.
    pub(super) fn has_mark_within(&self, (earlier, later): (f64, f64)) -> bool {
        let are_together =
            || self.is_between(earlier, self.around) && self.is_between(later, self.around);
        let mark = || self.mark_from(self.from(earlier), Side::Ahead);
        !self.marks.is_empty()
            && !are_together()
            && mark().is_some_and(|mark| mark < self.after(later))
    }

    /// True if there may be records beyond damage, in the direction in which it was met.
    pub(super) fn goes_on_after(&self, met: &MetDamage) -> bool {
        let has_records = match met.side {
            Side::Ahead => met.ordinal + 1 < self.end(),
            Side::Behind => met.ordinal > self.first,
        };
        has_records || !self.is_complete(met.side)
    }

    /// Unreported damage that was passed at a time. `from` is the first record at that
    /// time or later, `after` the first record after it.
    pub(super) fn take_damage(&mut self, from: Ordinal, after: Ordinal) -> Option<MetDamage> {
        let at = self.damage.iter().position(|met| match met.side {
            Side::Ahead => met.ordinal < after,
            Side::Behind => met.ordinal >= from,
        })?;
        Some(self.damage.remove(at))
    }

    /// All unreported damage that was met ahead.
    pub(super) fn take_damage_ahead(&mut self) -> impl Iterator<Item = MetDamage> + '_ {
        self.damage.extract_if(.., |met| met.side == Side::Ahead)
    }

    /// Forgets the records before `first`.
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
        (self.behind.is_complete, self.behind.is_placed) = (false, false);
    }

    /// Forgets the records from `end` on.
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
        (self.ahead.is_complete, self.ahead.is_placed) = (false, false);
    }
}
