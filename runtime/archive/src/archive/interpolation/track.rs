//! One metric in the stretch of records that is covered: where it occurs, and
//! for each of its instances the values around the time of the fetch.
//!
//! Input: value sets as they are met in records, and a time. Output: for each lane
//! the value set before and after that time that holds a value of it. Each
//! lane remembers a stretch of ordinals in which it is known not to occur, so
//! that going on costs nothing while the time stays within it, and one look
//! into the next value set when it does not.

use std::collections::VecDeque;
use std::ops::Range;

use pmderive_core::model::{InstId, MetricDesc, ValueType};
use pmderive_core::source::SourceError;

use crate::archive::interpolation::candidates::{Candidates, NO_LANES};
use crate::archive::interpolation::column::{Column, Columns, instances};
use crate::archive::interpolation::coverage::{Coverage, Ordinal, Side};
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
    occurrences: VecDeque<Occurrence>,
    /// Shape met last.
    shape: u32,
    lanes: Vec<Lane>,
    /// Contents of values that are no numbers, parallel to `lanes`.
    texts: Vec<[Vec<u8>; 2]>,
    /// Where an occurrence was looked for last.
    cursor: usize,
    /// What was found at the time of the fetch before.
    pub(super) steady: Steady,
}

/// A value set with values of the metric.
#[derive(Clone, Copy, Debug)]
struct Occurrence {
    record: Ordinal,
    /// Offset in the record.
    set: u32,
    shape: u32,
}

/// One instance. Strictly between the two ends it has no values.
#[derive(Clone, Copy, Debug)]
struct Lane {
    before: End,
    after: End,
}

/// What ends a stretch without values.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    record: Ordinal,
    kind: EndKind,
    pub(super) time: f64,
    pub(super) bits: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndKind {
    /// A value.
    Value,
    /// A mark, or the end of the archive.
    Nothing,
    /// Nobody has looked yet, from this record on.
    Unknown,
}

impl End {
    /// True when a value is nearer than a mark, or at the very time of the cut.
    fn counts_beside(
        &self,
        mark: Option<Ordinal>,
        cut: &Cut,
        is_nearer: impl Fn(Ordinal, Ordinal) -> bool,
    ) -> bool {
        self.time == cut.time || mark.is_none_or(|mark| is_nearer(self.record, mark))
    }

    const fn of(record: Ordinal, kind: EndKind) -> End {
        End { record, kind, time: 0.0, bits: 0 }
    }

    pub(super) fn record(&self) -> Ordinal {
        self.record
    }

    pub(super) fn is_value(&self) -> bool {
        self.kind == EndKind::Value
    }

    pub(super) fn sample(&self) -> Sample {
        Sample { time: self.time, bits: self.bits }
    }

    fn is_value_at(&self, time: f64) -> bool {
        self.is_value() && self.time == time
    }
}

/// A time among the records covered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) time: f64,
    /// Ordinal of the first record at the time or later.
    pub(super) from: Ordinal,
    /// Ordinal of the first record after the time.
    pub(super) after: Ordinal,
}

/// What surrounds a time in one lane.
pub(super) enum Found {
    /// A value at that very time: in the earlier or in the later end.
    At(Side),
    /// A value before, and nothing else was asked for, or there is nothing after it.
    Before,
    /// Values before and after.
    Both,
    /// No value before.
    Neither,
    /// More records have to be covered.
    Need(Side),
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
            occurrences: VecDeque::new(),
            shape: NO_LANES,
            lanes: vec![Lane::fresh(0); lane_count],
            texts: (0..texts).map(|_| Default::default()).collect(),
            cursor: 0,
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
        let mut newest = self.occurrences.iter().rev();
        let mut time = || Some(coverage.record(newest.next()?.record)?.time);
        let interval = time().zip(time()).map_or(interval, |(last, previous)| last - previous);
        let is_open = after.kind == EndKind::Nothing && after.record == Ordinal::MAX;
        is_open && coverage.last_time() <= before.time + PATIENCE * interval
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
        let occurrence = Occurrence { record, set, shape: self.shape };
        let newest = match side {
            Side::Ahead => self.occurrences.back(),
            Side::Behind => self.occurrences.front(),
        };
        // Of two sets of one metric in a record the first counts.
        if newest.is_some_and(|newest| newest.record == record) {
            return;
        }
        match side {
            Side::Ahead => self.occurrences.push_back(occurrence),
            Side::Behind => self.occurrences.push_front(occurrence),
        }
    }

    /// Forgets occurrences outside of a stretch of records. Gives the number of those left.
    pub(super) fn keep(&mut self, records: Range<Ordinal>) -> usize {
        let is_before = |occurrence: &Occurrence| occurrence.record < records.start;
        while self.occurrences.front().is_some_and(is_before) {
            self.occurrences.pop_front();
        }
        while self.occurrences.back().is_some_and(|one| one.record >= records.end) {
            self.occurrences.pop_back();
        }
        self.occurrences.len()
    }

    /// Shapes that it knows by their numbers.
    pub(super) fn shapes(&self) -> impl Iterator<Item = u32> + '_ {
        let shapes = self.occurrences.iter().map(|occurrence| occurrence.shape);
        shapes.chain(std::iter::once(self.shape))
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
        (record, time): (Ordinal, f64),
        position: u32,
    ) -> bool {
        let found = self.end_in(column, (lane, side), (record, time), position);
        found.is_some_and(|end| {
            self.set_end(lane, side, end);
            true
        })
    }

    /// Makes a mark, or the end of the archive, what ends the stretch of a lane.
    pub(super) fn end_far(&mut self, (lane, side): (usize, Side), record: Ordinal) {
        self.set_end(lane, side, End::of(record, EndKind::Nothing));
    }

    fn set_end(&mut self, lane: usize, side: Side, end: End) {
        match side {
            Side::Behind => self.lanes[lane].before = end,
            Side::Ahead => self.lanes[lane].after = end,
        }
    }

    /// The earlier and the later end of a lane.
    pub(super) fn ends(&self, lane: usize) -> (End, End) {
        let Lane { before, after } = self.lanes[lane];
        (before, after)
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
    ) -> Result<Found, SourceError> {
        self.bring(lane, cut, sources)?;
        if self.lanes[lane].after.is_value_at(cut.time) {
            return Ok(Found::At(Side::Ahead));
        }
        if self.lanes[lane].before.kind == EndKind::Unknown {
            self.look_behind(lane, cut, sources)?;
        }
        let before = self.lanes[lane].before;
        match before.kind {
            EndKind::Unknown => return Ok(Found::Need(Side::Behind)),
            EndKind::Nothing => return Ok(Found::Neither),
            EndKind::Value => {}
        }
        if before.time == cut.time {
            return Ok(Found::At(Side::Behind));
        }
        if !looks_ahead {
            return Ok(Found::Before);
        }
        if self.lanes[lane].after.kind == EndKind::Unknown {
            self.look_ahead(lane, sources)?;
        }
        Ok(match self.lanes[lane].after.kind {
            EndKind::Unknown => Found::Need(Side::Ahead),
            EndKind::Nothing => Found::Before,
            EndKind::Value => Found::Both,
        })
    }

    /// Moves the stretch without values of a lane to a time, with what is
    /// known already.
    fn bring(
        &mut self,
        lane: usize,
        cut: &Cut,
        sources: &mut Sources<'_>,
    ) -> Result<(), SourceError> {
        let Lane { before, after } = self.lanes[lane];
        let is_inside = before.record < cut.after && cut.after <= after.record;
        if is_inside || before.is_value_at(cut.time) || after.is_value_at(cut.time) {
            return Ok(());
        }
        // Knowledge that does not touch what is covered leads nowhere. And at
        // a record, the last value of that time is the one that counts.
        let coverage = sources.coverage;
        let is_ahead = cut.after > after.record;
        let touches = before.record < coverage.end() && after.record >= coverage.first();
        if !touches || !is_ahead && cut.from < cut.after {
            self.lanes[lane] = Lane::fresh(cut.after);
        } else if is_ahead {
            let passed = after.record + Ordinal::from(after.kind != EndKind::Unknown);
            let newest = self.newest(lane, passed..cut.after, sources)?;
            let mark = coverage.mark_up_to(cut.after - 1).filter(|mark| *mark >= passed);
            let before = match (newest, mark) {
                (Some(value), mark) if value.counts_beside(mark, cut, |v, m| v > m) => value,
                (_, Some(mark)) => End::of(mark, EndKind::Nothing),
                _ if after.kind == EndKind::Unknown => before,
                _ => {
                    self.swap_texts(lane);
                    after
                }
            };
            self.lanes[lane] = Lane { before, after: End::of(cut.after, EndKind::Unknown) };
        } else {
            let end = before.record + Ordinal::from(before.kind == EndKind::Unknown);
            let oldest = self.oldest(lane, cut.after..end, sources)?;
            let mark = coverage.mark_from(cut.after).filter(|mark| *mark < end);
            let after = match (oldest, mark) {
                (Some(value), mark) if value.counts_beside(mark, cut, |v, m| v < m) => value,
                (_, Some(mark)) => End::of(mark, EndKind::Nothing),
                _ if before.kind == EndKind::Unknown => after,
                _ => {
                    self.swap_texts(lane);
                    before
                }
            };
            self.lanes[lane] = Lane { before: End::of(cut.after - 1, EndKind::Unknown), after };
        }
        Ok(())
    }

    fn swap_texts(&mut self, lane: usize) {
        if let Some(texts) = self.texts.get_mut(lane) {
            texts.swap(0, 1);
        }
    }

    /// Looks for what is before a lane's stretch, as far as records are covered.
    fn look_behind(
        &mut self,
        lane: usize,
        cut: &Cut,
        sources: &mut Sources<'_>,
    ) -> Result<(), SourceError> {
        let coverage = sources.coverage;
        let end = self.lanes[lane].before.record.saturating_add(1);
        let mark = coverage.mark_up_to(end - 1);
        // A value counts beside a mark of the same time.
        let first = match mark {
            Some(mark) if cut.from <= mark => cut.from,
            Some(mark) => mark,
            None => coverage.first(),
        };
        let found = match self.newest(lane, first..end, sources)? {
            Some(value) if value.counts_beside(mark, cut, |v, m| v > m) => value,
            _ => match mark {
                Some(mark) => End::of(mark, EndKind::Nothing),
                None if coverage.is_complete(Side::Behind) => {
                    End::of(Ordinal::MIN, EndKind::Nothing)
                }
                None => End::of(coverage.first() - 1, EndKind::Unknown),
            },
        };
        self.lanes[lane].before = found;
        Ok(())
    }

    /// Looks for what is after a lane's stretch, as far as records are covered.
    fn look_ahead(&mut self, lane: usize, sources: &mut Sources<'_>) -> Result<(), SourceError> {
        let coverage = sources.coverage;
        let first = self.lanes[lane].after.record;
        let mark = coverage.mark_from(first);
        let end = mark.unwrap_or(coverage.end());
        let found = match self.oldest(lane, first..end, sources)? {
            Some(value) => value,
            None => match mark {
                Some(mark) => End::of(mark, EndKind::Nothing),
                None if coverage.is_complete(Side::Ahead) => {
                    End::of(Ordinal::MAX, EndKind::Nothing)
                }
                None => End::of(coverage.end(), EndKind::Unknown),
            },
        };
        self.lanes[lane].after = found;
        Ok(())
    }

    /// The last value of a lane among records, for its earlier end.
    fn newest(
        &mut self,
        lane: usize,
        records: Range<Ordinal>,
        sources: &mut Sources<'_>,
    ) -> Result<Option<End>, SourceError> {
        let mut at = self.occurrence_from(records.end);
        while let Some(before) = at.checked_sub(1) {
            at = before;
            let occurrence = self.occurrences[at];
            if occurrence.record < records.start {
                break;
            }
            if let Some(value) = self.value((lane, Side::Behind), occurrence, sources)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The first value of a lane among records, for its later end.
    fn oldest(
        &mut self,
        lane: usize,
        records: Range<Ordinal>,
        sources: &mut Sources<'_>,
    ) -> Result<Option<End>, SourceError> {
        let mut at = self.occurrence_from(records.start);
        while let Some(occurrence) = self.occurrences.get(at).copied() {
            if occurrence.record >= records.end {
                break;
            }
            if let Some(value) = self.value((lane, Side::Ahead), occurrence, sources)? {
                return Ok(Some(value));
            }
            at += 1;
        }
        Ok(None)
    }

    /// Position of the first occurrence in a record or a later one.
    fn occurrence_from(&mut self, record: Ordinal) -> usize {
        let is_before = |at: usize| self.occurrences.get(at).is_some_and(|o| o.record < record);
        // Lane after lane asks for the same one.
        let at = self.cursor;
        if !is_before(at) && at <= self.occurrences.len() && (at == 0 || is_before(at - 1)) {
            return at;
        }
        self.cursor = self.occurrences.partition_point(|o| o.record < record);
        self.cursor
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
        Some(End { record, kind: EndKind::Value, time, bits })
    }
}

impl Lane {
    /// Nothing is known but the place in the records.
    const fn fresh(after: Ordinal) -> Lane {
        Lane {
            before: End::of(after - 1, EndKind::Unknown),
            after: End::of(after, EndKind::Unknown),
        }
    }
}
