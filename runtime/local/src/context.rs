//! A source of metrics over agents inside this process.
//!
//! Names, descriptors, instance domains, texts and labels of all agents form
//! one name space. A fetch asks each agent for its metrics in the order of the
//! request and writes the answers into one result.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use pmderive_core::memory::MemoryMetadata;
use pmderive_core::model::{
    InDom, InstId, InstanceDomain, InstanceProfile, LabelFlags, LabelLevel, LabelMap, LabelSet,
    MetricDesc, PmStatus, Pmid, TextSubject, Timestamp, json_string,
};
use pmderive_core::result::{MetricValues, ResultBatch, ResultWriter};
use pmderive_core::source::{
    Answer, Child, Fact, FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, OneAnswer,
    Question, SourceError, by_simpler_questions,
};
use pmderive_system::time::TimeZone;

use super::agent::{Agent, Metric, Values};
use super::labels::HostLabels;
use super::linux::LinuxAgent;
use super::process::ProcessAgent;

/// Metrics of agents in this process, as a source for the engine. It
/// corresponds to `PM_CONTEXT_LOCAL` of `pmNewContext(3)`.
///
/// ```
/// use pmderive_core::source::MetadataSource;
/// use pmderive_local::LocalContext;
///
/// let mut machine = LocalContext::new();
/// let pmid = machine.lookup_names(&["hinv.ncpu"])?.remove(0)?;
/// assert!(machine.traverse("hinv")?.iter().any(|name| name == "hinv.ncpu"));
/// # let _ = pmid;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LocalContext {
    agents: Vec<AttachedAgent>,
    /// The names of the metrics, and nothing else.
    names: MemoryMetadata,
    metrics: HashMap<Pmid, ServedMetric>,
    domains: HashMap<InDom, usize>,
    /// Agents by the domain numbers of their metrics.
    agent_numbers: HashMap<u32, usize>,
    host: HostLabels,
    profile: InstanceProfile,
    warnings: Vec<String>,
    prepared: ResolvedList,
}

impl fmt::Debug for LocalContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalContext")
            .field("agents", &self.agents.len())
            .field("metrics", &self.metrics.len())
            .finish_non_exhaustive()
    }
}

struct AttachedAgent {
    agent: Box<dyn Agent>,
    /// Number of the last fetch that the agent began.
    begun: u64,
}

#[derive(Clone)]
struct ServedMetric {
    agent: usize,
    metric: Arc<Metric>,
}

/// The fetch list of the last fetch, resolved to agents.
#[derive(Default)]
struct ResolvedList {
    list: Option<u64>,
    fetches: u64,
    slots: Vec<Result<(usize, MetricDesc), PmStatus>>,
    domains: Vec<Result<usize, PmStatus>>,
}

impl LocalContext {
    /// The metrics of this Linux host and of its processes.
    pub fn new() -> LocalContext {
        let mut context = LocalContext::empty();
        // These two agents share no name and no identifier; a test checks their
        // tables.
        let agents: [Box<dyn Agent>; 2] =
            [Box::new(LinuxAgent::new()), Box::new(ProcessAgent::new())];
        for agent in agents {
            let attached = context.attach(agent);
            debug_assert!(attached.is_ok());
        }
        context
    }

    /// The metrics of the given agents.
    ///
    /// # Errors
    /// [`SourceError::Specification`] if a name or identifier occurs twice, if one name is a
    /// prefix of another or badly formed, or if two agents have the same instance domain.
    pub fn with_agents(agents: Vec<Box<dyn Agent>>) -> Result<LocalContext, SourceError> {
        let mut context = LocalContext::empty();
        for agent in agents {
            context.attach(agent)?;
        }
        Ok(context)
    }

    /// Another context of the same agents, with the profile of this one
    /// (`pmDupContext(3)`).
    ///
    /// # Errors
    /// [`SourceError::Specification`] for an agent that cannot be duplicated.
    pub fn duplicate(&self) -> Result<LocalContext, SourceError> {
        let twin = |attached: &AttachedAgent| {
            let agent = attached.agent.duplicate();
            agent.ok_or_else(|| SourceError::Specification {
                target: attached.agent.name().to_owned(),
                message: "this agent cannot be duplicated for another context".to_owned(),
            })
        };
        let agents = self.agents.iter().map(twin).collect::<Result<_, _>>()?;
        let mut context = LocalContext::with_agents(agents)?;
        context.profile.clone_from(&self.profile);
        Ok(context)
    }

    fn empty() -> LocalContext {
        LocalContext {
            agents: Vec::new(),
            names: MemoryMetadata::default(),
            metrics: HashMap::new(),
            domains: HashMap::new(),
            agent_numbers: HashMap::new(),
            host: HostLabels::usual(),
            profile: InstanceProfile::default(),
            warnings: Vec::new(),
            prepared: ResolvedList::default(),
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
                return Err(refuse(format!("\"{name}\" is not a valid metric name")));
            }
            let ancestor = name.match_indices('.').map(|(end, _)| &name[..end]);
            if self.names.pmid_of(&name) != Err(PmStatus::NAME)
                || ancestor.into_iter().any(|prefix| self.names.pmid_of(prefix).is_ok())
            {
                return Err(refuse(format!("the name {name} is in use")));
            }
            if let Some(indom) = metric.desc.indom
                && *self.domains.entry(indom).or_insert(position) != position
            {
                return Err(refuse(format!("the instance domain {indom} of {name} is in use")));
            }
            let known = ServedMetric { agent: position, metric: Arc::new(metric) };
            if let Some(other) = self.metrics.insert(pmid, known) {
                let other = &other.metric.name;
                return Err(refuse(format!("{name} has the identifier {pmid} of {other}")));
            }
            self.names.add_name(name, pmid);
            self.agent_numbers.entry(pmid.domain()).or_insert(position);
        }
        self.agents.push(AttachedAgent { agent, begun: 0 });
        Ok(())
    }

    /// Problems of label files (`labels.conf(5)`) that were left out when the
    /// labels of the context were last read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The status for a metric or instance domain that no agent has. It is
    /// `within_agent` if an agent has the domain number, else `NOAGENT`.
    fn unknown(&self, domain: u32, within_agent: PmStatus) -> PmStatus {
        if self.agent_numbers.contains_key(&domain) { within_agent } else { PmStatus::NOAGENT }
    }

    fn known(&self, pmid: Pmid) -> Result<&ServedMetric, PmStatus> {
        self.metrics.get(&pmid).ok_or_else(|| self.unknown(pmid.domain(), PmStatus::PMID))
    }

    fn agent_of_domain(&self, indom: InDom) -> Result<usize, PmStatus> {
        let agent = self.domains.get(&indom).copied();
        agent.ok_or_else(|| self.unknown(indom.domain(), PmStatus::INDOM))
    }

    /// The agent that answers for the labels of a level.
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
        agent.or_else(|| self.agent_numbers.get(&number).copied()).ok_or(PmStatus::NOAGENT)
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

    /// Resolves a fetch list, unless it is the list that was resolved last.
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

impl AttachedAgent {
    /// The agent, after telling it that this fetch has begun.
    fn during(&mut self, fetch: u64) -> &mut dyn Agent {
        if self.begun != fetch {
            self.begun = fetch;
            self.agent.begin_fetch();
        }
        &mut *self.agent
    }
}

/// Answers to single questions.
impl LocalContext {
    /// No metric has the empty name, and it is not a node here.
    fn lookup(&self, name: &str) -> Result<Pmid, PmStatus> {
        if name.is_empty() { Err(PmStatus::NAME) } else { self.names.pmid_of(name) }
    }

    fn domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Arc<InstanceDomain>, PmStatus> {
        let agent = self.agent_of_domain(indom)?;
        let agent = &mut *self.agents[agent].agent;
        if freshness == Freshness::Current {
            agent.begin_fetch();
        }
        agent.instance_domain(indom)
    }

    fn instance(&mut self, indom: InDom, name: &str) -> Result<InstId, PmStatus> {
        let agent = self.agent_of_domain(indom)?;
        let agent = &mut *self.agents[agent].agent;
        agent.begin_fetch();
        agent.lookup_instance(indom, name)
    }

    fn metrics_below(&self, node: &str) -> Result<Vec<Box<str>>, PmStatus> {
        let names: Vec<Box<str>> = self.names.names_at(node).map(Box::from).collect();
        if names.is_empty() && !node.is_empty() { Err(PmStatus::NAME) } else { Ok(names) }
    }

    fn children_of(&self, node: &str) -> Result<Vec<Child>, PmStatus> {
        match self.names.pmid_of(node) {
            Ok(_) => Ok(Vec::new()),
            Err(PmStatus::NAME) if !node.is_empty() => Err(PmStatus::NAME),
            Err(_) => Ok(Child::below(node, self.names.names_at(node))),
        }
    }

    /// Agents have one line of text for each metric; it serves as the long help
    /// too.
    fn help(&self, of: TextSubject) -> Result<Box<str>, PmStatus> {
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
        text.ok_or_else(|| self.unknown(domain, PmStatus::TEXT))
    }

    /// At the level of the context, the labels that a pmcd on this host would
    /// give to this process.
    fn labels_at(&mut self, level: LabelLevel) -> Result<Vec<LabelSet>, PmStatus> {
        if level == LabelLevel::Context {
            let (set, warnings) = self.host.read();
            self.warnings = warnings;
            return Ok(vec![set]);
        }
        self.labels_of_agent(level)
    }
}

/// The host name and time zone are those of this machine and this process.
impl MetadataSource for LocalContext {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        for question in questions {
            answers.push(match *question {
                Question::Pmid(name) | Question::PmidIfAny(name) => {
                    self.lookup(name).map(Fact::Pmid)
                }
                Question::Desc(pmid) => self.known(pmid).map(|known| Fact::Desc(known.metric.desc)),
                Question::Domain(indom, freshness) => {
                    self.domain(indom, freshness).map(Fact::Domain)
                }
                Question::Instance(indom, name) => self.instance(indom, name).map(Fact::Instance),
                Question::MetricsBelow(node) => self.metrics_below(node).map(Fact::Names),
                Question::Children(node) => self.children_of(node).map(Fact::Children),
                Question::NamesOf(pmid) => {
                    self.known(pmid).map(|known| Fact::Names(vec![Box::from(&*known.metric.name)]))
                }
                Question::Text(of, _) => self.help(of).map(Fact::Text),
                Question::Labels(level) => self.labels_at(level).map(Fact::Labels),
                Question::HostName => {
                    let system = rustix::system::uname();
                    Ok(Fact::Text(system.nodename().to_string_lossy().into()))
                }
                Question::TimeZone => TimeZone::portable()
                    .map(|zone| Fact::Text(zone.into()))
                    .ok_or(question.status()),
                other => by_simpler_questions(self, other)?,
            });
        }
        Ok(())
    }

    fn name(&self) -> String {
        "this machine".to_owned()
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
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::now());
        for (pmid, slot) in list.pmids().iter().zip(&self.prepared.slots) {
            match slot {
                Ok((agent, desc)) => {
                    let agent = self.agents[*agent].during(fetch);
                    let mut values = Values::new(&mut writer, *desc, &self.profile);
                    let outcome = agent.fetch(*pmid, &mut values);
                    values.finish(outcome);
                }
                Err(status) => writer.status(*pmid, *status),
            }
        }
        for (indom, agent) in list.domains().iter().zip(&self.prepared.domains) {
            let domain = match agent {
                Ok(agent) => self.agents[*agent].during(fetch).instance_domain(*indom),
                Err(status) => Err(*status),
            };
            batch.domains.push(domain);
        }
        Ok(FetchEvents::default())
    }

    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        self.profile.clone_from(profile);
        Ok(())
    }

    /// Passes the values to the agents one after the other. The first refusal
    /// ends it; earlier values stay changed.
    fn store(&mut self, values: &[MetricValues]) -> OneAnswer<()> {
        if values.is_empty() {
            return Ok(Err(PmStatus::TOOSMALL));
        }
        let mut store = || {
            for set in values {
                let (agent, desc) =
                    self.known(set.pmid).map(|known| (known.agent, known.metric.desc))?;
                for one in set.outcome.as_ref().map_err(|status| *status)? {
                    let value = one.value.decode(desc.value_type)?;
                    self.agents[agent].agent.store(set.pmid, one.instance, &value)?;
                }
            }
            Ok(())
        };
        Ok(store())
    }
}
