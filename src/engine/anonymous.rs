//! The metrics that libpcp defines itself for the parts of event records
//! (`pmUnpackEventRecords(3)`).
//!
//! They are in every name space and never have values. The registry decides
//! when they get their identifiers.

use pmderive_runtime::model::ValueType;

use crate::bind::Desc;
use crate::check::constant_desc;

/// Metadata of each anonymous metric.
pub const DESC: Desc = constant_desc(ValueType::U32);

/// An anonymous metric.
#[derive(Clone, Copy, Debug)]
pub struct Anonymous {
    /// Its name.
    pub name: &'static str,
    /// The one-line help text.
    pub one_line: &'static str,
    /// The long help text.
    pub help: &'static str,
}

/// The anonymous metrics, in the order of their identifiers.
pub const ANONYMOUS: [Anonymous; 2] = [
    Anonymous {
        name: "event.flags",
        one_line: "Flags for event records",
        help: "Stands for the flags of an event record among its unpacked parameters.\n\
               It has no value of its own; see pmUnpackEventRecords(3).",
    },
    Anonymous {
        name: "event.missed",
        one_line: "Count of missed event records",
        help: "Stands for the number of event records that were lost before this one,\n\
               among unpacked event records. It has no value of its own; see\n\
               pmUnpackEventRecords(3).",
    },
];

/// True for a metric that libpcp defines itself.
pub(crate) fn is_anonymous(name: &str) -> bool {
    ANONYMOUS.iter().any(|one| one.name == name)
}
