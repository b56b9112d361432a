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
mod history;
mod op;
mod outcome;
mod step;
mod table;

use std::sync::Arc;

pub use binding::{Binding, SampleKey};
pub use history::{Baseline, History, HistoryKey, OnFailure, Window, WindowFunction};
pub use op::{Node, Op};
pub use outcome::{Reason, Status};
pub use step::{Placement, PreviousLanes, Step, StepOperand};
pub use table::{List, Lists, Pool, Table};

use crate::kernel::{Kernel, Scalar};
use crate::model::ValueType;
use crate::pattern::Pattern;

macro_rules! index {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $($(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index of the table that it refers to.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        })*
    };
}

pub(crate) use index;

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
    /// Position in [`Program::outputs`].
    OutputId;
    /// Position in [`Program::steps`].
    StepId;
    /// Position in [`Program::patterns`].
    PatternId;
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
