//! A compiled selection of derived metrics: which metrics to fetch, how to
//! compute each derived metric, and with which kernels.
//!
//! The compiler makes a [`Program`], which never changes. It names no metrics,
//! hosts or instances, so contexts with similar metadata share it. A
//! [`Binding`] says which metrics its inputs are.
//!
//! The program holds every derived metric twice. As [nodes](Node), it says how
//! instances and failures pass from operands to results, and gives each
//! operation its own kernel. As [steps](Step), it has whole trees fused into
//! one kernel, for the regular case: every operand has its values.

mod binding;
mod history;
mod op;
mod outcome;
mod step;
mod table;

use std::sync::Arc;

use rustc_hash::FxHashSet;

pub use binding::{Binding, SampleKey};
pub use history::{
    Baseline, DefinitionKey, History, HistoryKey, OnFailure, Window, WindowFunction,
};
pub use op::{Node, Op};
pub use outcome::{Reason, Status};
pub use step::{Placement, PreviousLanes, Step, StepOperand};
pub use table::{List, Lists, Pool, Table};

use crate::kernel::{Kernel, Scalar};
use crate::model::ValueType;
use crate::pattern::Pattern;

crate::positions! {
    /// Position in [`Program::inputs`] and in the list of metrics of a fetch.
    pub InputSlot;
    /// Position in [`Program::nodes`].
    pub NodeId;
    /// Position in [`Program::histories`].
    pub HistoryId;
    /// Position in [`Program::baselines`].
    pub BaselineId;
    /// Position in [`Program::windows`].
    pub WindowId;
    /// Position in [`Program::outputs`].
    pub OutputId;
    /// Position in [`Program::steps`].
    pub StepId;
    /// Position in [`Program::patterns`].
    pub PatternId;
    /// Position among the domains that are delivered with every fetch
    /// ([`crate::source::FetchList::domains`]).
    pub FetchedDomain;
    /// Position among the domains whose instance names filters read.
    pub NamedDomain;
}

/// The computation of a selection of derived metrics. Its tables refer to each
/// other by position. Programs of one [`Pool`] share their equal parts.
///
/// A compiler makes programs, and [`Evaluator`](crate::eval::Evaluator)
/// evaluates them. A program names no metric: its [`Binding`] does.
///
/// ```
/// use pmderive_core::model::ValueType;
/// use pmderive_core::program::{Input, Program};
///
/// // What is fetched and not computed with.
/// let input = Input { value_type: ValueType::U32, is_set: false, domain: None };
/// let program = Program { inputs: [input].into(), ..Program::default() };
/// assert_eq!((program.inputs.len(), program.outputs.len()), (1, 0));
/// ```
#[derive(Debug, Default)]
pub struct Program {
    /// Metrics to fetch.
    pub inputs: Box<[Input]>,
    /// All operations of all derived metrics. Operands stand before their
    /// users.
    pub nodes: Table<Node>,
    /// Operands of `delta()` and `rate()` whose previous sample is kept.
    pub histories: Box<[History]>,
    /// Each definition's uses of the histories.
    pub baselines: List<Baseline>,
    /// Moving windows.
    pub windows: Box<[Window]>,
    /// The derived metrics, in the order of the request.
    pub outputs: List<Output>,
    /// The nodes, histories and baselines that each output needs.
    pub needs: Arc<Needs>,
    /// Distinct kernels of nodes and steps.
    pub kernels: Box<[Arc<Kernel>]>,
    /// Kernel uses, ordered so that every step finds its operands computed.
    pub steps: Table<Step>,
    /// The source of each node's column in the regular case, parallel to
    /// `nodes`. `None` for a node that exists only inside fused kernels.
    pub placements: Table<Option<Placement>>,
    /// Constants of kernels, in native byte order.
    pub constants: List<u8>,
    /// Patterns of `matchinst()` and `matchvalue()`.
    pub patterns: Box<[Pattern]>,
    /// Number of [`FetchedDomain`]s.
    pub fetched_domains: usize,
    /// For each [`NamedDomain`], the inputs whose instances are looked up in
    /// it.
    pub named_domains: Box<[Vec<InputSlot>]>,
    /// True if previous samples are dropped at a gap in the source's data, and
    /// a rate over no time has no value. False for libpcp's dialects, which do
    /// neither.
    pub forget_at_gap: bool,
    /// True if the first verdict of a pattern on an instance stays for ever.
    /// The verdict is made when the instance first has a value, with a name or
    /// without.
    pub verdicts_stay: bool,
    /// True if `count()` of an operand that failed is 0, as in libpcp's dialects.
    /// False if it fails, as other aggregates do.
    pub counts_failed: bool,
    /// True if a derived metric that no agent serves fails like an unknown one,
    /// with `PM_ERR_PMID`.
    pub derived_is_unknown: bool,
}

impl Program {
    /// Bytes of its tables. Parts shared with other programs count once: `seen` has the
    /// addresses of the counted parts.
    #[doc(hidden)]
    pub fn bytes_unless(&self, seen: &mut FxHashSet<usize>) -> usize {
        size_of::<Program>()
            + size_of_val(&*self.inputs)
            + size_of_val(&*self.histories)
            + size_of_val(&*self.windows)
            + size_of_val(&*self.kernels)
            + self.nodes.bytes_unless(seen)
            + self.steps.bytes_unless(seen)
            + self.placements.bytes_unless(seen)
            + self.baselines.bytes_unless(seen)
            + self.outputs.bytes_unless(seen)
            + self.constants.bytes_unless(seen)
    }
}

/// A metric to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Type of its values.
    pub value_type: ValueType,
    /// True when it has an instance domain.
    pub is_set: bool,
    /// The input's domain, numbered by first appearance in the program. Metrics
    /// of one domain mostly have the same instances.
    pub domain: Option<u32>,
}

/// A derived metric.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// The node that computes its value.
    pub root: NodeId,
    /// Type of its values.
    pub value_type: ValueType,
    /// For a single value, the input that gives the instance number. Old
    /// archives have single values under instances other than -1.
    pub instance_of: Option<InputSlot>,
}

/// The parts that derived metrics need. The lists are parallel to [`Program::outputs`]. A part that
/// an output needs only through another output is listed with that other output. So in a chain of
/// definitions, each has only its own part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Needs {
    /// Needed nodes, without those of the output's bases, ascending.
    pub nodes: Lists<NodeId>,
    /// The histories of these nodes.
    pub histories: Lists<HistoryId>,
    /// The baselines of these nodes.
    pub baselines: Lists<BaselineId>,
    /// The output's bases: earlier outputs that it needs whole, without theirs.
    pub bases: Lists<OutputId>,
    /// The same the other way: the outputs that it is a base of, ascending.
    pub users: Lists<OutputId>,
}

/// The scalar of a value type. `None` for text and other bytes.
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
