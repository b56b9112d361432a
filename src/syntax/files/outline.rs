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
    outline_with(text, language, None)
}

/// Outlines a text that was mostly read before.
pub fn outline_again<'t>(text: &'t str, before: &mut ParsedBefore) -> Vec<OutlinedLine<'t>> {
    outline_with(text, before.language(), Some(before))
}

fn outline_with<'t>(
    text: &'t str,
    language: Language,
    before: Option<&mut ParsedBefore>,
) -> Vec<OutlinedLine<'t>> {
    let lines = Lines::new(SourceId(0), text, language.dialect);
    let mut outlined = Vec::new();
    let mut ignored = Diagnostics::default();
    let show = |line| outlined.push(line);
    let mut reader = DefinitionReader::new(language);
    reader.gives_forms = true;
    reader.lines("", None, lines, before, &mut ignored, show);
    outlined
}
