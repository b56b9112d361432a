//! Aggregates across hosts: definitions over the fleet, evaluated once a slot from the frames of
//! the hosts. This module does no input or output and reads no clock.
//!
//! ```text
//! frames ──► Collector ── ShardPartials, by shard ──► Merged ──► Evaluation ──► Event
//!              by host, group                      in the order     the ordinary
//!                                                  of the shards     evaluator
//! ```
//!
//! The fleet is a source of metrics. It has each metric that hosts export, with the instances
//! of all hosts. In definitions such a metric is the argument of an aggregate, `sum(shop.rate)
//! by (rack)`; any expression over aggregates is allowed. The labels of hosts decide about
//! groups: the target's labels first, then the host's own. A label that both lack is empty.
//! Groups are instances named `{rack="a",dc="b"}`, with labels in the order of the `by`. `topk`
//! and `bottomk` have instances of hosts, `{rack="a",instance="web1:44321",instname="sda"}`.
//! Without a `by` there is a single value.
//!
//! * Values have 64 bits, so that no sum is cut off; sums of integers are exact, and
//!   there is none beyond 64 bits. The first class of hosts that has a metric decides
//!   about its type, units and semantics ([`Reference`]), until no host has it like that.
//! * Sums, means and extremes are made shard by shard, each from its hosts by name and
//!   their instances by name, and merged in the order of the shards: the bits depend
//!   neither on the arrival of frames nor on how many collectors share the shards.
//! * One NaN makes a sum, mean, extreme or quantile NaN; in rankings it comes last.
//! * `rate()` and `delta()` over aggregates have no value for groups whose members,
//!   which are instances of hosts, are not those of the slot before, and none in the
//!   first slot of a definition, which may have been there earlier.
//! * Beside the values are the numbers of hosts of each group: `fleet.hosts.expected`,
//!   `present`, `failed`, `missed`, `no_value`, `left_out`, with instances named
//!   `{aggregate="sum(shop.rate) by (rack)",rack="a"}`. Hosts that have never
//!   answered and whose group is not known by the target's labels alone are in
//!   `{aggregate="...",group="unknown"}`.

mod aggregate;
mod carry;
mod classes;
mod collect;
mod definitions;
mod evaluate;
mod explained;
mod groups;
mod host_metrics;
mod hosts;
mod merge;
mod operand;
mod partial;
mod reading;
mod shard;
mod source;

use std::sync::Arc;

pub use aggregate::{AggregateId, Function};
pub use collect::Collector;
pub use definitions::{FleetDefinitions, unknown_labels};
pub use evaluate::{Evaluation, counts_of_hosts, of_hosts_counted};
pub use groups::{FleetDomain, MAX_KNOWN};
pub use host_metrics::HostMetrics;
pub use merge::Merged;
pub use operand::{OperandId, Reference, References};
pub use partial::MAX_QUANTILE_VALUES;
pub use reading::Operand;
pub use shard::ShardPartials;

use super::frame::{Event, Schema};
use super::sinks::sink_set::SinkSet;
use super::slot::{Nanos, Slot};
use super::targets::target::Target;
use crate::engine::Engine;

/// Most intervals of grace. Each is one more slot of every host's values in memory.
pub const MAX_GRACE: u32 = 2;

/// Definitions over the fleet in a process that watches all hosts.
///
/// ```
/// # use std::sync::Arc;
/// # use pmderive::diag::Diagnostics;
/// # use pmderive::dialect::{Dialect, Language};
/// # use pmderive::engine::{Backend, Engine, Registry};
/// # use pmderive::internal::fleet::aggregates::{Aggregates, FleetDefinitions, HostMetrics};
/// # use pmderive::internal::fleet::sinks::sink_set::SinkSet;
/// # use pmderive::internal::fleet::slot::{Nanos, Slot};
/// # use pmderive::SourceMap;
/// let language = Language { dialect: Dialect::Fixed, extensions: true };
/// let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
/// let mut registry = Registry::new(language);
/// let text = sources.add("fleet.conf", "racks.rate = sum(shop.rate) by (rack)\n");
/// registry.add_text(text, &sources, &mut diagnostics);
/// let hosts = HostMetrics::of(["shop.rate"]);
/// let definitions = FleetDefinitions::read(&registry, &[], &hosts, &mut diagnostics);
/// assert!(diagnostics.is_empty());
///
/// let engine = Arc::new(Engine::new(language, Backend::Auto));
/// let mut fleet = Aggregates::new(engine, Arc::new(definitions), &|_| SinkSet::ALL);
/// fleet.collector.set_targets(&[]);
/// // For each frame of a host: fleet.collector.frame(&frame); for each slot without one:
/// // fleet.collector.failed(&target, slot) or missed(&target, slot). When the slot is over:
/// for event in fleet.finish(Slot(7), Nanos(80_000_000_000)) {
///     // To the sinks.
///     assert!(event.target().is_fleet());
/// }
/// ```
pub struct Aggregates {
    /// Collects frames, and knows the expected hosts.
    pub collector: Collector,
    /// Evaluates the definitions, and knows their mistakes.
    pub evaluation: Evaluation,
}

impl Aggregates {
    /// Aggregates without hosts. `sinks` maps the name of a metric to the sinks that want it.
    /// The engine must have the language of the definitions.
    pub fn new(
        engine: Arc<Engine>,
        definitions: Arc<FleetDefinitions>,
        sinks: &dyn Fn(&str) -> SinkSet,
    ) -> Aggregates {
        Aggregates {
            collector: Collector::alone(Arc::clone(&definitions)),
            evaluation: Evaluation::new(engine, definitions, sinks),
        }
    }

    /// Changes to other definitions and hosts. Unchanged state goes on: frames of open slots,
    /// groups and their identifiers, rates and series. Series that are gone end with the next
    /// slot. With `has_other_slots` slots have other numbers from now on.
    pub fn follow(
        &mut self,
        definitions: Arc<FleetDefinitions>,
        has_other_slots: bool,
        sinks: &dyn Fn(&str) -> SinkSet,
        targets: &[Arc<Target>],
    ) {
        if has_other_slots {
            self.collector.forget_slots();
        }
        self.collector.follow(Arc::clone(&definitions), targets);
        self.evaluation.follow(definitions, sinks);
        if has_other_slots {
            // Hosts are fetched at other moments of a slot.
            self.evaluation.forget_members();
        }
    }

    /// Adopts the metadata of a class of hosts before its first frame, and checks the
    /// definitions with them. Otherwise the first frames do so.
    pub fn announce(&mut self, schema: &Schema) {
        self.collector.announce(schema);
        self.evaluation.know(self.collector.references());
    }

    /// New warnings about hosts that are left out, and about aggregates without a value.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = self.collector.take_warnings();
        warnings.append(&mut self.evaluation.warnings);
        warnings
    }

    /// Ends a slot, whose values have the time `at`, and all before it. Returns the events of
    /// ended series and a frame of the fleet.
    pub fn finish(&mut self, slot: Slot, at: Nanos) -> Vec<Event> {
        let Aggregates { collector, evaluation } = self;
        // The first shard decides about the metadata.
        let mut merged: Option<Merged> = None;
        let definitions = Arc::clone(&evaluation.definitions);
        let references = collector.finish(slot, |references, shard| {
            let merged =
                merged.get_or_insert_with(|| Merged::new(Arc::clone(&definitions), references));
            merged.add(shard);
        });
        evaluation.know(references);
        let merged = merged.unwrap_or_else(|| Merged::new(definitions, references));
        evaluation.evaluate(slot, at, &merged)
    }
}
