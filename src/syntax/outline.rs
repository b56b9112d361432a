//! The outline of a definition file: its logical lines, each with its place
//! and its form.
//!
//! It serves those who change a file's text without changing what it says.
//! [`super::config`] knows what the lines mean together.

use std::ops::Range;

use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::text::SourceId;

use super::config::{DefinitionReader, TextKind};
use super::lines::{Line, Lines};
use super::parsed_before::ParsedBefore;

/// What a logical line is by itself, whatever other lines define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineForm {
    /// Nothing, or blanks only.
    Blank,
    /// A comment or a control line.
    Comment,
    /// `name = expression`; ranges of the line's text.
    Definition {
        /// The name.
        name: Range<usize>,
        /// The expression, to the end of the line.
        expression: Range<usize>,
    },
    /// `name(oneline) = text`
    Text {
        /// The name, in the line's text.
        name: Range<usize>,
        /// Which text.
        kind: TextKind,
        /// Offset in the file of the text's first byte or its opening quote.
        value: usize,
        /// True in quotes, after which only blanks follow.
        is_quoted: bool,
    },
    /// Anything with a mistake.
    Mistake,
    /// A text whose closing quote is missing, so that all lines that follow
    /// may be meant to belong to it.
    Unterminated,
}

/// A logical line with its form.
#[derive(Debug)]
pub struct OutlinedLine<'t> {
    /// The line.
    pub line: Line<'t>,
    /// Its bytes in the file, line ends and the lines of a quoted text included.
    pub range: Range<usize>,
    /// What it is.
    pub form: LineForm,
}

/// The forms of all lines of one text.
pub fn outline(text: &str, language: Language) -> Vec<OutlinedLine<'_>> {
    outline_with(text, language, None)
}

/// Outlines a text of which most was read before.
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
    reader.lines("", &(), lines, before, &mut ignored, show);
    outlined
}
