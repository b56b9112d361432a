//! An expression as lints see it: its nodes with their texts, and the result of
//! checking each.

use std::borrow::Cow;

use crate::bind::Desc;
use crate::check::Examined;
use crate::check::typed::{TypedKind, TypedNode};
use crate::syntax::ast::{
    BinaryOp, Expr, ExprId, Node, NodeKind, Number, NumberValue, PerNode, UnaryOp,
};
use crate::text::{SourceMap, Span};

/// An expression with the results of checking it.
pub(super) struct Subject<'s> {
    pub expr: &'s Expr,
    pub examined: Option<&'s Examined>,
    pub sources: &'s SourceMap,
    /// First node of the subtree below each node; it ends with the node.
    first: PerNode<ExprId>,
    /// For each node, the number of such nodes up to it, itself included.
    metrics: PerNode<u32>,
    filters: PerNode<u32>,
    differences: PerNode<u32>,
}

impl<'s> Subject<'s> {
    pub fn new(
        expr: &'s Expr,
        examined: Option<&'s Examined>,
        sources: &'s SourceMap,
    ) -> Subject<'s> {
        let count = |is_of_kind: fn(&NodeKind) -> bool| {
            let mut count = 0;
            let counted = expr.nodes().map(|(_, node)| {
                count += u32::from(is_of_kind(&node.kind));
                count
            });
            counted.collect::<PerNode<u32>>()
        };
        Subject {
            metrics: count(|kind| matches!(kind, NodeKind::Metric(_) | NodeKind::Aggregate { .. })),
            filters: count(|kind| matches!(kind, NodeKind::Select { .. } | NodeKind::Match { .. })),
            differences: count(|kind| matches!(kind, NodeKind::Binary { op: BinaryOp::Sub, .. })),
            expr,
            examined,
            sources,
            first: expr.first_below(),
        }
    }

    /// All nodes that can count, with their identifiers.
    pub fn nodes(&self) -> impl Iterator<Item = (ExprId, &'s Node)> {
        let live = self.examined.map(|examined| &examined.live);
        let is_live = move |id| live.is_none_or(|live| live.get(id) == Some(&true));
        self.expr.nodes().filter(move |(id, _)| is_live(*id))
    }

    pub fn kind(&self, id: ExprId) -> &'s NodeKind {
        &self.expr.node(id).kind
    }

    pub fn span(&self, id: ExprId) -> Span {
        self.expr.node(id).span
    }

    /// The text of a node, parentheses around it excluded.
    pub fn text(&self, id: ExprId) -> &'s str {
        self.sources.slice(self.span(id))
    }

    /// The text of a node as an operand of any operator.
    pub fn operand(&self, id: ExprId) -> Cow<'s, str> {
        let text = self.text(id);
        match self.kind(id) {
            NodeKind::Unary { .. } | NodeKind::Binary { .. } | NodeKind::Ternary { .. } => {
                format!("({text})").into()
            }
            _ => text.into(),
        }
    }

    /// The text of a node for the place of another one.
    pub fn in_place_of(&self, whole: ExprId, id: ExprId) -> Cow<'s, str> {
        match whole == self.expr.root() {
            true => self.text(id).into(),
            false => self.operand(id),
        }
    }

    /// Metadata of a node, if it was examined and has no mistake.
    pub fn desc(&self, id: ExprId) -> Option<Desc> {
        self.typed_node(id).map(|node| node.desc)
    }

    /// The operation of a node, if it was examined and has no mistake.
    pub fn typed(&self, id: ExprId) -> Option<&'s TypedKind> {
        self.typed_node(id).map(|node| &node.kind)
    }

    fn typed_node(&self, id: ExprId) -> Option<&'s TypedNode> {
        let examined = self.examined?;
        let typed = (*examined.nodes.get(id)?)?;
        Some(examined.typed.node(typed))
    }

    /// A node with all nodes below it.
    pub fn below(&self, id: ExprId) -> impl Iterator<Item = (ExprId, &'s Node)> {
        (self.first[id].0..=id.0).map(ExprId).map(|id| (id, self.expr.node(id)))
    }

    /// True if a counted node is at or below a node.
    fn holds(&self, counted: &PerNode<u32>, id: ExprId) -> bool {
        let before = self.first[id].0.checked_sub(1).map_or(0, |last| counted[ExprId(last)]);
        counted[id] > before
    }

    /// True if the values of some metric enter the node.
    pub fn has_metric(&self, id: ExprId) -> bool {
        self.holds(&self.metrics, id)
    }

    /// True if a node at or below selects instances.
    pub fn has_filter(&self, id: ExprId) -> bool {
        self.holds(&self.filters, id)
    }

    /// True if a node at or below subtracts.
    pub fn has_difference(&self, id: ExprId) -> bool {
        self.holds(&self.differences, id)
    }

    /// The value of a bare number: without a sign, and without the units that `mkconst()`
    /// may give it.
    pub fn number(&self, id: ExprId) -> Option<f64> {
        match self.kind(id) {
            NodeKind::Number(number) => Some(number.value.as_f64()),
            _ => None,
        }
    }

    /// The number of a constant, and whether it is negated.
    pub fn constant(&self, id: ExprId) -> Option<(&'s Number, bool)> {
        let positive = |id: ExprId| match self.kind(id) {
            NodeKind::Number(number) => Some(number),
            NodeKind::MkConst { number, .. } => Some(&number.value),
            _ => None,
        };
        match self.kind(id) {
            NodeKind::Unary { op: UnaryOp::Neg, operand } => Some((positive(*operand)?, true)),
            _ => Some((positive(id)?, false)),
        }
    }

    /// Dividends and divisors of quotients by a constant that is zero.
    pub fn zero_quotients(&self) -> impl Iterator<Item = (ExprId, ExprId)> {
        self.nodes().filter_map(|(_, node)| match node.kind {
            NodeKind::Binary { op: BinaryOp::Div, left, right, .. } => {
                self.is_zero(right).then_some((left, right))
            }
            _ => None,
        })
    }

    /// True if only blanks stand between an operand and the operator at `op`. The operand
    /// is then not in parentheses.
    pub fn is_bare_before(&self, operand: ExprId, op: Span) -> bool {
        let between = Span { start: self.span(operand).end, end: op.start, ..op };
        self.sources.slice(between).trim().is_empty()
    }

    /// True for a constant that is zero.
    pub fn is_zero(&self, id: ExprId) -> bool {
        self.constant(id).is_some_and(|(number, _)| {
            matches!(number.value, NumberValue::Integer(0) | NumberValue::Double(0.0))
        })
    }

    /// The value of a constant that is a whole number.
    pub fn integer(&self, id: ExprId) -> Option<i64> {
        let (number, is_negative) = self.constant(id)?;
        match number.value {
            NumberValue::Integer(value) if is_negative => Some(-i64::from(value)),
            NumberValue::Integer(value) => Some(i64::from(value)),
            NumberValue::Double(_) => None,
        }
    }
}
