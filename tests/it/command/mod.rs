//! Runs of the command for tests, and the form of their snapshots.
//!
//! Tests of several files share this module.

// None of them needs all of it.
#![allow(dead_code)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The command with a surrounding that depends on nothing.
pub fn pmderive(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmderive"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("PCP") || name.starts_with("PM")) {
            command.env_remove(name);
        }
    }
    // What is installed here for every client is not what these tests are about.
    command.env("PCP_DERIVED_CONFIG", "").env("PCP_INDOM_CONFIG", "").stdin(Stdio::null());
    command
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs the command to its end.
pub fn run(arguments: &[&str]) -> Run {
    finished(pmderive(arguments).output().expect("the command runs"))
}

/// What a finished process has left.
pub fn finished(output: Output) -> Run {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Run { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// An argument as it is typed in a shell.
fn typed(argument: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-._/:".contains(character);
    match argument.chars().all(plain) {
        true => format!(" {argument}"),
        false => format!(" '{argument}'"),
    }
}

/// A whole run as text: what was typed, both outputs, the exit status.
/// Arguments in `quietly` are given but not shown.
pub fn transcript(arguments: &[&str], quietly: &[&str]) -> String {
    let Run { status, out, err } = run(&[arguments, quietly].concat());
    let status = status.expect("an exit status");
    let typed: String = arguments.iter().map(|argument| typed(argument)).collect();
    format!("$ pmderive{typed}\n{out}--- standard error\n{err}--- exit status {status}\n")
}

/// Snapshots in a folder of the tests, called as they are.
pub fn settings(folder: &str) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}
