//! The samples that a program keeps between fetches: operands of differences,
//! and windows of time.

use super::{HistoryId, InputSlot, NodeId, WindowId};
use crate::kernel::Scalar;

/// An operand whose previous sample is kept. All definitions share it.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The operand.
    pub operand: NodeId,
    /// The metrics below the operand. The sample has the time stamp of the
    /// first metric. Without metrics it has that of the fetch.
    pub inputs: Box<[InputSlot]>,
    /// Effect of a failed operand on the sample.
    pub on_failure: OnFailure,
}

/// A definition's use of a history.
///
/// Definitions share the sample of an operand. But a new definition has no
/// sample yet, and a definition that was not evaluated for some time has an
/// older one. They agree again after the operand's next values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Baseline {
    /// The history.
    pub history: HistoryId,
    /// Identity of the definition and position of the history in it. It finds
    /// the sample again when the program changes.
    pub key: HistoryKey,
}

/// A moving window of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Identity of the window when the program changes.
    pub key: HistoryKey,
    /// The first window of the program that computes the same function of the
    /// same operand, for any definition.
    pub like: WindowId,
    /// The metrics below the operand. A sample has the time stamp of the first
    /// metric. Without metrics it has that of the fetch.
    pub inputs: Box<[InputSlot]>,
    /// The function to compute.
    pub function: WindowFunction,
    /// Length of the window or half-life in seconds, not negative.
    pub seconds: f64,
    /// Type of the operand's lanes and of the result; `F64` for averages.
    pub scalar: Scalar,
}

/// The definition that previous samples belong to: a fingerprint of its name and its
/// text. While both stay the same, the samples are found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionKey(pub u64);

/// Identity of a baseline or a window across programs. The
/// [`SampleKey`](super::SampleKey) of a context adds the metrics that the
/// samples came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HistoryKey {
    /// The definition.
    pub definition: DefinitionKey,
    /// Position within the definition.
    pub ordinal: u32,
}

/// Effect of a failed operand on the previous sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The sample is forgotten.
    Forget,
    /// The sample stays, so the next difference spans the failure.
    Keep,
    /// The failure replaces the sample and is reported once more.
    Repeat,
}

/// Functions over a moving window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowFunction {
    /// Arithmetic mean of the samples.
    Avg,
    /// The greatest sample; NaN if one is NaN.
    Max,
    /// The least sample; NaN if one is NaN.
    Min,
    /// Exponentially weighted moving average. The length is its half-life.
    Ewma,
}
