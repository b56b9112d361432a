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
//! Other modules compute all results and return them as data. This one chooses what
//! to show, in which order and how.

mod appearance;
mod archive;
mod archives;
mod args;
mod check;
mod command_line;
mod completions;
mod definitions;
mod deps;
mod environment;
mod eval;
mod examples;
mod explain;
mod export;
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
pub(crate) mod patch;
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
#[allow(clippy::disallowed_methods, reason = "it owns the streams")]
mod terminal;
mod test;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pmderive_runtime::source::SourceError;

use self::appearance::Colour;
use self::lines::Lines;
use crate::escape;
use messages::{MAX_DIAGNOSTICS, Messages};

/// Derived metrics of Performance Co-Pilot, compiled to native code.
///
/// pmderive reads definitions of derived metrics, checks them against a source of
/// metrics, compiles them, and evaluates them sample after sample. A source is the
/// pmcd of a host, an archive, or this machine, which needs no PCP for that.
#[derive(Debug, Parser)]
#[command(version, disable_version_flag = true, disable_help_subcommand = true)]
struct Arguments {
    /// What to do.
    #[command(subcommand)]
    command: Command,
    /// Show N diagnostics at most, and count the rest.
    #[arg(
        long, global = true, value_name = "N", default_value_t = MAX_DIAGNOSTICS,
        display_order = 990
    )]
    max_diagnostics: usize,
    /// Choose when messages have colours.
    #[arg(
        long,
        alias = "colour",
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        display_order = 991
    )]
    color: Colour,
    /// Print only errors: no warnings, notes, summaries or progress.
    #[arg(short, long, global = true, display_order = 992)]
    quiet: bool,
    /// Print more, such as the definition files that are read.
    #[arg(short, long, global = true, display_order = 993)]
    verbose: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate metrics and expressions, and print their values.
    ///
    /// Each argument is a metric, a group of metrics or an expression. Values come from a
    /// host, from archives or from this machine, sample after sample. A wrong expression
    /// does not affect the others.
    Eval(eval::EvalArguments),
    /// Write values of metrics as a table: CSV, JSON, Arrow or Parquet.
    ///
    /// The table has a row for each value, with the same columns for every source. A file
    /// appears under its name once it is complete. If the source fails or a signal comes, the
    /// rows so far are in FILE.partial.
    Export(export::ExportArguments),
    /// Find mistakes in definitions and expressions.
    ///
    /// Without a source only the texts are checked. With one, names, types, semantics, units
    /// and instance domains of operands are checked as well.
    Check(check::CheckArguments),
    /// Explain expressions, definitions and diagnostics.
    ///
    /// The explanation shows type, semantics, units and instances of every part, and the rule
    /// that decided each. Then it shows what is computed, down to the kernels.
    Explain(explain::ExplainArguments),
    /// Format definition files.
    ///
    /// Files are rewritten in place, with one spelling for blanks and line breaks. Comments,
    /// order and meaning stay.
    Fmt(fmt::FmtArguments),
    /// Run unit tests of definitions.
    ///
    /// A test lists samples, with gaps, resets and failures, and the values that are expected
    /// at each step.
    Test(test::TestArguments),
    /// List the metrics that definitions read.
    ///
    /// The list is text, JSON, a configuration of pmlogger, or the metadata that checks
    /// without a source need.
    Deps(deps::DepsArguments),
    /// Print metadata and values of metrics, as pminfo does.
    ///
    /// Options and output are those of pminfo(1), with --compat byte for byte. Without
    /// --compat an argument may also be an expression.
    Info(Box<pcp::info::InfoArguments>),
    /// Print values of a metric, sample after sample, as pmval does.
    ///
    /// Options and output are those of pmval(1), with --compat byte for byte. Without
    /// --compat the argument may also be an expression.
    Val(Box<pcp::val::ValArguments>),
    /// Print which metrics have values, as pmprobe does.
    ///
    /// Options and output are those of pmprobe(1), with --compat byte for byte. Without
    /// --compat an argument may also be an expression.
    Probe(Box<pcp::probe::ProbeArguments>),
    /// Record metrics into an archive, derived ones included.
    ///
    /// Every PCP tool reads the archive. Values of derived metrics are data in it, so readers
    /// need no definitions.
    Record(Box<record::RecordArguments>),
    /// Describe archives: labels, times, files, damage.
    ///
    /// Labels are printed as pmdumplog(1) prints them with -L.
    Archive(archive::ArchiveArguments),
    /// Watch a fleet of hosts, and pass values on to other systems.
    ///
    /// Each host is fetched once in an interval. Definitions are evaluated for every host, and
    /// aggregates across hosts. Prometheus reads the values, or they go to files of JSON lines
    /// or to receivers of remote write.
    #[cfg(feature = "fleet")]
    Serve(Box<serve::ServeArguments>),
    /// Show help on a command, or a page of the manual.
    Help(help::HelpArguments),
    /// Print completions for a shell.
    Completions(completions::CompletionsArguments),
    /// Print manual pages.
    ///
    /// Pages are in the language of man(7).
    Man(man::ManArguments),
    /// Serve an editor: mistakes, completion and values while one types.
    #[cfg(feature = "lsp")]
    Lsp(Box<lsp::LspArguments>),
    /// Answer cases of the conformance corpus.
    #[command(hide = true)]
    Replay(replay::ReplayArguments),
}

/// The outcome of a run, by its exit status. If several apply, the greatest counts.
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
    /// A file cannot be written.
    fn of_file(path: &Path, error: &io::Error) -> Stop {
        let text = format!("{}: {error}", escape::path(path));
        Stop::Output(io::Error::new(error.kind(), text))
    }

    /// What makes a tool of PCP end with status 1, one part after the other.
    fn tool(parts: &[&dyn std::fmt::Display]) -> Stop {
        Stop::Tool(Lines::of(parts))
    }

    /// Adds what was known before: a closed output does not hide it.
    fn after(self, outcome: Outcome) -> Stop {
        match self {
            Stop::OutputClosed(known) => Stop::OutputClosed(known.max(outcome)),
            other => other,
        }
    }
}

/// All texts of the help, for a test that reads them.
#[doc(hidden)]
pub fn help_texts() -> Vec<String> {
    command_line::texts()
}

/// Options that the help hides, old names among them, with their commands: for
/// a test that nothing teaches them.
#[doc(hidden)]
pub fn hidden_options() -> Vec<(String, String)> {
    command_line::hidden_options()
}

/// Whether arguments, of which the first is the program, are understood; for
/// tests of what documents show.
///
/// # Errors
/// What is wrong with them.
#[doc(hidden)]
pub fn understands(given: Vec<std::ffi::OsString>) -> Result<(), String> {
    let matches = command_line::command().try_get_matches_from(given);
    matches.map(drop).map_err(|error| error.to_string())
}

/// Runs the command that the process's arguments ask for.
pub fn main() -> ExitCode {
    signals::outlive_file_size_limit();
    let mut messages = Messages::to_standard_error();
    let mut arguments = match command_line::read(std::env::args_os().collect(), &mut messages) {
        Ok(arguments) => arguments,
        Err(outcome) => return outcome.into(),
    };
    messages.configure(&arguments);
    let settled = arguments.command.settle(&mut messages);
    let outcome = settled.and_then(|()| arguments.command.run(&mut messages));
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
    /// Reads what the folders of definition files say.
    fn settle(&mut self, messages: &mut Messages) -> Result<(), Stop> {
        match self {
            Command::Eval(arguments) => arguments.what.definitions.settle(&[], messages).map(drop),
            Command::Export(arguments) => {
                arguments.what.definitions.settle(&[], messages).map(drop)
            }
            Command::Record(arguments) => arguments.definitions.settle(&[], messages).map(drop),
            Command::Deps(arguments) => {
                let files = arguments.positional.files();
                arguments.definitions.settle(&files, messages).map(drop)
            }
            Command::Check(arguments) => arguments.settle(messages),
            Command::Explain(arguments) => arguments.settle(messages),
            _ => Ok(()),
        }
    }

    fn run(&self, messages: &mut Messages) -> Result<Outcome, Stop> {
        match self {
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
            Command::Completions(arguments) => completions::run(arguments, messages),
            Command::Man(arguments) => man::run(arguments, messages),
            #[cfg(feature = "lsp")]
            Command::Lsp(arguments) => lsp::run(arguments, messages),
            Command::Replay(arguments) => replay::run(arguments),
        }
    }

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
            Command::Help(_) | Command::Completions(_) | Command::Man(_) => false,
            #[cfg(feature = "fleet")]
            Command::Serve(_) => false,
            #[cfg(feature = "lsp")]
            Command::Lsp(_) => false,
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
