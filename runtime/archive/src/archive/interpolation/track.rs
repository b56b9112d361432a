//! One metric in the covered stretch of records: the records that have it, and for each
//! of its instances the values around the time of the fetch.
//!
//! Input: value sets as they are met in records, and a time. Output: for each lane, the
//! value sets before and after that time that have a value of it. Each lane remembers a
//! stretch of records that have no value of it. While the time stays within the
//! stretch, a fetch costs nothing. When the time leaves it, one look into the next value
//! set suffices.

use std::ops::Range;

use pmderive_core::model::{InstId, MetricDesc, ValueType};
use pmderive_core::source::SourceError;

use crate::archive::interpolation::candidates::Candidates;
use crate::archive::interpolation::column::{Column, Columns, instances};
use crate::archive::interpolation::coverage::{Coverage, Covered, Ordinal, Side};
use crate::archive::interpolation::lane::{Cut, End, Lane, Neighbours};
use crate::archive::interpolation::lanes::{Lanes, Moment};
use crate::archive::interpolation::occurrences::{Occurrence, Occurrences};
use crate::archive::interpolation::positions::{DomainId, LaneId, ShapeId};
use crate::archive::interpolation::steady::Steady;
use crate::archive::interpolation::value::{Sample, is_number};
use crate::archive::sequence::Sequence;
use crate::archive::untyped::UntypedOrder;

/// Number of a metric's intervals for which its next value is awaited.
const PATIENCE: f64 = 4.0;

/// The least interval of a metric that has occurred once only, in seconds: the usual one
/// of pmlogger.
const USUAL_INTERVAL: f64 = 60.0;

/// A metric.
pub(super) struct Track {
    pub(super) desc: MetricDesc,
    untyped_order: UntypedOrder,
    /// Its instance domain.
    pub(super) domain: DomainId,
    /// Number of values in the last fetch.
    pub(super) last_count: usize,
    /// Seconds between two values of an instance at the end of a followed archive; 0 as long as no
    /// instance had two.
    pub(super) interval: f64,
    /// True if its values are in blocks.
    pub(super) in_blocks: bool,
    /// A value set was met whose values do not have the metric's type.
    pub(super) is_unsound: bool,
    pub(super) occurrences: Occurrences,
    /// Parallel to `lanes`. No later record has a value of a lane, except for the lanes in
    /// the newest occurrence.
    last: Box<[Ordinal]>,
    /// The shape that was met last.
    shape: ShapeId,
    pub(super) lanes: Lanes,
    /// Contents of values that are not numbers, parallel to `lanes`.
    texts: Box<[[Vec<u8>; 2]]>,
    /// The values found at the time of the last fetch.
    pub(super) steady: Steady,
}

/// The outcome of a search for the values around a time.
pub(super) enum Search {
    Done(Neighbours),
    /// More records must be covered on this side.
    Lacks(Side),
}

/// The inputs of the search for values.
pub(super) struct Sources<'a> {
    pub(super) coverage: &'a Coverage,
    pub(super) candidates: &'a Candidates,
    /// Reads records again that are no longer in a buffer.
    pub(super) reader: &'a mut Sequence,
    /// The value sets that were decoded last.
    pub(super) columns: &'a mut Columns,
}

impl Track {
    pub(super) fn new(
        desc: MetricDesc,
        untyped_order: UntypedOrder,
        domain: DomainId,
        lane_count: usize,
    ) -> Track {
        let texts = if is_number(desc.value_type) { 0 } else { lane_count };
        let in_place = matches!(desc.value_type, ValueType::I32 | ValueType::U32);
        Track {
            desc,
            untyped_order,
            domain,
            last_count: 0,
            interval: 0.0,
            in_blocks: !in_place,
            is_unsound: false,
            occurrences: Occurrences::default(),
            last: vec![Ordinal::MIN; lane_count].into(),
            shape: ShapeId::NO_LANES,
            lanes: Lanes::fresh(lane_count),
            texts: (0..texts).map(|_| Default::default()).collect(),
            steady: Steady::default(),
        }
    }

    /// Forgets which records have the metric.
    pub(super) fn forget(&mut self) {
        self.occurrences.clear();
        self.last.fill(Ordinal::MIN);
        self.lanes = Lanes::fresh(self.lanes.len());
        self.steady.forget();
    }

    /// True if a lane that has a value before a time may still get the next one: no
    /// mark ends its line, and it has been without values for at most a few intervals
    /// of the metric. `interval` is used, in seconds, if the metric has occurred only
    /// once and that is longer than usual.
    pub(super) fn is_awaited(&self, lane: LaneId, interval: f64, coverage: &Coverage) -> bool {
        let Lane { before, after } = self.lanes.get(lane);
        let interval = match self.interval.max(self.last_interval(coverage)) {
            0.0 => interval.max(USUAL_INTERVAL),
            known => known,
        };
        let is_open = !after.is_value() && after.record() == Ordinal::MAX;
        is_open && coverage.last_time() <= before.sample().time + PATIENCE * interval
    }

    /// Remembers how far apart values are here, for the times when fewer of the records
    /// are covered. Instances may have longer intervals than their metric.
    pub(super) fn note_interval(&mut self, coverage: &Coverage) {
        let lanes =
            self.lanes.iter().filter(|lane| lane.before.is_value() && lane.after.is_value());
        let lengths = lanes.map(|lane| lane.after.sample().time - lane.before.sample().time);
        let longest = lengths.fold(self.last_interval(coverage), f64::max);
        if longest > 0.0 {
            self.interval = longest;
        }
    }

    /// Seconds between the last two covered records with the metric, or 0.
    fn last_interval(&self, coverage: &Coverage) -> f64 {
        let mut newest = self.occurrences.records().rev();
        let mut time = || Some(coverage.record(newest.next()?)?.time);
        time().zip(time()).map_or(0.0, |(last, previous)| last - previous)
    }

    /// Notes the value set at `offset` of a record, whose instances have a shape.
    pub(super) fn note(
        &mut self,
        side: Side,
        record: Ordinal,
        (offset, shape): (usize, ShapeId),
        candidates: &Candidates,
    ) {
        self.shape = shape;
        let set = u32::try_from(offset).unwrap_or(u32::MAX);
        let occurrence = Occurrence { record, set, shape };
        // The lanes of the newest shape need no note until there is a newer one.
        let (older, newer) = match side {
            Side::Ahead => (self.occurrences.outermost(side), Some(occurrence)),
            Side::Behind => (Some(occurrence), self.occurrences.outermost(side)),
        };
        if let (Some(older), Some(newer)) = (older, newer)
            && older.shape != newer.shape
        {
            for lane in candidates.lanes_of(older.shape) {
                let last = &mut self.last[lane.index()];
                *last = (*last).max(older.record);
            }
        }
        self.occurrences.add(side, occurrence);
    }

    /// True if no covered record from `record` on has a value of a lane.
    fn has_left(&self, lane: LaneId, record: Ordinal, candidates: &Candidates) -> bool {
        let newest = self.occurrences.outermost(Side::Ahead);
        let has = |newest: Occurrence| {
            newest.record >= record && candidates.position(newest.shape, lane).is_some()
        };
        self.last[lane.index()] < record && !newest.is_some_and(has)
    }

    /// Forgets occurrences outside of a range of records. Returns the number of the
    /// others.
    pub(super) fn keep(&mut self, records: Range<Ordinal>) -> usize {
        self.occurrences.keep(records)
    }

    /// All shapes that are in use.
    pub(super) fn shapes(&self) -> impl Iterator<Item = ShapeId> + '_ {
        self.occurrences.shapes().chain(std::iter::once(self.shape))
    }

    /// The shape of a value set that is not noted.
    pub(super) fn shape_of(
        &self,
        set: &[u8],
        candidates: &mut Candidates,
        scratch: &mut Vec<InstId>,
    ) -> ShapeId {
        candidates.shape(instances(set), self.shape, scratch)
    }

    /// Decodes the values of a set, for [`Track::take_far`].
    pub(super) fn decode(&mut self, column: &mut Column, record: &[u8], set: &[u8]) {
        self.in_blocks = column.decode(record, set, (self.desc.value_type, self.untyped_order));
        self.is_unsound |= column.bits.is_empty();
    }

    /// Ends the stretch of a lane with the value at a position of a decoded set. False
    /// if there is no value.
    pub(super) fn take_far(
        &mut self,
        column: &Column,
        (lane, side): (LaneId, Side),
        place: (Ordinal, f64),
        position: u32,
    ) -> bool {
        let found = self.end_in(column, (lane, side), place, position);
        found.is_some_and(|end| {
            self.lanes.get_mut(lane).set_end(side, end);
            true
        })
    }

    /// Ends the stretch of a lane without a value.
    pub(super) fn end_far(&mut self, (lane, side): (LaneId, Side), end: End) {
        self.lanes.get_mut(lane).set_end(side, end);
    }

    /// Contents of the value at one end of a lane.
    pub(super) fn text(&self, lane: LaneId, side: Side) -> &[u8] {
        let [before, after] = &self.texts[lane.index()];
        match side {
            Side::Behind => before,
            Side::Ahead => after,
        }
    }

    /// Moves a lane to a time: finds the value before it and, if `looks_ahead` is set,
    /// the value after it.
    pub(super) fn find(
        &mut self,
        lane: LaneId,
        cut: &Cut,
        looks_ahead: bool,
        sources: &mut Sources<'_>,
    ) -> Result<Search, SourceError> {
        self.bring(lane, cut, sources)?;
        if self.lanes.get(lane).after.is_value_at(cut.time) {
            return Ok(Search::Done(Neighbours::At(Side::Ahead)));
        }
        let found = match self.look((lane, Side::Behind), cut, sources)? {
            before if before.is_unknown() => return Ok(Search::Lacks(Side::Behind)),
            before if !before.is_value() => Neighbours::Neither,
            before if before.is_value_at(cut.time) => Neighbours::At(Side::Behind),
            _ if !looks_ahead => Neighbours::Before,
            _ => match self.look((lane, Side::Ahead), cut, sources)? {
                after if after.is_unknown() => return Ok(Search::Lacks(Side::Ahead)),
                after if after.is_value() => Neighbours::Both,
                _ => Neighbours::Before,
            },
        };
        Ok(Search::Done(found))
    }

    /// Moves the stretch of a lane to a time without looking beyond the known records.
    fn bring(
        &mut self,
        lane: LaneId,
        cut: &Cut,
        sources: &mut Sources<'_>,
    ) -> Result<(), SourceError> {
        let known @ Lane { before, after } = self.lanes.get(lane);
        if known.surrounds(cut) {
            return Ok(());
        }
        // If the known stretch does not touch the covered records, it is useless. At a record, the
        // last value with its time counts, so a step back starts again.
        let coverage = sources.coverage;
        let is_ahead = cut.after > after.record();
        let touches = before.record() < coverage.end() && after.record() >= coverage.first();
        if !touches || !is_ahead && cut.from < cut.after {
            *self.lanes.get_mut(lane) = Lane::fresh(cut.after);
            return Ok(());
        }
        // The side of the end that time has passed, and the records between both ends.
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
                if let Some(texts) = self.texts.get_mut(lane.index()) {
                    texts.swap(0, 1);
                }
                passed
            }
        };
        let lane = self.lanes.get_mut(lane);
        lane.set_end(other, end);
        lane.set_end(side, End::unknown(cut.next(side)));
        Ok(())
    }

    /// Finds the end of a lane's stretch on `side` among the covered records.
    fn look(
        &mut self,
        (lane, side): (LaneId, Side),
        cut: &Cut,
        sources: &mut Sources<'_>,
    ) -> Result<End, SourceError> {
        let known = self.lanes.get(lane).end(side);
        if !known.is_unknown() {
            return Ok(known);
        }
        let coverage = sources.coverage;
        let mark = coverage.mark_from(known.record(), side);
        let records = match side {
            Side::Ahead => known.record()..mark.unwrap_or(coverage.end()),
            // A value counts even if there is a mark with the same time.
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
        self.lanes.get_mut(lane).set_end(side, end);
        Ok(end)
    }

    /// The nearest value of a lane in a range of records: the last one for the end
    /// before the time, the first one for the end after it.
    fn nearest(
        &mut self,
        (lane, side): (LaneId, Side),
        records: Range<Ordinal>,
        sources: &mut Sources<'_>,
    ) -> Result<Option<End>, SourceError> {
        if self.has_left(lane, records.start, sources.candidates) {
            return Ok(None);
        }
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

    /// The value of a lane in an occurrence. Its contents go to the end on `side`.
    fn value(
        &mut self,
        (lane, side): (LaneId, Side),
        occurrence: Occurrence,
        sources: &mut Sources<'_>,
    ) -> Result<Option<End>, SourceError> {
        let Some(position) = sources.candidates.position(occurrence.shape, lane) else {
            return Ok(None);
        };
        let Some(record) = sources.coverage.record(occurrence.record) else { return Ok(None) };
        let column = self.decoded(occurrence, record, sources)?;
        let place = (occurrence.record, record.time);
        Ok(self.end_in(column, (lane, side), place, position))
    }

    /// The values of an occurrence, which is in that record.
    fn decoded<'s>(
        &mut self,
        occurrence: Occurrence,
        record: &Covered,
        sources: &'s mut Sources<'_>,
    ) -> Result<&'s Column, SourceError> {
        let column = match sources.columns.find((self.desc.pmid, occurrence.record)) {
            Ok(known) => return Ok(known),
            Err(column) => column,
        };
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
        Ok(column)
    }

    /// Moves all lanes at once to a time that has just passed the record after each of
    /// them, if the next value set has all lanes again. Only metrics of numbers have
    /// this. False if that is not so: then each lane must be moved by itself, and
    /// nothing has changed. True means [`Neighbours::Both`] for each lane.
    pub(super) fn cross(
        &mut self,
        cut: &Cut,
        sources: &mut Sources<'_>,
    ) -> Result<bool, SourceError> {
        let (coverage, candidates) = (sources.coverage, sources.candidates);
        let life = candidates.common_life();
        if self.lanes.is_empty()
            || life.is_none_or(|(birth, death)| !(birth..=death).contains(&cut.time))
        {
            return Ok(false);
        }
        let at = self.occurrences.position(&(cut.after..cut.after), Side::Ahead);
        let around = [Side::Behind, Side::Ahead].map(|side| self.occurrences.get(at, side));
        let [Some(behind), Some(ahead)] = around else { return Ok(false) };
        let (Some(earlier), Some(later)) =
            (coverage.record(behind.record), coverage.record(ahead.record))
        else {
            return Ok(false);
        };
        let before = Moment { record: behind.record, time: earlier.time };
        let mark = coverage.mark_from(behind.record, Side::Ahead);
        if earlier.time == cut.time
            || mark.is_some_and(|mark| mark <= ahead.record)
            || !self.lanes.all_end_in(before)
        {
            return Ok(false);
        }
        let Some(positions) = candidates.positions_of_all(ahead.shape) else { return Ok(false) };
        let after = Moment { record: ahead.record, time: later.time };
        let bits = &self.decoded(ahead, later, sources)?.bits;
        if !positions.clone().all(|position| (position as usize) < bits.len()) {
            return Ok(false);
        }
        let bits = positions.map(|position| bits[position as usize]);
        self.lanes.cross((before, after), bits);
        Ok(true)
    }

    /// The value at a position of a decoded set. Its contents go to the end on `side`.
    fn end_in(
        &mut self,
        column: &Column,
        (lane, side): (LaneId, Side),
        (record, time): (Ordinal, f64),
        position: u32,
    ) -> Option<End> {
        let bits = column.bits.get(position as usize).copied()?;
        if let Some([before, after]) = self.texts.get_mut(lane.index()) {
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

#[cfg(test)]
mod tests {
    use pmderive_core::model::{InDom, Pmid, Semantics, Timestamp, Units};

    use super::*;
    use crate::archive::lives::{Life, Lives};

    /// A lane has not left as long as a record has it, whatever is noted and forgotten on either
    /// side. If time only goes forward, it is known when a lane has left.
    #[test]
    fn it_is_known_which_lanes_have_left() {
        let mut state = 1_u64;
        let mut random = move |below: i64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            i64::try_from(state % below.unsigned_abs()).expect("small")
        };
        let life = |instance| Life { instance, birth: Timestamp::default(), death: None };
        let lives = Lives { instances: (0..4).map(life).collect(), largest: 4 };
        let indom = InDom::new(60, 1);
        for round in 0..500 {
            let goes_forward = round % 2 == 0;
            let mut candidates = Candidates::of_domain(indom, &lives, Timestamp::default());
            let desc = MetricDesc {
                pmid: Pmid(1),
                indom: Some(indom),
                value_type: ValueType::U32,
                semantics: Semantics::Instant,
                units: Units::NONE,
            };
            let mut track = Track::new(desc, UntypedOrder::Network, DomainId::default(), 4);
            let (mut first, mut end) = (0, 0);
            for _ in 0..20 {
                let (side, record) = match goes_forward || random(2) == 0 {
                    true => (Side::Ahead, end),
                    false => (Side::Behind, first - 1),
                };
                (first, end) = (first.min(record), end.max(record + 1));
                let subset = random(16);
                let instances = (0..4_i32).filter(|id| subset >> id & 1 == 1);
                if subset > 0 {
                    let shape = candidates.shape(instances, track.shape, &mut Vec::new());
                    track.note(side, record, (0, shape), &candidates);
                }
                if random(4) == 0 {
                    first = (first + random(3)).min(end - 1);
                    end = if goes_forward { end } else { (end - random(3)).max(first + 1) };
                    track.keep(first..end);
                }
                for (lane, from) in
                    LaneId::first(4).flat_map(|lane| (first..end).map(move |from| (lane, from)))
                {
                    let has = |one: &Occurrence| candidates.position(one.shape, lane).is_some();
                    let mut at = track.occurrences.position(&(from..from), Side::Ahead);
                    let mut occurs = false;
                    while let Some(one) = track.occurrences.get(at, Side::Ahead) {
                        occurs |= has(&one);
                        at += 1;
                    }
                    let has_left = track.has_left(lane, from, &candidates);
                    assert!(!(has_left && occurs), "{round}");
                    assert!(!goes_forward || has_left != occurs, "{round}");
                }
            }
        }
    }
}
