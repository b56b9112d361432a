//! `pmderive check`: shows every mistake in definitions and expressions.
//!
//! With a source it checks everything that evaluation would need; without one,
//! what the texts alone tell.

use std::collections::HashSet;
use std::io::Write;

use clap::{Args, ValueEnum};

use crate::bind::equivalent_domains::EquivalentDomains;
use crate::diag::json::to_json;
use crate::diag::{Code, Diagnostics, Severity};
use crate::engine::{Backend, Engine, Registered, report_cycles};
use crate::lint::{lint_definitions, lint_expressions, missing_instances};

use super::args::{DefinitionArguments, DiagWords, MetadataArguments, SourceArguments};
use super::definitions::Definitions;
use super::messages::{Messages, counted};
use super::missing::{LeftOut, Missing};
use super::positional::PositionalArguments;
use super::source::open_metadata;
use super::terminal::{Purpose, RawArgument};
use super::{Outcome, Stop};

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
    /// Text of others as it is.
    #[command(flatten)]
    pub raw: RawArgument,
    /// Also warn of what is allowed but hardly meant.
    #[arg(long)]
    pub lint: bool,
    /// What it means that the source does not have an operand [default: error; ignore
    /// in files that every client of this machine reads].
    #[arg(long, value_enum)]
    pub missing: Option<Missing>,
    /// List the definitions that are left out because operands are missing.
    #[arg(short, long)]
    pub verbose: bool,
    /// What to check. Names are those of definitions that you want: --lint then
    /// reports the definitions that none of them needs.
    #[command(flatten)]
    pub positional: PositionalArguments,
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

/// Runs the command.
pub fn run(arguments: &CheckArguments, messages: &mut Messages) -> Result<Outcome, Stop> {
    if arguments.definitions.configs.is_empty() && arguments.positional.is_empty() {
        return Err(Stop::Usage(
            "nothing to check: give a definition file or an expression".to_owned(),
        ));
    }
    messages.set_words(arguments.diag);
    let (mut definitions, others) =
        Definitions::read_positional(&arguments.definitions, &arguments.positional);
    definitions.select_all();
    let (names, expressions): (Vec<&String>, Vec<&String>) =
        others.into_iter().partition(|text| definitions.defines(text));
    for text in &expressions {
        definitions.select_expression(text);
    }
    definitions.warn_of_system_mistakes(messages);
    let mut diagnostics = std::mem::take(&mut definitions.diagnostics);
    let count = count(&definitions, &diagnostics, expressions.len());
    let selection = definitions.selection();
    let metadata = arguments.metadata.metadata.as_deref();
    let opened = open_metadata(
        &arguments.source,
        metadata,
        arguments.definitions.language().dialect,
        messages,
    );
    let is_offline = matches!(opened, Ok(None));
    let Definitions { sources, registry, .. } = &definitions;
    let checked = opened.and_then(|source| {
        let Some(mut source) = source else {
            report_cycles(registry, &mut diagnostics);
            return Ok(None);
        };
        let engine = Engine::new(arguments.definitions.language(), Backend::Interp)
            .with_equivalent_domains(EquivalentDomains::of_this_machine());
        let examination = engine.examine(registry, &selection, &mut *source, &mut diagnostics)?;
        if let Some(warning) = engine.take_warning() {
            messages.warning(&warning);
        }
        missing_instances(&selection, &examination, sources, &mut *source, &mut diagnostics)?;
        Ok(Some(examination))
    });
    let of_system = definitions.own_of_system();
    let left_out = LeftOut::take(&mut diagnostics, sources, |one| match arguments.missing {
        Some(missing) => missing,
        None if of_system.contains(&one.span.source) => Missing::Ignore,
        None => Missing::Error,
    });
    if arguments.lint {
        let examination = checked.as_ref().ok().and_then(Option::as_ref);
        lint_expressions(&selection, examination, sources, &mut diagnostics);
        let named = names.iter().filter_map(|name| registry.get(name.trim()));
        let unnamed = selection.iter().filter(|one| !one.is_named).copied();
        let wanted: Vec<&Registered> = named.chain(unnamed).collect();
        lint_definitions(registry, &selection, &wanted, &mut diagnostics);
    }
    let errors = diagnostics.errors();
    let warnings = diagnostics.len() - errors;
    match arguments.format {
        CheckFormat::Text => messages.diagnostics(diagnostics, &definitions.sources),
        CheckFormat::Json => print_json(diagnostics, &definitions, messages)?,
    }
    left_out.tell(arguments.verbose, messages);
    // What was found without the source counts even if the source failed.
    checked?;
    if is_offline {
        messages.line(
            &"not checked without a source (-h, -a, -L or --metadata): names, types, semantics, \
              units and instance domains of operands",
        );
    }
    let mut summary = format!("{}, {}", counted(count, "definition"), counted(errors, "error"));
    if warnings > 0 {
        summary = format!("{summary}, {}", counted(warnings, "warning"));
    }
    messages.line(&summary);
    Ok(if errors > 0 { Outcome::Mistake } else { Outcome::Good })
}

/// Definitions and expressions, those that were refused included, and lines
/// that are no definition although one is due.
fn count(definitions: &Definitions, diagnostics: &Diagnostics, expressions: usize) -> usize {
    let registry = &definitions.registry;
    let errors = || diagnostics.iter().filter(|one| one.severity == Severity::Error);
    let nameless =
        errors().filter(|one| one.code == Code::BadDefinitionLine && one.metric.is_none()).count();
    let refused: HashSet<&str> = errors()
        .filter_map(|diagnostic| diagnostic.metric.as_deref())
        .filter(|name| registry.get(name).is_none())
        .collect();
    definitions.own().count() + refused.len() + nameless + expressions
}

fn print_json(
    mut diagnostics: Diagnostics,
    definitions: &Definitions,
    messages: &Messages,
) -> Result<(), Stop> {
    diagnostics.sort();
    let mut out = messages.output(Purpose::Exact);
    let written = diagnostics
        .iter()
        .try_for_each(|one| writeln!(out, "{}", to_json(one, &definitions.sources)));
    out.end(written)
}
