//! The outline of a definition file: its logical lines, each with its place and
//! its form.
//!
//! It serves callers that change a file's text without changing its meaning.
//! [`super::config`] interprets the lines together.

use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::text::SourceId;

use super::config::DefinitionReader;
use super::expression_cache::ParsedBefore;
use super::line_form::OutlinedLine;
use super::lines::Lines;

/// The forms of all lines of one text.
pub fn outline(text: &str, language: Language) -> Vec<OutlinedLine<'_>> {
    let mut outlined = Vec::new();
    outline_each(text, language, |line| outlined.push(line));
    outlined
}

/// Shows the forms of all lines of one text, one after the other, and keeps none.
pub fn outline_each<'t>(text: &'t str, language: Language, show: impl FnMut(OutlinedLine<'t>)) {
    outline_with(text, language, None, show);
}

/// Shows the forms of all lines of a text that was mostly read before.
pub fn outline_again<'t>(
    text: &'t str,
    before: &mut ParsedBefore,
    show: impl FnMut(OutlinedLine<'t>),
) {
    outline_with(text, before.language(), Some(before), show);
}

fn outline_with<'t>(
    text: &'t str,
    language: Language,
    before: Option<&mut ParsedBefore>,
    show: impl FnMut(OutlinedLine<'t>),
) {
    let lines = Lines::new(SourceId(0), text, language.dialect);
    let mut ignored = Diagnostics::default();
    let mut reader = DefinitionReader::new(language);
    reader.gives_forms = true;
    reader.lines("", None, lines, before, &mut ignored, show);
}
