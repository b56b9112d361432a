//! Uses of fused kernels, and the sources of nodes' columns.

use super::{HistoryId, InputSlot, NodeId, StepId};
use crate::kernel::KernelRef;

/// The source of a node's column in the regular case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Decoded from the fetch.
    Input(InputSlot),
    /// Written by the evaluator for each evaluation: constants and counts.
    Fill,
    /// Lanes of another node's column.
    View(StepOperand),
    /// Computed by a step.
    Step(StepId),
}

/// One use of a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The kernel.
    pub kernel: KernelRef,
    /// Parallel to the kernel's operands.
    pub operands: Box<[StepOperand]>,
    /// Offset of its constants.
    pub constants: u32,
    /// The node that the step computes. Its lanes are the kernel's lanes.
    pub output: NodeId,
    /// Length of the longest chain of steps below this one. Steps of one level
    /// are independent.
    pub level: u32,
}

/// The source of an operand of a fused kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepOperand {
    /// Lanes of a set-valued node with a column, aligned to the step's lanes.
    Column(NodeId),
    /// The single lane of a node with a column.
    Single(NodeId),
    /// One lane of a node with a column: that of the first instance of `of`.
    First {
        /// The node with the lane.
        node: NodeId,
        /// The node whose first instance selects the lane.
        of: NodeId,
    },
    /// The previous lanes of a history. They are selected as the other variants
    /// select lanes of a column.
    Previous {
        /// The history.
        history: HistoryId,
        /// The selection of lanes.
        lanes: PreviousLanes,
    },
    /// Seconds since a history's sample (`F64`).
    Elapsed(HistoryId),
}

/// The lanes of a history that a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreviousLanes {
    /// The lanes of the step's instances.
    Column,
    /// The only lane.
    Single,
    /// The lane of the first instance of this node.
    First(NodeId),
}
