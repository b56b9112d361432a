//! Promises of the server about any text and any edits, for fuzzers and tests.

use lsp_types::{CodeActionKind, Position, Range, TextDocumentContentChangeEvent, Uri};

use super::actions::{actions, shown};
use super::analysis::Analysis;
use super::completion::{Vocabulary, completions};
use super::cursor::cursor;
use super::files::{OpenTexts, path_of};
use super::formatting::{edits, edits_within};
use super::hover::hover;
use super::names::{definition, mentions, rename, symbols};
use super::positions::{Encoding, LineIndex, apply};
use super::settings::Settings;
use super::text_cache::TextCache;
use super::tokens::semantic_tokens;
use super::tree::{Others, Tree};
use crate::dialect::{Dialect, Language};
use crate::text::cache::Remembered;

/// Reads a text and an edit from bytes. The first bytes are the edit: place, length, and
/// replacement.
///
/// # Panics
/// A position leads elsewhere, a token stands outside of the text, or an offer of the server cannot
/// be computed.
pub fn fuzz_lsp(data: &[u8]) {
    let [options, line, character, lines, width, rest @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let encoding = if options & 1 == 0 { Encoding::Utf8 } else { Encoding::Utf16 };
    let dialects = [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0];
    let dialect = dialects[usize::from(options / 2) % dialects.len()];
    let language = Language { dialect, extensions: options & 64 != 0 };
    let start = Position { line: u32::from(*line), character: u32::from(*character) };
    let end = Position { line: u32::from(*lines), character: u32::from(*width) };
    let (typed, text) = text.split_at(text.floor_char_boundary(text.len().min(8)));
    let mut edited = text.to_owned();
    let change = TextDocumentContentChangeEvent {
        range: Some(Range { start, end }),
        range_length: None,
        text: typed.to_owned(),
    };
    let mut index = LineIndex::new(&edited, encoding);
    apply(&mut edited, &mut index, vec![change]);
    for (offset, _) in edited.char_indices() {
        let is_within_end = edited[..offset].ends_with('\r') && edited[offset..].starts_with('\n');
        let known = offset - usize::from(is_within_end);
        assert_eq!(index.offset(&edited, index.position(&edited, offset)), known);
    }
    let offset = index.offset(&edited, start);
    asked(&edited, offset, language, encoding);
    let last = index.position(&edited, edited.len()).line;
    let mut line = 0;
    for token in semantic_tokens(&edited, &index, language, &mut Remembered::default()) {
        assert!(token.length > 0);
        line += token.delta_line;
    }
    assert!(line <= last);
    if let Ok(uri) = format!("file://{typed}").parse::<Uri>() {
        path_of(&uri);
    }
}

/// Makes all requests at an offset of a text.
fn asked(text: &str, offset: usize, language: Language, encoding: Encoding) {
    let Ok(uri) = "untitled:fuzz".parse::<Uri>() else { return };
    let mut open = OpenTexts::default();
    open.set(&uri, 1, text);
    let settings = Settings::of(None, language, &open, encoding);
    let others = (&mut Tree::default(), &[][..]);
    let before = &mut TextCache::new(language);
    let analysis = Analysis::new(&uri, &open, settings, others, encoding, before);
    let analysis = analysis.expect("it is open");
    let vocabulary = Vocabulary { metrics: Some(&[]), read: Some(&analysis) };
    let typed = cursor(text, offset);
    let place = offset - typed.within.typed().len()..offset;
    assert_eq!(&text[place.clone()], typed.within.typed());
    completions(&typed, analysis.lines.range(text, place), &vocabulary);
    hover(&analysis, offset, None);
    definition(&analysis, offset);
    let around = Others::default();
    mentions(&analysis, offset, true, &around);
    symbols(&analysis);
    let whole =
        Range { start: Position::default(), end: analysis.lines.position(text, text.len()) };
    let shown = shown(&analysis, &analysis.diagnostics, usize::MAX);
    assert!(shown.iter().all(|one| one.range.end <= whole.end));
    actions(&analysis, &analysis.diagnostics, whole, Some(&[CodeActionKind::EMPTY]));
    edits(&analysis, before);
    let here = Range { start: whole.start, end: analysis.lines.position(text, offset) };
    edits_within(&analysis, here, before);
    // There is an edit for each place, and the edited text can be read.
    if let Ok(edit) = rename(&analysis, offset, "renamed.metric", Some(&[]), &around) {
        let edits = edit.changes.into_iter().flatten().flat_map(|(_, edits)| edits);
        assert!(edits.into_iter().all(|edit| edit.range.end <= whole.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_their_prefixes_hold() {
        for text in [
            "x = rate(a.b[sd\n",
            "a.b = topk(3, c) \\\n + é🎈\nb(oneline) = \"x\n",
            "m = matchinst(/^s/, x)\n# m\n",
            "a.b = 1\r\nc = a.b + (\rd(helptext) = \"x\n  a.b\"",
        ] {
            for options in [0, 1, 66, 67, 5] {
                let data = [&[options, 0, 5, 0, 9][..], b"rate(xyz", text.as_bytes()].concat();
                for end in 0..=data.len() {
                    fuzz_lsp(&data[..end]);
                }
            }
        }
    }
}
