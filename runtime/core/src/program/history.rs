//! What a program keeps from sample to sample: operands of differences, and
//! windows of time.

use super::{HistoryId, InputSlot, NodeId, WindowId};
use crate::kernel::Scalar;

/// An operand whose previous sample is kept, once for all definitions.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Whose values.
    pub operand: NodeId,
    /// The metrics below the operand. The sample has the time stamp of the
    /// first; without any that of the fetch.
    pub inputs: Box<[InputSlot]>,
    /// What a failed operand does to it.
    pub on_failure: OnFailure,
}

/// A definition's use of a history.
///
/// Definitions share the sample of an operand. But one that is new has none
/// yet, and one that was not evaluated for some time has an older one, until
/// the operand has values again: only then do all of them agree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Baseline {
    /// The history.
    pub history: HistoryId,
    /// Identity of the definition and position of the history in it: what the
    /// sample belongs to when programs change.
    pub key: HistoryKey,
}

/// A moving window of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What its samples belong to when programs change.
    pub key: HistoryKey,
    /// The first window of the program that computes the same of an operand
    /// that is the same, for whichever definition.
    pub like: WindowId,
    /// The metrics below the operand. A sample has the time stamp of the
    /// first; without any that of the fetch.
    pub inputs: Box<[InputSlot]>,
    /// What is computed.
    pub function: WindowFunction,
    /// Length of the window or half-life in seconds, not negative.
    pub seconds: f64,
    /// Type of the operand's lanes and of the result; `F64` for averages.
    pub scalar: Scalar,
}

/// Identity of a baseline or a window across programs. Of which metrics its
/// samples are says the [`SampleKey`] of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HistoryKey {
    /// Fingerprint of the definition: its name and its text.
    pub definition: u64,
    /// Position within the definition.
    pub ordinal: u32,
}

/// What happens to a previous sample when the operand fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// It is forgotten.
    Forget,
    /// It stays, so that the next difference spans the failure.
    Keep,
    /// The failure takes its place and is reported once more.
    Repeat,
}

/// Functions over a moving window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowFunction {
    /// Plain mean of the samples.
    Avg,
    /// The greatest; NaN if one is NaN.
    Max,
    /// The least; NaN if one is NaN.
    Min,
    /// Exponentially weighted moving average, by half-life.
    Ewma,
}
