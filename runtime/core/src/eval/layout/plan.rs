//! What to do in a section of a certain shape: which columns there are, which
//! kernels run over them, what is copied, kept and filled in.
//!
//! A plan holds no instances and no counts, so that it serves all hosts. Its
//! columns have places: a column lies `unit` bytes for each lane behind the
//! beginning of its set's columns. [`super::frame`] makes offsets of that, and
//! [`super::planning`] makes plans.

use std::sync::Arc;

use super::sections::SectionId;
use super::shape::{SetId, Shape};
use crate::kernel::{KernelRef, Scalar};
use crate::program::{List, NodeId, Status, StepId};

/// What to do in a section of a certain shape, on all hosts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The section.
    pub section: SectionId,
    /// What it is for.
    pub shape: Arc<Shape>,
    /// Bytes for each lane of the workspace's columns, by set.
    pub work: Box<[u32]>,
    /// The same of the block of previous samples.
    pub kept: Box<[u32]>,
    /// Sets whose columns in that block hold the samples of other sets until the
    /// operands' own take their place.
    pub displaced: Box<[(SetId, SetId)]>,
    /// Columns of inputs, parallel to the section's inputs.
    pub inputs: List<Place>,
    /// Columns of nodes, parallel to the section's nodes; `None` of those without.
    pub columns: List<Option<Place>>,
    /// Kernel calls, by level.
    pub calls: Box<[Arc<Call>]>,
    /// Columns of one set that are wanted as another's, by level.
    pub aligned: Box<[Aligned]>,
    /// First lanes that become single values, by level.
    pub firsts: Box<[FirstLane]>,
    /// Lanes to write before anything is computed.
    pub fills: Box<[Fill]>,
    /// Parallel to the section's histories; the operand's status where it has
    /// no column now.
    pub histories: Box<[Result<Kept, Status>]>,
    /// Parallel to the section's outputs.
    pub outputs: List<OutputPlan>,
}

/// Where a column lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The lane of a single value: its offset.
    Fixed(u32),
    /// Among the workspace's columns of a set.
    Lanes {
        /// The set.
        set: SetId,
        /// Bytes for each lane in front of it.
        unit: u32,
    },
    /// Among the previous samples of a set.
    Kept {
        /// The set.
        set: SetId,
        /// Bytes for each lane in front of it; of a single value its offset.
        unit: u32,
    },
    /// What has become of a column in other lanes: a position in [`Plan::aligned`].
    Aligned(u32),
}

impl Place {
    /// The position of a column in other lanes.
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
    /// The phase before which it is needed.
    pub level: u32,
    /// The column.
    pub from: Place,
    /// Its set.
    pub have: SetId,
    /// Where it goes if its lanes are not there in one piece.
    pub to: Place,
    /// The set wanted.
    pub want: SetId,
    /// Bytes of a lane.
    pub width: u32,
    /// False if only kernels read it that go lane by lane: they can do so where
    /// the lanes are, piece by piece.
    pub in_one_piece: bool,
}

/// The lane of a column that belongs to the first instance of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FirstLane {
    /// The phase before which it is needed.
    pub level: u32,
    /// The column.
    pub from: Place,
    /// Its set.
    pub have: SetId,
    /// The set whose first instance is meant.
    pub of: SetId,
    /// Offset that it is copied to.
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
    /// What is written.
    pub bits: FillBits,
}

/// What a fill writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FillBits {
    /// Bits of a lane.
    Constant(u64),
    /// The number of instances.
    CountOf(SetId),
}

/// One kernel over its uses in a phase.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The phase.
    pub level: u32,
    /// The kernel.
    pub kernel: KernelRef,
    /// Its uses.
    pub rows: Box<[Row]>,
    /// Operands of all of them, as many for each as the kernel has.
    pub(super) operands: Box<[Place]>,
}

impl Call {
    /// Operands of the use at a position, parallel to the kernel's.
    pub fn operands_of(&self, row: usize) -> &[Place] {
        let each = self.operands.len() / self.rows.len();
        &self.operands[row * each..][..each]
    }
}

/// One use of a kernel.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// The step.
    pub step: StepId,
    /// Its lanes.
    pub lanes: SetId,
    /// Its column.
    pub output: Place,
    /// Offset of its constants.
    pub constants: u32,
}

/// How the operand of a history becomes its sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kept {
    /// Lanes of the operand.
    pub set: SetId,
    /// The operand's column.
    pub from: Place,
    /// Where it is kept, in place of the previous sample.
    pub to: Place,
    /// Type of the lanes.
    pub scalar: Scalar,
    /// Lanes of the previous sample, if they are others than the operand's.
    pub other: Option<SetId>,
}

impl Kept {
    /// Lanes of the previous sample, until the operand's column takes its
    /// place.
    pub fn previous(&self) -> SetId {
        self.other.unwrap_or(self.set)
    }
}

/// How an output comes about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OutputPlan {
    /// A column.
    Column {
        /// Where it lies.
        place: Place,
        /// Its lanes.
        set: SetId,
    },
    /// No values, whatever the numbers are.
    Without(Status),
    /// Only the general path can tell; how it begins, unless it begins with
    /// what was fetched.
    General(Option<Box<GeneralPlan>>),
}

/// How the general path evaluates an output if the columns are right: previous
/// samples are where kernels find them, and no kernel has set a flag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GeneralPlan {
    /// Nodes whose columns it begins with.
    pub columns: Box<[NodeId]>,
    /// Nodes above the columns, ascending.
    pub nodes: Box<[NodeId]>,
}
