//! Turns a batch into columns. If the batch fits the current layout, that
//! layout is used; otherwise a new one is made. A section that has not changed
//! is decoded once and stays.

use std::sync::Arc;

use super::pending::Inconsistent;
use super::{Buffers, Evaluator, OtherNames};
use crate::eval::decode::{Surveys, decode_column, raw_count, survey};
use crate::eval::layout::{Analysis, Domain, Expected, Frame, Layout, SectionId, State, TooLarge};
use crate::model::{InstId, PmStatus, Pmid, ValueType};
use crate::program::{InputSlot, Program, Reason, Status};
use crate::result::{ResultBatch, ValueSet};

/// The facts about a batch that the current layout does not fit.
#[derive(Debug)]
pub struct Misfit {
    /// Sections that are not as expected.
    pub dirty: Vec<SectionId>,
    /// Surveys of the inputs of these sections.
    pub surveys: Surveys,
    /// Domains whose instance names filters read.
    pub named: Vec<Domain>,
    /// True if one of the sections needs these domains.
    pub needs_domains: bool,
    /// The delivered form as a hash, if the layout may return.
    pub delivery: Option<u64>,
}

impl Evaluator {
    /// Records the time of a batch before its evaluation. Forgets previous
    /// samples that are later. At a gap that has already happened.
    pub(super) fn note_time(&mut self, batch: &ResultBatch, at_gap: bool) {
        let goes_back = self.history.goes_back(batch.timestamp());
        if goes_back && !at_gap && self.program.forget_at_gap {
            self.forget(Reason::Backward);
        }
    }

    /// Decodes into the buffers all sections that fit the current layout.
    /// Returns true if these are all sections; otherwise the buffers list the
    /// others. `named` are the domains that filters read.
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
        let frame = buffers.frame(&self.program, &layout.sections);
        frame.give_up_waste();
        if self.stamp != Some(frame.stamp) {
            frame.adopt(&layout.states).map_err(|TooLarge| Inconsistent::TooLarge)?;
            self.stamp = Some(frame.stamp);
        }
        let stamp = frame.stamp;
        let columns = match batch.parts() {
            [part] if buffers.dirty.is_empty() => part.columns(),
            _ => None,
        };
        buffers.blobs.clear();
        let last = buffers.frames.len() - 1;
        if let Some(columns) = columns {
            let Frame { inputs, arena, .. } = &mut buffers.frames[last];
            if self.copied.copy(columns, inputs, stamp, arena) {
                return Ok(true);
            }
        }
        let is_whole = decode_expected((layout, &self.program), self.list.pmids(), batch, buffers)?;
        if !is_whole || !buffers.dirty.is_empty() {
            return Ok(false);
        }
        if let Some(columns) = columns {
            self.copied.learn(columns, &buffers.frames[last].inputs, &self.program.inputs, stamp);
        }
        Ok(true)
    }

    /// Surveys the sections that the current layout does not fit.
    pub(super) fn survey(
        &self,
        batch: &ResultBatch,
        buffers: &mut Buffers,
        named: Vec<Domain>,
        delivery: Option<u64>,
    ) -> Result<Misfit, Inconsistent> {
        let (want, got) = (self.program.fetched_domains, batch.domains.len());
        if got < want {
            return Err(Inconsistent::Domains { want, got });
        }
        let Some(layout) = &self.layout else {
            return Err(Inconsistent::ValueSets { want: 0, got: 0 });
        };
        let is_needing = |section: &SectionId| layout.sections[*section].needs_domains;
        let needs_domains = buffers.dirty.iter().any(is_needing);
        if needs_domains {
            // Names may change the result of each of these sections.
            for section in layout.needing_domains() {
                buffers.make_dirty(section);
            }
        }
        let (want, got) = (self.program.inputs.len(), buffers.sets.len());
        if got != want {
            return Err(Inconsistent::ValueSets { want, got });
        }
        let mut surveys = Surveys::default();
        let mut latest: Option<Arc<[InstId]>> = None;
        for slot in buffers.dirty_inputs(layout) {
            let Some(set) = batch.set_at(buffers.sets[slot.index()]) else { continue };
            // Metrics of one domain usually follow each other.
            let known = latest.iter().chain(layout.list(slot));
            let mut survey = survey(&set, self.program.inputs[slot.index()].value_type, known);
            let is_derived = || self.list.pmids()[slot.index()].is_derived();
            if self.program.derived_is_unknown
                && survey.status == Status::Failed(PmStatus::NOAGENT)
                && is_derived()
            {
                survey.status = Status::Failed(PmStatus::PMID);
            }
            if survey.status == Status::Values {
                latest = Some(Arc::clone(&survey.ids));
            }
            surveys.push(slot, survey);
        }
        Ok(Misfit { dirty: buffers.dirty.clone(), surveys, named, needs_domains, delivery })
    }

    /// Positions of filters' domains that lack an instance with values. They
    /// may have changed since the source was asked.
    pub(super) fn outdated(&self, found: &Misfit) -> Vec<usize> {
        let is_outdated = |position: &usize| {
            let lacks = |slot: &InputSlot| match &found.named[*position] {
                Ok(domain) => found.surveys.ids(*slot).iter().any(|id| domain.name(*id).is_none()),
                Err(_) => true,
            };
            self.program.named_domains[*position].iter().any(lacks)
        };
        (0..found.named.len()).filter(is_outdated).collect()
    }

    /// Finds or makes plans for the changed sections, makes them current and
    /// decodes.
    pub(super) fn change_layout(
        &mut self,
        found: Misfit,
        others: OtherNames,
        batch: &ResultBatch,
        buffers: &mut Buffers,
    ) -> Result<(), Inconsistent> {
        let Misfit { dirty, surveys, named, needs_domains, delivery } = found;
        let program = Arc::clone(&self.program);
        let Some(mut layout) = self.layout.take() else { return Ok(()) };
        if needs_domains || layout.states.iter().all(Option::is_none) {
            layout.names = self.selected.names(&program, &surveys, &named, others);
            layout.named = named;
            layout.fetched = own_domains(&program, batch).to_vec();
        }
        let shared = self.shared.layouts();
        let (drafts, is_start) = {
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
                draft_of: Vec::new(),
            };
            let is_start = analysis.run(dirty, shared);
            (analysis.drafts, is_start)
        };
        for draft in drafts {
            let section = draft.section;
            buffers.make_dirty(section);
            let make = || shared.plan(&program, &layout.sections, section, draft.shape);
            let plan = draft.plan.unwrap_or_else(make);
            let (taken, lasting) = (draft.taken, draft.lasting);
            let sets = draft.sets.into();
            let state = shared.state(State { plan, sets, taken, lasting });
            self.history
                .change_section(&mut layout, section, state, &mut buffers.former)
                .map_err(|TooLarge| Inconsistent::TooLarge)?;
        }
        if is_start {
            let plans = layout.states.iter().flatten().map(|state| &state.plan);
            shared.remember_start(plans);
        }
        if let Some(delivery) = delivery {
            self.returning.note(delivery, &layout);
        }
        let frame = buffers.frame(&program, &layout.sections);
        let is_laid_out = frame.adopt(&layout.states);
        self.stamp = Some(frame.stamp);
        is_laid_out.map_err(|TooLarge| Inconsistent::TooLarge)?;
        decode_dirty(&layout, &program, batch, buffers);
        self.layout = Some(layout);
        self.find_irregular_in(&buffers.dirty);
        Ok(())
    }
}

impl Buffers {
    /// Marks the sections that are dirty whatever was delivered.
    fn mark_dirty(
        &mut self,
        layout: &Layout,
        domains_are_same: impl Fn(&[Domain]) -> bool,
        fetched: &[Domain],
    ) {
        self.clear_dirty(Some(layout));
        for (section, state) in (0..).map(SectionId).zip(&layout.states) {
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

    /// Marks no section of a layout.
    pub(super) fn clear_dirty(&mut self, layout: Option<&Layout>) {
        self.dirty.clear();
        self.is_dirty.clear();
        self.is_dirty.resize(layout.map_or(0, |layout| layout.sections.all.len()), false);
    }

    /// The inputs of the dirty sections, ascending.
    fn dirty_inputs(&self, layout: &Layout) -> Vec<InputSlot> {
        let sections = self.dirty.iter().map(|section| &layout.sections[*section]);
        let mut slots: Vec<InputSlot> = sections.flat_map(|own| &own.inputs).copied().collect();
        slots.sort_unstable();
        slots
    }

    pub(super) fn make_dirty(&mut self, section: SectionId) {
        if !std::mem::replace(&mut self.is_dirty[section.index()], true) {
            self.dirty.push(section);
        }
    }
}

/// The delivered domains that belong to the program.
fn own_domains<'b>(program: &Program, batch: &'b ResultBatch) -> &'b [Domain] {
    &batch.domains[..batch.domains.len().min(program.fetched_domains)]
}

/// Compares pointers: a source gives the same domain again while nothing
/// changes in it.
fn same_domains(a: &[Domain], b: &[Domain]) -> bool {
    let same = |(a, b): (&Domain, &Domain)| match (a, b) {
        (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
        (Err(a), Err(b)) => a == b,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Decodes the sections of a batch that are not known to be dirty, and records
/// the places of the value sets. A section that turns out not to be as expected
/// becomes dirty. Returns false if value sets are missing. `pmids` are the
/// metrics of the value sets.
fn decode_expected(
    (layout, program): (&Layout, &Program),
    pmids: &[Pmid],
    batch: &ResultBatch,
    buffers: &mut Buffers,
) -> Result<bool, Inconsistent> {
    let Buffers { frames, blobs, dirty, is_dirty, sets, .. } = buffers;
    sets.clear();
    let Some(frame) = frames.last_mut() else { return Ok(false) };
    let mut expected = frame.inputs.iter().zip(&program.inputs).zip(pmids);
    for (place, set) in batch.placed_sets() {
        // Value sets after the program's inputs are not the program's.
        let Some(((input, spec), pmid)) = expected.next() else { return Ok(true) };
        if set.pmid != *pmid {
            return Err(Inconsistent::OtherMetric { at: sets.len(), want: *pmid, got: set.pmid });
        }
        sets.push(place);
        let section = input.section.index();
        if is_dirty[section] {
            continue;
        }
        let to = (&mut frame.arena[..], &mut *blobs);
        if !decode_input(layout, input, spec.value_type, &set, to) {
            is_dirty[section] = true;
            dirty.push(input.section);
        }
    }
    Ok(expected.next().is_none())
}

/// Decodes the sections that were dirty and have a new layout.
fn decode_dirty(layout: &Layout, program: &Program, batch: &ResultBatch, buffers: &mut Buffers) {
    let slots = buffers.dirty_inputs(layout);
    let Buffers { frames, blobs, sets, .. } = buffers;
    let Some(frame) = frames.last_mut() else { return };
    for slot in slots {
        let Some(set) = batch.set_at(sets[slot.index()]) else { continue };
        let (input, spec) = (&frame.inputs[slot.index()], &program.inputs[slot.index()]);
        let to = (&mut frame.arena[..], &mut *blobs);
        decode_input(layout, input, spec.value_type, &set, to);
    }
}

/// Decodes one value set into its column. Returns false if it is not as
/// expected.
fn decode_input(
    layout: &Layout,
    input: &Expected,
    value_type: ValueType,
    set: &ValueSet<'_>,
    (arena, blobs): (&mut [u8], &mut Vec<u8>),
) -> bool {
    if raw_count(set) != input.raw_count {
        return false;
    }
    if !input.has_values {
        return true;
    }
    let ids: &[InstId] = match layout.state(input.section) {
        Some(_) if input.section == SectionId::SINGLES => std::slice::from_ref(&input.instance),
        Some(state) => state.ids(input.set),
        None => &[],
    };
    let column = &mut arena[input.offset as usize..][..ids.len() * value_type.lane_bytes()];
    decode_column(set, value_type, ids, column, blobs)
}
