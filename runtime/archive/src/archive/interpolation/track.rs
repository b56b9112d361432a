//! One metric in the stretch of records that is covered: where it occurs, and
//! for each of its instances the values around the time of the fetch.
//!
//! Input: value sets as they are met in records, and a time. Output: for each lane
//! the value set before and after that time that holds a value of it. Each
//! lane remembers a stretch of ordinals in which it is known not to occur, so
//! that going on costs nothing while the time stays within it, and one look
//! into the next value set when it does not.

use std::ops::Range;

use pmderive_core::model::{InstId, MetricDesc, ValueType};
use pmderive_core::source::SourceError;

use crate::archive::interpolation::candidates::{Candidates, NO_LANES};
use crate::archive::interpolation::column::{Column, Columns, instances};
use crate::archive::interpolation::coverage::{Coverage, Ordinal, Side};
use crate::archive::interpolation::lane::{Cut, End, Found, Lane};
use crate::archive::interpolation::occurrences::{Occurrence, Occurrences};
use crate::archive::interpolation::steady::Steady;
use crate::archive::interpolation::value::{Sample, is_number};
use crate::archive::sequence::Sequence;
use crate::archive::untyped::UntypedOrder;

/// For how many intervals of a metric its next value is awaited.
const PATIENCE: f64 = 4.0;

/// A metric.
pub(super) struct Track {
    pub(super) desc: MetricDesc,
    untyped_order: UntypedOrder,
    /// Position of its instance domain.
    pub(super) domain: usize,
    /// Number of values in the fetch before.
    pub(super) last_count: usize,
    /// True when its values stand in blocks.
    pub(super) in_blocks: bool,
    /// A value set was met whose values are not of the metric's type.
    pub(super) is_unsound: bool,
    occurrences: Occurrences,
    /// Shape met last.
    shape: u32,
    lanes: Box<[Lane]>,
    /// Contents of values that are no numbers, parallel to `lanes`.
    texts: Box<[[Vec<u8>; 2]]>,
    /// What was found at the time of the fetch before.
    pub(super) steady: Steady,
}

/// What became of the search for what surrounds a time in a lane.
pub(super) enum Search {
    Done(Found),
    /// More records have to be covered.
    Lacks(Side),
}

/// What a lane needs to find its values.
pub(super) struct Sources<'a> {
    pub(super) coverage: &'a Coverage,
    pub(super) candidates: &'a Candidates,
    /// Reads records again that are no longer held.
    pub(super) reader: &'a mut Sequence,
    /// The value sets decoded last.
    pub(super) columns: &'a mut Columns,
}

impl Track {
    pub(super) fn new(
        desc: MetricDesc,
        untyped_order: UntypedOrder,
        domain: usize,
        lane_count: usize,
    ) -> Track {
        let texts = if is_number(desc.value_type) { 0 } else { lane_count };
        let in_place = matches!(desc.value_type, ValueType::I32 | ValueType::U32);
        Track {
            desc,
            untyped_order,
            domain,
            last_count: 0,
            in_blocks: !in_place,
            is_unsound: false,
            occurrences: Occurrences::default(),
            shape: NO_LANES,
            lanes: vec![Lane::fresh(0); lane_count].into(),
            texts: (0..texts).map(|_| Default::default()).collect(),
            steady: Steady::default(),
        }
    }

    /// Forgets where it occurs.
    pub(super) fn forget(&mut self) {
        self.occurrences.clear();
        self.lanes.fill(Lane::fresh(0));
        self.steady.forget();
    }

    /// True when a lane that has a value before a time may still get the one
    /// behind it: nothing ends its line, and it has not been without values
    /// for several times the metric's interval, which is `interval` seconds as
    /// long as the metric has occurred only once.
    pub(super) fn is_awaited(&self, lane: usize, interval: f64, coverage: &Coverage) -> bool {
        let Lane { before, after } = self.lanes[lane];
        let mut newest = self.occurrences.records().rev();
        let mut time = || Some(coverage.record(newest.next()?)?.time);
        let interval = time().zip(time()).map_or(interval, |(last, previous)| last - previous);
        let is_open = !after.is_value() && after.record() == Ordinal::MAX;
        is_open && coverage.last_time() <= before.sample().time + PATIENCE * interval
    }

    /// Takes note of a value set, `set`, at an offset of a record.
    pub(super) fn note(
        &mut self,
        side: Side,
        record: Ordinal,
        (offset, set): (usize, &[u8]),
        candidates: &mut Candidates,
        scratch: &mut Vec<InstId>,
    ) {
        let instances = instances(set);
        if instances.len() == 0 {
            return;
        }
        self.shape = candidates.shape(instances, self.shape, scratch);
        let set = u32::try_from(offset).unwrap_or(u32::MAX);
        self.occurrences.add(side, Occurrence { record, set, shape: self.shape });
    }

    /// Forgets occurrences outside of a stretch of records. Gives the number of those left.
    pub(super) fn keep(&mut self, records: Range<Ordinal>) -> usize {
        self.occurrences.keep(records)
    }

    /// Shapes that it knows by their numbers.
    pub(super) fn shapes(&self) -> impl Iterator<Item = u32> + '_ {
        self.occurrences.shapes().chain(std::iter::once(self.shape))
    }

    /// Number of the shape of a value set that is not noted.
    pub(super) fn shape_of(
        &self,
        set: &[u8],
        candidates: &mut Candidates,
        scratch: &mut Vec<InstId>,
    ) -> u32 {
        candidates.shape(instances(set), self.shape, scratch)
    }

    /// Reads the values of a set in a record, for [`Track::take_far`].
    pub(super) fn decode(&mut self, column: &mut Column, record: &[u8], set: &[u8]) {
        self.in_blocks = column.decode(record, set, (self.desc.value_type, self.untyped_order));
        self.is_unsound |= column.bits.is_empty();
    }

    /// Makes the value at a position of a set that was read what ends the
    /// stretch of a lane; false if it has no value.
    pub(super) fn take_far(
        &mut self,
        column: &Column,
        (lane, side): (usize, Side),
        place: (Ordinal, f64),
        position: u32,
    ) -> bool {
        let found = self.end_in(column, (lane, side), place, position);
        found.is_some_and(|end| {
            self.lanes[lane].set_end(side, end);
            true
        })
    }

    /// Ends the stretch of a lane without a value.
    pub(super) fn end_far(&mut self, (lane, side): (usize, Side), end: End) {
        self.lanes[lane].set_end(side, end);
    }

    /// A lane as it was found.
    pub(super) fn lane(&self, lane: usize) -> &Lane {
        &self.lanes[lane]
    }

    /// Content of the value at one end of a lane.
    pub(super) fn text(&self, lane: usize, side: Side) -> &[u8] {
        let [before, after] = &self.texts[lane];
        match side {
            Side::Behind => before,
            Side::Ahead => after,
        }
    }

    /// Brings a lane to a time: what is before it and, if that is wanted,
    /// what is after it.
    pub(super) fn find(
        &mut self,
        lane: usize,
        cut: &Cut,
        looks_ahead: bool,
        sources: &mut Sources<'_>,
    ) -> Result<Search, SourceError> {
        self.bring(lane, cut, sources)?;
        if self.lanes[lane].after.is_value_at(cut.time) {
            return Ok(Search::Done(Found::At(Side::Ahead)));
        }
        let found = match self.look((lane, Side::Behind), cut, sources)? {
            before if before.is_unknown() => return Ok(Search::Lacks(Side::Behind)),
            before if !before.is_value() => Found::Neither,
            before if before.is_value_at(cut.time) => Found::At(Side::Behind),
            _ if !looks_ahead => Found::Before,
            _ => match self.look((lane, Side::Ahead), cut, sources)? {
                after if after.is_unknown() => return Ok(Search::Lacks(Side::Ahead)),
                after if after.is_value() => Found::Both,
                _ => Found::Before,
            },
        };
        Ok(Search::Done(found))
    }

    /// Moves the stretch without values of a lane to a time, with what is
    /// known already.
    fn bring(
        &mut self,
        lane: usize,
        cut: &Cut,
        sources: &mut Sources<'_>,
    ) -> Result<(), SourceError> {
        let known @ Lane { before, after } = self.lanes[lane];
        if known.surrounds(cut) {
            return Ok(());
        }
        // Knowledge that does not touch what is covered leads nowhere. And at
        // a record, the last value of that time is the one that counts.
        let coverage = sources.coverage;
        let is_ahead = cut.after > after.record();
        let touches = before.record() < coverage.end() && after.record() >= coverage.first();
        if !touches || !is_ahead && cut.from < cut.after {
            self.lanes[lane] = Lane::fresh(cut.after);
            return Ok(());
        }
        // The end that time has passed, and the records between them.
        let (side, records) = match is_ahead {
            true => (Side::Ahead, after.record() + Ordinal::from(!after.is_unknown())..cut.after),
            false => {
                (Side::Behind, cut.after..before.record() + Ordinal::from(before.is_unknown()))
            }
        };
        let (passed, other) = (known.end(side), side.opposite());
        let nearest = self.nearest((lane, other), records.clone(), sources)?;
        let mark = coverage.mark_from(cut.next(other), other);
        let mark = mark.filter(|mark| records.contains(mark));
        let end = match (nearest, mark) {
            (Some(value), mark) if value.counts_beside(mark, other, cut) => value,
            (_, Some(mark)) => End::nothing(mark),
            _ if passed.is_unknown() => known.end(other),
            _ => {
                if let Some(texts) = self.texts.get_mut(lane) {
                    texts.swap(0, 1);
                }
                passed
            }
        };
        self.lanes[lane].set_end(other, end);
        self.lanes[lane].set_end(side, End::unknown(cut.next(side)));
        Ok(())
    }

    /// What ends a lane's stretch on a side, as far as records are covered.
    fn look(
        &mut self,
        (lane, side): (usize, Side),
        cut: &Cut,
        sources: &mut Sources<'_>,
    ) -> Result<End, SourceError> {
        let known = self.lanes[lane].end(side);
        if !known.is_unknown() {
            return Ok(known);
        }
        let coverage = sources.coverage;
        let mark = coverage.mark_from(known.record(), side);
        let records = match side {
            Side::Ahead => known.record()..mark.unwrap_or(coverage.end()),
            // A value counts beside a mark of the same time.
            Side::Behind => {
                mark.map_or(coverage.first(), |mark| mark.min(cut.from))..known.record() + 1
            }
        };
        let end = match (self.nearest((lane, side), records, sources)?, mark) {
            (Some(value), mark) if value.counts_beside(mark, side, cut) => value,
            (_, Some(mark)) => End::nothing(mark),
            _ if coverage.is_complete(side) => End::of_archive(side),
            _ => End::unknown(coverage.beyond(side)),
        };
        self.lanes[lane].set_end(side, end);
        Ok(end)
    }

    /// The value of a lane among records that comes nearest to a time: for its
    /// earlier end the last one of them, for its later end the first.
    fn nearest(
        &mut self,
        (lane, side): (usize, Side),
        records: Range<Ordinal>,
        sources: &mut Sources<'_>,
    ) -> Result<Option<End>, SourceError> {
        let mut at = self.occurrences.position(&records, side);
        while let Some(occurrence) = self.occurrences.get(at, side) {
            if !records.contains(&occurrence.record) {
                break;
            }
            if let Some(value) = self.value((lane, side), occurrence, sources)? {
                return Ok(Some(value));
            }
            at = if side == Side::Ahead { at + 1 } else { at - 1 };
        }
        Ok(None)
    }

    /// The value of a lane in an occurrence; its text goes to one of the two ends.
    fn value(
        &mut self,
        (lane, side): (usize, Side),
        occurrence: Occurrence,
        sources: &mut Sources<'_>,
    ) -> Result<Option<End>, SourceError> {
        let number = u32::try_from(lane).unwrap_or(u32::MAX);
        let Some(position) = sources.candidates.position(occurrence.shape, number) else {
            return Ok(None);
        };
        let Some(record) = sources.coverage.record(occurrence.record) else { return Ok(None) };
        let column = match sources.columns.find((self.desc.pmid, occurrence.record)) {
            Ok(known) => known,
            Err(column) => {
                let bytes = match sources.coverage.held(record) {
                    Some(bytes) => Ok(bytes),
                    None => sources.reader.bytes_at(record.place, record.length),
                };
                let bytes = match bytes {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        column.forget();
                        return Err(error);
                    }
                };
                let set = bytes.get(occurrence.set as usize..).unwrap_or_default();
                self.decode(column, bytes, set);
                column
            }
        };
        let place = (occurrence.record, record.time);
        Ok(self.end_in(column, (lane, side), place, position))
    }

    /// The value at a position of a set that was decoded; its text goes to one
    /// of the ends of a lane.
    fn end_in(
        &mut self,
        column: &Column,
        (lane, side): (usize, Side),
        (record, time): (Ordinal, f64),
        position: u32,
    ) -> Option<End> {
        let bits = column.bits.get(position as usize).copied()?;
        if let Some([before, after]) = self.texts.get_mut(lane) {
            let text = match side {
                Side::Behind => before,
                Side::Ahead => after,
            };
            let (start, end) = ((bits >> 32) as usize, bits as u32 as usize);
            text.clear();
            text.extend_from_slice(column.bytes.get(start..end).unwrap_or_default());
        }
        Some(End::value(record, Sample { time, bits }))
    }
}
