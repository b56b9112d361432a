//! Texts that definitions come from, and places in them.

use std::sync::Arc;

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

impl Span {
    /// Makes a span.
    pub const fn new(source: SourceId, start: u32, end: u32) -> Span {
        Span { source, start, end }
    }

    /// The smallest span over both, which must be of one text.
    pub fn to(self, other: Span) -> Span {
        Span {
            source: self.source,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// All texts of one run: definition files and expressions of the command line.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    /// Number of the first text: that of the texts in the map that this one continues.
    first: u32,
    texts: Vec<SourceText>,
}

/// One text with its name.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// File name, or `<expression>` and the like.
    pub name: Arc<str>,
    /// The text itself.
    pub text: Arc<str>,
}

impl SourceMap {
    /// Adds a text. Spans are 32 bits wide, so texts of 4 GiB or more must be
    /// refused by whoever reads them.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceId {
        let id = self.next_id();
        self.texts.push(SourceText { name: name.into(), text: text.into() });
        id
    }

    /// The identifier that the next text gets, above those of all texts so far.
    pub fn next_id(&self) -> SourceId {
        let count = u32::try_from(self.texts.len()).ok();
        SourceId(count.and_then(|count| count.checked_add(self.first)).expect("fewer than 2^32"))
    }

    /// An empty map for texts that [`SourceMap::append`] may take over: their
    /// identifiers are those that they will have then.
    pub fn continued(&self) -> SourceMap {
        SourceMap { first: self.next_id().0, texts: Vec::new() }
    }

    /// Takes over the texts of a map that continues this one.
    ///
    /// # Panics
    /// When another text was added meanwhile, so that identifiers are in use.
    pub fn append(&mut self, continuation: SourceMap) {
        assert_eq!(continuation.first, self.next_id().0, "identifiers of texts are in use");
        self.texts.extend(continuation.texts);
    }

    /// Drops a text that nothing will ask for any more.
    pub fn forget(&mut self, id: SourceId) {
        let text = &mut self.texts[(id.0 - self.first) as usize];
        *text = SourceText { name: Arc::default(), text: Arc::default() };
    }

    /// The text of an identifier given by [`SourceMap::add`].
    pub fn get(&self, id: SourceId) -> &SourceText {
        &self.texts[(id.0 - self.first) as usize]
    }

    /// What a span covers.
    pub fn slice(&self, span: Span) -> &str {
        &self.get(span.source).text[span.start as usize..span.end as usize]
    }

    /// Line and column of a byte offset, both from 1, the column in characters.
    pub fn line_column(&self, source: SourceId, offset: u32) -> (usize, usize) {
        let text = &self.get(source).text;
        let before = &text[..text.floor_char_boundary(offset as usize)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
