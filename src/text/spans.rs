//! Texts of definitions, and places in them.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::layers::Layers;
use crate::text::stray;

/// Identifies a text of a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u32);

/// A range of bytes of one text; `start <= end`, both on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The text.
    pub source: SourceId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

/// A position in a text as the 32 bits of a [`Span`]. Texts are bounded far below 4 GiB, see
/// [`crate::syntax::MAX_FILE_BYTES`] and [`crate::syntax::MAX_EXPRESSION_BYTES`].
pub fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

impl Span {
    /// The span of a range of a text's bytes. Offsets outside of the text or within a
    /// character go back to where one begins.
    pub fn within(source: SourceId, text: &str, range: Range<usize>) -> Span {
        let inside = |at: usize| offset(text.floor_char_boundary(at.min(text.len())));
        let start = inside(range.start);
        Span::new(source, start, inside(range.end).max(start))
    }

    /// Makes a span.
    pub const fn new(source: SourceId, start: u32, end: u32) -> Span {
        Span { source, start, end }
    }

    /// The smallest span over both, which must be in the same text.
    pub fn to(self, other: Span) -> Span {
        Span {
            source: self.source,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// All texts of one run: definition files, and expressions of the command line.
/// Clones are cheap.
///
/// ```
/// use pmderive::{SourceMap, Span};
///
/// let mut sources = SourceMap::default();
/// let id = sources.add("shop.conf", "shop.load = hinv.ncpu\n");
/// let span = Span::new(id, 12, 21);
/// assert_eq!(sources.slice(span), "hinv.ncpu");
/// assert_eq!(sources.start_of(span), (1, 13), "line and column");
/// ```
#[derive(Clone, Default)]
pub struct SourceMap {
    next: u32,
    texts: Layers<SourceId, SourceText>,
    /// Texts that replace those of files, by the files' names.
    unsaved: Arc<HashMap<Arc<str>, Arc<str>>>,
}

/// The empty text for identifiers that have none.
static NOTHING: LazyLock<SourceText> = LazyLock::new(SourceText::default);

/// The number of texts, without the texts: an error that has them is printed in one line.
impl fmt::Debug for SourceMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceMap").field("texts", &self.next).finish_non_exhaustive()
    }
}

/// One text with its name.
#[derive(Clone, Default)]
pub struct SourceText {
    /// File name, or `<expression>` and the like.
    pub name: Arc<str>,
    /// The text, with a private character for each byte that is not UTF-8; see
    /// [`diag::bytes_of`](crate::diag::bytes_of).
    pub text: Arc<str>,
    /// Number of bytes before the text in its file: those of a byte order mark.
    skipped: u32,
    /// Offset of each line's first byte. Computed on demand.
    line_starts: Arc<OnceLock<Box<[u32]>>>,
    /// Offset after each character that stands for a byte. Computed on demand.
    strays: Arc<OnceLock<Box<[u32]>>>,
}

/// The name of the text, and its number of bytes.
impl fmt::Debug for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SourceText");
        shown.field("name", &self.name).field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

impl SourceText {
    /// A text of less than 4 GiB.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceText {
        SourceText {
            name: name.into(),
            text: text.into(),
            skipped: 0,
            line_starts: Arc::default(),
            strays: Arc::default(),
        }
    }

    /// The line with a byte offset: its number, from 0, and the offset of its
    /// first byte.
    pub fn line_of(&self, offset: usize) -> (usize, usize) {
        let starts = self.line_starts.get_or_init(|| {
            let ends = self.text.bytes().zip(1u32..).filter(|(byte, _)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(_, next)| next)).collect()
        });
        let number = starts.partition_point(|start| *start as usize <= offset).saturating_sub(1);
        (number, starts[number] as usize)
    }

    /// Number of characters before a byte offset that stand for one byte each.
    fn strays_before(&self, offset: u32) -> usize {
        let strays = self.strays.get_or_init(|| {
            let strays = self.text.char_indices().filter(|(_, one)| stray::is_stray(*one));
            strays.filter_map(|(at, one)| u32::try_from(at + one.len_utf8()).ok()).collect()
        });
        strays.partition_point(|end| *end <= offset)
    }
}

impl SourceMap {
    /// An empty map in which these texts replace those of the files with the
    /// same names: the unsaved texts of an editor, or texts to be written.
    pub fn with_unsaved(unsaved: HashMap<Arc<str>, Arc<str>>) -> SourceMap {
        SourceMap { unsaved: Arc::new(unsaved), ..SourceMap::default() }
    }

    /// Adds a text. Offsets have 32 bits, so the caller must refuse texts of 4
    /// GiB or more.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceId {
        let id = self.next_id();
        self.next = self.next.checked_add(1).expect("fewer than 2^32 texts");
        let name = name.into();
        let text = match self.unsaved.get(&name) {
            Some(unsaved) => Arc::clone(unsaved),
            None => text.into(),
        };
        self.insert(id, SourceText::new(name, text));
        id
    }

    /// The identifier of the next text. It is greater than all earlier ones.
    pub fn next_id(&self) -> SourceId {
        SourceId(self.next)
    }

    /// Adds a text under an identifier that this map did not give.
    pub fn insert(&mut self, id: SourceId, text: SourceText) {
        self.texts.insert(id, text);
    }

    /// Notes that a byte order mark stands before a text in its file.
    pub(crate) fn note_mark(&mut self, id: SourceId, mark: &str) {
        let text = SourceText { skipped: offset(mark.len()), ..self.get(id).clone() };
        self.insert(id, text);
    }

    /// Empties a text that no caller will ask for again.
    pub fn forget(&mut self, id: SourceId) {
        self.insert(id, NOTHING.clone());
    }

    /// Leaves the identifiers up to this one to texts that are stored
    /// elsewhere.
    pub(crate) fn reserve(&mut self, last: SourceId) {
        self.next = self.next.max(last.0.saturating_add(1));
    }

    /// The text with an identifier from [`SourceMap::add`]; an empty one if this map
    /// has none.
    pub fn get(&self, id: SourceId) -> &SourceText {
        self.texts.get(&id).unwrap_or(&NOTHING)
    }

    /// The span of a whole text.
    pub fn whole(&self, id: SourceId) -> Span {
        let text = &self.get(id).text;
        Span::within(id, text, 0..text.len())
    }

    /// The text of a span; an empty one if the span is not of this map. It is not escaped; see
    /// [`diag::printable`](crate::diag::printable).
    pub fn slice(&self, span: Span) -> &str {
        let text = &self.get(span.source).text;
        text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// True for a span of a text of this map.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn holds(&self, span: Span) -> bool {
        let text = self.texts.get(&span.source);
        text.is_some_and(|one| one.text.get(span.start as usize..span.end as usize).is_some())
    }

    /// The offset in the original bytes for an offset in the text.
    pub fn byte_offset(&self, source: SourceId, offset: u32) -> u32 {
        let text = self.get(source);
        let extra = text.strays_before(offset) * stray::EXTRA_BYTES;
        let own = offset.saturating_sub(u32::try_from(extra).unwrap_or(u32::MAX));
        own.saturating_add(text.skipped)
    }

    /// The start of a span, as in `shop.conf:3:14`. `None` for a span outside this map.
    pub fn place(&self, span: Span) -> Option<String> {
        let text = self.texts.get(&span.source)?;
        let (line, column) = self.start_of(span);
        Some(format!("{}:{line}:{column}", text.name))
    }

    /// Line and column of the start of a span, as [`SourceMap::line_column`].
    pub fn start_of(&self, span: Span) -> (usize, usize) {
        self.line_column(span.source, span.start)
    }

    /// Line and column of a byte offset, both from 1. The column counts
    /// characters, but not those that end a line.
    pub fn line_column(&self, source: SourceId, offset: u32) -> (usize, usize) {
        let source = self.get(source);
        let offset = source.text.floor_char_boundary(offset as usize);
        let (line, start) = source.line_of(offset);
        let (before, after) = (&source.text[start..offset], &source.text[offset..]);
        let is_end = after.is_empty() || after.starts_with('\n');
        let before = before.strip_suffix('\r').filter(|_| is_end).unwrap_or(before);
        (line + 1, before.chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A carriage return before the end of a line belongs to that end.
    #[test]
    fn places_at_the_end_of_a_line() {
        for (text, offset, expected) in [
            ("a = 1 +\n", 7, (1, 8)),
            ("a = 1 +\r\n", 7, (1, 8)),
            ("a = 1 +\r\n", 8, (1, 8)),
            ("a = 1 +\r", 8, (1, 8)),
            ("a\rb\n", 2, (1, 3)),
            ("\u{e9}\r\nb", 4, (2, 1)),
        ] {
            let mut sources = SourceMap::default();
            let source = sources.add("x", text);
            assert_eq!(sources.line_column(source, offset), expected, "{text:?} {offset}");
        }
    }
}
