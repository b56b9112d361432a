//! Lints about comparisons that have only one outcome, and about values that
//! cannot be compared.

use pmderive_runtime::model::{Units, ValueType};

use super::subject::Subject;
use crate::bind::Desc;
use crate::check::units::dimensions_agree;
use crate::check::{types, units_name};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::ast::{BinaryOp, ExprId, NodeKind, UnaryOp};
use crate::text::Span;

/// A comparison.
#[derive(Clone, Copy)]
struct Comparison {
    op: BinaryOp,
    op_span: Span,
    left: ExprId,
    right: ExprId,
    /// The whole comparison, with the parentheses of operands.
    span: Span,
}

pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    for (id, node) in subject.nodes() {
        let NodeKind::Binary { op, op_span, left, right } = &node.kind else { continue };
        let (op_span, left, right) = (*op_span, *left, *right);
        let comparison = Comparison { op: *op, op_span, left, right, span: node.span };
        if !op.is_boolean() {
            negative_constant(subject, comparison, diagnostics);
        }
        if op.is_arithmetic() || op.is_boolean() {
            continue;
        }
        if !itself(subject, comparison, diagnostics)
            && !of_numbers(subject, comparison, diagnostics)
            && !one_outcome(subject, comparison, diagnostics)
        {
            signed_as_unsigned(subject, comparison, diagnostics);
        }
        // A refused comparison is already reported.
        if subject.desc(id).is_some() {
            units(subject, comparison, diagnostics);
        }
    }
}

/// Warns of a comparison that always has the same outcome.
fn always(outcome: bool, op_span: Span) -> Diagnostic {
    let message = format!("this comparison is always {outcome}");
    Diagnostic::warning(Code::ConstantComparison, op_span, message)
        .label(op_span, format!("always {outcome}"))
}

/// `x == x`. In floating point, this is the usual way to find NaN.
fn itself(subject: &Subject<'_>, comparison: Comparison, diagnostics: &mut Diagnostics) -> bool {
    let Comparison { op, op_span, left, right, .. } = comparison;
    if !subject.has_metric(left) || subject.text(left) != subject.text(right) {
        return false;
    }
    let is_float = |desc: Desc| matches!(desc.value_type, ValueType::F32 | ValueType::F64);
    if subject.desc(left).is_some_and(is_float) && !matches!(op, BinaryOp::Lt | BinaryOp::Gt) {
        return true;
    }
    let outcome = matches!(op, BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge);
    diagnostics.push(
        always(outcome, op_span)
            .label(subject.span(left), "this is compared")
            .label(subject.span(right), "with itself"),
    );
    true
}

/// `1 == 1`. Signed numbers are left out, because they may wrap.
fn of_numbers(
    subject: &Subject<'_>,
    comparison: Comparison,
    diagnostics: &mut Diagnostics,
) -> bool {
    let Comparison { op, op_span, left, right, .. } = comparison;
    let (Some(l), Some(r)) = (subject.number(left), subject.number(right)) else { return false };
    let outcome = match op {
        BinaryOp::Eq => l == r,
        BinaryOp::Ne => l != r,
        BinaryOp::Lt => l < r,
        BinaryOp::Le => l <= r,
        BinaryOp::Gt => l > r,
        BinaryOp::Ge => l >= r,
        _ => return false,
    };
    diagnostics.push(
        always(outcome, op_span)
            .label(subject.span(left), "a constant")
            .label(subject.span(right), "a constant"),
    );
    true
}

/// A signed value against an unsigned one: there, -1 counts as a large number.
fn signed_as_unsigned(
    subject: &Subject<'_>,
    comparison: Comparison,
    diagnostics: &mut Diagnostics,
) {
    let Comparison { op, op_span, left, right, .. } = comparison;
    // Equal numbers are equal as unsigned numbers, too.
    if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
        return;
    }
    for (signed, unsigned) in [(left, right), (right, left)] {
        let (Some(l), Some(r)) = (subject.desc(signed), subject.desc(unsigned)) else { return };
        let is_signed = matches!(l.value_type, ValueType::I32 | ValueType::I64);
        let is_unsigned = matches!(r.value_type, ValueType::U32 | ValueType::U64);
        // A negative constant has its own warning.
        if !is_signed
            || !is_unsigned
            || !is_unsigned_together(l.value_type, r.value_type)
            || !subject.has_metric(signed)
        {
            continue;
        }
        let message = format!("to `{}` a value below zero is a very large one", op.symbol());
        let diagnostic = Diagnostic::warning(Code::UnsignedWrap, op_span, message)
            .label(subject.span(signed), format!("signed: {}", l.value_type))
            .label(subject.span(unsigned), format!("unsigned: {}", r.value_type))
            .label(op_span, "so both are");
        diagnostics.push(match subject.kind(unsigned) {
            NodeKind::Number(number) => {
                let text = format!("mkconst({}, type=32)", number.text);
                diagnostic
                    .help(format!("write `{text}` to compare signed numbers"))
                    .guess(subject.span(unsigned), text)
            }
            _ => diagnostic.help("make one operand a double: `1.0 * x`"),
        });
    }
}

/// A value against a constant that it cannot reach. Returns false if there is nothing
/// to report.
fn one_outcome(
    subject: &Subject<'_>,
    comparison: Comparison,
    diagnostics: &mut Diagnostics,
) -> bool {
    let Comparison { op, op_span, left, right, .. } = comparison;
    // Moves the constant to the right.
    let (op, value, constant) = match (subject.constant(left), subject.constant(right)) {
        (_, Some(_)) => (op, left, right),
        (Some(_), None) => (mirrored(op), right, left),
        (None, None) => return false,
    };
    let (Some(value_desc), Some(constant_desc)) = (subject.desc(value), subject.desc(constant))
    else {
        return false;
    };
    let (value_type, constant_type) = (value_desc.value_type, constant_desc.value_type);
    if constant_type == ValueType::F64
        && matches!(op, BinaryOp::Eq | BinaryOp::Ne)
        && let Some((fact, help)) = never_equal(subject, constant, value_type)
    {
        let told = always(op == BinaryOp::Ne, op_span).label(subject.span(value), fact);
        diagnostics.push(told.help(help));
        return true;
    }
    let Some((low, high)) = range(subject, value, value_type, constant_type) else {
        return false;
    };
    let Some(limit) = constant_value(subject, constant, constant_type) else { return false };
    // A negative constant among unsigned numbers has its own warning.
    if limit < 0.0 && is_unsigned_together(value_type, constant_type) {
        return true;
    }
    let outcome = match op {
        BinaryOp::Lt if high < limit => true,
        BinaryOp::Lt if low >= limit => false,
        BinaryOp::Le if high <= limit => true,
        BinaryOp::Le if low > limit => false,
        BinaryOp::Gt if low > limit => true,
        BinaryOp::Gt if high <= limit => false,
        BinaryOp::Ge if low >= limit => true,
        BinaryOp::Ge if high < limit => false,
        BinaryOp::Eq if limit < low || limit > high => false,
        BinaryOp::Ne if limit < low || limit > high => true,
        BinaryOp::Eq | BinaryOp::Ne if low == high && low == limit => op == BinaryOp::Eq,
        _ => return false,
    };
    let is_signed = matches!(value_type, ValueType::I32 | ValueType::I64);
    let fact = match is_signed && is_unsigned_together(value_type, constant_type) {
        true => format!("{value_type}, but compared with a {constant_type} as an unsigned number"),
        // Floating point cannot show the largest number of 64 bits.
        false if high == u64::MAX as f64 => format!("{value_type}: {low} to {}", u64::MAX),
        false if high == i64::MAX as f64 => format!("{value_type}: {} to {}", i64::MIN, i64::MAX),
        false => format!("{value_type}: {low} to {high}"),
    };
    let mut diagnostic = always(outcome, op_span).label(subject.span(value), fact);
    if is_signed && let NodeKind::Number(number) = subject.kind(constant) {
        let signed = format!("mkconst({}, type=32)", number.text);
        diagnostic = diagnostic
            .help(format!("write `{signed}` to compare signed numbers"))
            .guess(subject.span(constant), signed);
    } else if let Some(range) = chained(subject, value, comparison) {
        diagnostic = diagnostic.help("a range is two comparisons").guess(comparison.span, range);
    } else if limit == 0.0 && subject.has_difference(value) {
        diagnostic = diagnostic.help(
            "an unsigned difference wraps instead of going below zero; \
             compare its operands with each other",
        );
    }
    diagnostics.push(diagnostic);
    true
}

/// The reason why no value of a type equals a constant of double precision, and
/// advice.
fn never_equal(
    subject: &Subject<'_>,
    constant: ExprId,
    value_type: ValueType,
) -> Option<(String, &'static str)> {
    let limit =
        constant_value(subject, constant, ValueType::F64).filter(|limit| limit.is_finite())?;
    match value_type {
        ValueType::F32 if f64::from(limit as f32) != limit => {
            let nearest = f64::from(limit as f32);
            let help = "a FLOAT has seven digits or so; compare with `<` or `>`";
            Some((format!("FLOAT: the nearest is {nearest}"), help))
        }
        ValueType::I32 | ValueType::U32 | ValueType::I64 | ValueType::U64
            if limit.fract() != 0.0 =>
        {
            let help = "compare with a whole number, or with `<` or `>`";
            Some((format!("{value_type}: whole numbers only"), help))
        }
        _ => None,
    }
}

/// The meaning of `1 < x < 5`, whose first comparison is `first`.
fn chained(subject: &Subject<'_>, first: ExprId, whole: Comparison) -> Option<String> {
    let NodeKind::Binary { op, left, right, .. } = subject.kind(first) else { return None };
    let is_chain = first == whole.left
        && !op.is_arithmetic()
        && !op.is_boolean()
        && subject.is_bare_before(first, whole.op_span);
    let text = |id: ExprId| subject.operand(id);
    is_chain.then(|| {
        format!(
            "({} {} {} && {} {} {})",
            text(*left),
            op.symbol(),
            text(*right),
            text(*right),
            whole.op.symbol(),
            text(whole.right)
        )
    })
}

fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

/// True if values of both types are compared as unsigned numbers.
fn is_unsigned_together(left: ValueType, right: ValueType) -> bool {
    matches!(types::common(left, right), Some(ValueType::U32 | ValueType::U64))
}

/// Least and greatest value of a node when it is compared with another type.
/// Both are exact where they decide an outcome.
fn range(
    subject: &Subject<'_>,
    id: ExprId,
    value_type: ValueType,
    other: ValueType,
) -> Option<(f64, f64)> {
    let is_truth = match subject.kind(id) {
        NodeKind::Binary { op, .. } => !op.is_arithmetic(),
        NodeKind::Unary { op, .. } => *op == UnaryOp::Not,
        NodeKind::Defined(_) => true,
        _ => false,
    };
    if is_truth {
        return Some((0.0, 1.0));
    }
    let unsigned = is_unsigned_together(value_type, other);
    Some(match value_type {
        ValueType::U32 => (0.0, f64::from(u32::MAX)),
        ValueType::U64 => (0.0, u64::MAX as f64),
        ValueType::I32 if !unsigned => (f64::from(i32::MIN), f64::from(i32::MAX)),
        ValueType::I32 if other == ValueType::U32 => (0.0, f64::from(u32::MAX)),
        ValueType::I64 if !unsigned => (i64::MIN as f64, i64::MAX as f64),
        ValueType::I32 | ValueType::I64 => (0.0, u64::MAX as f64),
        _ => return None,
    })
}

/// The value of a constant in its type.
fn constant_value(subject: &Subject<'_>, id: ExprId, value_type: ValueType) -> Option<f64> {
    let (number, is_negative) = subject.constant(id)?;
    let value = number.value.as_f64();
    let value = if is_negative { -value } else { value };
    // A constant that does not fit its type wraps, and has a warning already.
    let fits = match value_type {
        ValueType::I32 => value.abs() <= f64::from(i32::MAX),
        ValueType::U32 | ValueType::U64 => value >= 0.0,
        _ => true,
    };
    fits.then_some(value)
}

/// `-1` beside an unsigned operand.
fn negative_constant(subject: &Subject<'_>, comparison: Comparison, diagnostics: &mut Diagnostics) {
    let Comparison { op, op_span, left, right, .. } = comparison;
    // A quotient is computed in double precision.
    if op == BinaryOp::Div {
        return;
    }
    for (constant, other) in [(left, right), (right, left)] {
        let (Some(value), Some(desc), Some(against)) =
            (subject.integer(constant), subject.desc(constant), subject.desc(other))
        else {
            continue;
        };
        if value >= 0 || !is_unsigned_together(desc.value_type, against.value_type) {
            continue;
        }
        // A number has 32 bits before it is extended to the 64 of its
        // neighbour.
        let is_plain = match subject.kind(constant) {
            NodeKind::Unary { operand, .. } => subject.number(*operand).is_some(),
            _ => false,
        };
        let is_narrow = is_plain && value < i64::from(i32::MIN);
        let wrapped = match against.value_type {
            ValueType::U64 if !is_narrow => (1i128 << 64) + i128::from(value),
            _ => (1i128 << 32) + i128::from(value),
        };
        let help = match is_narrow {
            true => format!("numbers without a point have 32 bits; write `{value}.0`"),
            false => "make the other operand a double: `1.0 * x`".to_owned(),
        };
        let symbol = op.symbol();
        let span = subject.span(constant);
        let message = format!("to `{symbol}` this negative number is {wrapped}");
        diagnostics.push(
            Diagnostic::warning(Code::UnsignedWrap, span, message)
                .label(span, "taken for an unsigned number")
                .label(subject.span(other), format!("unsigned: {}", against.value_type))
                .label(op_span, "so both are")
                .help(help),
        );
    }
}

/// Operands of different dimension that no check compares, or of the same
/// dimension and different scale.
fn units(subject: &Subject<'_>, comparison: Comparison, diagnostics: &mut Diagnostics) {
    let Comparison { op, op_span, left, right, .. } = comparison;
    let (Some(l), Some(r)) = (subject.desc(left), subject.desc(right)) else { return };
    let symbol = op.symbol();
    if !dimensions_agree(&l.units, &r.units) {
        // Plain numbers compare with all units.
        let is_plain =
            |id: ExprId, desc: &Desc| desc.units.is_dimensionless() && !subject.has_metric(id);
        if is_plain(left, &l) || is_plain(right, &r) {
            return;
        }
        let message = format!(
            "`{symbol}` compares different dimensions: {} and {}",
            units_name(&l.units),
            units_name(&r.units)
        );
        diagnostics.push(
            Diagnostic::warning(Code::UncheckedDimensions, op_span, message)
                .label(subject.span(left), described(&l))
                .label(subject.span(right), described(&r))
                .help("it is let through because one of them is a U32; the result means nothing"),
        );
        return;
    }
    if !scales_differ(&l.units, &r.units) || subject.is_zero(left) || subject.is_zero(right) {
        return;
    }
    let message = format!(
        "`{symbol}` compares the bare numbers of different scales: {} and {}",
        units_name(&l.units),
        units_name(&r.units)
    );
    let mut diagnostic = Diagnostic::warning(Code::UnequalScales, op_span, message)
        .label(subject.span(left), described(&l))
        .label(subject.span(right), described(&r))
        .help("rescale() brings one to the scale of the other");
    // A conversion to the finer scale loses nothing, unless 32 bits are too
    // few.
    let converted =
        [(left, &l, r.units), (right, &r, l.units)].into_iter().find(|(_, from, to)| {
            let is_wide = !matches!(from.value_type, ValueType::I32 | ValueType::U32);
            is_wide && is_finer(to, &from.units)
        });
    if let Some((id, _, units)) = converted {
        let text = format!("rescale({}, \"{units}\")", subject.text(id));
        diagnostic = diagnostic.guess(subject.span(id), text);
    }
    diagnostics.push(diagnostic);
}

fn described(desc: &Desc) -> String {
    format!("{}, units {}", desc.value_type, units_name(&desc.units))
}

/// Scales with the exponents of their axes, finest first in each.
fn scales(units: &Units) -> [(i8, i16); 3] {
    [
        (units.dim_space, i16::from(units.scale_space)),
        (units.dim_time, i16::from(units.scale_time)),
        (units.dim_count, i16::from(units.scale_count)),
    ]
}

fn scales_differ(left: &Units, right: &Units) -> bool {
    left.extra != right.extra
        || scales(left)
            .into_iter()
            .zip(scales(right))
            .any(|((dim, l), (other, r))| dim == other && dim != 0 && l != r)
}

/// True if the one unit is not larger than the other on any axis.
fn is_finer(one: &Units, other: &Units) -> bool {
    one.extra == other.extra
        && scales(one)
            .into_iter()
            .zip(scales(other))
            .all(|((dim, a), (_, b))| dim == 0 || (b - a) * i16::from(dim.signum()) >= 0)
}
