//! The fleet as a source of metrics. Its values are the aggregates of one slot, and the
//! evaluator computes with them as with those of a host.

use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::position::Per;
use pmderive_runtime::positions;
use pmderive_runtime::result::{ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};
use rustc_hash::FxHashMap;

use super::aggregate::{AggregateId, GroupingId};
use super::carry::StableNumbers;
use super::definitions::FleetDefinitions;
use super::operand::{OperandId, Reference};
use super::reading::Operand;
use crate::fleet::frame::columns::write_numbers;

/// The fleet.
pub type FleetSource = MemorySource<AggregateValues>;

positions! {
    /// Position of a metric of the fleet. Aggregates come first, then the metrics about
    /// unchanged members, and then operands, which have no values.
    pub MetricId;
}

/// Values of the metrics of the fleet, until the next fetch.
#[derive(Debug, Default)]
pub struct AggregateValues {
    /// The end of the slot.
    pub time: Timestamp,
    positions: FxHashMap<Pmid, MetricId>,
    metrics: Per<MetricId, Metric>,
}

/// Values of one metric, all as bits.
#[derive(Debug)]
pub struct Metric {
    value_type: ValueType,
    /// Instances; -1 without a domain.
    pub ids: Vec<InstId>,
    /// Values, parallel to the instances.
    pub bits: Vec<u64>,
}

impl MetricId {
    /// The metric of an aggregate.
    pub fn of_aggregate(aggregate: AggregateId) -> MetricId {
        MetricId(aggregate.0)
    }

    /// The metrics about unchanged members, parallel to [`FleetDefinitions::unchanged`].
    pub fn of_unchanged(definitions: &FleetDefinitions) -> impl Iterator<Item = MetricId> + use<> {
        (definitions.aggregates.len()..).map(MetricId::at)
    }

    /// An operand.
    fn of_operand(definitions: &FleetDefinitions, operand: OperandId) -> MetricId {
        let first = definitions.aggregates.len() + definitions.unchanged.len();
        MetricId::at(first + operand.index())
    }
}

impl Feed for AggregateValues {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let mut writer = ResultWriter::new(batch.add_part(), self.time);
        for pmid in list.pmids() {
            writer.set(*pmid);
            let metric = self.positions.get(pmid).map(|at| &self.metrics[*at]);
            let Some(metric) = metric.filter(|metric| !metric.ids.is_empty()) else { continue };
            write_numbers(&mut writer, metric.value_type, &metric.ids, &metric.bits);
        }
        Ok(FetchEvents::default())
    }
}

impl AggregateValues {
    /// The values of a metric, cleared.
    pub fn metric(&mut self, at: MetricId) -> &mut Metric {
        let metric = &mut self.metrics[at];
        metric.ids.clear();
        metric.bits.clear();
        metric
    }

    /// Instances of a metric in the last slot.
    pub fn ids(&self, at: MetricId) -> &[InstId] {
        &self.metrics[at].ids
    }

    fn add(&mut self, pmid: Pmid, value_type: ValueType) {
        let at = self.metrics.push(Metric { value_type, ids: Vec::new(), bits: Vec::new() });
        self.positions.insert(pmid, at);
    }
}

/// An instance domain of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainOf {
    /// The groups of a grouping.
    Groups(GroupingId),
    /// Instances of hosts within the groups of a grouping.
    Hosts(GroupingId),
}

/// Identifiers of the fleet's metrics and instance domains. They stay when definitions change,
/// and are never shown.
#[derive(Debug, Default)]
pub struct Identifiers {
    /// Identifiers of aggregates, metrics about unchanged members, and operands.
    metrics: StableNumbers<(Role, Box<str>)>,
    /// Identifiers of groupings, by the labels of a `by`.
    groupings: StableNumbers<Box<[Box<str>]>>,
}

/// Role of a metric of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    Aggregate,
    Unchanged,
    Operand,
}

impl Identifiers {
    /// Changes to other definitions. A metric that was there before keeps its identifier.
    pub fn follow(&mut self, definitions: &FleetDefinitions) {
        let aggregates = definitions.aggregates.iter().map(|one| (Role::Aggregate, &*one.text));
        let unchanged = definitions.unchanged.iter().map(|one| (Role::Unchanged, &*one.name));
        let operands = definitions.operands.iter().map(|one| (Role::Operand, &*one.name));
        let metrics = aggregates.chain(unchanged).chain(operands);
        self.metrics.follow(metrics.map(|(role, name)| (role, name.into())));
        self.groupings.follow(definitions.groupings.iter().cloned());
    }

    /// The metric at a position.
    fn pmid(&self, at: MetricId) -> Pmid {
        // No text has room for four million aggregates.
        let number = self.metrics.number(at.index()).unwrap_or(u32::MAX);
        Pmid::new(DOMAIN, (number >> 10) & 0xfff, number & 0x3ff)
    }

    /// The identifier of a domain.
    pub fn indom(&self, domain: DomainOf) -> InDom {
        let (grouping, of_hosts) = match domain {
            DomainOf::Groups(grouping) => (grouping, 0),
            DomainOf::Hosts(grouping) => (grouping, 1),
        };
        let number = self.groupings.number(grouping.index()).unwrap_or(u32::MAX / 4);
        InDom::new(DOMAIN, 2 * number + of_hosts)
    }

    /// The domain with an identifier.
    pub fn domain(&self, indom: InDom) -> Option<DomainOf> {
        let grouping = GroupingId::at(self.groupings.position(indom.serial() / 2)?);
        Some(match indom.serial() % 2 {
            0 => DomainOf::Groups(grouping),
            _ => DomainOf::Hosts(grouping),
        })
    }

    /// The instance domain of an aggregate; `None` if it has a single value.
    fn domain_of(&self, definitions: &FleetDefinitions, aggregate: AggregateId) -> Option<InDom> {
        let aggregate = &definitions.aggregates[aggregate];
        if aggregate.function.is_ranked() {
            return Some(self.indom(DomainOf::Hosts(aggregate.grouping)));
        }
        let is_grouped = !definitions.groupings[aggregate.grouping].is_empty();
        is_grouped.then(|| self.indom(DomainOf::Groups(aggregate.grouping)))
    }
}

/// A fleet without known metadata. Its metrics are the aggregates, and after them the metrics
/// about unchanged members.
pub fn fleet(definitions: &FleetDefinitions, identifiers: &Identifiers) -> FleetSource {
    let mut values = AggregateValues::default();
    let mut metadata = MemoryMetadata::default();
    for at in definitions.aggregates.positions() {
        // The type follows once it is known; all have 64 bits.
        values.add(identifiers.pmid(MetricId::of_aggregate(at)), ValueType::U64);
    }
    for (at, one) in MetricId::of_unchanged(definitions).zip(&definitions.unchanged) {
        let mut domains = one.aggregates.iter();
        let desc = MetricDesc {
            pmid: identifiers.pmid(at),
            value_type: ValueType::U32,
            indom: domains.find_map(|of| identifiers.domain_of(definitions, *of)),
            semantics: Semantics::Discrete,
            units: Units::NONE,
        };
        metadata.add_metric(one.name.clone(), desc);
        values.add(desc.pmid, desc.value_type);
    }
    for grouping in definitions.groupings.positions() {
        for domain in [DomainOf::Groups(grouping), DomainOf::Hosts(grouping)] {
            metadata.set_instances(identifiers.indom(domain), Vec::new());
        }
    }
    MemorySource::new("the fleet", metadata, values)
}

/// Sets the metadata of an operand. Returns true if they are new.
pub fn know(
    source: &mut FleetSource,
    (definitions, identifiers): (&FleetDefinitions, &Identifiers),
    operand: OperandId,
    reference: &Reference,
) -> bool {
    let Operand { name, aggregates, .. } = &definitions.operands[operand];
    let pmid = identifiers.pmid(MetricId::of_operand(definitions, operand));
    if source.metadata().desc(pmid).is_some() {
        return false;
    }
    for at in aggregates {
        let aggregate = &definitions.aggregates[*at];
        let Some(outcome) = aggregate.function.desc(reference) else { continue };
        let metric = MetricId::of_aggregate(*at);
        let desc = outcome.desc(identifiers.pmid(metric), identifiers.domain_of(definitions, *at));
        source.feed().metrics[metric].value_type = outcome.value_type;
        source.metadata().add_metric(aggregate.text.clone(), desc);
    }
    // It is there for `defined()`; nothing fetches it.
    let desc = reference.desc(pmid, Some(InDom::new(DOMAIN, 1 << 21)));
    source.metadata().add_metric(&**name, desc);
    true
}

/// The domain of all identifiers.
const DOMAIN: u32 = 1;
