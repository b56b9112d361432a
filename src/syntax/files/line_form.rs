//! The forms that logical lines of definition files have.

use std::ops::Range;

use pmderive_runtime::model::TextKind;

use super::lines::Line;

/// The form of a logical line, whatever other lines define.
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
        /// The kind of text.
        kind: TextKind,
        /// Offset in the file of the text's first byte or its opening quote.
        value: usize,
        /// True if the text is in quotes, and only blanks follow.
        is_quoted: bool,
    },
    /// Anything with a mistake.
    Mistake,
    /// A text whose closing quote is missing. All following lines may be meant
    /// to belong to it.
    Unterminated,
}

/// A logical line with its form.
#[derive(Debug)]
pub struct OutlinedLine<'t> {
    /// The line.
    pub line: Line<'t>,
    /// Its bytes in the file, line ends and the lines of a quoted text included.
    pub range: Range<usize>,
    /// Its form.
    pub form: LineForm,
}
