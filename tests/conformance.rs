//! Recorded answers of libpcp 6.0.3 and 7.2.1, replayed with both backends in
//! both dialects: instances in order, integers and floating point to the bit.
//!
//! `tests/conformance/*.jsonl` holds cases over `tests/archives`. A larger
//! corpus of the same form (`derived/*.jsonl` and `archives/`) is run as well
//! where `PMDERIVE_CORPUS` names its directory.
//!
//! A case says what 6.0.3 answers, and in `v7` what 7.2.1 answers otherwise.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use pmderive::dialect::Dialect;
use pmderive::engine::Backend;
use pmderive::replay::replay;
use serde_json::{Map, Value};

/// Cases of the larger corpus that differ on purpose, with the reason.
const DIFFERENT: &[(&str, &str)] = &[(
    "qa-suite-0313",
    "libpcp 7.2 pairs branches by position, so values land on other instances",
)];

fn cases_of(directory: &Path) -> Vec<Map<String, Value>> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter(|path| !path.ends_with("errors.list.jsonl"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable case file");
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            cases.push(serde_json::from_str(line).expect("a case"));
        }
    }
    cases
}

/// What a case expects in a dialect; `None` when that library crashes on it.
fn expected(case: &Map<String, Value>, dialect: Dialect) -> Option<Map<String, Value>> {
    let mut expected = case.clone();
    if let (true, Some(Value::Object(newer))) = (dialect.is_version_7(), case.get("v7")) {
        if newer.contains_key("bug") {
            return None;
        }
        expected.extend(newer.clone());
    }
    Some(expected)
}

fn is_ok(answer: &Map<String, Value>, key: &str) -> Option<bool> {
    answer.get(key)?.get("ok")?.as_bool()
}

/// The first difference between what a case expects and an answer.
fn difference(want: &Map<String, Value>, got: &Map<String, Value>) -> Option<String> {
    let (wanted, given) = (is_ok(want, "register"), is_ok(got, "register"));
    if wanted != given {
        return Some(format!("registered: want {wanted:?} got {given:?}"));
    }
    if wanted == Some(false) {
        let offset = |side: &Map<String, Value>| side["register"]["offset"].as_i64();
        return (offset(want) != offset(got))
            .then(|| format!("offset: want {:?} got {:?}", offset(want), offset(got)));
    }
    want.get("bind")?;
    let (wanted, given) = (is_ok(want, "bind"), is_ok(got, "bind"));
    if wanted != given {
        return Some(format!("bound: want {wanted:?} got {:?}", got.get("bind")));
    }
    if wanted == Some(false) {
        let code = |side: &Map<String, Value>| side["bind"]["err"].as_i64();
        return (code(want) != code(got)).then(|| "code of binding".to_string());
    }
    let ignored: Vec<&str> = want
        .get("desc_ignore")
        .and_then(Value::as_array)
        .map(|keys| keys.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    for key in ["type", "indom", "sem", "units", "dim", "scale"] {
        if !ignored.contains(&key) && want["desc"][key] != got["desc"][key] {
            return Some(format!("{key}: want {} got {}", want["desc"][key], got["desc"][key]));
        }
    }
    let empty = Vec::new();
    let fetches = |side: &Map<String, Value>| side["fetches"].as_array().unwrap_or(&empty).clone();
    let (wanted, given) = (fetches(want), fetches(got));
    if wanted.len() != given.len() {
        return Some(format!("{} fetches instead of {}", given.len(), wanted.len()));
    }
    let value_type = want["desc"]["type"].as_str().unwrap_or_default();
    for (at, (want, got)) in wanted.iter().zip(&given).enumerate() {
        if let Some(text) = fetch_difference(want, got, value_type) {
            return Some(format!("fetch {at}: {text}"));
        }
    }
    None
}

fn fetch_difference(want: &Value, got: &Value, value_type: &str) -> Option<String> {
    for key in ["t", "err", "n"] {
        if want.get(key) != got.get(key) {
            return Some(format!("{key}: want {:?} got {:?}", want.get(key), got.get(key)));
        }
    }
    let (Some(want), Some(got)) = (want.get("values"), got.get("values")) else { return None };
    let (want, got) = (want.as_array()?, got.as_array()?);
    for (want, got) in want.iter().zip(got) {
        if want[0] != got[0] || want[1] != got[1] || !same(&want[2], &got[2], value_type) {
            return Some(format!("want {want} got {got}"));
        }
    }
    None
}

fn same(want: &Value, got: &Value, value_type: &str) -> bool {
    match (value_type, want.as_f64(), got.as_f64()) {
        ("DOUBLE", Some(want), Some(got)) => want.to_bits() == got.to_bits(),
        ("FLOAT", Some(want), Some(got)) => (want as f32).to_bits() == (got as f32).to_bits(),
        _ => want == got,
    }
}

/// Runs all cases of a directory that this stage can answer. Gives how many.
fn run(cases: &Path, archives: &Path, dialect: Dialect, backend: Backend) -> usize {
    let mut input = String::new();
    let mut wanted = Vec::new();
    for case in cases_of(cases) {
        let known = DIFFERENT.iter().any(|(id, _)| case["id"] == *id);
        // Interpolated fetches are not there yet.
        if case["mode"]["kind"] == "interp" || case.contains_key("quirk") || known {
            continue;
        }
        let Some(expected) = expected(&case, dialect) else { continue };
        let given: Map<String, Value> = case
            .iter()
            .filter(|(key, _)| ["id", "archive", "mode", "name", "expr"].contains(&&***key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let _ = writeln!(input, "{}", Value::Object(given));
        wanted.push(expected);
    }
    let mut answers = Vec::new();
    replay(Cursor::new(input), archives, dialect, backend, &mut answers).expect("a whole replay");
    let answers: HashMap<String, Map<String, Value>> = String::from_utf8(answers)
        .expect("answers are text")
        .lines()
        .map(|line| {
            let answer: Map<String, Value> = serde_json::from_str(line).expect("an answer");
            (answer["id"].as_str().unwrap_or_default().to_string(), answer)
        })
        .collect();
    let mut failures = String::new();
    let mut failed = 0;
    for want in &wanted {
        let id = want["id"].as_str().unwrap_or_default();
        let text = match answers.get(id) {
            None => Some("no answer".to_string()),
            Some(got) => difference(want, got),
        };
        if let Some(text) = text {
            failed += 1;
            if failed <= 20 {
                let _ = writeln!(failures, "{id}: {}\n    {text}", want["expr"]);
            }
        }
    }
    let total = wanted.len();
    assert!(failed == 0, "{failed} of {total} cases, {dialect:?}, {backend:?}:\n{failures}");
    total
}

fn run_all(cases: &Path, archives: &Path) -> usize {
    let mut total = 0;
    for backend in [Backend::Interp, Backend::Jit] {
        for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2] {
            total += run(cases, archives, dialect, backend);
        }
    }
    total
}

#[test]
fn recorded_answers_over_own_archives() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let total = run_all(&tests.join("conformance"), &tests.join("archives"));
    assert!(total > 8000, "only {total} cases");
}

#[test]
fn recorded_answers_of_a_larger_corpus() {
    let Some(corpus) = std::env::var_os("PMDERIVE_CORPUS") else {
        println!("NOT RUN: PMDERIVE_CORPUS does not name a corpus");
        return;
    };
    let corpus = PathBuf::from(corpus);
    let total = run_all(&corpus.join("derived"), &corpus.join("archives"));
    println!("{total} cases agree");
}
