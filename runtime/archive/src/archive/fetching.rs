//! Fetches from an archive, in every mode of `pmSetMode(3)`.
//!
//! Input: a position in time and a direction. Output: the results that [`FetchSource`]
//! promises. Values fetched record by record stay encoded, unless they differ from those
//! before in nothing but numbers. `interpolation` makes the values between records.

use std::io::ErrorKind;

use pmderive_core::model::{InstanceProfile, PmStatus, Pmid, Timestamp, UtcTime, ValueType};
use pmderive_core::result::{FetchResult, ResultBatch};
use pmderive_core::source::{FetchEvents, FetchList, FetchSource, Mode, SourceError};

use crate::archive::context::{ArchiveContext, Passing};
use crate::archive::framing::Damage;
use crate::archive::interpolation::Interpolator;
use crate::archive::meta::Metadata;
use crate::archive::order::Travel;
use crate::archive::untyped::give_types;
use crate::archive::values::{BLOCK_ORIGIN, check};
use crate::archive::volume::Record;
use crate::archive::volumes::LeftOut;

/// A time may lie this many seconds outside of the archive.
const TOLERANCE: f64 = 0.001;

impl ArchiveContext {
    /// Makes the next fetch deliver the first record at `when` or later (`pmSetMode(3)`
    /// with `PM_MODE_FORW`). `when` becomes the origin.
    ///
    /// # Errors
    /// The first data volume can no longer be opened.
    pub fn set_position(&mut self, when: Timestamp) -> Result<(), SourceError> {
        self.position(Mode::Forward, when)
    }

    /// True if the last record that was fetched forward or backward has a metric, one
    /// of those fetched, with or without values. The result itself cannot tell: a
    /// metric that the record lacks has no values either.
    pub fn record_holds(&self, pmid: Pmid) -> bool {
        self.selection.holds(pmid)
    }

    /// The time of the last mark that was passed since the mode was set; of records that
    /// are fetched forward or backward.
    pub fn last_mark(&self) -> Option<Timestamp> {
        self.last_mark
    }

    fn position(&mut self, mode: Mode, when: Timestamp) -> Result<(), SourceError> {
        self.mode = mode;
        self.origin = when;
        self.next_sample = when;
        (self.seeking, self.is_leaving_out) = (true, false);
        (self.gap, self.last_mark) = (false, None);
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
            Mode::Backward => self.records.seek_after(when),
            Mode::Interpolated { .. } | Mode::Live => {
                // The interpolator reads records by itself.
                self.records.release();
                Ok(())
            }
        }
    }

    /// The next record in the direction of the mode, with all its metrics and
    /// regardless of the profile (`pmFetchArchive(3)`). Its time becomes the origin.
    /// Marks count as records and have no value sets. There is always a mark between
    /// two archives.
    ///
    /// # Errors
    /// `PM_ERR_MODE` if values are interpolated; `PM_ERR_EOL` at the end; damage that is
    /// not passed over, which the next call continues after.
    pub fn next_record(&mut self) -> Result<FetchResult, SourceError> {
        let mut batch = ResultBatch::default();
        self.read_record(&mut batch)?;
        Ok(FetchResult::of_batch(&batch, Default::default()))
    }

    /// The same as [`ArchiveContext::next_record`], with the values still encoded.
    ///
    /// # Errors
    /// As for [`ArchiveContext::next_record`].
    pub fn read_record(&mut self, batch: &mut ResultBatch) -> Result<(), SourceError> {
        batch.clear();
        let record = loop {
            match self.step().and_then(|record| self.checked(record)) {
                Err(error) => self.pass_over(error)?,
                Ok(record) => break record,
            }
        };
        let Some(record) = record else { return Err(self.status(PmStatus::EOL)) };
        self.describe(&record)?;
        let part = batch.add_part();
        let bytes = self.records.bytes(&record)?;
        part.timestamp = record.stamp;
        let wire = part.set_wire();
        wire.bytes.extend_from_slice(bytes);
        wire.first_set = record.first_set;
        wire.set_count = record.set_count;
        wire.block_origin = BLOCK_ORIGIN;
        give_types(wire, self.untyped_order, type_in(&self.metadata));
        self.origin = record.stamp;
        let is_gap = std::mem::take(&mut self.gap) | self.records.take_lost();
        // libpcp 6 does not notice that records are skipped.
        self.follows_damage = is_gap && self.passing != Passing::Nothing;
        Ok(())
    }

    /// True if records were lost before the one that [`ArchiveContext::read_record`] or
    /// [`ArchiveContext::next_record`] returned last. A difference to the record before
    /// it says nothing.
    pub fn follows_damage(&self) -> bool {
        self.follows_damage
    }

    /// A record whose contents are sound.
    fn checked(&mut self, record: Option<Record>) -> Result<Option<Record>, SourceError> {
        // A mark has no contents, and that between two archives not even bytes.
        if let Some(record) = record.filter(|record| !record.is_mark()) {
            let bytes = self.records.bytes(&record)?;
            if let Err(damage) = check(bytes, record.first_set, record.set_count) {
                return Err(self.lose(&record, damage));
            }
        }
        Ok(record)
    }

    /// Passes over a record that is damaged inside.
    fn lose(&mut self, record: &Record, mut damage: Damage) -> SourceError {
        self.gap = true;
        damage.offset += record.offset;
        self.records.lose(damage)
    }

    /// Moves to the next record in the direction of the mode. Records on the other side
    /// of the origin are skipped. `None` at the end.
    fn step(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let read = match self.mode {
                Mode::Forward if self.records.is_past(self.last_counted()) => Ok(None),
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

    /// Warns that records are skipped because their times are on the other side of the
    /// origin. libpcp skips them too. `record` is the first of them.
    fn warn_of_time(&mut self, record: &Record) {
        let (time, origin) = (UtcTime(record.stamp), UtcTime(self.origin));
        let message = format!(
            "data record: its time, {time}, is on the other side of {origin}, the time of the \
             last values. Records are left out until times continue from there"
        );
        let damage = Damage::new(PmStatus::LOGREC, record.offset, message);
        self.warn(self.records.damaged(damage));
    }

    /// Moves to the next record that is not a mark and holds one of the metrics, and
    /// copies it to a part of `batch`. False at the end. The time of every record on the
    /// way becomes the origin.
    fn next_selected(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<bool, SourceError> {
        self.selection.prepare(list);
        // Without metrics every record counts, because constants have a value in each. No record
        // has derived metrics that are operands of others.
        let counts_any = list.pmids().iter().all(|pmid| pmid.is_derived());
        while let Some(record) = self.step()? {
            if record.is_mark() {
                (self.gap, self.last_mark) = (true, Some(record.stamp));
                // The mark between two archives may have a time after the next record.
                if record.length > 0 {
                    self.origin = record.stamp;
                }
                continue;
            }
            if self.add_as_before(&record, list, batch)? {
                return Ok(true);
            }
            let place = (self.records.place_of(&record), record.length);
            let bytes = self.records.bytes(&record)?;
            let sets = (record.first_set, record.set_count);
            let selected = match self.selection.scan(bytes, sets, self.sound == Some(place)) {
                Ok(any) => any || counts_any,
                Err(damage) => return Err(self.lose(&record, damage)),
            };
            self.origin = record.stamp;
            if !selected {
                continue;
            }
            // Many short lists may be fetched from one record in turn. An empty list looks
            // at none of it.
            if !list.pmids().is_empty() {
                self.sound = Some(place);
            }
            self.describe(&record)?;
            let bytes = self.records.bytes(&record)?;
            if self.profile.is_everything() {
                let pmids = list.pmids();
                batch.notice(&record.encoded(list.id(), bytes), || self.selection.places(pmids));
            }
            let part = batch.add_part();
            part.timestamp = record.stamp;
            let wire = part.set_wire();
            let blocks = self.selection.blocks(bytes);
            wire.block_origin = BLOCK_ORIGIN - blocks.start as i64;
            wire.bytes.extend_from_slice(&bytes[blocks]);
            wire.first_set = wire.bytes.len();
            wire.set_count = list.pmids().len();
            match self.profile.is_everything() {
                true => self.selection.append_sets(bytes, list.pmids(), &mut wire.bytes),
                false => {
                    let (metadata, profile) = (&self.metadata, &self.profile);
                    let admits = |pmid, id| {
                        let indom = metadata.desc(pmid).and_then(|desc| desc.indom);
                        indom.is_none_or(|indom| profile.admits(indom, id))
                    };
                    self.selection.append_admitted(bytes, list.pmids(), &mut wire.bytes, admits);
                }
            }
            give_types(wire, self.untyped_order, type_in(&self.metadata));
            return Ok(true);
        }
        Ok(false)
    }

    /// Adds the metrics of a record to a batch as columns, if the record differs in
    /// nothing but numbers from one that was added before.
    fn add_as_before(
        &mut self,
        record: &Record,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<bool, SourceError> {
        if !self.profile.is_everything() {
            return Ok(false);
        }
        let bytes = self.records.bytes(record)?;
        let encoded = record.encoded(list.id(), bytes);
        let added = batch.add_part_as_before(&encoded, record.stamp);
        let Some(holds) = added else { return Ok(false) };
        self.selection.note(holds);
        self.describe(record)?;
        self.origin = record.stamp;
        Ok(true)
    }

    /// Fetches at the next sample's time and advances that time. False outside of the
    /// archive, where the origin moves on with the samples.
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
        } else if seconds < -TOLERANCE || is_last_time(time, step) || self.is_past_end(seconds)? {
            if self.passing != Passing::Nothing {
                self.check_rest()?;
            }
            self.next_sample = later(time, step);
            self.origin = self.next_sample;
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

    /// Reports problems at the end of an archive that is not followed, once a reader
    /// has come there. A fetch that finds the end calls this, unless nothing is
    /// skipped: libpcp does not look for these problems.
    ///
    /// * Too few bytes for a record's length after the last record become a warning.
    /// * Damage between the last interpolated sample and the end is an error.
    ///
    /// # Errors
    /// There is damage that was not reported before. Another call continues after it.
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
        if self.passing != Passing::Nothing {
            met.into_iter().for_each(|error| self.warn(error));
        }
        read
    }

    /// The interpolator, which the caller has to put back.
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

    /// True if it is too early for the next sample of an archive that is followed: its
    /// time is after the last record that counts, or a record is still to come that its
    /// values depend on.
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

    /// Turns damage into a warning if it is to be passed over and reading continues
    /// after it.
    ///
    /// # Errors
    /// The error itself if reading does not continue, or if it is not damage: archives
    /// that overlap must be reported.
    fn pass_over(&mut self, error: SourceError) -> Result<(), SourceError> {
        let are_several = self.records.archives().len() > 1;
        let may_pass = match self.passing {
            Passing::Nothing => false,
            Passing::AmongSeveral => are_several,
            Passing::Everything => true,
        };
        let is_damage = may_pass && error.status() != PmStatus::LOGOVERLAP;
        let is_passed = match (&mut self.interpolator, self.mode) {
            (Some(interpolator), Mode::Interpolated { .. }) => {
                let may_go_on = are_several || self.following.is_some();
                interpolator.take_passed().is_some_and(|goes_on| goes_on || may_go_on)
            }
            _ => is_damage && self.records.take_lost(),
        };
        if !is_damage || !is_passed {
            return Err(error);
        }
        self.gap = true;
        self.warn(error);
        Ok(())
    }

    /// True for times after the last record. The end is looked up only for a time that
    /// is clearly later than the last known end.
    fn is_past_end(&mut self, seconds: f64) -> Result<bool, SourceError> {
        if self.known_end.is_none() && self.passing != Passing::Nothing {
            // If there is no record at all, damage is an error and is not skipped.
            self.extent()?;
        }
        let known = *self.known_end.get_or_insert(0.0);
        if seconds <= known + TOLERANCE {
            return Ok(false);
        }
        let end = match self.extent() {
            // A volume that lost its name while it was read has no other end.
            Err(SourceError::Io { source, .. })
                if known > 0.0 && source.kind() == ErrorKind::NotFound =>
            {
                known
            }
            // To libpcp, an archive whose end it cannot find is over.
            Err(_) if self.passing == Passing::Nothing => return Ok(true),
            end => end?,
        };
        self.known_end = Some(end);
        if self.can_grow() {
            self.refresh_metadata()?;
            self.take_growth()?;
        }
        Ok(seconds > end)
    }

    /// Seconds from the start to the end of the archive; 0 if it has no record.
    fn extent(&mut self) -> Result<f64, SourceError> {
        let end = match self.passing {
            Passing::Nothing => self.indexed_end_time(),
            Passing::AmongSeveral | Passing::Everything => self.end_time(),
        };
        match end {
            Ok(end) => Ok(end.seconds_since(self.label.start)),
            Err(error) => match self.records.another()?.next()? {
                None => Ok(0.0),
                Some(_) => Err(error),
            },
        }
    }
}

/// True for a time that no step leaves, as a time stamp has no greater one. A damaged label or
/// record may hold it.
fn is_last_time(time: Timestamp, step: i64) -> bool {
    step != 0 && later(time, step) == time
}

/// Looks up the type of a metric; `None` if the metric is not described.
fn type_in(metadata: &Metadata) -> impl Fn(Pmid) -> Option<ValueType> {
    |pmid| Some(metadata.desc(pmid)?.value_type)
}

fn later(time: Timestamp, step: i64) -> Timestamp {
    Timestamp::new(time.sec, i64::from(time.nsec).saturating_add(step))
}

/// The direction in which time moves in a mode.
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

    /// Positions the context at `when`, or at its origin. The next fetch delivers the
    /// first record at that time or later (forward), the last record at that time or
    /// earlier (backward), or the values at exactly that time (interpolated). Positions
    /// outside of the archive are allowed. Backward from [`Timestamp::LATEST`], damage
    /// behind the last good record is met, too.
    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        if mode == Mode::Live {
            return Err(self.status(PmStatus::MODE));
        }
        self.position(mode, when.unwrap_or(self.origin))
    }
}
