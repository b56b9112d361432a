//! Layout of the options of all commands. They stand under headings, and examples follow.
//! `--json` is added where JSON is one of the forms, and `-h` for help where it is not a host.
//!
//! This module knows only the names of the options. Each command gives its own a meaning.

use clap::builder::ArgPredicate;
use clap::{Arg, ArgAction, Command, ValueHint};

use super::examples::{examples, first_steps};

/// Heading for the choice of the source.
const SOURCE: &str = "Source";
/// Heading for the choice of samples, and for the form of times.
const TIME: &str = "Time";
/// Heading for the language of definitions.
const LANGUAGE: &str = "Language";
/// Heading for form and destination of the output.
const OUTPUT: &str = "Output";
/// Heading for the options of every command.
const GENERAL: &str = "General";

/// The headings.
pub const HEADINGS_IN_ORDER: [&str; 5] = [SOURCE, TIME, LANGUAGE, OUTPUT, GENERAL];

/// Options by heading. Options that are not listed stand under [`OUTPUT`].
const HEADINGS: &[(&str, &[&str])] = &[
    (
        SOURCE,
        &[
            "host",
            "archive",
            "local",
            "container",
            "max_expanded",
            "metadata",
            "namespace",
            "uniqnames",
            "retry",
            "follow",
            "nointerp",
            "targets",
            "config",
            "cases",
            "archives",
            "batch",
            "faster",
        ],
    ),
    (
        TIME,
        &[
            "samples", "start", "finish", "align", "origin", "interval", "hostzone", "timezone",
            "delay", "reverse", "drain", "deadline",
        ],
    ),
    (
        LANGUAGE,
        &[
            "configs",
            "definitions",
            "compat",
            "extensions",
            "register",
            "expressions",
            "backend",
            "lint",
            "missing",
            "fleet",
            "serve",
        ],
    ),
    (GENERAL, &["max_diagnostics", "color", "quiet", "verbose", "help", "version"]),
];

/// Options and arguments whose values a shell can complete.
const HINTS: &[(&str, ValueHint)] = &[
    ("archive", ValueHint::AnyPath),
    ("archives", ValueHint::AnyPath),
    ("arguments", ValueHint::FilePath),
    ("cases", ValueHint::FilePath),
    ("config", ValueHint::FilePath),
    ("configs", ValueHint::AnyPath),
    ("definitions", ValueHint::FilePath),
    ("files", ValueHint::AnyPath),
    ("fleet", ValueHint::FilePath),
    ("host", ValueHint::Hostname),
    ("metadata", ValueHint::FilePath),
    ("metric", ValueHint::AnyPath),
    ("namespace", ValueHint::FilePath),
    ("nointerp", ValueHint::AnyPath),
    ("output", ValueHint::AnyPath),
    ("serve", ValueHint::FilePath),
    ("targets", ValueHint::FilePath),
    ("uniqnames", ValueHint::FilePath),
];

/// Widest line of help, in columns.
const WIDTH: usize = 100;

/// Arranges all options of a command.
pub fn arranged(command: Command) -> Command {
    let command = command.max_term_width(WIDTH).after_help(first_steps());
    with_help(command).mut_args(placed).mut_subcommands(|command| {
        let command = with_json(with_help(command)).mut_args(placed);
        let notes =
            [command.get_after_help().map(ToString::to_string), examples(command.get_name())];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        match notes.is_empty() {
            true => command,
            false => command.after_help(notes.join("\n\n")),
        }
    })
}

/// Puts an option under its heading.
fn placed(argument: Arg) -> Arg {
    let id = argument.get_id().as_str().to_owned();
    let hint = HINTS.iter().find(|(name, _)| *name == id);
    let argument = match argument.get_action().takes_values() {
        // Shells would offer files for numbers and times.
        true => argument.value_hint(hint.map_or(ValueHint::Other, |(_, hint)| *hint)),
        false => argument,
    };
    if argument.is_positional() {
        return argument;
    }
    let heading = HEADINGS.iter().find(|(_, ids)| ids.contains(&&*id));
    argument.help_heading(heading.map_or(OUTPUT, |(heading, _)| heading))
}

/// Adds help, also as `-h` where that is not a host.
fn with_help(command: Command) -> Command {
    let has_host = command.get_arguments().any(|argument| argument.get_short() == Some('h'));
    let help = Arg::new("help").short('?').long("help").action(ArgAction::Help);
    let help = match has_host {
        true => help.help("Print help"),
        false => help.help("Print help, as -h does").short_alias('h'),
    };
    command.disable_help_flag(true).arg(help.display_order(1000))
}

/// Adds `--json` for `--format json`.
fn with_json(command: Command) -> Command {
    let format = command.get_arguments().find(|argument| argument.get_id() == "format");
    let forms = format.map(Arg::get_possible_values).unwrap_or_default();
    if !forms.iter().any(|form| form.get_name() == "json") {
        return command;
    }
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).conflicts_with("format");
    // It stands beside `--format`, as the first option of a heading decides about the order of
    // headings.
    command.arg(json.help("As --format json")).mut_args(|argument| {
        match argument.get_id() == "format" {
            true => argument.default_value_if("json", ArgPredicate::Equals("true".into()), "json"),
            false => argument,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::command_line::command;
    use super::*;

    #[test]
    fn what_the_tables_list_exists() {
        let root = command();
        let all: Vec<&Command> = root.get_subcommands().chain([&root]).collect();
        let exists = |id: &str| {
            all.iter().any(|one| one.get_arguments().any(|argument| argument.get_id() == id))
        };
        let listed = HEADINGS.iter().flat_map(|(_, ids)| ids.iter().copied());
        let is_missing = |id: &&str| !exists(id) && cfg!(feature = "fleet");
        let missing: Vec<&str> =
            listed.chain(HINTS.iter().map(|hint| hint.0)).filter(is_missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
        for argument in all.iter().flat_map(|one| one.get_arguments()) {
            assert_eq!(
                argument.get_help_heading().is_none(),
                argument.is_positional(),
                "{argument}"
            );
        }
    }

    #[test]
    fn json_is_a_form() {
        let forms = |line: &str| {
            let matches = command().try_get_matches_from(line.split(' ')).ok()?;
            let (_, matches) = matches.subcommand()?;
            let mut raw = matches.get_raw("format")?;
            Some(raw.next()?.to_str()?.to_owned())
        };
        for name in ["eval", "export", "check", "explain", "deps"] {
            assert_eq!(
                forms(&format!("pmderive {name} --json x")).as_deref(),
                Some("json"),
                "{name}"
            );
            assert_eq!(forms(&format!("pmderive {name} --json --format json x")), None, "{name}");
        }
    }
}
