//! The place in a text where it cannot be read, and the problem there.

use std::fmt;

use crate::escape::Foreign;

/// The error for a text that is not an interval, metric specification or
/// identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFault {
    /// The given text.
    pub text: String,
    /// Offset of the fault, in bytes.
    pub offset: usize,
    /// The problem there, in the words of libpcp where it has any.
    pub problem: &'static str,
}

/// Two lines: the text, and the problem below its place.
impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_fault(f, &self.text, self.offset, self.problem)
    }
}

impl std::error::Error for TextFault {}

/// Shows a text with a problem below its place, as libpcp does for texts in its
/// little languages, without the last newline. The text is shown as
/// [`Foreign`].
pub fn write_fault(
    f: &mut fmt::Formatter<'_>,
    text: &str,
    offset: usize,
    problem: &str,
) -> fmt::Result {
    let blanks = blanks_before(f, text, offset);
    write!(f, "{}\n{blanks}^ -- {problem}", Foreign(text).form(f.alternate()))
}

/// The blanks up to a place in a [`Foreign`] text. Characters that fill no
/// column, or more than one, are repeated instead.
pub fn blanks_before(f: &fmt::Formatter<'_>, text: &str, offset: usize) -> String {
    let before = Foreign(text.get(..offset).unwrap_or(text)).form(f.alternate());
    before.chars().map(|c| if c.is_ascii_graphic() { ' ' } else { c }).collect()
}
