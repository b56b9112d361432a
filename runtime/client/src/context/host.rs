//! Metrics of a host, live from its pmcd, for callers who block.
//!
//! [`HostContext`] is an [`AsyncHostContext`] over a socket that blocks, or another
//! transport that does. Each of its futures is ready when it is first polled.

use std::fmt;
use std::sync::Arc;

use pmderive_core::model::InstanceProfile;
use pmderive_core::result::{MetricValues, ResultBatch};
use pmderive_core::source::{
    Answer, FetchEvents, FetchList, FetchSource, MetadataSource, OneAnswer, Question, SourceError,
};

use super::async_host::AsyncHostContext;
use super::options::ConnectOptions;
use super::spec::HostSpec;
use crate::transport::{Socket, Transport, ready};

/// An open context for the metrics of a host (`PM_CONTEXT_HOST` of pmNewContext(3)).
///
/// ```no_run
/// use pmderive_client::context::HostContext;
/// use pmderive_core::result::ResultBatch;
/// use pmderive_core::source::{FetchList, FetchSource, MetadataSource};
///
/// let mut host = HostContext::open(&"pcp://web17".parse()?)?;
/// let load = host.lookup_names(&["kernel.all.load"])?.remove(0)?;
/// let mut batch = ResultBatch::default();
/// host.fetch(&FetchList::new(vec![load], vec![]), &mut batch)?;
/// println!("{:?}", batch.timestamp());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HostContext<T: Transport = Socket> {
    host: AsyncHostContext<T>,
}

impl<T: Transport> From<AsyncHostContext<T>> for HostContext<T> {
    /// A context whose calls block. Its transport must block as well; otherwise calls
    /// panic.
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
    /// The specification needs something unsupported, no connection could be made, or
    /// the peer is not a pmcd that accepts this client.
    pub fn open(spec: &HostSpec) -> Result<HostContext, SourceError> {
        Ok(HostContext { host: ready(AsyncHostContext::open_as_environment(spec))? })
    }

    /// Connects as `spec` says. `options` decide everything that it leaves open;
    /// contexts may share them by the same `Arc`.
    ///
    /// # Errors
    /// As for [`HostContext::open`].
    pub fn open_with(
        spec: &HostSpec,
        options: impl Into<Arc<ConnectOptions>>,
    ) -> Result<HostContext, SourceError> {
        Ok(HostContext { host: ready(AsyncHostContext::open_over(spec, options))? })
    }

    /// A context without a connection, for a host that may not answer yet. The first
    /// call makes one. After a failure, the delays of `options` apply.
    pub fn unconnected(spec: HostSpec, options: impl Into<Arc<ConnectOptions>>) -> HostContext {
        HostContext { host: AsyncHostContext::unconnected_over(spec, options) }
    }
}

impl<T: Transport> HostContext<T> {
    /// Another context for the same metrics, with its own connection and the profile of
    /// this one (pmDupContext(3)).
    ///
    /// # Errors
    /// As for [`HostContext::open`].
    pub fn duplicate(&self) -> Result<HostContext<T>, SourceError> {
        Ok(HostContext { host: ready(self.host.duplicate())? })
    }

    /// The host, as the caller specified it.
    pub fn spec(&self) -> &HostSpec {
        self.host.spec()
    }

    /// Problems of settings in the environment that were ignored.
    pub fn warnings(&self) -> &[String] {
        self.host.warnings()
    }

    /// True if there is a connection that is not known to be broken.
    pub fn is_connected(&self) -> bool {
        self.host.is_connected()
    }

    /// The instances that fetches deliver.
    pub fn profile(&self) -> &InstanceProfile {
        self.host.profile()
    }

    /// Closes the connection, if any, and makes a new one (pmReconnectContext(3)). The
    /// next fetch reports a gap.
    ///
    /// # Errors
    /// As for [`AsyncHostContext::reconnect`].
    pub fn reconnect(&mut self) -> Result<(), SourceError> {
        ready(self.host.reconnect())
    }
}

impl<T: Transport> MetadataSource for HostContext<T> {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        ready(self.host.ask(questions, answers))
    }

    fn name(&self) -> String {
        self.host.spec().to_string()
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

    fn store(&mut self, values: &[MetricValues]) -> OneAnswer<()> {
        ready(self.host.store(values))
    }
}
