//! The command line as diagnostics show it.

use std::ffi::OsStr;

use crate::syntax::ast::Spanned;
use crate::text::{SourceId, Span};

/// A command line that is put together option by option.
pub struct ShownLine {
    /// What there is of it so far.
    pub text: String,
    /// What it is in the source map.
    source: SourceId,
}

impl ShownLine {
    /// The beginning of a line, which is this text of the source map once it is whole.
    pub fn new(begin: &str, source: SourceId) -> ShownLine {
        ShownLine { text: begin.to_owned(), source }
    }

    /// Adds an option with each of these values; gives them with their places.
    pub fn all<V: AsRef<OsStr>, T>(
        &mut self,
        option: &str,
        values: &[V],
        read: impl Fn(&V) -> T,
    ) -> Vec<Spanned<T>> {
        let mut one = |value: &V| {
            self.text.extend([" ", option, " "]);
            let start = self.text.len() as u32;
            self.text.push_str(&value.as_ref().to_string_lossy());
            let span = Span::new(self.source, start, self.text.len() as u32);
            Spanned { value: read(value), span }
        };
        values.iter().map(&mut one).collect()
    }
}
