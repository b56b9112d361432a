//! A compiled selection of derived metrics: what to fetch, how the values of
//! each metric come about, and which kernels compute them.
//!
//! A [`Program`] is made by the compiler and never changes. It names no
//! metrics, hosts or instances, so contexts whose metadata look alike share
//! it; a `Binding` of the evaluator says which metrics its inputs are.
//!
//! Every metric is there twice: as [nodes](Node), which say how instances and
//! failures pass from operands to results and give each operation's kernel
//! on its own, and as [steps](Step), in which whole trees are fused into one
//! kernel for the regular case that every operand has its values.

mod binding;
mod table;

use std::fmt;
use std::sync::Arc;

pub use binding::{Binding, SampleKey};
pub use table::{List, Lists, Pool, Table};

use crate::kernel::{Kernel, KernelRef, ReduceOp, Scalar};
use crate::model::{PmStatus, ValueType};
use crate::pattern::Pattern;

macro_rules! index {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $($(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index of the table that it refers to.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        })*
    };
}

index! {
    /// Position in [`Program::inputs`] and of the metric in a fetch.
    InputSlot;
    /// Position in [`Program::nodes`].
    NodeId;
    /// Position in [`Program::histories`].
    HistoryId;
    /// Position in [`Program::baselines`].
    BaselineId;
    /// Position in [`Program::windows`].
    WindowId;
    /// Position among the domains that are delivered with every fetch
    /// ([`crate::source::FetchList::domains`]).
    FetchedDomain;
    /// Position among the domains whose names filters look at.
    NamedDomain;
}

/// What computes a selection of derived metrics. Tables refer to each other by
/// position. Programs of one [`Pool`] have what is equal in them in common.
#[derive(Debug, Default)]
pub struct Program {
    /// Metrics to fetch.
    pub inputs: Box<[Input]>,
    /// All operations of all metrics; operands stand before their users.
    pub nodes: Table<Node>,
    /// Operands of `delta()` and `rate()` whose previous sample is kept.
    pub histories: Box<[History]>,
    /// What each definition has of them.
    pub baselines: List<Baseline>,
    /// Moving windows.
    pub windows: Box<[Window]>,
    /// The metrics, in the order asked for.
    pub outputs: List<Output>,
    /// What they need.
    pub needs: Arc<Needs>,
    /// Distinct kernels of nodes and steps.
    pub kernels: Box<[Arc<Kernel>]>,
    /// Kernel uses in an order in which every step finds its operands.
    pub steps: Table<Step>,
    /// Where the column of a node comes from in the regular case; parallel to
    /// `nodes`, `None` for nodes that exist only inside fused kernels.
    pub placements: Table<Option<Placement>>,
    /// Constants of kernels, 8 bytes each in native byte order.
    pub constants: List<u8>,
    /// Patterns of `matchinst()` and of texts.
    pub patterns: Box<[Pattern]>,
    /// Number of [`FetchedDomain`]s.
    pub fetched_domains: usize,
    /// The [`NamedDomain`]s: for each the inputs whose instances are looked up in it.
    pub named_domains: Box<[Vec<InputSlot>]>,
    /// True when previous samples do not outlive a gap in the source's data, and
    /// there is no rate where no time has passed; libpcp knows neither.
    pub forget_at_gap: bool,
    /// True when a pattern says of an instance for ever what it said when the
    /// instance first had a value, with a name or without.
    pub verdicts_stay: bool,
    /// True where a derived metric that no agent serves fails as one that is
    /// not known, with `PM_ERR_PMID`.
    pub derived_is_unknown: bool,
}

/// A metric to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Type of its values.
    pub value_type: ValueType,
    /// True when it has an instance domain.
    pub is_set: bool,
    /// Which of the program's domains that is, by the order in which they
    /// appear; metrics of one mostly have the same instances.
    pub domain: Option<u32>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// Type of its values.
    pub value_type: ValueType,
    /// True when it has an instance domain; else it has at most one value.
    pub is_set: bool,
}

/// What a node does with its operands, which are earlier nodes.
///
/// Unless said otherwise a failed operand makes the node fail with its
/// status, the left one first, and an operand without values leaves it without.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Values as fetched.
    Input(InputSlot),
    /// One value, always the same (bits of a lane).
    Constant(u64),
    /// The same value for every instance that a domain has at the fetch.
    ConstantPerInstance {
        /// The domain.
        domain: FetchedDomain,
        /// Bits of the lane.
        bits: u64,
    },
    /// Never any value.
    Nothing,
    /// Stands for a branch of [`Op::Choose`] that takes values away where it
    /// is chosen, and nowhere else.
    NoValue,
    /// A kernel on the lanes of one or two operands. Two sets meet in the
    /// instances that both have, in the order of the first; a single value
    /// meets every instance of a set.
    Map {
        /// One or two operands.
        operands: Box<[NodeId]>,
        /// Kernel over lanes of the operands.
        kernel: KernelRef,
        /// Offset of its constants.
        constants: u32,
    },
    /// A kernel on an operand's lanes, their previous values and the seconds
    /// in between. Instances without a previous value have none, nor have
    /// those for which the kernel sets a flag.
    Change {
        /// The operand.
        operand: NodeId,
        /// Where its previous sample is kept.
        history: HistoryId,
        /// From which sample on the definition may use it.
        baseline: BaselineId,
        /// Kernel over the lane, the previous lane and, if it has three
        /// operands, the elapsed seconds (`F64`).
        kernel: KernelRef,
        /// Offset of its constants.
        constants: u32,
    },
    /// Per instance of the guard (or, if that is single, of the first branch
    /// that is a set) the value of the branch that the guard chooses; no value
    /// where that branch lacks the instance. Both branches must have values,
    /// [`Op::NoValue`] excepted.
    Choose {
        /// Decides: not zero chooses `yes`.
        guard: NodeId,
        /// One branch.
        yes: NodeId,
        /// The other.
        no: NodeId,
    },
    /// The values of a branch that was chosen at compile time, provided that
    /// the guard has a value.
    Chosen {
        /// The guard.
        guard: NodeId,
        /// The branch.
        branch: NodeId,
    },
    /// One value from all lanes. Sum and average of no lanes are zero, the
    /// others are not there.
    Reduce {
        /// Which.
        op: ReduceOp,
        /// The operand.
        operand: NodeId,
    },
    /// Number of values, zero for a failed operand (`U32`).
    Count(NodeId),
    /// The instance of that external name.
    Named {
        /// The operand.
        operand: NodeId,
        /// Its domain.
        domain: NamedDomain,
        /// External name.
        name: Box<str>,
    },
    /// The instances whose external name, up to its first blank, matches.
    Matching {
        /// The operand.
        operand: NodeId,
        /// Its domain.
        domain: NamedDomain,
        /// Position in [`Program::patterns`].
        pattern: u32,
        /// Takes those that do not match instead; instances without a name are never taken.
        negated: bool,
    },
    /// The first value, without its instance.
    First(NodeId),
    /// The instances with the greatest or least values, in the operand's order.
    Ranked {
        /// The operand.
        operand: NodeId,
        /// How many, at most.
        k: u32,
        /// The greatest.
        top: bool,
    },
    /// A function of the operand's values over a window of time.
    Window {
        /// The operand.
        operand: NodeId,
        /// Which.
        window: WindowId,
    },
    /// Where two texts are equal (`U32`). Operands meet as those of [`Op::Map`] do.
    TextEqual {
        /// Left operand.
        left: NodeId,
        /// Right operand.
        right: NodeId,
        /// 1 where they differ instead.
        negated: bool,
    },
    /// Where a text is that one (`U32`).
    TextIs {
        /// The operand.
        operand: NodeId,
        /// The text.
        text: Box<str>,
        /// 1 where it is not instead.
        negated: bool,
    },
    /// Where a pattern occurs in a text (`U32`).
    TextMatch {
        /// The operand.
        operand: NodeId,
        /// Position in [`Program::patterns`].
        pattern: u32,
        /// 1 where it does not occur instead.
        negated: bool,
    },
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

impl Op {
    /// Calls `visit` with each operand, in evaluation order.
    pub fn operands(&self, mut visit: impl FnMut(NodeId)) {
        match self {
            Op::Input(_) | Op::Constant(_) | Op::ConstantPerInstance { .. } => {}
            Op::Nothing | Op::NoValue => {}
            Op::Map { operands, .. } => operands.iter().copied().for_each(visit),
            Op::Choose { guard, yes, no } => [*guard, *yes, *no].into_iter().for_each(visit),
            Op::Chosen { guard, branch } => [*guard, *branch].into_iter().for_each(visit),
            Op::TextEqual { left, right, .. } => [*left, *right].into_iter().for_each(visit),
            Op::Ranked { operand, .. }
            | Op::Window { operand, .. }
            | Op::TextIs { operand, .. }
            | Op::TextMatch { operand, .. }
            | Op::Change { operand, .. }
            | Op::Reduce { operand, .. }
            | Op::Count(operand)
            | Op::Named { operand, .. }
            | Op::Matching { operand, .. }
            | Op::First(operand) => visit(*operand),
        }
    }

    /// Calls `visit` with each operand to put another in its place, in
    /// evaluation order.
    pub fn operands_mut(&mut self, visit: impl FnMut(&mut NodeId)) {
        match self {
            Op::Input(_) | Op::Constant(_) | Op::ConstantPerInstance { .. } => {}
            Op::Nothing | Op::NoValue => {}
            Op::Map { operands, .. } => operands.iter_mut().for_each(visit),
            Op::Choose { guard, yes, no } => [guard, yes, no].into_iter().for_each(visit),
            Op::Chosen { guard, branch } => [guard, branch].into_iter().for_each(visit),
            Op::TextEqual { left, right, .. } => [left, right].into_iter().for_each(visit),
            Op::Ranked { operand, .. }
            | Op::Window { operand, .. }
            | Op::TextIs { operand, .. }
            | Op::TextMatch { operand, .. }
            | Op::Change { operand, .. }
            | Op::Reduce { operand, .. }
            | Op::Count(operand)
            | Op::Named { operand, .. }
            | Op::Matching { operand, .. }
            | Op::First(operand) => [operand].into_iter().for_each(visit),
        }
    }

    /// True for an operation that no kernel has: it is evaluated on its own,
    /// and so is everything that needs its values.
    pub const fn is_general(&self) -> bool {
        matches!(
            self,
            Op::Ranked { .. }
                | Op::Window { .. }
                | Op::TextEqual { .. }
                | Op::TextIs { .. }
                | Op::TextMatch { .. }
        )
    }
}

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

/// A derived metric.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// Its value.
    pub root: NodeId,
    /// Type of its values.
    pub value_type: ValueType,
    /// For a single value, the input whose instance it bears: old archives
    /// have single values under other instances than -1.
    pub instance_of: Option<InputSlot>,
}

/// What derived metrics need, parallel to [`Program::outputs`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Needs {
    /// All nodes, ascending.
    pub nodes: Lists<NodeId>,
    /// All histories among them.
    pub histories: Lists<HistoryId>,
    /// All baselines among them.
    pub baselines: Lists<BaselineId>,
}

/// Where a node's column comes from in the regular case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Decoded from the fetch.
    Input(InputSlot),
    /// Written anew for each evaluation: constants and counts.
    Fill,
    /// Lanes of another node's column.
    View(StepOperand),
    /// Computed by the step at that position.
    Step(u32),
}

/// One use of a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The kernel.
    pub kernel: KernelRef,
    /// Parallel to the kernel's operands.
    pub operands: Box<[StepOperand]>,
    /// Offset of its constants.
    pub constants: u32,
    /// The node it computes; its lanes are the kernel's.
    pub output: NodeId,
    /// Longest chain of steps below it: steps of one level are independent.
    pub level: u32,
}

/// What an operand of a fused kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepOperand {
    /// Lanes of a placed set-valued node, aligned to the step's lanes.
    Column(NodeId),
    /// The one lane of a placed node.
    Single(NodeId),
    /// Of a placed node the lane of that instance which comes first in `of`.
    First {
        /// The placed node.
        node: NodeId,
        /// The node whose first instance is meant.
        of: NodeId,
    },
    /// The previous lanes of a history, chosen as one of the above chooses
    /// among the lanes of the history's operand.
    Previous {
        /// The history.
        history: HistoryId,
        /// How its lanes are chosen.
        lanes: PreviousLanes,
    },
    /// Seconds since a history's sample (`F64`).
    Elapsed(HistoryId),
}

/// Which of a history's lanes a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreviousLanes {
    /// Those of the step's instances.
    Column,
    /// The only one.
    Single,
    /// That of the instance which comes first in the node.
    First(NodeId),
}

/// Why a metric has no values although nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A difference needs two samples and this is the first.
    FirstSample,
    /// The previous sample lies before a gap in the data.
    Gap,
    /// The previous sample is of a later time, as where an archive is read
    /// backward.
    Backward,
    /// The previous sample is of the same time: nothing can be told per second.
    SameTime,
    /// Every counter went backwards.
    CounterFell,
    /// An operand was delivered without values.
    OperandEmpty,
    /// The operand failed at the previous fetch, with this status.
    OperandFailed(PmStatus),
    /// No instance is in all operands, or none is selected.
    InstanceMissing,
    /// The definition says so: `novalue()`.
    NoValue,
}

impl Reason {
    /// The word of the reason in JSON and in files of unit tests, which does
    /// not change.
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
            Reason::Backward => "the previous sample is of a later time",
            Reason::SameTime => "the previous sample is of the same time",
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
    /// There are none.
    Empty(Reason),
    /// There is a PMAPI status instead.
    Failed(PmStatus),
}

/// The scalar of a value type; `None` for text and other bytes.
pub const fn scalar_of(value_type: ValueType) -> Option<Scalar> {
    Some(match value_type {
        ValueType::I32 => Scalar::I32,
        ValueType::U32 => Scalar::U32,
        ValueType::I64 => Scalar::I64,
        ValueType::U64 => Scalar::U64,
        ValueType::F32 => Scalar::F32,
        ValueType::F64 => Scalar::F64,
        _ => return None,
    })
}
