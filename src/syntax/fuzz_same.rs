//! Compares two trees, wherever their nodes stand in a text.

use super::ast::{Attributes, Expr, Literal, NodeKind, Spanned};

/// True if both trees are the same, except for the places of their nodes.
pub fn are_same(a: &Expr, b: &Expr) -> bool {
    let mut both = a.nodes().zip(b.nodes());
    a.len() == b.len() && both.all(|((_, a), (_, b))| is_same_node(&a.kind, &b.kind))
}

fn is_same_node(a: &NodeKind, b: &NodeKind) -> bool {
    use NodeKind::*;
    match (a, b) {
        (Number(a), Number(b)) => a == b,
        (Metric(a), Metric(b)) => a == b,
        (Select { operand: a, instance: i }, Select { operand: b, instance: j }) => {
            a == b && i.value == j.value
        }
        (
            Match { pattern: p, negated: m, operand: a },
            Match { pattern: q, negated: n, operand: b },
        ) => p.value == q.value && m == n && a == b,
        (Unary { op: p, operand: a }, Unary { op: q, operand: b }) => p == q && a == b,
        (Binary { op: p, left: a, right: c, .. }, Binary { op: q, left: b, right: d, .. }) => {
            p == q && a == b && c == d
        }
        (Ternary { guard: a, yes: c, no: e }, Ternary { guard: b, yes: d, no: f }) => {
            a == b && c == d && e == f
        }
        (Aggregate { function: f, metric: a }, Aggregate { function: g, metric: b }) => {
            f == g && a.value == b.value
        }
        (Defined(a), Defined(b)) => a.value == b.value,
        (Anon(a), Anon(b)) => a == b,
        (Temporal { function: f, operand: a }, Temporal { function: g, operand: b }) => {
            f == g && a == b
        }
        (Scalar(a), Scalar(b)) => a == b,
        (Rescale { operand: a, units: u }, Rescale { operand: b, units: v }) => {
            a == b && u.value == v.value
        }
        (MkConst { number: m, attributes: a }, MkConst { number: n, attributes: b }) => {
            m.value == n.value && have_same_values(a, b)
        }
        (NoValue(a), NoValue(b)) => have_same_values(a, b),
        (
            Call { callee: f, literal: l, operands: a },
            Call { callee: g, literal: m, operands: b },
        ) => {
            let literal = |literal: &Option<Box<Spanned<Literal>>>| {
                literal.as_ref().map(|literal| literal.value.clone())
            };
            f == g && literal(l) == literal(m) && a == b
        }
        (Grouped { operand: a, labels: l }, Grouped { operand: b, labels: m }) => {
            let names = |labels: &[Spanned<Box<str>>]| -> Vec<Box<str>> {
                labels.iter().map(|label| label.value.clone()).collect()
            };
            a == b && names(l) == names(m)
        }
        (Text(a), Text(b)) => a == b,
        (Error, Error) => true,
        _ => false,
    }
}

fn have_same_values(a: &Attributes, b: &Attributes) -> bool {
    fn same<T: PartialEq>(a: &Option<Spanned<T>>, b: &Option<Spanned<T>>) -> bool {
        a.as_ref().map(|a| &a.value) == b.as_ref().map(|b| &b.value)
    }
    same(&a.value_type, &b.value_type)
        && same(&a.semantics, &b.semantics)
        && same(&a.units, &b.units)
        && same(&a.indom, &b.indom)
        && same(&a.meta, &b.meta)
}
