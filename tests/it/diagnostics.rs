//! Every kind of mistake, in the form for people and in the form for programs.
//!
//! The files of `tests/diagnostics` are full of mistakes; the snapshots beside them hold the
//! messages. After a change of wording run the test with `INSTA_UPDATE=always` and read the
//! difference.

mod elsewhere;
mod fleet;
mod mistakes;
mod pages;

use std::path::Path;

use pmderive::SourceMap;
use pmderive::diag::json::to_json;
use pmderive::diag::render::{Style, render};
use pmderive::diag::{Code, Diagnostics};
use pmderive::dialect::Dialect;
use pmderive::engine::Registry;

use fleet::{Asked, Found, compile};

/// The files of mistakes, and whether those are of the kind that lints find.
const FILES: [(&str, bool); 4] = [
    ("expressions.conf", false),
    ("lines.conf", false),
    ("meaning.conf", false),
    ("lint.conf", true),
];

fn text_of(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics").join(name);
    std::fs::read_to_string(path).expect("a file of the repository")
}

/// What is found in a text: by the parser alone where it is full of its
/// mistakes, else with the metadata of an archive.
fn diagnose(name: &str, text: &str, lint: bool) -> Found {
    if !matches!(name, "expressions.conf" | "lines.conf") {
        return compile(name, text, Asked { lint, ..Asked::default() });
    }
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let source = sources.add(name, text);
    Registry::new(Dialect::Fixed).add_text(source, &sources, &mut diagnostics);
    Found { sources, diagnostics, usable: Vec::new() }
}

/// Mistakes that no file can have: too large, no file at all, not in an archive.
fn special() -> Vec<Found> {
    let deep = format!("deep = {}hinv.ncpu\n", "(".repeat(10_001));
    let orphan = "orphan = agent.status * 2\n";
    let unused = "used = rate(disk.all.read)\nunused = rate(disk.all.write)\n";
    let lint = Asked { lint: true, wanted: Some("used"), ..Asked::default() };
    let mut found = vec![
        compile("deep.conf", &deep, Asked::default()),
        compile("orphan.conf", orphan, Asked::default()),
        compile("limit.conf", "#control GLOBAL_LIMIT=1\na = 1\nb = 2\n", Asked::default()),
        compile("unused.conf", unused, lint),
        compile(
            "never.conf",
            "never = delta(disk.dev.read[vdb])\n",
            Asked { dialect: Dialect::Pcp7_2, ..lint },
        ),
        compile(
            "nested.conf",
            "round = about * 2\nabout = round + 1\nbad = no.such\nworse = bad + 1\n",
            Asked { extensions: true, ..Asked::default() },
        ),
        compile(
            "own.conf",
            "own.load = own.lod + 1\nneed.aa = need.bc * 2\nneed.bb = need.aa + 1\n",
            Asked { extensions: true, ..Asked::default() },
        ),
        compile(
            "bounds.conf",
            "bounds = clamp(kernel.all.load, 5, 1)\nordered = clamp(kernel.all.load, 1, 5)\n",
            Asked { extensions: true, wanted: None, ..lint },
        ),
        compile(
            "refused.conf",
            "refused = sum(disk.dev.read\nof_refused = refused + 1\n",
            Asked::default(),
        ),
        compile("many.conf", "#control GLOBAL_LIMIT=1\nfirst = 1\nsecond = 2\n", Asked::default()),
    ];
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    Registry::new(Dialect::Fixed).load("none.conf", &mut sources, &mut diagnostics);
    found.push(Found { sources, diagnostics, usable: Vec::new() });
    found
}

fn assert_snapshots(stem: &str, all: &mut [Found]) {
    let (mut plain, mut json) = (Vec::new(), Vec::new());
    for Found { sources, diagnostics, .. } in all {
        diagnostics.sort();
        plain.extend(diagnostics.iter().map(|one| render(one, sources, Style::Plain)));
        json.extend(diagnostics.iter().map(|one| to_json(one, sources)));
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/diagnostics"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!(format!("{stem}.plain"), plain.join("\n"));
        insta::assert_snapshot!(format!("{stem}.json"), json.join("\n"));
    });
}

fn check(name: &str, lint: bool) -> Found {
    let mut found = [diagnose(name, &text_of(name), lint)];
    assert_snapshots(name.trim_end_matches(".conf"), &mut found);
    let [found] = found;
    found
}

#[test]
fn mistakes_in_expressions() {
    check("expressions.conf", false);
}

#[test]
fn mistakes_in_lines() {
    check("lines.conf", false);
}

#[test]
fn mistakes_of_meaning() {
    let found = check("meaning.conf", false);
    assert_eq!(found.usable, ["hinv.ncpu", "d.good"], "mistakes must not spread or stay unseen");
}

/// What the checker refuses is told once, and not said to be let through.
#[test]
fn what_is_refused_is_not_linted() {
    let asked = Asked { lint: true, ..Asked::default() };
    let found = compile("refused.conf", "x = mem.util.free > kernel.all.load\n", asked);
    let codes: Vec<String> = found.diagnostics.iter().map(|one| one.code.to_string()).collect();
    assert_eq!(codes, ["PMD0203"]);
}

/// Lints warn and spoil nothing. What is called `meant` and the like has none.
#[test]
fn what_is_hardly_meant() {
    let found = check("lint.conf", true);
    assert_eq!(found.diagnostics.errors(), 0);
    let named: Vec<&str> = found.diagnostics.iter().filter_map(|d| d.metric.as_deref()).collect();
    let silent = found.usable.iter().map(String::as_str).filter(|name| !named.contains(name));
    assert_eq!(
        silent.collect::<Vec<_>>(),
        [
            "rate.meant",
            "delta.discrete",
            "delta.of_rate",
            "novalue.meant",
            "guard.meant",
            "guard.other",
            "twice.first",
            "dimensions.literal",
            "scales.zero",
            "counted.plain",
            "nan.test",
            "delta.falls",
            "counter.zero",
            "counter.rate",
            "factor.other",
            "shadow.below",
            "allowed.change",
            "allowed.nothing",
            "allowed.other",
            "equal.float",
            "equal.whole",
            "not.value",
            "units.other",
            "reason.change",
        ]
    );
}

#[test]
fn mistakes_that_no_file_can_have() {
    assert_snapshots("special", &mut special());
}

/// Each code is in a snapshot, so that somebody has read what it says.
#[test]
fn every_code_has_an_example() {
    let mut found: Vec<Found> =
        FILES.iter().map(|(name, lint)| diagnose(name, &text_of(name), *lint)).collect();
    found.extend(special());
    let codes: Vec<Code> =
        found.iter().flat_map(|found| &found.diagnostics).map(|one| one.code).collect();
    // Files of unit tests and of fleets are no definitions of one host, and groups are
    // an extension; they have snapshots of their own.
    let of_other_files = [
        Code::BadTestFile,
        Code::BadServeFile,
        Code::BadConfigFile,
        Code::MisplacedBy,
        Code::ByWithoutFleet,
        Code::FleetOperand,
        Code::UnknownLabel,
    ];
    let is_missing = |code: &&Code| !of_other_files.contains(code) && !codes.contains(code);
    let missing: Vec<&Code> = Code::ALL.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "without an example: {missing:?}");
}

/// Whatever an expression is, diagnostics and lints can be made and shown.
#[test]
fn any_expression_can_be_linted() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut text = String::new();
    for file in std::fs::read_dir(cases).expect("a folder") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let lines = std::fs::read_to_string(path).expect("a text");
        for line in lines.lines() {
            let case: serde_json::Value = serde_json::from_str(line).expect("a case");
            let expr = case["expr"].as_str().expect("an expression");
            if !expr.contains(['\n', '\\']) {
                text.push_str(&format!("case{} = {expr}\n", text.len()));
            }
        }
    }
    // The cases' own metrics are not in the fleet, but these are of all kinds.
    let text = text.replace("s.c.", "disk.all.").replace("a.i.u32", "disk.dev.read");
    for dialect in [Dialect::Pcp7_2, Dialect::Fixed] {
        let asked = Asked { dialect, lint: true, ..Asked::default() };
        let Found { sources, diagnostics, .. } = compile("cases.conf", &text, asked);
        assert!(diagnostics.len() > 1000);
        for diagnostic in diagnostics.iter().step_by(50) {
            let report = render(diagnostic, &sources, Style::Plain);
            assert!(report.contains(&diagnostic.code.to_string()), "{report}");
        }
    }
}

/// Neither nesting nor length makes lints slow or breaks them.
#[test]
fn large_expressions_can_be_linted() {
    let asked = Asked { lint: true, ..Asked::default() };
    for text in [
        format!("x = {}hinv.ncpu", "hinv.ncpu > 0 ? 1 : ".repeat(20_000)),
        format!("x = {}hinv.ncpu", "hinv.ncpu < ".repeat(20_000)),
        format!("x = {}hinv.ncpu", "-".repeat(9_000)),
        format!("x = {}hinv.ncpu{}", "rate(".repeat(9_000), ")".repeat(9_000)),
        format!("x = {}1", "defined(hinv.ncpu) && ".repeat(20_000)),
        format!("x = {}hinv.ncpu", "hinv.ncpu - 1 - ".repeat(20_000)),
    ] {
        let found = compile("large.conf", &text, asked);
        assert!(found.diagnostics.len() < 50, "{}", found.diagnostics.len());
    }
}

/// Applying an edit that is offered removes its diagnostic and brings no other.
#[test]
fn fixes_mend_what_they_promise() {
    let mut fixes = 0;
    for (name, lint) in FILES {
        let text = text_of(name);
        let found = diagnose(name, &text, lint);
        for diagnostic in &found.diagnostics {
            let Some(fix) = &diagnostic.fix else { continue };
            let mut mended = text.clone();
            mended.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.text);
            let left = diagnose(name, &mended, lint).diagnostics;
            let before = found.diagnostics.iter().filter(|one| one.code == diagnostic.code).count();
            let after = left.iter().filter(|one| one.code == diagnostic.code).count();
            assert!(after < before, "{diagnostic:?} is still there");
            assert!(left.len() < found.diagnostics.len(), "{diagnostic:?} gives way to another");
            fixes += 1;
        }
    }
    assert!(fixes > 30, "only {fixes} fixes");
}
