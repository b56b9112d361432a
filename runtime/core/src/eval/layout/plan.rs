//! The plan for a section of a certain shape: its columns, the kernels that run
//! over them, and the copies, the kept samples and the fills.
//!
//! A plan has no instances and no counts, so it serves all hosts. Its columns
//! have places: a column begins `unit` bytes per lane after the beginning of
//! its set's columns. [`super::frame`] turns places into offsets, and
//! [`super::planning`] makes plans.

use std::sync::Arc;

use super::sections::SectionId;
use super::shape::{SetId, Shape};
use crate::kernel::{KernelRef, Scalar};
use crate::program::{List, NodeId, Status, StepId};

/// The plan for a section of a certain shape, on all hosts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The section.
    pub section: SectionId,
    /// The shape that the plan is for.
    pub shape: Arc<Shape>,
    /// Bytes per lane of all workspace columns together, by set.
    pub work: Box<[u32]>,
    /// Bytes per lane of all columns in the block of previous samples together,
    /// by set.
    pub kept: Box<[u32]>,
    /// Pairs of sets. The first set's columns in that block hold samples of the
    /// second until the operand's own samples replace them.
    pub displaced: Box<[(SetId, SetId)]>,
    /// Columns of inputs, parallel to the section's inputs.
    pub inputs: List<Place>,
    /// Columns of nodes, parallel to the section's nodes; `None` for a node
    /// without a column.
    pub columns: List<Option<Place>>,
    /// Kernel calls, by level.
    pub calls: Box<[Arc<Call>]>,
    /// Columns of one set that are needed in the lanes of another, by level.
    pub aligned: Box<[Aligned]>,
    /// First lanes that become single values, by level.
    pub firsts: Box<[FirstLane]>,
    /// Lanes to write before anything is computed.
    pub fills: Box<[Fill]>,
    /// The way in which histories keep their operands, parallel to the
    /// section's histories. The error is the operand's status if it has no
    /// column now.
    pub histories: Box<[Result<SavedOperand, Status>]>,
    /// The plans of outputs, parallel to the section's outputs.
    pub outputs: List<OutputPlan>,
}

/// The place of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A single value, at this offset.
    Fixed(u32),
    /// In the workspace, among the columns of a set.
    Lanes {
        /// The set.
        set: SetId,
        /// Bytes per lane of the set's columns before this one.
        unit: u32,
    },
    /// In the block of previous samples, among those of a set.
    Kept {
        /// The set.
        set: SetId,
        /// Bytes per lane of the set's columns before this one. For a single
        /// value, its offset.
        unit: u32,
    },
    /// A column in other lanes: a position in [`Plan::aligned`].
    Aligned(u32),
}

impl Place {
    /// The position in [`Plan::aligned`] of a column in other lanes.
    pub fn aligned(self) -> Option<u32> {
        match self {
            Place::Aligned(at) => Some(at),
            _ => None,
        }
    }
}

/// A column in the lanes of another set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aligned {
    /// The phase before which the column is needed.
    pub level: u32,
    /// The column.
    pub from: Place,
    /// Its set.
    pub have: SetId,
    /// Place for the copy, if the lanes are not already there in one piece.
    pub to: Place,
    /// The set to align with.
    pub want: SetId,
    /// Bytes of a lane.
    pub width: u32,
    /// False if only kernels that go lane by lane read the column. They can
    /// read it piece by piece in its original place.
    pub in_one_piece: bool,
}

/// The lane of a column that belongs to the first instance of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FirstLane {
    /// The phase before which the lane is needed.
    pub level: u32,
    /// The column.
    pub from: Place,
    /// Its set.
    pub have: SetId,
    /// The set whose first instance selects the lane.
    pub of: SetId,
    /// Offset to copy the lane to.
    pub to: u32,
    /// Bytes of a lane.
    pub width: u32,
}

/// The same bits in all lanes of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fill {
    /// The column.
    pub to: Place,
    /// Its set.
    pub set: SetId,
    /// Bytes of a lane.
    pub width: u32,
    /// The bits to write.
    pub bits: FillBits,
}

/// The source of a fill's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FillBits {
    /// These bits.
    Constant(u64),
    /// The number of instances.
    CountOf(SetId),
}

/// The calls of one kernel in a phase, for all of its uses.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The phase.
    pub level: u32,
    /// The kernel.
    pub kernel: KernelRef,
    /// Its uses.
    pub rows: Box<[Row]>,
    /// Operands of all uses, one after the other. Each use has as many as the
    /// kernel has.
    pub(super) operands: Box<[Place]>,
}

impl Call {
    /// Operands of the use at a position, parallel to the kernel's operands.
    pub fn operands_of(&self, row: usize) -> &[Place] {
        let each = self.operands.len() / self.rows.len();
        &self.operands[row * each..][..each]
    }
}

/// One use of a kernel.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// The step that uses the kernel.
    pub step: StepId,
    /// The set of its lanes.
    pub lanes: SetId,
    /// The column of its result.
    pub output: Place,
    /// Offset of its constants.
    pub constants: u32,
}

/// The columns of an operand that a history keeps as the next sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SavedOperand {
    /// The set of the operand's lanes.
    pub set: SetId,
    /// The operand's column.
    pub from: Place,
    /// Place of the sample, which replaces the previous one.
    pub to: Place,
    /// Type of the lanes.
    pub scalar: Scalar,
    /// The set of the previous sample's lanes, if it differs from the
    /// operand's.
    pub other: Option<SetId>,
}

impl SavedOperand {
    /// The set of the previous sample's lanes, until the operand's column
    /// replaces it.
    pub fn previous(&self) -> SetId {
        self.other.unwrap_or(self.set)
    }
}

/// The plan of an output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OutputPlan {
    /// The output is a column.
    Column {
        /// The place of the column.
        place: Place,
        /// Its lanes.
        set: SetId,
    },
    /// The output has no values, whatever the numbers are.
    Without(Status),
    /// Only the general path can evaluate the output. It starts from this plan
    /// or, without a plan, from the fetched values.
    General(Option<Box<GeneralPlan>>),
}

/// How the general path evaluates an output if the columns are right: previous
/// samples are where kernels find them, and no kernel has set a flag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GeneralPlan {
    /// Nodes whose columns it starts from.
    pub columns: Box<[NodeId]>,
    /// Nodes to evaluate above the columns, ascending.
    pub nodes: Box<[NodeId]>,
}
