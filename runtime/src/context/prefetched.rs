//! Answers to questions about metadata for callers that cannot wait for them.
//!
//! Binding asks a [`MetadataSource`], whose methods return answers and not
//! futures. [`Prefetched`] has those that were given to it, and takes note of
//! the questions that it has no answer to: whoever waits elsewhere gets them
//! all at once and lets the work begin again.

use std::collections::HashMap;
use std::sync::Arc;

use super::async_host::AsyncHostContext;
use crate::model::{InDom, InstanceDomain, MetricDesc, PmStatus, Pmid};
use crate::source::{Freshness, MetadataSource, SourceError};
use crate::transport::Transport;

/// Answers about names, descriptors, instance domains and the name space, all
/// that binding asks about. Of texts and labels it knows nothing.
///
/// A method that lacks an answer fails with `PM_ERR_AGAIN`.
#[derive(Debug)]
struct Prefetched {
    name: String,
    epoch: u64,
    names: HashMap<Box<str>, Option<Result<Pmid, PmStatus>>>,
    descs: HashMap<Pmid, Option<Result<MetricDesc, PmStatus>>>,
    domains: HashMap<InDom, Option<Result<Arc<InstanceDomain>, PmStatus>>>,
    below: HashMap<Box<str>, Option<Result<Vec<String>, PmStatus>>>,
    lacks: bool,
}

impl<T: Transport> AsyncHostContext<T> {
    /// Does work that asks about metadata, such as compiling definitions,
    /// without blocking: it begins anew each time that answers are missing,
    /// after these were fetched together. Binding any number of metrics takes
    /// a round trip for their names, one for their descriptors, and if names
    /// are unknown one for those to suggest in their place.
    ///
    /// What the work leaves behind besides its result must be that of the
    /// last time. It learns of names, descriptors, instance domains and the
    /// name space; of texts and labels nothing.
    ///
    /// # Errors
    /// Those of the work, or the source failed.
    pub async fn with_metadata<R>(
        &mut self,
        mut work: impl FnMut(&mut dyn MetadataSource) -> Result<R, SourceError>,
    ) -> Result<R, SourceError> {
        self.ensure_link().await?;
        let mut known = Prefetched {
            name: self.spec().to_string(),
            epoch: self.metadata_epoch(),
            names: HashMap::new(),
            descs: HashMap::new(),
            domains: HashMap::new(),
            below: HashMap::new(),
            lacks: false,
        };
        loop {
            let outcome = work(&mut known);
            if !std::mem::take(&mut known.lacks) {
                return outcome;
            }
            self.answer(&mut known).await?;
        }
    }

    /// Gets the answers that are missing.
    async fn answer(&mut self, known: &mut Prefetched) -> Result<(), SourceError> {
        let names = open(&known.names);
        let asked: Vec<&str> = names.iter().map(|name| &**name).collect();
        let found = self.lookup_names(&asked).await?;
        known.names.extend(names.into_iter().zip(found.into_iter().map(Some)));
        let pmids = open(&known.descs);
        let found = self.lookup_descs(&pmids).await?;
        known.descs.extend(pmids.into_iter().zip(found.into_iter().map(Some)));
        let indoms = open(&known.domains);
        let found = self.instance_domain_of_each(&indoms, Freshness::Cached).await?;
        known.domains.extend(indoms.into_iter().zip(found.into_iter().map(Some)));
        for prefix in open(&known.below) {
            let found = match self.traverse(&prefix).await {
                Err(SourceError::Status { status, .. }) => Err(status),
                found => Ok(found?),
            };
            known.below.insert(prefix, Some(found));
        }
        known.epoch = self.metadata_epoch();
        Ok(())
    }
}

/// Questions without an answer.
fn open<Q: Clone, A>(known: &HashMap<Q, Option<A>>) -> Vec<Q> {
    let open = known.iter().filter(|(_, answer)| answer.is_none());
    open.map(|(question, _)| question.clone()).collect()
}

impl Prefetched {
    /// The answers, or that some are missing.
    fn complete<A>(&mut self, answers: Option<A>) -> Result<A, SourceError> {
        self.lacks |= answers.is_none();
        answers.ok_or_else(|| SourceError::Status {
            target: self.name.clone(),
            status: PmStatus::AGAIN,
        })
    }
}

impl MetadataSource for Prefetched {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        let known = &mut self.names;
        let found: Vec<_> =
            names.iter().map(|name| *known.entry((*name).into()).or_default()).collect();
        self.complete(found.into_iter().collect())
    }

    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        let known = &mut self.descs;
        let found: Vec<_> = pmids.iter().map(|pmid| *known.entry(*pmid).or_default()).collect();
        self.complete(found.into_iter().collect())
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        _: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        let found = self.domains.entry(indom).or_default().clone();
        self.complete(found)
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        let found = self.below.entry(prefix.into()).or_default().clone();
        let target = self.name.clone();
        self.complete(found)?.map_err(|status| SourceError::Status { target, status })
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn metadata_epoch(&self) -> u64 {
        self.epoch
    }
}
