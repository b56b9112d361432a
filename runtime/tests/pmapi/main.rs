//! Values, events, numbers, labels and statuses against answers recorded from
//! libpcp 6.0: every row of the tables of `tests/data/pmapi` for which this
//! crate has a function, except those of [`DIFFERENCES`]. Further units, too.

mod differences;
mod events;
mod labels;
mod names;
mod units;
mod values;

use std::path::Path;

use pmderive_runtime::model::Units;
use pmderive_testkit::real_pmcd;
use serde_json::Value as Json;

use differences::DIFFERENCES;

/// Rows of a table of `tests/data/pmapi/FILE.json`.
fn rows(file: &str, table: &str) -> Vec<Json> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pmapi");
    let text = std::fs::read_to_string(path.join(format!("{file}.json"))).unwrap();
    let data: Json = serde_json::from_str(&text).unwrap();
    let rows = data["tables"][table]["rows"].as_array().unwrap().clone();
    assert!(!rows.is_empty(), "{file}/{table}");
    rows
}

/// Answers and compares every row of a table. `answer` returns libpcp's answer
/// and ours. A row differs exactly if it is in [`DIFFERENCES`].
fn compare(file: &str, table: &str, answer: impl Fn(&Json) -> (String, String)) {
    let table_name = format!("{file}/{table}");
    let mut used = vec![false; DIFFERENCES.len()];
    let mut failures = Vec::new();
    for row in rows(file, table) {
        let (theirs, ours) = answer(&row);
        let text = row.to_string();
        let difference = DIFFERENCES.iter().position(|difference| {
            difference.table == table_name && is_like(&text, difference.row)
        });
        let Some(position) = difference else {
            if ours != theirs {
                failures.push(format!("{text}: {ours:?}, not {theirs:?}"));
            }
            continue;
        };
        used[position] = true;
        let difference = &DIFFERENCES[position];
        if ours == theirs {
            failures.push(format!("{text} does not differ any more"));
        } else if difference.ours.is_some_and(|expected| expected != ours) {
            failures.push(format!("{text}: {ours:?}, but {}", difference.reason));
        }
    }
    assert!(failures.is_empty(), "{table_name}:\n{}", failures.join("\n"));
    for (difference, used) in DIFFERENCES.iter().zip(used) {
        let row = difference.row;
        assert!(used || difference.table != table_name, "{table_name} has no row {row}");
    }
}

/// True when a text begins with the parts of a pattern between its stars, with
/// anything between these.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let after = |rest: &'_ str, part: &str| rest.find(part).map(|at| at + part.len());
    let mut rest = rest;
    parts.all(|part| match after(rest, part) {
        Some(at) => {
            rest = &rest[at..];
            true
        }
        None => false,
    })
}

fn number(value: &Json) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn code(value: &Json) -> i32 {
    i32::try_from(number(value)).unwrap()
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// Bytes in hexadecimal.
fn bytes(value: &Json) -> Vec<u8> {
    let hex = text(value);
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Units of a row, which has dimensions and scales of space, time, count.
fn units(row: &Json) -> Units {
    let part = |index: usize| i8::try_from(number(&row[index])).unwrap();
    Units {
        dim_space: part(0),
        dim_time: part(1),
        dim_count: part(2),
        scale_space: part(3).unsigned_abs(),
        scale_time: part(4).unsigned_abs(),
        scale_count: part(5),
        ..Units::NONE
    }
}
