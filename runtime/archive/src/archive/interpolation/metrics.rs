//! The metrics that were asked for so far, and which of them a list wants.
//!
//! Input: lists, the metadata, and the bytes of records. Output: a track for each
//! metric, which notes the records that it occurs in, and lanes for each of
//! their domains. Which records there are is not known here.

use std::collections::HashMap;

use pmderive_core::model::{InDom, InstId, InstanceProfile, PmStatus, Pmid, Timestamp, ValueType};
use pmderive_core::source::{FetchList, SourceError};

use crate::archive::interpolation::candidates::Candidates;
use crate::archive::interpolation::coverage::{Ordinal, Side};
use crate::archive::interpolation::track::Track;
use crate::archive::meta::Metadata;
use crate::archive::record::Damage;
use crate::archive::selection::SlotTable;
use crate::archive::untyped::UntypedOrder;
use crate::archive::values::{SetRange, check, walk};
use crate::archive::volume::Record;

/// What an interpolated fetch needs beside the list.
pub(in crate::archive) struct Surroundings<'a> {
    pub(in crate::archive) metadata: &'a mut Metadata,
    pub(in crate::archive) profile: &'a InstanceProfile,
}

/// What a list is that comes after another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The same.
    Nothing,
    /// One of metrics that are known.
    List,
    /// One with new metrics, which nothing is noted of.
    Metrics,
}

/// Metrics with their domains.
pub(super) struct Metrics {
    start: Timestamp,
    untyped_order: UntypedOrder,
    pub(super) domains: Vec<Candidates>,
    domain_of: HashMap<Option<InDom>, usize>,
    pub(super) tracks: Vec<Track>,
    /// Slots of metrics in `tracks`.
    pub(super) slots: SlotTable,
    /// List prepared for, with a track or a status for each of its metrics.
    list: Option<u64>,
    pub(super) wanted: Vec<Result<usize, PmStatus>>,
    /// Number of value sets noted.
    noted: usize,
    pub(super) found: Vec<(usize, SetRange)>,
    pub(super) scratch: Vec<InstId>,
}

impl Metrics {
    /// None so far, of an archive that starts at a time.
    pub(super) fn new(start: Timestamp, untyped_order: UntypedOrder) -> Metrics {
        let mut slots = SlotTable::default();
        slots.assign([].into_iter());
        Metrics {
            start,
            untyped_order,
            domains: Vec::new(),
            domain_of: HashMap::new(),
            tracks: Vec::new(),
            slots,
            list: None,
            wanted: Vec::new(),
            noted: 0,
            found: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Takes over which instances are delivered.
    pub(super) fn set_profile(&mut self, profile: &InstanceProfile) {
        self.domains.iter_mut().for_each(|domain| domain.apply(profile));
        self.tracks.iter_mut().for_each(|track| track.steady.forget());
    }

    /// Forgets which records the metrics occur in.
    pub(super) fn forget(&mut self) {
        self.tracks.iter_mut().for_each(Track::forget);
        self.noted = 0;
    }

    /// Begins anew with all metrics: instances may have come, and metrics been
    /// described that a list asked for in vain.
    ///
    /// # Errors
    /// The metadata file cannot be read.
    pub(super) fn renew(&mut self, around: &mut Surroundings<'_>) -> Result<(), SourceError> {
        self.list = None;
        self.noted = 0;
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

    /// Finds the metrics of a list, and begins to follow new ones.
    ///
    /// # Errors
    /// The metadata file cannot be read.
    pub(super) fn prepare(
        &mut self,
        list: &FetchList,
        around: &mut Surroundings<'_>,
    ) -> Result<Change, SourceError> {
        if self.list == Some(list.id()) {
            return Ok(Change::Nothing);
        }
        self.list = None;
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
        self.list = Some(list.id());
        if self.tracks.len() == known {
            return Ok(Change::List);
        }
        self.slots.assign(self.tracks.iter().map(|track| track.desc.pmid));
        Ok(Change::Metrics)
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

    /// The tracks of the metrics of the list, as far as there are any.
    pub(super) fn wanted_tracks(&self) -> impl Iterator<Item = &Track> {
        self.wanted.iter().flatten().map(|track| &self.tracks[*track])
    }

    /// Notes which metrics occur in a record.
    ///
    /// # Errors
    /// It is damaged; then nothing is noted. In records without the metrics
    /// not all damage is seen.
    pub(super) fn note(
        &mut self,
        side: Side,
        ordinal: Ordinal,
        (record, bytes): (&Record, &[u8]),
    ) -> Result<(), Damage> {
        let Metrics { domains, tracks, slots, noted, found, scratch, .. } = self;
        found.clear();
        walk(bytes, record.first_set, record.set_count, |pmid, set| {
            found.extend(slots.slot(pmid).map(|track| (track, set)));
        })?;
        if !found.is_empty() {
            check(bytes, record.first_set, record.set_count)?;
        }
        *noted += found.len();
        for (track, set) in found {
            let track = &mut tracks[*track];
            let candidates = &mut domains[track.domain];
            let set = (set.start, &bytes[set.start..set.end]);
            track.note(side, ordinal, set, candidates, scratch);
        }
        Ok(())
    }

    /// How much is noted: value sets, and instances in lists of instances that
    /// are not the same as others.
    pub(super) fn size(&self) -> usize {
        self.noted + self.domains.iter().map(Candidates::size).sum::<usize>()
    }

    /// Forgets what was noted of records but a stretch of them.
    pub(super) fn keep(&mut self, records: std::ops::Range<Ordinal>) {
        self.noted = self.tracks.iter_mut().map(|track| track.keep(records.clone())).sum();
        for (at, domain) in self.domains.iter_mut().enumerate() {
            if domain.is_crowded() {
                let tracks = self.tracks.iter().filter(|track| track.domain == at);
                domain.keep_shapes(&tracks.flat_map(Track::shapes).collect());
            }
        }
    }
}
