//! Checks definitions over a fleet, together with those of its hosts.

use std::collections::HashSet;
use std::sync::Arc;

use pmderive_runtime::source::{MetadataSource, SourceError};

use super::CheckArguments;
use crate::cli::Stop;
use crate::cli::definitions::Definitions;
use crate::cli::fleet::{across, is_over_fleet};
use crate::diag::{Diagnostics, Severity};
use crate::engine::{Engine, Registered, Registry};
use crate::fleet::aggregates::{self, HostMetrics};
use crate::fleet::stages;

/// Definitions over the fleet, if there are any.
pub struct OverFleet {
    definitions: Option<Arc<aggregates::Definitions>>,
    /// How many definitions there are, those with mistakes included.
    count: usize,
    /// Hosts may have metrics that no definition names.
    is_open: bool,
}

impl OverFleet {
    /// Reads it; what the texts tell of mistakes is reported.
    ///
    /// # Errors
    /// A file of targets cannot be read.
    pub fn read(
        arguments: &CheckArguments,
        definitions: &mut Definitions,
        diagnostics: &mut Diagnostics,
    ) -> Result<OverFleet, Stop> {
        // Without definitions of hosts nobody knows what these have.
        let is_open = definitions.own().next().is_none();
        let nothing = OverFleet { definitions: None, count: 0, is_open };
        if !arguments.fleet.is_given() {
            return Ok(nothing);
        }
        let language = definitions.registry.language();
        let mut found = Diagnostics::default();
        let registry = arguments.fleet.read(language, &mut definitions.sources, &mut found);
        let count = registry.definitions().len() + refused(&found, &registry);
        diagnostics.extend(found);
        let targets = arguments.fleet.read_targets(&mut definitions.sources, diagnostics)?;
        let expressions = definitions.take_expressions(|one| is_over_fleet(one, &registry));
        let hosts = HostMetrics::of_groups([&definitions.registry]);
        let hosts = if is_open { hosts.and_others() } else { hosts };
        let definitions = across(&registry, &expressions, &hosts, &targets, diagnostics);
        Ok(OverFleet { definitions: Some(definitions), count, is_open })
    }

    /// How many definitions there are.
    pub fn defined(&self) -> usize {
        self.count
    }

    /// A selection with what hosts compute for aggregates alone.
    pub fn and_on_hosts<'d>(
        &'d self,
        mut selection: Vec<&'d Registered>,
        hosts: &Registry,
    ) -> Vec<&'d Registered> {
        if let Some(definitions) = &self.definitions {
            selection.extend(definitions.computed_by(hosts, self.is_open));
        }
        selection
    }

    /// Checks it with the metadata of a source that stands for the hosts.
    ///
    /// # Errors
    /// The source failed.
    pub fn check(
        &self,
        engine: Engine,
        hosts: &Registry,
        source: &mut dyn MetadataSource,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), SourceError> {
        let Some(definitions) = &self.definitions else { return Ok(()) };
        // What is wrong on the hosts is known already.
        let mut found = Diagnostics::default();
        let hosts = [(hosts, self.is_open)];
        let across = stages::across(&Arc::new(engine), definitions, hosts, source, &mut found)?;
        diagnostics.extend(across.of_fleet);
        Ok(())
    }
}

/// How many definitions are not in the registry, as there are mistakes in their texts.
fn refused(found: &Diagnostics, registry: &Registry) -> usize {
    let errors = found.iter().filter(|one| one.severity == Severity::Error);
    let names = errors.filter_map(|one| one.metric.as_deref());
    let names: HashSet<&str> = names.filter(|name| registry.get(name).is_none()).collect();
    names.len()
}
