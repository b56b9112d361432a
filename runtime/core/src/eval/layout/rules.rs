//! The shape of a node from those of its operands. The rules are those that
//! [`super::super::general`] applies to values, applied to instances alone: they
//! look at names of instances for filters, and at no value.

use std::sync::Arc;

use super::analysis::Analysis;
use super::shape::{NodeShape, SetId, empty_or, first_failed, first_without};
use crate::eval::lanes::{align, has_repeats, intersection};
use crate::eval::verdicts::Filter;
use crate::model::{InstId, PmStatus};
use crate::pattern::TooMuchWork;
use crate::program::{HistoryId, Node, NodeId, Op, Reason, Status};

impl Analysis<'_> {
    /// Shape of a node from those of its operands; the same rules as
    /// [`super::super::general`] applies to values.
    pub(super) fn shape_of(&mut self, at: usize, id: NodeId, node: &Node) -> NodeShape {
        let mut regular = !node.op.is_general();
        node.op.operands(|operand| regular &= self.node(operand).regular);
        let without = |status| NodeShape::without(status, regular);
        let with = |set: SetId| NodeShape { status: Status::Values, set, regular };
        let with_some = |set: Option<SetId>| match set {
            Some(set) => with(set),
            None => without(Status::Empty(Reason::InstanceMissing)),
        };
        match &node.op {
            Op::Input(slot) => {
                let input = self.input(at, *slot);
                match (input.status, node.is_set) {
                    (Status::Values, true) => {
                        // Lanes are found by instance here, so what names an
                        // instance twice is left to the general path.
                        let regular = !self.drafts[at].has_repeats(input.set);
                        NodeShape { regular, ..with(input.set) }
                    }
                    (Status::Values, false) => with(SetId::SINGLE),
                    (status, _) => without(status),
                }
            }
            Op::Constant(_) => with(SetId::SINGLE),
            Op::ConstantPerInstance { domain, .. } => match &self.fetched[domain.index()] {
                Err(status) => without(Status::Failed(*status)),
                Ok(domain) => {
                    let ids: Vec<InstId> = domain.instances().map(|(id, _)| id).collect();
                    let regular = !has_repeats(&ids);
                    NodeShape { regular, ..with_some(self.intern(at, ids)) }
                }
            },
            Op::Nothing | Op::NoValue => without(Status::Empty(Reason::NoValue)),
            Op::Map { operands, .. } => match **operands {
                [operand] => self.node(operand),
                [left, right] => match self.meeting(at, left, right) {
                    Ok(set) => with_some(set),
                    Err(status) => without(status),
                },
                _ => without(Status::Failed(PmStatus::BOTCH)),
            },
            Op::Change { operand, history, .. } => {
                let now = NodeShape {
                    regular: regular && self.is_placed(*operand),
                    ..self.node(*operand)
                };
                let before = self.previous_set(at, *history);
                let home = self.sections.histories[history.index()].at as usize;
                let kept = &mut self.drafts[at].shape.before;
                if kept.len() <= home {
                    kept.resize(home + 1, None);
                }
                match before {
                    Some(before) if now.status == Status::Values && before != now.set => {
                        kept[home] = Some(before);
                        self.drafts[at].lasting = false;
                        match self.common(at, now.set, before) {
                            Some(set) => NodeShape { set, ..now },
                            None => without(Status::Empty(Reason::FirstSample)),
                        }
                    }
                    _ => now,
                }
            }
            Op::Choose { guard, yes, no } => {
                let never = |id: &NodeId| matches!(self.program.nodes[id.index()].op, Op::NoValue);
                let branches = [(yes, never(yes)), (no, never(no))];
                let statuses = [guard, yes, no].map(|id| match never(id) && id != guard {
                    true => Status::Values,
                    false => self.node(*id).status,
                });
                if let Some(status) = first_failed(&statuses).or(first_without(&statuses)) {
                    return without(status);
                }
                let sets = |id: &NodeId| self.node(*id).set != SetId::SINGLE;
                let chooser = std::iter::once(guard)
                    .chain(branches.iter().filter(|(_, never)| !never).map(|(id, _)| *id))
                    .find(|id| sets(id));
                let set = chooser.map_or(SetId::SINGLE, |id| self.node(*id).set);
                for (branch, never) in branches {
                    let have = self.node(*branch).set;
                    if !never && sets(branch) && have != set && self.lacks(at, have, set) {
                        regular = false;
                    }
                }
                NodeShape { status: Status::Values, set, regular }
            }
            Op::Chosen { guard, branch } => {
                let statuses = [guard, branch].map(|id| self.node(*id).status);
                match first_without(&statuses) {
                    Some(status) => without(status),
                    // What no kernel computes has no flag that would tell.
                    None => {
                        let regular = regular && self.is_placed(*guard);
                        NodeShape { regular, ..self.node(*branch) }
                    }
                }
            }
            Op::Reduce { op, operand } => match self.node(*operand).status {
                Status::Failed(status) => without(Status::Failed(status)),
                Status::Values => {
                    let regular = regular && self.is_placed(*operand);
                    NodeShape { regular, ..with(SetId::SINGLE) }
                }
                Status::Empty(reason) if !op.has_value_of_nothing() => {
                    without(Status::Empty(reason))
                }
                // Zero of no lanes: rare, and there is no column to reduce.
                Status::Empty(_) => NodeShape { regular: false, ..with(SetId::SINGLE) },
            },
            // The same.
            Op::Count(operand) => {
                let is_known = self.node(*operand).status != Status::Values;
                let regular = regular && (is_known || self.is_placed(*operand));
                NodeShape { regular, ..with(SetId::SINGLE) }
            }
            Op::Named { operand, domain, name } => {
                let operand = self.node(*operand);
                if operand.status != Status::Values || operand.set == SetId::SINGLE {
                    return without(empty_or(operand.status));
                }
                let domain = self.names[domain.index()].as_ref().ok();
                let named = domain.and_then(|domain| domain.lookup(name));
                let ids = &self.drafts[at].sets[operand.set.index()];
                let ids = ids.iter().copied().filter(|have| Some(*have) == named);
                let ids: Vec<InstId> = ids.collect();
                with_some(self.intern(at, ids))
            }
            Op::Matching { operand, domain, pattern, negated } => {
                let operand = self.node(*operand);
                if operand.status != Status::Values || operand.set == SetId::SINGLE {
                    return without(empty_or(operand.status));
                }
                let filter = Filter {
                    node: id,
                    pattern: &self.program.patterns[*pattern as usize],
                    negated: *negated,
                    verdicts_stay: self.program.verdicts_stay,
                };
                let domain = self.names[domain.index()].as_ref().ok();
                let ids = Arc::clone(&self.drafts[at].sets[operand.set.index()]);
                let verdicts = &mut *self.verdicts;
                let taken = |id: &InstId| -> Option<Result<InstId, TooMuchWork>> {
                    let name = domain.and_then(|domain| domain.name(*id));
                    let takes = verdicts.takes(filter, *id, name);
                    takes.map(|takes| takes.then_some(*id)).transpose()
                };
                let taken: Result<Vec<InstId>, _> = ids.iter().filter_map(taken).collect();
                match taken {
                    Ok(taken) => {
                        let taken: Arc<[InstId]> = taken.into();
                        let set = self.intern(at, Arc::clone(&taken));
                        self.drafts[at].taken.insert(id, Ok(taken));
                        with_some(set)
                    }
                    Err(TooMuchWork) => {
                        let status = PmStatus::BADDERIVE;
                        self.drafts[at].taken.insert(id, Err(status));
                        without(Status::Failed(status))
                    }
                }
            }
            Op::First(operand) => match self.node(*operand).status {
                Status::Values => with(SetId::SINGLE),
                status => without(status),
            },
            Op::TextEqual { left, right, .. } => match self.meeting(at, *left, *right) {
                Ok(set) => with_some(set),
                Err(status) => without(status),
            },
            // Which of the instances are taken is for the values to say.
            Op::Ranked { operand, .. }
            | Op::Window { operand, .. }
            | Op::TextIs { operand, .. }
            | Op::TextMatch { operand, .. } => NodeShape { regular, ..self.node(*operand) },
        }
    }

    /// Lanes in which two operands meet, `None` for no instance, or the status
    /// of one without values.
    fn meeting(&mut self, at: usize, left: NodeId, right: NodeId) -> Result<Option<SetId>, Status> {
        let (a, b) = (self.node(left), self.node(right));
        if let Some(status) = first_without(&[a.status, b.status]) {
            return Err(status);
        }
        Ok(match (a.set, b.set) {
            (SetId::SINGLE, set) | (set, SetId::SINGLE) => Some(set),
            (a, b) if a == b => Some(a),
            (a, b) => self.common(at, a, b),
        })
    }

    /// The set of the instances of `a` that `b` has as well.
    fn common(&mut self, at: usize, a: SetId, b: SetId) -> Option<SetId> {
        if let Some(known) = self.drafts[at].meetings.get(&(a, b)) {
            return *known;
        }
        let sets = &self.drafts[at].sets;
        let ids = match (sets.get(a.index()), sets.get(b.index())) {
            (Some(a), Some(b)) => intersection(a, b),
            _ => Vec::new(),
        };
        let met = self.intern(at, ids);
        self.drafts[at].meetings.insert((a, b), met);
        met
    }

    /// True if not all instances of `wanted` are in `have`.
    fn lacks(&self, at: usize, have: SetId, wanted: SetId) -> bool {
        let sets = &self.drafts[at].sets;
        match (sets.get(have.index()), sets.get(wanted.index())) {
            (Some(have), Some(wanted)) => align(have, wanted).is_none(),
            _ => true,
        }
    }

    /// The set of instances; `None` of none.
    fn intern(
        &mut self,
        at: usize,
        ids: impl AsRef<[InstId]> + Into<Arc<[InstId]>>,
    ) -> Option<SetId> {
        let draft = &mut self.drafts[at];
        let before = self.states[draft.section as usize].as_deref();
        if ids.as_ref().is_empty() { None } else { Some(draft.intern(ids, before)) }
    }

    /// The set of a history's previous sample, if it lies where kernels read it.
    fn previous_set(&mut self, at: usize, history: HistoryId) -> Option<SetId> {
        if !self.history.is_resident(history) {
            return None;
        }
        let home = self.sections.histories[history.index()];
        let state = self.states[home.section as usize].as_deref()?;
        let had = state.plan.histories[home.at as usize].as_ref().ok()?;
        if had.set == SetId::SINGLE {
            return Some(SetId::SINGLE);
        }
        let ids = Arc::clone(&state.sets[had.set.index()]);
        self.intern(at, ids)
    }
}
