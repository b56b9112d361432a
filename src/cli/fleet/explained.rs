//! Explains definitions over a fleet, from files or from arguments.

use std::collections::HashSet;
use std::sync::Arc;

use pmderive_runtime::source::{MetadataSource, SourceError};

use super::arguments::{FleetArguments, name_of};
use crate::cli::definitions::CommandDefinitions;
use crate::cli::stop::Stop;
use crate::diag::Diagnostics;
use crate::engine::{Backend, Engine, Registered, Registry};
use crate::explain::Explained;
use crate::fleet::aggregates::{self, HostMetrics};
use crate::fleet::stages;

/// Definitions over the fleet, if there are any.
pub struct ExplainedFleet {
    definitions: Option<Arc<aggregates::FleetDefinitions>>,
    /// Names of the definitions to explain; empty means all.
    wanted: HashSet<Arc<str>>,
}

impl ExplainedFleet {
    /// Reads the fleet and takes its definitions out of the selection. Without a selection all
    /// of them are explained.
    ///
    /// # Errors
    /// A file of targets cannot be read.
    pub fn read(
        arguments: &FleetArguments,
        is_all: bool,
        definitions: &mut CommandDefinitions,
        diagnostics: &mut Diagnostics,
    ) -> Result<ExplainedFleet, Stop> {
        if !arguments.is_given() {
            return Ok(ExplainedFleet { definitions: None, wanted: HashSet::new() });
        }
        let fleet = arguments.read(definitions, diagnostics)?;
        let mut expressions = definitions.take_expressions(|one| fleet.is_over(one));
        let mut wanted = HashSet::new();
        // The name of a definition is an expression, too.
        expressions.retain(|one| {
            let name = name_of(one).and_then(|name| fleet.registry.definition(name));
            wanted.extend(name.map(|one| Arc::clone(&one.name)));
            name.is_none()
        });
        wanted.extend(expressions.iter().map(|one| Arc::clone(&one.name)));
        if is_all {
            wanted.extend(fleet.registry.definitions().iter().map(|one| Arc::clone(&one.name)));
        }
        let hosts = HostMetrics::of_groups([&definitions.registry]).and_others();
        let definitions = fleet.across(&expressions, &hosts, diagnostics);
        Ok(ExplainedFleet { definitions: Some(definitions), wanted })
    }

    /// Explains the wanted definitions with the metadata of a source that stands for the hosts.
    /// The operands of aggregates join the hosts' selection.
    ///
    /// # Errors
    /// The source failed.
    pub fn explain<'d>(
        &'d self,
        selection: &mut Vec<&'d Registered>,
        hosts: &'d Registry,
        source: &mut dyn MetadataSource,
        diagnostics: &mut Diagnostics,
    ) -> Result<Vec<Explained>, SourceError> {
        let Some(definitions) = &self.definitions else { return Ok(Vec::new()) };
        let engine = Arc::new(Engine::of_this_machine(hosts.language(), Backend::Interp));
        let mut aggregates = stages::across(&engine, definitions, [(hosts, true)], source)?;
        let is_wanted = |one: &Registered| self.wanted.contains(&one.name);
        let chosen = definitions.selection.iter().map(|one| &**one);
        let chosen: Vec<&Registered> = chosen.filter(|one| is_wanted(one)).collect();
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let needed = definitions.operands_of(is_wanted);
        for one in stages::operands_of(definitions, hosts, true) {
            let is_new = selection.iter().all(|known| known.name != one.name);
            if is_new && needed.contains(&&*one.name) {
                selection.push(one);
            }
        }
        diagnostics.extend(stages::beyond_texts(&aggregates));
        Ok(aggregates.explain(&chosen))
    }
}
