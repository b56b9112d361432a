//! Stand-in for `fleet` in a build without fleets: it has no option, and no definition is over
//! a fleet.
//!
//! Commands call the same functions in both builds.

use clap::Args;
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::{Engine, Registered, Registry};
use crate::explain::Explained;
use crate::text::SourceMap;

use super::args::DefinitionArguments;
use super::definitions::CommandDefinitions;
use super::stop::Stop;

/// No options.
#[derive(Clone, Debug, Default, Args)]
pub struct FleetArguments {}

impl FleetArguments {
    /// False: without fleets there is no option for them.
    pub fn has_definitions(&self) -> bool {
        false
    }

    /// Ignores files over a fleet.
    pub fn add(&mut self, _: Vec<String>) {}

    /// Definitions of hosts, unchanged.
    pub fn definitions(&self, arguments: &DefinitionArguments) -> DefinitionArguments {
        arguments.clone()
    }
}

/// Accepts all files, as this build has no `serve`.
pub fn refuse_configurations(_: &DefinitionArguments) -> Result<(), Stop> {
    Ok(())
}

/// No aggregates over a fleet.
pub enum Aggregates {}

/// A fleet with nothing to check.
pub struct CheckedFleet;

impl CheckedFleet {
    /// Reads nothing.
    pub fn read(
        _: &FleetArguments,
        _: &mut CommandDefinitions,
        _: &mut Diagnostics,
    ) -> Result<CheckedFleet, Stop> {
        Ok(CheckedFleet)
    }

    /// Zero.
    pub fn count(&self) -> usize {
        0
    }

    /// No definitions.
    pub fn on_hosts(&self, _: &Registry) -> Vec<&Registered> {
        Vec::new()
    }

    /// No operands.
    pub fn operands(&self, _: &Registry) -> Vec<&Registered> {
        Vec::new()
    }

    /// Checks nothing.
    pub fn check_groups(&self, _: Language, _: &mut Diagnostics) {}

    /// Checks nothing.
    pub fn check(
        &self,
        _: Engine,
        _: &Registry,
        _: &mut dyn MetadataSource,
        _: &mut Diagnostics,
    ) -> Result<Option<Aggregates>, SourceError> {
        Ok(None)
    }

    /// Finds nothing.
    pub fn lint(&self, _: Option<&mut Aggregates>, _: &SourceMap, _: &mut Diagnostics) {}
}

/// A fleet with nothing to explain.
pub struct ExplainedFleet;

impl ExplainedFleet {
    /// Reads nothing.
    pub fn read(
        _: &FleetArguments,
        _: bool,
        _: &mut CommandDefinitions,
        _: &mut Diagnostics,
    ) -> Result<ExplainedFleet, Stop> {
        Ok(ExplainedFleet)
    }

    /// Explains nothing, and needs no operands of hosts.
    pub fn explain(
        &self,
        _: &mut Vec<&Registered>,
        _: &Registry,
        _: &mut dyn MetadataSource,
        _: &mut Diagnostics,
    ) -> Result<Vec<Explained>, SourceError> {
        Ok(Vec::new())
    }
}
