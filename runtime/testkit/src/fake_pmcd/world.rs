//! The contents of a fake pmcd: metrics with their scripts, instance domains,
//! texts and labels.
//!
//! Any number of hosts share a [`World`], which does not change.
//! [`super::FakeHost`] has the parts that differ from host to host.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use pmderive_core::memory::MemoryMetadata;
use pmderive_core::model::{
    InDom, InstId, InstanceDomain, LabelFlags, LabelLevel, LabelSet, LabelTextError, MetricDesc,
    PmStatus, Pmid, Semantics, TextKind, TextSubject, Timestamp, Units, ValueType,
};
use pmderive_core::source::{Freshness, MetadataSource, SourceError};

use super::script::Script;

/// Domain of the agent that metrics belong to unless they say otherwise: the
/// number of pmdalinux(1).
pub const DEFAULT_AGENT: u32 = 60;

/// Domain of the agent of the metrics about pmcd itself, pmdapmcd(1).
pub const PMCD_AGENT: u32 = 2;

/// Metrics, instance domains, texts and labels.
#[derive(Clone, Debug)]
pub struct World {
    metadata: MemoryMetadata,
    metrics: HashMap<Pmid, ScriptedMetric>,
    /// Domains whose instances come from a function.
    populations: HashMap<InDom, Population>,
    /// Next cluster and item, and next serial, of each agent.
    agents: BTreeMap<u32, Numbers>,
}

/// A function that gives the instances of a domain, from the seed of the host
/// and the time.
pub type Populate = Arc<dyn Fn(u64, Timestamp) -> Arc<InstanceDomain> + Send + Sync>;

#[derive(Clone)]
struct Population(Populate);

impl fmt::Debug for Population {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Population")
    }
}

/// The parts of a metric that a fetch needs.
#[derive(Clone, Debug)]
pub(super) struct ScriptedMetric {
    pub desc: MetricDesc,
    pub script: Script,
    pub writable: bool,
}

/// The next numbers of an agent, for metrics and domains without a number of
/// their own.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    metric: u32,
    domain: u32,
}

/// A metric to add to a [`World`]. By default, the script gives the type from
/// its values and the semantics from its kind.
#[derive(Clone, Debug)]
#[must_use]
pub struct Metric {
    name: Box<str>,
    script: Script,
    agent: u32,
    pmid: Option<Pmid>,
    value_type: Option<ValueType>,
    indom: Option<InDom>,
    semantics: Option<Semantics>,
    units: Units,
    writable: bool,
}

impl Metric {
    /// A metric with one value, of [`DEFAULT_AGENT`].
    pub fn new(name: impl Into<Box<str>>, script: Script) -> Metric {
        Metric {
            name: name.into(),
            script,
            agent: DEFAULT_AGENT,
            pmid: None,
            value_type: None,
            indom: None,
            semantics: None,
            units: Units::NONE,
            writable: false,
        }
    }

    /// The same metric with a value for each instance of a domain. Its agent is
    /// that of the domain.
    pub fn per(mut self, indom: InDom) -> Metric {
        self.indom = Some(indom);
        self.agent = indom.domain();
        self
    }

    /// The same metric with another type than that of the script's values.
    pub fn of_type(mut self, value_type: ValueType) -> Metric {
        self.value_type = Some(value_type);
        self
    }

    /// The same metric with these units.
    pub fn in_units(mut self, units: Units) -> Metric {
        self.units = units;
        self
    }

    /// The same metric with other semantics than the script suggests. Counters
    /// and numbers of fetches are counters, constants are discrete, and all
    /// else is instantaneous.
    pub fn meaning(mut self, semantics: Semantics) -> Metric {
        self.semantics = Some(semantics);
        self
    }

    /// The same metric with this identifier instead of the agent's next one.
    pub fn numbered(mut self, pmid: Pmid) -> Metric {
        self.pmid = Some(pmid);
        self.agent = pmid.domain();
        self
    }

    /// The same metric of another agent.
    pub fn of_agent(mut self, domain: u32) -> Metric {
        self.agent = domain;
        self
    }

    /// Clients may store values in it.
    pub fn writable(mut self) -> Metric {
        self.writable = true;
        self
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl World {
    /// A world without anything, not even the metrics about pmcd itself.
    pub fn empty() -> World {
        World {
            metadata: MemoryMetadata::default(),
            metrics: HashMap::new(),
            populations: HashMap::new(),
            agents: BTreeMap::new(),
        }
    }

    /// A world with the metrics that PCP's tools request from every pmcd, under the usual
    /// identifiers: `pmcd.hostname`, `pmcd.timezone`, `pmcd.version`, `pmcd.numagents` and the
    /// writable `pmcd.client.whoami`.
    pub fn new() -> World {
        let mut world = World::empty();
        let own = |cluster, item| Pmid::new(PMCD_AGENT, cluster, item);
        world.add(Metric::new("pmcd.hostname", Script::HostName).numbered(own(0, 21)));
        world.add(Metric::new("pmcd.timezone", Script::constant("UTC")).numbered(own(0, 5)));
        world.add(Metric::new("pmcd.version", Script::constant("6.0.3")).numbered(own(0, 7)));
        world.add(Metric::new("pmcd.numagents", Script::constant(2u32)).numbered(own(0, 2)));
        let clients = InDom::new(PMCD_AGENT, 6);
        world.set_instances(clients, &[]);
        let whoami = Metric::new("pmcd.client.whoami", Script::constant("")).numbered(own(6, 0));
        world.add(whoami.per(clients).writable());
        world
    }

    /// Adds a metric, or gives an existing one another descriptor and script.
    /// The number stays, unless `metric` has one.
    pub fn add(&mut self, metric: Metric) -> Pmid {
        let known = self.metadata.pmid_of(&metric.name).ok();
        let pmid = metric.pmid.or(known).unwrap_or_else(|| self.next_pmid(metric.agent));
        self.agents.entry(pmid.domain()).or_default();
        let own_type = metric.script.own_type();
        let semantics = match metric.script {
            Script::Counter { .. } | Script::Fetches => Semantics::Counter,
            Script::Varied { ref of, .. } if matches!(**of, Script::Counter { .. }) => {
                Semantics::Counter
            }
            Script::Constant(_) | Script::HostName => Semantics::Discrete,
            _ => Semantics::Instant,
        };
        let desc = MetricDesc {
            pmid,
            value_type: metric.value_type.or(own_type).unwrap_or(ValueType::F64),
            indom: metric.indom,
            semantics: metric.semantics.unwrap_or(semantics),
            units: metric.units,
        };
        self.metadata.add_metric(metric.name, desc);
        let served = ScriptedMetric { desc, script: metric.script, writable: metric.writable };
        self.metrics.insert(pmid, served);
        pmid
    }

    /// The next identifier of an agent that no metric has yet.
    fn next_pmid(&mut self, agent: u32) -> Pmid {
        let numbers = self.agents.entry(agent).or_default();
        loop {
            let number = numbers.metric;
            numbers.metric += 1;
            let pmid = Pmid::new(agent, number >> 10, number);
            if !self.metrics.contains_key(&pmid) {
                return pmid;
            }
        }
    }

    /// Adds a name of a metric. A number without a metric gets its only name.
    pub fn add_name(&mut self, name: impl Into<Box<str>>, pmid: Pmid) {
        self.agents.entry(pmid.domain()).or_default();
        self.metadata.add_name(name, pmid);
    }

    /// Removes a name, and with its last name the metric. True if there was
    /// such a name.
    pub fn remove(&mut self, name: &str) -> bool {
        let pmid = self.metadata.pmid_of(name);
        let removed = self.metadata.remove_name(name);
        if let Ok(pmid) = pmid
            && self.metadata.desc(pmid).is_none()
        {
            self.metrics.remove(&pmid);
        }
        removed
    }

    /// A new instance domain of [`DEFAULT_AGENT`], whose instances are numbered
    /// from 0.
    pub fn add_domain<N: AsRef<str>>(&mut self, instances: &[N]) -> InDom {
        let numbers = self.agents.entry(DEFAULT_AGENT).or_default();
        let mut indom = InDom::new(DEFAULT_AGENT, numbers.domain);
        while self.metadata.instances(indom).is_ok() {
            numbers.domain += 1;
            indom = InDom::new(DEFAULT_AGENT, numbers.domain);
        }
        let instances: Vec<(InstId, &str)> =
            (0..).zip(instances.iter().map(AsRef::as_ref)).collect();
        self.set_instances(indom, &instances);
        indom
    }

    /// Sets the instances of a domain.
    pub fn set_instances(&mut self, indom: InDom, instances: &[(InstId, &str)]) {
        self.agents.entry(indom.domain()).or_default();
        let instances = instances.iter().map(|(id, name)| (*id, Box::from(*name))).collect();
        self.metadata.set_instances(indom, instances);
    }

    /// Sets a function that gives the instances of a domain, for each host and
    /// each moment. Nothing else changes them from then on.
    pub fn populate(
        &mut self,
        indom: InDom,
        populate: impl Fn(u64, Timestamp) -> Arc<InstanceDomain> + Send + Sync + 'static,
    ) {
        self.agents.entry(indom.domain()).or_default();
        self.populations.insert(indom, Population(Arc::new(populate)));
    }

    /// Adds an instance to a domain, which is made if necessary, or renames the
    /// instance.
    pub fn add_instance(&mut self, indom: InDom, instance: InstId, name: &str) {
        self.edit_instances(indom, |instances| {
            instances.retain(|(id, _)| *id != instance);
            instances.push((instance, name.into()));
        });
    }

    /// Removes an instance from a domain.
    pub fn remove_instance(&mut self, indom: InDom, instance: InstId) {
        self.edit_instances(indom, |instances| instances.retain(|(id, _)| *id != instance));
    }

    fn edit_instances(&mut self, indom: InDom, edit: impl FnOnce(&mut Vec<(InstId, Box<str>)>)) {
        let known = self.metadata.instances(indom).unwrap_or_default();
        let mut instances = known.instances().map(|(id, name)| (id, name.into())).collect();
        edit(&mut instances);
        self.agents.entry(indom.domain()).or_default();
        self.metadata.set_instances(indom, instances);
    }

    /// Sets the help text of a metric or an instance domain.
    pub fn set_text(&mut self, of: TextSubject, kind: TextKind, text: impl Into<Box<str>>) {
        self.metadata.set_text(of, kind, text);
    }

    /// Replaces the labels of a level other than [`LabelLevel::Instances`] by
    /// those of a JSON object.
    ///
    /// # Errors
    /// The text is not such an object.
    pub fn set_labels(&mut self, level: LabelLevel, json: &str) -> Result<(), LabelTextError> {
        self.set_label_sets(level, vec![LabelSet::parse(json, LabelFlags(level.bit()))?]);
        Ok(())
    }

    /// Replaces the labels of instances of a domain.
    ///
    /// # Errors
    /// A text is not a JSON object.
    pub fn set_instance_labels(
        &mut self,
        indom: InDom,
        json: &[(InstId, &str)],
    ) -> Result<(), LabelTextError> {
        let level = LabelLevel::Instances(indom);
        let parse = |(id, json): &(InstId, &str)| {
            Ok(LabelSet::parse(json, LabelFlags(level.bit()))?.of_instance(*id))
        };
        let sets = json.iter().map(parse).collect::<Result<_, LabelTextError>>()?;
        self.set_label_sets(level, sets);
        Ok(())
    }

    fn set_label_sets(&mut self, level: LabelLevel, sets: Vec<LabelSet>) {
        self.metadata.set_labels(level, sets);
    }

    /// The script of a metric, to be changed.
    pub fn script(&mut self, pmid: Pmid) -> Option<&mut Script> {
        self.metrics.get_mut(&pmid).map(|served| &mut served.script)
    }

    /// Sets whether clients may store values in a metric. False without such a
    /// metric.
    pub fn set_writable(&mut self, pmid: Pmid, writable: bool) -> bool {
        let served = self.metrics.get_mut(&pmid);
        served.map(|served| served.writable = writable).is_some()
    }

    /// Names, descriptors, instances, texts and labels.
    pub fn metadata(&self) -> &MemoryMetadata {
        &self.metadata
    }

    /// The parts of a metric that a fetch needs.
    pub(super) fn served(&self, pmid: Pmid) -> Option<&ScriptedMetric> {
        self.metrics.get(&pmid)
    }

    /// Instances of a domain on a host at a time.
    pub(super) fn instances(
        &self,
        indom: InDom,
        seed: u64,
        time: Timestamp,
    ) -> Result<Arc<InstanceDomain>, PmStatus> {
        match self.populations.get(&indom) {
            Some(Population(populate)) => Ok(populate(seed, time)),
            None => self.metadata.instances(indom),
        }
    }

    /// True when the domain has an agent, running or not.
    pub(super) fn has_agent(&self, domain: u32) -> bool {
        self.agents.contains_key(&domain)
    }

    /// Labels of a level, possibly none.
    pub(super) fn labels(&self, level: LabelLevel) -> &[LabelSet] {
        self.metadata.labels(level).unwrap_or_default()
    }

    /// Copies another source's contents at and below some nodes of its name
    /// space: descriptors, instances, texts and labels. `script` gives each
    /// metric its values.
    ///
    /// # Errors
    /// The source fails, or one of `nodes` is not in its name space.
    pub fn take_over(
        &mut self,
        source: &mut impl MetadataSource,
        nodes: &[&str],
        mut script: impl FnMut(&str, &MetricDesc) -> Script,
    ) -> Result<(), SourceError> {
        let mut names = Vec::new();
        for node in nodes {
            names.extend(source.traverse(node)?);
        }
        let asked: Vec<&str> = names.iter().map(String::as_str).collect();
        let pmids = source.lookup_names(&asked)?;
        let named: Vec<(&str, Pmid)> =
            asked.iter().zip(pmids).filter_map(|(name, pmid)| Some((*name, pmid.ok()?))).collect();
        let pmids: Vec<Pmid> = named.iter().map(|(_, pmid)| *pmid).collect();
        let descs = source.lookup_descs(&pmids)?;
        for ((name, pmid), desc) in named.iter().zip(&descs) {
            let Ok(desc) = desc else {
                self.add_name(*name, *pmid);
                continue;
            };
            let metric = Metric {
                value_type: Some(desc.value_type),
                indom: desc.indom,
                semantics: Some(desc.semantics),
                units: desc.units,
                ..Metric::new(*name, script(name, desc)).numbered(desc.pmid)
            };
            self.add(metric);
        }
        self.take_over_domains(source, descs.iter().flatten())?;
        let subjects: Vec<_> = pmids.iter().map(|pmid| TextSubject::Metric(*pmid)).collect();
        self.take_over_texts(source, &subjects)?;
        let mut levels = vec![LabelLevel::Context];
        for pmid in &pmids {
            levels.push(LabelLevel::Domain(pmid.domain()));
            levels.push(LabelLevel::Cluster(*pmid));
            levels.push(LabelLevel::Item(*pmid));
        }
        self.take_over_labels(source, &levels)
    }

    fn take_over_domains<'d>(
        &mut self,
        source: &mut impl MetadataSource,
        descs: impl Iterator<Item = &'d MetricDesc>,
    ) -> Result<(), SourceError> {
        let domains: std::collections::BTreeSet<InDom> =
            descs.filter_map(|desc| desc.indom).collect();
        for indom in domains {
            if let Ok(instances) = source.instance_domain(indom, Freshness::Current)? {
                let instances: Vec<_> = instances.instances().collect();
                self.set_instances(indom, &instances);
            }
            self.take_over_texts(source, &[TextSubject::Domain(indom)])?;
            let levels = [LabelLevel::InDom(indom), LabelLevel::Instances(indom)];
            self.take_over_labels(source, &levels)?;
        }
        Ok(())
    }

    fn take_over_texts(
        &mut self,
        source: &mut impl MetadataSource,
        subjects: &[TextSubject],
    ) -> Result<(), SourceError> {
        for kind in [TextKind::OneLine, TextKind::Help] {
            let texts = source.text_of_each(subjects, kind)?;
            for (of, text) in subjects.iter().zip(texts) {
                let Ok(text) = text else { continue };
                // If the help is empty, sources give the one line instead.
                if self.metadata.text(*of, kind) != Ok(&*text) {
                    self.set_text(*of, kind, text);
                }
            }
        }
        Ok(())
    }

    fn take_over_labels(
        &mut self,
        source: &mut impl MetadataSource,
        levels: &[LabelLevel],
    ) -> Result<(), SourceError> {
        let sets = source.labels_of_each(levels)?;
        for (level, sets) in levels.iter().zip(sets) {
            if let Ok(sets) = sets {
                self.set_label_sets(*level, sets);
            }
        }
        Ok(())
    }
}
