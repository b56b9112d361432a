//! The operations of nodes on their operands.
//!
//! Operations name instances and metrics by position only. This module does not
//! compute anything.

use super::{
    BaselineId, FetchedDomain, HistoryId, InputSlot, NamedDomain, NodeId, PatternId, WindowId,
};
use crate::kernel::{KernelRef, ReduceOp};
use crate::model::ValueType;

/// An operation with the type and shape of its result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Type of its values.
    pub value_type: ValueType,
    /// True if the node has an instance domain. Otherwise it has at most one
    /// value.
    pub is_set: bool,
}

/// The operation of a node on its operands, which are earlier nodes.
///
/// Unless stated otherwise, a failed operand makes the node fail with the operand's status (of two
/// failed operands, the left one's). An operand without values leaves the node without values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Values as they were fetched.
    Input(InputSlot),
    /// Always the same value, given as the bits of a lane.
    Constant(u64),
    /// The same value for every instance that a domain has at the fetch.
    ConstantPerInstance {
        /// The domain.
        domain: FetchedDomain,
        /// Bits of the lane.
        bits: u64,
    },
    /// Never a value.
    Nothing,
    /// A branch of [`Op::Choose`] without values. The result lacks values only
    /// where this branch is chosen.
    NoValue,
    /// A kernel on the lanes of one or two operands. Two sets meet in their
    /// common instances, in the order of the first. A single value meets every
    /// instance of a set.
    Map {
        /// The operand, or the left one.
        operand: NodeId,
        /// The right operand of two.
        right: Option<NodeId>,
        /// Kernel over lanes of the operands.
        kernel: KernelRef,
        /// Offset of its constants.
        constants: u32,
    },
    /// A kernel on an operand's lanes, their previous values and the seconds in
    /// between. An instance without a previous value gets no value, nor does an
    /// instance for which the kernel sets a flag.
    Change {
        /// The operand.
        operand: NodeId,
        /// The history with the previous sample.
        history: HistoryId,
        /// The first sample that the definition may use.
        baseline: BaselineId,
        /// Kernel over the lane, the previous lane and, if it has three
        /// operands, the elapsed seconds (`F64`).
        kernel: KernelRef,
        /// Offset of its constants.
        constants: u32,
    },
    /// For each instance, the value of the branch that the guard chooses. The
    /// instances are those of the guard. If the guard is single, they are those
    /// of the first branch that is a set. An instance has no value if the
    /// chosen branch lacks it. Both branches must have values, except for
    /// [`Op::NoValue`].
    Choose {
        /// The condition: not zero chooses `yes`.
        guard: NodeId,
        /// The branch for a true guard.
        yes: NodeId,
        /// The branch for a false guard.
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
    /// One value from all lanes. Without lanes, sum and average are zero and
    /// the other reductions have no value.
    Reduce {
        /// The reduction.
        op: ReduceOp,
        /// The operand.
        operand: NodeId,
    },
    /// Number of values (`U32`). A failed operand counts zero.
    Count(NodeId),
    /// The value of the instance with an external name.
    Named {
        /// The operand.
        operand: NodeId,
        /// The operand's domain.
        domain: NamedDomain,
        /// External name.
        name: Box<str>,
    },
    /// The instances whose external name matches. Only the name up to its first
    /// blank counts.
    Matching {
        /// The operand.
        operand: NodeId,
        /// The operand's domain.
        domain: NamedDomain,
        /// The pattern.
        pattern: PatternId,
        /// True to choose the instances that do not match. An instance without
        /// a name is never chosen.
        negated: bool,
    },
    /// The first value, without its instance.
    First(NodeId),
    /// The instances with the greatest or least values, in the operand's order.
    Ranked {
        /// The operand.
        operand: NodeId,
        /// Largest number of instances in the result.
        k: u32,
        /// True for the greatest values, false for the least.
        top: bool,
    },
    /// A function of the operand's values over a window of time.
    Window {
        /// The operand.
        operand: NodeId,
        /// The window.
        window: WindowId,
    },
    /// 1 where two texts are equal, else 0 (`U32`). The operands meet as those
    /// of [`Op::Map`] do.
    TextEqual {
        /// Left operand.
        left: NodeId,
        /// Right operand.
        right: NodeId,
        /// True to give 1 where they differ.
        negated: bool,
    },
    /// 1 where a text equals the given one, else 0 (`U32`).
    TextIs {
        /// The operand.
        operand: NodeId,
        /// The text.
        text: Box<str>,
        /// True to give 1 where the texts differ.
        negated: bool,
    },
    /// 1 where a pattern occurs in a text, else 0 (`U32`).
    TextMatch {
        /// The operand.
        operand: NodeId,
        /// The pattern.
        pattern: PatternId,
        /// True to give 1 where the pattern does not occur.
        negated: bool,
    },
}

/// Calls `$visit` with each operand of an operation, in evaluation order. The
/// kind of reference is that of `$op`.
macro_rules! visit_operands {
    ($op:expr, $visit:expr) => {
        match $op {
            Op::Input(_) | Op::Constant(_) | Op::ConstantPerInstance { .. } => {}
            Op::Nothing | Op::NoValue => {}
            Op::Map { operand, right, .. } => {
                std::iter::once(operand).chain(right).for_each($visit);
            }
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

    /// Calls `visit` with each operand, in evaluation order. It may replace the
    /// operand.
    pub fn operands_mut(&mut self, visit: impl FnMut(&mut NodeId)) {
        visit_operands!(self, visit);
    }

    /// True for an operation without a kernel. It and all nodes that use its
    /// values are evaluated one by one.
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
