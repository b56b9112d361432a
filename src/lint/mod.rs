//! Lints: warnings about definitions that are legal but probably wrong.
//!
//! Input: parsed definitions and, with a source, the results of checking them.
//! Output: diagnostics. Some lints need no source; the others skip definitions
//! that were not examined. A lint reports only facts that are certain. Each has
//! a page that says when the fact matters.
//!
//! A program asks as the command does: [`all`] after [`Engine::examine`], and
//! [`apply_allowances`] at the end.
//!
//! ```
//! use pmderive::lint::{self, Linted};
//! use pmderive::runtime::archive::ArchiveContext;
//! use pmderive::{Definitions, Diagnostics, Engine};
//!
//! let definitions = Definitions::default();
//! definitions.register("shop.reads", "rate(disk.dev.read[vdq])")?;
//! definitions.register("shop.again", "rate(disk.dev.read[vdq])")?;
//! let snapshot = definitions.snapshot();
//! let (registry, sources) = (&snapshot.registry, &snapshot.sources);
//! let (selection, language) = (registry.all(), registry.language());
//!
//! let mut archive = ArchiveContext::open("tests/archives/own-fleet")?;
//! let mut found = Diagnostics::default();
//! let examination =
//!     Engine::default().examine(registry, &selection, &mut archive, &mut found)?;
//! // Names of instances that the source does not have. Only this asks it once more.
//! lint::missing_instances(&selection, &examination, sources, &mut archive, &mut found)?;
//! // The texts whose comments count; each definition that was registered alone has its own.
//! let texts: Vec<_> = selection.iter().map(|one| one.name_span.source).collect();
//! let (examination, texts) = (Some(&examination), &texts[..]);
//! let linted = Linted { registry, selection: &selection, wanted: &[], examination, texts, sources };
//! lint::all(&linted, &mut found);
//! lint::apply_allowances(texts.iter().copied(), language, &[], sources, &mut found);
//! for warning in found.iter() {
//!     println!("{}", warning.in_line(sources));
//! }
//! # assert_eq!(found.len(), 3, "{found:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Engine::examine`]: crate::Engine::examine

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
use crate::engine::{Examination, Registered, Registry};
use crate::text::{SourceId, SourceMap, Span};
use subject::Subject;

pub use allow::apply_allowances;
pub(crate) use comments::lint_comments;
pub(crate) use definitions::lint_definitions;
pub use elsewhere::notation_of_others;
pub use instances::{missing_instances, selects_instances};

/// Largest number of warnings about one expression.
const MAX_REPORTS: usize = 20;

/// The definitions to lint, and what is known of them; see the module's example.
#[derive(Clone, Copy, Debug)]
pub struct Linted<'l> {
    /// The registry of the definitions.
    pub registry: &'l Registry,
    /// The definitions and expressions to lint.
    pub selection: &'l [&'l Registered],
    /// Those of them that are asked for; empty if all are. Definitions that none of
    /// these needs, directly or through others, are reported.
    pub wanted: &'l [&'l Registered],
    /// The results of [`Engine::examine`](crate::Engine::examine) for the selection, if there
    /// is a source.
    pub examination: Option<&'l Examination>,
    /// The texts whose comments are linted.
    pub texts: &'l [SourceId],
    /// The texts of all definitions.
    pub sources: &'l SourceMap,
}

/// Every lint that asks no source: of each expression, of definitions beside each other, and
/// of comments.
pub fn all(linted: &Linted<'_>, diagnostics: &mut Diagnostics) {
    let Linted { registry, selection, wanted, examination, texts, sources } = *linted;
    lint_expressions(selection, examination, sources, diagnostics);
    lint_definitions(registry, selection, wanted, diagnostics);
    lint_comments(texts.iter().copied(), registry.language(), sources, diagnostics);
}

/// The names of a selection's definitions that lints see whole; see [`apply_allowances`].
/// `examination` is that of the same selection.
pub fn seen_whole(selection: &[&Registered], examination: &Examination) -> Vec<Span> {
    let examined = selection.iter().zip(&examination.expressions);
    examined.filter(|(_, one)| one.is_seen_whole()).map(|(one, _)| one.name_span).collect()
}

/// Examines each expression of a selection by itself. `examination` is that of
/// the same selection.
pub(crate) fn lint_expressions(
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
