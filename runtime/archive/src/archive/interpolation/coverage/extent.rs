//! Reads further records at either end of the covered ones.
//!
//! Input: the data volumes. Output: one more record at a time, with the damage and the
//! marks on the way to it.

use std::sync::Arc;

use pmderive_core::model::Timestamp;
use pmderive_core::source::SourceError;

use crate::archive::framing::Damage;
use crate::archive::interpolation::coverage::{Coverage, Covered, MetDamage, Ordinal, Side};
use crate::archive::interpolation::rules::MarkRule;
use crate::archive::order::Travel;
use crate::archive::sequence::{Place, Sequence};
use crate::archive::single::SingleArchive;
use crate::archive::volume::Record;

/// One end of a stretch of records.
pub(super) struct Edge {
    pub(super) reader: Sequence,
    /// True while the reader is next to the outermost record.
    pub(super) is_placed: bool,
    /// There are no more records on this side.
    pub(super) is_complete: bool,
}

impl Edge {
    /// The end on `side` of a stretch that begins at the first record.
    pub(super) fn new(records: &Sequence, side: Side) -> Result<Edge, SourceError> {
        let reader = records.another()?;
        Ok(Edge { reader, is_placed: side == Side::Ahead, is_complete: false })
    }
}

impl Coverage {
    /// Covers nothing, and begins to read at `when`.
    pub(in crate::archive::interpolation) fn begin(
        &mut self,
        when: Timestamp,
    ) -> Result<(), SourceError> {
        self.clear();
        self.ahead.reader.seek(when)
    }

    /// Goes on with further archives (see [`Sequence::go_on_with`]).
    pub(in crate::archive::interpolation) fn go_on_with(
        &mut self,
        archives: &Arc<[Arc<SingleArchive>]>,
    ) {
        self.ahead.reader.go_on_with(archives);
        self.behind.reader.go_on_with(archives);
    }

    /// The bytes after the ends of archives (see [`Sequence::take_tails`]).
    pub(in crate::archive::interpolation) fn take_tails(&mut self) -> Vec<SourceError> {
        let mut tails = self.ahead.reader.take_tails();
        tails.extend(self.behind.reader.take_tails());
        tails
    }

    /// Covers one more record that is not a mark. `None` if there are no more.
    pub(in crate::archive::interpolation) fn extend(
        &mut self,
        side: Side,
    ) -> Option<(Ordinal, Record)> {
        if self.is_complete(side) || self.place_reader(side).is_err() {
            self.finish(side);
            return None;
        }
        loop {
            let read = match side {
                Side::Ahead if self.ahead.reader.is_past(self.last_counted) => Ok(None),
                Side::Ahead => self.ahead.reader.next(),
                Side::Behind => self.behind.reader.previous(),
            };
            let lost = self.edge(side).reader.take_lost();
            let (record, error) = match read {
                Ok(record) => (record, None),
                Err(error) => (None, Some(error)),
            };
            let failed = error.is_some();
            let left_out = self.edge(side).reader.take_left_out();
            // After damage the time is unknown, even at the very end.
            if lost || failed {
                self.add_gap(side);
            }
            let left_out = left_out.into_iter().map(|left_out| (left_out.error, true));
            for (error, is_passed_over) in left_out.chain(error.map(|error| (error, false))) {
                let ordinal = match side {
                    Side::Ahead => self.end() - Ordinal::from(lost || failed),
                    Side::Behind => self.first - Ordinal::from(!(lost || failed)),
                };
                self.damage.push(MetDamage { ordinal, side, error, is_passed_over });
            }
            let Some(record) = record else {
                if failed && lost {
                    continue;
                }
                self.finish(side);
                return None;
            };
            let place = self.edge(side).reader.place_of(&record);
            let time = record.stamp.seconds_since(self.start);
            // After damage there may be a record with the time before it.
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

    /// The bytes of the record that [`Coverage::extend`] returned last on `side`.
    pub(in crate::archive::interpolation) fn bytes(
        &mut self,
        side: Side,
        record: &Record,
    ) -> Result<&[u8], SourceError> {
        self.edge(side).reader.bytes(record)
    }

    /// The bytes of a covered record if they happen to be in a buffer.
    pub(in crate::archive::interpolation) fn held(&self, record: &Covered) -> Option<&[u8]> {
        let ahead = self.ahead.reader.held(record.place, record.length);
        ahead.or_else(|| self.behind.reader.held(record.place, record.length))
    }

    /// Makes the record that was covered last on `side` a gap, because it is damaged.
    pub(in crate::archive::interpolation) fn spoil(
        &mut self,
        side: Side,
        ordinal: Ordinal,
        error: SourceError,
    ) {
        self.put_mark(side, ordinal);
        self.damage.push(MetDamage { ordinal, side, error, is_passed_over: false });
    }

    /// Describes damage inside of the record that was covered last on `side`.
    pub(in crate::archive::interpolation) fn damaged(
        &mut self,
        side: Side,
        damage: Damage,
    ) -> SourceError {
        self.edge(side).reader.damaged(damage)
    }

    /// Frees the buffer on the side that time moves away from, where reads are rare.
    pub(in crate::archive::interpolation) fn release(&mut self) {
        match self.travel {
            Travel::Forward => self.behind.reader.release(),
            Travel::Backward => self.ahead.reader.release(),
        }
    }

    fn edge(&mut self, side: Side) -> &mut Edge {
        match side {
            Side::Ahead => &mut self.ahead,
            Side::Behind => &mut self.behind,
        }
    }

    /// Moves the reader of `side` to the end of the covered records there.
    fn place_reader(&mut self, side: Side) -> Result<(), SourceError> {
        match side {
            Side::Ahead if !self.ahead.is_placed => {
                self.ahead.is_placed = true;
                let Some(last) = self.records.iter().rfind(|record| record.length > 0) else {
                    return Ok(());
                };
                self.ahead.reader.move_to(last.place)?;
                self.ahead.reader.next()?;
            }
            Side::Behind if !self.behind.is_placed => {
                self.behind.is_placed = true;
                match self.records.iter().find(|record| record.length > 0) {
                    // This record is read again, so that the reader knows the time that
                    // others must precede.
                    Some(first) => {
                        let offset = first.place.offset + first.length as u64;
                        self.behind.reader.move_to(Place { offset, ..first.place })?;
                        self.behind.reader.previous()?;
                    }
                    None => self.behind.reader.seek_end()?,
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

    /// Adds a gap for damage, directly after the record next to it: what is known at
    /// the time of that record is certain.
    fn add_gap(&mut self, side: Side) {
        self.settle_marks(side, None);
        let time = match side {
            Side::Ahead => self.last_time().next_up(),
            Side::Behind => self.first_time().next_down(),
        };
        let ordinal = self.add(side, Covered { time, place: Place::default(), length: 0 });
        self.put_mark(side, ordinal);
    }

    fn finish(&mut self, side: Side) {
        self.settle_marks(side, None);
        self.edge(side).is_complete = true;
    }

    /// Decides whether pending marks are in force. `time` is the time of the record
    /// after them.
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
