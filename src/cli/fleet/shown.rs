//! The command line as diagnostics show it.

use std::ffi::OsStr;

use crate::syntax::ast::Spanned;
use crate::text::{SourceId, Span};

/// A command line that is put together option by option.
pub struct ShownLine {
    /// The line so far.
    pub text: String,
    /// Its place in the source map.
    source: SourceId,
}

impl ShownLine {
    /// Starts a line. Once complete, it becomes the text `source` of the source map.
    pub fn new(begin: &str, source: SourceId) -> ShownLine {
        ShownLine { text: begin.to_owned(), source }
    }

    /// Adds an option with each of these values. Returns the values with their places.
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
