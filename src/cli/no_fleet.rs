//! What stands for `fleet` in a program that is built without fleets: there is no option,
//! and nothing is over a fleet.
//!
//! Commands call the same functions either way, and need not know which are built.

use clap::Args;
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::diag::Diagnostics;
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
    /// No definitions over a fleet can be given.
    pub fn has_definitions(&self) -> bool {
        false
    }

    /// Files over a fleet are passed over.
    pub fn add(&mut self, _: Vec<String>) {}

    /// Definitions of hosts, as they are.
    pub fn definitions(&self, arguments: &DefinitionArguments) -> DefinitionArguments {
        arguments.clone()
    }
}

/// There is no `serve` whose configuration could be given.
pub fn refuse_configurations(_: &DefinitionArguments) -> Result<(), Stop> {
    Ok(())
}

/// Nothing to check.
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

    /// No definitions.
    pub fn count(&self) -> usize {
        0
    }

    /// Nothing.
    pub fn on_hosts(&self, _: &Registry) -> Vec<&Registered> {
        Vec::new()
    }

    /// Nothing.
    pub fn operands(&self, _: &Registry) -> Vec<&Registered> {
        Vec::new()
    }

    /// Checks nothing.
    pub fn check(
        &self,
        _: Engine,
        _: &Registry,
        _: &mut dyn MetadataSource,
        _: &mut Diagnostics,
    ) -> Result<Option<()>, SourceError> {
        Ok(None)
    }

    /// Finds nothing.
    pub fn lint(&self, _: Option<&mut ()>, _: &SourceMap, _: &mut Diagnostics) {}
}

/// Nothing to explain.
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

    /// Explains nothing, and needs nothing of hosts.
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
