//! Cache of a text's earlier states, so that an edit costs only what it changes. Entries are
//! found by the text of a line or an expression.
//!
//! It only saves work: no result depends on it.

use lsp_types::SemanticToken;

use crate::dialect::Language;
use crate::format::FormatCache;
use crate::syntax::ParsedBefore;
use crate::text::cache::Remembered;

/// Results from earlier states of one text.
#[derive(Debug)]
pub struct TextCache {
    /// Expressions, by their texts.
    pub parsed: ParsedBefore,
    /// Formatted definitions, by their lines.
    pub formatted: FormatCache,
    /// Tokens, by logical lines.
    pub tokens: Remembered<Box<[SemanticToken]>>,
}

impl TextCache {
    /// An empty cache for texts in this language.
    pub fn new(language: Language) -> TextCache {
        let (formatted, tokens) = Default::default();
        TextCache { parsed: ParsedBefore::new(language), formatted, tokens }
    }

    /// Forgets everything if the language has changed.
    pub fn use_language(&mut self, language: Language) {
        if self.parsed.language() != language {
            *self = TextCache::new(language);
        }
    }
}

#[cfg(test)]
pub mod tests {
    use std::fmt::Write as _;

    use lsp_types::{Range, TextDocumentContentChangeEvent, Uri};
    use proptest::prelude::*;

    use super::*;
    use crate::dialect::Dialect;
    use crate::format::{format_again, format_definitions};
    use crate::lsp::analysis::Analysis;
    use crate::lsp::files::OpenTexts;
    use crate::lsp::names::symbols;
    use crate::lsp::positions::{Encoding, LineIndex, apply};
    use crate::lsp::settings::Settings;
    use crate::lsp::tokens::semantic_tokens;
    use crate::lsp::tree::Tree;

    /// Analyses a text that is no file.
    pub fn read(
        text: &str,
        language: Language,
        encoding: Encoding,
        before: &mut TextCache,
    ) -> Analysis {
        let uri: Uri = "untitled:edited".parse().expect("it is one");
        let mut open = OpenTexts::default();
        open.set(&uri, 1, text);
        let settings = Settings::of(None, language, &open, encoding);
        let others = (&mut Tree::default(), &[][..]);
        Analysis::new(&uri, &open, settings, others, encoding, before).expect("it is open")
    }

    /// All results of a text, as text.
    fn said(analysis: &Analysis, before: &mut TextCache) -> String {
        let (text, language) = (analysis.text(), analysis.settings.language);
        let mut said = format!("{:#?}\n{:#?}\n", analysis.registry.definitions(), analysis.lines);
        for one in analysis.registry.definitions() {
            let _ = writeln!(said, "{}: {:?}", one.name, analysis.mentions(&one.name));
        }
        let _ = writeln!(said, "{:#?}\n{:?}", analysis.diagnostics, symbols(analysis));
        let tokens = semantic_tokens(text, &analysis.lines, language, &mut before.tokens);
        let formatted = format_again(text, &mut before.parsed, &mut before.formatted);
        let _ = writeln!(said, "{tokens:?}\n{formatted:?}");
        assert_eq!(formatted, format_definitions(text, language));
        said
    }

    /// Pieces that edits put into texts.
    const PIECES: [&str; 25] = [
        "",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\\\n",
        "\\",
        " ",
        "a",
        "= ",
        "a.b = c + d\n",
        "x = a.b / 2\n",
        "x=topk(3,y)\n",
        "y = rate(a.b[sd\\]x]) +\\\n 1 \n",
        "# text é🎈\n",
        "#control novalue=1\n",
        "x(oneline) = short\n",
        "x(helptext) = \"two\nlines\"\n",
        "y(oneline)=\"",
        "z = (a +\n  b\n",
        "w = mkconst(1, type=u64, units=\"sec\")\n",
        "\"",
        "v = sum(x) by (rack, dc)\n",
        "u = matchinst(!/a|b/, x) ? defined(y) : -1.5\n",
        "t = a = b # c\n",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// After any edits a text has the same results as without a cache.
        #[test]
        fn earlier_states_of_a_text_change_nothing(
            edits in prop::collection::vec((any::<u16>(), 0usize..12, 0..PIECES.len()), 1..24),
            kind in 0usize..6,
            is_utf16 in any::<bool>(),
        ) {
            let dialect = [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0][kind / 2];
            let language = Language { dialect, extensions: kind % 2 == 0 };
            let encoding = if is_utf16 { Encoding::Utf16 } else { Encoding::Utf8 };
            let mut text = String::new();
            let mut lines = LineIndex::new(&text, encoding);
            let mut before = TextCache::new(language);
            for (place, length, piece) in edits {
                let start = text.floor_char_boundary(usize::from(place) % (text.len() + 1));
                let end = text.floor_char_boundary((start + length).min(text.len())).max(start);
                let range = Range {
                    start: lines.position(&text, start),
                    end: lines.position(&text, end),
                };
                let change = TextDocumentContentChangeEvent {
                    range: Some(range),
                    range_length: None,
                    text: PIECES[piece].to_owned(),
                };
                apply(&mut text, &mut lines, vec![change]);
                let again = read(&text, language, encoding, &mut before);
                let mut nothing = TextCache::new(language);
                let new = read(&text, language, encoding, &mut nothing);
                let again = said(&again, &mut before);
                prop_assert_eq!(again, said(&new, &mut nothing), "{:?}", text);
            }
        }
    }

    #[test]
    fn an_edit_costs_what_it_changes() {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        let mut lines: Vec<String> = (0..300)
            .map(|at| match at % 3 {
                0 => format!("# {at}"),
                1 => format!("a.b{at} = a.b{} + \\\n {at}", at - 1),
                _ => format!("a.b{at} = rate(x.y{at}"),
            })
            .collect();
        let mut before = TextCache::new(language);
        let mut count = |text: &str| {
            let analysis = read(text, language, Encoding::Utf16, &mut before);
            said(&analysis, &mut before);
            let TextCache { parsed, formatted, tokens } = &before;
            (parsed.count(), formatted.count(), tokens.computed())
        };
        // Only correct definitions are formatted.
        assert_eq!(count(&lines.join("\n")), (200, 100, 300));
        lines[100].push_str(" + 1");
        assert_eq!(count(&lines.join("\n")), (201, 101, 301));
        lines.insert(7, "\n# new".to_owned());
        assert_eq!(count(&lines.join("\n")), (201, 101, 303));
        lines.swap(20, 200);
        assert_eq!(count(&lines.join("\n")), (201, 101, 303));
    }
}
