//! Reads the arguments of the process, and the options that environment variables add.
//!
//! ```text
//! arguments ──► with --compat: pcp::arguments, with variables ──► clap
//!          └──► without: clap, and again with variables' options in front
//! ```
//!
//! The commands themselves give the options a meaning.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches};

use super::appearance::Colour;
use super::command::Arguments;
use super::environment::{Setting, settings};
use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::pcp::arguments::{Impersonated, OwnOption, Tool};
use super::stop::Stop;
use super::{options, terminal};
use crate::escape;
use crate::syntax::{name_mistake, nearest};

/// Parses the arguments; the first one is the program. Beside them stands a note about
/// variables that give options, for a command that fails.
///
/// # Errors
/// The arguments are wrong, or ask only for help. The message is printed already; the error is
/// the exit status.
pub fn read(
    given: Vec<OsString>,
    messages: &mut Messages,
) -> Result<(Arguments, Option<String>), ExitStatus> {
    let mut command = command().color(Colour::of_arguments(&given).into());
    let of_tool = given.get(1).and_then(|name| Tool::of_command(name.to_str()?));
    let settings = of_tool.map(|_| settings(std::env::vars_os())).unwrap_or_default();
    let Some(tool) = Impersonated::by(&given) else {
        // Mistakes in the arguments themselves come first.
        let arguments = parse_or_tell(&mut command, &given, messages)?;
        let Some(of_tool) = of_tool.filter(|_| !settings.is_empty()) else {
            return Ok((arguments, None));
        };
        let is_local = arguments.command.is_local();
        let own = command.find_subcommand(of_tool.command).unwrap_or(&command);
        let (words, note) = words_of(&settings, own, is_local).map_err(|problem| {
            messages.error(&problem);
            ExitStatus::Failed
        })?;
        let given = [&given[..2], &words, &given[2..]].concat();
        return match parse_or_tell(&mut command, &given, messages) {
            Ok(arguments) => Ok((arguments, note)),
            Err(status) => {
                note.iter().for_each(|note| messages.error(note));
                Err(status)
            }
        };
    };
    messages.speak_as(tool);
    let own = own_options(&command, tool.tool);
    let given = tool.translate(&given, &own, &settings).map_err(|ending| {
        messages.text(&ending.text);
        if ending.is_good { ExitStatus::Good } else { ExitStatus::Failed }
    })?;
    Ok((parse_or_tell(&mut command, &given, messages)?, None))
}

/// The options that variables give a command, and a note about where they come from, if there
/// are any. If the source `is_local`, variables can choose no other.
fn words_of(
    settings: &[Setting],
    command: &clap::Command,
    is_local: bool,
) -> Result<(Vec<OsString>, Option<String>), String> {
    let (mut words, mut variables) = (Vec::new(), Vec::new());
    for setting in settings.iter().filter(|setting| !is_local || !setting.chooses_source()) {
        let of_setting = setting.words(command)?;
        if !of_setting.is_empty() {
            variables.push(setting.variable);
        }
        words.extend(of_setting);
    }
    let note = (!variables.is_empty()).then(|| {
        let variables = variables.join(", ");
        format!("options were also taken from the environment: {variables}")
    });
    Ok((words, note))
}

fn parse_or_tell(
    command: &mut clap::Command,
    given: &[OsString],
    messages: &Messages,
) -> Result<Arguments, ExitStatus> {
    parse(command, given).map_err(|error| {
        let printed = print(&error, command, given).map_err(Stop::from);
        let name = given.get(1).and_then(|name| name.to_str());
        let is_tool = name.and_then(Tool::of_command).is_some();
        let outcome = match (error.use_stderr(), printed) {
            (true, _) => ExitStatus::Mistake,
            (false, Err(stop @ Stop::Output(_))) => {
                messages.error(&stop);
                ExitStatus::SourceFailed
            }
            (false, _) => return ExitStatus::Good,
        };
        if is_tool { ExitStatus::Failed } else { outcome }
    })
}

fn parse(command: &mut clap::Command, given: &[OsString]) -> Result<Arguments, clap::Error> {
    let matches = command.try_get_matches_from_mut(given);
    let mut matches = matches.map_err(|error| with_way_to_help(error, given))?;
    let chosen = matches.subcommand();
    let is_raw = chosen.is_some_and(|(name, of)| ESCAPING.contains(&name) && of.get_flag("raw"));
    let read = Arguments::from_arg_matches_mut(&mut matches);
    let mut arguments = read.map_err(|error| error.format(command))?;
    arguments.common.is_raw = is_raw;
    Ok(arguments)
}

/// Commands that escape foreign text in a pipe as well, unless `--raw` is given.
const ESCAPING: [&str; 9] =
    ["eval", "export", "check", "explain", "fmt", "test", "deps", "record", "archive"];

/// Commands that a build may lack, each with the feature that builds it.
const OPTIONAL: [(&str, &str); 2] = [("serve", "fleet"), ("lsp", "lsp")];

/// Adds a hint to an error. A user who ends a line with `-h` wants help, but `-h` takes a host.
/// A command with an unknown name gets the nearest known one.
fn with_way_to_help(mut error: clap::Error, given: &[OsString]) -> clap::Error {
    if let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(ContextValue::Strings(known)) = error.get(ContextKind::SuggestedSubcommand)
        && let Some(near) = nearest(wrong, known.iter().map(String::as_str))
    {
        let near = ContextValue::Strings(vec![near.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    }
    if let Some(tip) = tip_for_command(&error) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if let Some(tip) = tip_for_option(&error, given) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if error.kind() == ErrorKind::InvalidValue && given.last().is_some_and(|last| last == "-h") {
        let name = given.get(1).and_then(|name| name.to_str()).unwrap_or_default();
        let tip = format!("`-h` is a host here; for help type `pmderive help {name}`");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Words that people type for a command, each with the way to do it here.
const COMMANDS_OF_OTHERS: &[(&[&str], &str)] = &[
    (&["pmrep", "rep"], "`pmderive eval --format columns` is like pmrep: `pmderive help pmrep`"),
    (&["pmval"], "that is `pmderive val`"),
    (&["pminfo", "list", "ls", "metrics"], "`pmderive info` lists metrics"),
    (&["pmprobe"], "that is `pmderive probe`"),
    (&["pmlogger"], "`pmderive record` writes archives"),
    (&["pmdumplog", "pmloglabel", "pmlogcheck", "dumplog"], "`pmderive archive` is about archives"),
    (&["pmie"], "`pmderive help pmie` is about rules of pmie"),
    (&["lint"], "`pmderive check --lint` finds what is probably wrong"),
    (&["format"], "that is `pmderive fmt`"),
    (&["validate", "verify"], "that is `pmderive check`"),
    (&["top", "watch"], "`pmderive eval -t 1 -s 60 --format columns` prints a line a second"),
];

/// The tip for a command that there is not.
fn tip_for_command(error: &clap::Error) -> Option<String> {
    let wrong = error.get(ContextKind::InvalidSubcommand);
    let Some(ContextValue::String(wrong)) = wrong else { return None };
    if let Some((name, feature)) = OPTIONAL.iter().find(|(name, _)| name == wrong) {
        return Some(format!(
            "this program was built without `{name}`: that is the feature `{feature}`"
        ));
    }
    let way = COMMANDS_OF_OTHERS.iter().find(|(names, _)| names.contains(&wrong.as_str()));
    way.map(|(_, way)| (*way).to_owned()).or_else(|| {
        let is_metric = wrong.contains('.') && name_mistake(wrong).is_none();
        is_metric.then(|| format!("`pmderive eval {wrong}` prints a metric"))
    })
}

/// Commands whose arguments may be expressions, and no files.
const TAKE_EXPRESSIONS: &[&str] = &["eval", "export", "explain", "record", "val"];

/// Commands that report on definitions.
const REPORT: &[&str] = &["check", "test", "fmt", "deps"];

/// Options of other tools that commands lack, each with the way to do the same here: the commands,
/// the options, the way.
const OPTIONS_OF_OTHERS: &[(&[&str], &str, &str)] = &[
    (
        TAKE_EXPRESSIONS,
        "-e",
        "an expression needs no option: it is an argument as it is, in quotes",
    ),
    (TAKE_EXPRESSIONS, "-F", "`export -o FILE` writes a table, `record -o FILE` an archive"),
    (
        TAKE_EXPRESSIONS,
        "-i --instances -j --live-filter",
        "instances are chosen in the expression: `NAME[INSTANCE]`, `matchinst(/PATTERN/, NAME)`",
    ),
    (
        TAKE_EXPRESSIONS,
        "-o",
        "`--format` chooses the form of the output, `export -o FILE` writes a file",
    ),
    (TAKE_EXPRESSIONS, "-p", "the time of each sample is printed anyway"),
    (TAKE_EXPRESSIONS, "-r", "counters are raw as they are; `rate(NAME)` gives their rate"),
    (
        TAKE_EXPRESSIONS,
        "-b --space-scale -B -q --count-scale -y --time-scale",
        "units are chosen in the expression: `rescale(NAME, \"Mbyte\")`",
    ),
    (
        TAKE_EXPRESSIONS,
        "-J --rank",
        "the largest are chosen in the expression: `topk(5, NAME)` with --extensions",
    ),
    (
        &["eval", "export"],
        "-f -g -k -l --delimiter -P --precision -u -U -w -x -X -1",
        "each form has a fixed layout: `--format` chooses the form",
    ),
    (REPORT, "-o --output", "the output can be redirected: `> FILE`"),
    (
        REPORT,
        "--sarif --junit --github",
        "`--format` chooses the form of the findings, such as sarif, junit or github",
    ),
    (
        &["check"],
        "--deny-warnings --strict --werror -W",
        "`all = \"deny\"` below `[lints]` in pmderive.toml makes warnings errors",
    ),
    (
        &["check"],
        "--changed --staged",
        "`--changed-since HEAD` reports what has changed since the last commit",
    ),
    (&["archive"], "-a -l -L", "archives need no option: `pmderive archive ARCHIVE`"),
];

/// The tip for an argument that a command does not take. It replaces the tip of clap, which would
/// pass a letter on as an argument.
fn tip_for_option(error: &clap::Error, given: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let name = given.get(1)?.to_str()?;
    let way = OPTIONS_OF_OTHERS.iter().find(|(commands, options, _)| {
        commands.contains(&name) && options.split(' ').any(|option| option == wrong)
    });
    if let Some((.., way)) = way {
        return Some((*way).to_owned());
    }
    if name == "val" && !wrong.starts_with('-') {
        return Some("`val` prints one metric, `eval --format columns` several".to_owned());
    }
    let is_alone = error.get(ContextKind::SuggestedArg).is_none()
        && given.iter().any(|one| one.to_str() == Some(wrong));
    is_alone.then(|| format!("`pmderive help {name}` has all options"))
}

/// Prints help or an error about arguments, escaped for a terminal.
fn print(
    error: &clap::Error,
    command: &mut clap::Command,
    given: &[OsString],
) -> std::io::Result<()> {
    let escaped: Vec<OsString> =
        given.iter().map(|one| escape::line(one.as_bytes()).into_owned().into()).collect();
    let are_shown = error.use_stderr() && given != escaped;
    match are_shown.then(|| parse(command, &escaped)) {
        None => error.print(),
        Some(Err(error)) => error.print(),
        // Rewriting the message removed the mistake.
        Some(Ok(_)) => {
            terminal::write_error(escape::lines(error.render().to_string().as_bytes()).as_bytes())
        }
    }
}

/// The message for an unknown command.
pub fn no_such_command(name: &str) -> String {
    let root = command();
    let known = root.get_subcommands().filter(|one| !one.is_hide_set());
    let near = nearest(name, known.map(clap::Command::get_name));
    let advice = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`pmderive help` lists all commands".to_owned(),
    };
    format!("there is no command `{name}`: {advice}")
}

/// Builds the command line. Commands named after PCP's tools follow the conventions of those tools.
pub fn command() -> clap::Command {
    let mut command = Arguments::command();
    let version = clap::Arg::new("version").short('V').long("version");
    command = command.arg(version.help("Print version").action(ArgAction::Version));
    // Their letter `-v` has another meaning.
    for name in ["info", "probe", "record"] {
        command = command.mut_subcommand(name, |command| {
            let verbose = clap::Arg::new("verbose").long("verbose").action(ArgAction::SetTrue);
            command.arg(
                verbose
                    .help("Print more, such as the definition files that are read")
                    .display_order(993),
            )
        });
    }
    for name in ESCAPING {
        command = command.mut_subcommand(name, |command| {
            let raw = clap::Arg::new("raw").long("raw").action(ArgAction::SetTrue);
            let help = "Print names and values unescaped, control characters included";
            command.arg(raw.help(help).display_order(999))
        });
    }
    for (name, has_letter) in [("info", true), ("val", true), ("probe", false)] {
        let version = clap::Arg::new("version").long("version").action(ArgAction::Version);
        let version = version.help("Print version").display_order(1000);
        let debug = clap::Arg::new("debug").short('D').long("debug").action(ArgAction::Append);
        let debug = debug.value_name("DEBUG").help("Accepted without effect").hide(true);
        command = command.mut_subcommand(name, |command| {
            let command = match name {
                "val" => command,
                _ => command.mut_args(only_from_environment),
            };
            command
                .mut_args(again)
                .version(env!("CARGO_PKG_VERSION"))
                .disable_version_flag(true)
                .arg(if has_letter { version.short('V') } else { version })
                .arg(debug)
        });
    }
    options::arranged(command)
}

/// Makes an option readable from the environment alone: a tool that reports on one time has no
/// options for a stretch of time, but reads their variables.
fn only_from_environment(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "start" | "finish" | "align" => argument.short(None).hide(true),
        _ => argument,
    }
}

/// Lets the last one count if an option is given twice, as PCP's tools do. Two hosts are a
/// mistake.
fn again(argument: clap::Arg) -> clap::Arg {
    let is_single = matches!(argument.get_action(), ArgAction::Set | ArgAction::SetTrue);
    let id = argument.get_id().clone();
    match is_single && !argument.is_positional() && id != "host" {
        true => argument.overrides_with(id),
        false => argument,
    }
}

/// The options of a command that its tool of PCP lacks.
fn own_options(root: &clap::Command, tool: &Tool) -> Vec<OwnOption> {
    let Some(command) = root.find_subcommand(tool.command) else { return Vec::new() };
    let mut own = Vec::new();
    let of_all = root.get_arguments().filter(|argument| argument.is_global_set());
    for argument in command.get_arguments().chain(of_all) {
        let Some(long) = argument.get_long().filter(|long| !Tool::any_has(long)) else { continue };
        let takes_argument =
            argument.get_action().takes_values() && !argument.is_require_equals_set();
        // Common options are given by their word only, so letters are refused as before.
        let letter = argument.get_short().filter(|_| !argument.is_global_set());
        let letter = letter.filter(|letter| !tool.has_letter(*letter));
        let forms = [Some(format!("--{long}")), letter.map(|letter| format!("-{letter}"))];
        own.extend(forms.into_iter().flatten().map(|form| OwnOption { form, takes_argument }));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        command().debug_assert();
    }
}
