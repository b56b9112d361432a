//! Which instances a node has, and whether it fails: the rules of
//! [`super::super::general`], applied to instances alone.
//!
//! Takes the layouts of a node's operands and gives the node's. Looks at
//! names of instances for filters, and at no value.

use std::sync::Arc;

use super::{Builder, Domain, InputLayout, NodeLayout};
use crate::eval::lanes::{LaneSet, align, has_repeats};
use crate::eval::verdicts::Filter;
use crate::model::{InstId, PmStatus};
use crate::pattern::TooMuchWork;
use crate::program::{Node, NodeId, Op, Reason, Status};

impl Builder<'_> {
    /// Lanes of a node from those of its operands; the same rules as
    /// [`super::super::general`] applies to values.
    pub(super) fn analyse(
        &mut self,
        node: &Node,
        inputs: &[InputLayout],
        named: &[Domain],
        fetched: &[Domain],
    ) -> NodeLayout {
        let mut regular = !node.op.is_general();
        node.op.operands(|operand| regular &= self.node(operand).regular);
        let without = |status| NodeLayout { status, lanes: LaneSet::Single, regular, offset: None };
        let with = |lanes: LaneSet| match lanes.is_empty() {
            true => without(Status::Empty(Reason::InstanceMissing)),
            false => NodeLayout { status: Status::Values, lanes, regular, offset: None },
        };
        match &node.op {
            Op::Input(slot) => {
                let input = &inputs[slot.index()];
                match (input.status, node.is_set) {
                    (Status::Values, true) => {
                        // Lanes are found by instance here, so what names an
                        // instance twice is left to the general path.
                        let regular = !has_repeats(&input.ids);
                        NodeLayout { regular, ..with(LaneSet::Set(Arc::clone(&input.ids))) }
                    }
                    (Status::Values, false) => with(LaneSet::Single),
                    (status, _) => without(status),
                }
            }
            Op::Constant(_) => with(LaneSet::Single),
            Op::ConstantPerInstance { domain, .. } => match &fetched[domain.index()] {
                Err(status) => without(Status::Failed(*status)),
                Ok(domain) => {
                    let ids: Vec<InstId> = domain.instances().map(|(id, _)| id).collect();
                    let regular = !has_repeats(&ids);
                    NodeLayout { regular, ..with(LaneSet::Set(self.intern(ids))) }
                }
            },
            Op::Nothing | Op::NoValue => without(Status::Empty(Reason::NoValue)),
            Op::Map { operands, .. } => match **operands {
                [operand] => NodeLayout { offset: None, ..self.node(operand).clone() },
                [left, right] => match self.meeting(left, right) {
                    Ok(lanes) => with(lanes),
                    Err(status) => without(status),
                },
                _ => without(Status::Failed(PmStatus::BOTCH)),
            },
            Op::Change { operand, history, .. } => {
                let regular = regular && self.is_placed(*operand);
                let now = NodeLayout { offset: None, regular, ..self.node(*operand).clone() };
                match &self.samples[history.index()] {
                    Some(before) if now.status == Status::Values && *before != now.lanes => {
                        let lanes = self.intersection(&now.lanes, before);
                        match lanes.is_empty() {
                            true => without(Status::Empty(Reason::FirstSample)),
                            false => NodeLayout { lanes, ..now },
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
                let sets = |id: &NodeId| matches!(self.node(*id).lanes, LaneSet::Set(_));
                let chooser = std::iter::once(guard)
                    .chain(branches.iter().filter(|(_, never)| !never).map(|(id, _)| *id))
                    .find(|id| sets(id));
                let lanes = chooser.map_or(LaneSet::Single, |id| self.node(*id).lanes.clone());
                for (branch, never) in branches {
                    let have = &self.node(*branch).lanes;
                    let lacks = *have != lanes && align(have.ids(), lanes.ids()).is_none();
                    if !never && sets(branch) && lacks {
                        regular = false;
                    }
                }
                NodeLayout { status: Status::Values, lanes, regular, offset: None }
            }
            Op::Chosen { guard, branch } => {
                let statuses = [guard, branch].map(|id| self.node(*id).status);
                match first_without(&statuses) {
                    Some(status) => without(status),
                    None => NodeLayout { regular, offset: None, ..self.node(*branch).clone() },
                }
            }
            Op::Reduce { op, operand } => match self.node(*operand).status {
                Status::Failed(status) => without(Status::Failed(status)),
                Status::Values => {
                    let regular = regular && self.is_placed(*operand);
                    NodeLayout { regular, ..with(LaneSet::Single) }
                }
                Status::Empty(reason) if !op.has_value_of_nothing() => {
                    without(Status::Empty(reason))
                }
                // Zero of no lanes: rare, and there is no column to reduce.
                Status::Empty(_) => NodeLayout { regular: false, ..with(LaneSet::Single) },
            },
            Op::Count(_) => with(LaneSet::Single),
            Op::Named { operand, domain, name } => {
                let operand = self.node(*operand);
                let (Status::Values, LaneSet::Set(ids)) = (operand.status, &operand.lanes) else {
                    return without(empty_or(operand.status));
                };
                let id = named[domain.index()].as_ref().ok().and_then(|domain| domain.lookup(name));
                let ids = ids.iter().copied().filter(|have| Some(*have) == id).collect();
                with(LaneSet::Set(self.intern(ids)))
            }
            Op::Matching { operand, domain, pattern, negated } => {
                let operand = self.node(*operand);
                let (Status::Values, LaneSet::Set(ids)) = (operand.status, &operand.lanes) else {
                    return without(empty_or(operand.status));
                };
                let filter = Filter {
                    node: NodeId(self.nodes.len() as u32),
                    pattern: &self.program.patterns[*pattern as usize],
                    negated: *negated,
                    verdicts_stay: self.program.verdicts_stay,
                };
                let domain = named[domain.index()].as_ref().ok();
                let ids = Arc::clone(ids);
                let taken = |id: &InstId| -> Option<Result<InstId, TooMuchWork>> {
                    let name = domain.and_then(|domain| domain.name(*id));
                    let takes = self.verdicts.takes(filter, *id, name);
                    takes.map(|takes| takes.then_some(*id)).transpose()
                };
                let taken: Result<Vec<InstId>, _> = ids.iter().filter_map(taken).collect();
                let taken = taken.map(|taken| self.intern(taken)).map_err(|_| PmStatus::BADDERIVE);
                self.taken.insert(filter.node, taken.clone());
                match taken {
                    Ok(taken) => with(LaneSet::Set(taken)),
                    Err(status) => without(Status::Failed(status)),
                }
            }
            Op::First(operand) => match self.node(*operand).status {
                Status::Values => with(LaneSet::Single),
                status => without(status),
            },
            Op::TextEqual { left, right, .. } => match self.meeting(*left, *right) {
                Ok(lanes) => with(lanes),
                Err(status) => without(status),
            },
            // Which of the instances are taken is for the values to say.
            Op::Ranked { operand, .. }
            | Op::Window { operand, .. }
            | Op::TextIs { operand, .. }
            | Op::TextMatch { operand, .. } => {
                NodeLayout { regular, offset: None, ..self.node(*operand).clone() }
            }
        }
    }

    /// Lanes in which two operands meet, or the status of one without values.
    fn meeting(&mut self, left: NodeId, right: NodeId) -> Result<LaneSet, Status> {
        let (a, b) = (self.node(left), self.node(right));
        if let Some(status) = first_without(&[a.status, b.status]) {
            return Err(status);
        }
        let (a, b) = (a.lanes.clone(), b.lanes.clone());
        Ok(match (&a, &b) {
            (LaneSet::Single, _) => b,
            (_, LaneSet::Single) => a,
            _ if a == b => a,
            _ => self.intersection(&a, &b),
        })
    }
}

/// The first status that is not `Values`, in the order in which operands count.
pub fn first_without(statuses: &[Status]) -> Option<Status> {
    first_failed(statuses)
        .or_else(|| statuses.iter().copied().find(|status| matches!(status, Status::Empty(_))))
}

/// The first failure.
pub fn first_failed(statuses: &[Status]) -> Option<Status> {
    statuses.iter().copied().find(|status| matches!(status, Status::Failed(_)))
}

/// The status of a filter over an operand that is no set with values.
pub fn empty_or(status: Status) -> Status {
    match status {
        Status::Values => Status::Empty(Reason::InstanceMissing),
        other => other,
    }
}
