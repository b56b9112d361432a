//! The form of a section at a fetch, without instances and numbers: which
//! metrics and nodes have values, which have the same instances, and which
//! fail. Sections of the same shape share a plan, even between hosts.
//!
//! [`super::analysis`] determines shapes.

use crate::model::InstId;
use crate::program::Status;

crate::positions! {
    /// A set of instances in a section, numbered in order of appearance.
    pub SetId;
}

impl SetId {
    /// The one lane of a single value.
    pub const SINGLE: SetId = SetId(u32::MAX);
}

/// The shape of a section at a fetch. Equal shapes have one plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Shapes of inputs, parallel to the section's inputs.
    pub inputs: Vec<InputShape>,
    /// Shapes of nodes, parallel to the section's nodes.
    pub nodes: Vec<NodeShape>,
    /// The sets of previous samples that differ from those of the operands now,
    /// parallel to the section's histories.
    pub before: Vec<Option<SetId>>,
    /// Status of each imported node, and whether its values are regular,
    /// parallel to the section's imports.
    pub imports: Vec<(Status, bool)>,
    /// Number of sets.
    pub sets: usize,
}

impl Shape {
    /// Frees unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.inputs.shrink_to_fit();
        self.nodes.shrink_to_fit();
        self.before.shrink_to_fit();
        self.imports.shrink_to_fit();
    }
}

/// The shape of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputShape {
    /// The status: values, or the reason why there are none.
    pub status: Status,
    /// Its instances.
    pub set: SetId,
    /// The value set's own count or status, if it is not the number of the
    /// set's instances.
    pub raw_count: i32,
    /// The instance of a single value. Old archives have instances other than
    /// -1.
    pub instance: InstId,
}

/// The shape of a node in the regular case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeShape {
    /// The status: values, or the reason why there are none.
    pub status: Status,
    /// The set of its lanes.
    pub set: SetId,
    /// False if instances or failures of this node depend on values.
    pub regular: bool,
}

impl NodeShape {
    /// True for a node that has a column, provided that the program places it.
    pub fn is_column(&self) -> bool {
        self.regular && self.status == Status::Values
    }

    pub(super) fn without(status: Status, regular: bool) -> NodeShape {
        NodeShape { status, set: SetId::SINGLE, regular }
    }
}
