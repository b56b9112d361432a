//! Tables of counts: makes them from callgrind's files, and compares them.
//!
//! A line has a stage, a function or `all`, and a number of instructions, with
//! tabs between. Lines with `#` give the versions of the programs that were
//! counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::profile;

/// The whole of a stage, in the place of a function.
const ALL: &str = "all";
/// Functions with a smaller share of their stage are left out.
const LEAST_SHARE: f64 = 0.01;
/// More instructions than this, as times as many, are too many.
const LIMIT: f64 = 1.05;

/// Stages with their functions.
type Table = BTreeMap<String, BTreeMap<String, u64>>;

/// Prints the table of a folder with `names` of stages and callgrind's files
/// `counts.1` and on.
pub fn print_table(folder: &str) -> ExitCode {
    let folder = Path::new(folder);
    let names = match fs::read_to_string(folder.join("names")) {
        Ok(names) => names,
        Err(error) => return fail(&format!("{}: {error}", folder.display())),
    };
    for (number, stage) in (1..).zip(names.lines()) {
        let path = folder.join(format!("counts.{number}"));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return fail(&format!("{}: {error}", path.display())),
        };
        let profile = profile::read(&text);
        let all: u64 = profile.values().sum();
        println!("{stage}\t{ALL}\t{all}");
        let share = |count: u64| count as f64 / all as f64;
        let large = profile.iter().filter(|(_, count)| share(**count) >= LEAST_SHARE);
        // A kernel is one function, which has no name.
        for (function, count) in large.filter(|_| !stage.starts_with("kernel ")) {
            println!("{stage}\t{function}\t{count}");
        }
    }
    ExitCode::SUCCESS
}

/// Compares two files with tables. Fails if a stage has grown.
pub fn compare(before: &str, now: &str) -> ExitCode {
    let (before, now) = match (read(before), read(now)) {
        (Ok(before), Ok(now)) => (before, now),
        (Err(error), _) | (_, Err(error)) => return fail(&error),
    };
    let mut has_grown = false;
    for (stage, functions) in &now {
        let Some(old) = before.get(stage) else {
            println!("{stage}: new, {}", functions[ALL]);
            continue;
        };
        let change = functions[ALL] as f64 / old[ALL] as f64;
        if change > LIMIT {
            has_grown = true;
            println!(
                "{stage}: {} instead of {}, {change:.3} times as many",
                functions[ALL], old[ALL]
            );
            println!("    {}", grown(old, functions));
        } else if change < 1.0 / LIMIT {
            println!(
                "{stage}: {} instead of {}, {change:.3} times as many; --write keeps it",
                functions[ALL], old[ALL]
            );
        }
    }
    for stage in before.keys().filter(|stage| !now.contains_key(*stage)) {
        println!("{stage}: is gone");
    }
    println!("{} stages compared", now.len());
    if has_grown { fail("some stages need more instructions") } else { ExitCode::SUCCESS }
}

/// The function that has grown the most.
fn grown(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> String {
    let old = |function: &String| before.get(function).copied().unwrap_or(0);
    let functions = now.iter().filter(|(function, _)| *function != ALL);
    match functions.max_by_key(|(function, count)| count.saturating_sub(old(function))) {
        Some((function, count)) => format!("{function}: {count} instead of {}", old(function)),
        None => "it is native code".to_owned(),
    }
}

fn read(path: &str) -> Result<Table, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let mut table = Table::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [stage, function, count] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("{path}: no line of a table: {line}"));
        };
        let count = count.parse().map_err(|error| format!("{path}: {line}: {error}"))?;
        table.entry(stage.to_owned()).or_default().insert(function.to_owned(), count);
    }
    match table.iter().find(|(_, functions)| !functions.contains_key(ALL)) {
        Some((stage, _)) => Err(format!("{path}: {stage} has no line for {ALL}")),
        None => Ok(table),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("counts: {message}");
    ExitCode::FAILURE
}
