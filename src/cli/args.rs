//! Arguments that several commands share, with the names that PCP's tools give them. The
//! arguments of a single command stand in its own file.
//!
//! This module checks only their form. The commands find out whether a file can be read or a
//! host can be reached.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::{AMBIGUOUS_UNIT, ambiguous_unit, parse_interval};

use super::appearance::Colour;
use crate::dialect::{Dialect, Language};
use crate::project::Folders;
use crate::report::findings::{Report, to_github, to_junit, to_sarif};
use crate::text::size::size;

/// Arguments of all commands.
#[derive(Debug, Args)]
pub struct CommonArguments {
    /// Show N diagnostics at most, and count the rest.
    #[arg(
        long, global = true, value_name = "N", default_value_t = MAX_DIAGNOSTICS,
        display_order = 990
    )]
    pub max_diagnostics: usize,
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
    pub color: Colour,
    /// Print only results and errors: no warnings, notes or progress.
    #[arg(short, long, global = true, display_order = 992)]
    pub quiet: bool,
    /// Print more, such as the definition files that are read.
    #[arg(short, long, global = true, display_order = 993)]
    pub verbose: bool,
    /// Names and values are printed unescaped (`--raw`).
    #[arg(skip)]
    pub is_raw: bool,
}

/// Diagnostics that are drawn without `--max-diagnostics`.
pub const MAX_DIAGNOSTICS: usize = 100;

/// The choice of a source: at most one.
#[derive(Clone, Debug, Default, Args)]
pub struct SourceArguments {
    /// Take metrics from the pmcd of this host: NAME, NAME:PORT, pcps://NAME, unix:PATH
    /// or local: [default: local:].
    #[arg(short = 'h', long, value_name = "HOST", value_parser = HostParser)]
    #[arg(conflicts_with_all = ["archive", "local"])]
    pub host: Option<HostSpec>,
    /// Take metrics from this archive. Several are read as one continuous recording:
    /// repeat -a, list them with commas, or name a directory or a quoted pattern.
    #[arg(
        short,
        long,
        value_name = "ARCHIVE",
        value_parser = OsStringValueParser::new().map(PathBuf::from),
        conflicts_with = "local",
    )]
    pub archive: Vec<PathBuf>,
    /// Take metrics from this machine directly, without pmcd.
    #[arg(short = 'L', long, alias = "local-PMDA")]
    pub local: bool,
    /// Limits for expanding compressed files.
    #[command(flatten)]
    pub expansion: ExpansionArguments,
}

/// Limits for expanding compressed archives.
#[derive(Clone, Debug, Default, Args)]
pub struct ExpansionArguments {
    /// Let a compressed file of an archive expand to SIZE at most, such as 40Gb.
    /// [default: 16Gb, or nine tenths of the free space if that is less]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_expanded: Option<u64>,
}

/// A file of metadata in place of a source.
#[derive(Debug, Args)]
pub struct MetadataArguments {
    /// Take metadata from FILE instead of a source; `deps --format metadata` writes it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "archive", "local"])]
    pub metadata: Option<PathBuf>,
}

/// Where definitions come from, and in which language they are.
#[derive(Clone, Debug, Args)]
pub struct DefinitionArguments {
    /// Read definitions from this file or directory, or from several with colons between them.
    #[arg(short, long = "definitions", aliases = ["config", "derived"], value_name = "FILE")]
    pub configs: Vec<String>,
    /// Their language.
    #[command(flatten)]
    pub language: LanguageArguments,
    /// Settings of the files' folders (`pmderive.toml`); filled by `settle`.
    #[arg(skip)]
    pub folders: Folders,
    /// Whether options allow extensions in all files; filled by `settle`.
    #[arg(skip)]
    pub are_extensions_given: Option<bool>,
}

/// The language of definitions.
#[derive(Clone, Debug, Default, Args)]
pub struct LanguageArguments {
    /// Answer as this version of libpcp does, mistakes included [default: off].
    #[arg(long, value_enum, value_name = "VERSION")]
    pub compat: Option<Dialect>,
    /// Allow functions and syntax that libpcp does not have.
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
    /// The language that the options choose.
    pub fn chosen(&self) -> Language {
        Language { dialect: self.compat.unwrap_or_default(), extensions: self.extensions }
    }
}

/// The wording of diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DiagWords {
    /// pmderive's words, with the lines that they are about.
    #[default]
    Full,
    /// libpcp's words, for programs that match on them.
    Pcp,
}

/// Output formats of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// For people.
    #[default]
    Text,
    /// One object for each finding, on one line.
    Json,
    /// SARIF 2.1.0, for code hosts and editors.
    Sarif,
    /// JUnit's XML, for systems that show tests.
    Junit,
    /// Annotations of GitHub's workflows.
    Github,
}

impl FindingsFormat {
    /// Renders a report as one document. `None` for a form that is written line by line.
    pub fn document(self, report: &Report) -> Option<String> {
        match self {
            FindingsFormat::Text | FindingsFormat::Json => None,
            FindingsFormat::Sarif => Some(to_sarif(report)),
            FindingsFormat::Junit => Some(to_junit(report)),
            FindingsFormat::Github => Some(to_github(report)),
        }
    }
}

/// More than thirty years: low enough that sums with it cannot overflow.
pub(super) const LONGEST_INTERVAL: Duration = Duration::from_secs(1_000_000_000);

/// Parses a length of time. The unit `ms` does not exist here.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    match ambiguous_unit(text) {
        Some(_) => Err(AMBIGUOUS_UNIT.to_owned()),
        None => parse_interval(text)
            .map_err(|error| format!("\n{error}\na time is such as 500msec, 10sec or 1hour")),
    }
}

/// Parses a time between samples.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let interval = time(text)?;
    if interval.is_zero() {
        return Err("an interval must be longer than 0".to_owned());
    }
    match interval > LONGEST_INTERVAL {
        true => Err(format!("an interval has at most {} seconds", LONGEST_INTERVAL.as_secs())),
        false => Ok(interval),
    }
}

/// Parses a host specification. On an error clap would print all of it, and it may contain a
/// password.
#[derive(Clone)]
struct HostParser;

impl TypedValueParser for HostParser {
    type Value = HostSpec;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<HostSpec, clap::Error> {
        value.to_string_lossy().parse().map_err(|error| {
            let text = format!("invalid value for '--host <HOST>':\n{error}\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }
}
