//! The metrics that were asked for so far, and those that a list wants.
//!
//! Input: lists, the metadata, and the bytes of records. Output: a track for each
//! metric, which notes the records that have it, and lanes for each domain.

use std::collections::HashMap;

use pmderive_core::model::{InDom, InstId, InstanceProfile, PmStatus, Pmid, Timestamp, ValueType};
use pmderive_core::result::KnownResults;
use pmderive_core::source::{FetchList, SourceError};

use crate::archive::framing::Damage;
use crate::archive::interpolation::candidates::Candidates;
use crate::archive::interpolation::coverage::{Ordinal, Side};
use crate::archive::interpolation::positions::{DomainId, ShapeId, TrackId};
use crate::archive::interpolation::track::Track;
use crate::archive::meta::Metadata;
use crate::archive::selection::SlotTable;
use crate::archive::untyped::UntypedOrder;
use crate::archive::values::{SetRange, check, walk};
use crate::archive::volume::Record;

/// Records of one form after which another one is compared with them. Learning a form costs as much
/// as checking some records.
const SIGHTINGS: u32 = 8;

/// The inputs of an interpolated fetch besides the list.
pub(in crate::archive) struct Surroundings<'a> {
    pub(in crate::archive) metadata: &'a mut Metadata,
    pub(in crate::archive) profile: &'a InstanceProfile,
}

/// The difference between a list and the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListChange {
    /// It is the same list.
    Nothing,
    /// It has only metrics that are known.
    List,
    /// It has new metrics, which were not noted in the covered records.
    Metrics,
}

/// All metrics with their domains.
pub(super) struct Metrics {
    start: Timestamp,
    untyped_order: UntypedOrder,
    pub(super) domains: Vec<Candidates>,
    domain_of: HashMap<Option<InDom>, DomainId>,
    pub(super) tracks: Vec<Track>,
    /// Positions of metrics in `tracks`.
    pub(super) slots: SlotTable,
    /// The list that this is prepared for. `wanted` has a track or a status for each of
    /// its metrics.
    list: Option<u64>,
    pub(super) wanted: Vec<Result<TrackId, PmStatus>>,
    /// Number of value sets noted.
    noted: usize,
    /// The value sets of records that others resemble.
    known: KnownResults<Box<[Noted]>>,
    pub(super) found: Vec<(TrackId, SetRange)>,
    sets: Vec<Noted>,
    pub(super) scratch: Vec<InstId>,
}

/// A value set with values of a metric.
#[derive(Clone, Copy, Debug)]
struct Noted {
    track: TrackId,
    /// Offset of the set in the record.
    start: usize,
    shape: ShapeId,
}

/// Notes the value sets of a record in their tracks. Returns their number.
fn note_sets(
    sets: &[Noted],
    (side, record): (Side, Ordinal),
    tracks: &mut [Track],
    domains: &[Candidates],
) -> usize {
    for Noted { track, start, shape } in sets {
        let track = &mut tracks[track.index()];
        track.note(side, record, (*start, *shape), &domains[track.domain.index()]);
    }
    sets.len()
}

impl Metrics {
    /// No metrics yet. `start` is the start of the archive.
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
            known: KnownResults::new(SIGHTINGS),
            found: Vec::new(),
            sets: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Sets the instances that are delivered.
    pub(super) fn set_profile(&mut self, profile: &InstanceProfile) {
        self.domains.iter_mut().for_each(|domain| domain.apply(profile));
        self.tracks.iter_mut().for_each(|track| track.steady.forget());
    }

    /// Forgets which records have the metrics.
    pub(super) fn forget(&mut self) {
        self.tracks.iter_mut().for_each(Track::forget);
        self.noted = 0;
    }

    /// Starts all metrics again. There may be new instances, and descriptors of metrics that a list
    /// requested without success.
    ///
    /// # Errors
    /// The metadata file cannot be read.
    pub(super) fn renew(&mut self, around: &mut Surroundings<'_>) -> Result<(), SourceError> {
        self.list = None;
        self.noted = 0;
        self.known.clear();
        self.domains.clear();
        self.domain_of.clear();
        for at in 0..self.tracks.len() {
            let Track { desc, last_count, interval, .. } = self.tracks[at];
            let domain = self.domain_of(desc.indom, around)?;
            self.tracks[at] =
                Track::new(desc, self.untyped_order, domain, self.domain(domain).lanes().len());
            self.tracks[at].last_count = last_count;
            self.tracks[at].interval = interval;
        }
        Ok(())
    }

    /// Looks up the metrics of a list, and adds a track for each new one.
    ///
    /// # Errors
    /// The metadata file cannot be read.
    pub(super) fn prepare(
        &mut self,
        list: &FetchList,
        around: &mut Surroundings<'_>,
    ) -> Result<ListChange, SourceError> {
        if self.list == Some(list.id()) {
            return Ok(ListChange::Nothing);
        }
        self.list = None;
        self.wanted.clear();
        let count = self.tracks.len();
        let is_new = |pmid: &&Pmid| self.slots.slot(**pmid).is_none();
        let new = list.pmids().iter().filter(is_new).count();
        self.tracks.reserve_exact(new);
        self.wanted.reserve_exact(list.pmids().len());
        for pmid in list.pmids() {
            let known = self.slots.slot(*pmid).map(TrackId::at);
            let wanted = match (known, around.metadata.desc(*pmid)) {
                (Some(track), _) => Ok(track),
                // A null identifier gives no values, and no error.
                _ if *pmid == Pmid::NULL => Err(PmStatus(0)),
                // libpcp treats an unsupported metric as one that is not in the
                // archive.
                (None, Some(desc)) if desc.value_type == ValueType::NoSupport => {
                    Err(PmStatus::PMID_LOG)
                }
                (None, None) => Err(PmStatus::PMID_LOG),
                (None, Some(desc)) => {
                    let domain = self.domain_of(desc.indom, around)?;
                    let lanes = self.domain(domain).lanes().len();
                    let id = TrackId::at(self.tracks.len());
                    self.tracks.push(Track::new(desc, self.untyped_order, domain, lanes));
                    Ok(id)
                }
            };
            self.wanted.push(wanted);
        }
        self.list = Some(list.id());
        if self.tracks.len() == count {
            return Ok(ListChange::List);
        }
        self.slots.assign(self.tracks.iter().map(|track| track.desc.pmid));
        self.known.clear();
        Ok(ListChange::Metrics)
    }

    pub(super) fn track(&self, id: TrackId) -> &Track {
        &self.tracks[id.index()]
    }

    pub(super) fn domain(&self, id: DomainId) -> &Candidates {
        &self.domains[id.index()]
    }

    /// The position of a domain, which is added if it is new.
    fn domain_of(
        &mut self,
        indom: Option<InDom>,
        around: &mut Surroundings<'_>,
    ) -> Result<DomainId, SourceError> {
        if let Some(known) = self.domain_of.get(&indom) {
            return Ok(*known);
        }
        let candidates = match indom {
            None => Candidates::singular(),
            Some(indom) => {
                let whole = around.metadata.whole_domain(indom)?;
                // A domain without any record has no instances.
                let lives = whole.map(|(_, lives)| lives).unwrap_or_default();
                let mut candidates = Candidates::of_domain(indom, &lives, self.start);
                candidates.apply(around.profile);
                candidates
            }
        };
        let id = DomainId::at(self.domains.len());
        self.domains.push(candidates);
        self.domain_of.insert(indom, id);
        Ok(id)
    }

    /// The tracks of the list's metrics. Metrics with a status have none.
    pub(super) fn wanted_tracks(&self) -> impl Iterator<Item = &Track> {
        self.wanted.iter().flatten().map(|id| self.track(*id))
    }

    /// Notes which metrics a record has.
    ///
    /// # Errors
    /// The record is damaged; then nothing is noted. If it has none of the metrics, not
    /// all damage is detected.
    pub(super) fn note(
        &mut self,
        side: Side,
        ordinal: Ordinal,
        (record, bytes): (&Record, &[u8]),
    ) -> Result<(), Damage> {
        let encoded = record.encoded(0, bytes);
        let at = (side, ordinal);
        if let Some(sets) = self.known.recall(&encoded) {
            self.noted += note_sets(sets, at, &mut self.tracks, &self.domains);
            return Ok(());
        }
        let Metrics { domains, tracks, slots, noted, known, found, sets, scratch, .. } = self;
        found.clear();
        walk(bytes, record.first_set, record.set_count, |pmid, set| {
            found.extend(slots.slot(pmid).map(|track| (TrackId::at(track), set)));
        })?;
        if found.is_empty() {
            return Ok(());
        }
        check(bytes, record.first_set, record.set_count)?;
        sets.clear();
        for (id, set) in found.iter().filter(|(_, set)| set.has_values()) {
            let track = &tracks[id.index()];
            let candidates = &mut domains[track.domain.index()];
            let shape = track.shape_of(&bytes[set.start..set.end], candidates, scratch);
            sets.push(Noted { track: *id, start: set.start, shape });
        }
        *noted += note_sets(sets, at, tracks, domains);
        // Backwards, lanes need more memory. A context stays small without forms.
        if side == Side::Ahead {
            known.learn(&encoded, || sets.as_slice().into());
        }
        Ok(())
    }

    /// A measure of the memory: the number of value sets, and of instances in distinct lists of
    /// instances.
    pub(super) fn size(&self) -> usize {
        self.noted + self.domains.iter().map(Candidates::size).sum::<usize>()
    }

    /// Forgets all records except those in a range.
    pub(super) fn keep(&mut self, records: std::ops::Range<Ordinal>) {
        self.noted = self.tracks.iter_mut().map(|track| track.keep(records.clone())).sum();
        for (at, domain) in self.domains.iter_mut().enumerate() {
            if domain.is_crowded() {
                let tracks = self.tracks.iter().filter(|track| track.domain.index() == at);
                domain.keep_shapes(&tracks.flat_map(Track::shapes).collect());
                // They may have shapes that are gone.
                self.known.clear();
            }
        }
    }
}
