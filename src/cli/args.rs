//! The arguments of the commands, with the names that PCP's tools give them.
//!
//! Only their form is checked here; whether a file can be read or a host be
//! reached is for the commands to find out.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::parse_interval;

use super::deps::DepsArguments;
use super::explain::ExplainArguments;
use crate::dialect::{Dialect, Language};
use crate::engine::Backend;

use super::fmt::FmtArguments;
use super::test::TestArguments;

/// Derived metrics of Performance Co-Pilot, compiled to native code.
#[derive(Debug, Parser)]
#[command(version, disable_help_flag = true, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Print help.
    #[arg(short = '?', long, global = true, display_order = 1000, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Evaluate derived metrics and print their values.
    Eval(EvalArguments),
    /// Look for mistakes in definitions and expressions.
    Check(CheckArguments),
    /// Say what becomes of an expression, and why.
    Explain(ExplainArguments),
    /// Bring definition files into their usual form.
    Fmt(FmtArguments),
    /// Run unit tests of definitions.
    Test(TestArguments),
    /// List the metrics that definitions need of a source.
    Deps(DepsArguments),
    /// Answer cases of the conformance corpus.
    Replay(ReplayArguments),
}

/// Arguments of `eval`.
#[derive(Debug, Args)]
pub struct EvalArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Number of samples to print [default: 1, of an archive all].
    #[arg(short, long, value_name = "SAMPLES", value_parser = samples)]
    pub samples: Option<u64>,
    /// Time between samples, such as 2, 500msec or 1min; `ms` is minutes [default: 1sec].
    #[arg(short = 't', long, value_name = "INTERVAL", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: EvalFormat,
    /// Words of diagnostics.
    #[arg(long, value_enum, default_value_t)]
    pub diag: DiagWords,
    /// How expressions are computed.
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendArgument,
    /// Say why there is no value.
    #[arg(long)]
    pub why: bool,
    /// Taken so that it can be said why it is of no use.
    #[arg(long, hide = true)]
    pub metadata: Option<PathBuf>,
    /// Derived metrics by name, and expressions; without any, all metrics that
    /// the definition files define.
    #[arg(value_name = "NAME|EXPRESSION")]
    pub metrics: Vec<String>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Where metrics come from; without it, what needs their metadata is not checked.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Metadata in place of a source.
    #[command(flatten)]
    pub metadata: MetadataArguments,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Form of the diagnostics: text goes to standard error, JSON to standard output.
    #[arg(long, value_enum, default_value_t)]
    pub format: CheckFormat,
    /// Words of diagnostics.
    #[arg(long, value_enum, default_value_t)]
    pub diag: DiagWords,
    /// Warn of what is allowed but hardly meant, too.
    #[arg(long)]
    pub lint: bool,
    /// Expressions without a name, and names of definitions that are wanted:
    /// with them --lint reports those that are not.
    #[arg(value_name = "NAME|EXPRESSION")]
    pub expressions: Vec<String>,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// Cases, one JSON object on each line; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub cases: PathBuf,
    /// Folder of the archives that the cases name.
    #[arg(long, value_name = "DIRECTORY")]
    pub archives: PathBuf,
    /// Give the answers of this version of libpcp.
    #[arg(long, value_enum, default_value_t = Compat::Version7, value_name = "VERSION")]
    pub compat: Compat,
    /// How expressions are computed.
    #[arg(long, value_enum, default_value_t = BackendArgument::Jit)]
    pub backend: BackendArgument,
}

/// The choice of a source. At most one is given.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct SourceArguments {
    /// Metrics of the pmcd of a host (pcp://NAME:PORT, unix:PATH, local:) [default: local:].
    #[arg(short = 'h', long, value_name = "HOST", value_parser = host)]
    pub host: Option<HostSpec>,
    /// Metrics of an archive, record by record.
    #[arg(short, long, value_name = "ARCHIVE")]
    pub archive: Option<PathBuf>,
    /// Metrics of this machine, without pmcd.
    #[arg(short = 'L', long)]
    pub local: bool,
}

/// Metadata without a source.
#[derive(Debug, Args)]
pub struct MetadataArguments {
    /// Metadata of metrics from a file that `deps --metadata` has written.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "archive", "local"])]
    pub metadata: Option<PathBuf>,
}

/// Where definitions come from, and in which language they are.
#[derive(Debug, Args)]
pub struct DefinitionArguments {
    /// Read definitions from files and directories, several with colons between them.
    #[arg(short, long = "config", value_name = "CONFIG")]
    pub configs: Vec<String>,
    /// Their language.
    #[command(flatten)]
    pub language: LanguageArguments,
}

/// The language of definitions.
#[derive(Debug, Args)]
pub struct LanguageArguments {
    /// Give the answers of this version of libpcp, wrong ones included.
    #[arg(long, value_enum, default_value_t, value_name = "VERSION")]
    pub compat: Compat,
    /// Allow functions and forms that libpcp does not have.
    #[arg(long)]
    pub extensions: bool,
}

impl DefinitionArguments {
    /// The language of the definitions.
    pub fn language(&self) -> Language {
        self.language.chosen()
    }
}

impl LanguageArguments {
    /// The language that was chosen.
    pub fn chosen(&self) -> Language {
        Language { dialect: self.compat.into(), extensions: self.extensions }
    }
}

/// Forms of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EvalFormat {
    /// As pminfo prints them.
    #[default]
    Text,
    /// One object for each sample, on one line.
    Json,
    /// One line for each value.
    Csv,
}

/// Forms of diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// With the lines that they speak of.
    #[default]
    Text,
    /// One object for each, on one line.
    Json,
}

/// Whose words diagnostics have as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DiagWords {
    /// Ours, with the lines that they speak of.
    #[default]
    Full,
    /// libpcp's own messages, for programs that look for them.
    Pcp,
}

/// How expressions are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BackendArgument {
    /// By native code if it is worth the while.
    #[default]
    Auto,
    /// By native code from the first sample on.
    Jit,
    /// By interpretation.
    Interp,
}

impl BackendArgument {
    /// The backend for a number of evaluations, if that is known: native code
    /// is not worth the while for a single sample.
    pub fn for_samples(self, samples: Option<u64>) -> Backend {
        match self {
            BackendArgument::Auto if samples == Some(1) => Backend::Interp,
            BackendArgument::Auto => Backend::Auto,
            BackendArgument::Jit => Backend::Jit,
            BackendArgument::Interp => Backend::Interp,
        }
    }
}

/// Versions of libpcp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Compat {
    /// libpcp 6.0.
    #[value(name = "6.0")]
    Version6,
    /// libpcp 7.2.
    #[value(name = "7.2")]
    Version7,
    /// The language of 7.2 with right answers.
    #[default]
    Off,
}

impl From<Compat> for Dialect {
    fn from(compat: Compat) -> Dialect {
        match compat {
            Compat::Version6 => Dialect::Pcp6_0,
            Compat::Version7 => Dialect::Pcp7_2,
            Compat::Off => Dialect::Fixed,
        }
    }
}

/// More than thirty years, so that arithmetic with it is safe.
const LONGEST_INTERVAL: Duration = Duration::from_secs(1_000_000_000);

fn samples(text: &str) -> Result<u64, String> {
    let samples = text.trim().parse().ok().filter(|samples| *samples > 0);
    samples.ok_or_else(|| "a number of samples is 1 or more".to_owned())
}

/// A time between samples.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_interval(text).map_err(|error| format!("\n{error}"))?;
    if interval.is_zero() {
        return Err("an interval has to be longer than nothing".to_owned());
    }
    if interval > LONGEST_INTERVAL {
        return Err(format!("an interval has at most {} seconds", LONGEST_INTERVAL.as_secs()));
    }
    Ok(interval)
}

fn host(text: &str) -> Result<HostSpec, String> {
    text.parse().map_err(|error| format!("\n{error}"))
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
