//! Ternaries: guards that are constant, the branches that remain, and whether
//! branches fit each other.

use pmderive_runtime::model::{InDom, ValueType};

use super::typed::{TypedId, TypedKind};
use super::units::dimensions_agree;
use super::{Checked, Checker, Operand, describe, units_name};
use crate::bind::{Desc, Name, Names};
use crate::diag::{Code, Diagnostic, Property};
use crate::dialect::Dialect;
use crate::syntax::ast::{
    Attributes, BinaryOp, Expr, ExprId, Node, NodeKind, NumberValue, PerNode, UnaryOp,
};
use crate::syntax::keywords::{SEMANTICS, TYPES, constant_fits, spelling};

/// The value of a node as a guard, as far as it is fixed before evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Guard {
    /// Always this value.
    Known(bool),
    /// Fixed by looking up the names.
    Decided,
    /// Depends on values.
    Dynamic,
}

/// Each node as a guard: constants with their combinations by `! && ||`, and
/// the answer of `defined` for a `defined()`.
pub(crate) fn guards(expr: &Expr, defined: impl Fn(&str) -> Guard) -> PerNode<Guard> {
    use Guard::{Decided, Dynamic, Known};
    let mut guards = PerNode::all(expr.len(), Dynamic);
    for (id, node) in expr.nodes() {
        let of = |id: &ExprId| -> Guard { guards[*id] };
        let number = |value: NumberValue| match value {
            NumberValue::Integer(value) => Known(value != 0),
            NumberValue::Double(_) => Dynamic,
        };
        let guard = match &node.kind {
            NodeKind::Defined(metric) => defined(&metric.value),
            NodeKind::Number(value) => number(value.value),
            NodeKind::MkConst { number: value, .. } => number(value.value.value),
            NodeKind::Unary { op: UnaryOp::Not, operand } => match of(operand) {
                Known(known) => Known(!known),
                other => other,
            },
            // The left operand decides first; if it does not, neither does the right.
            NodeKind::Binary { op, left, right, .. } if op.is_boolean() => {
                match (of(left), *op == BinaryOp::Or) {
                    (Known(true), true) => Known(true),
                    (Known(false), false) => Known(false),
                    (Known(_), _) => of(right),
                    (Decided, _) if of(right) != Dynamic => Decided,
                    _ => Dynamic,
                }
            }
            _ => Dynamic,
        };
        guards[id] = guard;
    }
    guards
}

/// Each node as a guard, after names are looked up. Version 6 fixes none in
/// advance.
pub(super) fn known_guards(expr: &Expr, names: &Names, dialect: Dialect) -> PerNode<Guard> {
    if !dialect.is_version_7() {
        return PerNode::all(expr.len(), Guard::Dynamic);
    }
    guards(expr, |name| match names.get(name) {
        // Only checking a definition decides whether it can be used.
        Name::Derived(_) => Guard::Dynamic,
        meaning => Guard::Known(is_usable(meaning)),
    })
}

/// True for names that `defined()` answers with yes.
pub(super) fn is_usable(name: Name) -> bool {
    matches!(name, Name::Metric(_) | Name::Nested { .. })
}

/// The nodes that remain without the branches that are never chosen.
pub(super) fn live(expr: &Expr, guards: &PerNode<Guard>) -> PerNode<bool> {
    let is_choice = |node: &Node| matches!(node.kind, NodeKind::Ternary { .. });
    if !expr.nodes().any(|(_, node)| is_choice(node)) {
        return PerNode::all(expr.len(), true);
    }
    let mut live = PerNode::all(expr.len(), false);
    if !expr.is_empty() {
        live[expr.root()] = true;
    }
    for (id, node) in expr.nodes().rev() {
        if !live[id] {
            continue;
        }
        match node.kind {
            NodeKind::Ternary { guard, yes, no } => {
                live[guard] = true;
                live[yes] |= guards[guard] != Guard::Known(false);
                live[no] |= guards[guard] != Guard::Known(true);
            }
            _ => expr.operands(id, |operand| live[operand] = true),
        }
    }
    live
}

impl Checker<'_> {
    pub(super) fn ternary(&mut self, guard: ExprId, yes: ExprId, no: ExprId) -> Checked<TypedId> {
        let guard = self.operand(guard)?;
        if let Guard::Known(decision) = self.guards[guard.expr] {
            let chosen = self.operand(if decision { yes } else { no })?;
            self.numeric(&guard, "a guard")?;
            if self.dialect != Dialect::Fixed {
                let single = self.seems_single(yes) && self.seems_single(no);
                self.guard_shape(&guard, single, [yes, no])?;
            }
            let kind = TypedKind::Chosen { guard: guard.typed, branch: chosen.typed };
            return Ok(self.push(kind, chosen.desc));
        }
        let (yes, no) = (self.operand(yes)?, self.operand(no)?);
        let is_novalue = |operand: Operand| match &self.expr.node(operand.expr).kind {
            NodeKind::NoValue(_) => true,
            NodeKind::Metric(name) => self.names.is_novalue(name),
            _ => false,
        };
        let (yes_never, no_never) = (is_novalue(yes), is_novalue(no));
        if !yes_never && !no_never {
            self.branches(yes, no)?;
        }
        self.numeric(&guard, "a guard")?;
        let indom = yes.desc.indom.or(no.desc.indom);
        self.guard_shape(&guard, indom.is_none(), [yes.expr, no.expr])?;
        if let (Dialect::Fixed, Some(own), Some(guarding)) = (self.dialect, indom, guard.desc.indom)
            && !self.are_same_domain(own, guarding)
        {
            let at = self.span(guard.expr);
            let branch = if yes.desc.indom.is_some() { yes } else { no };
            let branch_span = self.span(branch.expr);
            return self.report(
                Diagnostic::error(
                    Code::IndomMismatch,
                    at,
                    "the guard has another instance domain than the branches",
                )
                .label(at, format!("instances of {guarding}"))
                .label(branch_span, format!("instances of {own}"))
                .derived(self.derivation(guard.expr, "guard", Property::Instances))
                .help("reduce the guard to one value with an aggregate or scalar()"),
            );
        }
        let base = if yes_never { no.desc } else { yes.desc };
        let kind = TypedKind::Choose { guard: guard.typed, yes: yes.typed, no: no.typed };
        Ok(self.push(kind, Desc { indom, ..base }))
    }

    /// Instance domain of a branch as libpcp sees it before it is checked:
    /// only names and constants have one then, anything else counts as a set.
    fn seems_single(&self, id: ExprId) -> bool {
        match &self.expr.node(id).kind {
            _ if self.done[id].is_some() => {
                self.operand(id).is_ok_and(|operand| operand.desc.indom.is_none())
            }
            NodeKind::Metric(name) => {
                matches!(self.names.get(name), Name::Metric(desc) if desc.indom.is_none())
            }
            NodeKind::MkConst { attributes, .. } | NodeKind::NoValue(attributes) => {
                let meta = attributes.meta.as_ref().and_then(|m| match self.names.get(&m.value) {
                    Name::Metric(desc) => desc.indom,
                    _ => None,
                });
                let given: Option<Option<InDom>> = attributes.indom.as_ref().map(|i| i.value);
                given.unwrap_or(meta).is_none()
            }
            NodeKind::Number(_) | NodeKind::Defined(_) | NodeKind::Anon(_) => true,
            _ => false,
        }
    }

    fn guard_shape(
        &mut self,
        guard: &Operand,
        branches_single: bool,
        [yes, no]: [ExprId; 2],
    ) -> Checked<()> {
        if !branches_single || guard.desc.indom.is_none() {
            return Ok(());
        }
        let at = self.span(guard.expr);
        let (yes, no) = (self.span(yes), self.span(no));
        self.report(
            Diagnostic::error(
                Code::GuardShape,
                at,
                "the guard has a value per instance, but the branches have only one",
            )
            .label(at, describe(&guard.desc))
            .label(yes, "single value")
            .label(no, "single value")
            .derived(self.derivation(guard.expr, "guard", Property::Instances))
            .help("reduce the guard to one value with an aggregate or scalar()"),
        )
    }

    /// Refuses branches of different metadata.
    fn branches(&mut self, yes: Operand, no: Operand) -> Checked<()> {
        let (a, b) = (&yes.desc, &no.desc);
        let axes = |desc: &Desc| {
            let units = desc.units;
            [
                ("space", units.dim_space, i16::from(units.scale_space)),
                ("time", units.dim_time, i16::from(units.scale_time)),
                ("count", units.dim_count, i16::from(units.scale_count)),
            ]
        };
        let mut both = axes(a).into_iter().zip(axes(b));
        let axis = both.find(|(a, b)| a != b).map(|((axis, ..), _)| axis);
        let axis = axis.or((a.units.extra != b.units.extra).then_some("extra"));
        let indoms_differ = a.indom.is_some() && b.indom.is_some() && a.indom != b.indom;
        let (code, property, message, help) = if a.value_type != b.value_type {
            let message =
                format!("branches of different types: {} and {}", a.value_type, b.value_type);
            let is_whole = |id: ExprId| match &self.expr.node(id).kind {
                NodeKind::Number(number) => !number.text.contains('.'),
                NodeKind::MkConst { .. } => true,
                _ => false,
            };
            let help = match is_whole(yes.expr) || is_whole(no.expr) {
                true => "give constants a type with mkconst(..., type=...)",
                false => "a product with `1.0` is a double: `1.0 * x`",
            };
            let is_text = [a, b].into_iter().any(|one| one.value_type == ValueType::String);
            (Code::BranchTypes, Property::Type, message, Some(help).filter(|_| !is_text))
        } else if indoms_differ {
            let message = "branches of different instance domains".to_string();
            let help = "reduce one of them to a single value with an aggregate or scalar()";
            (Code::IndomMismatch, Property::Instances, message, Some(help))
        } else if a.semantics != b.semantics {
            let message =
                format!("branches of different semantics: {} and {}", a.semantics, b.semantics);
            let help = "instant() makes a counter instantaneous; mkconst() takes semantics=...";
            (Code::BranchSemantics, Property::Semantics, message, Some(help))
        } else if let Some(axis) = axis {
            let (a_units, b_units) = (units_name(&a.units), units_name(&b.units));
            let message = format!("branches of different units ({axis}): {a_units} and {b_units}");
            let help = match dimensions_agree(&a.units, &b.units) {
                true => "rescale() brings one of them to the scale of the other",
                false => "rescale() changes the scale only; these are different dimensions",
            };
            (Code::BranchUnits, Property::Units, message, Some(help))
        } else {
            return Ok(());
        };
        let (yes_span, no_span) = (self.span(yes.expr), self.span(no.expr));
        let axis = axis.unwrap_or_default();
        let mut diagnostic = Diagnostic::error(code, no_span, message)
            .pcp(format!("Different units or scale ({axis}) for ternary operands"))
            .label(yes_span, describe(a))
            .label(no_span, describe(b));
        for (id, branch) in [(yes.expr, "first branch"), (no.expr, "second branch")] {
            diagnostic = diagnostic.derived(self.derivation(id, branch, property));
        }
        let alike = [(yes, no), (no, yes)].into_iter().find_map(|(constant, other)| {
            let fixed = self.constant_like(constant.expr, &other.desc)?;
            Some((self.span(constant.expr), fixed)).filter(|_| code != Code::IndomMismatch)
        });
        self.report(match (alike, help) {
            (Some((span, fixed)), _) => diagnostic
                .help("mkconst() gives a constant the metadata of the other branch")
                .guess(span, fixed),
            (None, Some(help)) => diagnostic.help(help),
            (None, None) => diagnostic,
        })
    }

    /// The text of a constant with the metadata of another value, if a constant
    /// can have them.
    fn constant_like(&self, constant: ExprId, like: &Desc) -> Option<String> {
        let (number, attributes) = match &self.expr.node(constant).kind {
            NodeKind::Number(number) => (number, None),
            NodeKind::MkConst { number, attributes } => (&number.value, Some(&**attributes)),
            _ => return None,
        };
        // The user's own attributes must not change.
        let says_other = |given: &Attributes| {
            given.indom.is_some()
                || given.meta.is_some()
                || given.value_type.as_ref().is_some_and(|given| given.value != like.value_type)
                || given.semantics.as_ref().is_some_and(|given| given.value != like.semantics)
                || given.units.as_ref().is_some_and(|given| given.value != like.units)
        };
        if attributes.is_some_and(says_other) || !constant_fits(number, like.value_type) {
            return None;
        }
        let value_type = spelling(&TYPES, like.value_type)?;
        let semantics = spelling(&SEMANTICS, like.semantics)?;
        let units = match like.units.to_string() {
            text if text.is_empty() => text,
            text => format!(", units=\"{text}\""),
        };
        let number = &number.text;
        Some(format!("mkconst({number}, type={value_type}, semantics={semantics}{units})"))
    }
}
