//! Fetches of any mix of base and derived metrics.
//!
//! A [`Plan`] is made once for each list: which program computes its derived
//! metrics, what is fetched besides the program's operands, and where each
//! entry of the result comes from. While a list is fetched again and again its
//! plan is all that is needed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pmderive_runtime::eval::{Binding, Evaluation, SharedLayouts};
use pmderive_runtime::model::{InDom, InstanceProfile, PmStatus, Pmid, Timestamp};
use pmderive_runtime::program::Program;
use pmderive_runtime::result::{MetricValues, ResultBatch, ResultPart};
use pmderive_runtime::source::{FetchEvents, FetchList, FetchSource, Mode, SourceError};
use rustc_hash::FxHashMap;

use super::encode::{Buffers, Encoder};
use super::{DerivedContext, Outcome, Typed};
use crate::check::typed::{TypedExpr, TypedKind};
use crate::dialect::Dialect;
use crate::engine::{Sample, identifiers};
use crate::plan::Planned;

/// Plans kept: callers alternate between a few lists.
const PLANS_KEPT: usize = 8;

/// What a list of metrics needs; see the module's description.
pub struct Plan {
    /// Unique in this process.
    id: u64,
    /// The list that it was last fetched for.
    list: u64,
    pmids: Box<[Pmid]>,
    domains: Box<[InDom]>,
    entries: Box<[Entry]>,
    program: Arc<Program>,
    binding: Arc<Binding>,
    /// Metrics to fetch besides the program's inputs.
    also: Box<[Pmid]>,
    /// True when there is nothing to compute: the source can answer by itself.
    is_plain: bool,
    /// True when nothing that the source delivers is handed on as it is.
    is_computed: bool,
    /// How often it was evaluated when another plan came into force.
    evaluations: u64,
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
        let entries = self.pmids.iter().zip(&self.entries);
        entries.filter_map(|(pmid, entry)| match entry {
            Entry::Computed(_) | Entry::Unusable(_) => Some((*pmid, true)),
            Entry::Unknown(_) => Some((*pmid, false)),
            Entry::Fetched(_) | Entry::Empty => None,
        })
    }

    fn is_for(&self, list: &FetchList) -> bool {
        *self.pmids == *list.pmids() && *self.domains == *list.domains()
    }
}

/// Expressions for one program, each once, operands before their users.
#[derive(Default)]
struct Gathered<'e> {
    expressions: Vec<(u64, Cow<'e, TypedExpr>)>,
    /// Position of each, by where it was bound.
    positions: FxHashMap<(*const Typed, usize), usize>,
}

impl<'e> Gathered<'e> {
    /// Adds one of the expressions that were bound together, with those that
    /// it needs, and gives its position.
    fn add(&mut self, among: &'e Arc<Typed>, at: usize) -> usize {
        let key = |at: usize| (Arc::as_ptr(among), at);
        let mut needed = BTreeSet::new();
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            // What was added before has its operands already.
            if !self.positions.contains_key(&key(at)) && needed.insert(at) {
                open.extend(operands(&among[at].1));
            }
        }
        for at in needed {
            let (identity, expr) = &among[at];
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
                self.plans.truncate(PLANS_KEPT - 1);
                self.plans.insert(0, plan);
            }
        }
        Ok(())
    }

    /// Lets the program of the first plan be the one that is evaluated.
    fn put_in_force(&mut self) {
        let former = self.in_force.replace(self.plans[0].id);
        if former == self.in_force {
            return;
        }
        if let Some(former) = self.plans.iter_mut().find(|plan| Some(plan.id) == former) {
            former.evaluations = self.context.evaluations;
        }
        let Plan { program, binding, also, domains, evaluations, .. } = &self.plans[0];
        self.context.evaluations = *evaluations;
        let (program, binding) = (Arc::clone(program), Arc::clone(binding));
        self.context.evaluator.change_program(program, binding, Arc::new(SharedLayouts::default()));
        self.context.evaluator.also_fetch(also, domains);
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
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let pmids = list.pmids();
        self.bind(pmids.iter().copied().filter(|pmid| pmid.is_derived()))?;
        let mut program = Gathered::default();
        let mut outputs: FxHashMap<Pmid, usize> = FxHashMap::default();
        for pmid in pmids {
            if let Some(Outcome::Usable { among, at, .. }) = self.outcome(*pmid)
                && !outputs.contains_key(pmid)
            {
                outputs.insert(*pmid, program.add(among, *at));
            }
        }
        let unusable = match self.dialect() {
            Dialect::Pcp6_0 if outputs.is_empty() => PmStatus::NOAGENT,
            _ => PmStatus::PMID,
        };
        let (program, operands) = self.context.engine.plan(&program.planned());
        let binding = Arc::new(operands.binding());
        let mut slots: FxHashMap<Pmid, usize> = FxHashMap::default();
        slots.extend(binding.pmids.iter().enumerate().map(|(slot, pmid)| (*pmid, slot)));
        let mut also = Vec::new();
        let entry = |pmid: &Pmid| {
            if let Some(output) = outputs.get(pmid) {
                return Entry::Computed(*output);
            }
            if self.bound.contains_key(pmid) {
                return Entry::Unusable(unusable);
            }
            if self.is_anonymous(*pmid) {
                return Entry::Empty;
            }
            if pmid.is_derived() {
                return Entry::Unknown(unusable);
            }
            let next = binding.pmids.len() + also.len();
            Entry::Fetched(*slots.entry(*pmid).or_insert_with(|| {
                also.push(*pmid);
                next
            }))
        };
        let entries: Box<[Entry]> = pmids.iter().map(entry).collect();
        Ok(Plan {
            is_computed: !entries.iter().any(|entry| matches!(entry, Entry::Fetched(_))),
            is_plain: entries.iter().all(|entry| matches!(entry, Entry::Fetched(_))),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            list: list.id(),
            pmids: pmids.into(),
            domains: list.domains().into(),
            entries,
            program,
            binding,
            also: also.into(),
            evaluations: 0,
        })
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
        let outcome = match self.plans[0].is_plain {
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
        let Sample { values, events, .. } = self.context.fetch(&mut self.workspace)?;
        write(&self.plans[0], &values, &mut self.encoder, batch);
        Ok(events)
    }
}

/// Writes the value sets of a plan's list.
fn write(plan: &Plan, values: &Evaluation<'_>, buffers: &mut Buffers, batch: &mut ResultBatch) {
    let Buffers { blocks, fetched: places, written } = buffers;
    let fetched = values.fetched();
    let stamp = values.timestamp();
    let domains = fetched.domains.iter().skip(plan.binding.fetched_domains.len());
    batch.domains.extend(domains.cloned());
    if plan.is_computed && written.again(plan.id, values, stamp, batch) {
        return;
    }
    places.clear();
    for (index, part) in (0..).zip(fetched.parts()) {
        let mut sets = part.sets();
        let mut offset = sets.offset();
        while sets.next().is_some() {
            places.push((index, offset));
            offset = sets.offset();
        }
    }
    let mut encoder = Encoder::new(batch.add_part(), blocks, stamp);
    for (pmid, entry) in plan.pmids.iter().zip(&plan.entries) {
        match *entry {
            Entry::Computed(output) => encoder.derived(*pmid, &values.get(output)),
            Entry::Empty => encoder.empty(*pmid),
            Entry::Unusable(status) | Entry::Unknown(status) => encoder.failed(*pmid, status),
            Entry::Fetched(slot) => {
                let place = places.get(slot).and_then(|(part, offset)| {
                    let part: &ResultPart = fetched.parts().get(*part)?;
                    Some((part, part.set_at(*offset)?))
                });
                match place {
                    Some((part, set)) => encoder.copied(part, &set),
                    // The source has delivered fewer sets than it was asked for.
                    None => encoder.failed(*pmid, PmStatus::PMID),
                }
            }
        }
    }
    let part = encoder.finish();
    if plan.is_computed {
        let outputs = plan.entries.iter().map(|entry| match *entry {
            Entry::Computed(output) => Some(output),
            _ => None,
        });
        written.learn(plan.id, values, outputs, part);
    }
}
