//! Uses of fused kernels, and where the columns of nodes come from.

use super::{HistoryId, InputSlot, NodeId, StepId};
use crate::kernel::KernelRef;

/// Where a node's column comes from in the regular case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Decoded from the fetch.
    Input(InputSlot),
    /// Written anew for each evaluation: constants and counts.
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
    /// The node it computes; its lanes are the kernel's.
    pub output: NodeId,
    /// Longest chain of steps below it: steps of one level are independent.
    pub level: u32,
}

/// What an operand of a fused kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepOperand {
    /// Lanes of a placed set-valued node, aligned to the step's lanes.
    Column(NodeId),
    /// The one lane of a placed node.
    Single(NodeId),
    /// Of a placed node the lane of that instance which comes first in `of`.
    First {
        /// The placed node.
        node: NodeId,
        /// The node whose first instance is meant.
        of: NodeId,
    },
    /// The previous lanes of a history, chosen as one of the above chooses
    /// among the lanes of the history's operand.
    Previous {
        /// The history.
        history: HistoryId,
        /// How its lanes are chosen.
        lanes: PreviousLanes,
    },
    /// Seconds since a history's sample (`F64`).
    Elapsed(HistoryId),
}

/// Which of a history's lanes a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreviousLanes {
    /// Those of the step's instances.
    Column,
    /// The only one.
    Single,
    /// That of the instance which comes first in the node.
    First(NodeId),
}
