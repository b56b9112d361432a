//! What the engine asks of a source of metrics, wherever it gets them from:
//! pmcd, an archive, or this process itself.
//!
//! Sources deliver results in their encoded form ([`ResultBatch`]); decoding
//! into columns belongs to the evaluator, which knows the layout it expects.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind, TextSubject,
};
use crate::result::ResultBatch;

/// One answer or status per question, in their order, unless the source itself
/// failed.
pub type Answers<T> = Result<Vec<Result<T, PmStatus>>, SourceError>;

/// Looks names, descriptors, instance domains, help texts and labels up.
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
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_NAME` where there is no such node.
    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError>;

    /// What is directly below a node of the name space, whose full name is
    /// given; the empty name is the root (`pmGetChildrenStatus(3)`). A leaf has
    /// no children, and an unknown node gives `PM_ERR_NAME`. The order is the
    /// source's.
    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        match self.traverse(node) {
            Ok(names) => Ok(Ok(Child::below(node, names.iter().map(String::as_str)))),
            Err(SourceError::Status { status, .. }) => Ok(Err(status)),
            Err(error) => Err(error),
        }
    }

    /// All full names of a metric, at least one (`pmNameAll(3)`). A metric
    /// without a name gives `PM_ERR_PMID`.
    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        let all = self.traverse("")?;
        let names: Vec<&str> = all.iter().map(String::as_str).collect();
        let pmids = self.lookup_names(&names)?;
        let named = names.iter().zip(pmids).filter(|(_, found)| *found == Ok(pmid));
        let named: Vec<Box<str>> = named.map(|(name, _)| Box::from(*name)).collect();
        Ok(if named.is_empty() { Err(PmStatus::PMID) } else { Ok(named) })
    }

    /// [`MetadataSource::names_of`] each metric, in order.
    fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        pmids.iter().map(|pmid| self.names_of(*pmid)).collect()
    }

    /// Help text (`pmLookupText(3)`, `pmLookupInDomText(3)`). Where only one
    /// line is known, that is the help text as well. Without a text,
    /// `PM_ERR_TEXT`.
    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        let _ = (of, kind);
        Ok(Err(PmStatus::TEXT))
    }

    /// The [`MetadataSource::text`] of each subject, in order.
    fn text_of_each(&mut self, subjects: &[TextSubject], kind: TextKind) -> Answers<Box<str>> {
        subjects.iter().map(|of| self.text(*of, kind)).collect()
    }

    /// Labels as one level gives them; for an archive, as of the record that
    /// was fetched last (`pmGetContextLabels(3)` and its kin). No set without
    /// labels, one set with them, and for [`LabelLevel::Instances`] as many as
    /// there are instances with labels. A source that knows no labels at all
    /// gives `PM_ERR_NOLABELS`.
    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        let _ = level;
        Ok(Err(PmStatus::NOLABELS))
    }

    /// The [`MetadataSource::labels`] of each level, in order.
    fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        levels.iter().map(|level| self.labels(*level)).collect()
    }

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

/// What is directly below a node of the name space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The one component that is added to the node's name.
    pub name: Box<str>,
    /// True for a metric, false for a node with children of its own.
    pub is_leaf: bool,
}

impl Child {
    /// The children of a node among full names of metrics, each once, in the
    /// order in which they come first. What is both a metric and a node counts
    /// as a node; empty components are left out.
    pub fn below<'n>(node: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<Child> {
        let mut children: Vec<Child> = Vec::new();
        let mut positions: HashMap<&str, usize> = HashMap::new();
        for name in names {
            let below = match name.strip_prefix(node) {
                Some(rest) if node.is_empty() => rest,
                Some(rest) if rest.starts_with('.') => &rest[1..],
                _ => continue,
            };
            let (component, is_leaf) = match below.split_once('.') {
                Some((component, _)) => (component, false),
                None => (below, true),
            };
            // Nobody could ask for the children of such a one.
            if component.is_empty() {
                continue;
            }
            let position = *positions.entry(component).or_insert(children.len());
            match children.get_mut(position) {
                Some(child) => child.is_leaf &= is_leaf,
                None => children.push(Child { name: component.into(), is_leaf }),
            }
        }
        children
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_the_next_components() {
        let names = ["a.b.c", "a.b.d", "ab.x", "a.e", "a.b", "f", ".x", "a..y", "a.", ""];
        let children = |node| {
            let children = Child::below(node, names);
            children.into_iter().map(|child| (child.name.into(), child.is_leaf)).collect()
        };
        let expect = |list: &[(&str, bool)]| -> Vec<(String, bool)> {
            list.iter().map(|(name, is_leaf)| (name.to_string(), *is_leaf)).collect()
        };
        let root: Vec<(String, bool)> = children("");
        assert_eq!(root, expect(&[("a", false), ("ab", false), ("f", true)]));
        assert_eq!(children("a"), expect(&[("b", false), ("e", true)]));
        assert_eq!(children("a.b"), expect(&[("c", true), ("d", true)]));
        assert_eq!(children("f"), []);
    }
}
