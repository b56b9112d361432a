//! SARIF 2.1.0 (OASIS), which code hosts and editors show beside the lines.

use std::collections::BTreeSet;

use pmderive_runtime::percent;
use serde_json::{Value, json};

use super::{Edit, Finding, Position, Report, Test};
use crate::diag::{Code, page};

/// The schema of the document.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Kind of the finding for a failed test.
const FAILED_TEST: &str = "failed-test";

/// One document with one run.
pub fn to_sarif(report: &Report) -> String {
    let mut kinds: BTreeSet<&str> = report.findings.iter().map(|one| &*one.kind).collect();
    let failed: Vec<(&str, &Test)> = report
        .suites
        .iter()
        .flat_map(|suite| suite.tests.iter().map(|test| (&*suite.file, test)))
        .filter(|(_, test)| test.failure.is_some())
        .collect();
    if !failed.is_empty() {
        kinds.insert(FAILED_TEST);
    }
    let kinds: Vec<&str> = kinds.into_iter().collect();
    let mut results: Vec<Value> =
        report.findings.iter().map(|finding| result(finding, &kinds)).collect();
    for (file, test) in failed {
        let failure = test.failure.as_deref().unwrap_or_default();
        results.push(json!({
            "ruleId": FAILED_TEST,
            "ruleIndex": kinds.iter().position(|kind| *kind == FAILED_TEST),
            "level": "error",
            "message": { "text": format!("{}: {}", test.name, failure.trim_end()) },
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": { "uri": uri(file) },
                    "region": { "startLine": test.line },
                },
            }],
        }));
    }
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": env!("CARGO_PKG_NAME"),
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": kinds.iter().map(|kind| rule(kind)).collect::<Vec<Value>>(),
                },
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

fn result(finding: &Finding, kinds: &[&str]) -> Value {
    let Finding { kind, severity, message, file, start, end, edit } = finding;
    let mut result = json!({
        "ruleId": kind,
        "ruleIndex": kinds.iter().position(|known| known == kind),
        "level": severity.word(),
        "message": { "text": message },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(file) },
                "region": region(*start, *end),
            },
        }],
    });
    if let Some(Edit { start, end, text }) = edit {
        result["fixes"] = json!([{
            "description": { "text": "as pmderive suggests" },
            "artifactChanges": [{
                "artifactLocation": { "uri": uri(file) },
                "replacements": [{
                    "deletedRegion": region(*start, *end),
                    "insertedContent": { "text": text },
                }],
            }],
        }]);
    }
    result
}

fn region(start: Position, end: Position) -> Value {
    json!({
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    })
}

/// The description of a kind of finding.
fn rule(kind: &str) -> Value {
    let Ok(code) = kind.parse::<Code>() else { return json!({ "id": kind }) };
    let text = page(code);
    let title = text.lines().next().and_then(|line| line.split_once(": ")).map(|(_, title)| title);
    json!({
        "id": kind,
        "shortDescription": { "text": title.unwrap_or(kind) },
        "help": { "text": text, "markdown": text },
    })
}

/// A path as a reference: relative where the path is.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    if path.starts_with('/') {
        out.push_str("file://");
    }
    percent::push_path(&mut out, path.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn the_document_has_what_readers_look_for() {
        let document: Value = serde_json::from_str(&to_sarif(&example())).expect("JSON");
        let run = &document["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
        let results = run["results"].as_array().expect("results");
        assert_eq!((rules.len(), results.len()), (3, 3));
        for result in results {
            let index = result["ruleIndex"].as_u64().expect("an index") as usize;
            assert_eq!(rules[index]["id"], result["ruleId"]);
        }
        let place = &results[1]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20dir/x%2Cy.conf");
        assert_eq!(place["region"]["startLine"], 2);
        assert_eq!(place["region"]["endColumn"], 9);
        let change = &results[1]["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert_eq!(change["insertedContent"]["text"], "delta");
        assert_eq!(uri("/a b"), "file:///a%20b");
    }
}
