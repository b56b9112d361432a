//! The covered records that have a metric.
//!
//! Input: the metric's value sets as they are met, on either side. Output: the value
//! sets around a record, in order.

use std::collections::VecDeque;
use std::ops::Range;

use crate::archive::interpolation::coverage::{Ordinal, Side};
use crate::archive::interpolation::positions::ShapeId;

/// A value set with values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occurrence {
    pub(super) record: Ordinal,
    /// Offset of the set in the record.
    pub(super) set: u32,
    /// The shape of its list of instances.
    pub(super) shape: ShapeId,
}

/// Value sets in the order of their records.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    list: VecDeque<Occurrence>,
    /// The last result of [`Occurrences::position`].
    cursor: usize,
}

impl Occurrences {
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Adds an occurrence at one end. If a record has two, the last one counts, as in
    /// libpcp.
    pub(super) fn add(&mut self, side: Side, occurrence: Occurrence) {
        let outermost = match side {
            Side::Ahead => self.list.back_mut(),
            Side::Behind => self.list.front_mut(),
        };
        if let Some(same) = outermost.filter(|outermost| outermost.record == occurrence.record) {
            *same = occurrence;
            return;
        }
        match side {
            Side::Ahead => self.list.push_back(occurrence),
            Side::Behind => self.list.push_front(occurrence),
        }
    }

    /// The occurrence that is farthest away on `side`.
    pub(super) fn outermost(&self, side: Side) -> Option<Occurrence> {
        match side {
            Side::Ahead => self.list.back().copied(),
            Side::Behind => self.list.front().copied(),
        }
    }

    /// Forgets occurrences outside of a range of records. Returns the number of the
    /// others.
    pub(super) fn keep(&mut self, records: Range<Ordinal>) -> usize {
        while self.list.front().is_some_and(|one| one.record < records.start) {
            self.list.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        while self.list.back().is_some_and(|one| one.record >= records.end) {
            self.list.pop_back();
        }
        self.list.len()
    }

    /// The records with an occurrence.
    pub(super) fn records(&self) -> impl DoubleEndedIterator<Item = Ordinal> + '_ {
        self.list.iter().map(|one| one.record)
    }

    /// The shapes.
    pub(super) fn shapes(&self) -> impl Iterator<Item = ShapeId> + '_ {
        self.list.iter().map(|one| one.shape)
    }

    /// The position from which [`Occurrences::get`] goes through a range of records
    /// towards `side`.
    pub(super) fn position(&mut self, records: &Range<Ordinal>, side: Side) -> usize {
        let record = match side {
            Side::Ahead => records.start,
            Side::Behind => records.end,
        };
        let is_before = |at: usize| self.list.get(at).is_some_and(|one| one.record < record);
        // All lanes ask for the same position one after the other. As time goes on, the
        // next one follows.
        self.cursor += usize::from(is_before(self.cursor));
        let at = self.cursor;
        if is_before(at) || at > self.list.len() || at > 0 && !is_before(at - 1) {
            self.cursor = self.list.partition_point(|one| one.record < record);
        }
        self.cursor
    }

    /// The occurrence next to a position on `side`.
    pub(super) fn get(&self, at: usize, side: Side) -> Option<Occurrence> {
        let at = match side {
            Side::Ahead => at,
            Side::Behind => at.checked_sub(1)?,
        };
        self.list.get(at).copied()
    }
}
