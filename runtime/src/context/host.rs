//! Metrics of a host, live from its pmcd, for callers who wait.
//!
//! [`HostContext`] is an [`AsyncHostContext`] over a socket that blocks, or
//! another transport that does: each future is ready when it is polled first.

use std::fmt;
use std::sync::Arc;

use super::async_host::AsyncHostContext;
use super::options::ConnectOptions;
use super::spec::HostSpec;
use crate::model::{
    InDom, InstId, InstanceDomain, InstanceProfile, LabelLevel, LabelSet, MetricDesc, PmStatus,
    Pmid, TextKind, TextSubject,
};
use crate::result::{MetricValues, ResultBatch};
use crate::source::{
    Answers, Child, FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};
use crate::transport::{Socket, Transport, ready};

/// An open context for the metrics of a host (`PM_CONTEXT_HOST` of
/// pmNewContext(3)).
pub struct HostContext<T: Transport = Socket> {
    host: AsyncHostContext<T>,
}

impl<T: Transport> From<AsyncHostContext<T>> for HostContext<T> {
    /// A context whose calls block, over a transport that does as well; with
    /// another one they panic.
    fn from(host: AsyncHostContext<T>) -> HostContext<T> {
        HostContext { host }
    }
}

impl<T: Transport> fmt::Debug for HostContext<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostContext").field(&self.host).finish()
    }
}

impl HostContext {
    /// Connects as `spec` and the environment say (pmNewContext(3)).
    ///
    /// # Errors
    /// The specification needs something that is not supported, no connection
    /// came about, or the peer is not a pmcd that accepts us.
    pub fn open(spec: &HostSpec) -> Result<HostContext, SourceError> {
        Ok(HostContext { host: ready(AsyncHostContext::open(spec))? })
    }

    /// Connects as `spec` says, and where it leaves something open, `options`.
    ///
    /// # Errors
    /// As for [`HostContext::open`].
    pub fn open_with(spec: &HostSpec, options: ConnectOptions) -> Result<HostContext, SourceError> {
        Ok(HostContext { host: ready(AsyncHostContext::open_with(spec, options))? })
    }
}

impl<T: Transport> HostContext<T> {
    /// Another context for the same metrics, with a connection of its own and
    /// the profile of this one (pmDupContext(3)).
    ///
    /// # Errors
    /// As for [`HostContext::open`].
    pub fn duplicate(&self) -> Result<HostContext<T>, SourceError> {
        Ok(HostContext { host: ready(self.host.duplicate())? })
    }

    /// What is wrong with settings of the environment that were ignored.
    pub fn warnings(&self) -> &[String] {
        self.host.warnings()
    }

    /// True while there is a connection that is not known to be broken.
    pub fn is_connected(&self) -> bool {
        self.host.is_connected()
    }

    /// The instances that fetches deliver.
    pub fn profile(&self) -> &InstanceProfile {
        self.host.profile()
    }

    /// Closes the connection, if any, and makes a new one
    /// (pmReconnectContext(3)). The next fetch reports a gap.
    ///
    /// # Errors
    /// As for [`AsyncHostContext::reconnect`].
    pub fn reconnect(&mut self) -> Result<(), SourceError> {
        ready(self.host.reconnect())
    }
}

impl<T: Transport> MetadataSource for HostContext<T> {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        ready(self.host.lookup_names(names))
    }

    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        ready(self.host.lookup_descs(pmids))
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        ready(self.host.instance_domain(indom, freshness))
    }

    fn instance_domain_of_each(
        &mut self,
        indoms: &[InDom],
        freshness: Freshness,
    ) -> Answers<Arc<InstanceDomain>> {
        ready(self.host.instance_domain_of_each(indoms, freshness))
    }

    fn lookup_instance(
        &mut self,
        indom: InDom,
        name: &str,
    ) -> Result<Result<InstId, PmStatus>, SourceError> {
        ready(self.host.lookup_instance(indom, name))
    }

    fn instance_name(
        &mut self,
        indom: InDom,
        instance: InstId,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        ready(self.host.instance_name(indom, instance))
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        ready(self.host.traverse(prefix))
    }

    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        ready(self.host.children(node))
    }

    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        ready(self.host.names_of(pmid))
    }

    fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        ready(self.host.names_of_each(pmids))
    }

    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        ready(self.host.text(of, kind))
    }

    fn text_of_each(&mut self, subjects: &[TextSubject], kind: TextKind) -> Answers<Box<str>> {
        ready(self.host.text_of_each(subjects, kind))
    }

    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        ready(self.host.labels(level))
    }

    fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        ready(self.host.labels_of_each(levels))
    }

    fn name(&self) -> String {
        self.host.spec().to_string()
    }

    fn host_name(&mut self) -> Result<String, SourceError> {
        ready(self.host.host_name())
    }

    fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        ready(self.host.time_zone())
    }

    fn metadata_epoch(&self) -> u64 {
        self.host.metadata_epoch()
    }
}

impl<T: Transport> FetchSource for HostContext<T> {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        ready(self.host.fetch(list, batch))
    }

    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        self.host.set_profile(profile)
    }

    fn store(&mut self, values: &[MetricValues]) -> Result<Result<(), PmStatus>, SourceError> {
        ready(self.host.store(values))
    }
}
