//! Lints about parts without values, guards that decide nothing, and branches
//! that remove each other's values.

use super::subject::Subject;
use crate::bind::name_in;
use crate::check::Examined;
use crate::check::ternary::{Guard, guards};
use crate::check::typed::TypedKind;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::ast::{ExprId, NodeKind, PerNode};
use crate::text::Span;

pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    // By constants alone.
    let constant = guards(subject.expr, |_| Guard::Decided);
    never(subject, &constant, diagnostics);
    needless(subject, &constant, diagnostics);
    emptying(subject, diagnostics);
}

/// Reports the origin of a part without values.
fn never(subject: &Subject<'_>, guards: &PerNode<Guard>, diagnostics: &mut Diagnostics) {
    let mut never = PerNode::all(subject.expr.len(), false);
    for (id, node) in subject.nodes() {
        let of = |id: &ExprId| never[*id];
        let report = |message: &str| {
            Diagnostic::warning(Code::AlwaysNoValue, node.span, message)
                .label(node.span, "never has a value")
        };
        let is_single = |id: &ExprId| subject.desc(*id).is_some_and(|desc| desc.indom.is_none());
        let mut inherited = false;
        let origin = match &node.kind {
            NodeKind::NoValue(_) => {
                inherited = true;
                None
            }
            NodeKind::Anon(_) => Some(
                report("`anon()` never has a value")
                    .help("it stands for metrics that are filled in elsewhere"),
            ),
            NodeKind::Select { operand, instance } if !of(operand) && is_single(operand) => Some(
                report("an instance of a value that has no instances")
                    .label(subject.span(*operand), "single value")
                    .help("leave the selector out")
                    .guess(instance.span, ""),
            ),
            NodeKind::Match { operand, .. } if !of(operand) && is_single(operand) => Some(
                report("instances of a value that has no instances")
                    .label(subject.span(*operand), "single value")
                    .help("leave matchinst() out")
                    .guess(node.span, format!("({})", subject.text(*operand))),
            ),
            NodeKind::Temporal { function, operand }
                if !of(operand) && matches!(subject.typed(id), Some(TypedKind::Nothing)) =>
            {
                let name = function.name();
                let text = subject.text(*operand);
                let told = report(&format!("to libpcp 7.2 `{name}({text})` never has a value"));
                Some(match subject.kind(*operand) {
                    NodeKind::Select { .. } => {
                        told.help("a selector goes outside: `(delta(metric))[instance]`")
                    }
                    _ => told,
                })
            }
            NodeKind::Ternary { guard, yes, no } => match guards[*guard] {
                Guard::Known(known) => {
                    let chosen = if known { yes } else { no };
                    let is_novalue = matches!(subject.kind(*chosen), NodeKind::NoValue(_));
                    inherited = of(chosen) && !is_novalue;
                    is_novalue.then(|| {
                        report("`novalue()` is always chosen").label(
                            subject.span(*guard),
                            if known { "always true" } else { "always false" },
                        )
                    })
                }
                // Where a metric is missing, this is intended.
                Guard::Decided => None,
                Guard::Dynamic => {
                    let empty =
                        |id: &ExprId| of(id) && !matches!(subject.kind(*id), NodeKind::NoValue(_));
                    inherited = of(guard) || empty(yes) || empty(no);
                    None
                }
            },
            _ => {
                subject.expr.operands(id, |operand| inherited |= of(&operand));
                None
            }
        };
        never[id] = inherited || origin.is_some();
        diagnostics.extend(origin);
    }
}

/// Largest number of metrics of one expression whose `defined()` is examined.
const MAX_GUARDS: usize = 32;

/// Reports constant guards, and `defined()` of metrics that the expression
/// needs in any case.
fn needless(subject: &Subject<'_>, constant: &PerNode<Guard>, diagnostics: &mut Diagnostics) {
    for (id, node) in subject.nodes() {
        let NodeKind::Ternary { guard, yes, no } = &node.kind else { continue };
        let Guard::Known(known) = constant[*guard] else { continue };
        let chosen = if known { *yes } else { *no };
        if matches!(subject.kind(chosen), NodeKind::NoValue(_)) {
            continue;
        }
        let outcome = if known { "true" } else { "false" };
        let at = subject.span(*guard);
        let told =
            Diagnostic::warning(Code::NeedlessGuard, at, format!("this guard is always {outcome}"));
        if subject.has_metric(*guard) {
            // Without a value of the guard there is none of the branch either.
            diagnostics.push(
                told.label(at, "so whenever its metrics have values")
                    .label(subject.span(chosen), "then always chosen"),
            );
            continue;
        }
        let told = told
            .label(at, "does not depend on any metric")
            .label(subject.span(chosen), "always chosen");
        // In libpcp 6.0 the other branch may determine the instances.
        diagnostics.push(match (subject.desc(id), subject.desc(chosen)) {
            (Some(whole), Some(branch)) if whole != branch => told,
            _ => told
                .help("the branch alone is enough")
                .guess(node.span, subject.in_place_of(id, chosen)),
        });
    }
    alike(subject, constant, diagnostics);
    present(subject, diagnostics);
    let mut seen: Vec<&str> = Vec::new();
    for (_, node) in subject.expr.nodes() {
        let NodeKind::Defined(metric) = &node.kind else { continue };
        if seen.contains(&&*metric.value) || seen.len() == MAX_GUARDS {
            continue;
        }
        seen.push(&metric.value);
        // The rest of the expression when the metric is missing.
        let without = guards(subject.expr, |name| match name == &*metric.value {
            true => Guard::Known(false),
            false => Guard::Decided,
        });
        if let Some(used) = needed(subject, &without, &metric.value) {
            let name = &metric.value;
            let message = format!("`{name}` is needed whatever this guard decides");
            diagnostics.push(
                Diagnostic::warning(Code::NeedlessGuard, node.span, message)
                    .label(node.span, "always true where the expression can be used at all")
                    .label(used, "needed here although it may be missing")
                    .help(
                        "leave the guard out, or put everything that needs the metric \
                         into the branch that is chosen when it is there",
                    ),
            );
        }
    }
}

/// `c ? x : x`, which has a value where c has one.
fn alike(subject: &Subject<'_>, constant: &PerNode<Guard>, diagnostics: &mut Diagnostics) {
    for (_, node) in subject.nodes() {
        let NodeKind::Ternary { guard, yes, no } = &node.kind else { continue };
        let is_known = matches!(constant[*guard], Guard::Known(_));
        if is_known || subject.text(*yes) != subject.text(*no) {
            continue;
        }
        let at = subject.span(*guard);
        let message = "both branches of this guard are the same";
        diagnostics.push(
            Diagnostic::warning(Code::NeedlessGuard, at, message)
                .label(subject.span(*yes), "this")
                .label(subject.span(*no), "is this again")
                .help(
                    "one of them may be a mistake; they have values only where the guard has one",
                ),
        );
    }
}

/// `defined(m) ? m : novalue()` where the metric is there.
fn present(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    let Some(examined) = subject.examined else { return };
    for (_, node) in subject.nodes() {
        let NodeKind::Ternary { guard, yes, no } = &node.kind else { continue };
        let (NodeKind::Defined(metric), NodeKind::NoValue(_)) =
            (subject.kind(*guard), subject.kind(*no))
        else {
            continue;
        };
        let is_there = examined.guards.get(*guard) == Some(&Guard::Known(true));
        let is_itself =
            matches!(subject.kind(*yes), NodeKind::Metric(name) if **name == *metric.value);
        if !is_there || !is_itself {
            continue;
        }
        let at = subject.span(*guard);
        let message = format!("this guard decides nothing: `{}` is there", metric.value);
        diagnostics.push(
            Diagnostic::warning(Code::NeedlessGuard, at, message)
                .label(at, "true here")
                .label(subject.span(*yes), "always chosen")
                .help("without the guard a source that lacks the metric is reported")
                .guess(node.span, subject.text(*yes)),
        );
    }
}

/// A place that certainly needs a metric, given the values of the guards.
fn needed(subject: &Subject<'_>, guards: &PerNode<Guard>, name: &str) -> Option<Span> {
    let mut certain = PerNode::all(subject.expr.len(), false);
    certain[subject.expr.root()] = true;
    let mut found = None;
    for (id, node) in subject.expr.nodes().rev() {
        if !certain[id] {
            continue;
        }
        let needs_value = !matches!(node.kind, NodeKind::Defined(_));
        if needs_value && name_in(node).is_some_and(|(needed, _)| needed == name) {
            found = Some(node.span);
        }
        if let NodeKind::Ternary { guard, yes, no } = &node.kind {
            let known = guards[*guard];
            certain[*guard] = true;
            let branches = [(yes, Guard::Known(true)), (no, Guard::Known(false))];
            for (branch, chosen) in branches {
                certain[*branch] = known == chosen || known == Guard::Dynamic;
            }
        } else {
            subject.expr.operands(id, |operand| certain[operand] = true);
        }
    }
    found
}

/// Branches whose instances may be missing beside branches where they are not.
fn emptying(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    for (_, node) in subject.nodes() {
        let NodeKind::Ternary { guard, yes, no } = &node.kind else { continue };
        let guard_of = |examined: &Examined| examined.guards.get(*guard).copied();
        if subject.examined.and_then(guard_of) != Some(Guard::Dynamic) {
            continue;
        }
        let filter = |id: ExprId| {
            if !subject.has_filter(id) {
                return None;
            }
            subject.below(id).find_map(|(id, node)| match &node.kind {
                NodeKind::Select { .. } | NodeKind::Match { .. } => Some(subject.span(id)),
                _ => None,
            })
        };
        if subject.has_filter(*guard) {
            continue;
        }
        let is_novalue = |id: &ExprId| matches!(subject.kind(*id), NodeKind::NoValue(_));
        let (place, other) = match (filter(*yes), filter(*no)) {
            (Some(place), None) if !is_novalue(no) => (place, *no),
            (None, Some(place)) if !is_novalue(yes) => (place, *yes),
            _ => continue,
        };
        diagnostics.push(
            Diagnostic::warning(
                Code::EmptyingBranch,
                place,
                "where these instances are missing, the other branch has no value either",
            )
            .label(place, "has no value where the instance is missing")
            .label(subject.span(other), "is then not delivered, even where it is chosen")
            .help("a `?:` needs values on both sides, except for `novalue()`"),
        );
    }
}
