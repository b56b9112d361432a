//! From merged aggregates to events for sinks. It evaluates definitions over the fleet, names
//! groups, counts hosts, and finds series that have ended.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::model::{InstId, Semantics, Timestamp, Units, ValueType};
use pmderive_runtime::position::Per;
use pmderive_runtime::program::{Binding, OutputId, Status};
use rustc_hash::{FxHashMap, FxHashSet};

use super::aggregate::{AggregateId, GroupingId};
use super::carry::{CarriedPositions, carry};
use super::definitions::FleetDefinitions;
use super::groups::{FleetDomain, GroupKey, GroupingDomains};
use super::merge::Merged;
use super::operand::References;
use super::partial::{Hosts, MAX_QUANTILE_VALUES, Total};
use super::source::{self, DomainOf, FleetSource, Identifiers, MetricId};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Compiled, Engine, Registered, Selection};
use crate::fleet::frame::columns::{Columns, Heads, Lanes};
use crate::fleet::frame::series::Series;
use crate::fleet::frame::{
    Event, ExportedId, ExportedMetric, Frame, Instances, Schema, StaleReason,
};
use crate::fleet::labels::Labels;
use crate::fleet::numbers::FleetNumbers;
use crate::fleet::sinks::sink_set::SinkSet;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::targets::target::Target;

/// Numbers of hosts that each group has beside its values: name, help, and count.
const HOSTS: [(&str, &str, HostCount); 6] = [
    ("fleet.hosts.expected", "hosts of a group", |hosts| hosts.expected),
    ("fleet.hosts.failed", "hosts of a group that did not answer rightly in time", |hosts| {
        hosts.failed
    }),
    ("fleet.hosts.left_out", "hosts of a group whose values do not convert", |hosts| {
        hosts.left_out
    }),
    ("fleet.hosts.missed", "hosts of a group whose slot was not started", |hosts| hosts.missed),
    ("fleet.hosts.no_value", "hosts of a group that answered without a value", |hosts| {
        hosts.no_value
    }),
    ("fleet.hosts.present", "hosts of a group with values", |hosts| hosts.present),
];

/// Names of the numbers of hosts.
pub fn counts_of_hosts() -> impl Iterator<Item = &'static str> {
    HOSTS.iter().map(|(name, ..)| *name)
}

/// True for the name of a number of hosts.
pub fn of_hosts_counted(name: &str) -> bool {
    HOSTS.iter().any(|(known, ..)| *known == name)
}

/// Getter of one number of hosts.
type HostCount = fn(&Hosts) -> u32;
/// A group of an aggregate; `None` for hosts whose labels are unknown.
type OfAggregate = (AggregateId, Option<GroupKey>);

/// The evaluation of definitions over the fleet.
pub struct Evaluation {
    pub(super) engine: Arc<Engine>,
    pub(super) definitions: Arc<FleetDefinitions>,
    selection: Arc<Selection>,
    pub(super) source: FleetSource,
    pub(super) identifiers: Identifiers,
    pub(super) references: References,
    compiled: Option<Arc<Compiled>>,
    diagnostics: Diagnostics,
    evaluator: Evaluator,
    workspace: Workspace,
    domains: Per<GroupingId, GroupingDomains>,
    of_aggregates: FleetDomain<OfAggregate>,
    /// The members of each aggregate's groups in the slot before.
    members: Per<AggregateId, FxHashMap<InstId, u128>>,
    exports: Vec<SelectedDefinition>,
    schema: Arc<Schema>,
    /// Origin of each metric's values.
    origins: Per<ExportedId, Origin>,
    series: Series,
    target: Arc<Target>,
    /// Counts aggregates that got values and have none.
    pub numbers: Arc<FleetNumbers>,
    /// Texts of aggregates whose refusal was told.
    told: FxHashSet<Box<str>>,
    /// New warnings about these, each aggregate once.
    pub(super) warnings: Vec<String>,
    /// Time that the clock of slots had lost at a time ([`World::slowed`]). Differences over
    /// time count it.
    ///
    /// [`World::slowed`]: crate::fleet::world::World::slowed
    pub slowed: fn(Nanos) -> Duration,
}

/// A selected definition, with the sinks that want it.
#[derive(Debug)]
struct SelectedDefinition {
    sinks: SinkSet,
    help: Option<Arc<str>>,
}

/// Origin of a metric's values.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// An output of the program, and the domain of its instances.
    Output(OutputId, Option<DomainOf>),
    /// A number of hosts.
    Hosts(HostCount),
}

impl Evaluation {
    /// An evaluation of these definitions. `sinks` maps the name of a metric to the sinks that
    /// want it.
    pub fn new(
        engine: Arc<Engine>,
        definitions: Arc<FleetDefinitions>,
        sinks: &dyn Fn(&str) -> SinkSet,
    ) -> Evaluation {
        let (selection, exports) = chosen(&definitions, sinks);
        let mut identifiers = Identifiers::default();
        identifiers.follow(&definitions);
        Evaluation {
            selection,
            source: source::fleet(&definitions, &identifiers),
            identifiers,
            references: Per::all(definitions.operands.len(), None),
            compiled: None,
            diagnostics: Diagnostics::default(),
            evaluator: Evaluator::new(Arc::default(), Arc::<Binding>::default()),
            workspace: Workspace::default(),
            domains: definitions.groupings.iter().map(|_| GroupingDomains::default()).collect(),
            of_aggregates: FleetDomain::default(),
            members: Per::all(definitions.aggregates.len(), FxHashMap::default()),
            exports,
            schema: Arc::new(Schema { metrics: Per::default() }),
            origins: Per::default(),
            series: Series::default(),
            target: Arc::new(Target::fleet()),
            numbers: Arc::default(),
            told: FxHashSet::default(),
            warnings: Vec::new(),
            slowed: |_| Duration::ZERO,
            engine,
            definitions,
        }
    }

    /// Changes to other definitions. State that both have goes on: identifiers of groups,
    /// earlier samples of rates, and series.
    pub fn follow(&mut self, definitions: Arc<FleetDefinitions>, sinks: &dyn Fn(&str) -> SinkSet) {
        let carried = CarriedPositions::between(&self.definitions, &definitions);
        (self.selection, self.exports) = chosen(&definitions, sinks);
        self.identifiers.follow(&definitions);
        self.references = carry(std::mem::take(&mut self.references), &carried.operands);
        self.domains = carry(std::mem::take(&mut self.domains), &carried.groupings);
        self.members = carry(std::mem::take(&mut self.members), &carried.aggregates);
        let aggregates = carried.aggregates.enumerate();
        let now: FxHashMap<AggregateId, AggregateId> =
            aggregates.filter_map(|(now, before)| Some(((*before)?, now))).collect();
        self.of_aggregates.rename(|(at, group)| Some((*now.get(at)?, group.clone())));
        self.definitions = definitions;
        self.renew_source();
        self.bind();
    }

    /// Forgets the members of groups, as slots have other numbers from now on. No difference
    /// over time spans this.
    pub fn forget_members(&mut self) {
        self.members = Per::all(self.definitions.aggregates.len(), FxHashMap::default());
    }

    /// Creates the source again, with the known metadata of operands.
    fn renew_source(&mut self) {
        let of = (&*self.definitions, &self.identifiers);
        self.source = source::fleet(of.0, of.1);
        for (operand, reference) in self.references.enumerate() {
            if let Some(reference) = reference {
                source::know(&mut self.source, of, operand, reference);
            }
        }
        self.domains.iter_mut().for_each(GroupingDomains::forget_told);
    }

    /// Adopts the metadata of operands, and checks the definitions with them.
    pub fn know(&mut self, references: &References) {
        let before = self.references.iter();
        if references.iter().zip(before).any(|(now, before)| before.is_some() && now != before) {
            // A source has each metric once.
            self.references.clone_from(references);
            self.renew_source();
            return self.bind();
        }
        let mut is_news = self.compiled.is_none();
        for (operand, reference) in references.enumerate() {
            if let (Some(reference), None) = (reference, self.references[operand]) {
                self.references[operand] = Some(*reference);
                let of = (&*self.definitions, &self.identifiers);
                is_news |= source::know(&mut self.source, of, operand, reference);
            }
        }
        if is_news {
            self.bind();
        }
    }

    /// True if some definition has no value in a first slot because it needs two.
    pub fn needs_two_slots(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| !compiled.program.histories.is_empty())
    }

    /// Mistakes of definitions, as far as metadata are known.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    fn bind(&mut self) {
        // A source in memory does not fail.
        let Ok(compiled) = self.engine.bind(&self.selection, &mut self.source) else { return };
        compiled.put_into(&mut self.evaluator);
        // No rate spans the time in which its definition was absent.
        self.evaluator.forget_absent();
        self.diagnostics = self.mistakes(&compiled);
        let (schema, origins) = self.schema_of(&compiled);
        self.origins = origins.into();
        if *self.schema != schema {
            self.schema = Arc::new(schema);
        }
        self.compiled = Some(compiled);
    }

    /// Mistakes of compiled definitions.
    fn mistakes(&self, compiled: &Compiled) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        let mut refused: FxHashSet<&str> = FxHashSet::default();
        for aggregate in &self.definitions.aggregates {
            if let Some(reference) = &self.references[aggregate.operand]
                && aggregate.function.desc(reference).is_none()
            {
                let text = &aggregate.text;
                refused.insert(text);
                let message = format!("`{text}` needs numbers, not {}", reference.value_type);
                diagnostics.push(
                    Diagnostic::error(Code::NotNumeric, aggregate.span, message)
                        .help("only `count()` works on values that are not numbers"),
                );
            }
        }
        let is_whole = self.references.iter().all(Option::is_some);
        for diagnostic in compiled.diagnostics() {
            // A metric that no host has yet is unknown, but no mistake.
            let is_of_name = matches!(diagnostic.code, Code::UnknownMetric | Code::UnusableOperand);
            let is_told = refused.iter().any(|text| diagnostic.message.contains(*text));
            if !is_of_name || is_whole && !is_told {
                let told = in_groups(diagnostic.clone(), &self.definitions, &self.identifiers);
                diagnostics.push(told);
            }
        }
        diagnostics
    }

    /// The metrics of frames, and the origin of the values of each.
    fn schema_of(&self, compiled: &Compiled) -> (Schema, Vec<Origin>) {
        let defined = compiled.metrics.iter().zip(&self.exports).filter_map(|(metric, export)| {
            let exported = ExportedMetric::of(metric, export.sinks, export.help.clone())?;
            let (desc, output) = (metric.desc.ok()?, metric.output?);
            let domain = desc.indom.and_then(|indom| self.identifiers.domain(indom));
            Some((exported, Origin::Output(output, domain)))
        });
        let of_hosts = HOSTS.iter().zip(&self.exports[self.exports.len() - HOSTS.len()..]);
        let of_hosts = of_hosts.map(|((name, _, number), export)| {
            let exported = ExportedMetric {
                name: Arc::from(*name),
                value_type: ValueType::U32,
                semantics: Semantics::Instant,
                units: Units::NONE,
                has_instances: true,
                help: export.help.clone(),
                sinks: export.sinks,
            };
            (exported, Origin::Hosts(*number))
        });
        Schema::sorted(defined.chain(of_hosts))
    }

    /// Evaluates a slot whose values have the time `at`. Returns the events of ended series,
    /// and then a frame of the fleet.
    pub fn evaluate(&mut self, slot: Slot, at: Nanos, merged: &Merged) -> Vec<Event> {
        if self.compiled.is_none() {
            self.bind();
        }
        let stamp = at.into();
        let hosts = self.feed(at.after((self.slowed)(at)).into(), merged);
        self.name_instances();
        let sampled = self.evaluator.fetch(&mut self.source, &mut self.workspace);
        let mut heads: Vec<(Status, Arc<Instances>)> = Vec::with_capacity(self.origins.len());
        let mut lanes = Lanes::default();
        let domains = &self.domains;
        let former = |position: ExportedId| -> Option<&Arc<Instances>> {
            Some(self.series.heads(&self.schema)?.get(position)?.1)
        };
        let hosts_instances = {
            let ids: Vec<InstId> = hosts.iter().map(|(id, _)| *id).collect();
            let position = self.origins.position(|one| matches!(one, Origin::Hosts(_)));
            instances(&ids, position.and_then(former), |id| named(&self.of_aggregates, id))
        };
        for (position, origin) in self.origins.enumerate() {
            heads.push(match origin {
                Origin::Hosts(number) => {
                    lanes.push(hosts.iter().map(|(_, hosts)| u64::from(number(hosts))));
                    (Status::Values, Arc::clone(&hosts_instances))
                }
                Origin::Output(output, domain) => match &sampled {
                    Err(error) => {
                        lanes.push(std::iter::empty());
                        (Status::Failed(error.status()), Arc::default())
                    }
                    Ok((evaluation, _)) => {
                        let values = evaluation.get(*output);
                        lanes.push_values(&values, usize::MAX);
                        let instances =
                            instances(values.instances, former(position), |id| match (*domain)? {
                                DomainOf::Groups(grouping) => named(&domains[grouping].groups, id),
                                DomainOf::Hosts(grouping) => named(&domains[grouping].of_hosts, id),
                            });
                        (values.status, instances)
                    }
                },
            });
        }
        let frame = Frame {
            target: Arc::clone(&self.target),
            host_labels: Labels::default(),
            slot,
            at,
            stamp,
            gaps: 0,
            schema: Arc::clone(&self.schema),
            columns: Columns::new(Heads::new(heads), lanes),
        };
        let ended = self.series.go_on(&frame, frame.schema.sinks());
        ended.into_iter().map(|(event, _)| event).chain([Event::Frame(frame)]).collect()
    }

    /// The event that ends all series, if there are any.
    pub fn end(&mut self, slot: Slot, at: Nanos, reason: StaleReason) -> Option<Event> {
        self.series.end(&self.target, slot, at, reason).map(|(event, _)| event)
    }

    /// Passes the values of a slot to the source. Returns the numbers of hosts.
    fn feed(&mut self, stamp: Timestamp, merged: &Merged) -> Vec<(InstId, Hosts)> {
        self.forget(merged);
        self.source.feed().time = stamp;
        let mut counted: Vec<(InstId, Hosts)> = Vec::new();
        // For each aggregate, the groups with values whose members have not changed.
        let mut unchanged: Per<AggregateId, Vec<InstId>> = Per::default();
        for at in self.members.positions() {
            unchanged.push(self.feed_aggregate(at, merged, &mut counted));
        }
        self.feed_unchanged(&unchanged);
        counted
    }

    /// Passes the values of an aggregate to the source, and adds the numbers of hosts of its
    /// groups. Returns the groups with values whose members have not changed.
    fn feed_aggregate(
        &mut self,
        at: AggregateId,
        merged: &Merged,
        counted: &mut Vec<(InstId, Hosts)>,
    ) -> Vec<InstId> {
        let Evaluation { definitions, source, domains, of_aggregates, .. } = self;
        let aggregate = &definitions.aggregates[at];
        let labels = &definitions.groupings[aggregate.grouping];
        let mut now: FxHashMap<InstId, u128> = FxHashMap::default();
        let mut unchanged: Vec<InstId> = Vec::new();
        let metric = source.feed().metric(MetricId::of_aggregate(at));
        let mut refused: Option<(InstId, String)> = None;
        let mut sorted: Vec<_> = merged.groups(at).collect();
        sorted.sort_by_key(|(key, _)| *key);
        for (key, partial) in sorted {
            if partial.hosts.expected == 0 {
                // All hosts of the group lack the operand.
                continue;
            }
            let values: Vec<&str> =
                key.into_iter().flat_map(|key| key.iter()).map(|v| &**v).collect();
            let of_key = || labels.iter().map(|label| &**label).zip(values.iter().copied());
            let counts = of_aggregates.entry(&(at, key.cloned()), || {
                let unknown = key.is_none().then_some(("group", "unknown"));
                [("aggregate", &*aggregate.text)].into_iter().chain(of_key()).chain(unknown)
            });
            counted.push((counts.id, partial.hosts));
            let Some(key) = key else { continue };
            let domains = &mut domains[aggregate.grouping];
            let group = domains.groups.entry(key, of_key).id;
            let id = if labels.is_empty() { -1 } else { group };
            if partial.count > 0 {
                now.insert(id, partial.members);
                if self.members[at].get(&id) == Some(&partial.members) {
                    unchanged.push(id);
                }
            }
            match partial.clone().total(aggregate.function, merged.kind(at)) {
                Total::Value(bits) => {
                    metric.ids.push(id);
                    metric.bits.push(bits);
                }
                Total::Ranked(ranked) => {
                    let mut ranked: Vec<_> = ranked.into_iter().collect();
                    ranked.sort_by(|a, b| (&a.host, &a.instance).cmp(&(&b.host, &b.instance)));
                    for one in &ranked {
                        let own =
                            (Arc::clone(key), Arc::clone(&one.host), Arc::clone(&one.instance));
                        let place = [("instance", &*one.host), ("instname", &*one.instance)];
                        let place = place.into_iter().filter(|(_, value)| !value.is_empty());
                        let entry = domains.of_hosts.entry(&own, || of_key().chain(place));
                        metric.ids.push(entry.id);
                        metric.bits.push(one.bits);
                    }
                }
                Total::Nothing => {}
                Total::Overflow => {
                    self.numbers.refused.add(1);
                    refused = Some((group, "the sum has more than 64 bits".to_owned()));
                }
                Total::TooMany => {
                    self.numbers.refused.add(1);
                    let most = MAX_QUANTILE_VALUES;
                    refused = Some((group, format!("there are more than {most} values")));
                }
            }
        }
        if let Some((group, reason)) = refused
            && self.told.insert(aggregate.text.clone())
        {
            let groups = &domains[aggregate.grouping].groups;
            let of_group = groups.of_id(group).filter(|_| !labels.is_empty());
            let of_group = of_group.map_or(String::new(), |group| format!(" for {}", group.name));
            self.warnings.push(format!("`{}` has no value{of_group}: {reason}", aggregate.text));
        }
        self.members[at] = now;
        unchanged
    }

    /// Tells the source for each aggregate the groups whose members have not changed.
    fn feed_unchanged(&mut self, unchanged: &Per<AggregateId, Vec<InstId>>) {
        let Evaluation { definitions, source, .. } = self;
        let is_single =
            |of: AggregateId| definitions.groupings[definitions.aggregates[of].grouping].is_empty();
        for (at, one) in MetricId::of_unchanged(definitions).zip(&definitions.unchanged) {
            let (single, grouped): (Vec<AggregateId>, Vec<AggregateId>) =
                one.aggregates.iter().partition(|of| is_single(**of));
            let metric = source.feed().metric(at);
            if single.iter().any(|of| unchanged[*of].is_empty()) {
                continue;
            }
            let mut ids: Vec<InstId> = match grouped.first() {
                Some(first) => unchanged[*first].clone(),
                None => vec![-1],
            };
            for of in grouped.iter().skip(1) {
                let others: FxHashSet<InstId> = unchanged[*of].iter().copied().collect();
                ids.retain(|id| others.contains(id));
            }
            metric.bits.resize(ids.len(), 1);
            metric.ids = ids;
        }
    }

    /// If there are too many, forgets groups without hosts, and instances that the slot before
    /// did not rank.
    fn forget(&mut self, merged: &Merged) {
        let Evaluation { definitions, source, domains, of_aggregates, .. } = self;
        if !of_aggregates.is_full() && !domains.iter().any(GroupingDomains::is_full) {
            return;
        }
        for grouping in domains.positions() {
            let all = definitions.aggregates.enumerate();
            let its = || all.clone().filter(|(_, one)| one.grouping == grouping).map(|(at, _)| at);
            let keys: FxHashSet<&GroupKey> =
                its().flat_map(|at| merged.groups(at)).filter_map(|(key, _)| key).collect();
            domains[grouping].groups.keep(|entry| keys.contains(&entry.key));
            let feed = source.feed();
            let ids: FxHashSet<InstId> =
                its().flat_map(|at| feed.ids(MetricId::of_aggregate(at)).iter().copied()).collect();
            domains[grouping].of_hosts.keep(|entry| ids.contains(&entry.id));
        }
        let keys: FxHashSet<OfAggregate> = definitions
            .aggregates
            .positions()
            .flat_map(|at| merged.groups(at).map(move |(key, _)| (at, key.cloned())))
            .collect();
        of_aggregates.keep(|entry| keys.contains(&entry.key));
    }

    /// Adds new instances to the source.
    fn name_instances(&mut self) {
        for grouping in self.domains.positions() {
            let domains = &mut self.domains[grouping];
            if !domains.note_told() {
                continue;
            }
            let metadata = self.source.metadata();
            let indom = |domain| self.identifiers.indom(domain);
            metadata.set_instances(indom(DomainOf::Groups(grouping)), domains.groups.instances());
            metadata.set_instances(indom(DomainOf::Hosts(grouping)), domains.of_hosts.instances());
        }
    }
}

/// The diagnostic with words for the instance domains of the fleet: their numbers mean nothing
/// to users.
fn in_groups(
    mut diagnostic: Diagnostic,
    definitions: &FleetDefinitions,
    identifiers: &Identifiers,
) -> Diagnostic {
    for (grouping, labels) in definitions.groupings.enumerate() {
        let by = match labels.is_empty() {
            true => "all hosts".to_owned(),
            false => format!("groups by ({})", labels.join(", ")),
        };
        for (domain, words) in [
            (identifiers.indom(DomainOf::Hosts(grouping)), format!("instances of hosts in {by}")),
            (identifiers.indom(DomainOf::Groups(grouping)), by.clone()),
        ] {
            let number = format!("instances of {domain}");
            let labels = diagnostic.labels.iter_mut().map(|label| &mut label.text);
            let steps = diagnostic.derivations.iter_mut().flat_map(|one| &mut one.steps);
            for text in labels.chain(steps.map(|step| &mut step.value)) {
                if text.ends_with(&number) {
                    *text = text.replace(&number, &words);
                }
            }
        }
    }
    if diagnostic.code == Code::IndomMismatch {
        let help = "groups are the same with the same `by`, labels in the same order";
        diagnostic = diagnostic.help(help);
    }
    diagnostic
}

/// The selected definitions, and the sinks of these and of the numbers of hosts.
fn chosen(
    definitions: &FleetDefinitions,
    sinks: &dyn Fn(&str) -> SinkSet,
) -> (Arc<Selection>, Vec<SelectedDefinition>) {
    let registry = &definitions.registry;
    let help = |pmid| registry.line_about(pmid).map(Arc::from);
    let chosen: Vec<&Registered> = definitions.selection.iter().map(|one| &**one).collect();
    let defined = chosen
        .iter()
        .map(|one| SelectedDefinition { sinks: sinks(&one.name), help: one.pmid.and_then(help) });
    let of_hosts = HOSTS.iter().map(|(name, help, _)| SelectedDefinition {
        sinks: sinks(name),
        help: Some(Arc::from(*help)),
    });
    let exports = defined.chain(of_hosts).collect();
    (Arc::new(Selection::new(registry, &chosen)), exports)
}

/// Name and labels of an instance.
fn named<K: Clone + Eq + Hash>(
    domain: &FleetDomain<K>,
    id: InstId,
) -> Option<(&Arc<str>, &Labels)> {
    domain.of_id(id).map(|one| (&one.name, &one.labels))
}

/// The instances with these identifiers. `former` is returned again if it is equal.
fn instances<'n>(
    ids: &[InstId],
    former: Option<&Arc<Instances>>,
    named: impl Fn(InstId) -> Option<(&'n Arc<str>, &'n Labels)>,
) -> Arc<Instances> {
    if let Some(former) = former.filter(|former| *former.ids == *ids) {
        return Arc::clone(former);
    }
    let known: Option<Vec<(&Arc<str>, &Labels)>> = ids.iter().map(|id| named(*id)).collect();
    let (names, labels) = match known {
        Some(known) => known.into_iter().map(|(name, of)| (Arc::clone(name), of.clone())).unzip(),
        None => (Vec::new(), Vec::new()),
    };
    Arc::new(Instances {
        ids: ids.into(),
        names: names.into(),
        domain_labels: Labels::default(),
        labels: labels.into(),
    })
}
