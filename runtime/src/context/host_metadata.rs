//! What a pmcd knows about its metrics: names, descriptors, instances, texts, labels.
//!
//! The questions of [`MetadataSource`] to a [`HostContext`]: batched, split to
//! what pmcd accepts, pipelined, and answered from the cache where it knows.
//! Connections and values are the matter of `host`.

use std::sync::Arc;

use super::host::HostContext;
use crate::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind, TextSubject,
};
use crate::pdu::{Features, MAX_REQUEST_BYTES, PmnsName, PmnsNames, TextRequest};
use crate::proto::{Reply, Request};
use crate::source::{Answers, Child, Freshness, MetadataSource, SourceError};

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

impl MetadataSource for HostContext {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        self.ensure_link()?;
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
        })?;
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
        })?;
        Ok(found)
    }

    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        self.ensure_link()?;
        let mut found: Vec<Result<MetricDesc, PmStatus>> =
            pmids.iter().map(|pmid| self.cache.desc(*pmid).ok_or(PmStatus::PMID)).collect();
        let mut asked: Vec<usize> = (0..pmids.len()).filter(|at| found[*at].is_err()).collect();
        let batched =
            self.link.as_ref().is_some_and(|link| link.connection.features().has(Features::DESCS));
        if batched {
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
            })?;
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
        })?;
        Ok(found)
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.ensure_link()?;
        if freshness == Freshness::Cached
            && let Some(domain) = self.cache.domain(indom)
        {
            return Ok(Ok(domain));
        }
        let mut found = Err(PmStatus::INDOM);
        self.exchange([Request::InstanceDomain(indom)], |cache, _, reply| match reply {
            Ok(Reply::Instances(instances)) => found = Ok(cache.learn_domain(&instances)),
            Ok(_) => {}
            Err(status) => found = Err(status),
        })?;
        Ok(found)
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        let refused = |target: String, status| Err(SourceError::Status { target, status });
        if !prefix.is_empty() && !can_be_asked(prefix) {
            return refused(self.spec.to_string(), PmStatus::NAME);
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
        })?;
        found.or_else(|status| refused(self.spec.to_string(), status))
    }

    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        if !node.is_empty() && !can_be_asked(node) {
            return Ok(Err(PmStatus::NAME));
        }
        let mut found = Err(PmStatus::NAME);
        self.exchange([Request::Children(node)], |_, _, reply| match reply {
            Ok(Reply::Names(names)) => found = Ok(names.iter().filter_map(child).collect()),
            Ok(_) => {}
            Err(status) => found = Err(status),
        })?;
        Ok(found)
    }

    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        self.names_of_each(&[pmid]).map(|mut found| found.pop().unwrap_or(Err(PmStatus::PMID)))
    }

    fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        self.ensure_link()?;
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
        })?;
        Ok(found)
    }

    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        self.text_of_each(&[of], kind).map(|mut found| found.pop().unwrap_or(Err(PmStatus::TEXT)))
    }

    fn text_of_each(&mut self, subjects: &[TextSubject], kind: TextKind) -> Answers<Box<str>> {
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
            })?;
            asked.retain(|position| matches!(&found[*position], Ok(text) if text.is_empty()));
        }
        Ok(found)
    }

    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        self.labels_of_each(&[level])
            .map(|mut found| found.pop().unwrap_or(Err(PmStatus::NOLABELS)))
    }

    fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        self.ensure_link()?;
        let known =
            self.link.as_ref().is_some_and(|link| link.connection.features().has(Features::LABELS));
        if !known {
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
        })?;
        Ok(found)
    }

    fn name(&self) -> String {
        self.spec.to_string()
    }

    fn metadata_epoch(&self) -> u64 {
        self.epoch
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
