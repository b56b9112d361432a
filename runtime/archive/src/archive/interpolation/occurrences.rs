//! Where a metric occurs among the records covered.
//!
//! Input: its value sets as they are met, on either side. Output: those around a
//! record, in order. Nothing is decoded here.

use std::collections::VecDeque;
use std::ops::Range;

use crate::archive::interpolation::coverage::{Ordinal, Side};

/// A value set with values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occurrence {
    pub(super) record: Ordinal,
    /// Offset in the record.
    pub(super) set: u32,
    /// Number of its list of instances.
    pub(super) shape: u32,
}

/// Value sets in the order of their records.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    list: VecDeque<Occurrence>,
    /// Where one was looked for last.
    cursor: usize,
}

impl Occurrences {
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Adds one at an end. Of two in a record the first counts.
    pub(super) fn add(&mut self, side: Side, occurrence: Occurrence) {
        let outermost = match side {
            Side::Ahead => self.list.back(),
            Side::Behind => self.list.front(),
        };
        if outermost.is_some_and(|outermost| outermost.record == occurrence.record) {
            return;
        }
        match side {
            Side::Ahead => self.list.push_back(occurrence),
            Side::Behind => self.list.push_front(occurrence),
        }
    }

    /// Forgets those outside of a stretch of records. Gives the number of those left.
    pub(super) fn keep(&mut self, records: Range<Ordinal>) -> usize {
        while self.list.front().is_some_and(|one| one.record < records.start) {
            self.list.pop_front();
        }
        while self.list.back().is_some_and(|one| one.record >= records.end) {
            self.list.pop_back();
        }
        self.list.len()
    }

    /// The records with one.
    pub(super) fn records(&self) -> impl DoubleEndedIterator<Item = Ordinal> + '_ {
        self.list.iter().map(|one| one.record)
    }

    /// Numbers of their lists of instances.
    pub(super) fn shapes(&self) -> impl Iterator<Item = u32> + '_ {
        self.list.iter().map(|one| one.shape)
    }

    /// Where to begin in a stretch of records on the way to a side, see
    /// [`Occurrences::get`].
    pub(super) fn position(&mut self, records: &Range<Ordinal>, side: Side) -> usize {
        let record = match side {
            Side::Ahead => records.start,
            Side::Behind => records.end,
        };
        let is_before = |at: usize| self.list.get(at).is_some_and(|one| one.record < record);
        // Lane after lane asks for the same one.
        let at = self.cursor;
        if is_before(at) || at > self.list.len() || at > 0 && !is_before(at - 1) {
            self.cursor = self.list.partition_point(|one| one.record < record);
        }
        self.cursor
    }

    /// The one that is next to a position on a side.
    pub(super) fn get(&self, at: usize, side: Side) -> Option<Occurrence> {
        let at = match side {
            Side::Ahead => at,
            Side::Behind => at.checked_sub(1)?,
        };
        self.list.get(at).copied()
    }
}
