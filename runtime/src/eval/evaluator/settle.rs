//! From a batch to columns: as the layout in force expects it, and where it is
//! not, with a layout that fits. Sections in which nothing has changed are
//! decoded once and stay as they are.

use std::collections::HashMap;
use std::sync::Arc;

use super::pending::Inconsistent;
use super::{Buffers, Evaluator, Former, OtherNames};
use crate::eval::decode::{Surveys, decode_column, raw_count, survey};
use crate::eval::layout::{Analysis, Domain, Expected, Layout, State, TooLarge};
use crate::model::{InstId, PmStatus};
use crate::program::{InputSlot, Program, Reason, Status};
use crate::result::{LayoutId, ResultBatch, ResultPart, ValueSet};

/// Layouts that are known again when they come back: archives alternate
/// between a few kinds of records.
const LAYOUTS_KNOWN: usize = 8;
/// Most sections of layouts that are known again.
const SECTIONS_KNOWN: usize = 64;

/// What was found out about a batch that is not as the layout in force expects.
#[derive(Debug)]
pub struct Found {
    /// Sections that are not as expected.
    pub dirty: Vec<u32>,
    /// Of the inputs of these.
    pub surveys: Surveys,
    /// Parallel to the domains that filters look at.
    pub named: Vec<Domain>,
    /// True if one of the sections needs them.
    pub needs_domains: bool,
}

impl Evaluator {
    /// Takes note of the time of a batch that is about to be evaluated. Previous
    /// samples are forgotten if they are later; at a gap they have been already.
    pub(super) fn note_time(&mut self, batch: &ResultBatch, at_gap: bool) {
        let goes_back = self.history.goes_back(batch.timestamp());
        if goes_back && !at_gap && self.program.forget_at_gap {
            self.forget(Reason::Backward);
        }
    }

    /// Decodes into the buffers what is as the layout in force expects it; true
    /// if that is everything. Otherwise the buffers tell which sections are
    /// not. `named` are the domains that filters look at.
    pub(super) fn decode_as_expected(
        &mut self,
        named: &[Domain],
        batch: &ResultBatch,
        buffers: &mut Buffers,
    ) -> Result<bool, Inconsistent> {
        let layout = self.layout.get_or_insert_with(|| {
            Layout::unknown(Arc::clone(self.shared.layouts().sections(&self.program)))
        });
        buffers.mark_dirty(
            layout,
            |domains| same_domains(named, &layout.named) && same_domains(domains, &layout.fetched),
            own_domains(&self.program, batch),
        );
        let frame = buffers.frame(&layout.sections);
        if self.stamp != Some(frame.stamp) {
            frame
                .adopt(&self.program, &layout.states)
                .map_err(|TooLarge| Inconsistent::TooLarge)?;
            self.stamp = Some(frame.stamp);
        }
        let stamp = frame.stamp;
        let part = match batch.parts() {
            [part] if buffers.dirty.is_empty() => Some(part),
            _ => None,
        };
        let last = buffers.frames.len() - 1;
        let arena = &mut buffers.frames[last].arena;
        if part.is_some_and(|part| self.delivered.decode(part, stamp, arena)) {
            buffers.blobs.clear();
            return Ok(true);
        }
        buffers.blobs.clear();
        let is_whole = decode(layout, &self.program, batch, buffers, Which::Expected);
        if !is_whole || !buffers.dirty.is_empty() {
            return Ok(false);
        }
        if let Some(part) = part {
            let inputs = buffers.frames[last].inputs.iter().zip(&self.program.inputs);
            let inputs = inputs.map(|(input, spec)| {
                input.has_values.then_some((spec.value_type, input.offset as usize))
            });
            // What has more lanes than its column is decoded one by one.
            let is_plain = |input: &Expected| input.section != 0 || input.raw_count <= 1;
            if buffers.frames[last].inputs.iter().all(is_plain) {
                self.delivered.learn(part, stamp, inputs);
            }
        }
        Ok(true)
    }

    /// Finds out what the sections are like that are not as expected.
    pub(super) fn survey(
        &self,
        batch: &ResultBatch,
        buffers: &mut Buffers,
        named: Vec<Domain>,
    ) -> Result<Found, Inconsistent> {
        let (want, got) = (self.program.fetched_domains, batch.domains.len());
        if got < want {
            return Err(Inconsistent::Domains { want, got });
        }
        let Some(layout) = &self.layout else {
            return Err(Inconsistent::ValueSets { want: 0, got: 0 });
        };
        let is_needing = |section: &u32| layout.sections.all[*section as usize].needs_domains;
        let needs_domains = buffers.dirty.iter().any(is_needing);
        if needs_domains {
            // Names may tell something else of each of them.
            for section in layout.needing_domains() {
                buffers.make_dirty(section);
            }
        }
        let mut surveys = Surveys::default();
        let mut got = 0;
        let inputs = (0u32..).map(InputSlot).zip(&self.program.inputs);
        for ((slot, input), (part, set)) in inputs.zip(sets_of(batch)) {
            got += 1;
            let section = layout.sections.inputs[slot.index()].section;
            if !buffers.is_dirty[section as usize] {
                continue;
            }
            let mut survey = survey(part, &set, input.value_type);
            let is_derived = || self.list.pmids()[slot.index()].is_derived();
            if self.program.derived_is_unknown
                && survey.status == Status::Failed(PmStatus::NOAGENT)
                && is_derived()
            {
                survey.status = Status::Failed(PmStatus::PMID);
            }
            surveys.push(slot, survey);
        }
        let want = self.program.inputs.len();
        if got != want {
            return Err(Inconsistent::ValueSets { want, got });
        }
        Ok(Found { dirty: buffers.dirty.clone(), surveys, named, needs_domains })
    }

    /// Positions of the filters' domains that lack an instance which has
    /// values: they may have changed since they were learnt.
    pub(super) fn outdated(&self, found: &Found) -> Vec<usize> {
        let is_outdated = |position: &usize| {
            let lacks = |slot: &InputSlot| match &found.named[*position] {
                Ok(domain) => found.surveys.ids(*slot).iter().any(|id| domain.name(*id).is_none()),
                Err(_) => true,
            };
            self.program.named_domains[*position].iter().any(lacks)
        };
        (0..found.named.len()).filter(is_outdated).collect()
    }

    /// Finds or makes plans for the sections that have changed, puts them in
    /// force and decodes.
    pub(super) fn change_layout(
        &mut self,
        found: Found,
        others: OtherNames,
        batch: &ResultBatch,
        buffers: &mut Buffers,
    ) -> Result<(), Inconsistent> {
        let Found { dirty, surveys, named, needs_domains } = found;
        let program = Arc::clone(&self.program);
        let Some(mut layout) = self.layout.take() else { return Ok(()) };
        let was = self.former_of(&layout);
        if needs_domains || layout.states.iter().all(Option::is_none) {
            layout.names = self.selected.names(&program, &surveys, &named, others);
            layout.named = named;
            layout.fetched = own_domains(&program, batch).to_vec();
        }
        let drafts = {
            let mut analysis = Analysis {
                program: &program,
                sections: &layout.sections,
                states: &layout.states,
                surveys: &surveys,
                history: &self.history,
                names: &layout.names,
                fetched: &layout.fetched,
                verdicts: &mut self.verdicts,
                drafts: Vec::new(),
                draft_of: HashMap::new(),
            };
            analysis.run(dirty);
            analysis.drafts
        };
        for draft in drafts {
            let section = draft.section as usize;
            buffers.make_dirty(draft.section);
            let shared = self.shared.layouts();
            let plan = shared.plan(&program, &layout.sections, draft.section, draft.shape);
            let (taken, lasting) = (draft.taken, draft.lasting);
            let state = State { plan, sets: draft.sets.into(), taken, lasting };
            self.history
                .change_section(&layout, section, &state, &mut buffers.former)
                .map_err(|TooLarge| Inconsistent::TooLarge)?;
            layout.states[section] = Some(state);
        }
        layout.id = self.id_of(&layout);
        self.former.extend(was);
        let surplus = self.former.len().saturating_sub(LAYOUTS_KNOWN);
        self.former.drain(..surplus);
        let frame = buffers.frame(&layout.sections);
        let is_laid_out = frame.adopt(&program, &layout.states);
        self.stamp = Some(frame.stamp);
        is_laid_out.map_err(|TooLarge| Inconsistent::TooLarge)?;
        decode(&layout, &program, batch, buffers, Which::Dirty);
        self.layout = Some(layout);
        self.find_irregular();
        Ok(())
    }

    /// The layout in force, to be known again.
    fn former_of(&self, layout: &Layout) -> Option<Former> {
        let is_lasting = |state: &Option<State>| state.as_ref().is_some_and(|state| state.lasting);
        if layout.states.len() > SECTIONS_KNOWN
            || !layout.states.iter().all(is_lasting)
            || self.former.iter().any(|former| former.id == layout.id)
        {
            return None;
        }
        Some(Former { id: layout.id, states: layout.states.iter().flatten().cloned().collect() })
    }

    /// The identity of a layout: that of one before, if it is the same.
    fn id_of(&self, layout: &Layout) -> LayoutId {
        let same = |(state, former): (&Option<State>, &State)| {
            state.as_ref().is_some_and(|state| {
                state.lasting && Arc::ptr_eq(&state.plan, &former.plan) && state.sets == former.sets
            })
        };
        let is_same = |former: &&Former| layout.states.iter().zip(&former.states).all(same);
        self.former.iter().find(is_same).map_or_else(LayoutId::fresh, |former| former.id)
    }
}

impl Buffers {
    /// Marks the sections that have to be looked at whatever was delivered.
    fn mark_dirty(
        &mut self,
        layout: &Layout,
        domains_are_same: impl Fn(&[Domain]) -> bool,
        fetched: &[Domain],
    ) {
        self.dirty.clear();
        self.is_dirty.clear();
        self.is_dirty.resize(layout.sections.all.len(), false);
        for (section, state) in (0u32..).zip(&layout.states) {
            if state.as_ref().is_none_or(|state| !state.lasting) {
                self.make_dirty(section);
            }
        }
        if !domains_are_same(fetched) {
            for section in layout.needing_domains() {
                self.make_dirty(section);
            }
        }
    }

    fn make_dirty(&mut self, section: u32) {
        if !std::mem::replace(&mut self.is_dirty[section as usize], true) {
            self.dirty.push(section);
        }
    }
}

/// The delivered domains that the program has asked for.
fn own_domains<'b>(program: &Program, batch: &'b ResultBatch) -> &'b [Domain] {
    &batch.domains[..batch.domains.len().min(program.fetched_domains)]
}

/// Sources give the same domain again as long as nothing has changed in it.
fn same_domains(a: &[Domain], b: &[Domain]) -> bool {
    let same = |(a, b): (&Domain, &Domain)| match (a, b) {
        (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
        (Err(a), Err(b)) => a == b,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The value sets of a batch with their parts.
fn sets_of(batch: &ResultBatch) -> impl Iterator<Item = (&ResultPart, ValueSet<'_>)> {
    batch.parts().iter().flat_map(|part| part.sets().map(move |set| (part, set)))
}

/// Which sections are decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those that are as expected, as far as is known; others become dirty.
    Expected,
    /// Those that are dirty.
    Dirty,
}

/// Decodes sections of a batch into the frame. False if value sets are missing.
fn decode(
    layout: &Layout,
    program: &Program,
    batch: &ResultBatch,
    buffers: &mut Buffers,
    which: Which,
) -> bool {
    let Buffers { frames, blobs, dirty, is_dirty, .. } = buffers;
    let Some(frame) = frames.last_mut() else { return false };
    let mut expected = frame.inputs.iter().zip(&program.inputs);
    let mut position = 0;
    for (part, set) in sets_of(batch) {
        // What follows the program's inputs is not its affair.
        let Some((input, spec)) = expected.next() else { return true };
        let section = input.section as usize;
        position += 1;
        if is_dirty[section] != (which == Which::Dirty) {
            continue;
        }
        let is_same = raw_count(&set) == input.raw_count
            && (!input.has_values || {
                let ids: &[InstId] = match &layout.states[section] {
                    Some(_) if section == 0 => std::slice::from_ref(&input.instance),
                    Some(state) => state.ids(input.set),
                    None => &[],
                };
                let width = spec.value_type.lane_bytes();
                let column = &mut frame.arena[input.offset as usize..][..ids.len() * width];
                decode_column(part, &set, spec.value_type, ids, column, blobs)
            });
        if !is_same && which == Which::Expected {
            is_dirty[section] = true;
            dirty.push(section as u32);
        }
    }
    position == program.inputs.len()
}
