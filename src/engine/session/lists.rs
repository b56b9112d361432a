//! Fetches of any mix of base and derived metrics.
//!
//! All sessions of sources with the same answers find out once what a list
//! [`Needs`]: which program computes its derived metrics, what is fetched
//! besides the program's operands, and where each entry of the result comes
//! from. While a session fetches a list again and again its [`Plan`] is all
//! that is needed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmderive_runtime::eval::{Binding, Evaluator, InCommon, SharedLayouts};
use pmderive_runtime::model::{InDom, InstanceProfile, PmStatus, Pmid, Timestamp};
use pmderive_runtime::program::Program;
use pmderive_runtime::result::{MetricValues, ResultBatch};
use pmderive_runtime::source::{FetchEvents, FetchList, FetchSource, Mode, SourceError};
use rustc_hash::{FxHashMap, FxHasher};

use super::alike::Together;
use super::binding::Outcome;
use super::{InForce, Readings, Session, Space};
use crate::check::typed::{TypedExpr, TypedKind};
use crate::dialect::Dialect;
use crate::engine::identifiers;
use crate::plan::Planned;

/// Plans kept: callers alternate between a few lists.
const PLANS_KEPT: usize = 8;

/// What a list of metrics needs; see the module's description.
pub(super) struct Needs {
    /// Unique in this process.
    id: u64,
    pub pmids: Box<[Pmid]>,
    domains: Box<[InDom]>,
    /// What it was made of: parallel to the metrics, what each of them is,
    made_of: Box<[Meaning]>,
    /// and the status of those that cannot be used.
    unusable: PmStatus,
    /// Keeps what they mean alive.
    _together: Box<[Arc<Together>]>,
    /// Parallel to the metrics.
    pub entries: Box<[Entry]>,
    program: Arc<Program>,
    pub binding: Arc<Binding>,
    /// Metrics to fetch besides the program's inputs.
    also: Box<[Pmid]>,
    /// True when there is nothing to compute: the source can answer by itself.
    is_plain: bool,
    /// True when nothing that the source delivers is handed on as it is.
    pub is_computed: bool,
    layouts: SharedLayouts,
}

impl fmt::Debug for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Needs").field("id", &self.id).finish_non_exhaustive()
    }
}

impl InCommon for Needs {
    fn layouts(&self) -> &SharedLayouts {
        &self.layouts
    }
}

/// A list in a session.
pub(super) struct Plan {
    needs: Arc<Needs>,
    /// The list that it was last fetched for.
    list: u64,
    /// How often it was evaluated when something else came into force.
    pub evaluations: u64,
}

/// What a metric of a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Meaning {
    /// The source's.
    Fetched,
    /// The expression at a position among those that were checked together, at
    /// an address.
    Computed(usize, usize),
    /// Bound, and of no use.
    Unusable,
    /// One of those that libpcp defines for itself.
    Anonymous,
    Unknown,
}

/// Where the value set of an entry of the list comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Entry {
    /// From the source, at a slot of the fetch.
    Fetched(usize),
    /// From the program, as an output.
    Computed(usize),
    /// There are never values.
    Empty,
    /// It cannot be used.
    Unusable(PmStatus),
    /// It is not known.
    Unknown(PmStatus),
}

impl Plan {
    /// The derived metrics of the list, each with whether it was bound.
    pub fn derived(&self) -> impl Iterator<Item = (Pmid, bool)> {
        let entries = self.needs.pmids.iter().zip(&self.needs.entries);
        entries.filter_map(|(pmid, entry)| match entry {
            Entry::Computed(_) | Entry::Unusable(_) => Some((*pmid, true)),
            Entry::Unknown(_) => Some((*pmid, false)),
            Entry::Fetched(_) | Entry::Empty => None,
        })
    }

    /// Identity of what the list needs, unique in this process.
    pub fn id(&self) -> u64 {
        self.needs.id
    }

    /// Lets an evaluator compute what the list needs; gives how often it was
    /// evaluated.
    pub fn put_into(&self, evaluator: &mut Evaluator) -> u64 {
        let needs = &self.needs;
        let (program, binding) = (Arc::clone(&needs.program), Arc::clone(&needs.binding));
        evaluator.change_program(program, binding, Arc::clone(needs) as Arc<dyn InCommon>);
        evaluator.also_fetch(&needs.also, &needs.domains);
        self.evaluations
    }

    fn is_for(&self, list: &FetchList) -> bool {
        *self.needs.pmids == *list.pmids() && *self.needs.domains == *list.domains()
    }
}

/// Expressions for one program, each once, operands before their users.
#[derive(Default)]
pub(super) struct Gathered<'e> {
    expressions: Vec<(u64, Cow<'e, TypedExpr>)>,
    /// Position of each, by where it was bound.
    positions: FxHashMap<(*const Together, usize), usize>,
}

impl<'e> Gathered<'e> {
    /// Adds one of the expressions that were bound together, with those that
    /// it needs, and gives its position.
    pub fn add(&mut self, among: &'e Arc<Together>, at: usize) -> usize {
        let key = |at: usize| (Arc::as_ptr(among), at);
        let mut needed = BTreeSet::new();
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            // What was added before has its operands already.
            if !self.positions.contains_key(&key(at)) && needed.insert(at) {
                open.extend(operands(&among.typed[at].1));
            }
        }
        for at in needed {
            let (identity, expr) = &among.typed[at];
            let mut expr = Cow::Borrowed(expr);
            if operands(&expr).next().is_some() {
                for node in &mut expr.to_mut().nodes {
                    if let TypedKind::Derived(operand) = &mut node.kind {
                        *operand = self.positions[&key(*operand)];
                    }
                }
            }
            self.positions.insert(key(at), self.expressions.len());
            self.expressions.push((*identity, expr));
        }
        self.positions[&key(at)]
    }

    pub fn planned(&self) -> Vec<Planned<'_>> {
        let expressions = self.expressions.iter();
        expressions.map(|(identity, expr)| Planned { definition: *identity, expr }).collect()
    }
}

/// Positions of the definitions that an expression needs values of.
fn operands(expr: &TypedExpr) -> impl Iterator<Item = usize> {
    expr.nodes.iter().filter_map(|node| match node.kind {
        TypedKind::Derived(operand) => Some(operand),
        _ => None,
    })
}

impl<S: FetchSource> Session<S> {
    /// Puts the plan of a list first, made anew if there is none.
    fn find_plan(&mut self, list: &FetchList) -> Result<(), SourceError> {
        if self.plans.first().is_some_and(|plan| plan.list == list.id()) {
            return Ok(());
        }
        match self.plans.iter().position(|plan| plan.is_for(list)) {
            Some(at) => {
                self.plans[..=at].rotate_right(1);
                self.plans[0].list = list.id();
            }
            None => {
                let plan = self.make_plan(list)?;
                // Whatever was there before is bound anew.
                if self.running.in_force == InForce::Needs(plan.id()) {
                    self.running.in_force = InForce::Nothing;
                }
                self.plans.truncate(PLANS_KEPT - 1);
                self.plans.insert(0, plan);
            }
        }
        Ok(())
    }

    fn make_plan(&mut self, list: &FetchList) -> Result<Plan, SourceError> {
        let pmids = list.pmids();
        self.bind(pmids.iter().copied().filter(|pmid| pmid.is_derived()))?;
        let made_of: Box<[Meaning]> = pmids.iter().map(|pmid| self.meaning(*pmid)).collect();
        let is_computed = |one: &Meaning| matches!(one, Meaning::Computed(..));
        let unusable = match self.dialect() {
            Dialect::Pcp6_0 if !made_of.iter().any(is_computed) => PmStatus::NOAGENT,
            _ => PmStatus::PMID,
        };
        let mut hasher = FxHasher::default();
        (pmids, list.domains(), &made_of, unusable.0).hash(&mut hasher);
        let is_meant = |needs: &Needs| {
            *needs.pmids == *pmids
                && *needs.domains == *list.domains()
                && needs.made_of == made_of
                && needs.unusable == unusable
        };
        let make = || self.find_needs(list, &made_of, unusable);
        let needs = self.engine.needs(hasher.finish(), is_meant, make);
        Ok(Plan { needs, list: list.id(), evaluations: 0 })
    }

    fn meaning(&self, pmid: Pmid) -> Meaning {
        match self.outcome(pmid) {
            Some(Outcome::Usable { among, at, .. }) => {
                Meaning::Computed(Arc::as_ptr(among).addr(), *at)
            }
            Some(Outcome::Unusable(_) | Outcome::Hidden(_)) => Meaning::Unusable,
            None if self.is_anonymous(pmid) => Meaning::Anonymous,
            None if pmid.is_derived() => Meaning::Unknown,
            None => Meaning::Fetched,
        }
    }

    fn find_needs(&self, list: &FetchList, made_of: &[Meaning], unusable: PmStatus) -> Needs {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let pmids = list.pmids();
        let mut program = Gathered::default();
        let mut outputs: FxHashMap<Pmid, usize> = FxHashMap::default();
        let mut together: Vec<Arc<Together>> = Vec::new();
        for pmid in pmids {
            if let Some(Outcome::Usable { among, at, .. }) = self.outcome(*pmid)
                && !outputs.contains_key(pmid)
            {
                outputs.insert(*pmid, program.add(among, *at));
                if !together.last().is_some_and(|last| Arc::ptr_eq(last, among)) {
                    together.push(Arc::clone(among));
                }
            }
        }
        let (program, operands) = self.engine.plan(&program.planned());
        let binding = Arc::new(operands.binding());
        let mut slots: FxHashMap<Pmid, usize> = FxHashMap::default();
        slots.extend(binding.pmids.iter().enumerate().map(|(slot, pmid)| (*pmid, slot)));
        let mut also = Vec::new();
        let entry = |(pmid, meaning): (&Pmid, &Meaning)| match meaning {
            Meaning::Computed(..) => Entry::Computed(outputs[pmid]),
            Meaning::Unusable => Entry::Unusable(unusable),
            Meaning::Anonymous => Entry::Empty,
            Meaning::Unknown => Entry::Unknown(unusable),
            Meaning::Fetched => {
                let next = binding.pmids.len() + also.len();
                Entry::Fetched(*slots.entry(*pmid).or_insert_with(|| {
                    also.push(*pmid);
                    next
                }))
            }
        };
        let entries: Box<[Entry]> = pmids.iter().zip(made_of).map(entry).collect();
        Needs {
            is_computed: !entries.iter().any(|entry| matches!(entry, Entry::Fetched(_))),
            is_plain: entries.iter().all(|entry| matches!(entry, Entry::Fetched(_))),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            pmids: pmids.into(),
            domains: list.domains().into(),
            made_of: made_of.into(),
            unusable,
            _together: together.into(),
            entries,
            program,
            binding,
            also: also.into(),
            layouts: SharedLayouts::of(&self.engine.layouts),
        }
    }
}

impl<S: FetchSource> FetchSource for Session<S> {
    /// Derived metrics are computed from the values of this very fetch, each
    /// once however often it is in the list. One that cannot be used gives
    /// `PM_ERR_PMID`.
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.refresh();
        self.find_plan(list)?;
        if self.plans[0].needs.is_plain {
            return self.fetch_plain(list, batch);
        }
        batch.clear();
        let engine = Arc::clone(&self.engine);
        let mut space = engine.space();
        let events = self.evaluate_list(&mut space).map(|readings| {
            readings.write(batch);
            readings.events
        });
        engine.give_back(space);
        events
    }

    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        self.source().set_profile(profile)
    }

    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        self.source().set_mode(mode, when)
    }

    fn store(&mut self, values: &[MetricValues]) -> Result<Result<(), PmStatus>, SourceError> {
        if values.iter().any(|set| set.pmid.domain() == identifiers::DOMAIN) {
            return Ok(Err(PmStatus::PERMISSION));
        }
        self.source().store(values)
    }
}

impl<S: FetchSource> Session<S> {
    /// Fetches any mix of the source's metrics and derived ones, and leaves the
    /// values where they are. Otherwise it is as [`FetchSource::fetch`].
    ///
    /// # Errors
    /// Those of the fetch.
    pub fn read<'s>(
        &'s mut self,
        list: &FetchList,
        space: &'s mut Space,
    ) -> Result<Readings<'s>, SourceError> {
        self.refresh();
        self.find_plan(list)?;
        if !self.plans[0].needs.is_plain {
            return self.evaluate_list(space);
        }
        let Space { workspace, places } = space;
        let events = self.fetch_plain(list, &mut workspace.batch)?;
        Ok(Readings::delivered(&self.plans[0].needs, &workspace.batch, places, events))
    }

    /// Fetches a list that nothing is computed for.
    fn fetch_plain(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let fetched = self.source.fetch(list, batch);
        let events = fetched.inspect_err(|error| self.lost |= error.is_transient())?;
        if events.gap {
            // The source says so only once.
            match self.dialect() {
                Dialect::Fixed => self.running.evaluator.forget_history(),
                Dialect::Pcp6_0 | Dialect::Pcp7_2 => self.running.evaluator.forget_windows(),
            }
        }
        Ok(events)
    }

    /// Fetches what the first plan needs, and computes.
    fn evaluate_list<'s>(&'s mut self, space: &'s mut Space) -> Result<Readings<'s>, SourceError> {
        let wanted = InForce::Needs(self.plans[0].id());
        if self.running.in_force != wanted {
            self.put_in_force(wanted);
        }
        let Space { workspace, places } = space;
        let fetched = self.running.fetch(&self.engine, &mut self.source, workspace);
        let (values, events) = fetched.inspect_err(|error| self.lost |= error.is_transient())?;
        Ok(Readings::computed(&self.plans[0].needs, values, places, events))
    }
}
