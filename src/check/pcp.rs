//! libpcp's words for mistakes of meaning: `NODE: TEXT`. NODE spells the
//! refused node with its operands, and TEXT says why.
//!
//! Where one code stands for several of libpcp's texts, the check puts the text
//! into the diagnostic. Code and node determine everything else.

use super::units_name;
use crate::bind::name_in;
use crate::diag::{Code, Diagnostic};
use crate::dialect::Dialect;
use crate::syntax::ast::{Expr, ExprId, NodeKind, UnaryOp};
use crate::text::Span;

/// The parts of an expression that libpcp's words for its mistakes need.
pub(super) struct Wording<'e> {
    expr: &'e Expr,
    dialect: Dialect,
    /// Outermost ternaries, the last one first.
    ternaries: Vec<Span>,
}

impl<'e> Wording<'e> {
    pub(super) fn new(expr: &'e Expr, dialect: Dialect) -> Wording<'e> {
        let mut ternaries: Vec<Span> = Vec::new();
        // The nodes inside a node stand before it.
        for (_, node) in expr.nodes().rev() {
            let is_inner = ternaries.last().is_some_and(|outer| outer.start <= node.span.start);
            if matches!(node.kind, NodeKind::Ternary { .. }) && !is_inner {
                ternaries.push(node.span);
            }
        }
        Wording { expr, dialect, ternaries }
    }

    /// Completes libpcp's words in the diagnostics of one node.
    pub(super) fn complete(&self, id: ExprId, found: &mut [Diagnostic]) {
        for diagnostic in found {
            let text = diagnostic.pcp.take();
            diagnostic.pcp = self.said(id, diagnostic, text.as_deref()).map(Into::into);
        }
    }

    /// Keeps only libpcp's first words. libpcp stops at its first mistake: at a
    /// name that cannot be looked up, or else at the first refused node. Since
    /// version 7 it looks up names in a ternary later, with their node.
    pub(super) fn keep_first(&self, found: &mut [Diagnostic]) {
        let of_names = |diagnostic: &Diagnostic| match diagnostic.code {
            Code::UnknownMetric => !self.dialect.is_version_7() || !self.is_in_ternary(diagnostic),
            code => matches!(code, Code::NoDescriptor | Code::NestedDerived),
        };
        let name = found.iter().position(of_names);
        let first = name.or_else(|| found.iter().position(|diagnostic| diagnostic.pcp.is_some()));
        for (index, diagnostic) in found.iter_mut().enumerate() {
            if first.is_some_and(|first| first != index) {
                diagnostic.pcp = None;
            }
        }
    }

    fn said(&self, id: ExprId, diagnostic: &Diagnostic, text: Option<&str>) -> Option<String> {
        let expr = self.expr;
        let node = &expr.node(id).kind;
        let text = match (diagnostic.code, node) {
            (Code::UnknownMetric | Code::NoDescriptor | Code::NestedDerived, _) => {
                // Version 6 says nothing about names.
                let (name, _) = name_in(expr.node(id)).filter(|_| self.dialect.is_version_7())?;
                let text = match diagnostic.code {
                    Code::NoDescriptor => "Metadata for operand metric not available",
                    Code::NestedDerived => "Illegal nested derived metric",
                    _ if self.is_in_ternary(diagnostic) => "Unknown metric for ternary expression",
                    _ => "Unknown operand metric",
                };
                return Some(format!("operand {name}: {text}"));
            }
            (_, NodeKind::Ternary { guard, yes, no }) => {
                let branches = format!("{} : {}", spelled(expr, *yes), spelled(expr, *no));
                let text = match diagnostic.code {
                    Code::NotNumeric | Code::GuardShape => {
                        let text = match diagnostic.code {
                            Code::NotNumeric => "Non-arithmetic operand for ternary guard",
                            _ => "Non-scalar ternary guard with scalar expressions",
                        };
                        return Some(format!("{} ? {branches}: {text}", spelled(expr, *guard)));
                    }
                    Code::BranchTypes => "Different types for ternary operands",
                    Code::IndomMismatch => "Different instance domains for ternary operands",
                    Code::BranchSemantics => "Different semantics for ternary operands",
                    _ => text?,
                };
                return Some(format!("{branches}: {text}"));
            }
            (Code::NotNumeric, NodeKind::Binary { left, .. }) => {
                match diagnostic.span == expr.node(*left).span {
                    true => "Non-arithmetic type for left operand",
                    false => "Non-arithmetic type for right operand",
                }
            }
            (Code::NotNumeric, NodeKind::Unary { op: UnaryOp::Neg, .. }) => {
                "Non-arithmetic operand for unary negation"
            }
            (Code::NotNumeric, _) => "Non-arithmetic operand for function",
            (Code::RateDimension, _) => "Incorrect time dimension for operand",
            (Code::IncompatibleUnits, _) => "Incompatible dimensions",
            (Code::IndomMismatch, _) => "Operands should have the same instance domain",
            _ => text?,
        };
        let spelling = match node {
            NodeKind::Binary { op, left, right, .. } => {
                format!("{} {} {}", spelled(expr, *left), op.symbol(), spelled(expr, *right))
            }
            NodeKind::Unary { op: UnaryOp::Neg, operand } => {
                format!("- {}", spelled(expr, *operand))
            }
            NodeKind::Rescale { operand, units } => {
                format!("{} RESCALE {}", spelled(expr, *operand), units_name(&units.value))
            }
            NodeKind::Temporal { function, operand } => {
                let name = function.name().to_ascii_uppercase();
                format!("{name}({})", leaf(expr, *operand).unwrap_or("(null)"))
            }
            NodeKind::Aggregate { function, metric } => {
                let name = function.name().to_ascii_uppercase();
                format!("{name}({})", metric.value)
            }
            _ => return None,
        };
        Some(format!("{spelling}: {text}"))
    }

    /// True if the place is within a ternary, where a missing name is found late.
    fn is_in_ternary(&self, diagnostic: &Diagnostic) -> bool {
        let place = diagnostic.span;
        let next = self.ternaries.partition_point(|span| span.start > place.start);
        let before = self.ternaries.get(next);
        before.is_some_and(|span| span.source == place.source && place.start <= span.end)
    }
}

/// An operand as libpcp prints it.
fn spelled(expr: &Expr, id: ExprId) -> &str {
    leaf(expr, id).unwrap_or("<expr>")
}

/// A metric or constant as it was written.
fn leaf(expr: &Expr, id: ExprId) -> Option<&str> {
    match &expr.node(id).kind {
        NodeKind::Metric(name) => Some(name),
        NodeKind::Number(number) => Some(&number.text),
        NodeKind::MkConst { number, .. } => Some(&number.value.text),
        _ => None,
    }
}
