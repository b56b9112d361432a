//! One aggregate across hosts, such as `sum(shop.rate) by (rack)`: its operand, its grouping,
//! and the metadata of its values.

use pmderive_runtime::model::{Semantics, Units, ValueType};
use pmderive_runtime::positions;

use super::operand::{Kind, OperandId, Reference};
use crate::text::Span;

positions! {
    /// Position of an aggregate in [`FleetDefinitions::aggregates`](super::FleetDefinitions::aggregates).
    pub AggregateId;
    /// Position of labels in [`FleetDefinitions::groupings`](super::FleetDefinitions::groupings).
    pub GroupingId;
}

/// The function of an aggregate, over the values of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// The number of values.
    Count,
    /// The sum.
    Sum,
    /// The mean.
    Avg,
    /// The greatest value, or (`false`) the least.
    Extreme {
        /// True for the greatest.
        greatest: bool,
    },
    /// The instances of hosts with the greatest, or (`false`) the least values.
    Ranked {
        /// Instances of each group, at most.
        k: u32,
        /// True for the greatest.
        top: bool,
    },
    /// The value at a share, from 0 to 1, of the ascending values.
    Quantile(f64),
}

/// An aggregate that definitions over the fleet use.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// Its text, as in `sum(shop.rate) by (rack, dc)`.
    pub text: Box<str>,
    /// Its function.
    pub function: Function,
    /// Its operand on the hosts.
    pub operand: OperandId,
    /// The labels of its `by`.
    pub grouping: GroupingId,
    /// Its first place in the texts.
    pub span: Span,
}

impl Function {
    /// Metadata of the values; `None` if the function does not accept this operand. All
    /// functions but `count` need numbers. The type is always one of 64 bits, so that no sum
    /// of a fleet overflows early.
    pub fn desc(self, operand: &Reference) -> Option<Reference> {
        if self != Function::Count && operand.kind() == Kind::Other {
            return None;
        }
        let of_operand = Reference { value_type: operand.kind().value_type(), ..*operand };
        let instant = Reference { semantics: Semantics::Instant, ..of_operand };
        Some(match self {
            Function::Count => Reference {
                value_type: ValueType::U64,
                semantics: Semantics::Instant,
                units: Units { dim_count: 1, ..Units::NONE },
            },
            Function::Sum | Function::Ranked { .. } => of_operand,
            Function::Extreme { .. } => instant,
            Function::Avg | Function::Quantile(_) => {
                Reference { value_type: ValueType::F64, ..instant }
            }
        })
    }

    /// True if its instances are those of hosts, not groups.
    pub fn is_ranked(self) -> bool {
        matches!(self, Function::Ranked { .. })
    }
}
