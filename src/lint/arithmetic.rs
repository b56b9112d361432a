//! Lints about quotients, products and differences with unexpected results, and
//! about comparisons of counters.

use pmderive_runtime::model::{Semantics, ValueType};

use super::subject::Subject;
use crate::check::typed::TypedKind;
use crate::check::units_name;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::ast::{Aggregate, BinaryOp, ExprId, NodeKind, PerNode, Temporal, UnaryOp};

pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    let grows = growing(subject);
    zero_divisors(subject, diagnostics);
    for (id, node) in subject.nodes() {
        let NodeKind::Binary { op, left, right, .. } = &node.kind else { continue };
        if subject.desc(id).is_none() {
            continue;
        }
        if !op.is_arithmetic() && !op.is_boolean() {
            compared(subject, &grows, *left, *right, diagnostics);
            continue;
        }
        if *op == BinaryOp::Div && grows[*right] {
            let at = subject.span(*right);
            diagnostics.push(
                Diagnostic::warning(Code::GrowingDivisor, at, "the divisor only grows")
                    .label(at, "the value of a counter, not its change")
                    .help(
                        "the quotient is an average since the counter began; divide changes \
                         for one of now: delta(...) / delta(...)",
                    ),
            );
        }
        counting(subject, id, *op, *left, *right, diagnostics);
        if *op == BinaryOp::Sub {
            signed_minus_unsigned(subject, id, *left, *right, diagnostics);
        }
    }
}

/// `x / 0`
fn zero_divisors(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    for (left, right) in subject.zero_quotients() {
        let at = subject.span(right);
        diagnostics.push(
            Diagnostic::warning(Code::ZeroDivisor, at, "division by zero")
                .label(at, "always 0")
                .label(subject.span(left), "so this becomes infinite, or stays 0"),
        );
    }
}

/// `counter > 100`
fn compared(
    subject: &Subject<'_>,
    grows: &PerNode<bool>,
    left: ExprId,
    right: ExprId,
    diagnostics: &mut Diagnostics,
) {
    for (counter, constant) in [(left, right), (right, left)] {
        let is_constant = subject.constant(constant).is_some() && !subject.is_zero(constant);
        if !grows[counter] || !is_constant {
            continue;
        }
        let (at, text) = (subject.span(counter), subject.text(counter));
        let message = "the value of a counter is compared with a constant";
        let mut diagnostic = Diagnostic::warning(Code::CounterCompared, at, message)
            .label(at, "grows since the system started")
            .label(subject.span(constant), "and passes this once");
        if matches!(subject.kind(counter), NodeKind::Metric(_)) {
            let is_whole = subject.integer(constant).is_some();
            diagnostic = match is_whole {
                true => diagnostic
                    .help(format!("compare its rate: `rate({text})`"))
                    .guess(at, format!("rate({text})")),
                // Other numbers have a check of units.
                false => diagnostic.help(format!(
                    "compare its rate, `rate({text})`, with a whole number, or with a constant \
                     of its units, which `mkconst()` makes"
                )),
            };
        }
        diagnostics.push(diagnostic);
    }
}

/// The nodes whose values are those of a counter.
fn growing(subject: &Subject<'_>) -> PerNode<bool> {
    let mut grows = PerNode::all(subject.expr.len(), false);
    let is_counter =
        |id: ExprId| subject.desc(id).is_some_and(|desc| desc.semantics == Semantics::Counter);
    let is_constant = |id: &ExprId| subject.constant(*id).is_some();
    for (id, node) in subject.nodes() {
        let of = |id: &ExprId| grows[*id] || is_counter(*id);
        grows[id] = match &node.kind {
            NodeKind::Temporal { function: Temporal::Instant, operand } => of(operand),
            NodeKind::Aggregate { function, .. } => {
                // The aggregate's own metadata no longer say counter.
                *function != Aggregate::Count && is_counter_metric(subject, id)
            }
            NodeKind::Select { operand, .. }
            | NodeKind::Match { operand, .. }
            | NodeKind::Scalar(operand)
            | NodeKind::Rescale { operand, .. } => of(operand),
            NodeKind::Binary { op: BinaryOp::Add, left, right, .. } => of(left) && of(right),
            NodeKind::Binary { op: BinaryOp::Mul, left, right, .. } => {
                of(left) && is_constant(right) || of(right) && is_constant(left)
            }
            NodeKind::Binary { op: BinaryOp::Div, left, right, .. } => {
                of(left) && is_constant(right)
            }
            _ => is_counter(id),
        };
    }
    grows
}

/// True if the metric of an aggregate is a counter.
fn is_counter_metric(subject: &Subject<'_>, id: ExprId) -> bool {
    let Some(examined) = subject.examined else { return false };
    match subject.typed(id) {
        Some(TypedKind::Aggregate { operand, .. }) => {
            examined.typed.node(*operand).desc.semantics == Semantics::Counter
        }
        _ => false,
    }
}

/// `count()` in a quotient or product, where its dimension spoils the units.
fn counting(
    subject: &Subject<'_>,
    id: ExprId,
    op: BinaryOp,
    left: ExprId,
    right: ExprId,
    diagnostics: &mut Diagnostics,
) {
    let counts = |id: ExprId| {
        matches!(subject.kind(id), NodeKind::Aggregate { function: Aggregate::Count, .. })
    };
    let (Some(result), Some(l), Some(r)) =
        (subject.desc(id), subject.desc(left), subject.desc(right))
    else {
        return;
    };
    let at = match op {
        BinaryOp::Div if counts(right) && !counts(left) => right,
        BinaryOp::Mul if counts(right) && !l.units.is_dimensionless() => right,
        BinaryOp::Mul if counts(left) && !r.units.is_dimensionless() => left,
        _ => return,
    };
    let span = subject.span(at);
    let message = format!("the units come out as {}", units_name(&result.units));
    let bare = format!("rescale({}, \"\")", subject.text(at));
    diagnostics.push(
        Diagnostic::warning(Code::CountDimension, span, message)
            .label(span, "has units count, not none")
            .help(format!("`{bare}` is the bare number; avg() is an average in the metric's units"))
            .guess(span, bare),
    );
}

/// `x - 1`, where x is signed: the constant makes the difference unsigned.
fn signed_minus_unsigned(
    subject: &Subject<'_>,
    id: ExprId,
    left: ExprId,
    right: ExprId,
    diagnostics: &mut Diagnostics,
) {
    let value_type = |id: ExprId| subject.desc(id).map(|desc| desc.value_type);
    if value_type(id) != Some(ValueType::U32) {
        return;
    }
    for (constant, other) in [(right, left), (left, right)] {
        let NodeKind::Number(number) = subject.kind(constant) else { continue };
        // A negated constant is signed too, but cannot be negative by chance.
        let is_negation = matches!(subject.kind(other), NodeKind::Unary { op: UnaryOp::Neg, .. });
        if value_type(other) != Some(ValueType::I32) || is_negation && !subject.has_metric(other) {
            continue;
        }
        let (span, other) = (subject.span(constant), subject.span(other));
        let message = "this difference is unsigned: below zero it wraps to 4294967295";
        let signed = format!("mkconst({}, type=32)", number.text);
        diagnostics.push(
            Diagnostic::warning(Code::UnsignedWrap, span, message)
                .label(other, "signed: 32")
                .label(span, "unsigned: U32, and so is the result")
                .help(format!("write `{signed}` to stay signed"))
                .guess(span, signed),
        );
    }
}
