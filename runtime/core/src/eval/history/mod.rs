//! Previous samples of one context: one sample for each operand, shared by
//! definitions.
//!
//! Each section of the program has a block of samples that kernels read. A
//! sample without a place in the section's state is set aside for the general
//! path. The module moves samples between the two when sections or programs
//! change.
//!
//! When programs change, samples belong to definitions: a new definition has
//! none, and one that was absent for some time has an older one. Such a
//! definition has its own sample ("apart") until its operand has values again.

mod changes;

use std::collections::HashMap;
use std::sync::Arc;

use super::general::{Previous, PreviousBits};
use super::layout::{
    Frame, Geometry, Layout, POISON, Placed, Save, SavedOperand, SectionId, SetId, State,
};
use crate::kernel::Scalar;
use crate::kernel::interp::{read, write};
use crate::model::{InstId, PmStatus, Timestamp};
use crate::program::{
    BaselineId, DefinitionKey, HistoryId, OnFailure, Program, Reason, SampleKey, Status,
};

/// All previous samples of a context.
#[derive(Debug, Default)]
pub struct HistoryStore {
    /// Samples of the current program, parallel to its histories.
    entries: Vec<Entry>,
    /// Samples of definitions that do not share, ascending. None of them is
    /// resident.
    apart: Vec<(BaselineId, Entry)>,
    /// Samples that kernels read, by section.
    blocks: Vec<Vec<u8>>,
    /// Samples of definitions outside the current program.
    parked: HashMap<SampleKey, Entry>,
    /// Time of the newest samples.
    latest: Option<Timestamp>,
}

/// A previous sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// There is no sample.
    None(Reason),
    /// The operand had failed.
    Failed(PmStatus),
    /// The sample is in its section's block, at the plan's place.
    Resident(Timestamp),
    /// The sample is outside the blocks.
    Aside(Arc<Sample>),
}

/// A sample with its own list of instances.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    stamp: Timestamp,
    ids: Vec<InstId>,
    lanes: Vec<u64>,
}

impl HistoryStore {
    /// Bytes of memory of the samples, except those beside the blocks.
    pub fn bytes(&self) -> usize {
        let entries = size_of::<Entry>() * self.entries.capacity()
            + size_of::<(BaselineId, Entry)>() * self.apart.capacity()
            + size_of::<(SampleKey, Entry)>() * self.parked.capacity();
        let blocks = size_of::<Vec<u8>>() * self.blocks.capacity();
        entries + blocks + self.blocks.iter().map(Vec::capacity).sum::<usize>()
    }

    /// The samples of a section that kernels read.
    pub fn block(&self, section: SectionId) -> &[u8] {
        self.blocks.get(section.index()).map_or(&[], |block| block)
    }

    /// Like [`HistoryStore::block`], to align samples in it.
    pub fn block_mut(&mut self, section: SectionId) -> &mut [u8] {
        self.blocks.get_mut(section.index()).map_or(&mut [], |block| block)
    }

    /// True if kernels can use the sample.
    pub fn is_resident(&self, history: HistoryId) -> bool {
        matches!(self.entries[history.index()], Entry::Resident(_))
    }

    /// True if kernels can use any sample.
    pub fn has_resident(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Resident(_)))
    }

    /// Overwrites the gaps between the samples of a layout.
    pub fn poison(&mut self, layout: &Layout) {
        let states = layout.states.iter().zip(&mut self.blocks);
        for (state, block) in states.filter_map(|(state, block)| Some((state.as_ref()?, block))) {
            let Ok(geometry) = Geometry::of(state) else { continue };
            let kept = state.plan.histories.iter().flatten();
            for kept in kept.filter(|kept| kept.set != SetId::SINGLE) {
                let (count, width) = (state.ids(kept.set).len(), kept.scalar.bytes());
                let column = geometry.kept(kept.to) as usize;
                let padding = count * width..geometry.kept_cap(kept.set) as usize * width;
                if let Some(padding) = block.get_mut(column + padding.start..column + padding.end) {
                    padding.fill(POISON);
                }
            }
        }
    }

    /// True for a definition that has its own sample.
    pub fn is_apart(&self, baseline: BaselineId) -> bool {
        // Usually no definition has.
        !self.apart.is_empty() && self.find_apart(baseline).is_ok()
    }

    fn find_apart(&self, baseline: BaselineId) -> Result<usize, usize> {
        self.apart.binary_search_by_key(&baseline, |(id, _)| *id)
    }

    /// Time stamp of a resident sample.
    pub fn stamp(&self, history: HistoryId) -> Option<Timestamp> {
        match self.entries[history.index()] {
            Entry::Resident(stamp) => Some(stamp),
            _ => None,
        }
    }

    /// Records the time of the next samples. Returns true if it is earlier than
    /// that of the kept ones.
    pub fn goes_back(&mut self, now: Timestamp) -> bool {
        self.latest.replace(now).is_some_and(|latest| now < latest)
    }

    /// Forgets every sample.
    pub fn forget(&mut self, reason: Reason) {
        self.parked.clear();
        self.apart.clear();
        self.entries.iter_mut().for_each(|entry| *entry = Entry::None(reason));
    }

    /// Forgets the samples of definitions that no program will have again.
    /// `definitions` ascends.
    pub fn forget_definitions(&mut self, definitions: &[DefinitionKey]) {
        self.parked.retain(|key, _| definitions.binary_search(&key.history.definition).is_err());
    }

    /// Forgets the samples of definitions that are not in the program.
    pub fn forget_parked(&mut self) {
        self.parked = HashMap::default();
    }

    /// Makes definitions with their own samples share again, except for
    /// histories that `kept` their old sample.
    pub fn share_again(&mut self, program: &Program, kept: impl Fn(HistoryId) -> bool) {
        self.apart.retain(|(id, _)| kept(program.baselines[id.index()].history));
        if self.apart.is_empty() {
            self.apart = Vec::new();
        }
    }

    fn entry(&self, baseline: BaselineId, history: HistoryId) -> &Entry {
        match self.find_apart(baseline) {
            Ok(at) => &self.apart[at].1,
            Err(_) => &self.entries[history.index()],
        }
    }

    /// The instances of a definition's sample, if kernels cannot use the sample
    /// or there is none.
    pub fn unplaced(&self, baseline: BaselineId, history: HistoryId) -> Option<&[InstId]> {
        match self.entry(baseline, history) {
            Entry::Resident(_) => None,
            Entry::Aside(sample) => Some(&sample.ids),
            Entry::None(_) | Entry::Failed(_) => Some(&[]),
        }
    }

    /// The failure that the next evaluation repeats, whatever is fetched.
    pub fn failure(&self, baseline: BaselineId, history: HistoryId) -> Option<PmStatus> {
        match self.entry(baseline, history) {
            Entry::Failed(status) => Some(*status),
            _ => None,
        }
    }

    /// The sample of a definition in the form for the general path. `now` is
    /// the operand's time stamp.
    pub fn previous<'a>(
        &'a self,
        baseline: BaselineId,
        history: HistoryId,
        (layout, frame): (&'a Layout, &Frame),
        now: Timestamp,
    ) -> Previous<'a> {
        match self.entry(baseline, history) {
            Entry::None(reason) => Previous::None(*reason),
            Entry::Failed(status) => Previous::Failed(*status),
            Entry::Resident(stamp) => match kept_in(layout, history) {
                None => Previous::None(Reason::FirstSample),
                Some((section, state, kept)) => {
                    let offset = frame.placed[section.index()].offset(kept.to) as usize;
                    let column = &self.block(section)[offset..];
                    Previous::Lanes {
                        ids: state.ids(kept.previous()),
                        lanes: PreviousBits::Column(kept.scalar, column),
                        elapsed: now.interval_since(*stamp),
                    }
                }
            },
            Entry::Aside(sample) => Previous::Lanes {
                ids: &sample.ids,
                lanes: PreviousBits::Bits(&sample.lanes),
                elapsed: now.interval_since(sample.stamp),
            },
        }
    }

    /// Keeps the columns of a section's operands, as far as they have one.
    /// `stamp` gives the time of an operand.
    pub fn save_columns(
        &mut self,
        (section, placed): (SectionId, &Placed),
        work: &[u8],
        stamp: impl Fn(HistoryId) -> Timestamp,
    ) {
        for save in &placed.saves {
            self.save_one(section, save, work, stamp(save.history));
        }
    }

    fn save_one(&mut self, section: SectionId, save: &Save, work: &[u8], stamp: Timestamp) {
        let column = &work[save.from as usize..][..save.bytes as usize];
        let block = &mut self.blocks[section.index()];
        block[save.to as usize..][..save.bytes as usize].copy_from_slice(column);
        self.entries[save.history.index()] = Entry::Resident(stamp);
    }

    /// Keeps the column of one operand.
    pub fn save_column(&mut self, history: HistoryId, frame: &Frame, stamp: Timestamp) {
        let home = frame.sections.histories[history.index()];
        let placed = &frame.placed[home.section.index()];
        let Some(save) = placed.saves.iter().find(|save| save.history == history) else { return };
        self.save_one(home.section, save, &frame.arena, stamp);
    }

    /// Keeps lanes of the general path as the sample.
    pub fn save_lanes(
        &mut self,
        history: HistoryId,
        (layout, frame): (&Layout, &Frame),
        ids: &[InstId],
        lanes: &[u64],
        stamp: Timestamp,
    ) {
        let entry = &mut self.entries[history.index()];
        match kept_in(layout, history) {
            Some((section, state, kept)) if *state.ids(kept.set) == *ids => {
                let offset = frame.placed[section.index()].offset(kept.to) as usize;
                let column = &mut self.blocks[section.index()][offset..];
                for (lane, bits) in lanes.iter().enumerate() {
                    write(kept.scalar, column, lane * kept.scalar.bytes(), *bits);
                }
                *entry = Entry::Resident(stamp);
            }
            _ => {
                if let Entry::Aside(sample) = entry
                    && let Some(sample) = Arc::get_mut(sample)
                {
                    sample.stamp = stamp;
                    sample.ids.clear();
                    sample.ids.extend_from_slice(ids);
                    sample.lanes.clear();
                    sample.lanes.extend_from_slice(lanes);
                    return;
                }
                let sample = Sample { stamp, ids: ids.to_vec(), lanes: lanes.to_vec() };
                *entry = Entry::Aside(Arc::new(sample));
            }
        }
    }

    /// Updates the sample of an operand without values, as the status and the
    /// history's rule for failures require.
    pub fn save_without(
        &mut self,
        history: HistoryId,
        (layout, frame): (&Layout, &Frame),
        status: Status,
        rule: OnFailure,
    ) {
        let entry = &mut self.entries[history.index()];
        match (status, rule) {
            (Status::Values, _) | (Status::Failed(_), OnFailure::Keep) => {
                // A kept sample has its lanes in this state only.
                if let (Entry::Resident(stamp), Some((section, state, kept))) =
                    (&*entry, kept_in(layout, history))
                    && let Some(set) = kept.other
                {
                    let offset = frame.placed[section.index()].offset(kept.to) as usize;
                    let column = &self.blocks[section.index()][offset..];
                    *entry = aside(*stamp, state.ids(set), kept.scalar, column);
                }
            }
            (Status::Empty(reason), _) => *entry = Entry::None(reason),
            (Status::Failed(status), OnFailure::Repeat) => *entry = Entry::Failed(status),
            (Status::Failed(status), OnFailure::Forget) => {
                *entry = Entry::None(Reason::OperandFailed(status));
            }
        }
    }
}

/// The place in which the operand of a history is kept, if it has a column.
pub fn kept_in(layout: &Layout, history: HistoryId) -> Option<(SectionId, &State, &SavedOperand)> {
    let home = layout.sections.histories[history.index()];
    let state = layout.state(home.section)?;
    let kept = state.plan.histories[home.at as usize].as_ref().ok()?;
    Some((home.section, state, kept))
}

/// Copies a sample from a column.
fn aside(stamp: Timestamp, ids: &[InstId], scalar: Scalar, column: &[u8]) -> Entry {
    let lane = |lane: usize| read(scalar, column, lane * scalar.bytes());
    let lanes = (0..ids.len()).map(lane).collect();
    Entry::Aside(Arc::new(Sample { stamp, ids: ids.to_vec(), lanes }))
}
