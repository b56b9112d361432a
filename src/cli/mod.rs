//! The command line: arguments in, output and exit status out.
//!
//! ```text
//! args ──► definitions ──► engine ──► samples ─┬─► eval, export ──► report ──► standard output, a file
//!             │                          ▲     └─► record
//!             │        source (pmcd │ archive │ this machine) ──► pcp: info, val, probe
//!             └──► check, explain, deps, fmt, test
//!
//!  diagnostics and messages of all of them ──► messages ──► standard error
//! ```
//!
//! Other modules compute all results and return them as data. This module chooses what to show,
//! in which order and how.

mod appearance;
mod archive;
mod archives;
mod args;
mod check;
mod command;
mod command_line;
mod completions;
mod definitions;
mod deps;
mod environment;
mod eval;
mod examples;
mod exit_status;
mod explain;
mod export;
mod findings;
#[cfg_attr(not(feature = "fleet"), path = "no_fleet.rs")]
mod fleet;
mod fmt;
mod folders;
mod help;
mod lines;
#[cfg(feature = "lsp")]
mod lsp;
mod man;
mod messages;
mod missing;
mod options;
mod pcp;
mod positional;
mod progress;
mod record;
mod replay;
mod rewrite;
mod samples;
#[cfg(feature = "fleet")]
mod serve;
mod signals;
mod source;
mod stop;
#[allow(clippy::disallowed_methods, reason = "it owns the streams")]
mod terminal;
mod test;

use std::process::ExitCode;

use self::command::Command;
use self::exit_status::ExitStatus;
use self::messages::Messages;
use self::stop::Stop;

/// The command line as clap has it. Tests read its texts, and check examples with it.
#[doc(hidden)]
pub fn command() -> clap::Command {
    command_line::command()
}

/// Runs the command that the arguments of the process name.
pub fn main() -> ExitCode {
    signals::outlive_file_size_limit();
    let mut messages = Messages::to_standard_error();
    let read = command_line::read(std::env::args_os().collect(), &mut messages);
    let (mut arguments, note_of_variables) = match read {
        Ok(read) => read,
        Err(outcome) => return outcome.into(),
    };
    messages.configure(&arguments.common);
    let settled = arguments.command.settle(&mut messages);
    let outcome = settled.and_then(|()| run(&arguments.command, &mut messages));
    let outcome = outcome.unwrap_or_else(|stop| {
        let outcome = match &stop {
            Stop::OutputClosed(known) => return *known,
            Stop::Tool(_) | Stop::Reported => ExitStatus::Failed,
            Stop::Usage(_) | Stop::UsageLines(_) => ExitStatus::Mistake,
            Stop::Source(_) | Stop::Archive(_) | Stop::Output(_) => ExitStatus::SourceFailed,
        };
        match &stop {
            Stop::Reported => {}
            Stop::UsageLines(lines) | Stop::Tool(lines) => messages.error_lines(&[lines]),
            _ => messages.error(&stop),
        }
        note_of_variables.iter().for_each(|note| messages.error(note));
        arguments.command.failed_with(outcome)
    });
    // PCP's tools do not count an ignored mistake as a failure.
    let outcome = match messages.have_told_damage() && !messages.are_of_tool() {
        true => outcome.max(arguments.command.failed_with(ExitStatus::SourceFailed)),
        false => outcome,
    };
    outcome.into()
}

/// Runs a command.
fn run(command: &Command, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    match command {
        Command::Eval(arguments) => eval::run(arguments, messages),
        Command::Export(arguments) => export::run(arguments, messages),
        Command::Check(arguments) => check::run(arguments, messages),
        Command::Explain(arguments) => explain::run(arguments, messages),
        Command::Fmt(arguments) => fmt::run(arguments, messages),
        Command::Test(arguments) => test::run(arguments, messages),
        Command::Deps(arguments) => deps::run(arguments, messages),
        Command::Info(arguments) => pcp::info::run(arguments, messages),
        Command::Val(arguments) => pcp::val::run(arguments, messages),
        Command::Probe(arguments) => pcp::probe::run(arguments, messages),
        Command::Record(arguments) => record::run(arguments, messages),
        Command::Archive(arguments) => archive::run(arguments, messages),
        #[cfg(feature = "fleet")]
        Command::Serve(arguments) => serve::run(arguments, messages),
        Command::Help(arguments) => help::run(arguments, messages),
        Command::Completions(arguments) => {
            completions::run(arguments, command_line::command(), messages)
        }
        Command::Man(arguments) => man::run(arguments, messages),
        #[cfg(feature = "lsp")]
        Command::Lsp(arguments) => lsp::run(arguments, messages),
        Command::Replay(arguments) => replay::run(arguments),
    }
}
