//! Entry points for fuzzers.
//!
//! Each takes arbitrary bytes, which may be malformed, and panics if the parser breaks
//! one of its promises.

use super::ast::Expr;
#[cfg(feature = "render")]
use super::ast::NodeKind;
use super::files::config::{DefinitionItem, parse_definitions};
use super::print::print_expr;
use super::{ParsedExpr, parse_expr};
use crate::diag::Diagnostics;
use crate::diag::json::to_json;
use crate::diag::render::{Style, render};
use crate::dialect::{Dialect, Language};
use crate::text::{SourceId, SourceMap, Span};

/// The language and the text in a fuzzer's bytes.
fn input(data: &[u8]) -> Option<(Language, &str)> {
    let (first, rest) = data.split_first()?;
    let dialects = [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0];
    let dialect = dialects[usize::from(*first) % dialects.len()];
    let extensions = usize::from(*first) / dialects.len() % 2 == 1;
    Some((Language { dialect, extensions }, std::str::from_utf8(rest).ok()?))
}

/// Parses an expression, prints it and parses it again.
#[doc(hidden)]
pub fn fuzz_parse(data: &[u8]) {
    let Some((language, text)) = input(data) else { return };
    let mut sources = SourceMap::default();
    let source = sources.add("fuzz", text);
    let mut diagnostics = Diagnostics::default();
    let parsed = parse_expr(source, text, 0, language, &mut diagnostics);
    check_diagnostics(&diagnostics, &sources, text);
    check_parsed(&parsed, text, language);
    assert_eq!(parsed.error.is_none(), diagnostics.is_empty(), "{diagnostics:?}");
}

/// Parses a file of definitions.
#[doc(hidden)]
pub fn fuzz_definitions(data: &[u8]) {
    let Some((language, text)) = input(data) else { return };
    let mut sources = SourceMap::default();
    let source = sources.add("fuzz", text);
    let mut diagnostics = Diagnostics::default();
    let items = parse_definitions(source, &sources, language, &mut diagnostics);
    check_diagnostics(&diagnostics, &sources, text);
    for item in items {
        if let DefinitionItem::Definition(definition) = item {
            check_place(definition.expr_span, text);
            check_place(definition.name.span, text);
            let expression = &definition.text[definition.skipped as usize..];
            check_parsed(&definition.expr, expression, language);
            // It may be like an earlier one of the text, and made from that.
            let alone =
                parse_expr(SourceId(0), expression, 0, language, &mut Diagnostics::default());
            assert_eq!(alone.error, definition.expr.error);
            assert!(
                without_places(&alone.expr) == without_places(&definition.expr.expr),
                "{expression:?}"
            );
        }
    }
}

/// The tree, with all its nodes at one place.
fn without_places(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    expr.each_span(&mut |span| *span = Span::new(SourceId(0), 0, 0));
    expr
}

fn check_parsed(parsed: &ParsedExpr, text: &str, language: Language) {
    assert!(!parsed.expr.is_empty());
    let mut reached = vec![false; parsed.expr.len()];
    reached[parsed.expr.root().0 as usize] = true;
    for (id, node) in parsed.expr.nodes().rev() {
        assert!(reached[id.0 as usize], "node {id:?} hangs in the air");
        parsed.expr.operands(id, |operand| {
            assert!(operand < id, "operands come first");
            reached[operand.0 as usize] = true;
        });
        assert!(parsed.error.is_some() || !matches!(node.kind, NodeKind::Error));
    }
    if let Some(error) = &parsed.error {
        let length = i64::try_from(text.len()).expect("a text in memory");
        assert!((-1..length.max(1)).contains(&error.offset), "{error:?}");
        return;
    }
    let printed = print_expr(&parsed.expr);
    let mut diagnostics = Diagnostics::default();
    let again = parse_expr(SourceId(0), &printed, 0, language, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{text:?} prints as {printed:?}: {diagnostics:?}");
    assert!(
        without_places(&again.expr) == without_places(&parsed.expr),
        "{text:?} prints as {printed:?}"
    );
}

fn check_diagnostics(diagnostics: &Diagnostics, sources: &SourceMap, text: &str) {
    // Rendering is much slower than parsing; two diagnostics suffice.
    for diagnostic in diagnostics.iter().rev().take(2) {
        assert!(to_json(diagnostic, sources).starts_with('{'));
        #[cfg(feature = "render")]
        assert!(render(diagnostic, sources, Style::Plain).starts_with('['));
    }
    for diagnostic in diagnostics {
        check_place(diagnostic.span, text);
        diagnostic.labels.iter().for_each(|label| check_place(label.span, text));
        diagnostic.fix.iter().for_each(|fix| check_place(fix.span, text));
        assert!(diagnostic.message.len() < 1000, "{}", diagnostic.message);
    }
}

fn check_place(span: Span, text: &str) {
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} in {text:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tests::{Generator, mutations};

    fn seeds() -> Vec<String> {
        let rows = include_str!("testdata/refusals.jsonl").lines();
        let rows = rows.chain(include_str!("testdata/parses.jsonl").lines());
        let rows = rows.map(|row| {
            let row: serde_json::Value = serde_json::from_str(row).expect("a JSON object");
            row["expr"].as_str().expect("a text").to_owned()
        });
        let examples = crate::functions::functions();
        let examples = examples.map(|row| format!("{} == \"x\" + 1e5", row.example.call));
        let grouped = ["max(topk(3, a) by (b, type) / sum(a) by (b))".to_owned()];
        rows.chain(examples).chain(grouped).collect()
    }

    #[test]
    fn mutated_expressions_keep_the_promises() {
        let mut generator = Generator::new(1);
        for seed in seeds() {
            let dialect = generator.below(6) as u8;
            let data: Vec<u8> = [dialect].into_iter().chain(seed.bytes()).collect();
            mutations(&data, &mut generator, fuzz_parse);
        }
    }

    #[test]
    fn shuffled_tokens_keep_the_promises() {
        let words = [
            "a",
            "b.c",
            "1",
            "2.5",
            ".",
            "(",
            "(",
            ")",
            ")",
            ",",
            "?",
            ":",
            "=",
            "+",
            "-",
            "-",
            "*",
            "/",
            "!",
            "!",
            "<",
            "==",
            "&&",
            "||",
            "[x]",
            "[",
            "\"byte\"",
            "\"",
            "avg(",
            "delta(",
            "defined(",
            "anon(",
            "scalar(",
            "rescale(",
            "matchinst(",
            "matchinst(/x/,",
            "mkconst(",
            "mkconst(1,type=",
            "novalue()",
            "novalue(",
            "type",
            "units",
            "meta",
            "%",
            "&",
            "e5",
            " ",
            "\u{e9}",
            "'",
            "#",
            "rate (",
            "Avg(",
            "==",
            "!=",
            "abs(",
            "pow(",
            "clamp(",
            "topk(3,",
            "quantile(0.5,",
            "ewma(",
            ",\"5 min\")",
            "matchvalue(/x/,",
            "1e5",
            "sum(",
            ") by (",
            " by ",
            ",c)",
        ];
        let mut generator = Generator::new(2);
        for _ in 0..60_000 {
            let mut data = vec![generator.below(6) as u8];
            for _ in 0..generator.below(16) {
                data.extend(words[generator.below(words.len())].bytes());
            }
            fuzz_parse(&data);
        }
    }

    #[test]
    fn mutated_files_keep_the_promises() {
        let mut generator = Generator::new(3);
        let mut file = String::from("\0# comment \\\n joined\n#control novalue=1,g=5\n");
        for (number, seed) in seeds().iter().enumerate().step_by(60) {
            file.push_str(&format!("m{number} = {seed}\nm{number}(oneline) = \"text\\\n of two\n"));
            file.push_str("lines\"\r\nx.y = a \\\n + b\n");
        }
        mutations(file.as_bytes(), &mut generator, fuzz_definitions);
    }
}
