//! The parser against recorded answers of libpcp: trees and refusals.

use serde_json::Value;

use crate::diag::Diagnostics;
use crate::diag::fixes::applied;
use crate::dialect::{Dialect, Language};
use crate::text::{SourceId, SourceMap};

use super::ast::{Expr, Literal, NodeKind, UnaryOp};
use super::{MAX_REPORTS, ParsedExpr, parse_definitions, parse_expr};

/// Parses a text that stands alone.
pub(super) fn parse(text: &str, language: impl Into<Language>) -> (ParsedExpr, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let parsed = parse_expr(SourceId(0), text, 0, language, &mut diagnostics);
    (parsed, diagnostics)
}

/// The text of a definition file with all certain edits applied.
pub(super) fn mended(text: &str) -> Option<String> {
    let mut sources = SourceMap::default();
    let source = sources.add("x.conf", text);
    let mut diagnostics = Diagnostics::default();
    parse_definitions(source, &sources, Dialect::Fixed, &mut diagnostics);
    applied(&diagnostics, source, &sources).map(|(text, _)| text)
}

/// The tree as libpcp's debugging output writes it.
pub(super) fn dump(expr: &Expr) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(expr.len());
    for (_, node) in expr.nodes() {
        let of = |id: &super::ast::ExprId| &texts[id.0 as usize];
        let text = match &node.kind {
            NodeKind::Number(number) => number.text.to_string(),
            NodeKind::Metric(name) => name.to_string(),
            NodeKind::Select { operand, instance } => {
                format!("filter([{}], {})", instance.value, of(operand))
            }
            NodeKind::Match { pattern, negated, operand } => {
                let negation = if *negated { "!" } else { "" };
                format!("filter({negation}/{}/, {})", pattern.value, of(operand))
            }
            NodeKind::Unary { op: UnaryOp::Neg, operand } => format!("(-{})", of(operand)),
            NodeKind::Unary { op: UnaryOp::Not, operand } => format!("(!{})", of(operand)),
            NodeKind::Binary { op, left, right, .. } => {
                format!("({} {} {})", of(left), op.symbol(), of(right))
            }
            NodeKind::Ternary { guard, yes, no } => {
                format!("({} ? {} : {})", of(guard), of(yes), of(no))
            }
            NodeKind::Aggregate { function, metric } => {
                format!("{}({})", function.name(), metric.value)
            }
            NodeKind::Defined(metric) => format!("defined({})", metric.value),
            NodeKind::Anon(value_type) => format!("anon({value_type})"),
            NodeKind::Temporal { function, operand } => {
                format!("{}({})", function.name(), of(operand))
            }
            NodeKind::Scalar(operand) => format!("scalar({})", of(operand)),
            NodeKind::Rescale { operand, units } => {
                format!("rescale({}, \"{}\")", of(operand), units.value)
            }
            NodeKind::MkConst { number, .. } => number.value.text.to_string(),
            NodeKind::NoValue(_) => "novalue()".to_owned(),
            NodeKind::Call { callee, literal, operands } => {
                let mut arguments: Vec<String> =
                    operands.iter().map(|operand| of(operand).clone()).collect();
                match literal.as_ref().map(|literal| &literal.value) {
                    None => {}
                    Some(Literal::Rank(k)) => arguments.insert(0, k.to_string()),
                    Some(Literal::Fraction(q)) => arguments.insert(0, q.text.to_string()),
                    Some(Literal::Interval { length, .. }) => arguments.push(format!("{length:?}")),
                    Some(Literal::Pattern { pattern, negated }) => {
                        let negation = if *negated { "!" } else { "" };
                        arguments.insert(0, format!("{negation}/{pattern}/"));
                    }
                }
                format!("{}({})", callee.name(), arguments.join(", "))
            }
            NodeKind::Grouped { operand, labels } => {
                let labels: Vec<&str> = labels.iter().map(|label| &*label.value).collect();
                format!("({} by {})", of(operand), labels.join(", "))
            }
            NodeKind::Text(text) => format!("{text:?}"),
            NodeKind::Error => "<error>".to_owned(),
        };
        texts.push(text);
    }
    texts.pop().unwrap_or_default()
}

fn rows(text: &'static str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a row is a JSON object"))
}

/// libpcp's answer, in the form of the rows.
fn answer(parsed: &ParsedExpr) -> Value {
    match &parsed.error {
        None => Value::from("ok"),
        Some(error) => serde_json::json!({ "offset": error.offset, "message": error.message }),
    }
}

/// Rows are expressions of each kind and random ones.
#[test]
fn trees_are_those_of_libpcp() {
    let mut failures = Vec::new();
    for row in rows(include_str!("testdata/parses.jsonl")) {
        let text = row["expr"].as_str().expect("a text");
        for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2, Dialect::Fixed] {
            let (parsed, diagnostics) = parse(text, dialect);
            let wanted = match row.get("pcp6") {
                Some(refusal) if dialect == Dialect::Pcp6_0 => refusal.clone(),
                _ => Value::from("ok"),
            };
            if answer(&parsed) != wanted {
                failures.push(format!("{dialect:?} {text}: {}, not {wanted}", answer(&parsed)));
            } else if wanted == "ok" && dump(&parsed.expr) != row["parse"] {
                failures.push(format!("{dialect:?} {text}: {}", dump(&parsed.expr)));
            }
            if diagnostics.is_empty() != (wanted == "ok") {
                failures.push(format!("{dialect:?} {text}: {diagnostics:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Rows are mistakes of each kind and random tokens. Rows with the key `differs` record our
/// answers, which replace libpcp's mistakes.
#[test]
fn refusals_are_those_of_libpcp() {
    let mut failures = Vec::new();
    for row in rows(include_str!("testdata/refusals.jsonl")) {
        let text = row["expr"].as_str().expect("a text");
        for (dialect, key) in [(Dialect::Pcp6_0, "pcp6"), (Dialect::Pcp7_2, "pcp7")] {
            // Some rows were recorded with one version only.
            let Some(wanted) = row.get(key) else { continue };
            let (parsed, diagnostics) = parse(text, dialect);
            if answer(&parsed) != *wanted {
                let was = answer(&parsed);
                failures.push(format!("{dialect:?} {text}: {was}, not {wanted}"));
            }
            if diagnostics.is_empty() != parsed.error.is_none() {
                failures.push(format!("{dialect:?} {text}: {diagnostics:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn extended(dialect: Dialect) -> Language {
    Language { dialect, extensions: true }
}

/// Extensions change nothing about texts that libpcp accepts. Texts that are
/// still refused keep libpcp's words and places.
#[test]
fn extensions_leave_the_language_of_libpcp_alone() {
    let mut understood = Vec::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");
    let files = std::fs::read_dir(corpus).expect("the recorded cases");
    let mut texts: Vec<String> = Vec::new();
    let recorded = [include_str!("testdata/parses.jsonl"), include_str!("testdata/refusals.jsonl")];
    texts.extend(recorded.map(str::to_owned));
    for file in files.map(|entry| entry.expect("a readable folder").path()) {
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            texts.push(std::fs::read_to_string(file).expect("a readable file"));
        }
    }
    let mut count = 0;
    for line in texts.iter().flat_map(|text| text.lines()) {
        let row: Value = serde_json::from_str(line).expect("a row is a JSON object");
        let text = row["expr"].as_str().expect("a text");
        count += 1;
        for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2, Dialect::Fixed] {
            let (plain, _) = parse(text, dialect);
            let (wide, diagnostics) = parse(text, extended(dialect));
            assert_eq!(diagnostics.is_empty(), wide.error.is_none(), "{text}: {diagnostics:?}");
            match (&plain.error, &wide.error) {
                (None, None) => assert_eq!(plain.expr, wide.expr, "{text}"),
                (Some(error), Some(same)) => assert_eq!(error, same, "{text}"),
                (None, Some(_)) => panic!("{text} is refused with extensions: {diagnostics:?}"),
                (Some(_), None) if dialect == Dialect::Fixed => {
                    understood.push(format!("{text}  as  {}", dump(&wide.expr)));
                }
                (Some(_), None) => {}
            }
        }
    }
    assert!(count > 3_000, "{count} texts");
    understood.sort();
    understood.dedup();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("testdata");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!("understood_with_extensions", understood.join("\n"));
    });
}

#[test]
fn extensions_have_trees() {
    for (text, expected) in [
        ("abs(a - b)", "abs((a - b))"),
        ("pow(a,2)*b", "(pow(a, 2) * b)"),
        ("clamp(-a, 0, b ? c : d)", "clamp((-a), 0, (b ? c : d))"),
        ("topk( 3 , rate(a))", "topk(3, rate(a))"),
        ("quantile(.5,a)", "quantile(.5, a)"),
        ("avg_over(a/b,\"1h 30min\")", "avg_over((a / b), 5400s)"),
        ("matchvalue(!/a\\/b/, c) && d", "(matchvalue(!/a/b/, c) && d)"),
        ("matchinst(/x/, matchvalue(/y/, z) / 2)", "filter(/x/, (matchvalue(/y/, z) / 2))"),
        ("avg(a + b)", "avg((a + b))"),
        ("avg((a))", "avg(a)"),
        ("sum(avg(a) > 1)", "sum((avg(a) > 1))"),
        ("1e6 + 2.5E-3", "(1e6 + 2.5E-3)"),
        ("1.e3", "1.e3"),
        ("mkconst(1e6, type=double)", "1e6"),
        ("a == \"x\"", "(a == \"x\")"),
        ("\"x\" != a && b", "((\"x\" != a) && b)"),
        ("a == \"x\" == b", "((a == \"x\") == b)"),
        ("a == \"x\" == \"y\"", "((a == \"x\") == \"y\")"),
        ("!a == \"x\"", "(!(a == \"x\"))"),
        ("a + !\"x\" == b", "(a + (!(\"x\" == b)))"),
        ("a ? \"x\" == b : novalue()", "(a ? (\"x\" == b) : novalue())"),
        ("(abs(a))[x]", "filter([x], abs(a))"),
        ("abs + topk.k", "(abs + topk.k)"),
    ] {
        for dialect in [Dialect::Pcp7_2, Dialect::Fixed] {
            let (parsed, diagnostics) = parse(text, extended(dialect));
            assert_eq!(dump(&parsed.expr), expected, "{text}: {diagnostics:?}");
            assert_eq!(parsed.error, None, "{text}");
            let (plain, diagnostics) = parse(text, dialect);
            assert_eq!(diagnostics.is_empty(), plain.error.is_none(), "{text}: {diagnostics:?}");
            let accepted = ["avg((a))", "abs + topk.k"];
            assert_eq!(plain.error.is_none(), accepted[1] == text, "{text}");
        }
    }
}

#[test]
fn extensions_have_mistakes() {
    for text in [
        "abs()",
        "abs(a, b)",
        "pow(a)",
        "pow(a,)",
        "clamp(a, b)",
        "topk(a, 3)",
        "topk(0, a)",
        "topk(1.5, a)",
        "topk(-1, a)",
        "quantile(2, a)",
        "avg_over(a, 5)",
        "avg_over(a, \"5 fortnights\")",
        "avg_over(a, \"10ms\")",
        "avg_over(a \"10 sec\")",
        "ewma(a)",
        "matchvalue(a, /x/)",
        "matchvalue(/(/, a)",
        "matchvalue(/x/)",
        "abs (a)",
        "Abs(a)",
        "log10(a)",
        "\"x\"",
        "\"x\" == \"y\"",
        "a < \"x\"",
        "a == \"x\" + 1",
        "1 + \"x\" == a",
        "avg(a, b)",
        "avg()",
        "1e400",
        "1e",
        "1e5x",
    ] {
        let (parsed, diagnostics) = parse(text, extended(Dialect::Fixed));
        assert!(parsed.error.is_some(), "{text}");
        assert_eq!(diagnostics.len(), 1, "{text}: {diagnostics:?}");
    }
}

/// The limit of reports holds whichever stage finds the mistakes.
#[test]
fn reports_have_one_bound() {
    let mixed = "1a + & & b =~ 'c' {d} + ".repeat(20);
    for text in [
        "1a + ".repeat(100),
        "a & & ".repeat(100),
        "a ++ b + ".repeat(100),
        "a ~ b + ".repeat(100),
        "a b + ".repeat(100),
        "scalar(a, b) + ".repeat(100),
        "mkconst(1, units=\"x\") + ".repeat(100),
        mixed,
    ] {
        for language in [Dialect::Fixed.into(), extended(Dialect::Fixed)] {
            let (_, diagnostics) = parse(&format!("{text}c"), language);
            assert_eq!(diagnostics.len(), MAX_REPORTS, "{text}");
        }
    }
}

#[test]
fn large_expressions_take_little_time() {
    let deep = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
    let sum = |n: usize| vec!["disk.dev.read"; n].join(" + ");
    for (text, accepted) in [
        (deep(9_997), true),
        (deep(9_998), false),
        (format!("{}a", "(".repeat(10_000)), false),
        (format!("a{}", ")".repeat(1 << 20)), false),
        ("(".repeat(1 << 20), false),
        ("!".repeat(1 << 20), false),
        ("a ".repeat(1 << 19), false),
        ("scalar(".repeat(1 << 17), false),
        (format!("{}{}", "delta(".repeat(500), "a b ".repeat(1 << 18)), false),
        (format!("{}{}", "-".repeat(800), "a ".repeat(100)), false),
        ("%".repeat(1 << 20), false),
        ("'".repeat(1 << 20), false),
        ("a?".repeat(1 << 19), false),
        ("foo(".repeat(1 << 18), false),
        ("1e".repeat(1 << 19), false),
        ("1x ".repeat(1 << 18), false),
        (":\"x\"".repeat(1 << 18), false),
        (sum(1 << 16), true),
        (format!("{} +", sum(1 << 16)), false),
        ("9".repeat(1 << 20), false),
        (format!("{}.5", "9".repeat(1 << 20)), true),
    ] {
        for extensions in [false, true] {
            check_large(&text, Language { extensions, ..Language::default() }, accepted);
        }
    }
    let groups = format!("{}a", "sum(a) by (b) + ".repeat(1 << 16));
    check_large(&groups, Language::default(), false);
    for (text, accepted) in [
        (groups, true),
        (format!("{}a{}", "abs(".repeat(9_000), ")".repeat(9_000)), true),
        (format!("{}a{}", "abs(".repeat(10_001), ")".repeat(10_001)), false),
        (vec!["abs(a) + pow(b, 2)"; 1 << 15].join(" == "), true),
        ("pow(a, ".repeat(1 << 17), false),
        ("\"x\" == ".repeat(1 << 17), false),
        (format!("{}1", "1e5 + ".repeat(1 << 17)), true),
    ] {
        check_large(&text, extended(Dialect::Fixed), accepted);
    }
}

fn check_large(text: &str, language: Language, accepted: bool) {
    let (parsed, diagnostics) = parse(text, language);
    let shown = &text[..20];
    assert_eq!(parsed.error.is_none(), accepted, "{shown}");
    assert_eq!(diagnostics.is_empty(), accepted, "{shown}");
    assert!(diagnostics.len() <= MAX_REPORTS, "{shown}: {}", diagnostics.len());
}

/// Numbers that look random and are the same in each run.
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // An additive sequence, scrambled: SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) % limit as u64) as usize
    }
}

/// Calls `check` with the data, cut off at every byte, and with bytes replaced.
pub(crate) fn mutations(data: &[u8], generator: &mut Generator, check: impl Fn(&[u8])) {
    for end in 0..=data.len() {
        check(&data[..end]);
    }
    for _ in 0..data.len().min(200) {
        let mut changed = data.to_vec();
        let place = generator.below(changed.len());
        changed[place] = match generator.below(3) {
            0 => changed[place] ^ 1 << generator.below(8),
            1 => b"()[]/\\\"'?:=,!-+.\n#&"[generator.below(19)],
            _ => data[generator.below(data.len())],
        };
        check(&changed);
    }
}

#[test]
fn keywords_are_reserved_where_they_have_a_meaning() {
    for (text, dialect, expected) in [
        ("type + units", Dialect::Fixed, "(type + units)"),
        ("meta(oneline)", Dialect::Fixed, "<error>"),
        ("avg(indom)", Dialect::Fixed, "avg(indom)"),
        ("avg(indom)", Dialect::Pcp6_0, "avg(indom)"),
        ("avg(indom)", Dialect::Pcp7_2, "<error>"),
        ("mkconst(1, meta=type)", Dialect::Fixed, "1"),
        ("a ? novalue(type=u64) : units", Dialect::Fixed, "(a ? novalue() : units)"),
        ("a ? b : novalue() + 1", Dialect::Pcp7_2, "((a ? b : novalue()) + 1)"),
        ("a * b ? c : novalue() ? d : e", Dialect::Pcp7_2, "(((a * b) ? c : novalue()) ? d : e)"),
        ("novalue ? novalue : novalue", Dialect::Pcp7_2, "(novalue ? novalue : novalue)"),
        ("matchinst(/x/, a / b / c)", Dialect::Pcp6_0, "filter(/x/, ((a / b) / c))"),
        ("scalar(matchinst(!/a/, b)) / c", Dialect::Fixed, "(scalar(filter(!/a/, b)) / c)"),
    ] {
        let (parsed, _) = parse(text, dialect);
        assert_eq!(dump(&parsed.expr), expected, "{text} in {dialect:?}");
        assert_eq!(parsed.error.is_some(), expected == "<error>", "{text} in {dialect:?}");
    }
}

#[test]
fn places_are_those_of_the_surrounding_text() {
    let mut sources = crate::text::SourceMap::default();
    let source = sources.add("file", "x = a.b[c] * avg(d)");
    let mut diagnostics = Diagnostics::default();
    let parsed = parse_expr(source, "a.b[c] * avg(d)", 4, Dialect::Fixed, &mut diagnostics);
    let places: Vec<&str> = parsed.expr.nodes().map(|(_, node)| sources.slice(node.span)).collect();
    assert_eq!(places, ["a.b", "a.b[c]", "avg(d)", "a.b[c] * avg(d)"]);
}
