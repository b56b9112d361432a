//! Moves previous samples when the program or the state of a section changes.
//!
//! Samples in a section's block are carried to their new places, set aside, or
//! parked under the keys of their definitions.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Entry, HistoryStore, aside};
use crate::eval::lanes::are_same;
use crate::eval::layout::{Geometry, Layout, SectionId, State, TooLarge};
use crate::kernel::interp::write;
use crate::model::Timestamp;
use crate::program::{BaselineId, Binding, HistoryId, HistoryKey, Program, Reason, SampleKey};

/// Blocks larger than this are swapped rather than copied where possible.
const LARGE: usize = 1 << 16;

impl HistoryStore {
    /// Changes to the histories of a new program. The samples of the old
    /// program are parked under the keys of its definitions.
    pub fn change_program(
        &mut self,
        old: Option<(&Program, &Binding, Option<&Layout>)>,
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
        if self.parked.is_empty() {
            // There was no program before.
            self.entries = vec![Entry::None(Reason::FirstSample); program.histories.len()];
            self.parked.shrink_to_fit();
            return;
        }
        let parked = &mut self.parked;
        let mut entry = |key| parked.remove(&key).unwrap_or(Entry::None(Reason::FirstSample));
        let baselines = (0u32..).map(BaselineId).zip(&program.baselines);
        let own: Vec<(BaselineId, HistoryId, Entry)> = baselines
            .zip(keys(program, binding))
            .map(|((id, baseline), key)| (id, baseline.history, entry(key)))
            .collect();
        self.forget_former_operands(program);
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
        // This list is short, but its memory was that of the full list.
        self.apart.shrink_to_fit();
        self.parked.shrink_to_fit();
    }

    /// Forgets parked samples of definitions that the program has with operands
    /// of other metrics. Should the former metrics come back, a difference
    /// would span the time without them.
    fn forget_former_operands(&mut self, program: &Program) {
        if self.parked.is_empty() {
            return;
        }
        let in_force: FxHashSet<HistoryKey> = program.baselines.iter().map(|one| one.key).collect();
        self.parked.retain(|key, _| !in_force.contains(&key.history));
    }

    fn set_aside_all(&mut self, layout: &Layout) {
        let states = layout.states.iter().zip(&layout.sections.all);
        for ((state, section), block) in states.zip(std::mem::take(&mut self.blocks)) {
            let Some(state) = state else { continue };
            // The state was laid out before, so it is not too large.
            let Ok(geometry) = Geometry::of(state) else { continue };
            for (history, kept) in section.histories.iter().zip(&state.plan.histories) {
                let entry = &mut self.entries[history.index()];
                if let (Entry::Resident(stamp), Ok(kept)) = (&*entry, kept) {
                    let column = &block[geometry.kept(kept.to) as usize..];
                    *entry = aside(*stamp, state.ids(kept.set), kept.scalar, column);
                }
            }
        }
    }

    /// Changes a section of a layout from one state to another. Samples with a place in the
    /// new state are carried over, and others are set aside. Samples that were
    /// set aside earlier return if the new state has their lanes. `former` is a
    /// buffer.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn change_section(
        &mut self,
        layout: &mut Layout,
        section: SectionId,
        new: Arc<State>,
        former: &mut Vec<u8>,
    ) -> Result<(), TooLarge> {
        self.blocks.resize_with(layout.sections.all.len(), Vec::new);
        let old = layout.state(section);
        let was = old.map(Geometry::of).transpose()?;
        let old = old.zip(was.as_ref());
        let geometry = Geometry::of(&new)?;
        let block = &mut self.blocks[section.index()];
        let histories = &layout.sections[section].histories;
        let mut carried: Vec<Carried> = Vec::new();
        for (at, history) in histories.iter().enumerate() {
            let entry = &mut self.entries[history.index()];
            let Entry::Resident(stamp) = entry else { continue };
            let from =
                old.and_then(|(old, was)| Some((old, was, old.plan.histories[at].as_ref().ok()?)));
            let Some((old, was, from)) = from else {
                *entry = Entry::None(Reason::FirstSample);
                continue;
            };
            let (ids, offset) = (old.ids(from.set), was.kept(from.to) as usize);
            match &new.plan.histories[at] {
                Ok(kept) if are_same(new.ids(kept.previous()), ids) => carried.push(Carried {
                    from: offset,
                    to: geometry.kept(kept.to) as usize,
                    bytes: ids.len() * from.scalar.bytes(),
                }),
                _ => *entry = aside(*stamp, ids, from.scalar, &block[offset..]),
            }
        }
        carry(&carried, block, geometry.kept_size, former);
        for (at, history) in histories.iter().enumerate() {
            let entry = &mut self.entries[history.index()];
            let Entry::Aside(sample) = entry else { continue };
            let to = new.plan.histories[at].as_ref().ok();
            if let Some(to) = to.filter(|to| are_same(new.ids(to.set), &sample.ids)) {
                let column = &mut block[geometry.kept(to.to) as usize..];
                for (at, bits) in sample.lanes.iter().enumerate() {
                    write(to.scalar, column, at * to.scalar.bytes(), *bits);
                }
                *entry = Entry::Resident(sample.stamp);
            }
        }
        layout.states[section.index()] = Some(new);
        Ok(())
    }
}

/// A sample that stays in its section's block: its old offset, its new offset
/// and its length.
#[derive(Clone, Copy, Debug)]
struct Carried {
    from: usize,
    to: usize,
    bytes: usize,
}

/// Makes a block `size` bytes long and moves the samples to their new places.
/// `former` is a buffer.
fn carry(samples: &[Carried], block: &mut Vec<u8>, size: usize, former: &mut Vec<u8>) {
    let all_stay = samples.iter().all(|sample| sample.from == sample.to);
    if !all_stay && block.len() > LARGE {
        std::mem::swap(block, former);
    } else if !all_stay {
        former.clear();
        former.extend_from_slice(block);
    }
    block.truncate(size);
    if block.capacity() > size + size / 2 {
        block.shrink_to(size);
    }
    block.reserve_exact(size - block.len());
    block.resize(size, 0);
    for Carried { from, to, bytes } in samples.iter().filter(|_| !all_stay) {
        block[*to..][..*bytes].copy_from_slice(&former[*from..][..*bytes]);
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

/// Keys of the samples of a program's definitions, parallel to its baselines.
fn keys(program: &Program, binding: &Binding) -> impl Iterator<Item = SampleKey> {
    program.baselines.iter().map(|baseline| {
        let history = &program.histories[baseline.history.index()];
        binding.sample_key(baseline.key, &history.inputs)
    })
}
