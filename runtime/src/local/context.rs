//! A source of metrics over agents inside this process.
//!
//! Names, descriptors, instance domains, texts and labels of all agents form
//! one name space; a fetch asks each agent for its metrics in the order of the
//! request and writes the answers into one encoded result.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::agent::{Agent, Metric, Values};
use super::labels::HostLabels;
use super::linux::LinuxAgent;
use crate::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelMap, LabelSet, MetricDesc, PmStatus, Pmid,
    TextKind, TextSubject, Timestamp, json_string,
};
use crate::result::{ResultBatch, ResultWriter};
use crate::source::{
    Child, FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};

/// Metrics of agents in this process, as a source for the engine; what
/// `PM_CONTEXT_LOCAL` is to `pmNewContext(3)`.
pub struct LocalContext {
    agents: Vec<Attached>,
    names: BTreeMap<Box<str>, Pmid>,
    metrics: HashMap<Pmid, Known>,
    domains: HashMap<InDom, usize>,
    /// Agents by the numbers of their metrics' domains.
    numbers: HashMap<u32, usize>,
    host: HostLabels,
    warnings: Vec<String>,
    prepared: Prepared,
}

struct Attached {
    agent: Box<dyn Agent>,
    /// The fetch it was told to begin last.
    begun: u64,
}

#[derive(Clone)]
struct Known {
    agent: usize,
    metric: Arc<Metric>,
}

/// The list that was fetched last, resolved.
#[derive(Default)]
struct Prepared {
    list: Option<u64>,
    fetches: u64,
    slots: Vec<Result<(usize, MetricDesc), PmStatus>>,
    domains: Vec<Result<usize, PmStatus>>,
}

impl LocalContext {
    /// The metrics of this Linux host.
    pub fn new() -> LocalContext {
        let mut context = LocalContext::empty();
        // One agent cannot be in conflict with another; that its own table
        // holds no name or identifier twice is tested.
        let attached = context.attach(Box::new(LinuxAgent::new()));
        debug_assert!(attached.is_ok());
        context
    }

    /// The metrics of the agents given.
    ///
    /// # Errors
    /// [`SourceError::Specification`] when a name or identifier occurs twice,
    /// or when a name is a prefix of another.
    pub fn with_agents(agents: Vec<Box<dyn Agent>>) -> Result<LocalContext, SourceError> {
        let mut context = LocalContext::empty();
        for agent in agents {
            context.attach(agent)?;
        }
        Ok(context)
    }

    fn empty() -> LocalContext {
        LocalContext {
            agents: Vec::new(),
            names: BTreeMap::new(),
            metrics: HashMap::new(),
            domains: HashMap::new(),
            numbers: HashMap::new(),
            host: HostLabels::usual(),
            warnings: Vec::new(),
            prepared: Prepared::default(),
        }
    }

    fn attach(&mut self, agent: Box<dyn Agent>) -> Result<(), SourceError> {
        let position = self.agents.len();
        let target = agent.name().to_owned();
        let refuse =
            |message: String| SourceError::Specification { target: target.clone(), message };
        for metric in agent.metrics() {
            let (name, pmid) = (metric.name.clone(), metric.desc.pmid);
            let well_formed = name.split('.').all(|component| !component.is_empty());
            if !well_formed {
                return Err(refuse(format!("\"{name}\" is not a name of a metric")));
            }
            let ancestor = name.match_indices('.').map(|(end, _)| &name[..end]);
            if self.names.contains_key(&*name)
                || self.is_non_leaf(&name)
                || ancestor.into_iter().any(|prefix| self.names.contains_key(prefix))
            {
                return Err(refuse(format!("the name {name} is in use")));
            }
            if let Some(indom) = metric.desc.indom
                && *self.domains.entry(indom).or_insert(position) != position
            {
                return Err(refuse(format!("the instance domain {indom} of {name} is in use")));
            }
            let known = Known { agent: position, metric: Arc::new(metric) };
            if let Some(other) = self.metrics.insert(pmid, known) {
                let other = &other.metric.name;
                return Err(refuse(format!("{name} has the identifier {pmid} of {other}")));
            }
            self.names.insert(name.into(), pmid);
            self.numbers.entry(pmid.domain()).or_insert(position);
        }
        self.agents.push(Attached { agent, begun: 0 });
        Ok(())
    }

    /// Names below `prefix`, which itself is not among them.
    fn below<'a>(&'a self, prefix: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let start = format!("{prefix}.");
        self.names
            .range::<str, _>((Bound::Included(start.as_str()), Bound::Unbounded))
            .map(|(name, _)| &**name)
            .take_while(move |name| name.starts_with(&start))
    }

    fn is_non_leaf(&self, name: &str) -> bool {
        self.below(name).next().is_some()
    }

    /// What is wrong with files of labels (`labels.conf(5)`) that were left
    /// out when the labels of the context were asked for last.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Why a metric or domain that no agent has is unknown.
    fn unknown(&self, domain: u32, within_agent: PmStatus) -> PmStatus {
        if self.numbers.contains_key(&domain) { within_agent } else { PmStatus::NOAGENT }
    }

    fn known(&self, pmid: Pmid) -> Result<&Known, PmStatus> {
        self.metrics.get(&pmid).ok_or_else(|| self.unknown(pmid.domain(), PmStatus::PMID))
    }

    fn agent_of_domain(&self, indom: InDom) -> Result<usize, PmStatus> {
        let agent = self.domains.get(&indom).copied();
        agent.ok_or_else(|| self.unknown(indom.domain(), PmStatus::INDOM))
    }

    /// The agent that has the labels of a level.
    fn agent_of_level(&self, level: LabelLevel) -> Result<usize, PmStatus> {
        let (agent, number) = match level {
            LabelLevel::Context => return Err(PmStatus::NOLABELS),
            LabelLevel::Domain(number) => (None, number),
            LabelLevel::InDom(indom) | LabelLevel::Instances(indom) => {
                (self.domains.get(&indom).copied(), indom.domain())
            }
            LabelLevel::Cluster(pmid) | LabelLevel::Item(pmid) => {
                (self.metrics.get(&pmid).map(|known| known.agent), pmid.domain())
            }
        };
        agent.or_else(|| self.numbers.get(&number).copied()).ok_or(PmStatus::NOAGENT)
    }

    fn labels_of_agent(&mut self, level: LabelLevel) -> Result<Vec<LabelSet>, PmStatus> {
        let agent = self.agent_of_level(level)?;
        let agent = &mut *self.agents[agent].agent;
        if matches!(level, LabelLevel::Instances(_)) {
            agent.begin_fetch();
        }
        let mut sets = agent.labels(level);
        if matches!(level, LabelLevel::Domain(_)) {
            let name = (json_string(agent.name()).into(), LabelFlags(level.bit()));
            sets.insert(0, LabelSet::from_map(-1, &LabelMap::from([("agent".into(), name)])));
            sets = vec![LabelSet::merged(&sets)];
        }
        Ok(sets)
    }

    /// Resolves a list, unless it is the one that was resolved last.
    fn prepare(&mut self, list: &FetchList) {
        if self.prepared.list == Some(list.id()) {
            return;
        }
        let slot = |pmid: &Pmid| self.known(*pmid).map(|known| (known.agent, known.metric.desc));
        let slots = list.pmids().iter().map(slot).collect();
        let domains = list.domains().iter().map(|indom| self.agent_of_domain(*indom)).collect();
        self.prepared.slots = slots;
        self.prepared.domains = domains;
        self.prepared.list = Some(list.id());
    }
}

impl Default for LocalContext {
    fn default() -> LocalContext {
        LocalContext::new()
    }
}

impl Attached {
    /// The agent, told that this fetch has begun.
    fn during(&mut self, fetch: u64) -> &mut dyn Agent {
        if self.begun != fetch {
            self.begun = fetch;
            self.agent.begin_fetch();
        }
        &mut *self.agent
    }
}

fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let sec = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
    Timestamp::new(sec, i64::from(since_epoch.subsec_nanos()))
}

impl MetadataSource for LocalContext {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        let lookup = |name: &&str| match self.names.get(*name) {
            Some(pmid) => Ok(*pmid),
            None if self.is_non_leaf(name) => Err(PmStatus::NONLEAF),
            None => Err(PmStatus::NAME),
        };
        Ok(names.iter().map(lookup).collect())
    }

    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        Ok(pmids.iter().map(|pmid| self.known(*pmid).map(|known| known.metric.desc)).collect())
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        let agent = match self.agent_of_domain(indom) {
            Ok(agent) => &mut *self.agents[agent].agent,
            Err(status) => return Ok(Err(status)),
        };
        if freshness == Freshness::Current {
            agent.begin_fetch();
        }
        Ok(agent.instance_domain(indom))
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        if prefix.is_empty() {
            return Ok(self.names.keys().map(|name| name.to_string()).collect());
        }
        let leaf = self.names.contains_key(prefix).then_some(prefix);
        let names: Vec<String> =
            leaf.into_iter().chain(self.below(prefix)).map(str::to_owned).collect();
        if names.is_empty() {
            return Err(SourceError::Status { target: self.name(), status: PmStatus::NAME });
        }
        Ok(names)
    }

    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        if node.is_empty() {
            return Ok(Ok(Child::below(node, self.names.keys().map(|name| &**name))));
        }
        let children = Child::below(node, self.below(node));
        let known = !children.is_empty() || self.names.contains_key(node);
        Ok(if known { Ok(children) } else { Err(PmStatus::NAME) })
    }

    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        Ok(self.known(pmid).map(|known| vec![Box::from(&*known.metric.name)]))
    }

    /// Agents have one line about each metric, which is the help as well.
    fn text(
        &mut self,
        of: TextSubject,
        _: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        let (text, domain) = match of {
            TextSubject::Metric(pmid) => {
                let known = self.metrics.get(&pmid);
                (known.map(|known| Box::from(&*known.metric.help)), pmid.domain())
            }
            TextSubject::Domain(indom) => {
                let agent = self.domains.get(&indom).map(|agent| &self.agents[*agent].agent);
                let help = agent.and_then(|agent| agent.domain_help(indom));
                (help.map(|help| Box::from(&*help)), indom.domain())
            }
        };
        Ok(text.ok_or_else(|| self.unknown(domain, PmStatus::TEXT)))
    }

    /// The context has the labels that a pmcd on this host would give to this
    /// process.
    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        if level == LabelLevel::Context {
            let (set, warnings) = self.host.read();
            self.warnings = warnings;
            return Ok(Ok(vec![set]));
        }
        Ok(self.labels_of_agent(level))
    }

    fn name(&self) -> String {
        "this process".to_owned()
    }

    fn metadata_epoch(&self) -> u64 {
        // An agent's metrics do not change while it is in use.
        0
    }
}

impl FetchSource for LocalContext {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.prepare(list);
        self.prepared.fetches += 1;
        let fetch = self.prepared.fetches;
        batch.clear();
        let mut writer = ResultWriter::new(batch.add_part(), now());
        for (pmid, slot) in list.pmids().iter().zip(&self.prepared.slots) {
            match slot {
                Ok((agent, desc)) => {
                    let agent = self.agents[*agent].during(fetch);
                    let mut values = Values::new(&mut writer, *desc);
                    let outcome = agent.fetch(*pmid, &mut values);
                    values.finish(outcome);
                }
                Err(status) => writer.status(*pmid, *status),
            }
        }
        writer.finish();
        for (indom, agent) in list.domains().iter().zip(&self.prepared.domains) {
            let domain = match agent {
                Ok(agent) => self.agents[*agent].during(fetch).instance_domain(*indom),
                Err(status) => Err(*status),
            };
            batch.domains.push(domain);
        }
        Ok(FetchEvents::default())
    }
}
