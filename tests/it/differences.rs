//! Intended differences between the library's answers and libpcp's: the list in
//! `tests/conformance/differences.txt`, made from recorded answers.
//!
//! Every case whose answer differs has a row. The test computes the row's group. The smallest
//! part of the expression that the dialects answer differently decides about it. If all
//! dialects agree against libpcp, the parts of the expression decide. A difference without a
//! group fails the test, and so does an outdated list.
//!
//! `DIFFERENCES=update` writes the list anew; `PMDERIVE_CORPUS` must name the
//! larger corpus then. Without that corpus only rows on `tests/conformance`
//! are checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Engine, Registered, Registry, Space};
use pmderive::syntax::ast::{Aggregate, Expr, Node, NodeKind, Temporal, UnaryOp};
use pmderive::syntax::parse_expr;
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::program::{OutputId, Reason, Status};
use serde_json::Value;

use crate::answers;
use crate::choosing::choosing;
use answers::{Answer, answers, cases_of, difference};

/// Groups: names, and why the answers differ.
const GROUPS: &[(&str, &str)] = &[
    (
        "Q6",
        "The words type, semantics, units, indom and meta name metrics, too, except where\nmkconst() and novalue() take keywords.",
    ),
    (
        "Q9",
        "Two branches of novalue() are refused. libpcp takes the metric for the one that was\nregistered before it.",
    ),
    (
        "Q11",
        "!x is a truth value: U32, without units, and no counter. libpcp keeps type, semantics\nand units of the operand.",
    ),
    (
        "Q20",
        "A guard over other instances than the branches is refused. libpcp pairs them by position.",
    ),
    (
        "Q21",
        "Comparisons and && || are no counters. libpcp calls them counters if an operand is one.",
    ),
    ("Q22", "A dimension beyond -8 to 7 is refused. libpcp wraps it."),
    (
        "Q23",
        "Units say what scale the value is in. libpcp takes the scale from one of the operands,\nwhich may not even have that dimension.",
    ),
    (
        "Q26",
        "An expression that needs no metric has its value at every record. libpcp fails at the\nsecond fetch of an archive.",
    ),
    (
        "Q28",
        "Guard and branches are paired by instance. libpcp pairs them by position, and values land\non other instances.",
    ),
    ("Q29", "avg() is computed in double precision and rounded once, and so is sum() of FLOAT."),
    (
        "Q31",
        "A counter of type 32 that decreases has no rate, as others have none. libpcp gives the rate\nof the wrapped difference.",
    ),
    (
        "Q32",
        "An unsigned value that is no counter and decreases has a negative rate. libpcp gives that of\nthe wrapped difference.",
    ),
    (
        "Q34",
        "delta(x[i]) and rate(x[i]) are (delta(x))[i] and (rate(x))[i], and constants change by 0.\nlibpcp never has a value.",
    ),
    (
        "Q40",
        "The product of a counter and anything else is a counter. libpcp takes the semantics of the\nleft operand, or those of the right one if the left is a constant.",
    ),
    (
        "gap",
        "No rate and no difference spans a gap of the archive: a mark, where it is not known what\nhappened. libpcp computes over it.",
    ),
    (
        "nested",
        "A definition that is only the name of another derived metric is refused. libpcp accepts it\nand never has a value.",
    ),
];

/// Differences of walks, of which no answers are recorded; the
/// walks of `tests/it/differential.rs` leave them out. Names, and what differs.
const OF_WALKS: &[(&str, &str)] = &[
    (
        "backward-instances",
        "In interpolated walks instances are found by their names as of the fetch. libpcp that goes\nbackward looks them up at the time of the next fetch, when they may have other names or no\ndomain at all.",
    ),
    (
        "backward-gap",
        "An interpolated walk that begins in a gap has no values there. It goes backward from behind the\nmark, or forward from the very time of the last record before it. libpcp does not notice the\nmark, and gives values across the gap.",
    ),
    (
        "start-at-index",
        "A walk of any kind that starts at a time which the temporal index has begins with the record\nof that time. libpcp passes over the records of that time, and often finds the end of the\narchive.",
    ),
    (
        "interpolated-names",
        "In interpolated walks names of instances are those at the time of the sample. libpcp looks\nselected instances up at the time of the sample to come.",
    ),
    (
        "verdicts",
        "In interpolated walks a pattern looks at an instance again when its name changes. It also\nlooks at instances that have left their domain, by the names that they had. libpcp, and so\n6.0 and 7.2 here, keeps the first answer of the pattern, which is no if the name was not\nknown then.",
    ),
];

/// A case that the library answers otherwise than libpcp.
struct Row {
    group: &'static str,
    id: String,
    expr: String,
    /// What differs, by dialect.
    differences: Vec<String>,
}

/// Answers of one part of an expression in 7.2 and in Fixed.
struct Part<'e> {
    expr: &'e Expr,
    node: &'e Node,
    difference: String,
}

/// The smallest part of a case that two dialects answer differently, the
/// first one of them in the order of evaluation.
fn smallest_part<'e>(case: &Answer, expr: &'e Expr, archives: &Path) -> Option<Part<'e>> {
    let text = case["expr"].as_str().unwrap_or_default();
    for (_, node) in expr.nodes() {
        let (start, end) = (node.span.start as usize, node.span.end as usize);
        let mut part = case.clone();
        part.insert("expr".to_string(), Value::String(text[start..end].to_string()));
        let [library, own] = [Dialect::Pcp7_2, Dialect::Fixed].map(|dialect| {
            answers(std::slice::from_ref(&part), archives, dialect, Backend::Interp).remove(0)
        });
        if let Some(difference) = difference(&library, &own) {
            return Some(Part { expr, node, difference });
        }
    }
    None
}

/// Whether any fetch of a part lacks its value because of a gap.
fn has_gap(case: &Answer, part: &Part<'_>, archives: &Path) -> bool {
    let text = case["expr"].as_str().unwrap_or_default();
    let text = &text[part.node.span.start as usize..part.node.span.end as usize];
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(Dialect::Fixed);
    let source = sources.add("<part>", text);
    registry.register("qa.x", source, &sources, &mut diagnostics).expect("a part of an expression");
    let archive = archives.join(case["archive"].as_str().unwrap_or_default());
    let source = ArchiveContext::open(&archive).expect("an archive of the corpus");
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let selection: Vec<&Registered> = registry.get("qa.x").into_iter().collect();
    let mut session = choosing(engine, source, &registry, &selection, &mut diagnostics)
        .expect("a readable archive");
    let mut space = Space::default();
    while let Ok(sample) = session.sample(&mut space) {
        if sample.values.get(OutputId(0)).status == Status::Empty(Reason::Gap) {
            return true;
        }
    }
    false
}

/// The group of a difference between the dialects.
fn group_of_part(case: &Answer, part: &Part<'_>, archives: &Path) -> Option<&'static str> {
    let Part { expr, node, difference } = part;
    let about = |key: &str| difference.starts_with(key);
    let about_count = difference.contains(": n: ");
    let kind_of = |id| &expr.node(id).kind;
    let is_constant = |id| matches!(kind_of(id), NodeKind::Number(_) | NodeKind::MkConst { .. });
    match &node.kind {
        NodeKind::Aggregate { function: Aggregate::Avg | Aggregate::Sum, .. } => Some("Q29"),
        NodeKind::Unary { op: UnaryOp::Not, .. }
            if about("type") || about("sem") || about("units") =>
        {
            Some("Q11")
        }
        NodeKind::Binary { op, .. } if !op.is_arithmetic() && about("sem") => Some("Q21"),
        NodeKind::Binary { .. } if about("sem") => Some("Q40"),
        NodeKind::Binary { left, .. } if about("units") && is_constant(*left) => Some("Q23"),
        NodeKind::Binary { .. } if about("bound") => Some("Q22"),
        NodeKind::Ternary { .. } if about("bound") => Some("Q20"),
        NodeKind::Metric(_) if about("bound") => Some("nested"),
        NodeKind::Temporal { function, operand } => match (function, kind_of(*operand)) {
            (_, NodeKind::Select { .. } | NodeKind::Defined(_)) => Some("Q34"),
            _ if about_count && has_gap(case, part, archives) => Some("gap"),
            (Temporal::Rate, NodeKind::Metric(_)) if about_count => Some("Q31"),
            (Temporal::Rate, NodeKind::Metric(_)) => Some("Q32"),
            _ => None,
        },
        _ => None,
    }
}

/// The group of a case in which all dialects agree against libpcp.
fn group_of_whole(text: &str, difference: &str) -> Option<&'static str> {
    let expr = &parse(text, Dialect::Pcp7_2);
    let has =
        |wanted: fn(&NodeKind) -> bool| expr.nodes().filter(|(_, node)| wanted(&node.kind)).count();
    let metrics = has(|kind| match kind {
        NodeKind::Metric(name) => !name.starts_with("event."),
        kind => matches!(kind, NodeKind::Aggregate { .. }),
    });
    // The tree has none in the place of the second one.
    let empties = text.matches("novalue(").count();
    let choices = has(|kind| matches!(kind, NodeKind::Ternary { .. }));
    match difference {
        what if what.starts_with("registered") && empties == 2 => Some("Q9"),
        what if what.contains(" fetches instead of ") && (metrics == 0 || is_decided(expr)) => {
            Some("Q26")
        }
        what if what.starts_with("fetch 1: t: want nothing") && metrics == 0 => Some("Q26"),
        what if what.starts_with("fetch") && choices > 0 => Some("Q28"),
        _ => None,
    }
}

/// True for a ternary whose guard only asks what is defined.
fn is_decided(expr: &Expr) -> bool {
    let Some((_, root)) = expr.nodes().last() else { return false };
    matches!(&root.kind, NodeKind::Ternary { guard, .. }
        if matches!(expr.node(*guard).kind, NodeKind::Defined(_)))
}

fn parse(text: &str, dialect: Dialect) -> std::sync::Arc<Expr> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let source = sources.add("<case>", text);
    parse_expr(source, text, 0, dialect, &mut diagnostics).expr
}

fn has_reserved_name(expr: &Expr) -> bool {
    let reserved = ["type", "semantics", "units", "indom", "meta"];
    expr.nodes().any(|(_, node)| match &node.kind {
        NodeKind::Metric(name) => reserved.contains(&&**name),
        _ => false,
    })
}

/// What 7.2 answers to a case; `None` where it crashes.
fn of_7_2(case: &Answer) -> Option<Answer> {
    let mut answer = case.clone();
    if let Some(Value::Object(newer)) = case.get("v7") {
        if newer.contains_key("bug") {
            return None;
        }
        answer.extend(newer.clone());
    }
    Some(answer)
}

/// Rows for the cases of a corpus.
fn rows(cases: &Path, archives: &Path) -> Vec<Row> {
    let is_raw = |case: &Answer| case["mode"]["kind"] != "interp";
    let cases: Vec<Answer> = cases_of(cases).into_iter().filter(is_raw).collect();
    let given = [Dialect::Pcp6_0, Dialect::Pcp7_2, Dialect::Fixed]
        .map(|dialect| answers(&cases, archives, dialect, Backend::Interp));
    let mut rows = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let of_7_2 = of_7_2(case);
        let wanted = [Some(case), of_7_2.as_ref(), of_7_2.as_ref()];
        let found: Vec<Option<String>> = wanted
            .iter()
            .zip(&given)
            .map(|(want, given)| difference((*want)?, &given[at]))
            .collect();
        let [in_6_0, in_7_2, in_fixed] = &found[..] else { unreachable!("three dialects") };
        let text = case["expr"].as_str().unwrap_or_default();
        let group = match (in_6_0.as_ref().or(in_7_2.as_ref()), in_fixed) {
            (None, None) => continue,
            (Some(difference), _) => group_of_whole(text, difference),
            (None, Some(difference)) if difference.starts_with("registered") => {
                has_reserved_name(&parse(text, Dialect::Fixed)).then_some("Q6")
            }
            (None, Some(_)) => {
                let expr = parse(text, Dialect::Fixed);
                smallest_part(case, &expr, archives)
                    .and_then(|part| group_of_part(case, &part, archives))
            }
        };
        let id = case["id"].as_str().unwrap_or_default().to_string();
        let Some(group) = group else { panic!("no reason is known: {id}: {text}\n{found:?}") };
        let named = ["6.0", "7.2", "off"].iter().zip(&found);
        let differences = named.filter_map(|(name, difference)| {
            let text = difference.as_ref()?.replace("want", "libpcp").replace("got", "here");
            Some(format!("{name}: {}", shortened(&text)))
        });
        rows.push(Row { group, id, expr: text.to_string(), differences: differences.collect() });
    }
    rows
}

fn shortened(text: &str) -> String {
    let text = text.replace('\n', " ");
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The list: a group's reason, then its rows.
fn print(rows: &BTreeMap<String, Row>) -> String {
    let mut out = String::from(
        "# Where answers differ from libpcp's on purpose. Made by tests/it/differences.rs from the\n\
         # recorded answers; off is the default dialect, which libpcp 7.2 is compared with.\n",
    );
    for (group, reason) in GROUPS {
        let mut rows = rows.values().filter(|row| row.group == *group).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "\n== {group}\n{reason}");
        for Row { id, expr, differences, .. } in rows {
            let _ = writeln!(out, "\n{id}: {expr}");
            differences.iter().for_each(|text| out += &format!("    {text}\n"));
        }
    }
    out +=
        "\n# Of such walks no answers are recorded; tests/it/differential.rs leaves these out.\n";
    for (group, what) in OF_WALKS {
        let _ = writeln!(out, "\n== {group}\n{what}");
    }
    out
}

/// Rows of a list by their first line, with the group they stand in.
fn rows_of(list: &str) -> BTreeMap<String, (String, String)> {
    let (mut group, mut rows) = (String::new(), BTreeMap::new());
    for block in list.split("\n\n") {
        if let Some(head) = block.strip_prefix("== ") {
            group = head.lines().next().unwrap_or_default().to_string();
        } else if let Some((id, _)) = block.split_once(": ").filter(|_| !block.starts_with('#')) {
            rows.insert(id.to_string(), (group.clone(), block.trim_end().to_string()));
        }
    }
    rows
}

#[test]
fn the_list_is_complete() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let file = tests.join("conformance/differences.txt");
    let mut found = BTreeMap::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut take = |cases: &Path, archives: &Path| {
        known.extend(
            cases_of(cases).iter().filter_map(|case| case["id"].as_str().map(str::to_string)),
        );
        found.extend(rows(cases, archives).into_iter().map(|row| (row.id.clone(), row)));
    };
    take(&tests.join("conformance"), &tests.join("archives"));
    let corpus = std::env::var_os("PMDERIVE_CORPUS").map(PathBuf::from);
    if let Some(corpus) = &corpus {
        take(&corpus.join("derived"), &corpus.join("archives"));
    }
    let now = print(&found);
    if std::env::var("DIFFERENCES").is_ok_and(|value| value == "update") {
        assert!(corpus.is_some(), "PMDERIVE_CORPUS does not name a corpus");
        std::fs::write(&file, now).expect("a writable list");
        return;
    }
    let list = std::fs::read_to_string(&file).expect("the list");
    let listed: BTreeMap<String, (String, String)> =
        rows_of(&list).into_iter().filter(|(id, _)| known.contains(id)).collect();
    assert_eq!(listed, rows_of(&now), "DIFFERENCES=update writes {} anew", file.display());
    // What is no row is the same whatever corpus there is.
    let rest = |list: &str| {
        let rest = list.split_once("\n# Of such walks").map(|(_, rest)| rest.to_owned());
        rest.expect("the list has them")
    };
    assert_eq!(rest(&list), rest(&now), "DIFFERENCES=update writes {} anew", file.display());
}
