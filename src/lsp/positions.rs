//! Places in a text: converts the protocol's lines and columns to byte offsets, and back.

use std::ops::Range;

use lsp_types::{Position, PositionEncodingKind, TextDocumentContentChangeEvent};

/// The unit of the protocol's columns, on which client and server agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, which every client supports.
    Utf16,
}

impl Encoding {
    /// The best unit that a client offers.
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

/// The starts of a text's lines.
#[derive(Clone, Debug)]
pub struct LineIndex {
    encoding: Encoding,
    /// Offset of each line's first byte.
    starts: Vec<usize>,
}

impl LineIndex {
    /// Finds the lines of a text. As in the protocol, CR, LF and CR LF each end a line.
    pub fn new(text: &str, encoding: Encoding) -> LineIndex {
        let starts = std::iter::once(0).chain(starts_in(text, 1..text.len() + 1)).collect();
        LineIndex { encoding, starts }
    }

    /// The unit of columns.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Follows an edit that replaced `bytes` by `length` bytes. `text` is the edited text.
    fn replace(&mut self, text: &str, bytes: Range<usize>, length: usize) {
        // Whether a line begins at a byte depends on that byte and the one before it. A line
        // feed may join two line ends to one, or split one in two.
        let from = bytes.start.max(1);
        let first = self.starts.partition_point(|start| *start < from);
        let last = self.starts.partition_point(|start| *start <= bytes.end).max(first);
        for start in &mut self.starts[last..] {
            *start = *start - bytes.end + bytes.start + length;
        }
        self.starts.splice(first..last, starts_in(text, from..bytes.start + length + 1));
    }

    /// The byte offset of a position. A column beyond the line is its end, a line beyond the
    /// last is the end of the text, and a column within a character is its start.
    pub fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = self.end_of_line(text, line);
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

    /// The offset at which a line ends, before its line end.
    fn end_of_line(&self, text: &str, line: usize) -> usize {
        let Some(next) = self.starts.get(line + 1) else { return text.len() };
        let before = &text[..next - 1];
        let is_pair = text[..*next].ends_with('\n') && before.ends_with('\r');
        before.len() - usize::from(is_pair)
    }

    /// The position of a byte offset. An offset within a line end has the position of the line
    /// end.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let offset = text.floor_char_boundary(offset.min(text.len()));
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        let before = &text[self.starts[line]..offset.min(self.end_of_line(text, line))];
        Position { line: number(line), character: self.columns(before) }
    }

    /// The position of a byte offset at or behind `known`, whose position is `at`. It reads only
    /// the text between them, as a line may be long and have thousands of tokens.
    pub fn position_behind(
        &self,
        text: &str,
        (known, at): (usize, Position),
        offset: usize,
    ) -> Position {
        let line = at.line as usize;
        if self.starts.get(line + 1).is_some_and(|next| offset >= *next) {
            return self.position(text, offset);
        }
        let end = text.floor_char_boundary(offset).min(self.end_of_line(text, line));
        let between = text.get(known..end).unwrap_or_default();
        Position { line: at.line, character: at.character + self.columns(between) }
    }

    /// The columns of a part of a line.
    fn columns(&self, part: &str) -> u32 {
        number(match self.encoding {
            Encoding::Utf8 => part.len(),
            Encoding::Utf16 if part.is_ascii() => part.len(),
            Encoding::Utf16 => part.encode_utf16().count(),
        })
    }

    /// The range between byte offsets.
    pub fn range(&self, text: &str, range: Range<usize>) -> lsp_types::Range {
        lsp_types::Range {
            start: self.position(text, range.start),
            end: self.position(text, range.end),
        }
    }

    /// The ranges between byte offsets, of which each begins at or behind the one before.
    pub fn ranges<'a>(
        &'a self,
        text: &'a str,
        ascending: impl Iterator<Item = Range<usize>> + 'a,
    ) -> impl Iterator<Item = lsp_types::Range> + 'a {
        let mut known = (0, Position::default());
        ascending.map(move |range| {
            let start = self.position_behind(text, known, range.start);
            known = (range.start, start);
            lsp_types::Range { start, end: self.position_behind(text, known, range.end) }
        })
    }
}

/// The offsets in a range at which a line begins; offset 0 must not be in the range.
fn starts_in(text: &str, offsets: Range<usize>) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let end = offsets.end.min(bytes.len() + 1);
    let before = bytes.get(offsets.start - 1..end - 1).unwrap_or_default();
    let starts = before.iter().zip(offsets.start..).filter(|(end, start)| match end {
        b'\n' => true,
        b'\r' => bytes.get(*start) != Some(&b'\n'),
        _ => false,
    });
    starts.map(|(_, start)| start)
}

/// A number of the protocol; texts are shorter than 4 GiB.
pub fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Applies a client's edits in order to a text and its lines. A range that ends before it
/// starts is reversed.
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
        lines.replace(text, bytes, change.text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = b\r\ncafé 🎈x\n\nend\r\rlast";

    #[test]
    fn every_offset_has_a_position_that_leads_back() {
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let index = LineIndex::new(TEXT, encoding);
            for (offset, _) in TEXT.char_indices().chain([(TEXT.len(), ' ')]) {
                let position = index.position(TEXT, offset);
                // There is no position between CR and LF.
                let offset = if offset == 6 { 5 } else { offset };
                assert_eq!(index.offset(TEXT, position), offset, "{encoding:?} {position:?}");
            }
        }
    }

    #[test]
    fn a_position_follows_from_one_before() {
        let offsets = || TEXT.char_indices().map(|(offset, _)| offset).chain([TEXT.len()]);
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let index = LineIndex::new(TEXT, encoding);
            for known in offsets() {
                let known = (known, index.position(TEXT, known));
                for offset in offsets().filter(|offset| *offset >= known.0) {
                    let found = index.position_behind(TEXT, known, offset);
                    assert_eq!(found, index.position(TEXT, offset), "{known:?} {offset}");
                }
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
        assert_eq!(offset(0, 99), 5);
        assert_eq!(offset(99, 0), TEXT.len());
        assert_eq!(offset(5, u32::MAX), TEXT.len());
        // In the middle of a surrogate pair.
        assert_eq!(offset(1, 6), TEXT.find('🎈').expect("it is there"));
    }

    #[test]
    fn edits_are_applied_in_their_order() {
        let mut text = "one\ntwo\n".to_owned();
        let edit = |start: (u32, u32), end: (u32, u32), text: &str| {
            let position = |(line, character)| Position { line, character };
            let (start, end) = (position(start), position(end));
            let range = Some(lsp_types::Range { start, end });
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
    fn each_line_end_of_the_protocol_ends_a_line() {
        let lines = LineIndex::new("a\rb\nc\r\nd", Encoding::Utf8);
        assert_eq!(lines.starts, [0, 2, 4, 7]);
    }

    #[test]
    fn lines_follow_every_edit() {
        let text = "a\n\nbc\r\nd\r\re\n";
        for start in 0..=text.len() {
            for end in start..=text.len() {
                for new in ["", "x", "\n", "\r", "y\n\rz", "\ry\r\n"] {
                    let mut edited = text.to_owned();
                    let mut lines = LineIndex::new(text, Encoding::Utf8);
                    edited.replace_range(start..end, new);
                    lines.replace(&edited, start..end, new.len());
                    let expected = LineIndex::new(&edited, Encoding::Utf8).starts;
                    assert_eq!(lines.starts, expected, "{start}..{end} {new:?}");
                }
            }
        }
    }
}
