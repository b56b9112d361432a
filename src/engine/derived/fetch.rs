//! Fetches of any mix of base and derived metrics.
//!
//! What a list [`Needs`] is found out once, for all contexts of sources with
//! the same answers: which program computes its derived metrics, what is fetched
//! besides the program's operands, and where each entry of the result comes
//! from. While a context fetches a list again and again its [`Plan`] is all that
//! is needed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmderive_runtime::eval::{Binding, Evaluation, InCommon, SharedLayouts};
use pmderive_runtime::model::{InDom, InstanceProfile, PmStatus, Pmid, Timestamp};
use pmderive_runtime::program::Program;
use pmderive_runtime::result::{MetricValues, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, FetchSource, Mode, SourceError};
use rustc_hash::{FxHashMap, FxHasher};

use super::alike::{Space, Together};
use super::values::write_derived;
use super::{DerivedContext, Outcome};
use crate::check::typed::{TypedExpr, TypedKind};
use crate::dialect::Dialect;
use crate::engine::{Sample, identifiers};
use crate::plan::Planned;

/// Plans kept: callers alternate between a few lists.
const PLANS_KEPT: usize = 8;

/// What a list of metrics needs; see the module's description.
pub(super) struct Needs {
    /// Unique in this process.
    id: u64,
    pmids: Box<[Pmid]>,
    domains: Box<[InDom]>,
    /// What it was made of: parallel to the metrics, what each of them is,
    made_of: Box<[Meaning]>,
    /// and the status of those that cannot be used.
    unusable: PmStatus,
    /// Keeps what they mean alive.
    _together: Box<[Arc<Together>]>,
    entries: Box<[Entry]>,
    program: Arc<Program>,
    binding: Arc<Binding>,
    /// Metrics to fetch besides the program's inputs.
    also: Box<[Pmid]>,
    /// True when there is nothing to compute: the source can answer by itself.
    is_plain: bool,
    /// True when nothing that the source delivers is handed on as it is.
    is_computed: bool,
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

/// A list in a context.
pub struct Plan {
    needs: Arc<Needs>,
    /// The list that it was last fetched for.
    list: u64,
    /// How often it was evaluated when another plan came into force.
    evaluations: u64,
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
enum Entry {
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

    fn is_for(&self, list: &FetchList) -> bool {
        *self.needs.pmids == *list.pmids() && *self.needs.domains == *list.domains()
    }
}

/// Expressions for one program, each once, operands before their users.
#[derive(Default)]
struct Gathered<'e> {
    expressions: Vec<(u64, Cow<'e, TypedExpr>)>,
    /// Position of each, by where it was bound.
    positions: FxHashMap<(*const Together, usize), usize>,
}

impl<'e> Gathered<'e> {
    /// Adds one of the expressions that were bound together, with those that
    /// it needs, and gives its position.
    fn add(&mut self, among: &'e Arc<Together>, at: usize) -> usize {
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

    fn planned(&self) -> Vec<Planned<'_>> {
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

impl<S: FetchSource> DerivedContext<S> {
    /// The metrics of the source that a derived metric is computed from, those
    /// of branches that are never chosen left out. None if it cannot be used.
    ///
    /// # Errors
    /// The source failed.
    pub fn operands(&mut self, pmid: Pmid) -> Result<Vec<Pmid>, SourceError> {
        self.refresh();
        self.bind([pmid])?;
        let mut program = Gathered::default();
        if let Some(Outcome::Usable { among, at, .. }) = self.outcome(pmid) {
            program.add(among, *at);
        }
        let (_, operands) = self.context.engine.plan(&program.planned());
        Ok(operands.metrics.iter().map(|desc| desc.pmid).collect())
    }

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
                self.in_force.take_if(|id| *id == plan.needs.id);
                self.plans.truncate(PLANS_KEPT - 1);
                self.plans.insert(0, plan);
            }
        }
        Ok(())
    }

    /// Lets the program of the first plan be the one that is evaluated.
    fn put_in_force(&mut self) {
        let former = self.in_force.replace(self.plans[0].needs.id);
        if former == self.in_force {
            return;
        }
        if let Some(former) = self.plans.iter_mut().find(|plan| Some(plan.needs.id) == former) {
            former.evaluations = self.context.evaluations;
        }
        let Plan { needs, evaluations, .. } = &self.plans[0];
        self.context.evaluations = *evaluations;
        let (program, binding) = (Arc::clone(&needs.program), Arc::clone(&needs.binding));
        let evaluator = &mut self.context.evaluator;
        evaluator.change_program(program, binding, Arc::clone(needs) as Arc<dyn InCommon>);
        evaluator.also_fetch(&needs.also, &needs.domains);
        if !self.gone.is_empty() {
            for bound in self.bound.values() {
                // What was replaced by the same text is still there.
                self.gone.remove(&bound.definition.identity);
            }
            let mut gone: Vec<u64> = self.gone.drain().collect();
            gone.sort_unstable();
            self.context.evaluator.forget_definitions(&gone);
        }
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
        let needs = self.context.engine.needs(hasher.finish(), is_meant, make);
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
        let (program, operands) = self.context.engine.plan(&program.planned());
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
            layouts: SharedLayouts::default(),
        }
    }
}

impl<S: FetchSource> FetchSource for DerivedContext<S> {
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
        let outcome = match self.plans[0].needs.is_plain {
            true => self.fetch_plain(list, batch),
            false => self.fetch_derived(batch),
        };
        if let Err(error) = &outcome {
            self.lost |= error.is_transient();
        }
        outcome
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

impl<S: FetchSource> DerivedContext<S> {
    fn fetch_plain(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let events = self.context.source.fetch(list, batch)?;
        if events.gap && self.dialect() == Dialect::Fixed {
            // The source says so only once.
            self.context.evaluator.forget_history();
        }
        Ok(events)
    }

    fn fetch_derived(&mut self, batch: &mut ResultBatch) -> Result<FetchEvents, SourceError> {
        self.put_in_force();
        batch.clear();
        let engine = Arc::clone(&self.context.engine);
        let mut space = engine.space();
        let Space { workspace, places } = &mut space;
        let fetched = self.context.fetch(workspace).map(|Sample { values, events, .. }| {
            write(&self.plans[0].needs, &values, places, batch);
            events
        });
        engine.give_back(space);
        fetched
    }
}

/// Writes the value sets of a list. `places` is a buffer for where each fetched
/// value set is: part and place, by slot.
fn write(
    plan: &Needs,
    values: &Evaluation<'_>,
    places: &mut Vec<(usize, usize)>,
    batch: &mut ResultBatch,
) {
    let fetched = values.fetched();
    let domains = fetched.domains.iter().skip(plan.binding.fetched_domains.len());
    batch.domains.extend(domains.cloned());
    places.clear();
    for (index, part) in (0..).zip(fetched.parts()).filter(|_| !plan.is_computed) {
        let mut sets = part.sets();
        let mut place = sets.place();
        while sets.next().is_some() {
            places.push((index, place));
            place = sets.place();
        }
    }
    let mut writer = ResultWriter::new(batch.add_part(), values.timestamp());
    for (pmid, entry) in plan.pmids.iter().zip(&plan.entries) {
        match *entry {
            Entry::Computed(output) => write_derived(&mut writer, *pmid, &values.get(output)),
            Entry::Empty => writer.set(*pmid),
            Entry::Unusable(status) | Entry::Unknown(status) => writer.status(*pmid, status),
            Entry::Fetched(slot) => {
                let place = places.get(slot);
                match place.and_then(|(part, place)| fetched.parts()[*part].set_at(*place)) {
                    Some(set) => writer.copy(&set),
                    // The source has delivered fewer sets than it was asked for.
                    None => writer.status(*pmid, PmStatus::PMID),
                }
            }
        }
    }
}
