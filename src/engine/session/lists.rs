//! Fetches any mix of base and derived metrics.
//!
//! A list's [`Needs`] are the program for its derived metrics, the further
//! metrics to fetch, and the origin of each entry of the result. Sessions of
//! sources with the same answers determine them only once. A session that
//! fetches the same list repeatedly uses only the list's [`Plan`].

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmderive_runtime::eval::{Binding, Evaluator, SharedLayouts, SharedParts};
use pmderive_runtime::model::{InDom, InstanceProfile, PmStatus, Pmid, Timestamp};
use pmderive_runtime::program::{Lists, OutputId, Program};
use pmderive_runtime::result::{MetricValues, ResultBatch};
use pmderive_runtime::source::{FetchEvents, FetchList, FetchSource, Mode, OneAnswer, SourceError};
use rustc_hash::{FxHashMap, FxHasher};

use super::binding::Outcome;
use super::shared_parts::CheckedGroup;
use super::{MOST_REPEATED, Readings, Session, Space, Task};
use crate::bind::DefinitionId;
use crate::check::typed::{TypedExpr, TypedKind};
use crate::dialect::Dialect;
use crate::engine::identifiers;
use crate::plan::Planned;

/// Number of plans that are kept. Callers alternate between a few lists.
const PLANS_KEPT: usize = 8;

/// The needs of a list of metrics; see the module's first lines.
pub(super) struct Needs {
    /// Unique in this process.
    id: u64,
    pub pmids: Box<[Pmid]>,
    domains: Box<[InDom]>,
    /// The meaning of each metric, parallel to the metrics. It determines the
    /// needs, together with `unusable`.
    made_of: Box<[Meaning]>,
    /// The status of metrics that cannot be used.
    unusable: PmStatus,
    /// Keeps the expressions in `made_of` alive.
    _together: Box<[Arc<CheckedGroup>]>,
    /// Origins of the values, parallel to the metrics.
    pub entries: Box<[Entry]>,
    program: Arc<Program>,
    pub binding: Arc<Binding>,
    /// Metrics to fetch besides the program's inputs.
    also: Box<[Pmid]>,
    /// True if the session computes nothing, so the source alone can answer.
    is_plain: bool,
    /// True if no delivered value is part of the result.
    pub is_computed: bool,
    layouts: SharedLayouts,
}

impl fmt::Debug for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Needs").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SharedParts for Needs {
    fn layouts(&self) -> &SharedLayouts {
        &self.layouts
    }
}

/// A list of a session, with its needs.
pub(super) struct Plan {
    needs: Arc<Needs>,
    /// Identity of the list that was last fetched with it.
    list: u64,
    /// Number of the list's evaluations when another task replaced it.
    pub evaluations: u64,
}

/// The meaning of a metric in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Meaning {
    /// A metric of the source.
    Fetched,
    /// A derived metric: the address of its group of definitions, and the
    /// position among them.
    Computed(usize, DefinitionId),
    /// A bound definition that cannot be used.
    Unusable,
    /// A metric that libpcp defines itself.
    Anonymous,
    Unknown,
}

/// The origin of an entry's value set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Entry {
    /// The source, at a slot of the fetch.
    Fetched(usize),
    /// The program's output.
    Computed(OutputId),
    /// The metric never has values.
    Empty,
    /// The metric cannot be used.
    Unusable(PmStatus),
    /// The metric is unknown.
    Unknown(PmStatus),
}

impl Plan {
    /// The derived metrics of the list, each with true if it was bound.
    pub fn derived(&self) -> impl Iterator<Item = (Pmid, bool)> {
        let entries = self.needs.pmids.iter().zip(&self.needs.entries);
        entries.filter_map(|(pmid, entry)| match entry {
            Entry::Computed(_) | Entry::Unusable(_) => Some((*pmid, true)),
            Entry::Unknown(_) => Some((*pmid, false)),
            Entry::Fetched(_) | Entry::Empty => None,
        })
    }

    /// Identity of the list's needs, unique in this process.
    pub fn id(&self) -> u64 {
        self.needs.id
    }

    /// Makes an evaluator compute the list. Returns the number of earlier
    /// evaluations.
    pub fn put_into(&self, evaluator: &mut Evaluator) -> u64 {
        let needs = &self.needs;
        let (program, binding) = (Arc::clone(&needs.program), Arc::clone(&needs.binding));
        evaluator.change_program(program, binding, Arc::clone(needs) as Arc<dyn SharedParts>);
        evaluator.also_fetch(&needs.also, &needs.domains);
        self.evaluations
    }

    fn is_for(&self, list: &FetchList) -> bool {
        *self.needs.pmids == *list.pmids() && *self.needs.domains == *list.domains()
    }
}

/// Expressions for one program, each once, with operands before users.
#[derive(Default)]
pub(super) struct GatheredExpressions<'e> {
    /// Each expression, with its group.
    expressions: Vec<(&'e Arc<CheckedGroup>, DefinitionId)>,
    /// Their positions, by the address of the group and the position there.
    positions: FxHashMap<(*const CheckedGroup, DefinitionId), DefinitionId>,
}

impl<'e> GatheredExpressions<'e> {
    /// Adds one of the expressions that were bound together, with those that it
    /// needs. Returns its position.
    pub fn add(&mut self, among: &'e Arc<CheckedGroup>, at: DefinitionId) -> DefinitionId {
        let key = |at: DefinitionId| (Arc::as_ptr(among), at);
        let mut needed = BTreeSet::new();
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            // The operands of an earlier expression are already there.
            if !self.positions.contains_key(&key(at)) && needed.insert(at) {
                open.extend(operands(&among.typed[at.index()].1));
            }
        }
        for at in needed {
            self.positions.insert(key(at), DefinitionId::at(self.expressions.len()));
            self.expressions.push((among, at));
        }
        self.positions[&key(at)]
    }

    /// The expressions, as operands of each other at their positions here.
    pub fn planned(&self) -> impl Iterator<Item = Planned<'e>> {
        self.expressions.iter().map(|(among, at)| {
            let (definition, expr) = &among.typed[at.index()];
            let mut expr = Cow::Borrowed(expr);
            if operands(&expr).next().is_some() {
                for node in &mut expr.to_mut().nodes {
                    if let TypedKind::Derived(operand) = &mut node.kind {
                        *operand = self.positions[&(Arc::as_ptr(among), *operand)];
                    }
                }
            }
            (*definition, expr)
        })
    }

    /// The metrics that a list reads. Each metric of the list has its expression here, or
    /// itself if the source has it.
    pub fn reads(&self, list: Vec<Option<Result<DefinitionId, Pmid>>>) -> Reads {
        let mut reads = Reads { list, ..Reads::default() };
        for (among, at) in &self.expressions {
            let expr = &among.typed[at.index()].1;
            let needed = expr.nodes.iter().filter_map(|node| match node.kind {
                TypedKind::Metric(pmid) => Some(pmid),
                _ => None,
            });
            let mentioned = expr.mentioned.iter().map(|desc| desc.pmid);
            reads.metrics.push_with(|all| all.extend(mentioned.chain(needed)));
            let here = |operand| self.positions[&(Arc::as_ptr(among), operand)];
            reads.expressions.push_with(|all| all.extend(operands(expr).map(here)));
        }
        reads
    }
}

/// The metrics of the source that the metrics of a list read, directly or through
/// definitions.
#[derive(Debug, Default)]
pub struct Reads {
    /// The metrics that each expression names. Operands come before their users.
    metrics: Lists<Pmid>,
    /// The operands of each expression, as expressions.
    expressions: Lists<DefinitionId>,
    /// For each metric of the list, its expression, or itself if the source has it.
    /// `None` if it cannot be used.
    list: Vec<Option<Result<DefinitionId, Pmid>>>,
}

impl Reads {
    /// For each metric of the list, whether it reads one for which `is_meant` is true.
    pub fn any(&self, is_meant: impl Fn(Pmid) -> bool) -> Vec<bool> {
        self.each(&is_meant, |metrics, operands, found| {
            metrics.iter().any(|pmid| is_meant(*pmid))
                || operands.iter().any(|operand| found[operand.index()])
        })
    }

    /// For each metric of the list, what `of_expression` makes of its expression, or `of_own` of
    /// itself; the default if it cannot be used. `of_expression` gets the metrics that the
    /// expression names, its operands, and the results of all expressions before.
    fn each<T: Clone + Default>(
        &self,
        of_own: impl Fn(Pmid) -> T,
        of_expression: impl Fn(&[Pmid], &[DefinitionId], &[T]) -> T,
    ) -> Vec<T> {
        let mut found: Vec<T> = Vec::new();
        for (metrics, operands) in self.metrics.iter().zip(self.expressions.iter()) {
            found.push(of_expression(metrics, operands, &found));
        }
        let one = |of: &Option<Result<DefinitionId, Pmid>>| match of {
            Some(Ok(expression)) => found[expression.index()].clone(),
            Some(Err(own)) => of_own(*own),
            None => T::default(),
        };
        self.list.iter().map(one).collect()
    }

    /// The metrics that the whole list reads, some of them more than once. Those that a metric
    /// needs come before those that only a later one needs.
    pub fn metrics(&self) -> impl Iterator<Item = Pmid> {
        self.metrics.iter().flatten().copied()
    }

    /// The metrics that each metric of the list reads, ascending, each once. An expression that
    /// reads the same as one of its operands shares the operand's, so a chain of definitions
    /// needs little memory.
    pub fn of_each(&self) -> Vec<Arc<[Pmid]>> {
        let of_own = |own: Pmid| Arc::from([own]);
        self.each(of_own, |metrics, operands, found: &[Arc<[Pmid]>]| {
            let operands = || operands.iter().map(|operand| &found[operand.index()]);
            let mut all: Vec<Pmid> = metrics.to_vec();
            operands().for_each(|operand| all.extend_from_slice(operand));
            all.sort_unstable();
            all.dedup();
            let same = operands().find(|operand| ***operand == *all).map(Arc::clone);
            same.unwrap_or_else(|| all.into())
        })
    }
}

/// Positions of the definitions whose values an expression needs.
fn operands(expr: &TypedExpr) -> impl Iterator<Item = DefinitionId> {
    expr.nodes.iter().filter_map(|node| match node.kind {
        TypedKind::Derived(operand) => Some(operand),
        _ => None,
    })
}

impl<S: FetchSource> Session<S> {
    /// Moves the plan of a list to the front. Makes it if there is none.
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
                // A plan with the same identity must be put in force again.
                if self.running.in_force == Task::Needs(plan.id()) {
                    self.running.in_force = Task::Nothing;
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
            None if self.scope.registry.anonymous_of(pmid).is_some() => Meaning::Anonymous,
            None if pmid.is_derived() => Meaning::Unknown,
            None => Meaning::Fetched,
        }
    }

    fn find_needs(&self, list: &FetchList, made_of: &[Meaning], unusable: PmStatus) -> Needs {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let pmids = list.pmids();
        let mut program = GatheredExpressions::default();
        let mut outputs: FxHashMap<Pmid, OutputId> = FxHashMap::default();
        let mut together: Vec<Arc<CheckedGroup>> = Vec::new();
        for pmid in pmids {
            if let Some(Outcome::Usable { among, at, .. }) = self.outcome(*pmid)
                && !outputs.contains_key(pmid)
            {
                outputs.insert(*pmid, program.add(among, *at).output());
                if !together.last().is_some_and(|last| Arc::ptr_eq(last, among)) {
                    together.push(Arc::clone(among));
                }
            }
        }
        let (program, operands) = self.engine.plan(|add| program.planned().for_each(add));
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
    /// Derived metrics are computed from the values of this very fetch. Each is
    /// computed once, however often it is in the list. A metric that cannot be
    /// used gives `PM_ERR_PMID`.
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
        let events = self.evaluate_list(list, &mut space).map(|readings| {
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

    fn store(&mut self, values: &[MetricValues]) -> OneAnswer<()> {
        if values.iter().any(|set| set.pmid.domain() == identifiers::DOMAIN) {
            return Ok(Err(PmStatus::PERMISSION));
        }
        self.source().store(values)
    }
}

impl<S: FetchSource> Session<S> {
    /// Fetches any mix of base and derived metrics, without copying the values.
    /// Otherwise it works as [`FetchSource::fetch`].
    ///
    /// # Errors
    /// The fetch failed.
    pub fn read<'s>(
        &'s mut self,
        list: &FetchList,
        space: &'s mut Space,
    ) -> Result<Readings<'s>, SourceError> {
        self.refresh();
        self.find_plan(list)?;
        if !self.plans[0].needs.is_plain {
            return self.evaluate_list(list, space);
        }
        let Space { workspace, places } = space;
        let events = self.fetch_plain(list, &mut workspace.batch)?;
        Ok(Readings::delivered(&self.plans[0].needs, &workspace.batch, places, events))
    }

    /// Fetches a list without computing.
    fn fetch_plain(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        batch.clear();
        let fetched = self.source.fetch(list, batch);
        let events = fetched.inspect_err(|error| self.lost |= error.is_transient())?;
        if events.gap {
            // The source reports a gap only once.
            match self.dialect() {
                Dialect::Fixed => self.running.evaluator.forget_history(),
                Dialect::Pcp6_0 | Dialect::Pcp7_2 => self.running.evaluator.forget_windows(),
            }
        }
        Ok(events)
    }

    /// Fetches a list whose plan is the first one, and computes.
    fn evaluate_list<'s>(
        &'s mut self,
        list: &FetchList,
        space: &'s mut Space,
    ) -> Result<Readings<'s>, SourceError> {
        let mut events = self.fetch_first_plan(&mut space.workspace.batch)?;
        for _ in 0..MOST_REPEATED {
            if !self.is_announced(events, self.epoch) {
                break;
            }
            self.running.before = self.running.before.with(events);
            // Keeps the former binding alive, so that the refresh can find it.
            let (needs, _bound) = (Arc::clone(&self.plans[0].needs), Arc::clone(&self.bound));
            self.refresh();
            self.find_plan(list)?;
            if self.plans[0].id() == needs.id {
                self.put_first_plan_in_force();
                break;
            }
            events = self.fetch_first_plan(&mut space.workspace.batch)?;
        }
        let Space { workspace, places } = space;
        let read = self.running.evaluate(events, &self.engine, &mut self.source, workspace);
        let (values, events) = read.inspect_err(|error| self.lost |= error.is_transient())?;
        Ok(Readings::computed(&self.plans[0].needs, values, places, events))
    }

    fn fetch_first_plan(&mut self, batch: &mut ResultBatch) -> Result<FetchEvents, SourceError> {
        self.put_first_plan_in_force();
        let fetched = self.running.fetch(&mut self.source, batch);
        fetched.inspect_err(|error| self.lost |= error.is_transient())
    }

    fn put_first_plan_in_force(&mut self) {
        let wanted = Task::Needs(self.plans[0].id());
        if self.running.in_force != wanted {
            self.put_in_force(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of a list of all expressions, each with its own metrics and its operands.
    fn reads(expressions: &[(&[u32], &[usize])]) -> Reads {
        let mut reads = Reads::default();
        for (at, (metrics, operands)) in expressions.iter().enumerate() {
            reads.metrics.push_with(|all| all.extend(metrics.iter().copied().map(Pmid)));
            let operands = operands.iter().copied().map(DefinitionId::at);
            reads.expressions.push_with(|all| all.extend(operands));
            reads.list.push(Some(Ok(DefinitionId::at(at))));
        }
        reads
    }

    #[test]
    fn each_metric_reads_what_its_operands_read() {
        let mut reads =
            reads(&[(&[7, 3, 7], &[]), (&[9], &[]), (&[3], &[0]), (&[], &[1, 2]), (&[], &[])]);
        reads.list.extend([Some(Err(Pmid(5))), None]);
        let found: Vec<Vec<u32>> =
            reads.of_each().iter().map(|all| all.iter().map(|pmid| pmid.0).collect()).collect();
        let expected: [&[u32]; 7] = [&[3, 7], &[9], &[3, 7], &[3, 7, 9], &[], &[5], &[]];
        assert_eq!(found, expected);
        assert!(reads.metrics().map(|pmid| pmid.0).eq([7, 3, 7, 9, 3]));
    }

    #[test]
    fn a_chain_of_definitions_shares_what_it_reads() {
        let operands: Vec<[usize; 1]> = (0..10_000).map(|at| [at]).collect();
        let mut chain: Vec<(&[u32], &[usize])> = vec![(&[3, 7], &[])];
        chain.extend(operands.iter().map(|operand| (&[7][..], &operand[..])));
        let found = reads(&chain).of_each();
        assert_eq!(*found[0], [Pmid(3), Pmid(7)]);
        assert!(found.iter().all(|one| Arc::ptr_eq(one, &found[0])));
    }
}
