//! Edits that format a text. There is one for each run of changed lines, so the editor leaves
//! all other lines, and its marks on them, alone.

use std::ops::Range;
use std::time::{Duration, Instant};

use lsp_types::TextEdit;

use super::analysis::Analysis;
use super::text_cache::TextCache;
use crate::format::{format_again, format_definitions};
use crate::syntax::{LineForm, outline_again};
use crate::text::patch::operations;

/// Time for finding small differences. Beyond it some may be larger than necessary.
const PATIENCE: Duration = Duration::from_millis(200);

/// The edits that format a text, in order.
pub fn edits(analysis: &Analysis, before: &mut TextCache) -> Vec<TextEdit> {
    before.use_language(analysis.settings.language);
    let text = analysis.text();
    let new = format_again(text, &mut before.parsed, &mut before.formatted).text;
    line_edits(analysis, &new)
}

/// The edits that turn the text into another one.
pub fn line_edits(analysis: &Analysis, new: &str) -> Vec<TextEdit> {
    let edits = differences(analysis.text(), new).into_iter();
    edits.map(|difference| difference.edit(analysis)).collect()
}

/// The edits that format the lines of a range.
pub fn edits_within(
    analysis: &Analysis,
    range: lsp_types::Range,
    before: &mut TextCache,
) -> Vec<TextEdit> {
    before.use_language(analysis.settings.language);
    let text = analysis.text();
    let offset = |position| analysis.lines.offset(text, position);
    let (start, end) = (offset(range.start), offset(range.end));
    let start = start.min(end);
    // A range that ends at the start of a line excludes that line, unless the range is empty.
    let end = end.max(start + 1);
    // A logical line may have several lines of the editor. Empty ones at the ends are left
    // alone.
    let mut whole: Option<Range<usize>> = None;
    outline_again(text, &mut before.parsed, |line| {
        let place = line.range;
        if place.start < end && start < place.end && line.form != LineForm::Blank {
            whole = Some(whole.as_ref().map_or(place.start, |first| first.start)..place.end);
        }
    });
    let Some(whole) = whole else { return Vec::new() };
    let wanted = &text[whole.clone()];
    let new = format_definitions(wanted, analysis.settings.language).text;
    let edits = differences(wanted, &new).into_iter().map(|Difference { place, new }| {
        let place = whole.start + place.start..whole.start + place.end;
        Difference { place, new }.edit(analysis)
    });
    edits.collect()
}

/// A run of lines with its replacement.
#[derive(Debug, PartialEq, Eq)]
struct Difference<'n> {
    /// Bytes in the old text.
    place: Range<usize>,
    /// The replacement.
    new: &'n str,
}

impl Difference<'_> {
    fn edit(&self, analysis: &Analysis) -> TextEdit {
        let range = analysis.lines.range(analysis.text(), self.place.clone());
        TextEdit { range, new_text: self.new.to_owned() }
    }
}

/// The differences between two texts.
fn differences<'n>(old: &str, new: &'n str) -> Vec<Difference<'n>> {
    let texts = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<&str>>());
    let starts = texts.each_ref().map(|lines| {
        let ends = lines.iter().scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect::<Vec<usize>>()
    });
    let bytes = |starts: &[usize], lines: Range<usize>| starts[lines.start]..starts[lines.end];
    let operations = operations(&texts, Some(Instant::now() + PATIENCE)).into_iter();
    let differing = operations.filter(|one| one.tag() != similar::DiffTag::Equal);
    differing
        .map(|one| Difference {
            place: bytes(&starts[0], one.old_range()),
            new: &new[bytes(&starts[1], one.new_range())],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Dialect, Language};
    use crate::lsp::positions::Encoding;
    use crate::lsp::text_cache::tests::read;

    #[test]
    fn a_difference_has_the_lines_that_change() {
        for (old, new, expected) in [
            ("a\nb\n", "a\nb\n", vec![]),
            ("a\nb\nc\n", "x\nb\ny\n", vec![(0..2, "x\n"), (4..6, "y\n")]),
            ("a", "a\n", vec![(0..1, "a\n")]),
            ("a\n\n\nb\n", "a\n\nb\n", vec![(3..4, "")]),
            ("", "a\n", vec![(0..0, "a\n")]),
        ] {
            let found = differences(old, new).into_iter().map(|one| (one.place, one.new));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_range_has_its_lines_with_all_of_their_definitions() {
        let text = "a.a=1\na.b=a.a+\\\n   2\na.c=3\n";
        let language = Language { dialect: Dialect::Fixed, extensions: false };
        let mut before = TextCache::new(language);
        let analysis = read(text, language, Encoding::Utf8, &mut before);
        let position = |line, character| lsp_types::Position { line, character };
        for (start, end, lines) in [
            ((0, 0), (0, 0), vec![(0, 1)]),
            ((0, 1), (1, 0), vec![(0, 1)]),
            ((2, 1), (2, 2), vec![(1, 3)]),
            ((2, 1), (3, 2), vec![(1, 4)]),
            ((0, 0), (9, 0), vec![(0, 4)]),
        ] {
            let range =
                lsp_types::Range { start: position(start.0, start.1), end: position(end.0, end.1) };
            let found = edits_within(&analysis, range, &mut before);
            let joined = found.iter().map(|one| (one.range.start.line, one.range.end.line));
            assert_eq!(joined.collect::<Vec<_>>(), lines, "{range:?}");
        }
    }
}
