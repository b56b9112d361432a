//! What evaluators of one program have in common: how it falls into sections,
//! the plans for what sections can look like, and the instances that these have.
//! A plan that was made for one host serves every other, whatever its instances
//! are.
//!
//! Plans exist as long as someone uses them, and the latest a while longer:
//! what a section looks like for one fetch mostly comes again.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use rustc_hash::FxHasher;

use super::layout::{Draft, Plan, Pool, SectionId, Sections, Shape, State};
use crate::program::Program;
use crate::weak_table::WeakTable;

/// What evaluators of one program have in common. They hold it for as long as
/// they use the program, so that it is there for the next evaluator.
pub trait InCommon: fmt::Debug + Send + Sync {
    /// Their layouts.
    fn layouts(&self) -> &SharedLayouts;
}

impl InCommon for SharedLayouts {
    fn layouts(&self) -> &SharedLayouts {
        self
    }
}

/// Sections, plans and states for all evaluators of one program.
#[derive(Debug, Default)]
pub struct SharedLayouts {
    pool: Arc<Pool>,
    sections: OnceLock<Arc<Sections>>,
    plans: Mutex<Plans>,
    /// What sections of hosts are like.
    states: Mutex<WeakTable<State>>,
    /// Plans of all sections that hosts have begun with, oldest first.
    starts: Mutex<VecDeque<Box<[Weak<Plan>]>>>,
}

#[derive(Debug, Default)]
struct Plans {
    table: WeakTable<Plan>,
    /// Oldest first.
    latest: VecDeque<Arc<Plan>>,
}

/// Plans that are kept for each section, whether someone uses them or not.
const KEPT_PER_SECTION: usize = 2;

/// Ways to begin that are remembered.
const STARTS: usize = 8;

impl SharedLayouts {
    /// Those of a program that has layouts in common with others of the pool.
    pub fn of(pool: &Arc<Pool>) -> SharedLayouts {
        SharedLayouts { pool: Arc::clone(pool), ..SharedLayouts::default() }
    }

    /// How many plans are in use.
    pub fn count(&self) -> usize {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).table.count()
    }

    /// The sections of the program, which is the same at each call.
    pub(super) fn sections(&self, program: &Program) -> &Arc<Sections> {
        self.sections.get_or_init(|| self.pool.sections.shared(Sections::of(program)))
    }

    /// Gives drafts of all sections, whose shapes follow from the shapes of
    /// their inputs, the plans that were made for others with the same inputs.
    /// False if there is none.
    pub(super) fn begins_as_others(&self, drafts: &mut [Draft]) -> bool {
        let starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        let plan_of = |(weak, draft): (&Weak<Plan>, &Draft)| {
            let plan = weak.upgrade()?;
            let is_like = plan.section == draft.section && plan.shape.inputs == draft.shape.inputs;
            is_like.then_some(plan)
        };
        let known = starts.iter().rev().find_map(|plans| {
            plans.iter().zip(&*drafts).map(plan_of).collect::<Option<Vec<Arc<Plan>>>>()
        });
        let Some(plans) = known else { return false };
        for (draft, plan) in drafts.iter_mut().zip(plans) {
            draft.plan = Some(plan);
        }
        true
    }

    /// Remembers plans that follow from the shapes of the inputs alone, in the
    /// order of the sections.
    pub(super) fn remember_start<'p>(&self, plans: impl Iterator<Item = &'p Arc<Plan>>) {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        starts.retain(|plans| plans.iter().all(|plan| plan.strong_count() > 0));
        let surplus = (starts.len() + 1).saturating_sub(STARTS);
        starts.drain(..surplus);
        starts.push_back(plans.map(Arc::downgrade).collect());
    }

    /// The plan of a section of that shape.
    pub(super) fn plan(
        &self,
        program: &Program,
        sections: &Sections,
        section: SectionId,
        mut shape: Shape,
    ) -> Arc<Plan> {
        // Shapes are long, and what they say is compared in full.
        let mut hasher = FxHasher::default();
        (section, &shape).hash(&mut hasher);
        let hash = hasher.finish();
        let is_meant = |plan: &Plan| plan.section == section && *plan.shape == shape;
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.table.find(hash, is_meant) {
            return plan;
        }
        shape.shrink_to_fit();
        let shape = self.pool.shapes.shared(shape);
        let plan = Plan::new((program, sections), section, shape, &self.pool);
        let plan = self.pool.plans.shared(plan);
        plans.table.insert(hash, &plan);
        plans.latest.push_back(Arc::clone(&plan));
        let surplus = plans.latest.len().saturating_sub(KEPT_PER_SECTION * sections.all.len());
        plans.latest.drain(..surplus);
        plan
    }

    /// The same state as another host has it, or else this one.
    pub(super) fn state(&self, state: State) -> Arc<State> {
        // What serves one fetch is seldom met again.
        if !state.lasting {
            return Arc::new(state);
        }
        // There may be many instances, and lists that differ mostly do so at the end.
        let mut hasher = FxHasher::default();
        Arc::as_ptr(&state.plan).hash(&mut hasher);
        for set in &state.sets {
            (set.len(), set.first(), set.last()).hash(&mut hasher);
        }
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = hasher.finish();
        states.find(hash, |other| other.is_like(&state)).unwrap_or_else(|| {
            let state = Arc::new(state);
            states.insert(hash, &state);
            state
        })
    }
}
