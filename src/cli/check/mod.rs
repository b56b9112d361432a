//! `pmderive check`: shows every mistake in definitions and expressions.
//!
//! With a source it checks everything that evaluation needs. Without one it checks only the texts.
//! Definitions over a fleet are checked together with those of its hosts; the source then stands
//! for the hosts.

mod arguments;
mod changed_files;
#[cfg(feature = "fleet")]
mod configuration;
mod file_edits;
mod report;
mod settings;

use std::collections::HashSet;
use std::path::Path;

use pmderive_runtime::source::MetadataSource;

use crate::diag::{Code, Diagnostics, Severity};
use crate::engine::{Backend, Engine, Examination, Registered, report_cycles};
use crate::lint::{
    self, Linted, apply_allowances, missing_instances, notation_of_others, seen_whole,
};
use crate::text::Span;

use super::args::DiagWords;
use super::definitions::{CommandDefinitions, refused};
use super::exit_status::ExitStatus;
use super::fleet::{Aggregates, CheckedFleet};
use super::messages::Messages;
use super::missing::{LeftOutDefinitions, Missing};
use super::source::open_metadata;
use super::stop::Stop;
pub use arguments::CheckArguments;
use changed_files::ChangedFiles;
use file_edits::FileEdits;
use report::{sum_up, tell};
use settings::{Settings, settings};

/// Runs the command.
pub fn run(arguments: &CheckArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    #[cfg(feature = "fleet")]
    if let Some(path) = &arguments.serve {
        return configuration::run(path, arguments, messages);
    }
    if arguments.is_empty() {
        return Err(Stop::Usage(
            "nothing to check: give a definition file or an expression".to_owned(),
        ));
    }
    messages.set_words(arguments.diag);
    let settings = settings(arguments)?;
    let (metadata, dialect) =
        (settings.metadata.as_deref(), settings.definitions.language().dialect);
    let opened = open_metadata(&arguments.source, metadata, dialect, messages);
    let is_offline = matches!(opened, Ok(None));
    let (mut source, failure) = match opened {
        Ok(source) => (source, None),
        Err(error) => (None, Some(error)),
    };
    let mut edits = FileEdits::default();
    let mut checked = check(arguments, &settings, &mut source, failure.is_none(), &edits)?;
    let changed = arguments.changed_since.as_ref().map(|revision| checked.changed_since(revision));
    let changed = changed.transpose()?;
    checked.narrow(changed.as_ref());
    if arguments.fix || arguments.diff {
        edits.keep_standard_input(&checked.definitions);
        loop {
            let CheckedDefinitions { definitions, diagnostics, .. } = &checked;
            if !edits.apply(diagnostics, arguments, definitions) {
                break;
            }
            checked = check(arguments, &settings, &mut source, failure.is_none(), &edits)?;
            checked.narrow(changed.as_ref());
        }
        if arguments.diff {
            // Diagnostics refer to the texts as they are in the files.
            let files = edits.undone();
            checked = check(arguments, &settings, &mut source, failure.is_none(), &files)?;
            checked.narrow(changed.as_ref());
        }
    }
    let CheckedDefinitions { definitions, diagnostics, warnings, left_out, count, .. } = checked;
    definitions.warn_of_system_mistakes(messages);
    warnings.iter().for_each(|warning| messages.warning(warning));
    let own = definitions.own_texts();
    let (errors, warnings) = tell(arguments, diagnostics, &definitions.sources, &own, messages)?;
    let mut outcome = if errors > 0 { ExitStatus::Mistake } else { ExitStatus::Good };
    left_out.tell(arguments.verbose, messages);
    if arguments.fix {
        outcome = outcome.max(edits.write(messages));
    } else if arguments.diff {
        outcome = outcome.max(edits.show(messages)?);
    }
    // Mistakes found without the source count even if the source failed.
    if let Some(failure) = failure {
        let place = |path| settings.definitions.place_of_metadata(path);
        if let Some(place) = metadata.and_then(place) {
            messages.line(&format_args!("the file of metadata is named at {place}"));
        }
        return Err(failure.into());
    }
    sum_up(count, errors, warnings, is_offline, messages);
    Ok(outcome)
}

/// Definitions with their diagnostics.
struct CheckedDefinitions {
    definitions: CommandDefinitions,
    diagnostics: Diagnostics,
    warnings: Vec<String>,
    left_out: LeftOutDefinitions,
    count: usize,
}

impl CheckedDefinitions {
    /// Asks git which files around the definitions have changed since a revision.
    fn changed_since(&self, revision: &str) -> Result<ChangedFiles, Stop> {
        let own = self.definitions.own_texts();
        let file = own.first().map_or(".", |text| &*self.definitions.sources.get(*text).name);
        ChangedFiles::since(revision, Path::new(file))
    }

    /// Drops findings about definitions that have not changed (`--changed-since`).
    fn narrow(&mut self, changed: Option<&ChangedFiles>) {
        let Some(changed) = changed else { return };
        let own = self.definitions.own_texts();
        let CommandDefinitions { registry, sources, .. } = &self.definitions;
        changed.keep(&own, registry, sources, &mut self.diagnostics);
    }
}

/// Checks once, with the edits made so far.
fn check(
    arguments: &CheckArguments,
    settings: &Settings,
    source: &mut Option<Box<dyn MetadataSource>>,
    has_source: bool,
    edits: &FileEdits,
) -> Result<CheckedDefinitions, Stop> {
    let (mut definitions, others) = CommandDefinitions::read_positional(
        &settings.definitions,
        &arguments.positional,
        edits.sources(),
    );
    definitions.select_all();
    definitions.deselect_sections();
    let (names, expressions): (Vec<&String>, Vec<&String>) =
        others.into_iter().partition(|text| definitions.defines(text));
    for text in &expressions {
        definitions.select_expression(text);
    }
    let mut diagnostics = std::mem::take(&mut definitions.diagnostics);
    if arguments.diag == DiagWords::Full {
        diagnostics = diagnostics.without_consequences();
    }
    let count = count(&definitions, &diagnostics, expressions.len());
    let fleet = CheckedFleet::read(&arguments.fleet, &mut definitions, &mut diagnostics)?;
    let count = count + fleet.count();
    let on_hosts = fleet.on_hosts(&definitions.registry);
    let selection = [definitions.selection(), on_hosts].concat();
    let language = settings.definitions.language();
    let CommandDefinitions { sources, registry, .. } = &definitions;
    let mut warnings = Vec::new();
    let mut of_fleet = None;
    let examination = match source {
        Some(source) => {
            let engine = Engine::of_this_machine(language, Backend::Interp);
            let examination =
                engine.examine(registry, &selection, &mut **source, &mut diagnostics)?;
            warnings.extend(engine.take_warning());
            missing_instances(&selection, &examination, sources, &mut **source, &mut diagnostics)?;
            of_fleet = fleet.check(engine, registry, &mut **source, &mut diagnostics)?;
            Some(examination)
        }
        None => {
            if has_source {
                report_cycles(registry, &mut diagnostics);
            }
            notation_of_others(&selection, language.dialect, sources, &mut diagnostics);
            fleet.check_groups(language, &mut diagnostics);
            None
        }
    };
    let of_system = definitions.own_of_system();
    let left_out =
        LeftOutDefinitions::take(&mut diagnostics, sources, |one| match arguments.missing {
            Some(missing) => missing,
            None if of_system.contains(&one.span.source) => Missing::Ignore,
            None => Missing::Error,
        });
    if settings.lint {
        let examination = examination.as_ref();
        let of_fleet = (&fleet, of_fleet.as_mut());
        let mut found = lints(&definitions, &selection, &names, examination, of_fleet);
        let told: HashSet<(Code, Span)> =
            diagnostics.iter().map(|one| (one.code, one.span)).collect();
        found.retain(|one| {
            !told.contains(&(one.code, one.span)) && settings.lints(one.span.source, sources)
        });
        diagnostics.extend(found);
    }
    // Without metadata most lints find nothing.
    let examination = examination.filter(|_| settings.lint);
    let mut linted = examination.map_or(Vec::new(), |whole| seen_whole(&selection, &whole));
    linted.retain(|name| settings.lints(name.source, sources));
    let own = definitions.own_texts();
    apply_allowances(own, language, &linted, sources, &mut diagnostics);
    settings.apply_levels(sources, &mut diagnostics);
    Ok(CheckedDefinitions { definitions, diagnostics, warnings, left_out, count })
}

/// Finds definitions and expressions that are legal but probably wrong. `names` are the arguments
/// that name definitions.
fn lints(
    definitions: &CommandDefinitions,
    selection: &[&Registered],
    names: &[&String],
    examination: Option<&Examination>,
    (fleet, aggregates): (&CheckedFleet, Option<&mut Aggregates>),
) -> Diagnostics {
    let CommandDefinitions { sources, registry, .. } = definitions;
    let mut found = Diagnostics::default();
    let named = names.iter().filter_map(|name| registry.get(name.trim()));
    let unnamed = definitions.selection().into_iter().filter(|one| !one.is_named);
    let mut wanted: Vec<&Registered> = named.chain(unnamed).collect();
    if !wanted.is_empty() {
        wanted.extend(fleet.operands(registry));
    }
    let (wanted, texts) = (&wanted[..], &definitions.own_texts()[..]);
    lint::all(&Linted { registry, selection, wanted, examination, texts, sources }, &mut found);
    fleet.lint(aggregates, sources, &mut found);
    found
}

/// Counts definitions and expressions, refused ones included, and lines that should be a definition
/// but are not.
fn count(definitions: &CommandDefinitions, diagnostics: &Diagnostics, expressions: usize) -> usize {
    let registry = &definitions.registry;
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error);
    let nameless =
        errors.filter(|one| one.code == Code::BadDefinitionLine && one.metric.is_none()).count();
    let refused = refused(diagnostics, |name| registry.get(name).is_some());
    definitions.own().count() + refused.len() + nameless + expressions
}
