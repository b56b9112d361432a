//! Values at times between the records (`PM_MODE_INTERP` of pmSetMode(3)).
//!
//! ```text
//!   time ──► coverage   records around the time: read once, as far as needed
//!               │       in either direction; marks
//!               ▼
//!            track      per metric, in which of these records it occurs; per
//!               │       instance (candidates), the values before and after
//!               ▼
//!            value      the rule for the metric's type and semantics; as long
//!               │       as nothing else would be found, it is all there is to do
//!               │       (steady), and numbers are all that is written anew
//!               ▼
//!            ResultPart
//! ```
//!
//! A value comes from the last record before the time that holds the instance
//! and the first one after it, however far away these are; only marks, and
//! damage, break the line.

mod candidates;
mod column;
mod coverage;
mod far;
mod room;
mod rules;
mod steady;
mod track;
mod value;
mod write;

use std::collections::{HashMap, HashSet};

pub use self::rules::{InterpolationRules, MarkRule, Neighbour, Overflow};

use self::candidates::Candidates;
use self::column::Columns;
use self::coverage::{Coverage, Ordinal, Side};
use self::far::Census;
use self::room::Room;
use self::steady::{SteadyLane, Stretch};
use self::track::{Cut, Found, Sources, Track};
use self::value::looks_ahead;
use crate::archive::meta::Metadata;
use crate::archive::sequence::{Place, Sequence, Travel};
use crate::archive::untyped::UntypedOrder;
use crate::archive::values::{SetRange, SlotTable, check, walk};
use pmderive_core::model::{
    InDom, InstId, InstanceProfile, PmStatus, Pmid, Semantics, Timestamp, ValueType,
};
use pmderive_core::result::{LayoutId, ResultBatch};
use pmderive_core::source::{FetchList, SourceError};

/// Interpolates the metrics that were asked for so far.
pub(super) struct Interpolator {
    start: Timestamp,
    rules: InterpolationRules,
    untyped_order: UntypedOrder,
    room: Room,
    coverage: Coverage,
    /// Looks beyond what is covered, once that was necessary.
    far: Option<Box<Coverage>>,
    /// Lanes that are looked for there: tracks and lanes in them.
    missing: Vec<(usize, usize)>,
    /// Something was looked for there that does not exist.
    was_in_vain: bool,
    /// What it takes to look for no such thing again.
    census: Option<Census>,
    /// Number of records looked at there.
    #[cfg(test)]
    passed: usize,
    /// Number of value sets noted in the records covered.
    noted: usize,
    /// Reads records again, for their values.
    reader: Sequence,
    columns: Columns,
    domains: Vec<Candidates>,
    domain_of: HashMap<Option<InDom>, usize>,
    tracks: Vec<Track>,
    /// Slots of metrics in `tracks`.
    slots: SlotTable,
    /// List prepared for, with a track or a status for each of its metrics.
    list: Option<u64>,
    wanted: Vec<Result<usize, PmStatus>>,
    /// Time of the fetch before, while it counts.
    last: Option<f64>,
    /// Where the last time was among the records covered.
    place: (Ordinal, Ordinal),
    /// The fetch that failed last did so because of damage that it told of
    /// once: another one goes on.
    has_passed: bool,
    /// The damage that was told of since time began to pass.
    told: HashSet<String>,
    left_out: Vec<SourceError>,
    /// The layout of the columns that were written last, and where numbers are all
    /// that has to be written anew; `None` if there are other values.
    unchanged: Option<(LayoutId, Stretch)>,
    found: Vec<(usize, SetRange)>,
    /// Lanes of the metric that is written.
    found_lanes: Vec<SteadyLane>,
    scratch: Vec<InstId>,
}

/// What an interpolated fetch needs beside the list.
pub(super) struct Surroundings<'a> {
    pub(super) metadata: &'a mut Metadata,
    pub(super) profile: &'a InstanceProfile,
}

impl Interpolator {
    pub(super) fn new(
        records: &Sequence,
        start: Timestamp,
        rules: InterpolationRules,
        untyped_order: UntypedOrder,
    ) -> Result<Interpolator, SourceError> {
        let mut slots = SlotTable::default();
        slots.assign([].into_iter());
        Ok(Interpolator {
            start,
            rules,
            untyped_order,
            room: Room::default(),
            coverage: Coverage::new(records, start, rules.marks)?,
            far: None,
            missing: Vec::new(),
            was_in_vain: false,
            census: None,
            #[cfg(test)]
            passed: 0,
            noted: 0,
            reader: records.another()?,
            columns: Columns::default(),
            domains: Vec::new(),
            domain_of: HashMap::new(),
            tracks: Vec::new(),
            slots,
            list: None,
            wanted: Vec::new(),
            last: None,
            place: (0, 0),
            has_passed: false,
            told: HashSet::new(),
            left_out: Vec::new(),
            unchanged: None,
            found: Vec::new(),
            found_lanes: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// The next fetch does not continue those before, and time passes in a
    /// direction from now on.
    pub(super) fn restart(&mut self, travel: Travel) {
        self.last = None;
        self.told.clear();
        if self.coverage.set_travel(travel) {
            self.forget();
        }
    }

    /// True when the fetch before failed because of damage that another one
    /// goes on behind.
    pub(super) fn take_passed(&mut self) -> bool {
        std::mem::take(&mut self.has_passed)
    }

    /// What archives that were read have behind their ends, see
    /// [`Sequence::take_tails`].
    pub(super) fn take_tails(&mut self) -> Vec<SourceError> {
        self.coverage.take_tails()
    }

    /// What is wrong with records that were left out, as far as that was passed
    /// since this was asked last.
    pub(super) fn take_left_out(&mut self) -> Vec<SourceError> {
        std::mem::take(&mut self.left_out)
    }

    /// Takes over which instances are delivered.
    pub(super) fn set_profile(&mut self, profile: &InstanceProfile) {
        self.domains.iter_mut().for_each(|domain| domain.apply(profile));
        self.tracks.iter_mut().for_each(|track| track.steady.forget());
        self.unchanged = None;
    }

    /// Takes in what was written since; records count up to `last_counted` if
    /// that is given. Values before the end may have become known, instances
    /// have come, and metrics been described that a list asked for in vain.
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
        (self.far, self.list) = (None, None);
        self.missing.clear();
        self.domains.clear();
        self.domain_of.clear();
        for at in 0..self.tracks.len() {
            let Track { desc, last_count, .. } = self.tracks[at];
            let domain = self.domain(desc.indom, around)?;
            self.tracks[at] =
                Track::new(desc, self.untyped_order, domain, self.domains[domain].lanes().len());
            self.tracks[at].last_count = last_count;
        }
        Ok(())
    }

    /// True when no value that is still to be written is expected to change
    /// what there is at `time`. Values are expected of instances that are still
    /// there, for a while that depends on the metric's interval, or on
    /// `interval`, in seconds, as long as that is unknown.
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
        for at in 0..self.wanted.len() {
            let Ok(number) = self.wanted[at] else { continue };
            let Track { desc, domain, .. } = self.tracks[number];
            let looks_ahead = looks_ahead(desc.value_type, &self.rules);
            if desc.semantics == Semantics::Discrete && !looks_ahead {
                continue;
            }
            let mut lane = 0;
            while let Some(candidate) = self.domains[domain].lanes().get(lane).copied() {
                let mut sources = Sources {
                    coverage: &self.coverage,
                    candidates: &self.domains[domain],
                    reader: &mut self.reader,
                    columns: &mut self.columns,
                };
                let track = &mut self.tracks[number];
                match track.find(lane, &cut, true, &mut sources)? {
                    Found::Need(side) => {
                        match self.may_extend(side, &cut) {
                            true => self.extend(side),
                            false => self.look_far(side, &cut)?,
                        }
                        continue;
                    }
                    Found::Before
                        if candidate.is_admitted
                            && candidate.is_alive
                            && track.is_awaited(lane, interval, &self.coverage) =>
                    {
                        return Ok(false);
                    }
                    _ => {}
                }
                lane += 1;
            }
        }
        Ok(true)
    }

    /// Adds a part with the values of all metrics of `list` at `time`. True
    /// when a mark was passed since the fetch before.
    ///
    /// # Errors
    /// There was damage on the way to `time`; another fetch goes on behind it.
    pub(super) fn fetch(
        &mut self,
        list: &FetchList,
        time: Timestamp,
        around: &mut Surroundings<'_>,
        batch: &mut ResultBatch,
    ) -> Result<bool, SourceError> {
        self.prepare(list, around)?;
        let cut = self.reach(time)?;
        if self.last.is_none() && self.coverage.travel() == Travel::Backward {
            // What lies right behind the way back is not on it, but no secret.
            let behind = self.coverage.take_damage_ahead().map(|met| met.error);
            self.left_out.extend(behind);
        }
        self.tell((cut.from, cut.after))?;
        let is_crossed = self.last.is_some_and(|last| {
            self.coverage.has_mark_within((last.min(cut.time), last.max(cut.time)), self.place)
        });
        let here = (time, &cut);
        if is_crossed || !self.write_again(here, batch) {
            self.write(list, here, is_crossed, batch)?;
        }
        self.prune(&cut);
        self.last = Some(cut.time);
        Ok(is_crossed)
    }

    /// For who has come to an end of the archive: reads what lies between the
    /// fetch before and that end.
    ///
    /// # Errors
    /// There is damage that nobody was told of; another call goes on behind it.
    pub(super) fn read_rest(&mut self, travel: Travel) -> Result<(), SourceError> {
        if self.last.is_none() {
            return Ok(());
        }
        let (end, all) = match travel {
            Travel::Forward => (Timestamp::new(i64::MAX, 0), (Ordinal::MAX, Ordinal::MAX)),
            Travel::Backward => (Timestamp::new(i64::MIN, 0), (Ordinal::MIN, Ordinal::MIN)),
        };
        self.reach(end)?;
        self.tell(all)
    }

    /// Fails if there is damage that nobody was told of up to a place among the
    /// records, see [`Coverage::take_damage`].
    fn tell(&mut self, (from, after): (Ordinal, Ordinal)) -> Result<(), SourceError> {
        while let Some(met) = self.coverage.take_damage(from, after) {
            if met.is_passed_over {
                self.left_out.push(met.error);
            } else if self.told.insert(met.error.to_string()) {
                // What was forgotten is met again.
                self.has_passed = true;
                return Err(met.error);
            }
        }
        Ok(())
    }

    /// Finds the metrics of a list, and begins to follow new ones.
    fn prepare(
        &mut self,
        list: &FetchList,
        around: &mut Surroundings<'_>,
    ) -> Result<(), SourceError> {
        if self.list == Some(list.id()) {
            return Ok(());
        }
        self.list = None;
        self.unchanged = None;
        self.wanted.clear();
        let known = self.tracks.len();
        let is_new = |pmid: &&Pmid| self.slots.slot(**pmid).is_none();
        let new = list.pmids().iter().filter(is_new).count();
        self.tracks.reserve_exact(new);
        self.wanted.reserve_exact(list.pmids().len());
        for pmid in list.pmids() {
            let slot = self.slots.slot(*pmid);
            let wanted = match (slot, around.metadata.desc(*pmid)) {
                (Some(slot), _) => Ok(slot),
                // A fetch leaves such a place alone.
                _ if *pmid == Pmid::NULL => Err(PmStatus(0)),
                // As libpcp has it, what the system does not support is not there.
                (None, Some(desc)) if desc.value_type == ValueType::NoSupport => {
                    Err(PmStatus::PMID_LOG)
                }
                (None, None) => Err(PmStatus::PMID_LOG),
                (None, Some(desc)) => {
                    let domain = self.domain(desc.indom, around)?;
                    let lanes = self.domains[domain].lanes().len();
                    self.tracks.push(Track::new(desc, self.untyped_order, domain, lanes));
                    Ok(self.tracks.len() - 1)
                }
            };
            self.wanted.push(wanted);
        }
        if self.tracks.len() != known {
            self.slots.assign(self.tracks.iter().map(|track| track.desc.pmid));
            // The records covered were not searched for the new ones.
            self.forget();
        }
        self.list = Some(list.id());
        Ok(())
    }

    fn domain(
        &mut self,
        indom: Option<InDom>,
        around: &mut Surroundings<'_>,
    ) -> Result<usize, SourceError> {
        if let Some(known) = self.domain_of.get(&indom) {
            return Ok(*known);
        }
        let candidates = match indom {
            None => Candidates::singular(),
            Some(indom) => {
                let lives = around.metadata.lives(indom)?;
                // Without any record of its instances there are none.
                let lives = lives.unwrap_or_default();
                let mut candidates = Candidates::of_domain(indom, &lives, self.start);
                candidates.apply(around.profile);
                candidates
            }
        };
        self.domains.push(candidates);
        self.domain_of.insert(indom, self.domains.len() - 1);
        Ok(self.domains.len() - 1)
    }

    fn forget(&mut self) {
        self.coverage.clear();
        self.columns.forget();
        self.tracks.iter_mut().for_each(Track::forget);
        self.unchanged = None;
        self.noted = 0;
        (self.census, self.was_in_vain) = (None, false);
    }

    /// Covers the records around a time, and says where it is among them.
    fn reach(&mut self, when: Timestamp) -> Result<Cut, SourceError> {
        let time = when.seconds_since(self.start);
        let is_far = self.last.is_none() && !self.coverage.spans(time);
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
        self.place = self.coverage.around(time, self.place);
        let (from, after) = self.place;
        Ok(Cut { time, from, after })
    }

    /// Time of the fetch before, or a little earlier: marks since then count.
    fn last_time(&self) -> Option<Timestamp> {
        let nanoseconds = (self.last? * 1e9) as i64;
        let since = i64::from(self.start.nsec).saturating_add(nanoseconds);
        Some(Timestamp::new(self.start.sec, since.saturating_sub(1000)))
    }

    /// Covers one more record.
    fn extend(&mut self, side: Side) {
        let Interpolator { coverage, tracks, domains, slots, found, scratch, .. } = self;
        let Some((ordinal, record)) = coverage.extend(side) else { return };
        let bytes = match coverage.bytes(side, &record) {
            Ok(bytes) => bytes,
            Err(error) => return coverage.spoil(side, ordinal, error),
        };
        found.clear();
        let walked = walk(bytes, record.first_set, record.set_count, |pmid, set| {
            found.extend(slots.slot(pmid).map(|track| (track, set)));
        });
        let walked = walked.and_then(|_| match found.is_empty() {
            true => Ok(()),
            false => check(bytes, record.first_set, record.set_count),
        });
        if let Err(mut damage) = walked {
            damage.offset += record.offset;
            let error = coverage.damaged(side, damage);
            return coverage.spoil(side, ordinal, error);
        }
        self.noted += found.len();
        for (track, set) in found {
            let track = &mut tracks[*track];
            let candidates = &mut domains[track.domain];
            let set = (set.start, &bytes[set.start..set.end]);
            track.note(side, ordinal, set, candidates, scratch);
        }
    }
}
