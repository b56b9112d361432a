//! Reads a file of callgrind: instructions by function.

use std::collections::{BTreeMap, HashMap};

/// Instructions of each function itself, without those of its callees.
pub type Profile = BTreeMap<String, u64>;

/// Reads what callgrind has written (format version 1, without addresses).
pub fn read(text: &str) -> Profile {
    let mut profile = Profile::new();
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut function = "";
    // The line behind `calls=` counts for the function that is called.
    let mut is_call = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = full_name(name, &mut names);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            full_name(name, &mut names);
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let count = line.split_whitespace().nth(1).and_then(|count| count.parse().ok());
            if !std::mem::take(&mut is_call) {
                *profile.entry(without_hash(function)).or_default() += count.unwrap_or(0);
            }
        }
    }
    profile
}

/// The name behind `(number)`, which has the name only the first time.
fn full_name<'t>(text: &'t str, names: &mut HashMap<&'t str, &'t str>) -> &'t str {
    match text.split_once(' ') {
        Some((number, name)) => {
            names.insert(number, name);
            name
        }
        None => names.get(text).copied().unwrap_or(text),
    }
}

/// A name without what differs from build to build: the hash of a crate or of
/// types, and the depth of a recursion.
fn without_hash(name: &str) -> String {
    let name = name.split('\'').next().unwrap_or(name);
    let is_hash = |part: &str| {
        part.len() == 17
            && part.starts_with('h')
            && part[1..].bytes().all(|b| b.is_ascii_hexdigit())
    };
    match name.rsplit_once("::") {
        Some((rest, last)) if is_hash(last) => rest.to_owned(),
        _ => name.to_owned(),
    }
}
