//! Values at times between the records (`PM_MODE_INTERP` of pmSetMode(3)).
//!
//! ```text
//!   time ──► coverage   records around the time: read once, as far as needed
//!               │       in either direction; marks
//!               ▼
//!            track      per metric, in which of these records it occurs; per
//!               │       instance (candidates) that counts (present), the values before
//!               │       and after
//!               ▼
//!            value      the rule for the metric's type and semantics; as long
//!               │       as nothing else would be found, it is all there is to do
//!               │       (steady), and numbers are all that is written anew
//!               ▼
//!            ResultPart
//! ```
//!
//! A value comes from the last record before the time and the first record after it
//! that have the instance, however far away these are. Only marks and damage break the
//! line.

mod candidates;
mod column;
mod coverage;
mod far;
mod lane;
mod lanes;
mod lateness;
mod metrics;
mod occurrences;
mod phase;
mod positions;
mod present;
mod room;
mod rules;
mod steady;
mod track;
mod value;
mod write;

use std::collections::HashSet;
use std::sync::Arc;

pub(super) use self::metrics::Surroundings;
pub use self::rules::{InterpolationRules, MarkRule, Neighbour, Overflow};

use self::column::Columns;
use self::coverage::{Coverage, Ordinal, Side};
use self::far::FarSearch;
use self::lane::{Cut, Neighbours};
use self::metrics::{ListChange, Metrics};
use self::phase::Phase;
use self::positions::{LaneId, TrackId};
use self::room::Room;
use self::steady::SteadyLane;
use self::track::{Search, Sources, Track};
use self::value::looks_ahead;
use crate::archive::order::Travel;
use crate::archive::sequence::{Place, Sequence};
use crate::archive::single::SingleArchive;
use crate::archive::untyped::UntypedOrder;
use pmderive_core::model::{InstanceProfile, Semantics, Timestamp};
use pmderive_core::result::ResultBatch;
use pmderive_core::source::{FetchList, SourceError};

/// Interpolates the metrics that were asked for so far.
pub(super) struct Interpolator {
    start: Timestamp,
    rules: InterpolationRules,
    room: Room,
    phase: Phase,
    metrics: Metrics,
    coverage: Coverage,
    /// Finds values beyond the covered records.
    far: FarSearch,
    /// Reads records again, for their values.
    reader: Sequence,
    columns: Columns,
    /// The damage that was reported since the last restart.
    reported: HashSet<String>,
    left_out: Vec<SourceError>,
    /// The lanes of the metric that is being written.
    found_lanes: Vec<SteadyLane>,
}

impl Interpolator {
    pub(super) fn new(
        records: &Sequence,
        start: Timestamp,
        rules: InterpolationRules,
        untyped_order: UntypedOrder,
    ) -> Result<Interpolator, SourceError> {
        Ok(Interpolator {
            start,
            rules,
            room: Room::default(),
            phase: Phase::Beginning,
            metrics: Metrics::new(start, untyped_order),
            coverage: Coverage::new(records, start, rules.marks)?,
            far: FarSearch::default(),
            reader: records.another()?,
            columns: Columns::default(),
            reported: HashSet::new(),
            left_out: Vec::new(),
            found_lanes: Vec::new(),
        })
    }

    /// Starts a new series of fetches, with time moving in direction `travel`.
    pub(super) fn restart(&mut self, travel: Travel) {
        self.phase = Phase::Beginning;
        self.reported.clear();
        if self.coverage.set_travel(travel) {
            self.forget();
        }
    }

    /// Continues after damage that made the last fetch fail. `None` if it failed for
    /// another reason; false if no record was found after the damage.
    pub(super) fn take_passed(&mut self) -> Option<bool> {
        self.phase.pass()
    }

    /// The bytes after the ends of archives (see [`Sequence::take_tails`]).
    pub(super) fn take_tails(&mut self) -> Vec<SourceError> {
        self.coverage.take_tails()
    }

    /// Problems of records that were left out and passed since the last call.
    pub(super) fn take_left_out(&mut self) -> Vec<SourceError> {
        std::mem::take(&mut self.left_out)
    }

    /// Sets the instances that are delivered.
    pub(super) fn set_profile(&mut self, profile: &InstanceProfile) {
        self.metrics.set_profile(profile);
        self.phase.forget_written();
    }

    /// Goes on with further archives (see [`Sequence::go_on_with`]). [`Interpolator::take_growth`]
    /// includes their records.
    pub(super) fn go_on_with(&mut self, archives: &Arc<[Arc<SingleArchive>]>) {
        self.reader.go_on_with(archives);
        self.coverage.go_on_with(archives);
    }

    /// Includes data written since. Records count up to `last_counted`, if it is given.
    /// Values before the end may be known now, and there may be new instances, and descriptors of
    /// metrics that a list requested without success.
    ///
    /// # Errors
    /// The metadata file cannot be read.
    pub(super) fn take_growth(
        &mut self,
        last_counted: Option<Place>,
        around: &mut Surroundings<'_>,
    ) -> Result<(), SourceError> {
        self.coverage.count_up_to(last_counted);
        self.forget();
        self.far.renew();
        self.metrics.renew(around)
    }

    /// True if no value still to be written is expected to change the values at `time`.
    /// Values of existing instances are expected for a few intervals of their metric.
    /// As long as that interval is unknown, it is a minute or `interval`, in seconds.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn is_settled(
        &mut self,
        list: &FetchList,
        time: Timestamp,
        interval: f64,
        around: &mut Surroundings<'_>,
    ) -> Result<bool, SourceError> {
        self.prepare(list, around)?;
        let cut = self.reach(time)?;
        for at in 0..self.metrics.wanted.len() {
            let Ok(id) = self.metrics.wanted[at] else { continue };
            let Track { desc, domain, .. } = *self.metrics.track(id);
            let looks_ahead = looks_ahead(desc.value_type, &self.rules);
            if desc.semantics == Semantics::Discrete && !looks_ahead {
                continue;
            }
            for lane in LaneId::first(self.metrics.domain(domain).lanes().len()) {
                let found = self.resolve((id, lane), &cut, true)?;
                let candidate = self.metrics.domain(domain).lane(lane);
                if found == Neighbours::Before
                    && candidate.is_admitted
                    && candidate.is_alive
                    && self.metrics.track(id).is_awaited(lane, interval, &self.coverage)
                {
                    return Ok(false);
                }
            }
            self.metrics.tracks[id.index()].note_interval(&self.coverage);
        }
        Ok(true)
    }

    /// Adds a part with the values of all metrics of `list` at `time`. True if a mark
    /// was passed since the last fetch.
    ///
    /// # Errors
    /// There is damage on the way to `time`. Another fetch continues after it.
    pub(super) fn fetch(
        &mut self,
        list: &FetchList,
        time: Timestamp,
        around: &mut Surroundings<'_>,
        batch: &mut ResultBatch,
    ) -> Result<bool, SourceError> {
        self.phase.pass();
        self.prepare(list, around)?;
        let cut = self.reach(time)?;
        if self.phase.last().is_none() && self.coverage.travel() == Travel::Backward {
            // Damage after the start of a backward series is not on its way, but it is
            // reported as a warning.
            let behind = self.coverage.take_damage_ahead().map(|met| met.error);
            self.left_out.extend(behind);
        }
        self.report((cut.from, cut.after))?;
        let is_crossed = self.phase.last().is_some_and(|last| {
            self.coverage.has_mark_within((last.min(cut.time), last.max(cut.time)))
        });
        let here = (time, &cut);
        let again = match self.phase.take_written() {
            Some(written) if !is_crossed => self.write_again(written, here, batch)?,
            _ => None,
        };
        let written = match again {
            None => self.write(list, here, is_crossed, batch)?,
            again => again,
        };
        self.prune(&cut);
        self.coverage.release();
        self.phase = Phase::Continuing { last: cut.time, written };
        Ok(is_crossed)
    }

    /// Reads the records between the last fetch and the end of the archive in direction
    /// `travel`.
    ///
    /// # Errors
    /// There is unreported damage. Another call continues after it.
    pub(super) fn read_rest(&mut self, travel: Travel) -> Result<(), SourceError> {
        if self.phase.last().is_none() {
            return Ok(());
        }
        let (end, all) = match travel {
            Travel::Forward => (Timestamp::new(i64::MAX, 0), (Ordinal::MAX, Ordinal::MAX)),
            Travel::Backward => (Timestamp::new(i64::MIN, 0), (Ordinal::MIN, Ordinal::MIN)),
        };
        self.reach(end)?;
        self.report(all)
    }

    /// Fails if there is unreported damage up to a place among the records (see
    /// [`Coverage::take_damage`]).
    fn report(&mut self, (from, after): (Ordinal, Ordinal)) -> Result<(), SourceError> {
        while let Some(met) = self.coverage.take_damage(from, after) {
            if met.is_passed_over {
                self.left_out.push(met.error);
            } else if self.reported.insert(met.error.to_string()) {
                // Records that were forgotten are read again, and their damage is met
                // again.
                let goes_on = self.coverage.goes_on_after(&met);
                self.phase = Phase::Stopped { last: self.phase.last(), goes_on };
                return Err(met.error);
            }
        }
        Ok(())
    }

    fn prepare(
        &mut self,
        list: &FetchList,
        around: &mut Surroundings<'_>,
    ) -> Result<(), SourceError> {
        match self.metrics.prepare(list, around)? {
            ListChange::Nothing => {}
            ListChange::List => self.phase.forget_written(),
            // The new metrics were not noted in the covered records.
            ListChange::Metrics => self.forget(),
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.phase.forget_written();
        self.coverage.clear();
        self.columns.forget();
        self.metrics.forget();
        self.far.forget();
    }

    /// Covers the records around a time, and returns its place among them.
    fn reach(&mut self, when: Timestamp) -> Result<Cut, SourceError> {
        let time = when.seconds_since(self.start);
        let is_far = self.phase.last().is_none() && !self.coverage.spans(time);
        if self.coverage.is_empty() || is_far {
            self.forget();
            self.coverage.begin(self.last_time().map_or(when, |last| last.min(when)))?;
        }
        for side in [Side::Ahead, Side::Behind] {
            while !self.coverage.reaches(side, time) {
                self.extend(side);
                self.make_room(side, time);
            }
        }
        let (from, after) = self.coverage.around(time);
        Ok(Cut { time, from, after })
    }

    /// Time of the last fetch, rounded down a little so that later marks count.
    fn last_time(&self) -> Option<Timestamp> {
        let nanoseconds = (self.phase.last()? * 1e9) as i64;
        let since = i64::from(self.start.nsec).saturating_add(nanoseconds);
        Some(Timestamp::new(self.start.sec, since.saturating_sub(1000)))
    }

    /// Finds the values around a time in a lane of a track. Covers more records as
    /// needed, up to the limit of [`Room`]; beyond it, `far` finds the values.
    fn resolve(
        &mut self,
        (track, lane): (TrackId, LaneId),
        cut: &Cut,
        looks_ahead: bool,
    ) -> Result<Neighbours, SourceError> {
        loop {
            match self.search((track, lane), cut, looks_ahead)? {
                Search::Done(found) => return Ok(found),
                Search::Lacks(side) if self.may_extend(side, cut) => self.extend(side),
                Search::Lacks(side) => self.look_far(side, cut)?,
            }
        }
    }

    /// Searches for a value among the covered records only.
    fn search(
        &mut self,
        (track, lane): (TrackId, LaneId),
        cut: &Cut,
        looks_ahead: bool,
    ) -> Result<Search, SourceError> {
        let (track, mut sources) = self.track_and_sources(track);
        track.find(lane, cut, looks_ahead, &mut sources)
    }

    /// A track, with the input of the search for its values.
    fn track_and_sources(&mut self, track: TrackId) -> (&mut Track, Sources<'_>) {
        let track = &mut self.metrics.tracks[track.index()];
        let sources = Sources {
            coverage: &self.coverage,
            candidates: &self.metrics.domains[track.domain.index()],
            reader: &mut self.reader,
            columns: &mut self.columns,
        };
        (track, sources)
    }

    /// Covers one more record.
    fn extend(&mut self, side: Side) {
        let Some((ordinal, record)) = self.coverage.extend(side) else { return };
        let noted = match self.coverage.bytes(side, &record) {
            Ok(bytes) => self.metrics.note(side, ordinal, (&record, bytes)),
            Err(error) => return self.coverage.spoil(side, ordinal, error),
        };
        if let Err(mut damage) = noted {
            damage.offset += record.offset;
            let error = self.coverage.damaged(side, damage);
            self.coverage.spoil(side, ordinal, error);
        }
    }
}
