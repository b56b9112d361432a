//! The records around the time of a fetch, as far as they were looked at.
//!
//! Input: records that `extent` reads at both ends. Output: consecutive records with
//! their times and places, numbered by ordinals that stay the same while the
//! stretch grows, and the marks among them. Which metrics are in a record is
//! for others to keep.

mod extent;

use std::collections::VecDeque;

use pmderive_core::model::Timestamp;
use pmderive_core::source::SourceError;

use self::extent::Edge;
use crate::archive::interpolation::rules::MarkRule;
use crate::archive::sequence::{Place, Sequence, Travel};

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

impl Side {
    pub(super) fn opposite(self) -> Side {
        match self {
            Side::Ahead => Side::Behind,
            Side::Behind => Side::Ahead,
        }
    }

    /// True if one record comes before another on the way to this side.
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
    /// Reads on behind the last record.
    ahead: Edge,
    /// Reads on before the first record.
    behind: Edge,
    travel: Travel,
    /// Where a time was looked for last, see [`Coverage::around`].
    around: (Ordinal, Ordinal),
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
            ahead: Edge::new(records, Side::Ahead)?,
            behind: Edge::new(records, Side::Behind)?,
            travel: Travel::Forward,
            around: (0, 0),
            last_counted: None,
            pending: Vec::new(),
            damage: Vec::new(),
        })
    }

    /// Chooses the direction in which time passes. If it is another one,
    /// what is covered is of no use.
    pub(super) fn set_travel(&mut self, travel: Travel) -> bool {
        self.ahead.reader.set_travel(travel);
        self.behind.reader.set_travel(travel);
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
        self.first = 0;
        (self.ahead.is_placed, self.behind.is_placed) = (true, false);
        (self.ahead.is_complete, self.behind.is_complete) = (false, false);
    }

    /// Covers no records behind the last one that counts, if that is given.
    pub(super) fn count_up_to(&mut self, last_counted: Option<Place>) {
        self.last_counted = last_counted;
    }

    /// True where the archive is followed.
    pub(super) fn is_followed(&self) -> bool {
        self.last_counted.is_some()
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
        let coverage = Coverage::new(&self.ahead.reader, self.start, self.rule)?;
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
            (self.ahead.is_complete, self.behind.is_complete) = (true, true);
            return;
        };
        self.ahead.is_placed = false;
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

    /// Ordinal behind the last record.
    pub(super) fn end(&self) -> Ordinal {
        self.first + self.records.len() as Ordinal
    }

    /// Ordinal of the record that is covered next on a side.
    pub(super) fn beyond(&self, side: Side) -> Ordinal {
        match side {
            Side::Ahead => self.end(),
            Side::Behind => self.first - 1,
        }
    }

    /// True when there are no more records on a side.
    pub(super) fn is_complete(&self, side: Side) -> bool {
        match side {
            Side::Ahead => self.ahead.is_complete,
            Side::Behind => self.behind.is_complete,
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
    fn from(&self, time: f64) -> Ordinal {
        self.first + self.records.partition_point(|record| record.time < time) as Ordinal
    }

    /// Ordinal of the first record after `time`.
    fn after(&self, time: f64) -> Ordinal {
        self.first + self.records.partition_point(|record| record.time <= time) as Ordinal
    }

    /// Ordinals of the first record at `time` or later and of the first one
    /// after it.
    pub(super) fn around(&mut self, time: f64) -> (Ordinal, Ordinal) {
        // Between two records they stay the same.
        if !self.is_between(time, self.around) {
            self.around = (self.from(time), self.after(time));
        }
        self.around
    }

    /// True if a time lies between two records that follow each other, and
    /// these are its ordinals in the sense of [`Coverage::around`].
    fn is_between(&self, time: f64, (from, after): (Ordinal, Ordinal)) -> bool {
        from == after
            && self.record(from - 1).is_some_and(|record| record.time < time)
            && self.record(from).is_some_and(|record| record.time > time)
    }

    /// The mark that is met first from an ordinal on in a direction.
    pub(super) fn mark_from(&self, ordinal: Ordinal, side: Side) -> Option<Ordinal> {
        let at = match side {
            Side::Ahead => self.marks.partition_point(|mark| *mark < ordinal),
            Side::Behind => self.marks.partition_point(|mark| *mark <= ordinal).checked_sub(1)?,
        };
        self.marks.get(at).copied()
    }

    /// True when a mark lies between two times or at one of them.
    pub(super) fn has_mark_within(&self, (earlier, later): (f64, f64)) -> bool {
        let are_together =
            || self.is_between(earlier, self.around) && self.is_between(later, self.around);
        let mark = || self.mark_from(self.from(earlier), Side::Ahead);
        !self.marks.is_empty()
            && !are_together()
            && mark().is_some_and(|mark| mark < self.after(later))
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
        (self.behind.is_complete, self.behind.is_placed) = (false, false);
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
        (self.ahead.is_complete, self.ahead.is_placed) = (false, false);
    }
}
