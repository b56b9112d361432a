//! Layouts: everything about an evaluation that does not depend on values.
//!
//! ```text
//!   program ──► Sections              once for a program
//!                  │  what was delivered
//!                  ▼
//!               Shape ──► Plan        once for a shape, for all hosts that have it
//!                  │
//!                  ▼  numbers of instances
//!                Frame                offsets in the workspace
//! ```
//!
//! A program is divided into [`Sections`], by instance domain. In each fetch a
//! section has a [`Shape`]: which metrics have values, which have the same
//! instances, which fail. Each shape has a [`Plan`], which all hosts share. A
//! host has a [`State`] for each section: a plan and the instances. Hosts with
//! the same instances share states. A change in one domain costs only that
//! section and the sections that depend on its single values.

mod analysis;
mod calls;
mod draft;
mod frame;
mod geometry;
mod placed;
mod plan;
mod planning;
mod pool;
mod rules;
mod sections;
mod shape;

use std::sync::Arc;

use crate::model::{InstId, InstanceDomain, PmStatus};
use crate::program::{HistoryId, InputSlot, NodeId, OutputId, Status};
pub use analysis::Analysis;
pub use draft::Draft;
pub use frame::{Expected, Frame};
pub use geometry::Geometry;
pub use placed::{Copy, Placed, Save};
pub use plan::{GeneralPlan, OutputPlan, Place, Plan, SavedOperand};
pub use pool::Pool;
pub use sections::{SectionId, Sections};
pub use shape::{SetId, Shape};

/// Byte that fills memory in tests whose contents must not matter. It is not
/// zero, because new memory holds zeros.
pub const POISON: u8 = 0xa5;

/// An instance domain as it was delivered, or a status.
pub type Domain = Result<Arc<InstanceDomain>, PmStatus>;

/// The layout of one host.
#[derive(Debug)]
pub struct Layout {
    /// The sections of the program.
    pub sections: Arc<Sections>,
    /// States, parallel to the sections; `None` before the first fetch. Similar
    /// hosts share them.
    pub states: Box<[Option<Arc<State>>]>,
    /// Instance domains that filters read.
    pub named: Vec<Domain>,
    /// The domains in `named`, extended by instances that selectors found
    /// earlier and that have left their domains.
    pub names: Vec<Domain>,
    /// Instance domains over which constants are spread.
    pub fetched: Vec<Domain>,
}

/// The state of a section on a host.
#[derive(Debug)]
pub struct State {
    /// The plan of the section.
    pub plan: Arc<Plan>,
    /// Instances of each set of the plan.
    pub sets: Box<[Arc<[InstId]>]>,
    /// For each filter by pattern, the instances that it chooses among all that
    /// its operand can have.
    pub taken: FilterChoices,
    /// False for a state that serves only one fetch.
    pub lasting: bool,
}

impl State {
    /// True if both states are equal.
    pub fn is_like(&self, other: &State) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan)
            && self.sets == other.sets
            && self.taken == other.taken
            && self.lasting == other.lasting
    }

    /// Identifiers of the lanes of a set.
    pub fn ids(&self, set: SetId) -> &[InstId] {
        match set {
            SetId::SINGLE => &[-1],
            set => &self.sets[set.index()],
        }
    }
}

/// The instances that filters by pattern choose, by node. A search may be too
/// long to decide.
#[derive(Debug, Default, PartialEq)]
pub struct FilterChoices(Vec<(NodeId, ChosenIds)>);

/// The instances that one filter chooses, or the status if the search was too
/// long.
pub type ChosenIds = Result<Arc<[InstId]>, PmStatus>;

impl FilterChoices {
    /// Adds the result of a filter. Nodes must come in ascending order.
    pub fn insert(&mut self, node: NodeId, taken: ChosenIds) {
        self.0.push((node, taken));
    }

    /// The result of a filter, if it was evaluated.
    pub fn get(&self, node: NodeId) -> Option<&ChosenIds> {
        let at = self.0.binary_search_by_key(&node, |(id, _)| *id).ok()?;
        Some(&self.0[at].1)
    }
}

/// The layout does not fit into 32-bit offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Layout {
    /// The layout of a host before its first fetch.
    pub fn unknown(sections: Arc<Sections>) -> Layout {
        let states = vec![None; sections.all.len()].into();
        Layout { sections, states, named: Vec::new(), names: Vec::new(), fetched: Vec::new() }
    }

    /// The sections that need domains.
    pub fn needing_domains(&self) -> impl Iterator<Item = SectionId> + '_ {
        let sections = self.sections.numbered();
        sections.filter(|(_, section)| section.needs_domains).map(|(at, _)| at)
    }

    /// The state of a section; `None` before the first fetch.
    pub fn state(&self, section: SectionId) -> Option<&State> {
        self.states[section.index()].as_deref()
    }

    /// The status of a metric, and the instances of its node.
    pub fn input(&self, slot: InputSlot) -> (Status, &[InstId]) {
        let home = self.sections.inputs[slot.index()];
        let Some(state) = self.state(home.section) else {
            return (Status::Failed(PmStatus::BOTCH), &[]);
        };
        let input = &state.plan.shape.inputs[home.at as usize];
        (input.status, state.ids(input.set))
    }

    /// The list of a metric's instances. `None` for a single value.
    pub fn list(&self, slot: InputSlot) -> Option<&Arc<[InstId]>> {
        let home = self.sections.inputs[slot.index()];
        let state = self.state(home.section)?;
        state.sets.get(state.plan.shape.inputs[home.at as usize].set.index())
    }

    /// The instance number of a metric's single value, or of the first of
    /// several values.
    pub fn bearer(&self, slot: InputSlot) -> Option<&InstId> {
        let home = self.sections.inputs[slot.index()];
        let state = self.state(home.section)?;
        let input = &state.plan.shape.inputs[home.at as usize];
        match (input.status, input.set) {
            (Status::Values, SetId::SINGLE) => Some(&input.instance),
            (Status::Values, set) => state.ids(set).first(),
            _ => None,
        }
    }

    /// The place in which the operand of a history is kept, or its status if it
    /// has no column.
    pub fn kept(&self, history: HistoryId) -> Option<&Result<SavedOperand, Status>> {
        let home = self.sections.histories[history.index()];
        let state = self.state(home.section)?;
        state.plan.histories.get(home.at as usize)
    }

    /// The plan of an output.
    pub fn output(&self, output: OutputId) -> Option<&OutputPlan> {
        let home = self.sections.outputs[output.index()];
        let state = self.state(home.section)?;
        state.plan.outputs.get(home.at as usize)
    }

    /// The instances that a filter by a pattern chooses, if it was evaluated.
    pub fn taken(&self, node: NodeId) -> Option<&ChosenIds> {
        self.state(self.sections.section_of(node))?.taken.get(node)
    }

    /// Section, place and instances of a node with a column.
    pub fn column(&self, node: NodeId) -> Option<(SectionId, Place, &[InstId])> {
        let home = self.sections.nodes[node.index()];
        let state = self.state(home.section)?;
        let place = state.plan.columns[home.at as usize]?;
        let shape = state.plan.shape.nodes[home.at as usize];
        Some((home.section, place, state.ids(shape.set)))
    }
}
