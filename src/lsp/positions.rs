//! Places in a text: the protocol's lines and columns, and our byte offsets.
//! It knows nothing of what the text says.

use lsp_types::{Position, PositionEncodingKind, Range, TextDocumentContentChangeEvent};

/// The unit of the protocol's columns, which client and server agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, which every client knows.
    Utf16,
}

impl Encoding {
    /// The best one among those that a client offers.
    pub fn chosen(offered: Option<&[PositionEncodingKind]>) -> Encoding {
        match offered.is_some_and(|offered| offered.contains(&PositionEncodingKind::UTF8)) {
            true => Encoding::Utf8,
            false => Encoding::Utf16,
        }
    }

    /// Its name in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    fn width(self, character: char) -> usize {
        match self {
            Encoding::Utf8 => character.len_utf8(),
            Encoding::Utf16 => character.len_utf16(),
        }
    }
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub struct LineIndex {
    encoding: Encoding,
    /// Offset of each line's first byte.
    starts: Vec<usize>,
}

impl LineIndex {
    /// The lines of a text. A line feed ends a line.
    pub fn new(text: &str, encoding: Encoding) -> LineIndex {
        let starts = std::iter::once(0).chain(line_ends(text)).collect();
        LineIndex { encoding, starts }
    }

    /// The unit of columns.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Follows an edit of the text, which puts `new` in the place of these bytes.
    fn replace(&mut self, bytes: std::ops::Range<usize>, new: &str) {
        // Lines that begin behind a line feed that is replaced.
        let first = self.starts.partition_point(|start| *start <= bytes.start);
        let last = self.starts.partition_point(|start| *start <= bytes.end);
        for start in &mut self.starts[last..] {
            *start = *start - bytes.end + bytes.start + new.len();
        }
        self.starts.splice(first..last, line_ends(new).map(|end| bytes.start + end));
    }

    /// The byte offset of a position. A column behind the end of its line is
    /// that end, a line behind the last one is the end of the text, and a column
    /// within a character is the character's beginning.
    pub fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = self.starts.get(line + 1).map_or(text.len(), |next| next - 1);
        let mut left = position.character as usize;
        for (at, character) in text[start..end].char_indices() {
            let width = self.encoding.width(character);
            if left < width {
                return start + at;
            }
            left -= width;
        }
        end
    }

    /// The position of a byte offset.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let offset = text.floor_char_boundary(offset.min(text.len()));
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        let before = &text[self.starts[line]..offset];
        let character = match self.encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
        };
        Position { line: number(line), character: number(character) }
    }

    /// The range of byte offsets.
    pub fn range(&self, text: &str, range: std::ops::Range<usize>) -> Range {
        Range { start: self.position(text, range.start), end: self.position(text, range.end) }
    }
}

/// Offsets behind the line feeds of a text.
fn line_ends(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('\n').map(|(at, _)| at + 1)
}

/// What the protocol counts with; texts are shorter than 4 GiB.
pub fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Applies a client's edits one after the other to a text and its lines. A range that ends before it
/// starts is taken the other way round.
pub fn apply(
    text: &mut String,
    lines: &mut LineIndex,
    changes: Vec<TextDocumentContentChangeEvent>,
) {
    for change in changes {
        let Some(range) = change.range else {
            *text = change.text;
            *lines = LineIndex::new(text, lines.encoding);
            continue;
        };
        let (start, end) = (lines.offset(text, range.start), lines.offset(text, range.end));
        let bytes = start.min(end)..start.max(end);
        text.replace_range(bytes.clone(), &change.text);
        lines.replace(bytes, &change.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = b\r\ncafé 🎈x\n\nend";

    #[test]
    fn every_offset_has_a_position_that_leads_back() {
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let index = LineIndex::new(TEXT, encoding);
            for (offset, _) in TEXT.char_indices().chain([(TEXT.len(), ' ')]) {
                let position = index.position(TEXT, offset);
                assert_eq!(index.offset(TEXT, position), offset, "{encoding:?} {position:?}");
            }
        }
    }

    #[test]
    fn columns_count_what_was_agreed_on() {
        let x = TEXT.find('x').expect("it is there");
        let at = |encoding| LineIndex::new(TEXT, encoding).position(TEXT, x).character;
        assert_eq!((at(Encoding::Utf8), at(Encoding::Utf16)), (10, 7));
    }

    #[test]
    fn positions_outside_are_brought_inside() {
        let index = LineIndex::new(TEXT, Encoding::Utf16);
        let offset = |line, character| index.offset(TEXT, Position { line, character });
        assert_eq!(offset(0, 99), 6);
        assert_eq!(offset(99, 0), TEXT.len());
        assert_eq!(offset(3, u32::MAX), TEXT.len());
        // In the middle of a surrogate pair.
        assert_eq!(offset(1, 6), TEXT.find('🎈').expect("it is there"));
    }

    #[test]
    fn edits_are_applied_in_their_order() {
        let mut text = "one\ntwo\n".to_owned();
        let edit = |start: (u32, u32), end: (u32, u32), text: &str| {
            let position = |(line, character)| Position { line, character };
            let range = Some(Range { start: position(start), end: position(end) });
            TextDocumentContentChangeEvent { range, range_length: None, text: text.to_owned() }
        };
        let changes =
            vec![edit((0, 0), (0, 3), "1"), edit((1, 3), (1, 0), "2"), edit((9, 9), (9, 9), "3")];
        let mut lines = LineIndex::new(&text, Encoding::Utf16);
        apply(&mut text, &mut lines, changes);
        assert_eq!(text, "1\n2\n3");
        assert_eq!(lines.starts, [0, 2, 4]);
        let whole = TextDocumentContentChangeEvent {
            range: None,
            range_length: None,
            text: "new".to_owned(),
        };
        apply(&mut text, &mut lines, vec![whole]);
        assert_eq!((&*text, &lines.starts[..]), ("new", &[0][..]));
    }

    #[test]
    fn lines_follow_every_edit() {
        let text = "a\n\nbc\r\nd\n";
        for start in 0..=text.len() {
            for end in start..=text.len() {
                for new in ["", "x", "\n", "y\n\nz"] {
                    let mut edited = text.to_owned();
                    let mut lines = LineIndex::new(text, Encoding::Utf8);
                    edited.replace_range(start..end, new);
                    lines.replace(start..end, new);
                    let expected = LineIndex::new(&edited, Encoding::Utf8).starts;
                    assert_eq!(lines.starts, expected, "{start}..{end} {new:?}");
                }
            }
        }
    }
}
