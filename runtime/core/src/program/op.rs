//! What nodes of a program do with their operands.
//!
//! Names instances and metrics by position only, and knows nothing of how nodes
//! are computed.

use super::{
    BaselineId, FetchedDomain, HistoryId, InputSlot, NamedDomain, NodeId, PatternId, WindowId,
};
use crate::kernel::{KernelRef, ReduceOp};
use crate::model::ValueType;

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// Type of its values.
    pub value_type: ValueType,
    /// True when it has an instance domain; else it has at most one value.
    pub is_set: bool,
}

/// What a node does with its operands, which are earlier nodes.
///
/// Unless said otherwise a failed operand makes the node fail with its
/// status, the left one first, and an operand without values leaves it without.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Values as fetched.
    Input(InputSlot),
    /// One value, always the same (bits of a lane).
    Constant(u64),
    /// The same value for every instance that a domain has at the fetch.
    ConstantPerInstance {
        /// The domain.
        domain: FetchedDomain,
        /// Bits of the lane.
        bits: u64,
    },
    /// Never any value.
    Nothing,
    /// Stands for a branch of [`Op::Choose`] that takes values away where it
    /// is chosen, and nowhere else.
    NoValue,
    /// A kernel on the lanes of one or two operands. Two sets meet in the
    /// instances that both have, in the order of the first; a single value
    /// meets every instance of a set.
    Map {
        /// One or two operands.
        operands: Box<[NodeId]>,
        /// Kernel over lanes of the operands.
        kernel: KernelRef,
        /// Offset of its constants.
        constants: u32,
    },
    /// A kernel on an operand's lanes, their previous values and the seconds
    /// in between. Instances without a previous value have none, nor have
    /// those for which the kernel sets a flag.
    Change {
        /// The operand.
        operand: NodeId,
        /// Where its previous sample is kept.
        history: HistoryId,
        /// From which sample on the definition may use it.
        baseline: BaselineId,
        /// Kernel over the lane, the previous lane and, if it has three
        /// operands, the elapsed seconds (`F64`).
        kernel: KernelRef,
        /// Offset of its constants.
        constants: u32,
    },
    /// Per instance of the guard (or, if that is single, of the first branch
    /// that is a set) the value of the branch that the guard chooses; no value
    /// where that branch lacks the instance. Both branches must have values,
    /// [`Op::NoValue`] excepted.
    Choose {
        /// Decides: not zero chooses `yes`.
        guard: NodeId,
        /// One branch.
        yes: NodeId,
        /// The other.
        no: NodeId,
    },
    /// The values of a branch that was chosen at compile time, provided that
    /// the guard has a value.
    Chosen {
        /// The guard.
        guard: NodeId,
        /// The branch.
        branch: NodeId,
    },
    /// One value from all lanes. Sum and average of no lanes are zero, the
    /// others are not there.
    Reduce {
        /// Which.
        op: ReduceOp,
        /// The operand.
        operand: NodeId,
    },
    /// Number of values, zero for a failed operand (`U32`).
    Count(NodeId),
    /// The instance of that external name.
    Named {
        /// The operand.
        operand: NodeId,
        /// Its domain.
        domain: NamedDomain,
        /// External name.
        name: Box<str>,
    },
    /// The instances whose external name, up to its first blank, matches.
    Matching {
        /// The operand.
        operand: NodeId,
        /// Its domain.
        domain: NamedDomain,
        /// What it looks for.
        pattern: PatternId,
        /// Takes those that do not match instead; instances without a name are never taken.
        negated: bool,
    },
    /// The first value, without its instance.
    First(NodeId),
    /// The instances with the greatest or least values, in the operand's order.
    Ranked {
        /// The operand.
        operand: NodeId,
        /// How many, at most.
        k: u32,
        /// The greatest.
        top: bool,
    },
    /// A function of the operand's values over a window of time.
    Window {
        /// The operand.
        operand: NodeId,
        /// Which.
        window: WindowId,
    },
    /// Where two texts are equal (`U32`). Operands meet as those of [`Op::Map`] do.
    TextEqual {
        /// Left operand.
        left: NodeId,
        /// Right operand.
        right: NodeId,
        /// 1 where they differ instead.
        negated: bool,
    },
    /// Where a text is that one (`U32`).
    TextIs {
        /// The operand.
        operand: NodeId,
        /// The text.
        text: Box<str>,
        /// 1 where it is not instead.
        negated: bool,
    },
    /// Where a pattern occurs in a text (`U32`).
    TextMatch {
        /// The operand.
        operand: NodeId,
        /// What it looks for.
        pattern: PatternId,
        /// 1 where it does not occur instead.
        negated: bool,
    },
}

/// Calls `$visit` with each operand of an operation, in evaluation order, by
/// the kind of reference that `$op` is.
macro_rules! visit_operands {
    ($op:expr, $visit:expr) => {
        match $op {
            Op::Input(_) | Op::Constant(_) | Op::ConstantPerInstance { .. } => {}
            Op::Nothing | Op::NoValue => {}
            Op::Map { operands, .. } => operands.into_iter().for_each($visit),
            Op::Choose { guard, yes, no } => [guard, yes, no].into_iter().for_each($visit),
            Op::Chosen { guard, branch } => [guard, branch].into_iter().for_each($visit),
            Op::TextEqual { left, right, .. } => [left, right].into_iter().for_each($visit),
            Op::Ranked { operand, .. }
            | Op::Window { operand, .. }
            | Op::TextIs { operand, .. }
            | Op::TextMatch { operand, .. }
            | Op::Change { operand, .. }
            | Op::Reduce { operand, .. }
            | Op::Count(operand)
            | Op::Named { operand, .. }
            | Op::Matching { operand, .. }
            | Op::First(operand) => [operand].into_iter().for_each($visit),
        }
    };
}

impl Op {
    /// Calls `visit` with each operand, in evaluation order.
    pub fn operands(&self, mut visit: impl FnMut(NodeId)) {
        visit_operands!(self, |operand| visit(*operand));
    }

    /// Calls `visit` with each operand to put another in its place, in
    /// evaluation order.
    pub fn operands_mut(&mut self, visit: impl FnMut(&mut NodeId)) {
        visit_operands!(self, visit);
    }

    /// True for an operation that no kernel has: it is evaluated on its own,
    /// and so is everything that needs its values.
    pub const fn is_general(&self) -> bool {
        matches!(
            self,
            Op::Ranked { .. }
                | Op::Window { .. }
                | Op::TextEqual { .. }
                | Op::TextIs { .. }
                | Op::TextMatch { .. }
        )
    }
}
