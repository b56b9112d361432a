//! A local name space in front of a source.

use std::sync::Arc;

use super::tree::{LocalNameSpace, Place, is_dynamic};
use crate::context::Context;
use crate::model::{
    InDom, InstId, InstanceDomain, InstanceProfile, LabelLevel, LabelSet, MetricDesc, PmStatus,
    Pmid, TextKind, TextSubject, Timestamp,
};
use crate::result::{FetchResult, MetricValues, ResultBatch};
use crate::source::{
    Answers, Child, FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, Mode,
    SourceError,
};

/// Where names of metrics come from (`pmGetPMNSLocation(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSpaceLocation {
    /// From a file (`PMNS_LOCAL`), as for every [`WithNameSpace`], or from the
    /// agents in this process.
    Local,
    /// From pmcd (`PMNS_REMOTE`).
    Remote,
    /// From an archive (`PMNS_ARCHIVE`).
    Archive,
}

impl NameSpaceLocation {
    /// Where those of a context come from.
    pub fn of(context: &Context) -> NameSpaceLocation {
        match context {
            Context::Host(_) => NameSpaceLocation::Remote,
            Context::Archive(_) => NameSpaceLocation::Archive,
            Context::Local(_) => NameSpaceLocation::Local,
        }
    }
}

/// A source whose metrics have the names of a local name space instead of
/// their own. What an agent adds by itself (`d:*:*`) is asked from the source.
#[derive(Debug)]
pub struct WithNameSpace<S> {
    /// Without it the names are the source's own.
    names: Option<Arc<LocalNameSpace>>,
    source: S,
}

impl<S: MetadataSource> WithNameSpace<S> {
    /// Puts the names in front of the source.
    pub fn new(names: Arc<LocalNameSpace>, source: S) -> WithNameSpace<S> {
        WithNameSpace { names: Some(names), source }
    }

    /// The source with its own names, for who does not know beforehand whether
    /// there are others.
    pub fn own(source: S) -> WithNameSpace<S> {
        WithNameSpace { names: None, source }
    }

    /// True if the names are not the source's own.
    pub fn is_replaced(&self) -> bool {
        self.names.is_some()
    }

    /// The source with its own names.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// The source with its own names again (`pmUnloadNameSpace(3)`).
    pub fn into_source(self) -> S {
        self.source
    }
}

impl LocalNameSpace {
    fn is_dynamic(&self, name: &str) -> bool {
        matches!(self.find(name), Some(Place::Dynamic { .. }))
    }
}

impl<S: MetadataSource> MetadataSource for WithNameSpace<S> {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        let Some(own) = &self.names else { return self.source.lookup_names(names) };
        let is_asked = |name: &&&str| own.is_dynamic(name);
        let asked: Vec<&str> = names.iter().filter(is_asked).copied().collect();
        if asked.is_empty() {
            return Ok(names.iter().map(|name| own.lookup(name)).collect());
        }
        let mut answers = self.source.lookup_names(&asked)?.into_iter();
        let of = |name: &&str| match own.is_dynamic(name) {
            // A top that its agent knows nothing of is there all the same.
            true => answers.next().unwrap_or(Err(PmStatus::IPC)).or_else(|_| own.lookup(name)),
            false => own.lookup(name),
        };
        Ok(names.iter().map(of).collect())
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        let Some(own) = &self.names else { return self.source.traverse(prefix) };
        let failed = |status| SourceError::Status { target: prefix.to_owned(), status };
        if own.is_dynamic(prefix) {
            return self.source.traverse(prefix);
        }
        let found = own.traverse(prefix).map_err(failed)?;
        let mut names = Vec::with_capacity(found.len());
        for name in found {
            if !matches!(own.find(name), Some(Place::Dynamic { .. })) {
                names.push(name.to_owned());
                continue;
            }
            match self.source.traverse(name) {
                Ok(below) => names.extend(below),
                // The agent has nothing there now.
                Err(SourceError::Status { .. }) => names.push(name.to_owned()),
                Err(error) => return Err(error),
            }
        }
        Ok(names)
    }

    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        let Some(own) = &self.names else { return self.source.children(node) };
        if let Some(Place::Dynamic { is_top, .. }) = own.find(node) {
            let children = self.source.children(node)?;
            return Ok(if is_top { Ok(children.unwrap_or_default()) } else { children });
        }
        let children = own.children(node);
        let above = if node.is_empty() { String::new() } else { format!("{node}.") };
        Ok(children.map(|mut children| {
            for child in &mut children {
                // It has children, even if the agent has none now.
                child.is_leaf &= !own.is_dynamic(&format!("{above}{}", child.name));
            }
            children
        }))
    }

    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        let Some(own) = &self.names else { return self.source.names_of(pmid) };
        match own.names_of(pmid) {
            Ok(names) if !is_dynamic(pmid) => Ok(Ok(names)),
            // Perhaps below a dynamic subtree.
            _ => Ok(self.source.names_of(pmid)?.and_then(|names| {
                let names: Vec<_> = names.into_iter().filter(|name| own.is_dynamic(name)).collect();
                if names.is_empty() { Err(PmStatus::PMID) } else { Ok(names) }
            })),
        }
    }

    fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        match &self.names {
            None => self.source.names_of_each(pmids),
            Some(_) => pmids.iter().map(|pmid| self.names_of(*pmid)).collect(),
        }
    }

    fn lookup_descs(&mut self, pmids: &[Pmid]) -> Answers<MetricDesc> {
        self.source.lookup_descs(pmids)
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.source.instance_domain(indom, freshness)
    }

    fn instance_domain_of_each(
        &mut self,
        indoms: &[InDom],
        freshness: Freshness,
    ) -> Answers<Arc<InstanceDomain>> {
        self.source.instance_domain_of_each(indoms, freshness)
    }

    fn known_instances(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.source.known_instances(indom)
    }

    fn names_at_other_times(
        &mut self,
        indom: InDom,
        instances: &[InstId],
    ) -> Result<Vec<(InstId, Box<str>)>, SourceError> {
        self.source.names_at_other_times(indom, instances)
    }

    fn lookup_instance(
        &mut self,
        indom: InDom,
        name: &str,
    ) -> Result<Result<InstId, PmStatus>, SourceError> {
        self.source.lookup_instance(indom, name)
    }

    fn instance_name(
        &mut self,
        indom: InDom,
        instance: InstId,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        self.source.instance_name(indom, instance)
    }

    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        self.source.text(of, kind)
    }

    fn text_of_each(&mut self, subjects: &[TextSubject], kind: TextKind) -> Answers<Box<str>> {
        self.source.text_of_each(subjects, kind)
    }

    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        self.source.labels(level)
    }

    fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        self.source.labels_of_each(levels)
    }

    fn name(&self) -> String {
        self.source.name()
    }

    fn host_name(&mut self) -> Result<String, SourceError> {
        self.source.host_name()
    }

    fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        self.source.time_zone()
    }

    fn metadata_epoch(&self) -> u64 {
        self.source.metadata_epoch()
    }
}

impl<S: FetchSource> FetchSource for WithNameSpace<S> {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.source.fetch(list, batch)
    }

    fn fetch_values(&mut self, pmids: &[Pmid]) -> Result<FetchResult, SourceError> {
        self.source.fetch_values(pmids)
    }

    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        self.source.set_profile(profile)
    }

    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        self.source.set_mode(mode, when)
    }

    fn store(&mut self, values: &[MetricValues]) -> Result<Result<(), PmStatus>, SourceError> {
        self.source.store(values)
    }
}
