//! Lints about combined truth values.

use super::subject::Subject;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::ast::{BinaryOp, NodeKind};

/// `a || b && c`, which is `(a || b) && c`.
pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    for (_, node) in subject.nodes() {
        let NodeKind::Binary { op: BinaryOp::And, op_span, left, right } = &node.kind else {
            continue;
        };
        let NodeKind::Binary { op: BinaryOp::Or, left: first, right: second, .. } =
            subject.kind(*left)
        else {
            continue;
        };
        if !subject.is_bare_before(*left, *op_span) {
            continue;
        }
        let [first, second, right] = [*first, *second, *right].map(|id| match subject.kind(id) {
            NodeKind::Binary { op, .. } if !op.is_boolean() => subject.text(id).into(),
            _ => subject.operand(id),
        });
        let message = "`&&` comes after the `||` before it, as both have the same rank";
        diagnostics.push(
            Diagnostic::warning(Code::MixedLogic, *op_span, message)
                .label(subject.span(*left), "this is one of its operands")
                .label(*op_span, "goes from left to right")
                .help("put parentheses where they are meant")
                .guess(node.span, format!("{first} || ({second} && {right})")),
        );
    }
}
