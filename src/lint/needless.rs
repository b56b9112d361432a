//! Lints about operations that change nothing, and about bounds that exclude
//! every value.

use super::subject::Subject;
use crate::check::typed::TypedKind;
use crate::check::units_name;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::ast::{Callee, ExprId, NodeKind, UnaryOp};
use crate::text::Span;

pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    for (id, node) in subject.nodes() {
        let found = match &node.kind {
            NodeKind::Unary { op: UnaryOp::Not, operand } => twice_not(subject, id, *operand),
            NodeKind::Rescale { operand, .. } => same_units(subject, id, *operand),
            NodeKind::Match { pattern, negated: false, operand } => {
                all_instances(subject, id, *operand, &pattern.value, pattern.span)
            }
            NodeKind::Call { callee: Callee::Function(function), operands, .. }
                if function.name == "clamp" =>
            {
                bounds(subject, id, operands)
            }
            _ => None,
        };
        diagnostics.extend(found);
    }
}

fn needless(place: Span, message: String) -> Diagnostic {
    Diagnostic::warning(Code::NeedlessOperation, place, message)
}

/// True if a node has the type, semantics, units and instances of an operand.
fn is_alike(subject: &Subject<'_>, id: ExprId, operand: ExprId) -> bool {
    subject.desc(id).is_some_and(|desc| subject.desc(operand) == Some(desc))
}

/// `!(!x)`, where x is 1 or 0 already.
fn twice_not(subject: &Subject<'_>, id: ExprId, operand: ExprId) -> Option<Diagnostic> {
    let NodeKind::Unary { op: UnaryOp::Not, operand: inner } = subject.kind(operand) else {
        return None;
    };
    let is_truth = match subject.kind(*inner) {
        NodeKind::Binary { op, .. } => !op.is_arithmetic(),
        NodeKind::Defined(_) => true,
        _ => false,
    };
    if !is_truth || !is_alike(subject, id, *inner) {
        return None;
    }
    let told = needless(subject.span(id), "`!` twice changes nothing here".to_owned())
        .label(subject.span(*inner), "is 1 or 0 as it is")
        .help("leave both out");
    Some(told.fix(subject.span(id), format!("({})", subject.text(*inner))))
}

/// `rescale(x, "Kbyte")`, where x has these units.
fn same_units(subject: &Subject<'_>, id: ExprId, operand: ExprId) -> Option<Diagnostic> {
    let is_identity = match subject.typed(id) {
        Some(TypedKind::Rescale { conversion, .. }) => conversion.is_identity(),
        _ => false,
    };
    if !is_identity || !is_alike(subject, id, operand) {
        return None;
    }
    let units = units_name(&subject.desc(operand)?.units);
    let message = format!("this is in {units} already");
    let told = needless(subject.span(id), message)
        .label(subject.span(operand), format!("units {units}"))
        .help("leave rescale() out, unless other hosts have other units");
    Some(told.guess(subject.span(id), format!("({})", subject.text(operand))))
}

/// `matchinst(/.*/, x)`
fn all_instances(
    subject: &Subject<'_>,
    id: ExprId,
    operand: ExprId,
    pattern: &str,
    place: Span,
) -> Option<Diagnostic> {
    const ANY: [&str; 5] = [".*", "^.*$", "^", "$", ""];
    // A single value has no instances to match, and has its own warning.
    let has_instances = subject.desc(operand).is_none_or(|desc| desc.indom.is_some());
    if !ANY.contains(&pattern) || !has_instances {
        return None;
    }
    let told = needless(place, "this pattern matches every instance".to_owned())
        .label(place, "matches any name")
        .help("leave matchinst() out");
    Some(told.guess(subject.span(id), format!("({})", subject.text(operand))))
}

/// `clamp(x, 5, 1)`
fn bounds(subject: &Subject<'_>, id: ExprId, operands: &[ExprId]) -> Option<Diagnostic> {
    let [x, low, high] = operands else { return None };
    // Constants with units may have other scales.
    let number = |id: ExprId| match subject.kind(id) {
        NodeKind::Unary { op: UnaryOp::Neg, operand } => Some(-subject.number(*operand)?),
        _ => subject.number(id),
    };
    let (lowest, highest) = (number(*low)?, number(*high)?);
    // With an unsigned operand a negative number may be a large one.
    if lowest <= highest || highest < 0.0 {
        return None;
    }
    let (left, right) = (subject.span(*low), subject.span(*high));
    let [x, low, high] = [x, low, high].map(|operand| subject.text(*operand));
    let message = format!("the result is always {highest}");
    Some(
        Diagnostic::warning(Code::BoundsReversed, left, message)
            .label(left, "the lower bound")
            .label(right, "the upper bound, which is less")
            .help("the lower bound stands before the upper one")
            .guess(subject.span(id), format!("clamp({x}, {high}, {low})")),
    )
}
