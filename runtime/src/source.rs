//! What the engine asks of a source of metrics, wherever it gets them from:
//! pmcd, an archive, or this process itself.
//!
//! Sources deliver results in their encoded form ([`ResultBatch`]); decoding
//! into columns belongs to the evaluator, which knows the layout it expects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{InDom, InstanceDomain, MetricDesc, PmStatus, Pmid};
use crate::result::ResultBatch;

/// Looks names, descriptors and instance domains up.
///
/// Lookups are batched so that binding thousands of metrics costs a few round
/// trips. The outer `Result` of each method is about the source itself; what
/// is wrong with one name, metric or domain stands in the inner one.
pub trait MetadataSource {
    /// Identifier of each name, in order (`pmLookupName(3)`). Names of
    /// non-leaf nodes give `PM_ERR_NONLEAF`, unknown ones `PM_ERR_NAME`.
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError>;

    /// Descriptor of each metric, in order (`pmLookupDescs(3)`).
    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError>;

    /// An instance domain as of now; for an archive, as of the record that
    /// was fetched last (`pmGetInDom(3)`).
    ///
    /// While nothing changed, repeated calls return the same `Arc`, so that
    /// callers can compare pointers.
    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError>;

    /// Every instance of a domain that the source has ever seen: what an
    /// archive knows from all its time (`pmGetInDomArchive(3)`), else the
    /// domain as of now.
    fn known_instances(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.instance_domain(indom, Freshness::Current)
    }

    /// Names of all metrics at or below `prefix`, which ends at a component
    /// boundary; the empty prefix is the whole name space (`pmTraversePMNS(3)`).
    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError>;

    /// Name of the source for messages: host name or archive path.
    fn name(&self) -> String;

    /// Changes whenever names, descriptors or the identity of the peer may
    /// have changed, so that bindings have to be made anew.
    fn metadata_epoch(&self) -> u64;
}

/// Delivers values.
pub trait FetchSource: MetadataSource {
    /// Fetches the metrics of `list` (`pmFetch(3)`; for an archive the next
    /// record that holds at least one of them).
    ///
    /// On success the value sets of `batch` are exactly those of `list`, in
    /// order; failures of single metrics are statuses inside them.
    ///
    /// # Errors
    /// The fetch as a whole failed; `batch` is unspecified. At the end of an
    /// archive that is [`SourceError::Status`] with `PM_ERR_EOL`.
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError>;
}

/// How recent an instance domain must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// What was learnt earlier will do.
    Cached,
    /// Ask again: an instance was seen that the cached domain lacks.
    Current,
}

/// The metrics of one fetch, each at most once.
#[derive(Clone, Debug)]
pub struct FetchList {
    id: u64,
    pmids: Box<[Pmid]>,
    domains: Box<[InDom]>,
}

impl FetchList {
    /// Makes a list of metrics and of the instance domains whose current
    /// instances are wanted along with every fetch.
    pub fn new(pmids: Vec<Pmid>, domains: Vec<InDom>) -> FetchList {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        FetchList {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            pmids: pmids.into(),
            domains: domains.into(),
        }
    }

    /// Unique per list in this process: lets a source keep what it prepared
    /// for the list it saw last.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The metrics; the position of each is its slot.
    pub fn pmids(&self) -> &[Pmid] {
        &self.pmids
    }

    /// Domains to deliver in [`ResultBatch::domains`], parallel to it, as of
    /// the fetch (a live source asks for them in the same round trip).
    pub fn domains(&self) -> &[InDom] {
        &self.domains
    }
}

/// What happened between the previous fetch and this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchEvents {
    /// Names, descriptors or agents may have changed (see [`MetadataSource::metadata_epoch`]).
    pub metadata_changed: bool,
    /// Continuity ended: a mark record was passed, the connection was made anew,
    /// or an agent was restarted. Differences across it mean nothing.
    pub gap: bool,
}

/// A source failed as a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The host or socket could not be reached.
    #[error("cannot connect to {target}: {source}; {help}")]
    Connect {
        /// Host specification or socket path.
        target: String,
        /// What to look at or to try.
        help: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The connection or file broke while in use.
    #[error("{target}: {source}")]
    Io {
        /// Host specification or file.
        target: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No answer in time.
    #[error("{target}: no answer within {seconds} seconds")]
    Timeout {
        /// Host specification.
        target: String,
        /// The time-out that ran out.
        seconds: f64,
    },
    /// The peer or file does not keep to the format.
    #[error("{target}: {message}")]
    Malformed {
        /// Host specification or file, with the position where known.
        target: String,
        /// Field, offset and what is wrong with it.
        message: String,
    },
    /// A file of an archive is damaged or missing, and PCP has a status for that.
    #[error("{target}: {message}")]
    Damaged {
        /// The file, or the archive when no single file is to blame.
        target: String,
        /// What libpcp would answer.
        status: PmStatus,
        /// Field and offset where known, and what is wrong.
        message: String,
    },
    /// A specification of a host or archive that cannot be understood.
    #[error("{target}: {message}")]
    Specification {
        /// What was given.
        target: String,
        /// What is wrong with it, and what would do.
        message: String,
    },
    /// The source answered with a PMAPI status.
    #[error("{target}: {status}")]
    Status {
        /// Host specification or archive.
        target: String,
        /// The status.
        status: PmStatus,
    },
}

impl SourceError {
    /// The PMAPI status this error would be to a caller of libpcp.
    pub fn status(&self) -> PmStatus {
        match self {
            SourceError::Connect { source, .. } | SourceError::Io { source, .. } => {
                use rustix::io::Errno;
                let errno = source.raw_os_error().or(match source.kind() {
                    std::io::ErrorKind::HostUnreachable => Some(Errno::HOSTUNREACH.raw_os_error()),
                    std::io::ErrorKind::TimedOut => Some(Errno::TIMEDOUT.raw_os_error()),
                    _ => None,
                });
                errno.map_or(PmStatus::IPC, |errno| PmStatus(-errno))
            }
            SourceError::Timeout { .. } => PmStatus::TIMEOUT,
            SourceError::Malformed { .. } => PmStatus::IPC,
            SourceError::Specification { .. } => PmStatus::GENERIC,
            SourceError::Damaged { status, .. } | SourceError::Status { status, .. } => *status,
        }
    }

    /// True when the same attempt may succeed later without anyone doing something.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            SourceError::Connect { .. } | SourceError::Io { .. } | SourceError::Timeout { .. }
        )
    }

    /// True at the end of an archive.
    pub fn is_end_of_archive(&self) -> bool {
        matches!(self, SourceError::Status { status: PmStatus::EOL, .. })
    }
}
