//! Metrics of a host, live from its pmcd, for thousands of hosts in one process.
//!
//! [`AsyncHostContext`] keeps the connection and makes each fetch with as few round
//! trips as possible: it splits requests into parts that pmcd accepts, and pipelines
//! them. It remembers metadata until pmcd reports a change. If the connection breaks, the call
//! fails, and the next call connects again.
//!
//! `host_metadata` answers questions about metadata, and `host_questions` has a method
//! for each kind of question. [`super::HostContext`] is the same for callers who block.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pmderive_core::model::{InstanceProfile, PmStatus, Pmid, StateChange};
use pmderive_core::result::{FetchResult, MetricValues, ResultBatch};
use pmderive_core::source::{
    FetchEvents, FetchList, OneAnswer, SourceError, distinct, in_order_of,
};

use super::advice::source_error;
use super::backoff::{Attempt, Backoff};
use super::connect::connect;
use super::link::{Link, LinkError};
use super::metadata_cache::MetadataCache;
use super::options::ConnectOptions;
use super::prepared::PreparedList;
use super::spec::HostSpec;
use crate::pdu::{Features, Profile, Resolution};
use crate::proto::{Event, ProtocolError, Reply, Request, StoreRequest};
use crate::transport::{AsyncSocket, Transport};

/// An open context for the metrics of a host (`PM_CONTEXT_HOST` of pmNewContext(3)).
/// Its calls are futures for tasks of a tokio runtime.
///
/// Each call ends when pmcd has answered or a time-out of [`ConnectOptions`] has
/// passed. If a future is dropped before its end, replies to it may still be under way. So the
/// connection is dropped too, and the next call connects again. A future that is dropped while it
/// connects counts as a failed attempt: the next one waits for
/// [`ConnectOptions::reconnect_delays`], and [`AsyncHostContext::may_connect`] tells when. Other
/// contexts are not affected.
///
/// ```no_run
/// use pmderive_client::context::AsyncHostContext;
/// use pmderive_core::result::ResultBatch;
/// use pmderive_core::source::FetchList;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let mut host = AsyncHostContext::open(&"web17".parse()?).await?;
/// let pmids = host.lookup_names(&["hinv.ncpu", "disk.all.read"]).await?;
/// let list = FetchList::new(pmids.into_iter().collect::<Result<_, _>>()?, Vec::new());
/// let mut batch = ResultBatch::default();
/// host.fetch(&list, &mut batch).await?;
/// for set in batch.parts()[0].sets() {
///     println!("{}: {:?} values", set.pmid, set.count);
/// }
/// # Ok(())
/// # }
/// ```
pub struct AsyncHostContext<T = AsyncSocket> {
    pub(super) spec: HostSpec,
    /// Many hosts may share these.
    options: Arc<ConnectOptions>,
    warnings: Vec<String>,
    /// Removed during a conversation: an abandoned conversation then drops it.
    pub(super) link: Option<Box<Link<T>>>,
    pub(super) cache: MetadataCache,
    pub(super) epoch: u64,
    /// The events that the next successful fetch has to report.
    pending: FetchEvents,
    prepared: Option<Arc<PreparedList>>,
    profile: InstanceProfile,
    /// Most values of one metric that fetches deliver.
    max_values: usize,
    backoff: Backoff,
    /// The reason why the last attempt to connect failed.
    failure: String,
}

impl<T> fmt::Debug for AsyncHostContext<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncHostContext")
            .field("spec", &self.spec)
            .field("connected", &self.is_connected())
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl<T> AsyncHostContext<T> {
    /// Problems of settings in the environment that were ignored.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// True if there is a connection that is not known to be broken.
    pub fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// The specification that the context was opened with.
    pub fn spec(&self) -> &HostSpec {
        &self.spec
    }

    /// Changes whenever names, descriptors or the peer may have changed. Bindings must then be made
    /// again.
    pub fn metadata_epoch(&self) -> u64 {
        self.epoch
    }

    /// Shares metadata with contexts that know the same, as the next fetch does. Useful
    /// for callers that have asked all their questions but fetch much later.
    pub fn settle(&mut self) {
        self.cache.settle();
    }

    /// The instances that fetches deliver.
    pub fn profile(&self) -> &InstanceProfile {
        &self.profile
    }

    pub(super) fn status_error(&self, status: PmStatus) -> SourceError {
        SourceError::Status { target: self.spec.to_string(), status }
    }

    fn metadata_changed(&mut self) {
        self.pending.metadata_changed = true;
        self.epoch += 1;
        self.cache.invalidate();
    }
}

impl AsyncHostContext {
    /// Connects as `spec` and the environment say (pmNewContext(3)).
    ///
    /// # Errors
    /// The specification needs something unsupported, no connection could be made, or
    /// the peer is not a pmcd that accepts this client.
    ///
    /// # Panics
    /// This and all calls that wait panic outside of a tokio runtime, and in one without
    /// input and output or timers (`enable_all` of tokio's `Builder`).
    pub async fn open(spec: &HostSpec) -> Result<AsyncHostContext, SourceError> {
        AsyncHostContext::open_as_environment(spec).await
    }

    /// Connects as `spec` says. `options` decide everything that it leaves open;
    /// contexts may share them by the same `Arc`.
    ///
    /// # Errors
    /// As for [`AsyncHostContext::open`].
    pub async fn open_with(
        spec: &HostSpec,
        options: impl Into<Arc<ConnectOptions>>,
    ) -> Result<AsyncHostContext, SourceError> {
        AsyncHostContext::open_over(spec, options).await
    }

    /// A context without a connection. The first call makes one, and so does
    /// [`AsyncHostContext::reconnect`]. After a failure, the delays of `options` apply.
    ///
    /// ```
    /// use pmderive_client::context::{AsyncHostContext, ConnectOptions};
    ///
    /// let context = AsyncHostContext::unconnected("web17".parse()?, ConnectOptions::default());
    /// # drop(context);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unconnected(
        spec: HostSpec,
        options: impl Into<Arc<ConnectOptions>>,
    ) -> AsyncHostContext {
        AsyncHostContext::unconnected_over(spec, options)
    }
}

impl<T: Transport> AsyncHostContext<T> {
    /// [`AsyncHostContext::open`] over any transport.
    pub(super) async fn open_as_environment(
        spec: &HostSpec,
    ) -> Result<AsyncHostContext<T>, SourceError> {
        let (options, warnings) = ConnectOptions::from_environment();
        let context = AsyncHostContext::open_over(spec, options).await?;
        Ok(AsyncHostContext { warnings, ..context })
    }

    /// [`AsyncHostContext::open_with`] over any transport.
    ///
    /// # Errors
    /// As for [`AsyncHostContext::open`].
    pub async fn open_over(
        spec: &HostSpec,
        options: impl Into<Arc<ConnectOptions>>,
    ) -> Result<AsyncHostContext<T>, SourceError> {
        let mut context = AsyncHostContext::unconnected_over(spec.clone(), options);
        context.link = Some(connect_apart(spec, &context.options).await?);
        context.epoch = 1;
        Ok(context)
    }

    /// [`AsyncHostContext::unconnected`] over any transport.
    pub fn unconnected_over(
        spec: HostSpec,
        options: impl Into<Arc<ConnectOptions>>,
    ) -> AsyncHostContext<T> {
        AsyncHostContext {
            spec,
            options: options.into(),
            backoff: Backoff::new(),
            warnings: Vec::new(),
            link: None,
            cache: MetadataCache::default(),
            epoch: 0,
            pending: FetchEvents::default(),
            prepared: None,
            profile: InstanceProfile::default(),
            max_values: usize::MAX,
            failure: String::new(),
        }
    }

    /// Another context for the same metrics, with its own connection and the profile of
    /// this one (pmDupContext(3)).
    ///
    /// # Errors
    /// As for [`AsyncHostContext::open`].
    pub async fn duplicate(&self) -> Result<AsyncHostContext<T>, SourceError> {
        let mut twin = AsyncHostContext::open_over(&self.spec, Arc::clone(&self.options)).await?;
        twin.warnings.clone_from(&self.warnings);
        twin.set_profile(&self.profile)?;
        twin.max_values = self.max_values;
        Ok(twin)
    }

    /// Closes the connection, if any, and makes a new one (pmReconnectContext(3)). The
    /// next fetch reports a gap.
    ///
    /// # Errors
    /// No connection could be made; the error names the cause, where libpcp always
    /// returns `-ETIMEDOUT`. Or it is too early for another attempt after a failed one
    /// ([`SourceError::TooSoon`], `-ETIMEDOUT`). In both cases the context has no
    /// connection.
    pub async fn reconnect(&mut self) -> Result<(), SourceError> {
        self.link = None;
        self.connect_anew(Attempt::Asked).await
    }

    /// Makes a connection if there is none. Every call that needs a connection does
    /// the same.
    ///
    /// # Errors
    /// As for [`AsyncHostContext::reconnect`]. After a failure the next attempt waits
    /// longer than there, by a random part of a quarter.
    pub async fn connect(&mut self) -> Result<(), SourceError> {
        match self.link {
            Some(_) => Ok(()),
            None => self.connect_anew(Attempt::Automatic).await,
        }
    }

    /// False while it is too early to connect again after a failed attempt
    /// ([`AsyncHostContext::connect`]).
    pub fn may_connect(&self) -> bool {
        self.backoff.left(Attempt::Automatic, T::now()).is_none()
    }

    /// The context with a seed for the random parts of its delays. Without this call the seed
    /// itself is random.
    #[must_use]
    pub fn with_chance(mut self, seed: u64) -> AsyncHostContext<T> {
        self.backoff = Backoff::with_seed(seed);
        self
    }

    async fn connect_anew(&mut self, attempt: Attempt) -> Result<(), SourceError> {
        if let Some(left) = self.backoff.left(attempt, T::now()) {
            return Err(self.too_soon(left));
        }
        // A caller that gives up waiting drops this future: the attempt has failed
        // then.
        let before = self.backoff.clone();
        self.backoff.failed(&self.options.reconnect_delays, T::now());
        self.failure = format!("{}: the connection was not ready in time", self.spec);
        match connect_apart(&self.spec, &self.options).await {
            Ok(link) => {
                self.backoff.succeeded();
                let link = self.link.insert(link);
                link.connection.set_profile(&self.profile);
                // The first connection interrupts nothing.
                self.pending.gap |= self.epoch > 0;
                self.metadata_changed();
                Ok(())
            }
            Err(error) => {
                self.backoff = before;
                self.backoff.failed(&self.options.reconnect_delays, T::now());
                self.failure = error.to_string();
                Err(error)
            }
        }
    }

    fn too_soon(&self, left: Duration) -> SourceError {
        let failure = self.failure.clone();
        SourceError::TooSoon { failure, seconds: left.as_secs_f64() }
    }

    /// Converts the error that ended a connection.
    fn lost(&self, error: LinkError) -> SourceError {
        source_error(self.spec.to_string(), error)
    }

    /// The features that pmcd offers; none without a connection.
    pub(super) fn features(&self) -> Features {
        self.link.as_ref().map(|link| link.connection.features()).unwrap_or_default()
    }

    /// Sends `requests` back to back. Passes each reply to `answer`, with the position
    /// of its request.
    pub(super) async fn exchange<'r>(
        &mut self,
        requests: impl IntoIterator<Item = Request<'r>>,
        answer: impl FnMut(&mut MetadataCache, usize, Result<Reply<'_>, PmStatus>),
    ) -> Result<(), SourceError> {
        self.connect().await?;
        let Some(mut link) = self.link.take() else { return Ok(()) };
        match converse(&mut link, &mut self.cache, requests, answer).await {
            Ok(()) => {
                self.link = Some(link);
                Ok(())
            }
            Err(error) => Err(self.lost(error)),
        }
    }

    /// Makes fetches deliver only the instances of the profile from now on
    /// (pmAddProfile(3), pmDelProfile(3)). The next fetch sends the profile to pmcd,
    /// and so does the first fetch after a reconnect.
    ///
    /// # Errors
    /// `PM_ERR_TOOBIG` if pmcd does not accept the profile in one request. The previous
    /// profile stays in force.
    pub fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        if !Profile::fits(profile) {
            return Err(self.status_error(PmStatus::TOOBIG));
        }
        self.profile.clone_from(profile);
        if let Some(link) = &mut self.link {
            link.connection.set_profile(profile);
        }
        Ok(())
    }

    /// Makes fetches deliver at most `most` values of a metric. A metric with more has the status
    /// `PM_ERR_TOOBIG` and no value ([`ResultBatch::refused_sets`] counts them). Without this call
    /// there is no such limit.
    ///
    /// The batches of later fetches must not have been used with a larger limit.
    pub fn set_max_values(&mut self, most: usize) {
        self.max_values = most;
    }

    /// Changes values at the agents (pmStore(3)). pmcd has only one status for all
    /// values, the inner error; valid values may have been stored nevertheless.
    ///
    /// # Errors
    /// The connection failed. The inner error is pmcd's status, or `PM_ERR_TOOSMALL` if there
    /// is no metric, `PM_ERR_BADSTORE` for a metric without values, or with values that are
    /// partly in place and partly in blocks.
    pub async fn store(&mut self, values: &[MetricValues]) -> OneAnswer<()> {
        let request = match StoreRequest::new(values) {
            Ok(request) => request,
            Err(status) => return Ok(Err(status)),
        };
        let mut outcome = Err(PmStatus::IPC);
        let stored = |_: &mut _, _, reply: Result<Reply<'_>, PmStatus>| outcome = reply.map(|_| ());
        self.exchange([Request::Store(&request)], stored).await?;
        Ok(outcome)
    }

    /// Fetches the metrics of `list` (pmFetch(3)), like
    /// [`FetchSource::fetch`](pmderive_core::source::FetchSource::fetch). All parts of
    /// the request, and the requests for instance domains after it, share one round
    /// trip. A list without metrics, as for constants, needs a round trip for the time.
    ///
    /// # Errors
    /// The fetch as a whole failed. The contents of `batch` are unspecified.
    pub async fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.fetch_and_keep_events(list, batch).await?;
        Ok(std::mem::take(&mut self.pending))
    }

    /// Fetches metrics and copies the result into values of their own (pmFetch(3)),
    /// like
    /// [`FetchSource::fetch_values`](pmderive_core::source::FetchSource::fetch_values).
    ///
    /// # Errors
    /// As for [`AsyncHostContext::fetch`].
    pub async fn fetch_values(&mut self, pmids: &[Pmid]) -> Result<FetchResult, SourceError> {
        let mut batch = ResultBatch::default();
        let list = FetchList::new(distinct(pmids), Vec::new());
        let events = self.fetch(&list, &mut batch).await?;
        Ok(in_order_of(pmids, FetchResult::of_batch(&batch, events.changes)))
    }

    /// A fetch that leaves reporting its events to the next one.
    pub(super) async fn fetch_and_keep_events(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<(), SourceError> {
        batch.clear();
        self.connect().await?;
        // A caller that fetches has asked all its questions for now.
        self.cache.settle();
        let Some(mut link) = self.link.take() else {
            return Err(self.status_error(PmStatus::NOTCONN));
        };
        link.connection.lend_buffers(&mut batch.spare);
        let outcome = match self.fetch_over(&mut link, list, batch).await {
            Ok(outcome) => outcome,
            Err(error) => return Err(self.lost(error)),
        };
        link.connection.return_buffers(&mut batch.spare);
        self.link = Some(link);
        outcome.map_err(|status| self.status_error(status))
    }

    async fn fetch_over(
        &mut self,
        link: &mut Link<T>,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<Result<(), PmStatus>, LinkError> {
        let highres = link.connection.features().has(Features::HIGHRES);
        let resolution = if highres { Resolution::Nano } else { Resolution::Micro };
        let requests = PreparedList::renew(&mut self.prepared, list, resolution);
        for request in requests {
            link.request(Request::Fetch(request))?;
        }
        for indom in list.domains() {
            link.request(Request::InstanceDomain(*indom))?;
        }
        let is_for_values = !list.pmids().is_empty();
        let mut outcome = Ok(());
        let mut changes = StateChange::default();
        while link.connection.pending() > 0 {
            match link.next_event().await? {
                Event::Changed(change) => {
                    changes = changes.with(change);
                    self.cache.forget(change);
                }
                Event::Failed(status) if batch.parts().len() < requests.len() => {
                    batch.add_part();
                    outcome = Err(status);
                }
                Event::Failed(status) => batch.domains.push(Err(status)),
                Event::Reply
                    if is_for_values && link.connection.add_as_before(list.id(), batch) => {}
                Event::Reply => match link.connection.reply()? {
                    Reply::Result(frame) => {
                        let is_larger = frame.most_values > self.max_values;
                        if !is_larger {
                            link.connection.notice(frame, list.id(), batch);
                        }
                        let part = batch.add_part();
                        link.connection.take_result(frame, part);
                        if !is_for_values && let Some(wire) = part.wire_mut() {
                            wire.set_count = 0;
                        }
                        if is_larger {
                            batch.refuse_larger_sets(self.max_values);
                        }
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
        self.pending.changes = self.pending.changes.with(changes);
        // pmcd does not say which agent it was, and the agent has reset its counters.
        self.pending.gap |= changes.agent_restarted();
        Ok(outcome)
    }
}

/// Connects. The future is large and rarely used, so it is boxed: questions and fetches
/// need not reserve room for it.
async fn connect_apart<T: Transport>(
    spec: &HostSpec,
    options: &ConnectOptions,
) -> Result<Box<Link<T>>, SourceError> {
    Box::pin(connect(spec, options)).await.map(Box::new)
}

/// Sends requests back to back and passes each reply to `answer`.
async fn converse<'r, T: Transport>(
    link: &mut Link<T>,
    cache: &mut MetadataCache,
    requests: impl IntoIterator<Item = Request<'r>>,
    mut answer: impl FnMut(&mut MetadataCache, usize, Result<Reply<'_>, PmStatus>),
) -> Result<(), LinkError> {
    let mut count = 0;
    for request in requests {
        link.request(request)?;
        count += 1;
    }
    for position in 0..count {
        match link.next_event().await? {
            Event::Reply => answer(cache, position, Ok(link.connection.reply()?)),
            Event::Failed(status) => answer(cache, position, Err(status)),
            // Neither can come before a reply that is not a result.
            Event::Ready | Event::Changed(_) => return Err(ProtocolError::NotReady.into()),
        }
    }
    // Rare questions need no buffers meanwhile.
    link.connection.release_buffers();
    Ok(())
}
