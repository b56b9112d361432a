//! The syntax tree of an expression.
//!
//! Nodes stand in an arena in post-order: every child has a smaller index than
//! its parent, and the last node is the root. Later stages loop over the arena
//! instead of recursing, so no expression is too deep for them.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pmderive_runtime::model::{InDom, Semantics, Units, ValueType};
use pmderive_runtime::position::Per;
use pmderive_runtime::positions;

use crate::functions::Function;
use crate::text::Span;

/// Largest number of labels in one `by`.
pub const MAX_LABELS: usize = 32;

positions! {
    /// Position of a node in an [`Expr`].
    pub ExprId;
}

/// A value for each node of an [`Expr`], in their order. Empty for an
/// expression that was not examined.
pub type PerNode<T> = Per<ExprId, T>;

/// A parsed expression. It contains [`NodeKind::Error`] where the text is
/// wrong; the parser has then reported at least one diagnostic.
#[derive(Clone, Debug, Default)]
pub struct Expr {
    nodes: Vec<Node>,
    /// Expressions with the same number differ in names of metrics and in places only.
    shape: Option<NonZeroU64>,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.nodes == other.nodes
    }
}

/// One node with the text it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The kind.
    pub kind: NodeKind,
    /// The place of the whole node, parentheses excluded.
    pub span: Span,
}

/// A value with the place where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The place of its text.
    pub span: Span,
}

/// The kinds of nodes; operands are indices of earlier nodes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NodeKind {
    /// `42`, `1.5`
    Number(Number),
    /// `disk.dev.read`
    Metric(Arc<str>),
    /// `operand[instance]`
    Select {
        /// The operand to select from.
        operand: ExprId,
        /// External instance name, backslashes already removed.
        instance: Spanned<Box<str>>,
    },
    /// `matchinst(/pattern/, operand)`
    Match {
        /// POSIX extended regular expression, backslashes already removed as the lexer rules say.
        pattern: Spanned<Box<str>>,
        /// `!` before the pattern.
        negated: bool,
        /// The operand to filter.
        operand: ExprId,
    },
    /// `-operand`, `!operand`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// Its operand.
        operand: ExprId,
    },
    /// `left op right`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The place of the operator.
        op_span: Span,
        /// Left operand.
        left: ExprId,
        /// Right operand.
        right: ExprId,
    },
    /// `guard ? yes : no`
    Ternary {
        /// The deciding operand.
        guard: ExprId,
        /// Value where the guard is not zero.
        yes: ExprId,
        /// Value where the guard is zero.
        no: ExprId,
    },
    /// `avg(metric)` and the other aggregates over instances.
    Aggregate {
        /// The function.
        function: Aggregate,
        /// The metric's name.
        metric: Spanned<Arc<str>>,
    },
    /// `defined(metric)`
    Defined(Spanned<Arc<str>>),
    /// `anon(PM_TYPE_...)`
    Anon(ValueType),
    /// `delta(operand)`, `rate(operand)`, `instant(operand)`
    Temporal {
        /// The function.
        function: Temporal,
        /// Its operand.
        operand: ExprId,
    },
    /// `scalar(operand)`
    Scalar(ExprId),
    /// `rescale(operand, "units")`
    Rescale {
        /// The operand to convert.
        operand: ExprId,
        /// Target units; a multiplier in the text has no effect.
        units: Spanned<Units>,
    },
    /// `mkconst(number, ...)`
    MkConst {
        /// The number. It and the keywords are boxed: both are large, and other
        /// nodes are many.
        number: Box<Spanned<Number>>,
        /// Its keywords.
        attributes: Box<Attributes>,
    },
    /// `novalue(...)`
    NoValue(Box<Attributes>),
    /// A call of a function that libpcp does not have.
    Call {
        /// The function.
        callee: Callee,
        /// The literal argument, for functions that have one.
        literal: Option<Box<Spanned<Literal>>>,
        /// The other arguments in their order; as many as the function needs.
        operands: Box<[ExprId]>,
    },
    /// `sum(a) by (rack, dc)`; libpcp does not have it.
    Grouped {
        /// The call of an aggregate.
        operand: ExprId,
        /// Names of labels, each once, [`MAX_LABELS`] at most.
        labels: Box<[Spanned<Box<str>>]>,
    },
    /// `"init"`, an operand of `==` or `!=`; libpcp does not have it.
    Text(Box<str>),
    /// Text that was not understood.
    Error,
}

/// A number in its spelling.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The spelling.
    pub text: Box<str>,
    /// The value.
    pub value: NumberValue,
}

/// The value of a number's spelling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberValue {
    /// Digits only: an unsigned 32-bit integer.
    Integer(u32),
    /// With a point: correctly rounded.
    Double(f64),
}

impl NumberValue {
    /// The value in double precision, which has every integer of 32 bits.
    pub fn as_f64(self) -> f64 {
        match self {
            NumberValue::Integer(value) => f64::from(value),
            NumberValue::Double(value) => value,
        }
    }
}

/// Keywords of `mkconst()` and `novalue()`; of a repeated keyword the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `type=`
    pub value_type: Option<Spanned<ValueType>>,
    /// `semantics=`
    pub semantics: Option<Spanned<Semantics>>,
    /// `units=`
    pub units: Option<Spanned<Units>>,
    /// `indom=`; `Some(None)` inside for `indom=null`.
    pub indom: Option<Spanned<Option<InDom>>>,
    /// `meta=`
    pub meta: Option<Spanned<Box<str>>>,
}

impl Attributes {
    fn each_span(&mut self, visit: &mut impl FnMut(&mut Span)) {
        let Attributes { value_type, semantics, units, indom, meta } = self;
        value_type.iter_mut().for_each(|one| visit(&mut one.span));
        semantics.iter_mut().for_each(|one| visit(&mut one.span));
        units.iter_mut().for_each(|one| visit(&mut one.span));
        indom.iter_mut().for_each(|one| visit(&mut one.span));
        meta.iter_mut().for_each(|one| visit(&mut one.span));
    }
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `==`
    Eq,
    /// `>=`
    Ge,
    /// `>`
    Gt,
    /// `!=`
    Ne,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Functions over the instances of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Aggregate {
    /// `avg`
    Avg,
    /// `count`
    Count,
    /// `max`
    Max,
    /// `min`
    Min,
    /// `sum`
    Sum,
}

/// Functions about change over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Temporal {
    /// `delta`
    Delta,
    /// `rate`
    Rate,
    /// `instant`
    Instant,
}

/// The function that a [`NodeKind::Call`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Callee {
    /// A function that libpcp does not have.
    Function(&'static Function),
    /// `avg`, `count`, `max`, `min`, `sum` of anything but a name.
    Aggregate(Aggregate),
}

/// An argument that cannot be computed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Literal {
    /// `k` of `topk()` and `bottomk()`: 1 or more.
    Rank(u32),
    /// `q` of `quantile()`: from 0 to 1.
    Fraction(Number),
    /// An interval or half-life.
    Interval {
        /// The spelling.
        text: Box<str>,
        /// The length, greater than zero.
        length: Duration,
    },
    /// The pattern of `matchvalue()`.
    Pattern {
        /// POSIX extended regular expression, backslashes already removed.
        pattern: Box<str>,
        /// `!` before it.
        negated: bool,
    },
}

/// Does something with each operand of a node, left to right. `$iter` goes
/// through a slice of them.
macro_rules! each_operand {
    ($kind:expr, $iter:ident, $visit:expr) => {{
        let visit = $visit;
        match $kind {
            NodeKind::Number(_)
            | NodeKind::Metric(_)
            | NodeKind::Aggregate { .. }
            | NodeKind::Defined(_)
            | NodeKind::Anon(_)
            | NodeKind::MkConst { .. }
            | NodeKind::NoValue(_)
            | NodeKind::Text(_)
            | NodeKind::Error => {}
            NodeKind::Call { operands, .. } => operands.$iter().for_each(visit),
            NodeKind::Select { operand, .. }
            | NodeKind::Match { operand, .. }
            | NodeKind::Unary { operand, .. }
            | NodeKind::Temporal { operand, .. }
            | NodeKind::Rescale { operand, .. }
            | NodeKind::Grouped { operand, .. }
            | NodeKind::Scalar(operand) => [operand].into_iter().for_each(visit),
            NodeKind::Binary { left, right, .. } => [left, right].into_iter().for_each(visit),
            NodeKind::Ternary { guard, yes, no } => [guard, yes, no].into_iter().for_each(visit),
        }
    }};
}

impl Expr {
    /// An expression without nodes, with room for `nodes` of them.
    pub(super) fn with_room(nodes: usize) -> Expr {
        Expr { nodes: Vec::with_capacity(nodes), shape: None }
    }

    /// Appends a node whose operands are already in the arena.
    pub fn push(&mut self, kind: NodeKind, span: Span) -> ExprId {
        let id = ExprId(u32::try_from(self.nodes.len()).expect("fewer nodes than bytes of text"));
        self.nodes.push(Node { kind, span });
        self.shape = None;
        id
    }

    /// Returns memory that no node needs, because there may be very many
    /// expressions.
    pub(super) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
    }

    /// Removes the last node if it is the name of a metric, and returns the
    /// name.
    pub(super) fn pop_metric(&mut self) -> Option<Spanned<Arc<str>>> {
        match self.nodes.pop_if(|node| matches!(node.kind, NodeKind::Metric(_))) {
            Some(Node { kind: NodeKind::Metric(value), span }) => Some(Spanned { value, span }),
            _ => None,
        }
    }

    /// The node of an identifier.
    pub fn node(&self, id: ExprId) -> &Node {
        &self.nodes[id.index()]
    }

    /// All nodes in post-order, with their identifiers.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (ExprId, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(index, node)| (ExprId::at(index), node))
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True before the first node was pushed; never for a parser's result.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Calls `visit` with each operand of a node, left to right.
    pub fn operands(&self, id: ExprId, mut visit: impl FnMut(ExprId)) {
        each_operand!(&self.node(id).kind, iter, |operand: &ExprId| visit(*operand));
    }

    /// A number that this expression and copies with other names of metrics share, if there
    /// may be such copies.
    pub(crate) fn shape(&self) -> Option<NonZeroU64> {
        self.shape
    }

    /// Gives the expression a number that no other has.
    pub(super) fn number_shape(&mut self) {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        self.shape = NonZeroU64::new(NUMBERS.fetch_add(1, Ordering::Relaxed));
    }

    /// Lets `visit` change each name of a metric, except that of `meta=`. It also gets the place.
    pub(super) fn each_name(&mut self, visit: &mut impl FnMut(&mut Arc<str>, Span)) {
        for node in &mut self.nodes {
            match &mut node.kind {
                NodeKind::Metric(name) => visit(name, node.span),
                NodeKind::Aggregate { metric, .. } | NodeKind::Defined(metric) => {
                    visit(&mut metric.value, metric.span);
                }
                _ => {}
            }
        }
    }

    /// Lets `visit` change each place in the tree.
    pub(super) fn each_span(&mut self, visit: &mut impl FnMut(&mut Span)) {
        for node in &mut self.nodes {
            visit(&mut node.span);
            match &mut node.kind {
                NodeKind::Number(_)
                | NodeKind::Metric(_)
                | NodeKind::Unary { op: _, operand: _ }
                | NodeKind::Ternary { guard: _, yes: _, no: _ }
                | NodeKind::Anon(_)
                | NodeKind::Temporal { function: _, operand: _ }
                | NodeKind::Scalar(_)
                | NodeKind::Text(_)
                | NodeKind::Error => {}
                NodeKind::Select { operand: _, instance } => visit(&mut instance.span),
                NodeKind::Match { pattern, negated: _, operand: _ } => visit(&mut pattern.span),
                NodeKind::Binary { op: _, op_span, left: _, right: _ } => visit(op_span),
                NodeKind::Aggregate { function: _, metric } | NodeKind::Defined(metric) => {
                    visit(&mut metric.span);
                }
                NodeKind::Rescale { operand: _, units } => visit(&mut units.span),
                NodeKind::MkConst { number, attributes } => {
                    visit(&mut number.span);
                    attributes.each_span(visit);
                }
                NodeKind::NoValue(attributes) => attributes.each_span(visit),
                NodeKind::Call { callee: _, literal, operands: _ } => {
                    if let Some(literal) = literal {
                        visit(&mut literal.span);
                    }
                }
                NodeKind::Grouped { operand: _, labels } => {
                    labels.iter_mut().for_each(|label| visit(&mut label.span));
                }
            }
        }
    }

    /// The first node below each node; it and those up to the node are all that belong to it.
    pub(crate) fn first_below(&self) -> PerNode<ExprId> {
        let mut first = PerNode::default();
        for (id, _) in self.nodes() {
            let mut below = id;
            self.operands(id, |operand| below = below.min(first[operand]));
            first.push(below);
        }
        first
    }

    /// Removes nodes that the root does not reach. Error recovery leaves them behind.
    pub(super) fn drop_unreachable(&mut self) {
        let mut reached = PerNode::all(self.len(), false);
        if !self.is_empty() {
            reached[self.root()] = true;
        }
        // Operands come before their parents, so one pass from the end finds all.
        for (id, _) in self.nodes().rev() {
            if reached[id] {
                self.operands(id, |operand| reached[operand] = true);
            }
        }
        let mut kept = 0;
        let place = |reached: &bool| {
            let id = ExprId(kept);
            kept += u32::from(*reached);
            id
        };
        let moved: PerNode<ExprId> = reached.iter().map(place).collect();
        let mut is_reached = reached.into_iter();
        self.nodes.retain_mut(|node| {
            let keep = is_reached.next().unwrap_or(false);
            if keep {
                each_operand!(&mut node.kind, iter_mut, |operand: &mut ExprId| {
                    *operand = moved[*operand];
                });
            }
            keep
        });
    }

    /// The node pushed last: the whole expression.
    pub fn root(&self) -> ExprId {
        ExprId::at(self.nodes.len().saturating_sub(1))
    }
}

#[cfg(feature = "fleet")]
impl NodeKind {
    /// Replaces each operand.
    pub(crate) fn move_operands(&mut self, moved: impl Fn(ExprId) -> ExprId) {
        each_operand!(self, iter_mut, |operand: &mut ExprId| *operand = moved(*operand));
    }
}

impl BinaryOp {
    /// The operator as it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Eq => "==",
            BinaryOp::Ge => ">=",
            BinaryOp::Gt => ">",
            BinaryOp::Ne => "!=",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
        }
    }

    /// True for `+ - * /`.
    pub const fn is_arithmetic(self) -> bool {
        matches!(self, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div)
    }

    /// True for `&& ||`.
    pub const fn is_boolean(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or)
    }
}

impl Callee {
    /// Name of the function.
    pub const fn name(self) -> &'static str {
        match self {
            Callee::Function(function) => function.name,
            Callee::Aggregate(function) => function.name(),
        }
    }

    /// True if `by (label, ...)` may follow a call.
    pub const fn takes_by(self) -> bool {
        match self {
            Callee::Function(function) => function.takes_by,
            Callee::Aggregate(_) => true,
        }
    }
}

impl Aggregate {
    /// All of them.
    pub const ALL: [Aggregate; 5] =
        [Aggregate::Avg, Aggregate::Count, Aggregate::Max, Aggregate::Min, Aggregate::Sum];

    /// The aggregate of this name.
    pub fn named(name: &str) -> Option<Aggregate> {
        Aggregate::ALL.into_iter().find(|function| function.name() == name)
    }

    /// Name of the function.
    pub const fn name(self) -> &'static str {
        match self {
            Aggregate::Avg => "avg",
            Aggregate::Count => "count",
            Aggregate::Max => "max",
            Aggregate::Min => "min",
            Aggregate::Sum => "sum",
        }
    }
}

impl Temporal {
    /// Name of the function.
    pub const fn name(self) -> &'static str {
        match self {
            Temporal::Delta => "delta",
            Temporal::Rate => "rate",
            Temporal::Instant => "instant",
        }
    }
}
