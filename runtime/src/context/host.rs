//! Metrics of a host, live from its pmcd.
//!
//! [`HostContext`] turns the questions of [`MetadataSource`] and
//! [`FetchSource`] into as few round trips as possible: requests are batched,
//! split to what pmcd accepts, and pipelined. It remembers what it learnt until
//! pmcd says that something changed. When the connection breaks, the call at
//! hand fails; the next call tries once to connect anew.

use std::fmt;
use std::sync::Arc;

use super::connect::{connect, source_error};
use super::link::{Link, LinkError};
use super::metadata_cache::MetadataCache;
use super::options::ConnectOptions;
use super::spec::HostSpec;
use crate::model::{InDom, InstanceDomain, MetricDesc, PmStatus, Pmid, TextKind, TextSubject};
use crate::pdu::TextRequest;
use crate::pdu::{Features, MAX_REQUEST_BYTES, PmnsNames, Resolution};
use crate::proto::{Event, FetchRequest, ProtocolError, Reply, Request, StateChange};
use crate::result::ResultBatch;
use crate::source::{FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError};

/// An open context for the metrics of a host (`PM_CONTEXT_HOST` of
/// pmNewContext(3)).
pub struct HostContext {
    spec: HostSpec,
    options: ConnectOptions,
    warnings: Vec<String>,
    link: Option<Link>,
    cache: MetadataCache,
    epoch: u64,
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

/// Descriptors asked for in one request. For agents that are processes pmcd
/// asks for each by itself and serves no one else meanwhile.
const DESCS_PER_REQUEST: usize = 200;

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

    /// Help text of a metric (pmLookupText(3)).
    ///
    /// # Errors
    /// The outer result is about the connection; the inner one is
    /// `PM_ERR_TEXT` for a metric without such a text.
    pub fn help_text(
        &mut self,
        pmid: Pmid,
        kind: TextKind,
    ) -> Result<Result<String, PmStatus>, SourceError> {
        let request = TextRequest { subject: TextSubject::Metric(pmid), kind };
        let mut text = Err(PmStatus::TEXT);
        self.exchange([Request::HelpText(request)], |_, _, reply| match reply {
            Ok(Reply::Text(bytes)) => text = Ok(String::from_utf8_lossy(bytes).into_owned()),
            Ok(_) => {}
            Err(status) => text = Err(status),
        })?;
        Ok(text)
    }

    /// Makes a connection if there is none.
    fn ensure_link(&mut self) -> Result<(), SourceError> {
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
    fn exchange<'r>(
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
