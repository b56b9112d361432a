//! Previous samples of one context: one for each operand, which definitions
//! share.
//!
//! A sample that the layout in force has a place for lies in the history
//! arena, where kernels read it; any other is kept aside for the general path.
//! The module moves samples between the two when layouts or programs change.
//!
//! When programs change, samples go by definition: one that is new has none,
//! and one that was not in the program for some time has an older one. Such a
//! definition has its sample apart until its operand has values again.

use std::collections::HashMap;
use std::sync::Arc;

use super::general::{Previous, PreviousBits};
use super::lanes::LaneSet;
use super::layout::{HistoryLayout, Layout};
use crate::kernel::Scalar;
use crate::kernel::interp::{read, write};
use crate::model::{InstId, PmStatus, Timestamp};
use crate::program::{
    BaselineId, Binding, HistoryId, OnFailure, Program, Reason, SampleKey, Status,
};

/// All previous samples of a context.
#[derive(Debug, Default)]
pub struct HistoryStore {
    /// Samples of the program in force, parallel to its histories.
    entries: Vec<Entry>,
    /// Those of definitions that do not share them, ascending; none is resident.
    apart: Vec<(BaselineId, Entry)>,
    arena: Vec<u8>,
    /// Samples of definitions that the program in force does not have.
    parked: HashMap<SampleKey, Entry>,
    /// Time of the newest samples.
    latest: Option<Timestamp>,
}

/// A previous sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// There is none.
    None(Reason),
    /// The operand had failed.
    Failed(PmStatus),
    /// In the arena, where the layout in force says.
    Resident(Timestamp),
    /// Elsewhere.
    Aside(Arc<Sample>),
}

/// A sample with its own instances.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    stamp: Timestamp,
    ids: Vec<InstId>,
    lanes: Vec<u64>,
}

impl HistoryStore {
    /// The arena that kernels read.
    pub fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// The arena, to align samples in its free end.
    pub fn arena_mut(&mut self) -> &mut [u8] {
        &mut self.arena
    }

    /// True when kernels can use the sample.
    pub fn is_resident(&self, history: HistoryId) -> bool {
        matches!(self.entries[history.index()], Entry::Resident(_))
    }

    /// True for a definition whose sample is another than that of the others.
    pub fn is_apart(&self, baseline: BaselineId) -> bool {
        // Mostly there is none.
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

    /// Lanes of a resident sample in the layout in force.
    pub fn resident_lanes(&self, history: HistoryId, layout: &Layout) -> Option<LaneSet> {
        let at = layout.histories[history.index()].as_ref().ok()?;
        self.is_resident(history).then(|| at.lanes.clone())
    }

    /// Takes the time of the next samples; true if it is before that of the
    /// ones that are kept.
    pub fn goes_back(&mut self, now: Timestamp) -> bool {
        self.latest.replace(now).is_some_and(|latest| now < latest)
    }

    /// Forgets every sample.
    pub fn forget(&mut self, reason: Reason) {
        self.parked.clear();
        self.apart.clear();
        self.entries.iter_mut().for_each(|entry| *entry = Entry::None(reason));
    }

    /// Forgets the samples of definitions that no program will have again; their
    /// identities ascend.
    pub fn forget_definitions(&mut self, definitions: &[u64]) {
        self.parked.retain(|key, _| definitions.binary_search(&key.history.definition).is_err());
    }

    /// Takes the histories of a program in use; the samples of the program
    /// before are parked under the keys of its definitions.
    pub fn change_program(
        &mut self,
        old: Option<(&Program, &Binding, Option<&Arc<Layout>>)>,
        (program, binding): (&Program, &Binding),
    ) {
        if let Some((program, binding, layout)) = old {
            if let Some(layout) = layout {
                self.set_aside_all(layout);
            }
            let mut apart = std::mem::take(&mut self.apart).into_iter().peekable();
            for ((at, baseline), key) in
                (0u32..).zip(&program.baselines).zip(keys(program, binding))
            {
                let own = apart.next_if(|(id, _)| *id == BaselineId(at)).map(|(_, entry)| entry);
                let entry = own.unwrap_or_else(|| self.entries[baseline.history.index()].clone());
                self.parked.insert(key, entry);
            }
        }
        let parked = &mut self.parked;
        let mut entry = |key| parked.remove(&key).unwrap_or(Entry::None(Reason::FirstSample));
        let baselines = (0u32..).map(BaselineId).zip(&program.baselines);
        let own: Vec<(BaselineId, HistoryId, Entry)> = baselines
            .zip(keys(program, binding))
            .map(|((id, baseline), key)| (id, baseline.history, entry(key)))
            .collect();
        // Definitions share the newest sample.
        let mut shared: Vec<Option<Entry>> = vec![None; program.histories.len()];
        for (_, history, entry) in &own {
            match &mut shared[history.index()] {
                Some(newest) if newest.stamp() >= entry.stamp() => {}
                place => *place = Some(entry.clone()),
            }
        }
        let none = || Entry::None(Reason::FirstSample);
        self.entries = shared.into_iter().map(|entry| entry.unwrap_or_else(none)).collect();
        let differs = |(_, history, entry): &(BaselineId, HistoryId, Entry)| {
            *entry != self.entries[history.index()]
        };
        let apart = own.into_iter().filter(differs);
        self.apart = apart.map(|(id, _, entry)| (id, entry)).collect();
        self.parked.shrink_to_fit();
    }

    /// Definitions that have their sample apart share it again, but for those
    /// of histories that have `kept` what they had.
    pub fn share_again(&mut self, program: &Program, kept: impl Fn(HistoryId) -> bool) {
        self.apart.retain(|(id, _)| kept(program.baselines[id.index()].history));
    }

    fn set_aside_all(&mut self, layout: &Layout) {
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if let (Entry::Resident(stamp), Ok(at)) = (&*entry, &layout.histories[index]) {
                *entry = aside(*stamp, &at.lanes, at.scalar, &self.arena[at.to as usize..]);
            }
        }
    }

    /// Goes from one layout of the program to another: samples that have
    /// their place there are carried over, others are set aside, and those set
    /// aside earlier come back when their lanes do. `former` is a buffer of the
    /// workspace.
    pub fn change_layout(&mut self, old: Option<&Arc<Layout>>, new: &Layout, former: &mut Vec<u8>) {
        former.clear();
        former.extend_from_slice(&self.arena);
        self.arena.clear();
        self.arena.reserve_exact(new.history_size);
        self.arena.resize(new.history_size, 0);
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let to = new.histories[index].as_ref().ok();
            match entry {
                Entry::None(_) | Entry::Failed(_) => {}
                Entry::Resident(stamp) => {
                    let from = old.and_then(|old| old.histories[index].as_ref().ok());
                    let Some(from) = from else {
                        *entry = Entry::None(Reason::FirstSample);
                        continue;
                    };
                    let column = &former[from.to as usize..][..from.bytes as usize];
                    let place = to.map(HistoryLayout::previous);
                    match place.filter(|(lanes, _)| **lanes == from.lanes) {
                        Some((_, offset)) => {
                            self.arena[offset as usize..][..column.len()].copy_from_slice(column);
                        }
                        None => *entry = aside(*stamp, &from.lanes, from.scalar, column),
                    }
                }
                Entry::Aside(sample) => {
                    if let Some(to) = to.filter(|to| to.lanes.ids() == sample.ids) {
                        let column = &mut self.arena[to.to as usize..];
                        for (at, bits) in sample.lanes.iter().enumerate() {
                            write(to.scalar, column, at * to.scalar.bytes(), *bits);
                        }
                        *entry = Entry::Resident(sample.stamp);
                    }
                }
            }
        }
    }

    /// The sample as the general path sees it for a definition; `now` is the
    /// operand's time stamp.
    pub fn previous<'a>(
        &'a self,
        baseline: BaselineId,
        history: HistoryId,
        layout: &'a Layout,
        now: Timestamp,
    ) -> Previous<'a> {
        let entry = match self.find_apart(baseline) {
            Ok(at) => &self.apart[at].1,
            Err(_) => &self.entries[history.index()],
        };
        match entry {
            Entry::None(reason) => Previous::None(*reason),
            Entry::Failed(status) => Previous::Failed(*status),
            Entry::Resident(stamp) => match &layout.histories[history.index()] {
                Err(_) => Previous::None(Reason::FirstSample),
                Ok(at) => {
                    let (lanes, offset) = at.previous();
                    Previous::Lanes {
                        ids: lanes.ids(),
                        lanes: PreviousBits::Column(at.scalar, &self.arena[offset as usize..]),
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

    /// Keeps the operand's column of this evaluation as the sample, or does
    /// what its status and the history's rule for failures say.
    pub fn save(
        &mut self,
        history: HistoryId,
        layout: &Layout,
        rule: OnFailure,
        work: &[u8],
        stamp: Timestamp,
    ) {
        match &layout.histories[history.index()] {
            Ok(at) => {
                let column = &work[at.from as usize..][..at.bytes as usize];
                self.arena[at.to as usize..][..at.bytes as usize].copy_from_slice(column);
                self.entries[history.index()] = Entry::Resident(stamp);
            }
            Err(status) => self.save_without(history, layout, *status, rule),
        }
    }

    /// Keeps lanes that the general path computed as the sample.
    pub fn save_lanes(
        &mut self,
        history: HistoryId,
        layout: &Layout,
        ids: &[InstId],
        lanes: &[u64],
        stamp: Timestamp,
    ) {
        let entry = &mut self.entries[history.index()];
        match &layout.histories[history.index()] {
            Ok(at) if at.lanes.ids() == ids => {
                let column = &mut self.arena[at.to as usize..];
                for (lane, bits) in lanes.iter().enumerate() {
                    write(at.scalar, column, lane * at.scalar.bytes(), *bits);
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

    /// The operand has no values: does with the sample what the status and
    /// the history's rule for failures say.
    pub fn save_without(
        &mut self,
        history: HistoryId,
        layout: &Layout,
        status: Status,
        rule: OnFailure,
    ) {
        let entry = &mut self.entries[history.index()];
        match (status, rule) {
            (Status::Values, _) | (Status::Failed(_), OnFailure::Keep) => {
                // What is kept has its place in this layout only.
                if let (Entry::Resident(stamp), Ok(at)) =
                    (&*entry, &layout.histories[history.index()])
                    && let Some((lanes, offset)) = &at.other
                {
                    *entry = aside(*stamp, lanes, at.scalar, &self.arena[*offset as usize..]);
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

impl Entry {
    /// Time of a sample with values that has no place in a layout.
    fn stamp(&self) -> Option<Timestamp> {
        match self {
            Entry::Aside(sample) => Some(sample.stamp),
            _ => None,
        }
    }
}

/// What the samples of a program's definitions belong to, parallel to its baselines.
fn keys(program: &Program, binding: &Binding) -> impl Iterator<Item = SampleKey> {
    program.baselines.iter().map(|baseline| {
        let history = &program.histories[baseline.history.index()];
        binding.sample_key(baseline.key, &history.inputs)
    })
}

/// A sample of its own, from a column.
fn aside(stamp: Timestamp, lanes: &LaneSet, scalar: Scalar, column: &[u8]) -> Entry {
    let lane = |lane: usize| read(scalar, column, lane * scalar.bytes());
    let ids = lanes.ids().to_vec();
    let lanes = (0..ids.len()).map(lane).collect();
    Entry::Aside(Arc::new(Sample { stamp, ids, lanes }))
}
