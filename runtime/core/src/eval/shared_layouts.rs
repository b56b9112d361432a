//! Parts of layouts that evaluators of one program share: its division into
//! sections, plans for the possible shapes of sections, and instances of
//! sections. A plan that was made for one host serves all others, whatever
//! their instances are.
//!
//! Plans exist while an evaluator uses them. The latest ones exist a while
//! longer, because the shape of a section in one fetch usually comes again.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use rustc_hash::{FxHashSet, FxHasher};

use super::layout::{Draft, Plan, Pool, SectionId, Sections, Shape, State};
use crate::locks::lock;
use crate::model::InstId;
use crate::program::Program;
use crate::weak_table::WeakTable;

/// The parts that evaluators of one program share. Each evaluator keeps them
/// alive while it uses the program; the next evaluator then finds them.
pub trait SharedParts: fmt::Debug + Send + Sync {
    /// The layouts of the program.
    fn layouts(&self) -> &SharedLayouts;
}

impl SharedParts for SharedLayouts {
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
    /// States of sections in use by hosts.
    states: Mutex<WeakTable<State>>,
    /// Plans of all sections with which hosts have begun, oldest first.
    starts: Mutex<VecDeque<Box<[Weak<Plan>]>>>,
}

#[derive(Debug, Default)]
struct Plans {
    table: WeakTable<Plan>,
    /// The latest plans, oldest first.
    latest: VecDeque<Arc<Plan>>,
}

/// Number of plans per section to keep without a user.
const KEPT_PER_SECTION: usize = 2;

/// Number of remembered starts.
const STARTS: usize = 8;

impl SharedLayouts {
    /// The layouts of a program, which share equal parts with other programs of
    /// the pool.
    pub fn of(pool: &Arc<Pool>) -> SharedLayouts {
        SharedLayouts { pool: Arc::clone(pool), ..SharedLayouts::default() }
    }

    /// Number of plans in use.
    pub fn count(&self) -> usize {
        lock(&self.plans).table.count()
    }

    /// Bytes of the states of hosts' sections, with the instances, each list once.
    /// `seen` has the addresses of the counted lists. Plans do not count.
    #[doc(hidden)]
    pub fn bytes_unless(&self, seen: &mut FxHashSet<usize>) -> usize {
        let states = lock(&self.states).all();
        let of_state = |state: &Arc<State>| {
            let new = |set: &&Arc<[InstId]>| seen.insert(Arc::as_ptr(set).addr());
            let sets: usize = state.sets.iter().filter(new).map(|set| size_of_val(&**set)).sum();
            size_of::<State>() + size_of_val(&*state.sets) + sets
        };
        states.iter().map(of_state).sum()
    }

    /// The sections of the program. Every call must pass the same program.
    pub(super) fn sections(&self, program: &Program) -> &Arc<Sections> {
        self.sections.get_or_init(|| self.pool.sections.intern(Sections::of(program)))
    }

    /// Gives drafts of all sections the plans that were made earlier for the
    /// same shapes of inputs. The shapes of the drafts must follow from those
    /// of their inputs. Returns false if there are no such plans.
    pub(super) fn begins_as_others(&self, drafts: &mut [Draft]) -> bool {
        let starts = lock(&self.starts);
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

    /// Remembers the plans of all sections, in their order. They must follow
    /// from the shapes of the inputs alone.
    pub(super) fn remember_start<'p>(&self, plans: impl Iterator<Item = &'p Arc<Plan>>) {
        let mut starts = lock(&self.starts);
        starts.retain(|plans| plans.iter().all(|plan| plan.strong_count() > 0));
        let surplus = (starts.len() + 1).saturating_sub(STARTS);
        starts.drain(..surplus);
        starts.push_back(plans.map(Arc::downgrade).collect());
    }

    /// The plan for a section with that shape.
    pub(super) fn plan(
        &self,
        program: &Program,
        sections: &Sections,
        section: SectionId,
        mut shape: Shape,
    ) -> Arc<Plan> {
        // The hash is short, so equal hashes are followed by a full comparison.
        let mut hasher = FxHasher::default();
        (section, &shape).hash(&mut hasher);
        let hash = hasher.finish();
        let is_meant = |plan: &Plan| plan.section == section && *plan.shape == shape;
        let mut plans = lock(&self.plans);
        if let Some(plan) = plans.table.find(hash, is_meant) {
            return plan;
        }
        shape.shrink_to_fit();
        let shape = self.pool.shapes.intern(shape);
        let plan = Plan::new((program, sections), section, shape, &self.pool);
        let plan = self.pool.plans.intern(plan);
        plans.table.insert(hash, &plan);
        plans.latest.push_back(Arc::clone(&plan));
        let surplus = plans.latest.len().saturating_sub(KEPT_PER_SECTION * sections.all.len());
        plans.latest.drain(..surplus);
        plan
    }

    /// The equal state of another host if there is one, otherwise this one.
    pub(super) fn state(&self, state: State) -> Arc<State> {
        // A state for a single fetch seldom comes again.
        if !state.lasting {
            return Arc::new(state);
        }
        // Hashes only the ends of lists: there may be many instances, and lists
        // that differ usually do so at the end.
        let mut hasher = FxHasher::default();
        Arc::as_ptr(&state.plan).hash(&mut hasher);
        for set in &state.sets {
            (set.len(), set.first(), set.last()).hash(&mut hasher);
        }
        let mut states = lock(&self.states);
        let hash = hasher.finish();
        states.find(hash, |other| other.is_like(&state)).unwrap_or_else(|| {
            let state = Arc::new(state);
            states.insert(hash, &state);
            state
        })
    }
}
