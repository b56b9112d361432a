//! Lints about `rate()` and `delta()` of operands that are no counters.

use pmderive_runtime::model::Semantics;
use rustc_hash::FxHashSet;

use super::subject::Subject;
use crate::check::typed::TypedKind;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::functions;
use crate::syntax::ast::{Aggregate, Callee, ExprId, NodeKind, Temporal};

pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    let mut directions: FxHashSet<ExprId> = FxHashSet::default();
    for (id, node) in subject.nodes() {
        directions.extend(asked_for_direction(subject, id, &node.kind));
    }
    for (id, node) in subject.nodes() {
        let NodeKind::Temporal { function, operand } = &node.kind else { continue };
        let code = match function {
            Temporal::Rate => Code::NonCounterRate,
            Temporal::Delta => Code::GaugeDelta,
            Temporal::Instant => continue,
        };
        let at = subject.span(*operand);
        let name = function.name();
        if !subject.has_metric(*operand) {
            if matches!(subject.typed(id), Some(TypedKind::Nothing)) {
                // It never has a value, which another lint says.
                continue;
            }
            if subject.zero_quotients().next().is_some() {
                // Two infinite values have no difference.
                continue;
            }
            let message = format!("`{name}()` of something that never changes is always 0");
            diagnostics.push(
                Diagnostic::warning(code, at, message).label(at, "no metric's value is in it"),
            );
            continue;
        }
        // A refused node has its report.
        if subject.desc(id).is_none() {
            continue;
        }
        let Some(desc) = subject.desc(*operand) else { continue };
        let Some(semantics) = semantics_of_leaves(subject, *operand) else { continue };
        let diagnostic = match function {
            Temporal::Rate if desc.semantics != Semantics::Counter => {
                let (what, fact) = match semantics {
                    Semantics::Discrete => ("discrete", "changes now and then, up or down"),
                    _ => ("instantaneous", "goes up and down"),
                };
                let message = format!("`rate()` of a value that is no counter but {what}");
                Diagnostic::warning(code, at, message).label(at, fact).help(
                    "take the value as it is; `rate(instant(...))` says that its change per \
                     second is meant",
                )
            }
            // A discrete value changes now and then, and `delta()` notices it.
            Temporal::Delta
                if desc.semantics == Semantics::Instant && !directions.contains(&id) =>
            {
                Diagnostic::warning(code, at, "`delta()` of a value that is no counter")
                    .label(at, "goes up and down: what happened between two samples is lost")
                    .help("take the value as it is, or `delta(instant(...))` if this is meant")
            }
            _ => continue,
        };
        diagnostics.push(diagnostic);
    }
}

/// Operands whose size or direction alone matters: those of `abs()` and of
/// comparisons. There, changes up and down are intended.
fn asked_for_direction(subject: &Subject<'_>, id: ExprId, kind: &NodeKind) -> Vec<ExprId> {
    let mut operands = Vec::new();
    let asks = match kind {
        NodeKind::Call { callee, .. } => *callee == Callee::Function(&functions::ABS),
        NodeKind::Binary { op, .. } => !op.is_arithmetic() && !op.is_boolean(),
        _ => false,
    };
    if asks {
        subject.expr.operands(id, |operand| operands.push(operand));
    }
    operands.retain(|operand| matches!(subject.kind(*operand), NodeKind::Temporal { .. }));
    operands
}

/// Semantics of the metrics in an operand, if none of them is a counter and no
/// function reads their values unchanged.
fn semantics_of_leaves(subject: &Subject<'_>, operand: ExprId) -> Option<Semantics> {
    let mut common = Semantics::Discrete;
    for (id, node) in subject.below(operand) {
        match &node.kind {
            NodeKind::Temporal { .. } => return None,
            // The results of the other functions are no counters even if the
            // metric is one.
            NodeKind::Aggregate { function, .. } if *function != Aggregate::Sum => return None,
            // The parts of another definition are not examined.
            NodeKind::Metric(_) if matches!(subject.typed(id), Some(TypedKind::Derived(_))) => {
                return None;
            }
            NodeKind::Metric(_) | NodeKind::Aggregate { .. } => match subject.desc(id)?.semantics {
                Semantics::Counter => return None,
                Semantics::Instant => common = Semantics::Instant,
                _ => {}
            },
            _ => {}
        }
    }
    Some(common)
}
