//! The outcome of an evaluation: values, a reason why there are none, or a
//! failure.

use std::fmt;

use crate::model::PmStatus;

/// The reason why a metric has no values although nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A difference needs two samples, and this is the first.
    FirstSample,
    /// The previous sample is from before a gap in the data.
    Gap,
    /// The previous sample is from a later time. This happens when an archive
    /// is read backward.
    Backward,
    /// The previous sample has the same time, so there is no rate.
    SameTime,
    /// Every counter went backwards.
    CounterFell,
    /// An operand was delivered without values.
    OperandEmpty,
    /// The operand failed at the previous fetch, with this status.
    OperandFailed(PmStatus),
    /// No instance is in all operands, or the filter selects none.
    InstanceMissing,
    /// The definition has no value here: `novalue()`.
    NoValue,
}

impl Reason {
    /// The word for the reason in JSON and in files of unit tests. These words
    /// do not change.
    pub const fn word(self) -> &'static str {
        match self {
            Reason::FirstSample => "first-sample",
            Reason::Gap => "gap",
            Reason::Backward => "backward",
            Reason::SameTime => "same-time",
            Reason::CounterFell => "counter-fell",
            Reason::OperandEmpty => "operand-empty",
            Reason::OperandFailed(_) => "operand-failed",
            Reason::InstanceMissing => "instance-missing",
            Reason::NoValue => "novalue",
        }
    }

    /// All words.
    pub fn words() -> impl Iterator<Item = &'static str> {
        let all = [
            Reason::FirstSample,
            Reason::Gap,
            Reason::Backward,
            Reason::SameTime,
            Reason::CounterFell,
            Reason::OperandEmpty,
            Reason::OperandFailed(PmStatus::GENERIC),
            Reason::InstanceMissing,
            Reason::NoValue,
        ];
        all.into_iter().map(Reason::word)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::FirstSample => "a difference needs two samples, and this is the first",
            Reason::Gap => "there is a gap in the data since the previous sample",
            Reason::Backward => "the previous sample has a later time",
            Reason::SameTime => "the previous sample has the same time",
            Reason::CounterFell => "every counter went backwards",
            Reason::OperandEmpty => "an operand has no values",
            Reason::OperandFailed(status) => {
                return write!(f, "an operand failed in the previous sample: {status}");
            }
            Reason::InstanceMissing => "no instance is in all operands, or none is selected",
            Reason::NoValue => "the definition says so",
        })
    }
}

/// Outcome of an evaluation for a node or a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// There are values.
    Values,
    /// There are no values, for a reason.
    Empty(Reason),
    /// A PMAPI status takes the place of values.
    Failed(PmStatus),
}

/// The reason or the status in words.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Values => f.write_str("there are values"),
            Status::Empty(reason) => reason.fmt(f),
            Status::Failed(status) => status.fmt(f),
        }
    }
}
