//! The command line: arguments in, output and exit status out.
//!
//! ```text
//! args ──► definitions ──► engine ──► samples ─┬─► eval ──► output (text │ JSON │ CSV) ──► standard output
//!             │                          ▲     └─► export ──► a file
//!             └──► check, explain, deps  source (pmcd │ archive │ this process)
//!
//!  diagnostics and messages of all of them ──► messages ──► standard error
//! ```
//!
//! Everything that a command finds out is data of the other modules; here it
//! is chosen, ordered and shown.

mod archive;
mod archives;
mod args;
mod check;
mod definitions;
mod deps;
mod ending;
mod environment;
mod eval;
mod explain;
mod export;
mod fetch;
mod fmt;
mod following;
mod info;
mod lines;
mod messages;
mod missing;
mod mistakes;
mod output;
mod pace;
mod patience;
mod pcp_arguments;
mod pcp_options;
mod positional;
mod probe;
mod progress;
mod record;
mod replay;
mod sample_arguments;
mod samples;
mod source;
#[allow(clippy::disallowed_methods, reason = "it owns the streams")]
mod terminal;
mod test;
mod time_options;
mod val;
mod walk;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use pmderive_runtime::source::SourceError;

use self::lines::Lines;
use crate::escape;
use messages::{MAX_DIAGNOSTICS, Messages};
use pcp_arguments::{Impersonated, OwnOption, Tool};

/// Derived metrics of Performance Co-Pilot, compiled to native code.
#[derive(Debug, Parser)]
#[command(version, disable_help_flag = true, disable_help_subcommand = true)]
struct Arguments {
    /// What to do.
    #[command(subcommand)]
    command: Command,
    /// Diagnostics that are drawn at most; the rest is counted.
    #[arg(
        long, global = true, value_name = "N", default_value_t = MAX_DIAGNOSTICS,
        display_order = 999
    )]
    max_diagnostics: usize,
    /// Print help.
    #[arg(short = '?', long, global = true, display_order = 1000, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate derived metrics and print their values.
    Eval(eval::EvalArguments),
    /// Write values of metrics as a table: CSV, JSON, Arrow or Parquet.
    Export(export::ExportArguments),
    /// Look for mistakes in definitions and expressions.
    Check(check::CheckArguments),
    /// Say what becomes of an expression, and why.
    Explain(explain::ExplainArguments),
    /// Bring definition files into their usual form.
    Fmt(fmt::FmtArguments),
    /// Run unit tests of definitions.
    Test(test::TestArguments),
    /// List the metrics that definitions need of a source.
    Deps(deps::DepsArguments),
    /// Print what is known of metrics, and their values, as pminfo does.
    Info(Box<info::InfoArguments>),
    /// Print values of a metric, sample after sample, as pmval does.
    Val(Box<val::ValArguments>),
    /// Print which metrics have values, as pmprobe does.
    Probe(Box<probe::ProbeArguments>),
    /// Record metrics, derived ones among them, into an archive.
    Record(Box<record::RecordArguments>),
    /// Print what archives are: labels, times, files, damage.
    Archive(archive::ArchiveArguments),
    /// Answer cases of the conformance corpus.
    Replay(replay::ReplayArguments),
}

/// What a run came to, by its exit status; of several the greatest counts.
/// The commands called after PCP's tools know the first two only, as those do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything was evaluated, or nothing is wrong.
    Good = 0,
    /// Some metric failed, a test failed, or a file has not the form that it should have.
    Failed = 1,
    /// The usage or a definition is wrong.
    Mistake = 2,
    /// The source failed.
    SourceFailed = 3,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome as u8)
    }
}

/// Why a command stops before its end.
#[derive(Debug, thiserror::Error)]
enum Stop {
    /// The usage is wrong.
    #[error("{0}")]
    Usage(String),
    /// The usage is wrong, which takes several lines to say.
    #[error("{0}")]
    UsageLines(Lines),
    /// What makes a tool of PCP end with status 1, in its words.
    #[error("{0}")]
    Tool(Lines),
    /// What makes a tool of PCP end with status 1 was said already.
    #[error("")]
    Said,
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An archive cannot be written.
    #[error("{0}")]
    Archive(String),
    /// Nobody reads the output any more; what is known by then.
    #[error("standard output is closed")]
    OutputClosed(Outcome),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::OutputClosed(Outcome::Good),
            _ => Stop::Output(error),
        }
    }
}

impl Stop {
    /// What makes a tool of PCP end with status 1, one part after the other.
    fn tool(parts: &[&dyn std::fmt::Display]) -> Stop {
        Stop::Tool(Lines::of(parts))
    }

    /// The same with what was known before: a closed output does not hide it.
    fn after(self, outcome: Outcome) -> Stop {
        match self {
            Stop::OutputClosed(known) => Stop::OutputClosed(known.max(outcome)),
            other => other,
        }
    }
}

/// Runs the command that the process's arguments ask for.
pub fn main() -> ExitCode {
    ending::outlive_file_size_limit();
    let mut messages = Messages::to_standard_error();
    let mut arguments = match read(std::env::args_os().collect(), &mut messages) {
        Ok(arguments) => arguments,
        Err(outcome) => return outcome.into(),
    };
    messages.set_limit(arguments.max_diagnostics);
    messages.set_raw(arguments.command.is_raw());
    let outcome = match arguments.command.source_of_tool() {
        Some(source) => source.add_environment(|name| std::env::var_os(name)),
        None => Ok(()),
    };
    let outcome = outcome.and_then(|()| match &arguments.command {
        Command::Eval(arguments) => eval::run(arguments, &mut messages),
        Command::Export(arguments) => export::run(arguments, &mut messages),
        Command::Check(arguments) => check::run(arguments, &mut messages),
        Command::Explain(arguments) => explain::run(arguments, &mut messages),
        Command::Fmt(arguments) => fmt::run(arguments, &messages),
        Command::Test(arguments) => test::run(arguments, &mut messages),
        Command::Deps(arguments) => deps::run(arguments, &mut messages),
        Command::Info(arguments) => info::run(arguments, &mut messages),
        Command::Val(arguments) => val::run(arguments, &mut messages),
        Command::Probe(arguments) => probe::run(arguments, &mut messages),
        Command::Record(arguments) => record::run(arguments, &mut messages),
        Command::Archive(arguments) => archive::run(arguments, &mut messages),
        Command::Replay(arguments) => replay::run(arguments),
    });
    let outcome = outcome.unwrap_or_else(|stop| {
        let outcome = match &stop {
            Stop::OutputClosed(known) => return *known,
            Stop::Tool(_) | Stop::Said => Outcome::Failed,
            Stop::Usage(_) | Stop::UsageLines(_) => Outcome::Mistake,
            Stop::Source(_) | Stop::Archive(_) | Stop::Output(_) => Outcome::SourceFailed,
        };
        match &stop {
            Stop::Said => {}
            Stop::UsageLines(lines) | Stop::Tool(lines) => messages.error_lines(&[lines]),
            _ => messages.error(&stop),
        }
        arguments.command.failed_with(outcome)
    });
    // To PCP's tools, what they pass over is no failure.
    let outcome = match messages.have_told_damage() && !messages.are_of_tool() {
        true => outcome.max(arguments.command.failed_with(Outcome::SourceFailed)),
        false => outcome,
    };
    outcome.into()
}

impl Command {
    /// What a failure comes to, of which PCP's tools know one kind.
    fn failed_with(&self, outcome: Outcome) -> Outcome {
        match self {
            Command::Info(_) | Command::Probe(_) | Command::Val(_) => Outcome::Failed,
            _ => outcome,
        }
    }

    /// True if text of others is to be printed as it is.
    fn is_raw(&self) -> bool {
        match self {
            Command::Eval(arguments) => arguments.raw.raw,
            Command::Export(arguments) => arguments.raw.raw,
            Command::Check(arguments) => arguments.raw.raw,
            Command::Explain(arguments) => arguments.raw.raw,
            Command::Fmt(arguments) => arguments.raw.raw,
            Command::Test(arguments) => arguments.raw.raw,
            Command::Deps(arguments) => arguments.raw.raw,
            Command::Record(arguments) => arguments.raw.raw,
            Command::Archive(arguments) => arguments.raw.raw,
            // The options are those of PCP's tools, and JSON escapes by itself.
            Command::Info(_) | Command::Val(_) | Command::Probe(_) | Command::Replay(_) => false,
        }
    }

    /// The source of a command called after a tool of PCP, which reads the
    /// environment as that does.
    fn source_of_tool(&mut self) -> Option<&mut args::SourceArguments> {
        match self {
            Command::Info(arguments) => Some(&mut arguments.options.source),
            Command::Val(arguments) => Some(&mut arguments.options.source),
            Command::Probe(arguments) => Some(&mut arguments.options.source),
            _ => None,
        }
    }
}

/// Reads the arguments. Where they leave nothing to do, or make no sense, that
/// is told, and the error is what the run comes to.
fn read(given: Vec<OsString>, messages: &mut Messages) -> Result<Arguments, Outcome> {
    let mut command = command();
    let is_of_tool = given.get(1).and_then(|name| Tool::of_command(name.to_str()?)).is_some();
    let given = match Impersonated::by(&given) {
        None => given,
        Some(tool) => {
            messages.speak_as(tool);
            let own = own_options(&command, tool.tool);
            tool.translate(&given, &own).map_err(|ending| {
                messages.text(&ending.text);
                if ending.is_good { Outcome::Good } else { Outcome::Failed }
            })?
        }
    };
    parse(&mut command, &given).map_err(|error| {
        print(&error, &mut command, &given);
        match (error.use_stderr(), is_of_tool) {
            (false, _) => Outcome::Good,
            (true, true) => Outcome::Failed,
            (true, false) => Outcome::Mistake,
        }
    })
}

fn parse(command: &mut clap::Command, given: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut matches = command.try_get_matches_from_mut(given)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(command))
}

/// Prints help, or what is wrong with the arguments, escaped if they are shown.
fn print(error: &clap::Error, command: &mut clap::Command, given: &[OsString]) {
    let escaped: Vec<OsString> =
        given.iter().map(|one| escape::line(one.as_bytes()).into_owned().into()).collect();
    let are_shown = error.use_stderr() && given != escaped;
    // When nobody reads what it says, there is nothing left to do.
    let _ = match are_shown.then(|| parse(command, &escaped)) {
        None => error.print(),
        Some(Err(error)) => error.print(),
        // What was wrong is not wrong any more.
        Some(Ok(_)) => {
            terminal::write_error(escape::lines(error.render().to_string().as_bytes()).as_bytes())
        }
    };
}

/// The command line, with what the commands called after PCP's tools have in
/// common with these.
fn command() -> clap::Command {
    let mut command = Arguments::command();
    for (name, has_letter) in [("info", true), ("val", true), ("probe", false)] {
        let version = clap::Arg::new("version").long("version").action(ArgAction::Version);
        let version = version.help("Print version").display_order(1000);
        let debug = clap::Arg::new("debug").short('D').long("debug").action(ArgAction::Append);
        let debug = debug.value_name("DEBUG").help("Taken, and of no effect").hide(true);
        command = command.mut_subcommand(name, |command| {
            command
                .mut_args(again)
                .version(env!("CARGO_PKG_VERSION"))
                .disable_version_flag(true)
                .arg(if has_letter { version.short('V') } else { version })
                .arg(debug)
        });
    }
    command
}

/// Of an option that is given again the last one counts, as with PCP's tools;
/// but two hosts are a mistake.
fn again(argument: clap::Arg) -> clap::Arg {
    let is_single = matches!(argument.get_action(), ArgAction::Set | ArgAction::SetTrue);
    let id = argument.get_id().clone();
    match is_single && !argument.is_positional() && id != "host" {
        true => argument.overrides_with(id),
        false => argument,
    }
}

/// The options of a command that the tool it is called after does not have.
fn own_options(command: &clap::Command, tool: &Tool) -> Vec<OwnOption> {
    let Some(command) = command.find_subcommand(tool.command) else { return Vec::new() };
    let mut own = Vec::new();
    for argument in command.get_arguments() {
        let Some(long) = argument.get_long().filter(|long| !Tool::any_has(long)) else { continue };
        let takes_argument =
            argument.get_action().takes_values() && !argument.is_require_equals_set();
        let letter = argument.get_short().filter(|letter| !tool.has_letter(*letter));
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
