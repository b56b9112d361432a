//! Recorded answers of libpcp 6.0.3 and 7.2.1, replayed with both backends in
//! both dialects: instances in order, integers and floating point to the bit.
//!
//! `tests/conformance/*.jsonl` holds cases over `tests/archives`. A larger
//! corpus of the same form (`derived/*.jsonl` and `archives/`) is run as well
//! where `PMDERIVE_CORPUS` names its directory.
//!
//! A case says what 6.0.3 answers, and in `v7` what 7.2.1 answers otherwise.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pmderive::dialect::Dialect;
use pmderive::engine::Backend;
use serde_json::Value;

use crate::answers;
use answers::{Answer, answers, cases_of, difference};

/// Cases of the larger corpus that differ on purpose, with the reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("qa-suite-0313", "libpcp 7.2 pairs branches by position, so values land on other instances"),
    ("qa-suite-0314", "as before, interpolated"),
];

/// What a case expects in a dialect; `None` when that library crashes on it.
fn expected(case: &Answer, dialect: Dialect) -> Option<Answer> {
    let mut expected = case.clone();
    if let (true, Some(Value::Object(newer))) = (dialect.is_version_7(), case.get("v7")) {
        if newer.contains_key("bug") {
            return None;
        }
        expected.extend(newer.clone());
    }
    Some(expected)
}

/// A counter that becomes smaller has wrapped where the environment says so
/// (`PCP_COUNTER_WRAP`): then what is between two samples is on the way to the
/// limit and on from 0, and otherwise on the straight line.
#[test]
fn counters_wrap_if_the_environment_says_so() {
    let case = r#"{"id":"wrap","archive":"own-dyn","expr":"sc.c.u32","mode":{"kind":"interp","start":"1700020000.000000000","step_ms":700,"count":3}}"#;
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    let replayed = |wraps: bool| {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_pmderive"));
        child.args(["replay", "--cases", "-", "--archives"]).arg(&archives);
        child.env_remove("PCP_COUNTER_WRAP").env("PCP_DERIVED_CONFIG", "");
        if wraps {
            child.env("PCP_COUNTER_WRAP", "1");
        }
        child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = child.spawn().expect("it runs");
        let written = child.stdin.take().expect("a pipe").write_all(case.as_bytes());
        written.expect("it reads its cases");
        let ran = child.wait_with_output().expect("it ends");
        assert!(ran.status.success());
        let answer: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
        answer["fetches"].as_array().expect("fetches").clone()
    };
    // pmval 6.0.3 prints the same.
    for (wraps, expected) in [(false, 1_288_489_929_u32), (true, 4_294_967_037)] {
        let fetches = replayed(wraps);
        let values: Vec<_> = fetches.iter().map(|fetch| &fetch["values"][0][2]).collect();
        assert_eq!(values[..3], [4_294_965_358_u32, expected, 1_102], "{wraps}");
    }
}

/// Runs all cases of a directory. Gives how many.
fn run(cases: &Path, archives: &Path, dialect: Dialect, backend: Backend) -> usize {
    let cases: Vec<Answer> = cases_of(cases)
        .into_iter()
        .filter(|case| {
            let known = DIFFERENT.iter().any(|(id, _)| case["id"] == *id);
            !case.contains_key("quirk") && !known && expected(case, dialect).is_some()
        })
        .collect();
    let answers = answers(&cases, archives, dialect, backend);
    let wanted: Vec<Answer> = cases.iter().filter_map(|case| expected(case, dialect)).collect();
    let mut failures = String::new();
    let mut failed = 0;
    for (want, got) in wanted.iter().zip(&answers) {
        if let Some(text) = difference(want, got) {
            failed += 1;
            if failed <= 20 {
                let _ = writeln!(failures, "{}: {}\n    {text}", want["id"], want["expr"]);
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
