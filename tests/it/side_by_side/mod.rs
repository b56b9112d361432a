//! Runs of a tool of PCP and of the command called after it, side by side.
//!
//! Tests of several files share this module. Times are in UTC, and definitions
//! of derived metrics that are installed here play no part.

// None of them needs all of it.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A finished run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Names and values of environment variables.
pub type Variables<'v> = [(&'v str, &'v str)];

fn printed(mut command: Command, variables: &Variables<'_>, arguments: &[&str]) -> Printed {
    let run = command
        .args(arguments)
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .env("PCP_DERIVED_CONFIG", "")
        .env("PCP_INDOM_CONFIG", "")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output();
    let Output { status, stdout, stderr } = run.expect("it runs");
    // What archives hold is not always UTF-8; each byte becomes a character.
    let text = |bytes: Vec<u8>| bytes.into_iter().map(char::from).collect();
    Printed { status: status.code(), out: text(stdout), err: text(stderr) }
}

/// Runs a tool of PCP.
pub fn theirs(tool: &str, arguments: &[&str]) -> Printed {
    theirs_with(&[], tool, arguments)
}

/// The same with variables.
pub fn theirs_with(variables: &Variables<'_>, tool: &str, arguments: &[&str]) -> Printed {
    printed(Command::new(tool), variables, arguments)
}

/// Runs the command called after it, with the answers of version 6.0.
pub fn ours(tool: &str, arguments: &[&str]) -> Printed {
    ours_with(&[], tool, arguments)
}

/// The same with variables.
pub fn ours_with(variables: &Variables<'_>, tool: &str, arguments: &[&str]) -> Printed {
    let command = tool.strip_prefix("pm").expect("a tool's name");
    let mut ours = Command::new(env!("CARGO_BIN_EXE_pmderive"));
    ours.args([command, "--compat", "6.0"]);
    printed(ours, variables, arguments)
}

/// Runs a command that no tool of PCP is the pattern of.
pub fn pmderive(arguments: &[&str]) -> Printed {
    pmderive_with(&[], arguments)
}

/// The same with variables.
pub fn pmderive_with(variables: &Variables<'_>, arguments: &[&str]) -> Printed {
    printed(Command::new(env!("CARGO_BIN_EXE_pmderive")), variables, arguments)
}

/// True if the tools of PCP are there; where everything must be, their absence
/// is a failure.
pub fn tools_are_installed() -> bool {
    let found = Path::new("/usr/bin/pminfo").exists();
    assert!(found || std::env::var("CI").is_err(), "PCP is not installed");
    if !found {
        eprintln!("NOT RUN: PCP is not installed (tests/real-pcp install)");
    }
    found
}

/// Where PCP's test suite is installed.
pub const SUITE: &str = "/var/lib/pcp/testsuite";

/// The archives of PCP's test suite as they are named to a tool: the base names
/// of those in the folders `archives` and `badarchives`, the folders below,
/// each of which is one archive in several parts, and the parts.
pub fn archives_of_suite() -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for folder in ["archives", "badarchives"] {
        let folder = Path::new(SUITE).join(folder);
        if !folder.is_dir() {
            assert!(std::env::var("CI").is_err(), "{} is not installed", folder.display());
            eprintln!("NOT RUN: {} is not installed", folder.display());
            continue;
        }
        for path in entries(&folder) {
            if path.is_dir() {
                found.extend(entries(&path).iter().filter_map(|member| base(member)));
                found.insert(path);
            } else {
                found.extend(base(&path));
            }
        }
    }
    found.into_iter().collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// The base name of the archive that a file belongs to.
fn base(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let name = COMPRESSED.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    let (base, role) = name.rsplit_once('.')?;
    let is_volume = role.bytes().all(|digit| digit.is_ascii_digit());
    (is_volume || role == "meta" || role == "index").then(|| path.with_file_name(base))
}

/// Ends of the names of compressed files.
const COMPRESSED: &[&str] = &[".xz", ".bz2", ".gz", ".zst"];

/// True for an archive of which some file is compressed.
pub fn is_compressed(archive: &Path) -> bool {
    let is_one = |path: &PathBuf| {
        let name = path.to_string_lossy();
        COMPRESSED.iter().any(|suffix| name.ends_with(suffix))
    };
    files(archive).iter().any(is_one)
}

/// The files of an archive.
pub fn files(archive: &Path) -> Vec<PathBuf> {
    if archive.is_dir() {
        return entries(archive);
    }
    let mut files = entries(archive.parent().expect("a folder"));
    files.retain(|file| base(file).as_deref() == Some(archive));
    files
}

/// Bytes of all files of an archive.
pub fn size(archive: &Path) -> u64 {
    files(archive).iter().map(|file| file.metadata().map_or(0, |found| found.len())).sum()
}

/// The first lines in which two texts differ.
pub fn first_difference(ours: &str, theirs: &str) -> String {
    let (mut a, mut b) = (ours.lines(), theirs.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return "none".to_owned(),
            (a, b) if a == b => {}
            (a, b) => {
                let shown = |line: Option<&str>| -> String {
                    line.map_or("(end)".to_owned(), |line| line.chars().take(300).collect())
                };
                return format!("ours    {}\ntheirs  {}", shown(a), shown(b));
            }
        }
    }
}

/// Splits what is printed of metrics into what is printed of each; `names` are
/// those of all metrics in the order of printing.
///
/// # Panics
/// One of them is missing.
pub fn by_metric<'t>(text: &'t str, names: &[&str]) -> Vec<&'t str> {
    let mut starts = Vec::with_capacity(names.len());
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let rest = names.get(starts.len()).and_then(|next| line.strip_prefix(next));
        if rest.is_some_and(|rest| rest.starts_with([' ', ':', '\n'])) {
            starts.push(offset);
        }
        offset += line.len();
    }
    assert_eq!(starts.len(), names.len(), "{:?} is missing", names.get(starts.len()));
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

/// Values of a host that a tool changes by running: the memory, files and
/// sockets that it uses itself. Of these the metadata is compared.
const DISTURBED: &[&str] =
    &["mem.", "vfs.", "filesys.", "tmpfs.", "network.sockstat.", "cgroup.memory."];

/// True for metrics whose values a tool changes by running.
pub fn is_disturbed(metric: &str) -> bool {
    DISTURBED.iter().any(|node| metric.starts_with(node))
}

/// What `info` and `probe` are asked for of all metrics of an archive.
pub const INFO_OPTIONS: &[(&str, &str)] =
    &[("pminfo", "-dfmtTlMIs"), ("pminfo", "-vO+1sec"), ("pmprobe", "-v"), ("pmprobe", "-iI")];

/// Metrics whose help texts are of our own words.
pub const HELP_OF_EVENTS: &[&str] = &["event.flags", "event.missed"];

/// What was printed, without the help texts of [`HELP_OF_EVENTS`].
pub fn without_help_of_events(printed: &Printed) -> String {
    let mut kept = String::new();
    let mut is_left_out = false;
    for line in printed.out.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        if HELP_OF_EVENTS.contains(&name) {
            is_left_out = true;
            kept += name;
        } else if line.is_empty() {
            is_left_out = false;
        }
        if !is_left_out {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}
