//! Both stages without hosts: what definitions of hosts come to where metadata are
//! known, and what definitions over the fleet come to with that.

use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::source::{MetadataSource, SourceError};

use super::aggregates::{Aggregates, Definitions, Schedule};
use super::frame::{Exported, Schema};
use super::sink_set::SinkSet;
use crate::diag::{Code, Diagnostics};
use crate::engine::{Engine, Registered, Registry};

/// What aggregates take of hosts with these definitions, as a selection: metrics by
/// name, and expressions that hosts compute for them alone. With `is_open` hosts have
/// metrics besides those that are defined.
pub fn operands_of<'d>(
    across: &'d Definitions,
    hosts: &'d Registry,
    is_open: bool,
) -> Vec<&'d Registered> {
    let named = across.operands().iter().filter(|operand| operand.computed.is_none());
    let named = named.filter_map(|operand| hosts.get(&operand.name));
    named.chain(across.computed_by(hosts, is_open)).collect()
}

/// Definitions over the fleet that know the metadata of hosts.
pub struct CheckedAcross {
    /// What would compute them.
    pub aggregates: Aggregates,
    /// What is wrong with them.
    pub of_fleet: Diagnostics,
}

/// Definitions over the fleet with the metadata of hosts that are like a source, for
/// each group of definitions of hosts; what is wrong with operands on hosts goes to
/// `diagnostics`.
///
/// # Errors
/// The source failed.
pub fn across<'g>(
    engine: &Arc<Engine>,
    across: &Arc<Definitions>,
    groups: impl IntoIterator<Item = (&'g Registry, bool)>,
    source: &mut dyn MetadataSource,
    diagnostics: &mut Diagnostics,
) -> Result<CheckedAcross, SourceError> {
    let schedule = Schedule { interval: Duration::from_secs(1), grace: Duration::ZERO };
    let mut aggregates =
        Aggregates::new(Arc::clone(engine), Arc::clone(across), schedule, &|_| SinkSet::NONE);
    for (hosts, is_open) in groups {
        let selection = operands_of(across, hosts, is_open);
        let compiled = engine.compile(hosts, &selection, source, diagnostics)?;
        let metrics =
            compiled.metrics.iter().filter_map(|metric| Exported::of(metric, SinkSet::NONE, None));
        aggregates.announce(&Schema { metrics: metrics.collect() });
    }
    let mut of_fleet = aggregates.diagnostics().clone();
    // Texts alone have cycles.
    of_fleet.retain(|one| one.code != Code::DefinitionCycle);
    Ok(CheckedAcross { aggregates, of_fleet })
}
