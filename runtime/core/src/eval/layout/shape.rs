//! What a section looks like at a fetch, instances and numbers apart: which
//! metrics and nodes have values, which of them have the same instances, and
//! which fail. Sections that look alike share a plan, also between hosts.
//!
//! [`super::analysis`] finds shapes.

use crate::model::InstId;
use crate::program::Status;

crate::program::index! {
    /// A set of instances of a section, by the order in which sets appear in it.
    SetId;
}

impl SetId {
    /// The one lane of a single value.
    pub const SINGLE: SetId = SetId(u32::MAX);
}

/// What a section looks like at a fetch. Equal shapes have one plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Parallel to the section's inputs.
    pub inputs: Vec<InputShape>,
    /// Parallel to the section's nodes.
    pub nodes: Vec<NodeShape>,
    /// Instances of previous samples that are not those of the operand now,
    /// parallel to the section's histories.
    pub before: Vec<Option<SetId>>,
    /// Parallel to the section's imports: status, and whether values of it
    /// are regular.
    pub imports: Vec<(Status, bool)>,
    /// Number of sets.
    pub sets: usize,
}

impl Shape {
    /// Gives back memory that was there for what did not come.
    pub fn shrink_to_fit(&mut self) {
        self.inputs.shrink_to_fit();
        self.nodes.shrink_to_fit();
        self.before.shrink_to_fit();
        self.imports.shrink_to_fit();
    }
}

/// What came of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputShape {
    /// Whether there are values.
    pub status: Status,
    /// Its instances.
    pub set: SetId,
    /// The value set's own count or status where that is not the number of the
    /// set's instances.
    pub raw_count: i32,
    /// The instance of a single value: old archives have others than -1.
    pub instance: InstId,
}

/// What a node has in the regular case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeShape {
    /// Whether there are values.
    pub status: Status,
    /// Its lanes.
    pub set: SetId,
    /// False when instances or failures of this node depend on values.
    pub regular: bool,
}

impl NodeShape {
    /// True for a node that has a column, if it has a place.
    pub fn is_column(&self) -> bool {
        self.regular && self.status == Status::Values
    }

    pub(super) fn without(status: Status, regular: bool) -> NodeShape {
        NodeShape { status, set: SetId::SINGLE, regular }
    }
}
