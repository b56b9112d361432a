//! What is known of a text from its earlier states, so that an edit costs what it
//! changes: everything here is found by the text of a line or an expression.
//!
//! It only saves work. What a text says never depends on it.

use lsp_types::SemanticToken;

use crate::dialect::Language;
use crate::format::FormatCache;
use crate::remembered::Remembered;
use crate::syntax::ParsedBefore;

/// What earlier states of one text said.
#[derive(Debug)]
pub struct Before {
    /// Expressions, by their texts.
    pub parsed: ParsedBefore,
    /// Definitions in their usual form, by their lines.
    pub formatted: FormatCache,
    /// What each word is, by logical lines.
    pub tokens: Remembered<Box<[SemanticToken]>>,
}

impl Before {
    /// Nothing is known of a text in this language.
    pub fn new(language: Language) -> Before {
        let (formatted, tokens) = Default::default();
        Before { parsed: ParsedBefore::new(language), formatted, tokens }
    }

    /// Forgets everything if the language is another one now.
    pub fn use_language(&mut self, language: Language) {
        if self.parsed.language() != language {
            *self = Before::new(language);
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

    /// A text that is no file, as it is read.
    pub fn read(
        text: &str,
        language: Language,
        encoding: Encoding,
        before: &mut Before,
    ) -> Analysis {
        let uri: Uri = "untitled:edited".parse().expect("it is one");
        let mut open = OpenTexts::default();
        open.set(&uri, 1, text);
        let settings = Settings::of(None, language, &open, encoding);
        let others = (&mut Tree::default(), &[][..]);
        Analysis::new(&uri, &open, settings, others, encoding, before).expect("it is open")
    }

    /// All that a text says, as text.
    fn said(analysis: &Analysis, before: &mut Before) -> String {
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

    /// What edits put into texts.
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

        /// After any edits a text says what it says to somebody who never saw it.
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
            let mut before = Before::new(language);
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
                let mut nothing = Before::new(language);
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
        let mut before = Before::new(language);
        let mut count = |text: &str| {
            let analysis = read(text, language, Encoding::Utf16, &mut before);
            said(&analysis, &mut before);
            let Before { parsed, formatted, tokens } = &before;
            (parsed.count(), formatted.count(), tokens.computed())
        };
        // Only what is right is formatted.
        assert_eq!(count(&lines.join("\n")), (200, 100, 300));
        lines[100].push_str(" + 1");
        assert_eq!(count(&lines.join("\n")), (201, 101, 301));
        lines.insert(7, "\n# new".to_owned());
        assert_eq!(count(&lines.join("\n")), (201, 101, 303));
        lines.swap(20, 200);
        assert_eq!(count(&lines.join("\n")), (201, 101, 303));
    }
}
