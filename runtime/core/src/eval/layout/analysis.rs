//! Determines the shapes of sections that have changed, and of sections that
//! change because of them.
//!
//! It uses the delivered instances and reads no values. [`super::rules`]
//! derives the shape of a node from those of its operands.

use std::sync::Arc;

use super::draft::{Draft, DraftId};
use super::shape::{InputShape, NodeShape, SetId};
use super::{Domain, SectionId, Sections, State};
use crate::eval::decode::Surveys;
use crate::eval::history::HistoryStore;
use crate::eval::shared_layouts::SharedLayouts;
use crate::eval::verdicts::Verdicts;
use crate::model::PmStatus;
use crate::program::{InputSlot, NodeId, Program, Status};

/// The analysis of sections that have changed.
pub struct Analysis<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its sections.
    pub sections: &'a Sections,
    /// States of the sections before. Sections that are not analysed keep them.
    pub states: &'a [Option<Arc<State>>],
    /// Surveys of the inputs of the analysed sections.
    pub surveys: &'a Surveys,
    /// Previous samples.
    pub history: &'a HistoryStore,
    /// Domains in which names are looked up.
    pub names: &'a [Domain],
    /// Domains that came with the fetch.
    pub fetched: &'a [Domain],
    /// Verdicts of patterns so far.
    pub verdicts: &'a mut Verdicts,
    /// Drafts of the analysed sections.
    pub drafts: Vec<Draft>,
    /// The draft of each section that has one, parallel to the program's sections.
    pub draft_of: Vec<Option<DraftId>>,
}

impl Analysis<'_> {
    /// Analyses the dirty sections, and those that change because of them. If
    /// another host began with the same inputs, the drafts get the plans that
    /// were made for it. Returns true if the result is new and valid for every
    /// host that begins so.
    pub fn run(&mut self, mut dirty: Vec<SectionId>, shared: &SharedLayouts) -> bool {
        loop {
            self.begin(&dirty);
            let is_start = self.is_start();
            if is_start && shared.begins_as_others(&mut self.drafts) {
                return false;
            }
            self.analyse_nodes(&dirty);
            let before = dirty.len();
            for draft in 0..self.drafts.len() {
                for user in &self.sections[self.drafts[draft].section].users {
                    if self.draft_of[user.index()].is_none()
                        && !dirty.contains(user)
                        && self.imports_of(*user) != self.imports_before(*user)
                    {
                        dirty.push(*user);
                    }
                }
            }
            if dirty.len() == before {
                return is_start;
            }
        }
    }

    /// Starts the drafts from the surveys.
    fn begin(&mut self, dirty: &[SectionId]) {
        self.drafts.clear();
        self.draft_of.clear();
        self.draft_of.resize(self.sections.all.len(), None);
        for section in dirty {
            self.draft_of[section.index()] = Some(DraftId(self.drafts.len() as u32));
            self.drafts.push(Draft::new(*section));
        }
        for id in (0..self.drafts.len() as u32).map(DraftId) {
            self.inputs(id);
        }
    }

    /// True for a host's first layout, if it follows from the shapes of the
    /// inputs alone and not from their instances.
    fn is_start(&mut self) -> bool {
        let sections = self.sections;
        let is_plain = |draft: &mut Draft| {
            let one_set = match draft.sets.len() {
                0 => true,
                1 => !draft.has_repeats(SetId(0)),
                _ => false,
            };
            one_set && !sections[draft.section].needs_domains
        };
        self.drafts.len() == sections.all.len()
            && self.states.iter().all(Option::is_none)
            && !self.history.has_resident()
            && self.drafts.iter_mut().all(is_plain)
    }

    fn analyse_nodes(&mut self, dirty: &[SectionId]) {
        // Visits the nodes in the order of the program, across sections.
        if dirty.len() == self.sections.all.len() {
            for id in (0..self.program.nodes.len() as u32).map(NodeId) {
                self.analyse_node(id);
            }
        } else {
            let lists = dirty.iter().flat_map(|section| &self.sections[*section].nodes);
            let mut nodes: Vec<NodeId> = lists.copied().collect();
            nodes.sort_unstable();
            nodes.into_iter().for_each(|id| self.analyse_node(id));
        }
        for at in 0..self.drafts.len() {
            let imports = self.imports_of(self.drafts[at].section);
            let draft = &mut self.drafts[at];
            draft.shape.imports = imports;
            let histories = self.sections[draft.section].histories.len();
            draft.shape.before.resize(histories, None);
            draft.shape.sets = draft.sets.len();
        }
    }

    /// The present state of the nodes that a section imports.
    fn imports_of(&self, section: SectionId) -> Vec<(Status, bool)> {
        let import = |node: &NodeId| {
            let shape = self.node(*node);
            (shape.status, shape.regular)
        };
        self.sections[section].imports.iter().map(import).collect()
    }

    fn imports_before(&self, section: SectionId) -> &[(Status, bool)] {
        let state = self.states[section.index()].as_deref();
        state.map_or(&[], |state| &state.plan.shape.imports)
    }

    pub(super) fn node(&self, id: NodeId) -> NodeShape {
        let home = self.sections.nodes[id.index()];
        let nodes = match self.draft_of[home.section.index()] {
            Some(draft) => &self.drafts[draft.index()].shape.nodes,
            None => match &self.states[home.section.index()] {
                Some(state) => &state.plan.shape.nodes,
                None => return NodeShape::without(Status::Failed(PmStatus::BOTCH), true),
            },
        };
        nodes[home.at as usize]
    }

    fn inputs(&mut self, id: DraftId) {
        let draft = &mut self.drafts[id.index()];
        let section = &self.sections[draft.section];
        let before = self.states[draft.section.index()].as_deref();
        for (position, slot) in section.inputs.iter().enumerate() {
            let Some(survey) = self.surveys.get(*slot) else {
                // Only imported nodes have changed.
                let Some(state) = before else { continue };
                let mut input = state.plan.shape.inputs[position];
                if let Some(ids) = state.sets.get(input.set.index()) {
                    input.set = draft.intern(Arc::clone(ids), before);
                }
                draft.shape.inputs.push(input);
                continue;
            };
            draft.lasting &= survey.sound;
            let has_values = survey.status == Status::Values;
            let is_single = draft.section == SectionId::SINGLES;
            let set = match has_values && !is_single {
                true => draft.intern(Arc::clone(&survey.ids), before),
                false => SetId::SINGLE,
            };
            let is_count = has_values && !is_single;
            draft.shape.inputs.push(InputShape {
                status: survey.status,
                set,
                raw_count: if is_count { 0 } else { survey.raw_count },
                instance: survey.ids.first().copied().filter(|_| is_single).unwrap_or(-1),
            });
        }
    }

    fn analyse_node(&mut self, id: NodeId) {
        let program = self.program;
        let Some(draft) = self.draft_of[self.sections.section_of(id).index()] else { return };
        let shape = self.shape_of(draft, id, &program.nodes[id.index()]);
        self.draft(draft).shape.nodes.push(shape);
    }

    pub(super) fn draft(&mut self, id: DraftId) -> &mut Draft {
        &mut self.drafts[id.index()]
    }

    pub(super) fn input(&self, draft: DraftId, slot: InputSlot) -> InputShape {
        let at = self.sections.inputs[slot.index()].at as usize;
        self.drafts[draft.index()].shape.inputs[at]
    }
}
