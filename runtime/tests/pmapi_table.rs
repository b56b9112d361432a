//! Compares the table of README.md with the code. Every function of the PMAPI
//! that a client needs (data/pmapi/functions.txt) has one row. Where the row
//! names a Rust item, that item exists. A doc comment names the manual page of
//! the row's first function, so readers can search for PCP's name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Code of all crates.
fn sources() -> Vec<String> {
    fn collect(folder: &Path, texts: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, texts);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(fs::read_to_string(&path).expect("a source file"));
            }
        }
    }
    let mut texts = Vec::new();
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in
        ["src", "archive/src", "client/src", "core/src", "local/src", "system/src", "../src"]
    {
        collect(&crate_folder.join(folder), &mut texts);
    }
    texts
}

/// Functions, item (`None` without a Rust form) and remark of each row.
fn rows(readme: &str) -> Vec<(Vec<&str>, Option<&str>, &str)> {
    let rows = readme.lines().filter(|line| line.starts_with("| pm"));
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .map(|cells| {
            let [functions, item, remark] = cells[..] else { panic!("three cells: {cells:?}") };
            let item = item.strip_prefix('`').and_then(|item| item.strip_suffix('`'));
            (functions.split(", ").collect(), item, remark)
        })
        .collect()
}

/// True if some source defines the last part of a path.
fn is_defined(item: &str, sources: &[String]) -> bool {
    let name = item.rsplit("::").next().unwrap_or(item);
    let kinds = ["fn", "struct", "enum", "trait", "type"];
    sources.iter().any(|source| {
        kinds.iter().any(|kind| {
            source.match_indices(&format!("{kind} {name}")).any(|(start, found)| {
                let next = source[start + found.len()..].chars().next();
                next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
            })
        })
    })
}

fn is_documented(function: &str, sources: &[String]) -> bool {
    let page = format!("{function}(3)");
    let comments = |source: &String| {
        source.lines().any(|line| line.trim_start().starts_with("//") && line.contains(&page))
    };
    sources.iter().any(comments)
}

#[test]
fn every_function_of_the_pmapi_has_its_form_or_a_reason() {
    let readme = include_str!("../README.md");
    let sources = sources();
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (functions, item, remark) in rows(readme) {
        for function in &functions {
            if !seen.insert(*function) {
                problems.push(format!("{function} has two rows"));
            }
        }
        // The others of a row are its variants, which this table leads to.
        let function = functions[0];
        match item {
            Some(_) if !is_documented(function, &sources) => {
                problems.push(format!("no doc comment names {function}(3)"));
            }
            None if remark.is_empty() => problems.push(format!("{function}: why not?")),
            _ => {}
        }
        if let Some(item) = item
            && !is_defined(item, &sources)
        {
            problems.push(format!("{item} is not defined"));
        }
    }
    let needed: BTreeSet<&str> = include_str!("data/pmapi/functions.txt").lines().collect();
    problems.extend(needed.difference(&seen).map(|function| format!("{function} has no row")));
    problems.extend(seen.difference(&needed).map(|function| format!("who needs {function}?")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
