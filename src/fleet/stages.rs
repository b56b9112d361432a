//! Both stages without hosts: what definitions of hosts come to where metadata are
//! known, and what definitions over the fleet come to with that.

use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::source::{MetadataSource, SourceError};

use super::aggregates::{Aggregates, FleetDefinitions, Schedule};
use super::frame::{Exported, Schema};
use super::sink_set::SinkSet;
use crate::diag::{Code, Diagnostics};
use crate::engine::{Engine, Registered, Registry};
use crate::lint::{lint_definitions, lint_expressions};
use crate::text::SourceMap;

/// What aggregates take of hosts with these definitions, as a selection: metrics by
/// name, and expressions that hosts compute for them alone. With `is_open` hosts have
/// metrics besides those that are defined.
pub fn operands_of<'d>(
    across: &'d FleetDefinitions,
    hosts: &'d Registry,
    is_open: bool,
) -> Vec<&'d Registered> {
    let named = across.operands.iter().filter(|operand| operand.computed.is_none());
    let named = named.filter_map(|operand| hosts.get(&operand.name));
    named.chain(across.computed_by(hosts, is_open)).collect()
}

/// What would compute definitions over the fleet, with the metadata of hosts that are like
/// a source, for each group of definitions of hosts. What is wrong with these is not told.
///
/// # Errors
/// The source failed.
pub fn across<'g>(
    engine: &Arc<Engine>,
    across: &Arc<FleetDefinitions>,
    groups: impl IntoIterator<Item = (&'g Registry, bool)>,
    source: &mut dyn MetadataSource,
) -> Result<Aggregates, SourceError> {
    let schedule = Schedule { interval: Duration::from_secs(1), grace: Duration::ZERO };
    let mut aggregates =
        Aggregates::new(Arc::clone(engine), Arc::clone(across), schedule, &|_| SinkSet::NONE);
    for (hosts, is_open) in groups {
        let selection = operands_of(across, hosts, is_open);
        let mut of_hosts = Diagnostics::default();
        let compiled = engine.compile(hosts, &selection, source, &mut of_hosts)?;
        let metrics =
            compiled.metrics.iter().filter_map(|metric| Exported::of(metric, SinkSet::NONE, None));
        aggregates.announce(&Schema { metrics: metrics.collect() });
    }
    Ok(aggregates)
}

/// Finds in definitions over the fleet what is allowed but hardly meant; `aggregates` are
/// those of [`across`], if metadata are known.
pub fn lint(
    definitions: &FleetDefinitions,
    aggregates: Option<&mut Aggregates>,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) {
    let (registry, selection) = definitions.with_all_differences();
    let selection: Vec<&Registered> = selection.iter().map(|one| &**one).collect();
    let examination = aggregates.and_then(|one| one.examine(&registry, &selection));
    lint_expressions(&selection, examination.as_ref(), sources, diagnostics);
    lint_definitions(&registry, &selection, &[], diagnostics);
}

/// What is wrong with definitions over the fleet, but for cycles, which are found when texts
/// are read.
pub fn beyond_texts(aggregates: &Aggregates) -> Diagnostics {
    let mut found = aggregates.evaluation.diagnostics().clone();
    found.retain(|one| one.code != Code::DefinitionCycle);
    found
}
