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
//! A program falls into [`Sections`], by instance domain. In each fetch a
//! section has a [`Shape`]: which metrics have values, which of them have the
//! same instances, which fail. For a shape there is a [`Plan`], which all hosts
//! share. What a host is like is its [`State`]s, a plan and the instances for each
//! section, which hosts with the same instances share. What changes in one domain
//! costs that section, and those that depend on its single values.

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
pub use plan::{GeneralPlan, Kept, OutputPlan, Place, Plan};
pub use pool::Pool;
pub use sections::{SectionId, Sections};
pub use shape::{SetId, Shape};

/// What memory is filled with that nothing may depend on, in tests. Not zero, as
/// that is what new memory holds.
pub const POISON: u8 = 0xa5;

/// Instance domain as delivered.
pub type Domain = Result<Arc<InstanceDomain>, PmStatus>;

/// What one host is like.
#[derive(Debug)]
pub struct Layout {
    /// How the program falls into sections.
    pub sections: Arc<Sections>,
    /// Parallel to the sections; `None` before the first fetch. Like hosts share
    /// them.
    pub states: Box<[Option<Arc<State>>]>,
    /// Instance domains that filters looked at.
    pub named: Vec<Domain>,
    /// The same with the instances that selectors found before and that are
    /// in no domain now.
    pub names: Vec<Domain>,
    /// Instance domains that constants are spread over.
    pub fetched: Vec<Domain>,
}

/// What a section of a host is like.
#[derive(Debug)]
pub struct State {
    /// What to do.
    pub plan: Arc<Plan>,
    /// Instances of each set of the plan.
    pub sets: Box<[Arc<[InstId]>]>,
    /// The instances that filters by pattern take, of those that their operands
    /// can have.
    pub taken: Taken,
    /// False for a state that serves one fetch.
    pub lasting: bool,
}

impl State {
    /// True if the other one says the same.
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

/// What filters by pattern take, by node. A pattern may take too long to find
/// that out.
#[derive(Debug, Default, PartialEq)]
pub struct Taken(Vec<(NodeId, TakenIds)>);

/// What one filter takes, or why that is not known.
pub type TakenIds = Result<Arc<[InstId]>, PmStatus>;

impl Taken {
    /// Takes note of what a filter takes; nodes come in ascending order.
    pub fn insert(&mut self, node: NodeId, taken: TakenIds) {
        self.0.push((node, taken));
    }

    /// What a filter takes, if it was looked at.
    pub fn get(&self, node: NodeId) -> Option<&TakenIds> {
        let at = self.0.binary_search_by_key(&node, |(id, _)| *id).ok()?;
        Some(&self.0[at].1)
    }
}

/// The constellation does not fit into 32-bit offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Layout {
    /// The layout of a host of which nothing is known yet.
    pub fn unknown(sections: Arc<Sections>) -> Layout {
        let states = vec![None; sections.all.len()].into();
        Layout { sections, states, named: Vec::new(), names: Vec::new(), fetched: Vec::new() }
    }

    /// The sections that need domains.
    pub fn needing_domains(&self) -> impl Iterator<Item = SectionId> + '_ {
        let sections = self.sections.numbered();
        sections.filter(|(_, section)| section.needs_domains).map(|(at, _)| at)
    }

    /// What a section is like; `None` before the first fetch.
    pub fn state(&self, section: SectionId) -> Option<&State> {
        self.states[section.index()].as_deref()
    }

    /// What came of a metric, and the instances of its node.
    pub fn input(&self, slot: InputSlot) -> (Status, &[InstId]) {
        let home = self.sections.inputs[slot.index()];
        let Some(state) = self.state(home.section) else {
            return (Status::Failed(PmStatus::BOTCH), &[]);
        };
        let input = &state.plan.shape.inputs[home.at as usize];
        (input.status, state.ids(input.set))
    }

    /// The list of a metric's instances, unless it is a single value.
    pub fn list(&self, slot: InputSlot) -> Option<&Arc<[InstId]>> {
        let home = self.sections.inputs[slot.index()];
        let state = self.state(home.section)?;
        state.sets.get(state.plan.shape.inputs[home.at as usize].set.index())
    }

    /// The instance that a single value of a metric came with, or the first of
    /// several.
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

    /// How the operand of a history is kept, or its status if it has no column.
    pub fn kept(&self, history: HistoryId) -> Option<&Result<Kept, Status>> {
        let home = self.sections.histories[history.index()];
        let state = self.state(home.section)?;
        state.plan.histories.get(home.at as usize)
    }

    /// How an output comes about.
    pub fn output(&self, output: OutputId) -> Option<&OutputPlan> {
        let home = self.sections.outputs[output.index()];
        let state = self.state(home.section)?;
        state.plan.outputs.get(home.at as usize)
    }

    /// What a filter by a pattern takes, if it was looked at.
    pub fn taken(&self, node: NodeId) -> Option<&TakenIds> {
        self.state(self.sections.section_of(node))?.taken.get(node)
    }

    /// Instances, lanes and column of a node that has one.
    pub fn column(&self, node: NodeId) -> Option<(SectionId, Place, &[InstId])> {
        let home = self.sections.nodes[node.index()];
        let state = self.state(home.section)?;
        let place = state.plan.columns[home.at as usize]?;
        let shape = state.plan.shape.nodes[home.at as usize];
        Some((home.section, place, state.ids(shape.set)))
    }
}
