//! Binding: from the names in expressions to what a source knows of them.
//!
//! `questions` says what is asked, and asks; [`Names`] says what the answers
//! mean; `fingerprint` is what the answers of like sources have in common. The
//! checker decides what a missing name means for an expression.

pub(crate) mod equivalent_domains;
mod fingerprint;
mod names;
mod questions;

use crate::syntax::ast::{Expr, ExprId, Node, NodeKind};
use crate::text::Span;

pub(crate) use fingerprint::{Fingerprint, Identities, Literals};
pub use names::{Name, Names};
pub use questions::Found;
pub(crate) use questions::{Mentions, ask, ask_host, mentions};

/// A name in an expression.
pub(crate) struct Reference<'e> {
    /// The name.
    pub name: &'e str,
    /// Where it stands.
    pub span: Span,
    /// The node that mentions it.
    pub node: ExprId,
    /// False if only its existence is asked for.
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

/// The metric's name that a node mentions itself, and where.
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
