//! Lints: warnings about definitions that are legal but probably wrong.
//!
//! Input: parsed definitions and, with a source, the results of checking them.
//! Output: diagnostics. Some lints need no source; the others skip definitions
//! that were not examined. A lint reports only facts that are certain. Each has
//! a page that says when the fact matters.

mod absence;
mod allow;
mod arithmetic;
mod comments;
mod comparison;
mod definitions;
mod elsewhere;
mod factors;
mod instances;
mod logic;
mod needless;
mod patterns;
mod subject;
mod temporal;
mod text;

use crate::diag::Diagnostics;
use crate::engine::{Examination, Registered};
use crate::text::{SourceMap, Span};
use subject::Subject;

pub use allow::apply_allowances;
pub use comments::lint_comments;
pub use definitions::lint_definitions;
pub use elsewhere::notation_of_others;
pub use instances::{missing_instances, selects_instances};

/// Largest number of warnings about one expression.
const MAX_REPORTS: usize = 20;

/// The names of a selection's definitions that lints see whole; see [`apply_allowances`].
/// `examination` is that of the same selection.
pub fn seen_whole(selection: &[&Registered], examination: &Examination) -> Vec<Span> {
    let examined = selection.iter().zip(&examination.expressions);
    examined.filter(|(_, one)| one.is_seen_whole()).map(|(one, _)| one.name_span).collect()
}

/// Examines each expression of a selection by itself. `examination` is that of
/// the same selection.
pub fn lint_expressions(
    selection: &[&Registered],
    examination: Option<&Examination>,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) {
    for (index, one) in selection.iter().enumerate() {
        let examined = examination.and_then(|whole| whole.expressions.get(index));
        let first = diagnostics.len();
        let subject = Subject::new(&one.expr, examined, sources);
        for lint in [
            text::lint as fn(&Subject<'_>, &mut Diagnostics),
            temporal::lint,
            absence::lint,
            comparison::lint,
            arithmetic::lint,
            factors::lint,
            patterns::lint,
            logic::lint,
            needless::lint,
        ] {
            lint(&subject, diagnostics);
        }
        diagnostics.truncate(first + MAX_REPORTS);
        if one.is_named {
            diagnostics.name_metric(first, &one.name);
        }
    }
}
