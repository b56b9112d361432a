//! Derives the shape of a node from the shapes of its operands. It applies the
//! rules of [`crate::eval::instances`] to the delivered sets, and determines
//! whether kernels compute the same as the general path.
//!
//! It reads names of instances for filters, but no values.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::analysis::Analysis;
use super::draft::DraftId;
use super::shape::{NodeShape, SetId};
use crate::eval::instances::{Instances, MISSING, Operand, named, of_domain};
use crate::eval::lanes::{Finder, align, intersection};
use crate::eval::verdicts::Filter;
use crate::model::{InstId, PmStatus};
use crate::pattern::TooMuchWork;
use crate::program::{HistoryId, Node, NodeId, Op, Reason, Status};

impl Analysis<'_> {
    /// The shape of a node, from those of its operands.
    pub(super) fn shape_of(&mut self, draft: DraftId, id: NodeId, node: &Node) -> NodeShape {
        let mut regular = !node.op.is_general() && self.has_operands_in_place(&node.op);
        node.op.operands(|operand| regular &= self.node(operand).regular);
        let operand = |id: NodeId| {
            let NodeShape { status, set, .. } = self.node(id);
            Operand { status, is_set: set != SetId::SINGLE }
        };
        let instances = Instances::of(self.program, &node.op, operand);
        match instances.and_then(|instances| self.set_of(draft, id, instances)) {
            Ok(set) => {
                let regular = regular && self.has_lanes_of_set(draft, &node.op, set);
                NodeShape { status: Status::Values, set, regular }
            }
            Err(status) => NodeShape::without(status, regular),
        }
    }

    /// The set of the instances that a rule gives, or the status of a node
    /// without instances.
    fn set_of(
        &mut self,
        draft: DraftId,
        id: NodeId,
        instances: Instances<'_>,
    ) -> Result<SetId, Status> {
        match instances {
            Instances::Delivered(slot) => {
                let input = self.input(draft, slot);
                match input.status {
                    Status::Values => Ok(input.set),
                    status => Err(status),
                }
            }
            Instances::OfDomain(domain) => {
                let ids: Vec<InstId> = of_domain(self.fetched, domain)?.collect();
                self.intern(draft, ids).ok_or(MISSING)
            }
            Instances::Single => Ok(SetId::SINGLE),
            Instances::Of(operand) => Ok(self.node(operand).set),
            Instances::Common(left, right) => {
                let (left, right) = (self.node(left).set, self.node(right).set);
                self.common(draft, left, right).ok_or(MISSING)
            }
            Instances::Before(operand, history) => {
                let now = self.node(operand).set;
                match self.previous_set(draft, history) {
                    Some(before) if before != now => {
                        let home = self.sections.histories[history.index()].at as usize;
                        let changed = self.draft(draft);
                        let length = changed.shape.before.len().max(home + 1);
                        changed.shape.before.resize(length, None);
                        changed.shape.before[home] = Some(before);
                        changed.lasting = false;
                        let common = self.common(draft, now, before);
                        common.ok_or(Status::Empty(Reason::FirstSample))
                    }
                    _ => Ok(now),
                }
            }
            Instances::Named(operand, domain, name) => {
                let named = named(self.names, domain, name);
                let ids = &self.drafts[draft.index()].sets[self.node(operand).set.index()];
                let ids = ids.iter().copied().filter(|have| Some(*have) == named);
                let ids: Vec<InstId> = ids.collect();
                self.intern(draft, ids).ok_or(MISSING)
            }
            Instances::Matching { operand, domain, pattern, negated } => {
                let filter = Filter {
                    node: id,
                    pattern: &self.program.patterns[pattern.index()],
                    negated,
                    verdicts_stay: self.program.verdicts_stay,
                };
                let domain = self.names[domain.index()].as_ref().ok();
                let set = self.node(operand).set;
                let all = Arc::clone(&self.drafts[draft.index()].sets[set.index()]);
                let mut ids = Cow::Borrowed(&*all);
                let is_settled = !filter.verdicts_stay || self.leave_begun(operand, &mut ids);
                self.draft(draft).lasting &= is_settled;
                let verdicts = &mut *self.verdicts;
                let taken = |id: &InstId| -> Option<Result<InstId, TooMuchWork>> {
                    let name = domain.and_then(|domain| domain.name(*id));
                    let takes = verdicts.takes(filter, *id, name);
                    takes.map(|takes| takes.then_some(*id)).transpose()
                };
                let taken: Result<Arc<[InstId]>, _> = ids.iter().filter_map(taken).collect();
                let taken = taken.map_err(|TooMuchWork| PmStatus::BADDERIVE);
                self.drafts[draft.index()].taken.insert(id, taken.clone());
                if !is_settled && ids.is_empty() {
                    return Ok(set);
                }
                self.intern(draft, taken.map_err(Status::Failed)?).ok_or(MISSING)
            }
        }
    }

    /// Removes the instances of a node that cannot have a value yet, because a
    /// difference below it lacks their previous values. A pattern must not
    /// decide about them. Returns false if the next fetch may bring them.
    fn leave_begun(&self, node: NodeId, ids: &mut Cow<'_, [InstId]>) -> bool {
        let mut is_settled = true;
        // Nodes to visit, each with true if an instance needs its own value of
        // the node, false if any suffices.
        let mut below = vec![(node, true)];
        // Nodes are shared, and very many paths may lead to one.
        let mut seen = FxHashSet::default();
        while let Some((id, is_own)) = below.pop() {
            if !seen.insert((id, is_own)) {
                continue;
            }
            let node = &self.program.nodes[id.index()];
            match node.op {
                // They may have values where their operands have none.
                Op::Reduce { .. } | Op::Count(_) => continue,
                Op::Change { history, baseline, .. } => {
                    if let Some(before) = self.history.unplaced(baseline, history) {
                        let mut finder = Finder::new(before);
                        let is_spread = (!is_own || !node.is_set) && !before.is_empty();
                        ids.to_mut().retain(|id| is_spread || finder.find(*id).is_some());
                        is_settled = false;
                    }
                }
                _ => {}
            }
            // A value may come from another instance, or from another operand.
            let passes_on = |operand: NodeId| match node.op {
                Op::First(_) | Op::Choose { .. } => false,
                Op::Chosen { branch, .. } => operand == branch,
                _ => true,
            };
            node.op.operands(|operand| below.push((operand, is_own && passes_on(operand))));
        }
        is_settled
    }

    /// False for an operation that must read an operand's own column when that
    /// operand has no column. Then no flag could report what happens to its
    /// values.
    fn has_operands_in_place(&self, op: &Op) -> bool {
        let is_placed = |id: &NodeId| self.program.placements[id.index()].is_some();
        let has_values = |id: &NodeId| self.node(*id).status == Status::Values;
        match op {
            Op::Change { operand, .. } => is_placed(operand),
            Op::Reduce { operand, .. } | Op::Count(operand) => {
                is_placed(operand) || !has_values(operand)
            }
            Op::Chosen { guard, branch } => {
                is_placed(guard) || !has_values(guard) || !has_values(branch)
            }
            _ => true,
        }
    }

    /// False if kernels do not find exactly one lane of their operands for each
    /// instance of a node.
    fn has_lanes_of_set(&mut self, draft: DraftId, op: &Op, set: SetId) -> bool {
        match op {
            // Kernels find lanes by instance.
            Op::Input(_) | Op::ConstantPerInstance { .. } => {
                set == SetId::SINGLE || !self.drafts[draft.index()].has_repeats(set)
            }
            Op::Choose { yes, no, .. } => [yes, no].into_iter().all(|branch| {
                let have = self.node(*branch).set;
                have == SetId::SINGLE || have == set || self.has_all(draft, have, set)
            }),
            // A reduction of no lanes gives zero. It is rare, and there is no
            // column to reduce.
            Op::Reduce { operand, .. } => self.node(*operand).status == Status::Values,
            _ => true,
        }
    }

    /// The set of the instances of `a` that are also in `b`; `None` if there
    /// are none.
    fn common(&mut self, draft: DraftId, a: SetId, b: SetId) -> Option<SetId> {
        if a == b {
            return Some(a);
        }
        if let Some(known) = self.drafts[draft.index()].meetings.get(&(a, b)) {
            return *known;
        }
        let sets = &self.drafts[draft.index()].sets;
        let ids = match (sets.get(a.index()), sets.get(b.index())) {
            (Some(a), Some(b)) => intersection(a, b),
            _ => Vec::new(),
        };
        let met = self.intern(draft, ids);
        self.drafts[draft.index()].meetings.insert((a, b), met);
        met
    }

    /// True if `have` has all instances of `wanted`.
    fn has_all(&self, draft: DraftId, have: SetId, wanted: SetId) -> bool {
        let sets = &self.drafts[draft.index()].sets;
        match (sets.get(have.index()), sets.get(wanted.index())) {
            (Some(have), Some(wanted)) => align(have, wanted).is_some(),
            _ => false,
        }
    }

    /// The set with these instances; `None` if there are none.
    fn intern(
        &mut self,
        draft: DraftId,
        ids: impl AsRef<[InstId]> + Into<Arc<[InstId]>>,
    ) -> Option<SetId> {
        let draft = &mut self.drafts[draft.index()];
        let before = self.states[draft.section.index()].as_deref();
        if ids.as_ref().is_empty() { None } else { Some(draft.intern(ids, before)) }
    }

    /// The set of a history's previous sample, if kernels can read the sample.
    fn previous_set(&mut self, draft: DraftId, history: HistoryId) -> Option<SetId> {
        if !self.history.is_resident(history) {
            return None;
        }
        let home = self.sections.histories[history.index()];
        let state = self.states[home.section.index()].as_deref()?;
        let had = state.plan.histories[home.at as usize].as_ref().ok()?;
        if had.set == SetId::SINGLE {
            return Some(SetId::SINGLE);
        }
        let ids = Arc::clone(&state.sets[had.set.index()]);
        self.intern(draft, ids)
    }
}
