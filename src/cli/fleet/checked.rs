//! Checks definitions over a fleet, together with those of its hosts.

use std::sync::Arc;

use pmderive_runtime::source::{MetadataSource, SourceError};

use super::arguments::FleetArguments;
use crate::cli::definitions::CommandDefinitions;
use crate::cli::stop::Stop;
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::{Engine, Registered, Registry};
use crate::fleet::aggregates::{self, Aggregates, HostMetrics};
use crate::fleet::stages;
use crate::text::SourceMap;

/// Definitions over the fleet, if there are any.
pub struct CheckedFleet {
    definitions: Option<Arc<aggregates::FleetDefinitions>>,
    /// The number of definitions, those with mistakes included.
    count: usize,
    /// True if hosts may have metrics that no definition names.
    is_open: bool,
}

impl CheckedFleet {
    /// Reads the fleet and reports the mistakes in its texts.
    ///
    /// # Errors
    /// A file of targets cannot be read.
    pub fn read(
        arguments: &FleetArguments,
        definitions: &mut CommandDefinitions,
        diagnostics: &mut Diagnostics,
    ) -> Result<CheckedFleet, Stop> {
        // Without definitions of hosts, their metrics are unknown.
        let is_open = definitions.own().next().is_none();
        if !arguments.is_given() {
            return Ok(CheckedFleet { definitions: None, count: 0, is_open });
        }
        let fleet = arguments.read(definitions, diagnostics)?;
        let expressions = definitions.take_expressions(|one| fleet.is_over(one));
        let hosts = HostMetrics::of_groups([&definitions.registry]);
        let hosts = if is_open { hosts.and_others() } else { hosts };
        let definitions = fleet.across(&expressions, &hosts, diagnostics);
        Ok(CheckedFleet { definitions: Some(definitions), count: fleet.count, is_open })
    }

    /// The number of definitions.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The definitions that hosts compute only for aggregates.
    pub fn on_hosts(&self, hosts: &Registry) -> Vec<&Registered> {
        let definitions = self.definitions.iter();
        definitions.flat_map(|one| one.computed_by(hosts, self.is_open)).collect()
    }

    /// All operands of aggregates on the hosts.
    pub fn operands<'d>(&'d self, hosts: &'d Registry) -> Vec<&'d Registered> {
        let definitions = self.definitions.iter();
        definitions.flat_map(|one| stages::operands_of(one, hosts, self.is_open)).collect()
    }

    /// Finds the mistakes that need no metadata.
    pub fn check_groups(&self, language: Language, diagnostics: &mut Diagnostics) {
        let definitions = self.definitions.iter();
        definitions.for_each(|one| diagnostics.extend(stages::different_groups(one, language)));
    }

    /// Checks the fleet with the metadata of a source that stands for the hosts. Returns the
    /// aggregates for lints.
    ///
    /// # Errors
    /// The source failed.
    pub fn check(
        &self,
        engine: Engine,
        hosts: &Registry,
        source: &mut dyn MetadataSource,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<Aggregates>, SourceError> {
        let Some(definitions) = &self.definitions else { return Ok(None) };
        let hosts = [(hosts, self.is_open)];
        let aggregates = stages::across(&Arc::new(engine), definitions, hosts, source)?;
        diagnostics.extend(stages::beyond_texts(&aggregates));
        Ok(Some(aggregates))
    }

    /// Finds definitions that are legal but probably wrong. `aggregates` are the result of
    /// `check`.
    pub fn lint(
        &self,
        aggregates: Option<&mut Aggregates>,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) {
        if let Some(definitions) = &self.definitions {
            stages::lint(definitions, aggregates, sources, diagnostics);
        }
    }
}
