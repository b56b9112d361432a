//! Answers to cases, in the words of the recorded ones in `tests/conformance`. This module gets
//! them from the library, and compares two of them.
//!
//! Instances are compared in order, integers and floating point to the bit;
//! which NaN it is does not matter.

// No test needs all of it.
#![allow(dead_code)]

use std::fmt::Write as _;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use pmderive::dialect::Dialect;
use pmderive::engine::Backend;
use pmderive::internal::replay::replay;
use serde_json::{Map, Value};

/// An answer, or a case.
pub type Answer = Map<String, Value>;

/// The cases in the `.jsonl` files of a folder, by file name and line.
pub fn cases_of(folder: &Path) -> Vec<Answer> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
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

/// A case over an archive; `id` tells its answer from others.
pub fn case(id: &str, archive: &str, walk: &Walk, expr: &str) -> Answer {
    let Walk { start, step_ms, count } = walk;
    let kind = if *step_ms == 0 { "forw" } else { "interp" };
    let Value::Object(case) = serde_json::json!({
        "id": id, "archive": archive, "expr": expr,
        "mode": { "kind": kind, "start": start, "step_ms": step_ms, "count": count },
    }) else {
        unreachable!("an object was written")
    };
    case
}

/// Which fetches of an archive are compared.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Time of the first one, as the corpus writes it.
    pub start: String,
    /// Milliseconds from one interpolated fetch to the next, negative to go
    /// backward; 0 for records as they are.
    pub step_ms: i64,
    pub count: usize,
}

/// A case that only asks whether an expression is accepted.
pub fn registration(id: &str, expr: &str) -> Answer {
    let Value::Object(case) = serde_json::json!({
        "id": id, "archive": null, "expr": expr, "mode": { "kind": "none" },
    }) else {
        unreachable!("an object was written")
    };
    case
}

/// The library's answers to cases over the archives of a folder, in order.
pub fn answers(
    cases: &[Answer],
    archives: &Path,
    dialect: Dialect,
    backend: Backend,
) -> Vec<Answer> {
    let mut input = String::new();
    for case in cases {
        let given: Answer = case
            .iter()
            .filter(|(key, _)| ["id", "archive", "mode", "name", "expr"].contains(&&***key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let _ = writeln!(input, "{}", Value::Object(given));
    }
    let mut output = Vec::new();
    replay(Cursor::new(input), archives, dialect, backend, &mut output).expect("a whole replay");
    let answers: Vec<Answer> = String::from_utf8(output)
        .expect("answers are text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer"))
        .collect();
    assert_eq!(answers.len(), cases.len(), "one answer a case");
    for (case, answer) in cases.iter().zip(&answers) {
        assert_eq!(case.get("id"), answer.get("id"), "answers in the order of the cases");
    }
    answers
}

/// Whether registration or binding went well, where the answer says so.
pub fn is_ok(answer: &Answer, key: &str) -> Option<bool> {
    answer.get(key)?.get("ok")?.as_bool()
}

/// The fetches of an answer, none where there are none.
pub fn fetches(answer: &Answer) -> &[Value] {
    answer.get("fetches").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The first difference between the answer wanted and the one given.
pub fn difference(want: &Answer, got: &Answer) -> Option<String> {
    let (wanted, given) = (is_ok(want, "register"), is_ok(got, "register"));
    if wanted != given {
        return Some(format!("registered: want {} got {}", want["register"], got["register"]));
    }
    if wanted == Some(false) {
        let offset = |side: &Answer| side["register"]["offset"].as_i64();
        return (offset(want) != offset(got))
            .then(|| format!("offset: want {:?} got {:?}", offset(want), offset(got)));
    }
    want.get("bind")?;
    let (wanted, given) = (is_ok(want, "bind"), is_ok(got, "bind"));
    if wanted != given {
        let text = |side: &Answer| side.get("bind").map_or("none".to_string(), Value::to_string);
        return Some(format!("bound: want {} got {}", text(want), text(got)));
    }
    if wanted == Some(false) {
        let code = |side: &Answer| side["bind"]["err"].as_i64();
        return (code(want) != code(got)).then(|| "code of binding".to_string());
    }
    if let Some(text) = desc_difference(want, got) {
        return Some(text);
    }
    let (wanted, given) = (fetches(want), fetches(got));
    if wanted.len() != given.len() {
        return Some(format!("{} fetches instead of {}", given.len(), wanted.len()));
    }
    let value_type = want["desc"]["type"].as_str().unwrap_or_default();
    for (at, (want, got)) in wanted.iter().zip(given).enumerate() {
        if let Some(text) = fetch_difference(want, got, value_type) {
            return Some(format!("fetch {at}: {text}"));
        }
    }
    None
}

/// The first difference between two descriptors.
pub fn desc_difference(want: &Answer, got: &Answer) -> Option<String> {
    let ignored: Vec<&str> = want
        .get("desc_ignore")
        .and_then(Value::as_array)
        .map(|keys| keys.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let keys = ["type", "indom", "sem", "units", "dim", "scale"];
    let differs =
        |key: &&&str| !ignored.contains(*key) && want["desc"][**key] != got["desc"][**key];
    let key = *keys.iter().find(differs)?;
    Some(format!("{key}: want {} got {}", want["desc"][key], got["desc"][key]))
}

/// The first difference between two fetches.
pub fn fetch_difference(want: &Value, got: &Value, value_type: &str) -> Option<String> {
    for key in ["t", "err", "n"] {
        if want.get(key) != got.get(key) {
            let text = |side: &Value| side.get(key).map_or("nothing".to_string(), Value::to_string);
            return Some(format!("{key}: want {} got {}", text(want), text(got)));
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
