//! The command line of the program: its subcommands and the options that they share. Other
//! modules run them.

use clap::{Parser, Subcommand};

use super::archive::ArchiveArguments;
use super::args::CommonArguments;
use super::check::CheckArguments;
use super::completions::CompletionsArguments;
use super::deps::DepsArguments;
use super::eval::EvalArguments;
use super::exit_status::ExitStatus;
use super::explain::ExplainArguments;
use super::export::ExportArguments;
use super::fmt::FmtArguments;
use super::help::HelpArguments;
#[cfg(feature = "lsp")]
use super::lsp::LspArguments;
use super::man::ManArguments;
use super::messages::Messages;
use super::pcp::info::InfoArguments;
use super::pcp::probe::ProbeArguments;
use super::pcp::val::ValArguments;
use super::record::RecordArguments;
use super::replay::ReplayArguments;
#[cfg(feature = "fleet")]
use super::serve::ServeArguments;
use super::stop::Stop;
use super::test::TestArguments;

/// Derived metrics of Performance Co-Pilot, compiled to native code.
///
/// pmderive reads definitions of derived metrics, checks them against a source of
/// metrics, compiles them, and evaluates them sample after sample. A source is the
/// pmcd of a host, an archive, or this machine, which needs no PCP for that.
#[derive(Debug, Parser)]
#[command(version, disable_version_flag = true, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Arguments of all commands.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Evaluate metrics and expressions, and print their values.
    ///
    /// Each argument is a metric, a group of metrics or an expression. Values come from a
    /// host, from archives or from this machine, sample after sample. A wrong expression
    /// does not affect the others.
    Eval(EvalArguments),
    /// Write values of metrics as a table: CSV, JSON, Arrow or Parquet.
    ///
    /// The table has a row for each value, with the same columns for every source. A file
    /// appears under its name once it is complete. If the source fails or a signal comes, the
    /// rows so far are in FILE.partial.
    Export(ExportArguments),
    /// Find mistakes in definitions and expressions.
    ///
    /// Without a source only the texts are checked. With one, names, types, semantics, units
    /// and instance domains of operands are checked as well.
    Check(CheckArguments),
    /// Explain expressions, definitions and diagnostics.
    ///
    /// The explanation shows type, semantics, units and instances of every part, and the rule
    /// that decided each. Then it shows what is computed, down to the kernels.
    Explain(ExplainArguments),
    /// Format definition files.
    ///
    /// Files are rewritten in place, with one spelling for blanks and line breaks. Comments,
    /// order and meaning stay.
    Fmt(FmtArguments),
    /// Run unit tests of definitions.
    ///
    /// A test lists samples, with gaps, resets and failures, and the values that are expected
    /// at each step.
    Test(TestArguments),
    /// List the metrics that definitions read.
    ///
    /// The list is text, JSON, a configuration of pmlogger, or the metadata that checks
    /// without a source need.
    Deps(DepsArguments),
    /// Print metadata and values of metrics, as pminfo does.
    ///
    /// Options and output are those of pminfo(1), with --compat byte for byte. Without
    /// --compat an argument may also be an expression.
    Info(Box<InfoArguments>),
    /// Print values of a metric, sample after sample, as pmval does.
    ///
    /// Options and output are those of pmval(1), with --compat byte for byte. Without
    /// --compat the argument may also be an expression.
    Val(Box<ValArguments>),
    /// Print which metrics have values, as pmprobe does.
    ///
    /// Options and output are those of pmprobe(1), with --compat byte for byte. Without
    /// --compat an argument may also be an expression.
    Probe(Box<ProbeArguments>),
    /// Record metrics into an archive, derived ones included.
    ///
    /// Every PCP tool reads the archive. Values of derived metrics are data in it, so readers
    /// need no definitions.
    Record(Box<RecordArguments>),
    /// Describe archives: labels, times, files, damage.
    ///
    /// Labels are printed as pmdumplog(1) prints them with -L.
    Archive(ArchiveArguments),
    /// Watch a fleet of hosts, and pass values on to other systems.
    ///
    /// Each host is fetched once in an interval. Definitions are evaluated for every host, and
    /// aggregates across hosts. Prometheus reads the values, or they go to files of JSON lines
    /// or to receivers of remote write.
    #[cfg(feature = "fleet")]
    Serve(Box<ServeArguments>),
    /// Show help on a command, or a page of the manual.
    Help(HelpArguments),
    /// Print completions for a shell.
    Completions(CompletionsArguments),
    /// Print manual pages.
    ///
    /// Pages are in the language of man(7).
    Man(ManArguments),
    /// Serve an editor: mistakes, completion and values while one types.
    #[cfg(feature = "lsp")]
    Lsp(Box<LspArguments>),
    /// Answer cases of the conformance corpus.
    #[command(hide = true)]
    Replay(ReplayArguments),
}

impl Command {
    /// Reads the settings in the folders of definition files.
    pub fn settle(&mut self, messages: &mut Messages) -> Result<(), Stop> {
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

    /// The exit status of a failure. PCP's tools have only one for all failures.
    pub fn failed_with(&self, outcome: ExitStatus) -> ExitStatus {
        match self {
            Command::Info(_) | Command::Probe(_) | Command::Val(_) => ExitStatus::Failed,
            _ => outcome,
        }
    }

    /// True if this is a command named after a tool of PCP, and its arguments choose this
    /// machine without pmcd.
    pub fn is_local(&self) -> bool {
        match self {
            Command::Info(arguments) => arguments.options.source.local,
            Command::Val(arguments) => arguments.options.source.local,
            Command::Probe(arguments) => arguments.options.source.local,
            _ => false,
        }
    }
}
