//! Fetches from an archive, in every mode of `pmSetMode(3)`.
//!
//! Input: a position in time and a direction. Output: what [`FetchSource`]
//! promises. Record by record, values stay as they are encoded; what is
//! between records comes from `interpolation`.

use pmderive_core::model::{InstanceProfile, PmStatus, Pmid, Timestamp, UtcTime, ValueType};
use pmderive_core::result::{FetchResult, ResultBatch};
use pmderive_core::source::{FetchEvents, FetchList, FetchSource, Mode, SourceError};

use crate::archive::context::ArchiveContext;
use crate::archive::interpolation::Interpolator;
use crate::archive::meta::Metadata;
use crate::archive::record::Damage;
use crate::archive::sequence::{LeftOut, Travel};
use crate::archive::untyped::give_types;
use crate::archive::values::{BLOCK_ORIGIN, check};
use crate::archive::volume::Record;

/// How far a time may lie outside of the archive, in seconds.
const TOLERANCE: f64 = 0.001;

impl ArchiveContext {
    /// Makes the next fetch deliver the first record at `when` or later
    /// (`pmSetMode(3)` with `PM_MODE_FORW`), and `when` the origin.
    ///
    /// # Errors
    /// The first data volume can no longer be opened.
    pub fn set_position(&mut self, when: Timestamp) -> Result<(), SourceError> {
        self.position(Mode::Forward, when)
    }

    /// True if the record that was fetched last, forward or backward, has one
    /// of the metrics fetched, be it without values. In a result, a metric
    /// that a record lacks has no values either.
    pub fn record_holds(&self, pmid: Pmid) -> bool {
        self.selection.holds(pmid)
    }

    fn position(&mut self, mode: Mode, when: Timestamp) -> Result<(), SourceError> {
        self.mode = mode;
        self.origin = when;
        self.next_sample = when;
        (self.seeking, self.is_leaving_out) = (true, false);
        self.gap = false;
        if let Some(interpolator) = &mut self.interpolator {
            interpolator.restart(travel(mode));
        }
        self.records.set_travel(travel(mode));
        if self.following.is_none() && self.can_grow() {
            self.refresh_metadata()?;
            self.take_growth()?;
        }
        match mode {
            Mode::Forward => self.records.seek(when),
            Mode::Backward => self.records.seek_behind(when),
            Mode::Interpolated { .. } | Mode::Live => {
                // The interpolator reads for itself.
                self.records.rest();
                Ok(())
            }
        }
    }

    /// The record that is next in the direction of the mode, marks included,
    /// with all its metrics and whatever the profile says
    /// (`pmFetchArchive(3)`). A mark has no value sets; between two archives
    /// there is always one. Its time becomes the origin.
    ///
    /// # Errors
    /// `PM_ERR_MODE` when values are interpolated, `PM_ERR_EOL` at the end;
    /// damage, behind which the next call goes on.
    pub fn next_record(&mut self) -> Result<FetchResult, SourceError> {
        let record = loop {
            match self.step() {
                Err(error) => self.pass_over(error)?,
                Ok(record) => break record,
            }
        };
        let Some(record) = record else { return Err(self.status(PmStatus::EOL)) };
        self.describe(&record)?;
        let mut batch = ResultBatch::default();
        let part = batch.add_part();
        let bytes = self.records.bytes(&record)?;
        // The mark between two archives has no bytes.
        if !record.is_mark()
            && let Err(mut damage) = check(bytes, record.first_set, record.set_count)
        {
            self.gap = true;
            damage.offset += record.offset;
            return Err(self.records.damaged(damage));
        }
        part.timestamp = record.stamp;
        let wire = part.set_wire();
        wire.bytes.extend_from_slice(bytes);
        wire.first_set = record.first_set;
        wire.set_count = record.set_count;
        wire.block_origin = BLOCK_ORIGIN;
        give_types(wire, self.untyped_order, type_in(&self.metadata));
        self.origin = record.stamp;
        self.gap = false;
        Ok(FetchResult::of_batch(&batch, Default::default()))
    }

    /// Moves to the next record in the direction of the mode that does not lie
    /// on the other side of the origin. `None` at the end.
    fn step(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let read = match self.mode {
                Mode::Forward if self.records.is_behind(self.last_counted()) => Ok(None),
                Mode::Forward => self.records.next(),
                Mode::Backward => self.records.previous(),
                Mode::Interpolated { .. } | Mode::Live => {
                    return Err(self.status(PmStatus::MODE));
                }
            };
            for LeftOut { error, count } in self.records.take_left_out() {
                self.left_out += count;
                self.warn(error);
            }
            let Some(record) = read? else { return Ok(None) };
            let is_passed_over = match self.mode {
                Mode::Backward => record.stamp > self.origin,
                _ => record.stamp < self.origin,
            };
            if !is_passed_over {
                (self.seeking, self.is_leaving_out) = (false, false);
                return Ok(Some(record));
            }
            self.gap |= record.is_mark() && !self.seeking;
            let is_lost = !self.seeking && !record.is_mark();
            if is_lost && !std::mem::replace(&mut self.is_leaving_out, true) {
                self.warn_of_time(&record);
            }
        }
    }

    /// Warns of records that are passed over since their times are on the other
    /// side of the origin, as libpcp does it. This is the first one.
    fn warn_of_time(&mut self, record: &Record) {
        let (time, origin) = (UtcTime(record.stamp), UtcTime(self.origin));
        let message = format!(
            "data record: its time, {time}, lies on the other side of {origin}, when values were \
             delivered last; records are left out, until times go on from there"
        );
        let damage = Damage::new(PmStatus::LOGREC, record.offset, message);
        self.warn(self.records.damaged(damage));
    }

    /// Moves to the next record that is no mark and holds one of the metrics,
    /// and copies it to a part of `batch`. False at the end.
    fn next_selected(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<bool, SourceError> {
        self.selection.prepare(list);
        while let Some(record) = self.step()? {
            if record.is_mark() {
                self.gap = true;
                continue;
            }
            let bytes = self.records.bytes(&record)?;
            let selected = match self.selection.scan(bytes, record.first_set, record.set_count) {
                // Without metrics every record counts: constants have a value in each.
                Ok(any) => any || list.pmids().is_empty(),
                Err(mut damage) => {
                    self.gap = true;
                    damage.offset += record.offset;
                    return Err(self.records.damaged(damage));
                }
            };
            if !selected {
                continue;
            }
            self.describe(&record)?;
            let bytes = self.records.bytes(&record)?;
            let part = batch.add_part();
            part.timestamp = record.stamp;
            let wire = part.set_wire();
            wire.bytes.extend_from_slice(bytes);
            wire.first_set = wire.bytes.len();
            wire.set_count = list.pmids().len();
            wire.block_origin = BLOCK_ORIGIN;
            match self.profile.is_everything() {
                true => self.selection.append_sets(list.pmids(), &mut wire.bytes),
                false => {
                    let (metadata, profile) = (&self.metadata, &self.profile);
                    self.selection.append_admitted(list.pmids(), &mut wire.bytes, |pmid, id| {
                        let indom = metadata.desc(pmid).and_then(|desc| desc.indom);
                        indom.is_none_or(|indom| profile.admits(indom, id))
                    });
                }
            }
            give_types(wire, self.untyped_order, type_in(&self.metadata));
            self.origin = record.stamp;
            return Ok(true);
        }
        Ok(false)
    }

    /// Fetches at the next point in time, and steps on. False at both ends of
    /// the archive.
    fn next_interpolated(
        &mut self,
        step: i64,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<bool, SourceError> {
        let time = self.next_sample;
        let seconds = time.seconds_since(self.label.start);
        if self.following.is_some() {
            if self.is_awaited(step, list)? {
                return Ok(false);
            }
        } else if seconds < -TOLERANCE || self.is_behind_end(seconds)? {
            if self.passes_over_damage {
                self.check_rest()?;
            }
            self.next_sample = later(time, step);
            return Ok(false);
        }
        self.next_sample = later(time, step);
        let mut interpolator = self.interpolator()?;
        let fetched = interpolator.fetch(list, time, &mut self.surroundings(), batch);
        let left_out = interpolator.take_left_out();
        self.interpolator = Some(interpolator);
        left_out.into_iter().for_each(|error| self.warn(error));
        self.gap = fetched?;
        self.origin = time;
        Ok(true)
    }

    /// For who has come to the end of an archive that is not followed: bytes
    /// behind the last record that are too few for a length are no record that
    /// is still to come, which becomes a warning. And between the last
    /// interpolated sample and the end there may be damage that none of them has
    /// passed. A fetch that finds the end looks as well, unless nothing is
    /// passed over: libpcp does not look.
    ///
    /// # Errors
    /// There is, and nobody was told yet; another call goes on behind it.
    pub fn check_rest(&mut self) -> Result<(), SourceError> {
        if self.following.is_some() {
            return Ok(());
        }
        let mut met = self.records.take_tails();
        let mut read = Ok(());
        if let Some(interpolator) = &mut self.interpolator
            && matches!(self.mode, Mode::Interpolated { .. })
        {
            read = interpolator.read_rest(travel(self.mode));
            met.extend(interpolator.take_tails());
            let left_out = interpolator.take_left_out();
            left_out.into_iter().for_each(|error| self.warn(error));
        }
        if self.passes_over_damage {
            met.into_iter().for_each(|error| self.warn(error));
        }
        read
    }

    /// The interpolator, to be put back.
    fn interpolator(&mut self) -> Result<Box<Interpolator>, SourceError> {
        if let Some(interpolator) = self.interpolator.take() {
            return Ok(interpolator);
        }
        let mut new =
            Interpolator::new(&self.records, self.label.start, self.rules, self.untyped_order)?;
        new.restart(travel(self.mode));
        new.take_growth(self.last_counted(), &mut self.surroundings())?;
        Ok(Box::new(new))
    }

    /// True when it is too early for the next sample of an archive that is
    /// followed: what counts does not reach its time, or values are expected
    /// that it depends on.
    fn is_awaited(&mut self, step: i64, list: &FetchList) -> Result<bool, SourceError> {
        let time = self.next_sample;
        if self.following.as_ref().is_some_and(|following| Some(time) > following.end) {
            return Ok(true);
        }
        let interval = Timestamp::new(0, step.saturating_abs()).to_seconds();
        let mut interpolator = self.interpolator()?;
        let settled = interpolator.is_settled(list, time, interval, &mut self.surroundings());
        self.interpolator = Some(interpolator);
        Ok(!settled?)
    }

    /// Of several archives, makes a warning of damage that reading goes on behind.
    ///
    /// # Errors
    /// The error itself, where reading does not go on or somebody has to know:
    /// archives that overlap are no damage.
    fn pass_over(&mut self, error: SourceError) -> Result<(), SourceError> {
        let is_one_of_several = self.passes_over_damage && self.records.archives().len() > 1;
        let is_damage = is_one_of_several && error.status() != PmStatus::LOGOVERLAP;
        let is_passed = match (&mut self.interpolator, self.mode) {
            (Some(interpolator), Mode::Interpolated { .. }) => interpolator.take_passed(),
            _ => is_damage && self.records.take_lost(),
        };
        if !is_damage || !is_passed {
            return Err(error);
        }
        self.gap = true;
        self.warn(error);
        Ok(())
    }

    /// True for times behind the last record. The end is looked for only when
    /// a time lies clearly behind where it was last.
    fn is_behind_end(&mut self, seconds: f64) -> Result<bool, SourceError> {
        if self.known_end.is_none() {
            // Damage where there is no record at all is told, not passed over.
            self.extent()?;
        }
        if seconds <= *self.known_end.get_or_insert(0.0) + TOLERANCE {
            return Ok(false);
        }
        let end = self.extent()?;
        self.known_end = Some(end);
        if self.can_grow() {
            self.refresh_metadata()?;
            self.take_growth()?;
        }
        Ok(seconds > end)
    }

    /// Seconds from the start to the end, where there is no record none.
    fn extent(&mut self) -> Result<f64, SourceError> {
        match self.end_time() {
            Ok(end) => Ok(end.seconds_since(self.label.start)),
            Err(error) => match self.records.another()?.next()? {
                None => Ok(0.0),
                Some(_) => Err(error),
            },
        }
    }
}

/// The type of a metric that is described.
fn type_in(metadata: &Metadata) -> impl Fn(Pmid) -> Option<ValueType> {
    |pmid| Some(metadata.desc(pmid)?.value_type)
}

fn later(time: Timestamp, step: i64) -> Timestamp {
    Timestamp::new(time.sec, i64::from(time.nsec).saturating_add(step))
}

/// The direction in which time passes in a mode.
fn travel(mode: Mode) -> Travel {
    match mode {
        Mode::Backward => Travel::Backward,
        Mode::Interpolated { step } if step < 0 => Travel::Backward,
        _ => Travel::Forward,
    }
}

impl FetchSource for ArchiveContext {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        batch.clear();
        let sample = self.next_sample;
        let is_there = loop {
            let fetched = match self.mode {
                Mode::Interpolated { step } => self.next_interpolated(step, list, batch),
                _ => self.next_selected(list, batch),
            };
            match fetched {
                Ok(is_there) => break is_there,
                Err(error) => self.pass_over(error)?,
            }
            batch.clear();
            self.next_sample = sample;
        };
        if !is_there {
            return Err(self.status(PmStatus::EOL));
        }
        for indom in list.domains() {
            let domain = self.domain_at_origin(*indom)?;
            batch.domains.push(domain);
        }
        let metadata_changed =
            std::mem::replace(&mut self.reported_epoch, self.epoch) != self.epoch;
        let gap = std::mem::take(&mut self.gap) | self.records.take_lost();
        Ok(FetchEvents { metadata_changed, gap, ..FetchEvents::default() })
    }

    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        self.profile.clone_from(profile);
        if let Some(interpolator) = &mut self.interpolator {
            interpolator.set_profile(profile);
        }
        Ok(())
    }

    /// Positions the context at `when`, or at its origin. Forward, the first
    /// record at that time or later comes next, backward the last one up to
    /// it; interpolated, the first fetch is of that very time. Positions
    /// outside of the archive are allowed.
    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        if mode == Mode::Live {
            return Err(self.status(PmStatus::MODE));
        }
        self.position(mode, when.unwrap_or(self.origin))
    }
}
