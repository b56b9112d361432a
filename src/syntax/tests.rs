//! The parser against recorded answers of libpcp: trees and refusals.

use serde_json::Value;

use crate::diag::Diagnostics;
use crate::dialect::Dialect;
use crate::source::SourceId;

use super::ast::{Expr, NodeKind, UnaryOp};
use super::{ParsedExpr, parse_expr};

/// Parses a text that stands alone.
pub(super) fn parse(text: &str, dialect: Dialect) -> (ParsedExpr, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let parsed = parse_expr(SourceId(0), text, 0, dialect, &mut diagnostics);
    (parsed, diagnostics)
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
            NodeKind::Error => "<error>".to_owned(),
        };
        texts.push(text);
    }
    texts.pop().unwrap_or_default()
}

fn rows(text: &'static str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a row is a JSON object"))
}

/// What libpcp answers, in the form of the rows.
fn answer(parsed: &ParsedExpr) -> Value {
    match &parsed.error {
        None => Value::from("ok"),
        Some(error) => serde_json::json!({ "offset": error.offset, "message": error.message }),
    }
}

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

/// Rows with the key `differs` record what is answered instead of libpcp's mistakes.
#[test]
fn refusals_are_those_of_libpcp() {
    let mut failures = Vec::new();
    for row in rows(include_str!("testdata/refusals.jsonl")) {
        let text = row["expr"].as_str().expect("a text");
        for (dialect, key) in [(Dialect::Pcp6_0, "pcp6"), (Dialect::Pcp7_2, "pcp7")] {
            let (parsed, diagnostics) = parse(text, dialect);
            if answer(&parsed) != row[key] {
                let (was, wanted) = (answer(&parsed), &row[key]);
                failures.push(format!("{dialect:?} {text}: {was}, not {wanted}"));
            }
            if diagnostics.is_empty() != parsed.error.is_none() {
                failures.push(format!("{dialect:?} {text}: {diagnostics:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Prints what a person would see; run with `--nocapture`.
#[test]
fn show() {
    for row in rows(include_str!("testdata/refusals.jsonl")) {
        let text = row["expr"].as_str().expect("a text");
        let (parsed, diagnostics) = parse(text, Dialect::Pcp7_2);
        if parsed.error.is_none() {
            continue;
        }
        println!("{text:32} {}", dump(&parsed.expr));
        for d in &diagnostics {
            println!(
                "      {}..{} {} {} | {} | {:?}",
                d.span.start,
                d.span.end,
                d.code,
                d.message,
                d.help.as_deref().unwrap_or("-"),
                d.fix.as_ref().map(|f| (f.span.start, f.span.end, &f.text))
            );
        }
    }
}

#[test]
fn local_errors_list() {
    let list =
        std::fs::read_to_string("/work/shared/conformance/derived/errors.list.jsonl").unwrap();
    let (mut n6, mut ok6, mut n7, mut ok7) = (0, 0, 0, 0);
    let mut bad = Vec::new();
    for line in list.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = row["expr"].as_str().unwrap();
        let a6 = answer(&parse(text, Dialect::Pcp6_0).0);
        let w6 = serde_json::json!({"offset": row["offset"], "message": row["message"]});
        n6 += 1;
        if a6 == w6 {
            ok6 += 1
        } else {
            bad.push(format!("6 {text:?}: {a6} not {w6}"))
        }
        let w7 = match row.get("v7") {
            Some(v) if v["ok"] == true => Value::from("ok"),
            Some(v) => serde_json::json!({"offset": v["offset"], "message": v["message"]}),
            None => continue,
        };
        n7 += 1;
        let a7 = answer(&parse(text, Dialect::Pcp7_2).0);
        if a7 == w7 { ok7 += 1 } else { bad.push(format!("7 {text:?}: {a7} not {w7}")) }
    }
    println!("6.0: {ok6}/{n6}  7.2: {ok7}/{n7}");
    println!("{}", bad.join("\n"));
}

#[test]
fn large_expressions_take_little_time() {
    let deep = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
    let sum = |n: usize| vec!["disk.dev.read"; n].join(" + ");
    for (text, accepted) in [
        (deep(10_000), true),
        (deep(10_001), false),
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
        (sum(1 << 16), true),
        (format!("{} +", sum(1 << 16)), false),
        ("9".repeat(1 << 20), false),
        (format!("{}.5", "9".repeat(1 << 20)), true),
    ] {
        let (parsed, diagnostics) = parse(&text, Dialect::Fixed);
        let shown = &text[..20];
        assert_eq!(parsed.error.is_none(), accepted, "{shown}");
        assert_eq!(diagnostics.is_empty(), accepted, "{shown}");
        assert!(diagnostics.len() <= 50, "{shown}: {}", diagnostics.len());
    }
}
