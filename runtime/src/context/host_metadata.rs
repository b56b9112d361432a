//! What a pmcd knows about its metrics: names, descriptors, instances, texts, labels.
//!
//! The questions of [`MetadataSource`](crate::source::MetadataSource) to an
//! [`AsyncHostContext`]: batched, split to what pmcd accepts, pipelined, and
//! answered from the cache where it knows. Connections and values are the
//! matter of `async_host`.

use std::sync::Arc;

use super::async_host::AsyncHostContext;
use super::metadata_cache::external_name;
use super::spec::{HostSpec, Target};
use crate::model::{
    InDom, InstId, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, StateChange,
    TextKind, TextSubject, Value, ValueType,
};
use crate::pdu::{Features, MAX_REQUEST_BYTES, PmnsName, PmnsNames, TextRequest};
use crate::proto::{Reply, Request};
use crate::result::{FetchResult, MetricValues, ResultBatch};
use crate::source::{Answers, Child, FetchList, Freshness, SourceError};
use crate::transport::Transport;

/// Descriptors asked for in one request. For agents that are processes pmcd
/// asks for each by itself and serves no one else meanwhile.
const DESCS_PER_REQUEST: usize = 200;

/// Positions of `names`, grouped so that each group fits into one request.
fn name_groups(names: &[&str], positions: &[usize]) -> Vec<std::ops::Range<usize>> {
    let mut groups = Vec::new();
    let (mut start, mut bytes) = (0, PmnsNames::FIXED_BYTES);
    for (at, position) in positions.iter().enumerate() {
        let size = PmnsNames::name_bytes(names[*position]);
        if bytes + size > MAX_REQUEST_BYTES {
            groups.push(start..at);
            (start, bytes) = (at, PmnsNames::FIXED_BYTES);
        }
        bytes += size;
    }
    if start < positions.len() {
        groups.push(start..positions.len());
    }
    groups
}

/// True for a name that can be asked for at all.
fn can_be_asked(name: &str) -> bool {
    let bytes = PmnsNames::FIXED_BYTES + PmnsNames::name_bytes(name);
    !name.is_empty() && !name.contains('\0') && bytes <= MAX_REQUEST_BYTES
}

impl<T: Transport> AsyncHostContext<T> {
    /// Identifier of each name, in order (pmLookupName(3)). Names of non-leaf
    /// nodes give `PM_ERR_NONLEAF`, unknown ones `PM_ERR_NAME`.
    ///
    /// # Errors
    /// The source failed; so with all questions here.
    pub async fn lookup_names(
        &mut self,
        names: &[&str],
    ) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        self.ensure_link().await?;
        let mut found: Vec<Result<Pmid, PmStatus>> =
            names.iter().map(|name| self.cache.pmid(name).ok_or(PmStatus::NAME)).collect();
        let asked: Vec<usize> = (0..names.len())
            .filter(|position| found[*position].is_err() && can_be_asked(names[*position]))
            .collect();
        let groups = name_groups(names, &asked);
        let texts: Vec<&str> = asked.iter().map(|position| names[*position]).collect();
        let requests = groups.iter().map(|group| Request::LookupNames(&texts[group.clone()]));
        let mut unexplained = Vec::new();
        self.exchange(requests, |cache, position, reply| {
            let group = &asked[groups[position].clone()];
            match reply {
                Ok(Reply::Ids(pmids)) => {
                    for (position, pmid) in group.iter().zip(pmids) {
                        if pmid == Pmid::NULL {
                            unexplained.push(*position);
                            continue;
                        }
                        cache.learn_name(names[*position], pmid);
                        found[*position] = Ok(pmid);
                    }
                }
                Ok(_) => {}
                Err(status) => group.iter().for_each(|position| found[*position] = Err(status)),
            }
        })
        .await?;
        // Only a request for a single name is answered by the reason.
        let requests =
            unexplained.iter().map(|at| Request::LookupNames(std::slice::from_ref(&names[*at])));
        self.exchange(requests, |cache, position, reply| {
            let position = unexplained[position];
            found[position] = match reply {
                Ok(Reply::Ids(pmids)) => match pmids.first() {
                    Some(pmid) if *pmid != Pmid::NULL => {
                        cache.learn_name(names[position], *pmid);
                        Ok(*pmid)
                    }
                    _ => Err(PmStatus::NAME),
                },
                Ok(_) => Err(PmStatus::NAME),
                Err(status) => Err(status),
            };
        })
        .await?;
        Ok(found)
    }

    /// Descriptor of each metric, in order (pmLookupDescs(3)).
    pub async fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        self.ensure_link().await?;
        let mut found: Vec<Result<MetricDesc, PmStatus>> =
            pmids.iter().map(|pmid| self.cache.desc(*pmid).ok_or(PmStatus::PMID)).collect();
        let mut asked: Vec<usize> = (0..pmids.len()).filter(|at| found[*at].is_err()).collect();
        if self.has(Features::DESCS) {
            let wanted: Vec<Pmid> = asked.iter().map(|position| pmids[*position]).collect();
            let requests = wanted.chunks(DESCS_PER_REQUEST).map(Request::LookupDescs);
            let mut unexplained = Vec::new();
            self.exchange(requests, |cache, position, reply| {
                let start = position * DESCS_PER_REQUEST;
                let group = &asked[start..asked.len().min(start + DESCS_PER_REQUEST)];
                match reply {
                    Ok(Reply::Descs(descs)) => {
                        for (position, desc) in group.iter().zip(descs) {
                            let Some(desc) = desc else {
                                unexplained.push(*position);
                                continue;
                            };
                            cache.learn_desc(desc);
                            found[*position] = Ok(desc);
                        }
                    }
                    Ok(_) => {}
                    Err(status) => group.iter().for_each(|at| found[*at] = Err(status)),
                }
            })
            .await?;
            // Only a request for a single descriptor is answered by the reason.
            asked = unexplained;
        }
        let requests = asked.iter().map(|position| Request::LookupDesc(pmids[*position]));
        self.exchange(requests, |cache, position, reply| {
            found[asked[position]] = match reply {
                Ok(Reply::Desc(desc)) => {
                    cache.learn_desc(desc);
                    Ok(desc)
                }
                Ok(_) => Err(PmStatus::PMID),
                Err(status) => Err(status),
            };
        })
        .await?;
        Ok(found)
    }

    /// The instances of a domain (pmGetInDom(3)); the same `Arc` while nothing
    /// changed.
    pub async fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        if let Some(domain) = self.known_domains(&[indom], freshness).next() {
            return Ok(Ok(domain));
        }
        let mut found = self.instance_domain_of_each(&[indom], freshness).await?;
        Ok(found.pop().unwrap_or(Err(PmStatus::INDOM)))
    }

    /// The first few of these domains, as far as nothing needs to be asked:
    /// filters want to know them with every fetch.
    pub(super) fn known_domains(
        &self,
        indoms: &[InDom],
        freshness: Freshness,
    ) -> impl Iterator<Item = Arc<InstanceDomain>> {
        let will_do = freshness == Freshness::Cached && self.is_connected();
        let indoms = indoms.iter().filter(move |_| will_do);
        indoms.map_while(|indom| self.cache.domain(*indom))
    }

    /// [`AsyncHostContext::instance_domain`] of each, in order.
    pub async fn instance_domain_of_each(
        &mut self,
        indoms: &[InDom],
        freshness: Freshness,
    ) -> Answers<Arc<InstanceDomain>> {
        self.ensure_link().await?;
        let known = |indom: &InDom| match freshness {
            Freshness::Cached => self.cache.domain(*indom).ok_or(PmStatus::INDOM),
            Freshness::Current => Err(PmStatus::INDOM),
        };
        let mut found: Vec<_> = indoms.iter().map(known).collect();
        let asked: Vec<usize> = (0..indoms.len()).filter(|at| found[*at].is_err()).collect();
        let requests = asked.iter().map(|position| Request::InstanceDomain(indoms[*position]));
        self.exchange(requests, |cache, position, reply| {
            found[asked[position]] = match reply {
                Ok(Reply::Instances(instances)) => Ok(cache.learn_domain(&instances)),
                Ok(_) => Err(PmStatus::INDOM),
                Err(status) => Err(status),
            };
        })
        .await?;
        Ok(found)
    }

    /// Identifier of the instance that the agent finds for a name
    /// (pmLookupInDom(3)); many agents take the part before the first blank.
    /// Without a match, and for the empty name, `PM_ERR_INST`.
    pub async fn lookup_instance(
        &mut self,
        indom: InDom,
        name: &str,
    ) -> Result<Result<InstId, PmStatus>, SourceError> {
        if !can_be_asked(name) {
            return Ok(Err(PmStatus::INST));
        }
        let mut found = Err(PmStatus::INST);
        self.exchange([Request::LookupInstance(indom, name)], |_, _, reply| match reply {
            Ok(Reply::Instance(instance)) => found = Ok(instance),
            Ok(_) => {}
            Err(status) => found = Err(status),
        })
        .await?;
        Ok(found)
    }

    /// Name of an instance as the agent knows it (pmNameInDom(3)); of an
    /// unknown one, `PM_ERR_INST`.
    pub async fn instance_name(
        &mut self,
        indom: InDom,
        instance: InstId,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        // This one stands for all instances.
        if instance == -1 {
            return Ok(Err(PmStatus::INST));
        }
        let mut found = Err(PmStatus::INST);
        self.exchange([Request::InstanceName(indom, instance)], |_, _, reply| match reply {
            Ok(Reply::InstanceName(name)) => found = Ok(external_name(name).into()),
            Ok(_) => {}
            Err(status) => found = Err(status),
        })
        .await?;
        Ok(found)
    }

    /// Name of the host that the metrics are of (pmGetContextHostName(3)): as
    /// its pmcd says, else as the specification does.
    pub async fn host_name(&mut self) -> Result<String, SourceError> {
        if let Some(name) = &self.cache.host_name {
            return Ok(name.clone());
        }
        let [said] = self.texts_of(["pmcd.hostname"]).await?;
        let name = said.unwrap_or_else(|| host_named_by(&self.spec));
        self.cache.host_name = Some(name.clone());
        Ok(name)
    }

    /// Time zone of the host that the metrics are of, in the form of the `TZ`
    /// environment variable (pmNewContextZone(3)); `None` where its pmcd does
    /// not tell.
    pub async fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        let [zone, abbreviated] = self.texts_of(["pmcd.zoneinfo", "pmcd.timezone"]).await?;
        Ok(zone.or(abbreviated))
    }

    /// Values of singular metrics whose values are texts; `None` for one that
    /// has none, or an empty one.
    async fn texts_of<const N: usize>(
        &mut self,
        names: [&str; N],
    ) -> Result<[Option<String>; N], SourceError> {
        let found = self.lookup_names(&names).await?;
        let known = found.iter().filter_map(|pmid| pmid.ok()).collect();
        let mut batch = ResultBatch::default();
        self.fetch_and_keep_events(&FetchList::new(known, Vec::new()), &mut batch).await?;
        let result = FetchResult::of_batch(&batch, StateChange::default());
        let text = |set: &MetricValues| match set.decode(ValueType::String).ok()?.pop()?.1 {
            Value::Text(text) if !text.is_empty() => Some(text.into()),
            _ => None,
        };
        let mut texts = result.sets.iter().map(text);
        let mut found = found.iter();
        Ok([(); N].map(|()| found.next()?.ok().and_then(|_| texts.next()?)))
    }

    /// Names of all metrics at or below `prefix` (pmTraversePMNS(3)). Without
    /// such a node [`SourceError::Status`] with `PM_ERR_NAME`.
    pub async fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        if !prefix.is_empty() && !can_be_asked(prefix) {
            return Err(self.status_error(PmStatus::NAME));
        }
        let mut found = Err(PmStatus::NAME);
        self.exchange([Request::Traverse(prefix)], |_, _, reply| match reply {
            Ok(Reply::Names(names)) => {
                let names = names.iter().filter_map(|name| std::str::from_utf8(name.name).ok());
                let below = names.filter(|name| is_metric_name_below(name, prefix));
                found = Ok(below.map(str::to_owned).collect());
            }
            Ok(_) => {}
            Err(status) => found = Err(status),
        })
        .await?;
        found.map_err(|status| self.status_error(status))
    }

    /// What is directly below a node of the name space
    /// (pmGetChildrenStatus(3)).
    pub async fn children(
        &mut self,
        node: &str,
    ) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        if !node.is_empty() && !can_be_asked(node) {
            return Ok(Err(PmStatus::NAME));
        }
        let mut found = Err(PmStatus::NAME);
        self.exchange([Request::Children(node)], |_, _, reply| match reply {
            Ok(Reply::Names(names)) => found = Ok(names.iter().filter_map(child).collect()),
            Ok(_) => {}
            Err(status) => found = Err(status),
        })
        .await?;
        Ok(found)
    }

    /// All full names of a metric (pmNameAll(3)).
    pub async fn names_of(
        &mut self,
        pmid: Pmid,
    ) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        Ok(self.names_of_each(&[pmid]).await?.pop().unwrap_or(Err(PmStatus::PMID)))
    }

    /// [`AsyncHostContext::names_of`] each metric, in order.
    pub async fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        self.ensure_link().await?;
        let mut found: Vec<_> =
            pmids.iter().map(|pmid| self.cache.names(*pmid).ok_or(PmStatus::PMID)).collect();
        let asked: Vec<usize> = (0..pmids.len()).filter(|at| found[*at].is_err()).collect();
        let requests = asked.iter().map(|position| Request::NamesOf(pmids[*position]));
        self.exchange(requests, |cache, position, reply| {
            let position = asked[position];
            found[position] = match reply {
                Ok(Reply::Names(names)) => {
                    let names = names.iter().filter_map(|name| std::str::from_utf8(name.name).ok());
                    let names = names.filter(|name| is_metric_name_below(name, ""));
                    let names: Vec<Box<str>> = names.map(Box::from).collect();
                    if names.is_empty() {
                        Err(PmStatus::PMID)
                    } else {
                        cache.learn_names(pmids[position], &names);
                        Ok(names)
                    }
                }
                Ok(_) => Err(PmStatus::PMID),
                Err(status) => Err(status),
            };
        })
        .await?;
        Ok(found)
    }

    /// Help text (pmLookupText(3), pmLookupInDomText(3)).
    pub async fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        Ok(self.text_of_each(&[of], kind).await?.pop().unwrap_or(Err(PmStatus::TEXT)))
    }

    /// The [`AsyncHostContext::text`] of each subject, in order.
    pub async fn text_of_each(
        &mut self,
        subjects: &[TextSubject],
        kind: TextKind,
    ) -> Answers<Box<str>> {
        let mut found: Vec<Result<Box<str>, _>> = vec![Err(PmStatus::TEXT); subjects.len()];
        let mut asked: Vec<usize> = (0..subjects.len()).collect();
        let kinds: &[TextKind] = match kind {
            TextKind::OneLine => &[TextKind::OneLine],
            // Agents with but one line to say answer with an empty text.
            TextKind::Help => &[TextKind::Help, TextKind::OneLine],
        };
        for kind in kinds {
            let requests = asked.iter().map(|position| {
                Request::HelpText(TextRequest { subject: subjects[*position], kind: *kind })
            });
            self.exchange(requests, |_, position, reply| {
                found[asked[position]] = match reply {
                    Ok(Reply::Text(bytes)) => {
                        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                        Ok(String::from_utf8_lossy(text).into())
                    }
                    Ok(_) => Err(PmStatus::TEXT),
                    Err(status) => Err(status),
                };
            })
            .await?;
            asked.retain(|position| matches!(&found[*position], Ok(text) if text.is_empty()));
        }
        Ok(found)
    }

    /// Labels as one level gives them (pmGetContextLabels(3) and its kin).
    pub async fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        Ok(self.labels_of_each(&[level]).await?.pop().unwrap_or(Err(PmStatus::NOLABELS)))
    }

    /// The [`AsyncHostContext::labels`] of each level, in order.
    pub async fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        self.ensure_link().await?;
        if !self.has(Features::LABELS) {
            return Ok(vec![Err(PmStatus::NOLABELS); levels.len()]);
        }
        let levels: Vec<LabelLevel> = levels.iter().map(|level| level.of_cluster()).collect();
        let mut found: Vec<_> = levels
            .iter()
            .map(|level| self.cache.labels(*level).ok_or(PmStatus::NOLABELS))
            .collect();
        let asked: Vec<usize> = (0..levels.len()).filter(|at| found[*at].is_err()).collect();
        let requests = asked.iter().map(|position| Request::Labels(levels[*position]));
        self.exchange(requests, |cache, position, reply| {
            let position = asked[position];
            found[position] = match reply {
                Ok(Reply::Labels(sets)) => {
                    cache.learn_labels(levels[position], &sets);
                    Ok(sets)
                }
                Ok(_) => Err(PmStatus::NOLABELS),
                Err(status) => Err(status),
            };
        })
        .await?;
        Ok(found)
    }
}

/// The host that a specification names: this one, unless it is another.
fn host_named_by(spec: &HostSpec) -> String {
    match &spec.target {
        Target::Host(host) if host.name != "localhost" => host.name.clone(),
        _ => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    }
}

/// True for a well-formed metric name at or below a node: a peer's word alone
/// must not bring other names into programs and terminals.
fn is_metric_name_below(name: &str, node: &str) -> bool {
    let below = node.is_empty()
        || name.strip_prefix(node).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    below && name.split('.').all(|part| !part.is_empty()) && !name.contains(char::is_control)
}

/// A child as pmcd delivers it, if its name is a well-formed component.
fn child(name: PmnsName<'_>) -> Option<Child> {
    let component = std::str::from_utf8(name.name).ok()?;
    let well_formed =
        !component.is_empty() && !component.contains(|c: char| c == '.' || c.is_control());
    well_formed.then(|| Child { name: component.into(), is_leaf: name.status == Some(0) })
}
