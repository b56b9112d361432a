//! Which instances a node has, and whether it has values at all, by what is
//! known of its operands.
//!
//! The rules stand here once. The layout applies them to the sets of instances
//! that were delivered, before any value is looked at; the general path applies
//! them to the instances that its values have. Where values decide, a rule names
//! the instances that may have one.

use super::layout::Domain;
use crate::model::{InstId, PmStatus};
use crate::program::{
    FetchedDomain, HistoryId, InputSlot, NamedDomain, NodeId, Op, PatternId, Program, Reason,
    Status,
};

/// What the rules need to know of an operand.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// Whether it has values.
    pub status: Status,
    /// True if it has them for instances.
    pub is_set: bool,
}

/// The instances that a node can have.
#[derive(Clone, Copy, Debug)]
pub enum Instances<'p> {
    /// Those that came with a metric, if it has values.
    Delivered(InputSlot),
    /// All that a domain has at the fetch.
    OfDomain(FetchedDomain),
    /// None: it has a single value.
    Single,
    /// Those of another node.
    Of(NodeId),
    /// Those of the first set that the second has as well, in the order of the
    /// first.
    Common(NodeId, NodeId),
    /// Those of a node that have a previous value.
    Before(NodeId, HistoryId),
    /// The one of a set that has this name.
    Named(NodeId, NamedDomain, &'p str),
    /// Those of a set whose names a pattern takes; see [`Op::Matching`].
    Matching {
        /// The set.
        operand: NodeId,
        /// Its domain.
        domain: NamedDomain,
        /// What it looks for.
        pattern: PatternId,
        /// Takes those that do not match instead.
        negated: bool,
    },
}

/// No instance is left of operands that have values.
pub const MISSING: Status = Status::Empty(Reason::InstanceMissing);

impl<'p> Instances<'p> {
    /// The instances of an operation, by what is known of its operands.
    ///
    /// # Errors
    /// The status of one that has no values.
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
            Op::Constant(_) | Op::Count(_) => Ok(Instances::Single),
            Op::Nothing | Op::NoValue => Err(Status::Empty(Reason::NoValue)),
            Op::Map { operands, .. } => match **operands {
                [operand] => present(operand).map(Instances::Of),
                [left, right] => meeting(left, right),
                _ => Err(Status::Failed(PmStatus::BOTCH)),
            },
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

/// True for a branch of [`Op::Choose`] that has no values and takes those of the
/// other one away where it is chosen.
pub fn takes_away(program: &Program, branch: NodeId) -> bool {
    matches!(program.nodes[branch.index()].op, Op::NoValue)
}

/// The instances that a domain has at the fetch.
///
/// # Errors
/// The status that was delivered instead.
pub fn of_domain(
    fetched: &[Domain],
    domain: FetchedDomain,
) -> Result<impl Iterator<Item = InstId>, Status> {
    match &fetched[domain.index()] {
        Ok(domain) => Ok(domain.instances().map(|(id, _)| id)),
        Err(status) => Err(Status::Failed(*status)),
    }
}

/// The instance that has a name.
pub fn named(names: &[Domain], domain: NamedDomain, name: &str) -> Option<InstId> {
    names[domain.index()].as_ref().ok()?.lookup(name)
}

/// What a node has instead of values, if an operand has none: a failure counts
/// before a lack of values, and among failures the first one.
fn all_present<const N: usize>(statuses: [Status; N]) -> Result<(), Status> {
    let failed = statuses.iter().find(|status| matches!(status, Status::Failed(_)));
    let without = || statuses.iter().find(|status| **status != Status::Values);
    match failed.or_else(without) {
        Some(status) => Err(*status),
        None => Ok(()),
    }
}
