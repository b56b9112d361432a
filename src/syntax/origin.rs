//! The place that the text of an expression came from.
//!
//! A file may spread an expression over several lines. The continuation marks
//! that join them are not part of it. An [`Origin`] leads from the expression's
//! bytes back to the file's.

use std::ops::Range;

use crate::text::{SourceId, Span, offset};

/// Maps offsets into a logical text to places in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    source: SourceId,
    /// The place where the text begins.
    start: u32,
    /// The further pieces that are contiguous in the source, ascending. Most
    /// texts have none.
    later: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    logical: u32,
    source: u32,
}

impl Origin {
    /// A text that stands in one piece from this offset on.
    pub fn new(source: SourceId, offset: u32) -> Origin {
        Origin { source, start: offset, later: Vec::new() }
    }

    /// Continues the logical text at another place, from `logical` on.
    pub fn continue_at(&mut self, logical: u32, source: u32) {
        self.later.push(Piece { logical, source });
    }

    /// The same source for the logical text without its first `logical` bytes.
    pub fn skip(&self, logical: u32) -> Origin {
        let later = self.later.iter().filter(|piece| piece.logical > logical);
        let later = later.map(|piece| Piece { logical: piece.logical - logical, ..*piece });
        Origin { source: self.source, start: self.offset(logical), later: later.collect() }
    }

    /// True if both texts are joined at the same bytes, wherever they stand.
    pub fn has_form_of(&self, other: &Origin) -> bool {
        let from = |origin: &Origin, piece: &Piece| piece.source.wrapping_sub(origin.start);
        let form = |origin: &Origin, piece: &Piece| (piece.logical, from(origin, piece));
        let own = self.later.iter().map(|piece| form(self, piece));
        own.eq(other.later.iter().map(|piece| form(other, piece)))
    }

    /// The place of the byte at a logical offset.
    pub fn offset(&self, logical: u32) -> u32 {
        let index = self.later.partition_point(|piece| piece.logical <= logical);
        let first = Piece { logical: 0, source: self.start };
        let piece = index.checked_sub(1).map_or(first, |index| self.later[index]);
        piece.source.saturating_add(logical - piece.logical)
    }

    /// True if a piece begins behind the byte before `start`, up to `end`.
    pub fn is_joined(&self, start: u32, end: u32) -> bool {
        self.later.iter().any(|piece| (start..=end).contains(&piece.logical))
    }

    /// The logical offsets at which further pieces begin.
    pub fn joints(&self) -> impl Iterator<Item = u32> {
        self.later.iter().map(|piece| piece.logical)
    }

    /// The logical offset of a place in the text.
    pub fn logical(&self, place: u32) -> u32 {
        let index = self.later.partition_point(|piece| piece.source <= place);
        let first = Piece { logical: 0, source: self.start };
        let piece = index.checked_sub(1).map_or(first, |index| self.later[index]);
        piece.logical.saturating_add(place.saturating_sub(piece.source))
    }

    /// An origin of the same source whose places are the offsets themselves.
    pub fn at_beginning(&self) -> Origin {
        Origin::new(self.source, 0)
    }

    /// The place of the bytes from `start` to before `end`.
    pub fn span(&self, start: u32, end: u32) -> Span {
        let first = self.offset(start);
        // The end follows the last byte, not the continuation mark after it.
        let after = match end.checked_sub(1) {
            Some(last) if last >= start => self.offset(last).saturating_add(1),
            _ => first,
        };
        Span::new(self.source, first, after)
    }
}

/// The place of a range of a logical text.
pub(super) fn span(origin: &Origin, range: &Range<usize>) -> Span {
    origin.span(offset(range.start), offset(range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_pieces() {
        // "ab\<newline>cd" from offset 10 on.
        let mut origin = Origin::new(SourceId(3), 10);
        origin.continue_at(2, 14);
        let place = |origin: &Origin, start, end| {
            let span = origin.span(start, end);
            (span.start, span.end)
        };
        assert_eq!(place(&origin, 0, 2), (10, 12));
        assert_eq!(place(&origin, 0, 3), (10, 15));
        assert_eq!(place(&origin, 2, 4), (14, 16));
        assert_eq!(place(&origin, 4, 4), (16, 16));
        assert_eq!([10, 11, 14, 16].map(|at| origin.logical(at)), [0, 1, 2, 4]);
        assert_eq!(place(&origin.skip(1), 0, 1), (11, 12));
        assert_eq!(place(&origin.skip(1), 1, 2), (14, 15));
        assert_eq!(place(&origin.skip(3), 0, 1), (15, 16));
    }
}
