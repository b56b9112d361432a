//! Ternaries: which guards are known before there is a value, which branches
//! are left, and whether branches go together.

use pmderive_runtime::model::InDom;

use super::typed::{Desc, TypedId, TypedKind};
use super::units::dimensions_agree;
use super::{Checked, Checker, describe, units_name};
use crate::bind::{Name, Names};
use crate::diag::{Code, Diagnostic, Property};
use crate::dialect::Dialect;
use crate::syntax::ast::{Attributes, BinaryOp, Expr, ExprId, NodeKind, NumberValue, UnaryOp};
use crate::syntax::keywords::{SEMANTICS, TYPES, constant_fits, spelling};
use crate::text::Span;

/// Value of each node as a guard, where it does not depend on the metrics'
/// values: `defined()`, integer constants and their combinations by `! && ||`.
/// An unknown left operand makes the whole unknown.
pub(super) fn known_guards(expr: &Expr, names: &Names, dialect: Dialect) -> Vec<Option<bool>> {
    let mut known: Vec<Option<bool>> = Vec::with_capacity(expr.len());
    for (_, node) in expr.nodes() {
        let of = |id: &ExprId| known[id.0 as usize];
        known.push(match &node.kind {
            _ if !dialect.is_version_7() => None,
            // Whether a definition can be used is not known before it is checked.
            NodeKind::Defined(metric) => match names.get(&metric.value) {
                Name::Derived => None,
                meaning => Some(is_usable(meaning)),
            },
            NodeKind::Number(number) => integer(number.value),
            NodeKind::MkConst { number, .. } => integer(number.value.value),
            NodeKind::Unary { op: UnaryOp::Not, operand } => of(operand).map(|known| !known),
            NodeKind::Binary { op: BinaryOp::Or, left, right, .. } => match of(left) {
                Some(true) => Some(true),
                Some(false) => of(right),
                None => None,
            },
            NodeKind::Binary { op: BinaryOp::And, left, right, .. } => match of(left) {
                Some(true) => of(right),
                Some(false) => Some(false),
                None => None,
            },
            _ => None,
        });
    }
    known
}

/// True for names that `defined()` answers with yes.
pub(super) fn is_usable(name: Name) -> bool {
    matches!(name, Name::Metric(_) | Name::Nested { .. })
}

fn integer(value: NumberValue) -> Option<bool> {
    match value {
        NumberValue::Integer(value) => Some(value != 0),
        NumberValue::Double(_) => None,
    }
}

/// Which nodes are left when branches that are never chosen are taken away.
pub(super) fn live(expr: &Expr, guards: &[Option<bool>]) -> Vec<bool> {
    let mut live = vec![false; expr.len()];
    if let Some(root) = live.last_mut() {
        *root = true;
    }
    for (id, node) in expr.nodes().rev() {
        if !live[id.0 as usize] {
            continue;
        }
        let mut mark = |id: &ExprId| live[id.0 as usize] = true;
        match &node.kind {
            NodeKind::Ternary { guard, yes, no } => {
                mark(guard);
                let known = guards[guard.0 as usize];
                if known != Some(false) {
                    mark(yes);
                }
                if known != Some(true) {
                    mark(no);
                }
            }
            NodeKind::Select { operand, .. }
            | NodeKind::Match { operand, .. }
            | NodeKind::Unary { operand, .. }
            | NodeKind::Temporal { operand, .. }
            | NodeKind::Scalar(operand)
            | NodeKind::Grouped { operand, .. }
            | NodeKind::Rescale { operand, .. } => mark(operand),
            NodeKind::Binary { left, right, .. } => {
                mark(left);
                mark(right);
            }
            NodeKind::Call { operands, .. } => operands.iter().for_each(mark),
            NodeKind::Number(_)
            | NodeKind::Metric(_)
            | NodeKind::Text(_)
            | NodeKind::Aggregate { .. }
            | NodeKind::Defined(_)
            | NodeKind::Anon(_)
            | NodeKind::MkConst { .. }
            | NodeKind::NoValue(_)
            | NodeKind::Error => {}
        }
    }
    live
}

impl Checker<'_> {
    pub(super) fn ternary(
        &mut self,
        guard: ExprId,
        yes: ExprId,
        no: ExprId,
        span: Span,
    ) -> Checked<TypedId> {
        let (guard_id, guard_desc) = self.operand(guard)?;
        if let Some(decision) = self.guards[guard.0 as usize] {
            let chosen = if decision { yes } else { no };
            let (branch, desc) = self.operand(chosen)?;
            self.numeric(guard, &guard_desc, "a guard")?;
            if self.dialect != Dialect::Fixed {
                let single = self.seems_single(yes) && self.seems_single(no);
                self.guard_shape(guard, &guard_desc, single, [yes, no])?;
            }
            return Ok(self.push(TypedKind::Chosen { guard: guard_id, branch }, desc, span));
        }
        let (yes_id, yes_desc) = self.operand(yes)?;
        let (no_id, no_desc) = self.operand(no)?;
        let is_novalue = |id: ExprId| match &self.expr.node(id).kind {
            NodeKind::NoValue(_) => true,
            NodeKind::Metric(name) => self.names.is_novalue(name),
            _ => false,
        };
        let (yes_never, no_never) = (is_novalue(yes), is_novalue(no));
        if !yes_never && !no_never {
            self.branches([(yes, &yes_desc), (no, &no_desc)])?;
        }
        self.numeric(guard, &guard_desc, "a guard")?;
        let indom = yes_desc.indom.or(no_desc.indom);
        self.guard_shape(guard, &guard_desc, indom.is_none(), [yes, no])?;
        if let (Dialect::Fixed, Some(own), Some(guarding)) = (self.dialect, indom, guard_desc.indom)
            && !self.are_same_domain(own, guarding)
        {
            let at = self.span(guard);
            let branch = if yes_desc.indom.is_some() { yes } else { no };
            let branch_span = self.span(branch);
            return self.report(
                Diagnostic::error(
                    Code::IndomMismatch,
                    at,
                    "the guard has another instance domain than the branches",
                )
                .label(at, format!("instances of {guarding}"))
                .label(branch_span, format!("instances of {own}"))
                .derived(self.derivation(guard, "guard", Property::Instances))
                .help("reduce the guard to one value with an aggregate or scalar()"),
            );
        }
        let base = if yes_never { no_desc } else { yes_desc };
        let kind = TypedKind::Choose { guard: guard_id, yes: yes_id, no: no_id };
        Ok(self.push(kind, Desc { indom, ..base }, span))
    }

    /// Instance domain of a branch as libpcp sees it before it is checked:
    /// only names and constants have one then, anything else counts as a set.
    fn seems_single(&self, id: ExprId) -> bool {
        match &self.expr.node(id).kind {
            _ if self.done[id.0 as usize].is_some() => {
                self.operand(id).is_ok_and(|(_, desc)| desc.indom.is_none())
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
        guard: ExprId,
        guard_desc: &Desc,
        branches_single: bool,
        [yes, no]: [ExprId; 2],
    ) -> Checked<()> {
        if !branches_single || guard_desc.indom.is_none() {
            return Ok(());
        }
        let at = self.span(guard);
        let (yes, no) = (self.span(yes), self.span(no));
        self.report(
            Diagnostic::error(
                Code::GuardShape,
                at,
                "the guard has a value per instance, but the branches have only one",
            )
            .label(at, describe(guard_desc))
            .label(yes, "single value")
            .label(no, "single value")
            .derived(self.derivation(guard, "guard", Property::Instances))
            .help("reduce the guard to one value with an aggregate or scalar()"),
        )
    }

    /// Refuses branches of different metadata.
    fn branches(&mut self, [yes, no]: [(ExprId, &Desc); 2]) -> Checked<()> {
        let (a, b) = (yes.1, no.1);
        let scales = [
            (
                "space",
                (a.units.dim_space, a.units.scale_space),
                (b.units.dim_space, b.units.scale_space),
            ),
            (
                "time",
                (a.units.dim_time, a.units.scale_time),
                (b.units.dim_time, b.units.scale_time),
            ),
        ];
        let different = scales.iter().find(|(_, a, b)| a != b).map(|(axis, ..)| *axis);
        let count =
            (a.units.dim_count, a.units.scale_count) != (b.units.dim_count, b.units.scale_count);
        let axis = different
            .or(count.then_some("count"))
            .or((a.units.extra != b.units.extra).then_some("extra"));
        let indoms_differ = a.indom.is_some() && b.indom.is_some() && a.indom != b.indom;
        let (code, message, help) = if a.value_type != b.value_type {
            let message =
                format!("branches of different types: {} and {}", a.value_type, b.value_type);
            (Code::BranchTypes, message, Some("give constants a type with mkconst(..., type=...)"))
        } else if indoms_differ {
            let message = "branches of different instance domains".to_string();
            let help = "reduce one of them to a single value with an aggregate or scalar()";
            (Code::IndomMismatch, message, Some(help))
        } else if a.semantics != b.semantics {
            let message =
                format!("branches of different semantics: {} and {}", a.semantics, b.semantics);
            let help = "instant() makes a counter instantaneous; mkconst() takes semantics=...";
            (Code::BranchSemantics, message, Some(help))
        } else if let Some(axis) = axis {
            let (a_units, b_units) = (a.units, b.units);
            let (a, b) = (units_name(&a.units), units_name(&b.units));
            let message = format!("branches of different units ({axis}): {a} and {b}");
            let help = match dimensions_agree(&a_units, &b_units) {
                true => "rescale() brings one of them to the scale of the other",
                false => "rescale() changes the scale only; these are different dimensions",
            };
            (Code::BranchUnits, message, Some(help))
        } else {
            return Ok(());
        };
        let (yes_span, no_span) = (self.span(yes.0), self.span(no.0));
        let axis = axis.unwrap_or_default();
        let mut diagnostic = Diagnostic::error(code, no_span, message)
            .pcp(format!("Different units or scale ({axis}) for ternary operands"))
            .label(yes_span, describe(a))
            .label(no_span, describe(b));
        let property = match code {
            Code::BranchTypes => Property::Type,
            Code::BranchSemantics => Property::Semantics,
            Code::BranchUnits => Property::Units,
            _ => Property::Instances,
        };
        for (id, branch) in [(yes.0, "first branch"), (no.0, "second branch")] {
            diagnostic = diagnostic.derived(self.derivation(id, branch, property));
        }
        let alike = [(yes, no), (no, yes)].into_iter().find_map(|((constant, _), (_, other))| {
            let fixed = self.constant_like(constant, other)?;
            Some((self.span(constant), fixed)).filter(|_| code != Code::IndomMismatch)
        });
        self.report(match (alike, help) {
            (Some((span, fixed)), _) => diagnostic
                .help("mkconst() gives a constant the metadata of the other branch")
                .fix(span, fixed),
            (None, Some(help)) => diagnostic.help(help),
            (None, None) => diagnostic,
        })
    }

    /// The text of a constant with the metadata of another value, if it is a
    /// constant that can have them.
    fn constant_like(&self, constant: ExprId, like: &Desc) -> Option<String> {
        let (number, attributes) = match &self.expr.node(constant).kind {
            NodeKind::Number(number) => (number, None),
            NodeKind::MkConst { number, attributes } => (&number.value, Some(&**attributes)),
            _ => return None,
        };
        // What was said must not be changed.
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
