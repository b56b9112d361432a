//! The table of PCP's test suite. It counts the archives that open, and those of which `info`
//! and `val` print byte for byte what pminfo and pmval print.
//!
//! It takes many minutes, so it runs only on request:
//!
//! ```text
//! ARCHIVE_TABLE=table.md cargo test --release --test it archive_table -- --ignored
//! ```
//!
//! writes the table as Markdown. Below it are the differences by archive and by run. A
//! difference without a reason in `reasons` fails the test. So does a reason for an archive
//! without a difference. `ARCHIVE_TABLE_LARGEST=BYTES` leaves larger archives out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pmderive_runtime::archive::Version;
use pmderive_runtime::context::Context;

use crate::archive_runs;
use crate::reasons;
use crate::side_by_side;
use archive_runs::Choice;
use side_by_side::{
    INFO_OPTIONS, SUITE, archives_of_suite, first_difference, is_compressed, ours, size, theirs,
    tools_are_installed, without_help_of_events,
};

/// Threads that archives are spread over.
const THREADS: usize = 2;

/// What was found of one archive.
#[derive(Default)]
struct Found {
    kind: String,
    opens: [bool; 2],
    info_runs: usize,
    val_runs: usize,
    /// What differs, run by run.
    info: Vec<String>,
    val: Vec<String>,
}

/// Sums over archives.
#[derive(Clone, Copy, Default)]
struct Row {
    archives: usize,
    opens: [usize; 2],
    info: usize,
    val: usize,
    runs: usize,
    equal_runs: usize,
}

#[test]
#[ignore = "takes many minutes"]
fn table() {
    if !tools_are_installed() {
        return;
    }
    let mut archives = archives_of_suite();
    if let Ok(largest) = std::env::var("ARCHIVE_TABLE_LARGEST") {
        let largest: u64 = largest.parse().expect("a number of bytes");
        archives.retain(|archive| size(archive) <= largest);
    }
    let found = Mutex::new(BTreeMap::new());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(archive) = archives.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = look_at(archive);
                    found.lock().expect("not poisoned").insert(archive.clone(), one);
                }
            });
        }
    });
    let found = found.into_inner().expect("not poisoned");
    let text = markdown(&found);
    match std::env::var_os("ARCHIVE_TABLE") {
        Some(path) => std::fs::write(path, &text).expect("the file can be written"),
        None => println!("{text}"),
    }
    let is_open = |(archive, found): &(&PathBuf, &Found)| {
        let differs = !found.info.is_empty() || !found.val.is_empty();
        differs && reasons::of(&name(archive)).is_none()
    };
    let open: Vec<String> =
        found.iter().filter(is_open).map(|(archive, _)| name(archive)).collect();
    assert!(open.is_empty(), "no reason is known for {}", open.join(", "));
    let is_stale = |archive: &&str| {
        let found = found.get(&Path::new(SUITE).join(archive));
        found.is_some_and(|found| found.info.is_empty() && found.val.is_empty())
    };
    let stale: Vec<&str> = reasons::archives().filter(is_stale).collect();
    assert!(stale.is_empty(), "nothing differs any more of {}", stale.join(", "));
}

/// Makes all runs over an archive.
fn look_at(archive: &Path) -> Found {
    let path = archive.to_str().expect("UTF-8");
    let opens = theirs("pminfo", &["-a", path, "-O", "0", "no.such"]);
    let is_refused = |printed: &str| printed.contains("Cannot open archive");
    let mine = ours("pminfo", &["-a", path, "-O", "0", "no.such"]);
    let mut found = Found {
        kind: kind(archive),
        opens: [!is_refused(&opens.err), !is_refused(&mine.err)],
        ..Found::default()
    };
    for (tool, options) in INFO_OPTIONS {
        found.info_runs += 1;
        let mut arguments: Vec<&str> = options.split(' ').filter(|one| !one.is_empty()).collect();
        arguments.extend(["-a", path]);
        found.info.extend(difference(tool, &arguments));
    }
    // The choice does not depend on other archives.
    let mut choice = Choice(1);
    let mut turn = path.len();
    for arguments in archive_runs::of(archive, &mut choice, &mut turn) {
        found.val_runs += 1;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        found.val.extend(difference("pmval", &arguments));
    }
    found
}

/// Runs a tool and the command called after it, and says what differs.
fn difference(tool: &str, arguments: &[&str]) -> Option<String> {
    let (theirs, ours) = (theirs(tool, arguments), ours(tool, arguments));
    let printed = |printed: &side_by_side::Printed| match tool {
        "pminfo" => without_help_of_events(printed),
        _ => printed.out.clone(),
    };
    let (expected, found) = (printed(&theirs), printed(&ours));
    if (theirs.status, &expected) == (ours.status, &found) {
        // The words of the failure are part of the answer; advice may follow.
        let first = |text: &str| {
            text.lines().next().map(|line| line.split_once(": ").map(|(_, text)| text.to_owned()))
        };
        let is_refused = theirs.err.contains("Cannot open archive");
        if !is_refused || first(&theirs.err) == first(&ours.err) {
            return None;
        }
        let of = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        return Some(format!(
            "`{}`: ours `{}`, theirs `{}`",
            arguments.join(" "),
            of(&ours.err),
            of(&theirs.err)
        ));
    }
    let first = first_difference(&found, &expected).replace('\n', " / ");
    let statuses = (ours.status, theirs.status);
    Some(format!("`{tool} {}`: {statuses:?} {first}", arguments.join(" ")))
}

/// The row of the table that an archive counts in.
fn kind(archive: &Path) -> String {
    if archive.starts_with(Path::new(SUITE).join("badarchives")) {
        return "damaged on purpose (`badarchives`)".to_owned();
    }
    if archive.is_dir() {
        return "folders, each as one archive of several".to_owned();
    }
    let version = match Context::archive(archive) {
        Ok(Context::Archive(context)) if context.label().version == Version::V3 => "version 3",
        Ok(_) => "version 2",
        Err(_) => return "refused by us".to_owned(),
    };
    format!("{version}{}", if is_compressed(archive) { ", compressed" } else { "" })
}

fn name(archive: &Path) -> String {
    archive.strip_prefix(SUITE).unwrap_or(archive).display().to_string()
}

fn markdown(found: &BTreeMap<PathBuf, Found>) -> String {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for found in found.values() {
        for kind in [found.kind.as_str(), "~"] {
            let row = rows.entry(kind).or_default();
            row.archives += 1;
            for (count, opens) in row.opens.iter_mut().zip(found.opens) {
                *count += usize::from(opens);
            }
            row.info += usize::from(found.info.is_empty());
            row.val += usize::from(found.val.is_empty());
            row.runs += found.info_runs + found.val_runs;
            row.equal_runs += found.info_runs + found.val_runs - found.info.len() - found.val.len();
        }
    }
    let mut text = String::from(
        "| archives | number | open with PCP 6.0.3 | open with pmderive | pminfo and pmprobe equal \
         | pmval equal | runs equal |\n|---|---|---|---|---|---|---|\n",
    );
    for (kind, row) in &rows {
        let Row { archives, opens: [theirs, ours], info, val, runs, equal_runs } = row;
        let kind = if *kind == "~" { "**all**" } else { kind };
        let _ = writeln!(
            text,
            "| {kind} | {archives} | {theirs} | {ours} | {info} | {val} | {equal_runs} of {runs} |"
        );
    }
    text += "\nWhat differs, and why:\n\n| archive | runs | why |\n|---|---|---|\n";
    let differs = |found: &Found| found.info.len() + found.val.len();
    for (archive, found) in found.iter().filter(|(_, found)| differs(found) > 0) {
        let name = name(archive);
        let why = reasons::of(&name).unwrap_or("not known");
        let all = found.info_runs + found.val_runs;
        let _ = writeln!(text, "| {name} | {} of {all} | {why} |", differs(found));
    }
    text += "\nThe first line that differs in each of these runs:\n\n";
    for run in found.values().flat_map(|found| found.info.iter().chain(&found.val)) {
        let _ = writeln!(text, "- {run}");
    }
    text
}
