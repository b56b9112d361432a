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
//! Other modules find everything out and give it as data; this one chooses,
//! orders and shows it.

mod archive;
mod archives;
mod args;
mod check;
mod command_line;
mod definitions;
mod deps;
mod ending;
mod environment;
mod eval;
mod explain;
mod export;
mod fmt;
mod lines;
mod messages;
mod missing;
mod pcp;
mod positional;
mod progress;
mod record;
mod replay;
mod samples;
#[cfg(feature = "fleet")]
mod serve;
mod source;
#[allow(clippy::disallowed_methods, reason = "it owns the streams")]
mod terminal;
mod test;

use std::io;
use std::process::ExitCode;

use clap::{ArgAction, Parser, Subcommand};
use pmderive_runtime::source::SourceError;

use self::lines::Lines;
use messages::{MAX_DIAGNOSTICS, Messages};

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
    /// List the metrics that definitions read from a source.
    Deps(deps::DepsArguments),
    /// Print metadata and values of metrics, as pminfo does.
    Info(Box<pcp::info::InfoArguments>),
    /// Print values of a metric, sample after sample, as pmval does.
    Val(Box<pcp::val::ValArguments>),
    /// Print which metrics have values, as pmprobe does.
    Probe(Box<pcp::probe::ProbeArguments>),
    /// Record metrics, derived ones among them, into an archive.
    Record(Box<record::RecordArguments>),
    /// Describe archives: labels, times, files, damage.
    Archive(archive::ArchiveArguments),
    /// Watch a fleet of hosts, and hand values to other systems.
    #[cfg(feature = "fleet")]
    Serve(Box<serve::ServeArguments>),
    /// Answer cases of the conformance corpus.
    Replay(replay::ReplayArguments),
}

/// The outcome of a run, by its exit status; of several the greatest counts.
/// The commands called after PCP's tools know the first two only, as those do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything was evaluated, or nothing is wrong.
    Good = 0,
    /// Some metric failed, a test failed, or a file is not formatted as it should be.
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
    /// As `Tool`, after the words were said.
    #[error("")]
    Said,
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An archive cannot be written.
    #[error("{0}")]
    Archive(String),
    /// Nobody reads the output any more. Holds the outcome so far.
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
    let arguments = match command_line::read(std::env::args_os().collect(), &mut messages) {
        Ok(arguments) => arguments,
        Err(outcome) => return outcome.into(),
    };
    messages.set_limit(arguments.max_diagnostics);
    messages.set_raw(arguments.command.is_raw());
    let outcome = match &arguments.command {
        Command::Eval(arguments) => eval::run(arguments, &mut messages),
        Command::Export(arguments) => export::run(arguments, &mut messages),
        Command::Check(arguments) => check::run(arguments, &mut messages),
        Command::Explain(arguments) => explain::run(arguments, &mut messages),
        Command::Fmt(arguments) => fmt::run(arguments, &messages),
        Command::Test(arguments) => test::run(arguments, &mut messages),
        Command::Deps(arguments) => deps::run(arguments, &mut messages),
        Command::Info(arguments) => pcp::info::run(arguments, &mut messages),
        Command::Val(arguments) => pcp::val::run(arguments, &mut messages),
        Command::Probe(arguments) => pcp::probe::run(arguments, &mut messages),
        Command::Record(arguments) => record::run(arguments, &mut messages),
        Command::Archive(arguments) => archive::run(arguments, &mut messages),
        #[cfg(feature = "fleet")]
        Command::Serve(arguments) => serve::run(arguments, &mut messages),
        Command::Replay(arguments) => replay::run(arguments),
    };
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
    // PCP's tools do not count what they pass over as a failure.
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
            #[cfg(feature = "fleet")]
            Command::Serve(_) => false,
        }
    }

    /// True if the arguments of a command called after a tool of PCP choose this
    /// machine without pmcd.
    fn is_local(&self) -> bool {
        match self {
            Command::Info(arguments) => arguments.options.source.local,
            Command::Val(arguments) => arguments.options.source.local,
            Command::Probe(arguments) => arguments.options.source.local,
            _ => false,
        }
    }
}
