//! libpcp's own messages: those recorded in the conformance cases, and those of the installed
//! tools.
//!
//! `tests/conformance/*.jsonl` has libpcp 6.0.3's messages about refused expressions (text and
//! position) and about metrics that do not bind. `v7` has the messages of 7.2.1 that differ.
//! `PMDERIVE_CORPUS` can name the directory of a larger corpus in the same form.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pmderive::SourceMap;
use pmderive::diag::{Diagnostics, pcp};
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Engine, Registry};
use pmderive_runtime::archive::ArchiveContext;
use serde_json::Value;

/// Cases in which the words differ on purpose, with the reason.
const DIFFERENT: &[(&str, Dialect, &str)] = &[(
    "lex-misc-0037",
    Dialect::Pcp6_0,
    "6.0.3 binds a nested derived metric and gives errors for values; the record is of 7.2.1",
)];

/// Words that 7.2.1 has where 6.0.3 has others or none. The cases record what
/// differs in effect and not this: arguments of `delta()` and `rate()` are
/// expressions since version 7, and mistakes in `mkconst()` have words.
const REWORDED: [&str; 3] = [
    "<expr> expected to follow delta(",
    "<expr> expected to follow rate(",
    "metadata keyword expected to follow mkconst(type",
];

fn cases_of(directory: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter(|path| !path.ends_with("errors.list.jsonl"))
        .collect();
    files.sort();
    let lines = |file: PathBuf| fs::read_to_string(file).expect("a readable case file");
    let texts: Vec<String> = files.into_iter().map(lines).collect();
    texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).expect("a case"))
        .collect()
}

/// What a library says of a case: position and words of a refusal, or the
/// words of a failed binding.
#[derive(Debug, PartialEq)]
enum Said {
    Refused { offset: i64, message: Option<String> },
    Unbound(String),
}

/// What is recorded, if that is a failure and words are known.
fn recorded(case: &Value, dialect: Dialect) -> Option<Said> {
    let newer = case.get("v7").filter(|_| dialect.is_version_7());
    let is_wrong = newer.is_some_and(|newer| newer.get("bug").is_some());
    let is_of_other = !dialect.is_version_7() && case.get("oracle").is_some();
    if is_wrong || is_of_other || case.get("quirk").is_some() {
        return None;
    }
    let key = |key: &str| newer.and_then(|newer| newer.get(key)).or_else(|| case.get(key));
    let register = key("register")?;
    if register["ok"] == false {
        let message = register["message"].as_str().map(str::to_owned);
        return Some(Said::Refused { offset: register["offset"].as_i64()?, message });
    }
    let bind = key("bind").filter(|bind| bind["ok"] == false)?;
    let message = bind["message"].as_str()?;
    // The record of 7.2.1 has what differs in effect; about names 6.0.3 is
    // silent where 7.2.1 is not.
    let is_recorded = !dialect.is_version_7()
        || !message.is_empty()
        || newer.is_some_and(|newer| newer.get("bind").is_some());
    is_recorded.then(|| Said::Unbound(message.to_owned()))
}

/// What pmderive says in libpcp's place.
fn said(
    case: &Value,
    archives: &Path,
    opened: &mut HashMap<String, ArchiveContext>,
    dialect: Dialect,
) -> Option<Said> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let expr = case["expr"].as_str().expect("an expression");
    let source = sources.add("<case>", expr);
    let mut registry = Registry::new(dialect);
    let name = case["name"].as_str().unwrap_or("qa.x");
    if let Err(error) = registry.register(name, source, &sources, &mut diagnostics) {
        return Some(Said::Refused { offset: error.offset, message: error.message });
    }
    let archive = case["archive"].as_str()?;
    let archive = opened.entry(archive.to_owned()).or_insert_with(|| {
        ArchiveContext::open(archives.join(archive)).expect("a readable archive")
    });
    let selection: Vec<_> = registry.definitions().iter().map(|one| &**one).collect();
    let compiled = Engine::new(dialect, Backend::Interp)
        .compile(&registry, &selection, archive, &mut diagnostics)
        .expect("a readable archive");
    if compiled.metrics[0].desc.is_ok() {
        return None;
    }
    Some(Said::Unbound(diagnostics.iter().filter_map(pcp::render).collect()))
}

/// Compares all failures of a directory. Gives how many there are.
fn compare(cases: &Path, archives: &Path) -> usize {
    let cases = cases_of(cases);
    let mut opened = HashMap::new();
    let (mut total, mut failed, mut report) = (0, 0, String::new());
    for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2] {
        for case in &cases {
            let Some(wanted) = recorded(case, dialect) else { continue };
            total += 1;
            let given = said(case, archives, &mut opened, dialect);
            let id = case["id"].as_str().unwrap_or_default();
            if let (Dialect::Pcp7_2, Some(Said::Refused { offset, message: Some(words) })) =
                (dialect, &given)
                && REWORDED.contains(&words.as_str())
                && case["v7"].get("register").is_none()
                && matches!(&wanted, Said::Refused { offset: recorded, .. } if recorded == offset)
            {
                continue;
            }
            let known = DIFFERENT.iter().any(|(known, of, _)| *known == id && *of == dialect);
            if (given.as_ref() == Some(&wanted)) == known {
                failed += 1;
                let expr = &case["expr"];
                let _ = writeln!(
                    report,
                    "{id} {dialect:?} {expr}\n    want {wanted:?}\n    said {given:?}"
                );
            }
        }
    }
    assert!(failed == 0, "{failed} of {total}:\n{report}");
    total
}

#[test]
fn recorded_messages_over_own_archives() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let total = compare(&tests.join("conformance"), &tests.join("archives"));
    assert!(total > 1200, "only {total} messages");
}

#[test]
fn recorded_messages_of_a_larger_corpus() {
    let Some(corpus) = std::env::var_os("PMDERIVE_CORPUS") else {
        println!("NOT RUN: PMDERIVE_CORPUS does not name a corpus");
        return;
    };
    let corpus = PathBuf::from(corpus);
    let total = compare(&corpus.join("derived"), &corpus.join("archives"));
    println!("{total} messages agree");
}

/// The semantic messages of 7.2.1, one of each kind.
#[test]
fn semantic_messages_of_version_7() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let table = fs::read_to_string(tests.join("diagnostics/semantic-7.2.txt")).expect("a table");
    let rows: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
    let mut opened = HashMap::new();
    for row in rows.chunks(2) {
        let [expr, words] = row else { panic!("a line without its message: {row:?}") };
        let case = serde_json::json!({ "expr": expr, "archive": "own-sample" });
        let wanted = format!("Semantic error: derived metric qa.x: {}\n", words.trim_start());
        let given = said(&case, &tests.join("archives"), &mut opened, Dialect::Pcp7_2);
        assert_eq!(given, Some(Said::Unbound(wanted)), "{expr}");
    }
    assert!(rows.len() > 80);
}

/// `pminfo -c` of 6.0.3 complains about files full of mistakes in the same words.
#[test]
fn files_of_mistakes_as_the_installed_tool_reports_them() {
    let Ok(version) = Command::new("pminfo").arg("--version").output() else {
        println!("NOT RUN: pminfo is not installed");
        return;
    };
    if !String::from_utf8_lossy(&version.stdout).contains("version 6.0") {
        println!("NOT RUN: the installed pminfo is not of version 6.0");
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for name in
        ["attributes.conf", "expressions.conf", "lines.conf", "meaning.conf", "numbering.conf"]
    {
        let output = Command::new("pminfo")
            .args(["-a", "../archives/own-fleet", "-c", name, "hinv.ncpu"])
            .current_dir(tests.join("diagnostics"))
            .env("PCP_DERIVED_CONFIG", "")
            .output()
            .expect("pminfo runs");
        let theirs = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = fs::read_to_string(tests.join("diagnostics").join(name)).expect("a file");
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let source = sources.add(name, text);
        let mut registry = Registry::new(Dialect::Pcp6_0);
        registry.add_text(source, &sources, &mut diagnostics);
        let ours: String = diagnostics.iter().filter_map(pcp::render).collect();
        assert_eq!(ours, theirs, "{name}");
    }
}
