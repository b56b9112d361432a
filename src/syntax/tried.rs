//! Tries the edits that are offered for a refused text.
//!
//! What is certain must leave fewer mistakes, and what is offered must mend the one
//! that it is offered for. This module knows edits only, not what is wrong.

use crate::diag::{Diagnostic, Diagnostics, Fix, Severity};
use crate::dialect::Language;

use super::origin::Origin;
use super::read_at;

/// Longest text whose edits are tried, in bytes. In longer ones none is certain.
const MAX_TRIED: usize = 2_000;

/// Takes back the edits that mend nothing of those offered from `first` on, and lets
/// those be guesses after which there are as many mistakes as before.
pub(super) fn doubt(
    text: &str,
    origin: &Origin,
    language: Language,
    diagnostics: &mut Diagnostics,
    first: usize,
) {
    let is_short = text.len() <= MAX_TRIED;
    let before = errors(diagnostics.since_mut(first).iter());
    for one in diagnostics.since_mut(first) {
        let Some(fix) = one.fix.as_mut() else { continue };
        // A backslash at the end joins a line with the next, which is not known here.
        let is_whole = |edited: &String| is_short && !edited.ends_with('\\');
        let Some(edited) = edited(text, origin, fix).filter(is_whole) else {
            fix.is_certain &= is_short;
            continue;
        };
        let mut left = Diagnostics::default();
        read_at(&origin.at_beginning(), &edited, language, &mut left);
        let left: Vec<&Diagnostic> = left.iter().collect();
        fix.is_certain &= errors(left.iter().copied()) < before;
        let place = origin.logical(one.span.start);
        let is_same = |other: &&Diagnostic| {
            (other.code, other.span.start, &other.message) == (one.code, place, &one.message)
        };
        if left.iter().any(is_same) {
            one.fix = None;
        }
    }
}

fn errors<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) -> usize {
    let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
    diagnostics.into_iter().filter(is_error).count()
}

/// The text with an edit, if it is one of this text.
fn edited(text: &str, origin: &Origin, fix: &Fix) -> Option<String> {
    let (start, end) = (origin.logical(fix.span.start), origin.logical(fix.span.end));
    let before = text.get(..start as usize)?;
    let after = text.get(end.max(start) as usize..)?;
    Some([before, &fix.text, after].concat())
}
