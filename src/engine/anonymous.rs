//! The metrics that libpcp defines for itself, to unpack event records into
//! (`pmUnpackEventRecords(3)`).
//!
//! They are in every name space and never have values. The registry knows when
//! they get their identifiers.

use pmderive_runtime::model::{Semantics, Units, ValueType};

use crate::check::typed::Desc;

/// Metadata of all of them.
pub const DESC: Desc = Desc {
    value_type: ValueType::U32,
    indom: None,
    semantics: Semantics::Discrete,
    units: Units::NONE,
};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Anonymous {
    /// Its name.
    pub name: &'static str,
    /// One line of help.
    pub one_line: &'static str,
    /// All of the help.
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
