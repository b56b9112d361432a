//! Logical lines of a definition file.
//!
//! From version 7 on, a backslash at the very end of a line joins it with the
//! next. A [`Line`] is the joined text with an [`Origin`] that leads back to
//! the file. [`super::config`] interprets it.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::syntax::origin::Origin;
use crate::text::{SourceId, offset};

/// One logical line.
#[derive(Debug)]
pub struct Line<'t> {
    /// Its text, without line ends and the marks that join lines.
    pub text: Cow<'t, str>,
    /// Number of its bytes that libpcp repeats: those before a NUL.
    pub said: usize,
    /// The place of its bytes.
    pub origin: Origin,
    /// Number of its first physical line, from 1.
    pub number: u32,
}

/// Reads a file line by line.
#[derive(Debug)]
pub struct Lines<'t> {
    source: SourceId,
    text: &'t str,
    /// Offset of the first unread byte.
    position: usize,
    number: u32,
    joined_by_backslash: bool,
    /// True if NUL ends the text before the `=` and the text behind it. A line that
    /// begins with NUL, however, is not empty.
    ends_at_nul: bool,
}

impl<'t> Lines<'t> {
    /// All lines of a text shorter than 4 GiB.
    pub fn new(source: SourceId, text: &'t str, dialect: Dialect) -> Lines<'t> {
        let joined_by_backslash = dialect.is_version_7();
        let ends_at_nul = dialect != Dialect::Fixed;
        Lines { source, text, position: 0, number: 1, joined_by_backslash, ends_at_nul }
    }

    /// The whole file.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Offset of the first byte that has not been read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next logical line. The last one need not have a line end.
    pub fn next_line(&mut self) -> Option<Line<'t>> {
        if self.position >= self.text.len() {
            return None;
        }
        let number = self.number;
        let mut origin = Origin::new(self.source, offset(self.position));
        let mut piece = self.physical_line();
        let mut text = Cow::Borrowed(piece);
        let nul = piece.find('\0').filter(|_| self.ends_at_nul);
        if let Some(nul) = nul
            && let Some(assign) = piece.find('=').filter(|assign| *assign > nul)
        {
            let close = piece[nul..assign].find(')').map_or(assign, |close| nul + close);
            text.to_mut().replace_range(nul..close, "");
            let close = origin.offset(offset(close));
            origin.continue_at(offset(nul), close);
        }
        while self.joined_by_backslash && piece.ends_with('\\') && self.is_after_line_end() {
            let joined = text.to_mut();
            joined.pop();
            origin.continue_at(offset(joined.len()), offset(self.position));
            piece = self.physical_line();
            joined.push_str(piece);
        }
        if self.ends_at_nul
            && let Some(end) = text.find('\0').filter(|end| *end > 0)
        {
            text.to_mut().truncate(end);
        }
        let said = nul.unwrap_or(text.len()).min(text.len());
        Some(Line { text, said, origin, number })
    }

    /// Continues behind the line that holds the byte at `position` of the file.
    pub fn skip_line_of(&mut self, position: usize) {
        while self.position <= position && self.position < self.text.len() {
            self.physical_line();
        }
    }

    fn is_after_line_end(&self) -> bool {
        self.text[..self.position].ends_with('\n')
    }

    fn physical_line(&mut self) -> &'t str {
        let rest = &self.text[self.position..];
        let (line, length) = match rest.find('\n') {
            Some(end) => (&rest[..end], end + 1),
            None => (rest, rest.len()),
        };
        self.position += length;
        self.number += 1;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, dialect: Dialect) -> Vec<(u32, String, u32)> {
        let mut lines = Lines::new(SourceId(0), text, dialect);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line() {
            let last = line.origin.offset(offset(line.text.len()));
            found.push((line.number, line.text.into_owned(), last));
        }
        found
    }

    #[test]
    fn backslashes_join_lines() {
        let text = "a\\\nb\\\nc\nd\\\\\n\ne\\";
        assert_eq!(
            lines(text, Dialect::Fixed),
            [(1, "abc".into(), 7), (4, "d\\".into(), 12), (6, "e\\".into(), 15)]
        );
        assert_eq!(lines("a\\\nb", Dialect::Pcp6_0), [(1, "a\\".into(), 2), (2, "b".into(), 4)]);
        // libpcp's texts end at a NUL.
        for (text, kept, cut) in [
            ("a = 1\0 + 5", "a = 1\0 + 5", "a = 1"),
            ("a\0b = 2\0", "a\0b = 2\0", "a= 2"),
            ("a(one\0line) = b", "a(one\0line) = b", "a(one) = b"),
            ("a\0", "a\0", "a"),
        ] {
            for (dialect, read) in [(Dialect::Fixed, kept), (Dialect::Pcp6_0, cut)] {
                let found = lines(text, dialect);
                assert_eq!(found[0].1, read);
            }
        }
        assert_eq!(lines("", Dialect::Fixed), []);
        assert_eq!(lines("\n\n", Dialect::Fixed), [(1, String::new(), 0), (2, String::new(), 1)]);
    }
}
