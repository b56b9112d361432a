//! The formatter's promises about any text, checked for fuzzers and tests.

use crate::diag::{Code, Diagnostics, Severity};
use crate::dialect::{Dialect, Language};
use crate::syntax::{DefinitionItem, parse_definitions};
use crate::text::SourceMap;

use super::format_definitions;

/// Formats a text; the first byte chooses the language.
///
/// # Panics
/// If the new text has another meaning, or if formatting it again changes it.
#[doc(hidden)]
pub fn fuzz_format(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let dialects = [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0];
    let dialect = dialects[usize::from(*first) % dialects.len()];
    let language = Language { dialect, extensions: first / 8 % 2 == 1 };
    let formatted = format_definitions(text, language);
    let again = format_definitions(&formatted.text, language);
    assert_eq!(formatted, again, "{text:?} is not settled, {language:?}");
    assert_eq!(said(text, language), said(&formatted.text, language), "{text:?}, {language:?}");
    if !dialect.is_version_7() {
        let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).count();
        assert!(lines(&formatted.text) <= lines(text), "{text:?} has more lines");
    }
}

/// The meaning of a text, without places: its items, and the mistakes in the
/// rest.
fn said(text: &str, language: Language) -> (Vec<String>, Vec<(Code, String)>) {
    let mut sources = SourceMap::default();
    let source = sources.add("fuzz", text);
    let mut diagnostics = Diagnostics::default();
    let items = parse_definitions(source, &sources, language, &mut diagnostics);
    let items = items.iter().map(|item| match item {
        DefinitionItem::Definition(definition) => {
            let kinds = definition.expr.expr.nodes().map(|(_, node)| without_places(&node.kind));
            let tree = kinds.collect::<Vec<_>>().join("; ");
            format!("{} = {tree}", definition.name.value)
        }
        DefinitionItem::Text(text) => {
            format!("{}({:?}) = {:?}", text.metric.value, text.kind, text.text)
        }
        DefinitionItem::Control { setting, .. } => {
            format!("{:?}={}", setting.option, setting.value)
        }
    });
    // Lines of blanks become empty. The formatter fixes only this mistake.
    let mistakes = diagnostics.iter().filter(|diagnostic| {
        diagnostic.severity == Severity::Error || diagnostic.code != Code::BadDefinitionLine
    });
    let mistakes = mistakes.map(|one| (one.code, one.message.clone()));
    (items.collect(), mistakes.collect())
}

/// The debugging form of a node without the offsets of its spans.
fn without_places(kind: &impl std::fmt::Debug) -> String {
    let text = format!("{kind:?}");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("Span {") {
        out.push_str(before);
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tests::{Generator, mutations};
    use crate::syntax::tokens;

    /// Every corner of a definition file, right and wrong.
    const SEED: &str = concat!(
        "\0\n \t\n#  a comment  \n# goes on \\\n b = c\n#control novalue=1,g=5  \n\n\n",
        "a.b=c+-d*(e ? f:g)[x y]\n  z =\trate( a ) \\\n  / b\na.b(oneline)=text with blanks  \n",
        "a.b ( helptext )= 'quoted\\'\n# no comment\n\\\n text'  \r\nx = avg(y)\r\n",
        "z(oneline) = \"a\" rest\n = b\n1a = 2\nw = (a\n # no comment either\n",
        "k = mkconst(1,type=u64 , units=\"a b\")\nm=matchinst(!/a\\/b/,c)\nq = \\\n'x\n",
        "long = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa*(bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "-cccccccccccccccccccccccccccccccccccc)==0?ddddddddddddddddddd:eeeeeeeeeeeeeeeeeee+f\n",
        "z(helptext) = 'no end\nlast = a \\",
    );

    #[test]
    fn mutated_files_keep_the_promises() {
        let mut generator = Generator::new(5);
        for language in [0u8, 1, 2, 8] {
            let mut data = SEED.as_bytes().to_vec();
            data[0] = language;
            fuzz_format(&data);
            mutations(&data, &mut generator, fuzz_format);
        }
    }

    /// Recorded expressions, which libpcp accepted or refused.
    fn expressions() -> impl Iterator<Item = String> {
        let taken = include_str!("../syntax/testdata/parses.jsonl").lines();
        let refused = include_str!("../syntax/testdata/refusals.jsonl").lines();
        taken.chain(refused).map(|row| {
            let row: serde_json::Value = serde_json::from_str(row).expect("a JSON object");
            row["expr"].as_str().expect("a text").to_owned()
        })
    }

    #[test]
    fn recorded_expressions_keep_the_promises() {
        let mut count = 0;
        for expression in expressions() {
            let long = "a.long.name".repeat(7);
            fuzz_format(format!("\0x={expression}\n\ny={long}+{expression}").as_bytes());
            count += 1;
        }
        assert!(count > 500, "{count} expressions");
    }

    /// Whatever blanks and line breaks an author puts between tokens, the
    /// canonical form is the same.
    #[test]
    fn the_form_depends_on_the_tokens_alone() {
        const BLANKS: &[&str] = &["", " ", "\t", "  ", "\\\n", " \\\n   "];
        let language = Language::from(Dialect::Fixed);
        let mut generator = Generator::new(7);
        let mut compared = 0;
        for expression in expressions() {
            let plain = format_definitions(&format!("x = {expression}\n"), language);
            if plain.mistakes > 0 || expression.contains('\n') {
                continue;
            }
            let found = tokens(&expression, language);
            let mut text = "x".to_owned();
            for (index, at) in found.iter().enumerate() {
                let blank = BLANKS[generator.below(BLANKS.len())];
                let is_call = index > 0 && found[index - 1].token.is_function();
                text.push_str(match (index, is_call) {
                    (0, _) => "=",
                    (_, true) => "",
                    (_, false) if blank.is_empty() => {
                        &expression[found[index - 1].end as usize..at.start as usize]
                    }
                    _ => blank,
                });
                text.push_str(&expression[at.start as usize..at.end as usize]);
            }
            let formatted = format_definitions(&(text.clone() + "\n"), language);
            assert_eq!(formatted, plain, "{text:?}");
            compared += 1;
        }
        assert!(compared > 100, "{compared} expressions");
    }

    #[test]
    fn shuffled_pieces_keep_the_promises() {
        const PIECES: &[&str] = &[
            "\n",
            "\n",
            "\r\n",
            " ",
            "\t",
            "\\",
            "\\\n",
            "#",
            "#control g=5",
            "a",
            "b.c",
            "=",
            "=",
            " = ",
            "+",
            "-",
            "!",
            "(",
            ")",
            "(oneline)",
            "(helptext)",
            "\"",
            "'",
            "?",
            ":",
            ",",
            "==",
            "[x]",
            "[",
            "/",
            "matchinst(/x/,",
            "mkconst(1,type=",
            "avg(",
            "1",
            "2.5",
            "é",
            "\u{b}",
            "a = b\n",
            "a = novalue() ? b : c",
            "topk(1,",
            "\"t\"==",
            "1e-5",
            "max(",
            "\r",
        ];
        let mut generator = Generator::new(6);
        for _ in 0..20_000 {
            let mut data = vec![generator.below(16) as u8];
            for _ in 0..generator.below(24) {
                data.extend(PIECES[generator.below(PIECES.len())].bytes());
            }
            fuzz_format(&data);
        }
    }
}
