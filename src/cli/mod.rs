//! The command line: arguments in, output and exit status out.
//!
//! ```text
//! args ──► definitions ──► engine ──► eval ──► output (text │ JSON │ CSV) ──► standard output
//!             │                         ▲
//!             └──► check, explain, deps source (pmcd │ archive │ this process)
//!
//!  diagnostics and messages of all of them ──► messages ──► standard error
//! ```
//!
//! Everything that a command finds out is data of the other modules; here it
//! is chosen, ordered and shown.

mod args;
mod check;
mod definitions;
mod deps;
mod eval;
mod explain;
mod fmt;
mod messages;
mod output;
mod replay;
mod source;
mod test;

use std::io;
use std::process::ExitCode;

use clap::{ArgAction, Parser, Subcommand};
use pmderive_runtime::source::SourceError;

use messages::Messages;

/// Derived metrics of Performance Co-Pilot, compiled to native code.
#[derive(Debug, Parser)]
#[command(version, disable_help_flag = true, disable_help_subcommand = true)]
struct Arguments {
    /// What to do.
    #[command(subcommand)]
    command: Command,
    /// Print help.
    #[arg(short = '?', long, global = true, display_order = 1000, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate derived metrics and print their values.
    Eval(eval::EvalArguments),
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
    /// Answer cases of the conformance corpus.
    Replay(replay::ReplayArguments),
}

/// What a run came to, by its exit status; of several the greatest counts.
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

/// Why a command stops before its end.
#[derive(Debug, thiserror::Error)]
enum Stop {
    /// The usage is wrong.
    #[error("{0}")]
    Usage(String),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Nobody reads the output any more.
    #[error("standard output is closed")]
    OutputClosed,
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::OutputClosed,
            _ => Stop::Output(error),
        }
    }
}

/// Runs the command that the process's arguments ask for.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut messages = Messages::to_standard_error();
    let outcome = match &arguments.command {
        Command::Eval(arguments) => eval::run(arguments, &mut messages),
        Command::Check(arguments) => check::run(arguments, &mut messages),
        Command::Explain(arguments) => explain::run(arguments, &mut messages),
        Command::Fmt(arguments) => fmt::run(arguments, &messages),
        Command::Test(arguments) => test::run(arguments, &mut messages),
        Command::Deps(arguments) => deps::run(arguments, &mut messages),
        Command::Replay(arguments) => replay::run(arguments),
    };
    let outcome = outcome.unwrap_or_else(|stop| {
        let outcome = match &stop {
            Stop::OutputClosed => return Outcome::Good,
            Stop::Usage(_) => Outcome::Mistake,
            Stop::Source(_) | Stop::Output(_) => Outcome::SourceFailed,
        };
        messages.error(&stop);
        outcome
    });
    ExitCode::from(outcome as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
