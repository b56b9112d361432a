//! Metrics of a host, live from its pmcd.
//!
//! [`HostContext`] keeps the connection and turns fetches into as few round
//! trips as possible: requests are split to what pmcd accepts, and pipelined.
//! What it learns it remembers until pmcd says that something changed. When the
//! connection breaks, the call at hand fails; the next call tries once to
//! connect anew. The questions about metadata are in `host_metadata`.

use std::fmt;
use std::sync::Arc;

use super::connect::{connect, source_error};
use super::link::{Link, LinkError};
use super::metadata_cache::MetadataCache;
use super::options::ConnectOptions;
use super::spec::HostSpec;
use crate::model::PmStatus;
use crate::pdu::{Features, Resolution};
use crate::proto::{Event, FetchRequest, ProtocolError, Reply, Request, StateChange};
use crate::result::ResultBatch;
use crate::source::{FetchEvents, FetchList, FetchSource, SourceError};

/// An open context for the metrics of a host (`PM_CONTEXT_HOST` of
/// pmNewContext(3)).
pub struct HostContext {
    pub(super) spec: HostSpec,
    options: ConnectOptions,
    warnings: Vec<String>,
    pub(super) link: Option<Link>,
    pub(super) cache: MetadataCache,
    pub(super) epoch: u64,
    /// What the next successful fetch has to report.
    pending: FetchEvents,
    prepared: Option<PreparedList>,
}

impl fmt::Debug for HostContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostContext")
            .field("spec", &self.spec)
            .field("connected", &self.is_connected())
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// The requests for a list of metrics, kept for as long as the list is fetched.
struct PreparedList {
    list: u64,
    resolution: Resolution,
    requests: Vec<Arc<FetchRequest>>,
}

impl HostContext {
    /// Connects as `spec` and the environment say (pmNewContext(3)).
    ///
    /// # Errors
    /// The specification needs something that is not supported, no connection
    /// came about, or the peer is not a pmcd that accepts us.
    pub fn open(spec: &HostSpec) -> Result<HostContext, SourceError> {
        let (options, warnings) = ConnectOptions::from_environment();
        let mut context = HostContext::open_with(spec, options)?;
        context.warnings = warnings;
        Ok(context)
    }

    /// Connects as `spec` says, and where it leaves something open, `options`.
    ///
    /// # Errors
    /// As for [`HostContext::open`].
    pub fn open_with(spec: &HostSpec, options: ConnectOptions) -> Result<HostContext, SourceError> {
        let link = connect(spec, &options)?;
        Ok(HostContext {
            spec: spec.clone(),
            options,
            warnings: Vec::new(),
            link: Some(link),
            cache: MetadataCache::default(),
            epoch: 1,
            pending: FetchEvents::default(),
            prepared: None,
        })
    }

    /// What is wrong with settings of the environment that were ignored.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// True while there is a connection that is not known to be broken.
    pub fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Closes the connection, if any, and makes a new one
    /// (pmReconnectContext(3)). The next fetch reports a gap.
    ///
    /// # Errors
    /// No connection came about; the context stays without one.
    pub fn reconnect(&mut self) -> Result<(), SourceError> {
        self.link = None;
        self.ensure_link()
    }

    /// Makes a connection if there is none.
    pub(super) fn ensure_link(&mut self) -> Result<(), SourceError> {
        if self.link.is_none() {
            self.link = Some(connect(&self.spec, &self.options)?);
            self.pending.gap = true;
            self.metadata_changed();
        }
        Ok(())
    }

    fn metadata_changed(&mut self) {
        self.pending.metadata_changed = true;
        self.epoch += 1;
        self.cache.invalidate();
    }

    /// Drops the connection and says why.
    fn lost(&mut self, error: LinkError) -> SourceError {
        self.link = None;
        source_error(self.spec.to_string(), error)
    }

    /// Sends `requests` back to back and hands each reply over with the
    /// position of its request.
    pub(super) fn exchange<'r>(
        &mut self,
        requests: impl IntoIterator<Item = Request<'r>>,
        mut answer: impl FnMut(&mut MetadataCache, usize, Result<Reply<'_>, PmStatus>),
    ) -> Result<(), SourceError> {
        self.ensure_link()?;
        let Some(link) = &mut self.link else { return Ok(()) };
        let cache = &mut self.cache;
        let converse = || {
            let mut count = 0;
            for request in requests {
                link.request(request)?;
                count += 1;
            }
            for position in 0..count {
                match link.next_event()? {
                    Event::Reply => answer(cache, position, Ok(link.connection.reply()?)),
                    Event::Failed(status) => answer(cache, position, Err(status)),
                    // Neither can come before a reply that is not a result.
                    Event::Ready | Event::Changed(_) => return Err(ProtocolError::NotReady.into()),
                }
            }
            Ok(())
        };
        let outcome = converse();
        outcome.map_err(|error| self.lost(error))
    }
}

/// The requests for a list: those of the previous fetch if it was for the same.
fn prepare<'p>(
    prepared: &'p mut Option<PreparedList>,
    list: &FetchList,
    resolution: Resolution,
) -> &'p [Arc<FetchRequest>] {
    let kept = prepared.take();
    let kept = kept.filter(|kept| (kept.list, kept.resolution) == (list.id(), resolution));
    let prepared = prepared.insert(kept.unwrap_or_else(|| {
        let parts = list.pmids().chunks(FetchRequest::MAX_PMIDS);
        let requests = parts.map(|pmids| Arc::new(FetchRequest::new(pmids, resolution))).collect();
        PreparedList { list: list.id(), resolution, requests }
    }));
    &prepared.requests
}

impl FetchSource for HostContext {
    /// The parts of the request, and those for the instance domains after it,
    /// share one round trip. A list without metrics has no time stamp.
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        batch.clear();
        self.ensure_link()?;
        match self.fetch_once(list, batch) {
            Ok(Ok(())) => Ok(std::mem::take(&mut self.pending)),
            Ok(Err(status)) => Err(SourceError::Status { target: self.spec.to_string(), status }),
            Err(error) => Err(self.lost(error)),
        }
    }
}

impl HostContext {
    fn fetch_once(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<Result<(), PmStatus>, LinkError> {
        let Some(link) = &mut self.link else { return Ok(Err(PmStatus::NOTCONN)) };
        let highres = link.connection.features().has(Features::HIGHRES);
        let resolution = if highres { Resolution::Nano } else { Resolution::Micro };
        let requests = prepare(&mut self.prepared, list, resolution);
        for request in requests {
            link.request(Request::Fetch(request))?;
        }
        for indom in list.domains() {
            link.request(Request::InstanceDomain(*indom))?;
        }
        let mut outcome = Ok(());
        let mut changes = StateChange::default();
        while link.connection.pending() > 0 {
            match link.next_event()? {
                Event::Changed(change) => {
                    changes = changes.with(change);
                    if change.concerns_labels() {
                        self.cache.invalidate_labels();
                    }
                    if change.concerns_metadata() {
                        self.cache.invalidate();
                    }
                }
                Event::Failed(status) if batch.parts().len() < requests.len() => {
                    batch.add_part();
                    outcome = Err(status);
                }
                Event::Failed(status) => batch.domains.push(Err(status)),
                Event::Reply => match link.connection.reply()? {
                    Reply::Result(frame) => {
                        link.connection.take_result(frame, batch.add_part());
                    }
                    Reply::Instances(instances) => {
                        batch.domains.push(Ok(self.cache.learn_domain(&instances)));
                    }
                    _ => return Err(ProtocolError::NotReady.into()),
                },
                Event::Ready => return Err(ProtocolError::NotReady.into()),
            }
        }
        if changes.concerns_metadata() {
            self.pending.metadata_changed = true;
            self.epoch += 1;
        }
        // Which agent it was is not told, and its counters begin anew.
        self.pending.gap |= changes.agent_restarted();
        Ok(outcome)
    }
}
