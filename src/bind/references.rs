//! The names that an expression mentions, and their places.

use crate::syntax::ast::{Expr, ExprId, Node, NodeKind};
use crate::text::Span;

/// A name in an expression.
pub(crate) struct Reference<'e> {
    /// The name.
    pub name: &'e str,
    /// Place of the name.
    pub span: Span,
    /// The node that mentions the name.
    pub node: ExprId,
    /// False if only the metric's existence matters.
    pub wants_value: bool,
}

/// The names in an expression, in the order of its nodes.
pub(crate) fn references(expr: &Expr) -> impl Iterator<Item = Reference<'_>> {
    expr.nodes().filter_map(|(id, node)| {
        let (name, span) = name_in(node)?;
        let wants_value = !matches!(node.kind, NodeKind::Defined(_));
        Some(Reference { name, span, node: id, wants_value })
    })
}

/// The metric's name that a node itself mentions, and its place.
pub(crate) fn name_in(node: &Node) -> Option<(&str, Span)> {
    match &node.kind {
        NodeKind::Metric(name) => Some((name, node.span)),
        NodeKind::Aggregate { metric, .. } | NodeKind::Defined(metric) => {
            Some((&metric.value, metric.span))
        }
        NodeKind::MkConst { attributes, .. } | NodeKind::NoValue(attributes) => {
            attributes.meta.as_ref().map(|meta| (&*meta.value, meta.span))
        }
        _ => None,
    }
}
