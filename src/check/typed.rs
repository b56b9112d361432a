//! Checked expressions: every node has its full metadata.

use pmderive_runtime::kernel::ReduceOp;
use pmderive_runtime::model::{Conversion, MetricDesc, Pmid, ValueType};
use pmderive_runtime::positions;

use crate::bind::{DefinitionId, Desc};
use crate::lanes::LaneRule;
use crate::syntax::ast::{Aggregate, BinaryOp, Expr, Node, NodeKind};

positions! {
    /// Position of a node in a [`TypedExpr`].
    pub TypedId;
}

/// An expression that can be evaluated. Nodes stand in post-order; the last
/// is the root. Branches that can never be chosen are not in it.
#[derive(Clone, Debug, Default)]
pub struct TypedExpr {
    /// The nodes.
    pub nodes: Vec<TypedNode>,
    /// Metrics that the expression mentions without needing their values, in
    /// branches that are never chosen. libpcp fetches them nevertheless. They affect which records
    /// of an archive count.
    pub mentioned: Vec<MetricDesc>,
    /// Trees that are planned together and have the same number differ in their metrics
    /// only: different ones in one are different in the other.
    pub(crate) number: Option<u32>,
}

/// A node with its metadata.
#[derive(Clone, Debug)]
pub struct TypedNode {
    /// The operation.
    pub kind: TypedKind,
    /// The meaning of its values.
    pub desc: Desc,
}

/// The factors that bring an operand to the scale of the other: a division,
/// then a multiplication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Divisor.
    pub div: f64,
    /// Multiplier.
    pub mul: f64,
}

impl Scale {
    /// Changes nothing.
    pub const ONE: Scale = Scale { div: 1.0, mul: 1.0 };

    /// True if it changes nothing.
    pub fn is_one(self) -> bool {
        self == Scale::ONE
    }

    /// Both, unless neither changes anything.
    pub fn both(left: Scale, right: Scale) -> Option<Box<[Scale; 2]>> {
        (!left.is_one() || !right.is_one()).then(|| Box::new([left, right]))
    }
}

/// The precision of integers where libpcp loses digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Exact, and rounded to the nearest number at the end.
    Exact,
    /// Exact for numbers that are less than 2^63 apart, as those of a counter are: one
    /// instruction.
    OfCounter,
    /// With the overflows and roundings of libpcp.
    AsLibpcp,
}

/// The treatment of a value below the previous one in a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decrease {
    /// It has no value then: a counter was reset.
    Drop,
    /// The difference in the operand's type, which wraps.
    Wrap,
    /// The negative difference.
    Negative,
}
pub use pmderive_runtime::program::WindowFunction;

/// The operation of a node; operands are earlier nodes.
#[derive(Clone, Debug)]
pub enum TypedKind {
    /// Values of a metric, which has the node's metadata.
    Metric(Pmid),
    /// Values of another derived metric.
    Derived(DefinitionId),
    /// The same value always, for every instance if there is a domain (bits of a lane).
    Constant(u64),
    /// `novalue()`: as a branch of a ternary it removes values where it is
    /// chosen, and nowhere else.
    NoValue,
    /// An operand that never has a value.
    Nothing,
    /// `-operand`, in the node's type.
    Negate(TypedId),
    /// `!operand`
    Not(TypedId),
    /// `left op right`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left operand.
        left: TypedId,
        /// Right operand.
        right: TypedId,
        /// The type for the computation.
        common: ValueType,
        /// The scales of the left and the right operand, applied in double
        /// precision. `None` if neither changes.
        scales: Option<Box<[Scale; 2]>>,
    },
    /// A ternary that values decide.
    Choose {
        /// The deciding operand.
        guard: TypedId,
        /// The value where the guard is not zero.
        yes: TypedId,
        /// The value where the guard is zero.
        no: TypedId,
    },
    /// A ternary that is decided before evaluation.
    Chosen {
        /// The guard, which must still have a value.
        guard: TypedId,
        /// The branch.
        branch: TypedId,
    },
    /// An aggregate over the instances of a metric.
    Aggregate {
        /// The function.
        function: Aggregate,
        /// The metric.
        operand: TypedId,
    },
    /// `delta(operand)`
    Delta {
        /// The operand.
        operand: TypedId,
        /// The precision of 64-bit unsigned differences.
        precision: Precision,
    },
    /// `rate(operand)`
    Rate {
        /// The operand.
        operand: TypedId,
        /// The treatment of values below the previous one.
        decrease: Decrease,
        /// Seconds in a unit of the operand's time, if that dimension cancels.
        time_factor: Option<f64>,
    },
    /// The operand with other metadata.
    Same(TypedId),
    /// `scalar(operand)`
    Scalar(TypedId),
    /// `rescale(operand, units)`
    Rescale {
        /// The operand.
        operand: TypedId,
        /// The conversion.
        conversion: Box<Conversion>,
        /// The precision of integers.
        precision: Precision,
    },
    /// `operand[instance]`
    Named {
        /// The operand.
        operand: TypedId,
        /// External instance name.
        name: Box<str>,
    },
    /// `matchinst(pattern, operand)`
    Matching {
        /// The operand.
        operand: TypedId,
        /// Regular expression.
        pattern: Box<str>,
        /// Chooses the instances that do not match.
        negated: bool,
    },
    /// A function of the values of one or two operands, instance by instance.
    Lanes {
        /// The rule.
        rule: &'static LaneRule,
        /// The operands.
        operands: Box<[TypedId]>,
        /// The type for the computation.
        within: ValueType,
    },
    /// A statistic over the instances of the operand, `F64`: NaN if one value
    /// is NaN, no value of none.
    Statistic {
        /// The statistic.
        op: ReduceOp,
        /// The operand.
        operand: TypedId,
    },
    /// The `k` instances with the greatest (`top`) or least values, in the
    /// operand's order. Among equal values the earlier ones win; NaN comes
    /// after all numbers.
    Ranked {
        /// Largest number of instances.
        k: u32,
        /// True for the greatest values.
        top: bool,
        /// The operand.
        operand: TypedId,
    },
    /// A function of the values over a moving window of time.
    Window {
        /// The function.
        function: WindowFunction,
        /// The operand.
        operand: TypedId,
        /// Length of the window, or half-life, in seconds (bits of an `F64`).
        seconds: u64,
    },
    /// A text literal, only as an operand of [`TypedKind::TextEqual`].
    Text(Box<str>),
    /// 1 where both texts are equal (`negated`: where they are not), else 0.
    TextEqual {
        /// Left operand.
        left: TypedId,
        /// Right operand.
        right: TypedId,
        /// 1 where they differ instead.
        negated: bool,
    },
    /// 1 where the pattern occurs in a text, else 0.
    TextMatch {
        /// The operand.
        operand: TypedId,
        /// POSIX extended regular expression.
        pattern: Box<str>,
        /// 1 where it does not occur instead.
        negated: bool,
    },
}

impl TypedExpr {
    /// An expression without nodes, with room for those of `expr`. An aggregate is one
    /// node there and two here, because its metric is another one.
    pub(super) fn with_room(expr: &Expr) -> TypedExpr {
        let is_aggregate = |node: &Node| matches!(node.kind, NodeKind::Aggregate { .. });
        let aggregates = expr.nodes().filter(|(_, node)| is_aggregate(node)).count();
        let nodes = Vec::with_capacity(expr.len() + aggregates);
        TypedExpr { nodes, ..TypedExpr::default() }
    }

    /// The values of a metric as they are.
    pub fn of_metric(desc: MetricDesc) -> TypedExpr {
        let node = TypedNode { kind: TypedKind::Metric(desc.pmid), desc: desc.into() };
        TypedExpr { nodes: vec![node], ..TypedExpr::default() }
    }

    /// The node of an identifier.
    pub fn node(&self, id: TypedId) -> &TypedNode {
        &self.nodes[id.index()]
    }

    /// Metadata of the whole expression.
    ///
    /// # Panics
    /// On an expression without nodes, which checking never makes.
    pub fn desc(&self) -> Desc {
        self.nodes.last().expect("a checked expression has a root").desc
    }
}
