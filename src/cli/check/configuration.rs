//! `check --serve` checks everything that a configuration of `serve` names. The metadata of one
//! source stand for those of all hosts.

use std::path::Path;
use std::sync::Arc;

use pmderive_runtime::source::{MetadataSource, SourceError};

use super::arguments::CheckArguments;
use super::report::{sum_up, tell};
use crate::cli::definitions::refused;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::source::open_metadata;
use crate::cli::stop::Stop;
use crate::diag::{Diagnostic, Diagnostics};
use crate::engine::{Backend, Engine, Registered, report_cycles};
use crate::fleet::plan::{LoadedPlan, Origin, Plan, load_anyway};
use crate::fleet::server::Server;
use crate::fleet::stages::{self, different_groups};

/// Runs the command.
pub fn run(
    path: &Path,
    arguments: &CheckArguments,
    messages: &mut Messages,
) -> Result<ExitStatus, Stop> {
    messages.set_words(arguments.diag);
    let LoadedPlan { plan, sources, mut diagnostics, mut problems, .. } =
        load_anyway(&Origin::File(path.to_owned()));
    let mut count = 0;
    let mut is_offline = false;
    let mut checked = Ok(());
    let mut unusable = Vec::new();
    if let Some(plan) = &plan {
        count = defined(plan, &diagnostics);
        if diagnostics.errors() == 0 {
            problems.extend(Server::check(plan).err());
            unusable = Server::unusable_files(plan);
        }
        let dialect = plan.config.language.dialect;
        let metadata = arguments.metadata.metadata.as_deref();
        checked = match open_metadata(&arguments.source, metadata, dialect, messages) {
            Ok(Some(mut source)) => with_metadata(plan, &mut *source, &mut diagnostics, messages),
            Ok(None) => {
                is_offline = true;
                for group in &plan.groups {
                    report_cycles(group.selection.registry(), &mut diagnostics);
                }
                if let Some(fleet) = &plan.fleet {
                    let found = different_groups(&fleet.definitions, plan.config.language);
                    diagnostics.extend(found);
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
    }
    diagnostics.change_each(Diagnostic::name_key);
    let (errors, warnings) = tell(arguments, diagnostics, &sources, &[], messages)?;
    problems.iter().for_each(|problem| messages.error(problem));
    unusable.iter().for_each(|problem| messages.warning(problem));
    // Mistakes found without the source count even if the source failed.
    checked?;
    let errors = errors + problems.len();
    sum_up(count, errors, warnings, is_offline, messages);
    Ok(if errors > 0 { ExitStatus::Mistake } else { ExitStatus::Good })
}

/// The number of definitions, refused ones included.
fn defined(plan: &Plan, diagnostics: &Diagnostics) -> usize {
    let across = plan.fleet.iter().flat_map(|fleet| fleet.definitions.names());
    let groups = || plan.groups.iter().map(|group| group.selection.registry());
    let is_known = |name: &str| groups().any(|registry| registry.get(name).is_some());
    let mut others = refused(diagnostics, is_known);
    others.extend(across);
    plan.groups.iter().map(|group| group.defined).sum::<usize>() + others.len()
}

/// Checks the definitions of all groups, and those over the fleet.
fn with_metadata(
    plan: &Plan,
    source: &mut dyn MetadataSource,
    diagnostics: &mut Diagnostics,
    messages: &Messages,
) -> Result<(), SourceError> {
    let engine = Engine::of_this_machine(plan.config.language, Backend::Interp);
    let engine = Arc::new(engine);
    for group in &plan.groups {
        let registry = group.selection.registry();
        // Definitions that exist only for the fleet have no name.
        let computed = group.selection.chosen().filter(|one| !one.is_named);
        let all: Vec<&Registered> = registry.all().into_iter().chain(computed).collect();
        engine.examine(registry, &all, source, diagnostics)?;
    }
    if let Some(fleet) = &plan.fleet {
        let groups = plan.groups.iter().map(|group| (group.selection.registry(), false));
        let aggregates = stages::across(&engine, &fleet.definitions, groups, source)?;
        diagnostics.extend(stages::beyond_texts(&aggregates));
    }
    messages.warnings_of(&engine);
    Ok(())
}
