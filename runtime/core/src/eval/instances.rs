//! The rules for a node's instances, and for whether it has values at all,
//! given its operands.
//!
//! Only this file has the rules. The layout applies them to the delivered sets
//! of instances, before it looks at values. The general path applies them to
//! the instances of its values. If values decide, a rule gives the instances
//! that may have a value.

use super::layout::Domain;
use crate::model::InstId;
use crate::program::{
    FetchedDomain, HistoryId, InputSlot, NamedDomain, NodeId, Op, PatternId, Program, Reason,
    Status,
};

/// The facts about an operand that the rules need.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// The status: values, or the reason why there are none.
    pub status: Status,
    /// True if the operand has an instance domain.
    pub is_set: bool,
}

/// The instances that a node can have.
#[derive(Clone, Copy, Debug)]
pub enum Instances<'p> {
    /// The instances that came with a metric, if it has values.
    Delivered(InputSlot),
    /// All instances of a domain at the fetch.
    OfDomain(FetchedDomain),
    /// The node has a single value.
    Single,
    /// The instances of another node.
    Of(NodeId),
    /// The instances of the first set that are also in the second, in the order
    /// of the first.
    Common(NodeId, NodeId),
    /// The instances of a node with a previous value.
    Before(NodeId, HistoryId),
    /// The instance of a set with this name.
    Named(NodeId, NamedDomain, &'p str),
    /// The instances of a set whose names a pattern accepts; see
    /// [`Op::Matching`].
    Matching {
        /// The set.
        operand: NodeId,
        /// The set's domain.
        domain: NamedDomain,
        /// The pattern.
        pattern: PatternId,
        /// True to choose the instances that do not match.
        negated: bool,
    },
}

/// The status if the operands have values but no instance is left.
pub const MISSING: Status = Status::Empty(Reason::InstanceMissing);

impl<'p> Instances<'p> {
    /// The instances of an operation, given its operands.
    ///
    /// # Errors
    /// The status of an operand without values.
    pub fn of(
        program: &'p Program,
        op: &'p Op,
        operand: impl Fn(NodeId) -> Operand,
    ) -> Result<Instances<'p>, Status> {
        let present = |id: NodeId| all_present([operand(id).status]).map(|()| id);
        let set = |id: NodeId| match operand(present(id)?).is_set {
            true => Ok(id),
            false => Err(MISSING),
        };
        let meeting = |left: NodeId, right: NodeId| {
            let (a, b) = (operand(left), operand(right));
            all_present([a.status, b.status])?;
            Ok(match (a.is_set, b.is_set) {
                (false, _) => Instances::Of(right),
                (true, false) => Instances::Of(left),
                (true, true) => Instances::Common(left, right),
            })
        };
        match op {
            Op::Input(slot) => Ok(Instances::Delivered(*slot)),
            Op::ConstantPerInstance { domain, .. } => Ok(Instances::OfDomain(*domain)),
            Op::Constant(_) => Ok(Instances::Single),
            Op::Count(id) => match operand(*id).status {
                failed @ Status::Failed(_) if !program.counts_failed => Err(failed),
                _ => Ok(Instances::Single),
            },
            Op::Nothing | Op::NoValue => Err(Status::Empty(Reason::NoValue)),
            Op::Map { operand, right: None, .. } => present(*operand).map(Instances::Of),
            Op::Map { operand: left, right: Some(right), .. } => meeting(*left, *right),
            Op::TextEqual { left, right, .. } => meeting(*left, *right),
            Op::Change { operand, history, .. } => {
                Ok(Instances::Before(present(*operand)?, *history))
            }
            Op::Choose { guard, yes, no } => {
                let branch = |id: NodeId| match takes_away(program, id) {
                    true => Operand { status: Status::Values, is_set: false },
                    false => operand(id),
                };
                let all = [(*guard, operand(*guard)), (*yes, branch(*yes)), (*no, branch(*no))];
                all_present(all.map(|(_, operand)| operand.status))?;
                let chooser = all.iter().find(|(_, operand)| operand.is_set);
                Ok(chooser.map_or(Instances::Single, |(id, _)| Instances::Of(*id)))
            }
            Op::Chosen { guard, branch } => {
                all_present([guard, branch].map(|id| operand(*id).status))?;
                Ok(Instances::Of(*branch))
            }
            Op::Reduce { op, operand: id } => match operand(*id).status {
                Status::Empty(_) if op.has_value_of_nothing() => Ok(Instances::Single),
                status => all_present([status]).map(|()| Instances::Single),
            },
            Op::First(operand) => present(*operand).map(|_| Instances::Single),
            Op::Named { operand, domain, name } => {
                Ok(Instances::Named(set(*operand)?, *domain, name))
            }
            Op::Matching { operand, domain, pattern, negated } => Ok(Instances::Matching {
                operand: set(*operand)?,
                domain: *domain,
                pattern: *pattern,
                negated: *negated,
            }),
            Op::Ranked { operand, .. }
            | Op::Window { operand, .. }
            | Op::TextIs { operand, .. }
            | Op::TextMatch { operand, .. } => present(*operand).map(Instances::Of),
        }
    }
}

/// True for a branch of [`Op::Choose`] that has no values and removes those of
/// the other branch where it is chosen.
pub fn takes_away(program: &Program, branch: NodeId) -> bool {
    matches!(program.nodes[branch.index()].op, Op::NoValue)
}

/// The instances of a domain at the fetch.
///
/// # Errors
/// The status that was delivered in place of the domain.
pub fn of_domain(
    fetched: &[Domain],
    domain: FetchedDomain,
) -> Result<impl Iterator<Item = InstId>, Status> {
    match &fetched[domain.index()] {
        Ok(domain) => Ok(domain.instances().map(|(id, _)| id)),
        Err(status) => Err(Status::Failed(*status)),
    }
}

/// The instance with a name.
pub fn named(names: &[Domain], domain: NamedDomain, name: &str) -> Option<InstId> {
    names[domain.index()].as_ref().ok()?.lookup(name)
}

/// Checks that all operands have values. Otherwise the error is the first
/// failure or, without a failure, the first status without values.
fn all_present<const N: usize>(statuses: [Status; N]) -> Result<(), Status> {
    let failed = statuses.iter().find(|status| matches!(status, Status::Failed(_)));
    let without = || statuses.iter().find(|status| **status != Status::Values);
    match failed.or_else(without) {
        Some(status) => Err(*status),
        None => Ok(()),
    }
}
