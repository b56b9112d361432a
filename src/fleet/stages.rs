//! Both stages without hosts: definitions of hosts, compiled with known metadata, and
//! definitions over the fleet on top of them.

use std::sync::Arc;

use pmderive_runtime::model::{Semantics, Units, ValueType};
use pmderive_runtime::source::{MetadataSource, SourceError};

use super::aggregates::{Aggregates, FleetDefinitions};
use super::frame::{ExportedMetric, Schema};
use super::sinks::sink_set::SinkSet;
use crate::diag::{Code, Diagnostics};
use crate::dialect::Language;
use crate::engine::{Backend, Engine, Registered, Registry};
use crate::lint::{lint_definitions, lint_expressions};
use crate::text::SourceMap;

/// Operands of aggregates on hosts with these definitions, as a selection. They are metrics by
/// name, and expressions that hosts compute only for aggregates. With `is_open` hosts may have
/// other metrics, too.
pub fn operands_of<'d>(
    definitions: &'d FleetDefinitions,
    hosts: &'d Registry,
    is_open: bool,
) -> Vec<&'d Registered> {
    let named = definitions.operands.iter().filter(|operand| operand.computed.is_none());
    let named = named.filter_map(|operand| hosts.get(&operand.name));
    named.chain(definitions.computed_by(hosts, is_open)).collect()
}

/// The aggregates of definitions over the fleet, for each group of definitions of hosts. The
/// hosts have the metadata of a source. Mistakes of the hosts' definitions are not reported
/// here.
///
/// # Errors
/// The source failed.
pub fn across<'g>(
    engine: &Arc<Engine>,
    definitions: &Arc<FleetDefinitions>,
    groups: impl IntoIterator<Item = (&'g Registry, bool)>,
    source: &mut dyn MetadataSource,
) -> Result<Aggregates, SourceError> {
    let mut aggregates =
        Aggregates::new(Arc::clone(engine), Arc::clone(definitions), &|_| SinkSet::NONE);
    for (hosts, is_open) in groups {
        let selection = operands_of(definitions, hosts, is_open);
        let mut of_hosts = Diagnostics::default();
        let compiled = engine.compile(hosts, &selection, source, &mut of_hosts)?;
        let metrics = compiled
            .metrics
            .iter()
            .filter_map(|metric| ExportedMetric::of(metric, SinkSet::NONE, None));
        aggregates.announce(&Schema::sorted(metrics.map(|metric| (metric, ()))).0);
    }
    Ok(aggregates)
}

/// Operations on different groups in definitions over the fleet: mistakes that need no metadata.
pub fn different_groups(definitions: &Arc<FleetDefinitions>, language: Language) -> Diagnostics {
    let engine = Arc::new(Engine::new(language, Backend::Interp));
    let mut aggregates = Aggregates::new(engine, Arc::clone(definitions), &|_| SinkSet::NONE);
    // Groups do not depend on metadata: these are invented.
    let numbers = definitions.operands.iter().map(|operand| ExportedMetric {
        name: Arc::clone(&operand.name),
        value_type: ValueType::F64,
        semantics: Semantics::Instant,
        units: Units::NONE,
        has_instances: true,
        help: None,
        sinks: SinkSet::NONE,
    });
    aggregates.announce(&Schema::sorted(numbers.map(|metric| (metric, ()))).0);
    let mut found = beyond_texts(&aggregates);
    found.retain(|one| one.code == Code::IndomMismatch);
    for label in found.since_mut(0).iter_mut().flat_map(|one| &mut one.labels) {
        // Groups come after type, semantics and units.
        if let Some(groups) = label.text.splitn(4, ", ").nth(3) {
            label.text = groups.to_owned();
        }
    }
    found
}

/// Finds definitions over the fleet that are legal but probably wrong; `aggregates` are those
/// of [`across`], if metadata are known.
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

/// Mistakes of definitions over the fleet, except cycles, which reading the texts reports.
pub fn beyond_texts(aggregates: &Aggregates) -> Diagnostics {
    let mut found = aggregates.evaluation.diagnostics().clone();
    found.retain(|one| one.code != Code::DefinitionCycle);
    found
}
