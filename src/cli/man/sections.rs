//! Sections of manual pages that no option describes: exit statuses, the environment, files,
//! other pages. Variables and files come from the manual.

use clap::Command;

use crate::manual::topic;

/// A term and its meaning.
pub type Entry = (&'static str, &'static str);

/// Exit statuses of all commands but those named after PCP's tools.
const OWN: &[Entry] = &[
    ("0", "Nothing is wrong. A metric without a value yet is not wrong."),
    ("1", "A metric or a unit test failed, something was left out, or a file is not formatted."),
    ("2", "The usage, a definition or a file of tests is wrong."),
    ("3", "The source failed, or the output cannot be written."),
];

/// Exit statuses of `info`, `val` and `probe`.
const OF_TOOLS: &[Entry] =
    &[("0", "Nothing is wrong."), ("1", "Something failed: an argument, a metric or the source.")];

/// The exit statuses of a command.
pub fn exit_statuses(command: &str) -> &'static [Entry] {
    match command {
        "info" | "val" | "probe" => OF_TOOLS,
        _ => OWN,
    }
}

/// The rows of a table of the manual's page about files and variables.
fn rows(heading: &str) -> impl Iterator<Item = (String, String)> {
    let page = topic("files").map_or("", |topic| topic.text);
    let part = page.split("\n## ").find_map(|part| part.strip_prefix(heading));
    let cells = |line: &str| {
        let (name, text) = line.strip_prefix("| `")?.strip_suffix(" |")?.split_once(" | ")?;
        Some((name.replace('`', ""), text.replace('`', "")))
    };
    part.unwrap_or_default().lines().filter_map(cells)
}

/// Files that the commands read.
pub fn files() -> impl Iterator<Item = (String, String)> {
    rows("Files that")
}

/// Variables that a command reads. Variables of the same meaning share an entry.
pub fn variables(command: &Command) -> impl Iterator<Item = (String, String)> {
    rows("Variables").filter(|(names, _)| reads(command, names))
}

fn reads(command: &Command, names: &str) -> bool {
    let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
    let name = command.get_name();
    match names.split(", ").next().unwrap_or_default() {
        _ if command.has_subcommands() => true,
        "PAGER" => name == "help",
        "PCP_ARCHIVE" => matches!(name, "info" | "val" | "probe"),
        "PCP_DERIVED_CONFIG" | "PCP_DERIVED_CONTROL" => has("configs"),
        "PCP_COUNTER_WRAP" | "PCP_IGNORE_MARK_RECORDS" => {
            has("archive") && has("interval") && name != "deps"
        }
        "TZ" => has("timezone"),
        one if one.starts_with("PCP_") || one.starts_with("PM") => has("host") || name == "serve",
        _ => true,
    }
}

/// Pages about PCP.
pub const SEE_ALSO: &[&str] = &[
    "PCPIntro(1)",
    "pmcd(1)",
    "pminfo(1)",
    "pmlogger(1)",
    "pmprobe(1)",
    "pmval(1)",
    "pmGetOptions(3)",
    "pmRegisterDerived(3)",
];
