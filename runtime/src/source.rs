//! What the engine asks of a source of metrics, wherever it gets them from:
//! pmcd, an archive, or this process itself.
//!
//! Sources deliver results in their encoded form ([`ResultBatch`]); decoding
//! into columns belongs to the evaluator, which knows the layout it expects.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{
    InDom, InstId, InstanceDomain, InstanceProfile, LabelLevel, LabelSet, MetricDesc, PmStatus,
    Pmid, StateChange, TextKind, TextSubject, Timestamp,
};
use crate::result::{FetchResult, MetricValues, ResultBatch};

/// One answer or status per question, in their order, unless the source itself
/// failed.
pub type Answers<T> = Result<Vec<Result<T, PmStatus>>, SourceError>;

/// Sets of labels with their levels, or a status.
pub type MetricLabels = Result<Result<Vec<(LabelLevel, LabelSet)>, PmStatus>, SourceError>;

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

    /// Each of several domains, in order, as
    /// [`MetadataSource::instance_domain`] gives one.
    fn instance_domain_of_each(
        &mut self,
        indoms: &[InDom],
        freshness: Freshness,
    ) -> Answers<Arc<InstanceDomain>> {
        indoms.iter().map(|indom| self.instance_domain(*indom, freshness)).collect()
    }

    /// Every instance of a domain that the source has ever seen: what an
    /// archive knows from all its time (`pmGetInDomArchive(3)`), else the
    /// domain as of now.
    fn known_instances(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.instance_domain(indom, Freshness::Current)
    }

    /// Names of those of the instances that the source knows from another time
    /// than now: an archive, as each was called last before the record that
    /// was fetched last, or else first after it.
    ///
    /// # Errors
    /// The source failed.
    fn names_at_other_times(
        &mut self,
        indom: InDom,
        instances: &[InstId],
    ) -> Result<Vec<(InstId, Box<str>)>, SourceError> {
        let _ = (indom, instances);
        Ok(Vec::new())
    }

    /// Identifier of the instance that a name stands for (`pmLookupInDom(3)`).
    /// A live source lets the agent decide what matches; without a match,
    /// `PM_ERR_INST`.
    fn lookup_instance(
        &mut self,
        indom: InDom,
        name: &str,
    ) -> Result<Result<InstId, PmStatus>, SourceError> {
        let domain = self.instance_domain(indom, Freshness::Current)?;
        Ok(domain.and_then(|domain| domain.lookup(name).ok_or(PmStatus::INST)))
    }

    /// Name of an instance (`pmNameInDom(3)`); of an unknown one, `PM_ERR_INST`.
    fn instance_name(
        &mut self,
        indom: InDom,
        instance: InstId,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        let domain = self.instance_domain(indom, Freshness::Current)?;
        let name = |domain: Arc<InstanceDomain>| domain.name(instance).map(Box::from);
        Ok(domain.and_then(|domain| name(domain).ok_or(PmStatus::INST)))
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

    /// The labels that hold for all values of a metric, level by level from the
    /// most general one, where there are any (`pmLookupLabels(3)`). What holds
    /// for one instance is at [`LabelLevel::Instances`]; [`LabelSet::merged`]
    /// makes one set of them.
    fn labels_of_metric(&mut self, pmid: Pmid) -> MetricLabels {
        let desc = self.lookup_descs(&[pmid])?.pop().unwrap_or(Err(PmStatus::PMID));
        let desc = match desc {
            Ok(desc) => desc,
            Err(status) => return Ok(Err(status)),
        };
        let mut levels = vec![LabelLevel::Context, LabelLevel::Domain(pmid.domain())];
        levels.extend(desc.indom.map(LabelLevel::InDom));
        levels.extend([LabelLevel::Cluster(pmid), LabelLevel::Item(pmid)]);
        let mut found = Vec::with_capacity(levels.len());
        for (level, sets) in levels.iter().zip(self.labels_of_each(&levels)?) {
            match sets {
                Ok(sets) => found.extend(sets.into_iter().map(|set| (*level, set))),
                Err(status) => return Ok(Err(status)),
            }
        }
        Ok(Ok(found))
    }

    /// Name of the source for messages: host name or archive path.
    fn name(&self) -> String;

    /// Name of the host that the metrics are of (`pmGetContextHostName(3)`).
    ///
    /// # Errors
    /// The source failed.
    fn host_name(&mut self) -> Result<String, SourceError> {
        Ok(self.name())
    }

    /// Time zone of the host that the metrics are of, in the form of the `TZ`
    /// environment variable (`pmNewContextZone(3)`); `None` where the source
    /// does not tell.
    ///
    /// # Errors
    /// The source failed.
    fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

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
    /// order; failures of single metrics are statuses inside them. There is a
    /// part with the time of the fetch even if the list has no metrics.
    ///
    /// # Errors
    /// The fetch as a whole failed; `batch` is unspecified. At the end of an
    /// archive that is [`SourceError::Status`] with `PM_ERR_EOL`.
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError>;

    /// Fetches metrics and copies what came into values of their own, one set
    /// per metric in the order of `pmids` (`pmFetch(3)`). For callers who
    /// fetch now and then; who does it on and on keeps a [`FetchList`].
    ///
    /// # Errors
    /// As for [`FetchSource::fetch`].
    fn fetch_values(&mut self, pmids: &[Pmid]) -> Result<FetchResult, SourceError> {
        let mut batch = ResultBatch::default();
        let events = self.fetch(&FetchList::new(distinct(pmids), Vec::new()), &mut batch)?;
        Ok(in_order_of(pmids, FetchResult::of_batch(&batch, events.changes)))
    }

    /// From now on fetches deliver the instances of the profile only
    /// (`pmAddProfile(3)`, `pmDelProfile(3)`). The profile outlives a reconnect.
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_NYI` where the source has no profiles.
    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        if profile.is_everything() {
            return Ok(());
        }
        Err(SourceError::Status { target: self.name(), status: PmStatus::NYI })
    }

    /// From where and in which direction the next fetches take their values
    /// (`pmSetMode(3)`); without a time the position stays.
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_MODE` where the source cannot do
    /// that; live sources know [`Mode::Live`] only, archives all the others.
    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        let _ = when;
        match mode {
            Mode::Live => Ok(()),
            _ => Err(SourceError::Status { target: self.name(), status: PmStatus::MODE }),
        }
    }

    /// Changes values at the source (`pmStore(3)`). The inner error: the source
    /// does not do that for one of the metrics, or for this user; what stood
    /// before it in the list may have been stored.
    ///
    /// # Errors
    /// The source failed.
    fn store(&mut self, values: &[MetricValues]) -> Result<Result<(), PmStatus>, SourceError> {
        let _ = values;
        Ok(Err(PmStatus::NOTHOST))
    }
}

/// The metrics of a list, each once, in the order in which they come first.
pub(crate) fn distinct(pmids: &[Pmid]) -> Vec<Pmid> {
    let mut seen = HashSet::new();
    pmids.iter().copied().filter(|pmid| seen.insert(*pmid)).collect()
}

/// The result of a fetch of [`distinct`] metrics, as one of all of `pmids`.
pub(crate) fn in_order_of(pmids: &[Pmid], mut result: FetchResult) -> FetchResult {
    let sets = std::mem::take(&mut result.sets);
    let of: HashMap<Pmid, &MetricValues> = sets.iter().map(|set| (set.pmid, set)).collect();
    let missing = |pmid| MetricValues { pmid, outcome: Err(PmStatus::IPC) };
    let set = |pmid: &Pmid| of.get(pmid).map_or_else(|| missing(*pmid), |set| (*set).clone());
    result.sets = pmids.iter().map(set).collect();
    result
}

/// Where the values of fetches come from in time (`pmSetMode(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `PM_MODE_LIVE`: from now.
    Live,
    /// `PM_MODE_INTERP`: from points in time that are equally far apart.
    Interpolated {
        /// Nanoseconds from one fetch to the next, negative for backwards.
        step: i64,
    },
    /// `PM_MODE_FORW`: from the next record with one of the metrics.
    Forward,
    /// `PM_MODE_BACK`: from the previous record with one of the metrics.
    Backward,
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
    /// What pmcd said has changed (`PMCD_*` of `pmFetch(3)`); none for other sources.
    pub changes: StateChange,
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
    /// No attempt to connect was made, as the one before failed not long ago
    /// (`pmReconnectContext(3)`).
    #[error("{failure}; the next attempt is due in {seconds:.0} seconds")]
    TooSoon {
        /// What the one before failed by.
        failure: String,
        /// How long attempts have to wait.
        seconds: f64,
    },
    /// No answer in time.
    #[error("{target}: no answer within {seconds} seconds")]
    Timeout {
        /// Host specification.
        target: String,
        /// The time-out that ran out.
        seconds: f64,
    },
    /// A connection that was made could not be used.
    #[error("{target}: {message}; {help}")]
    Handshake {
        /// Host specification or socket path.
        target: String,
        /// What libpcp would answer.
        status: PmStatus,
        /// What is wrong.
        message: String,
        /// What to look at or to try.
        help: String,
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
            SourceError::TooSoon { .. } => PmStatus(-rustix::io::Errno::TIMEDOUT.raw_os_error()),
            SourceError::Timeout { .. } => PmStatus::TIMEOUT,
            SourceError::Malformed { .. } => PmStatus::IPC,
            SourceError::Specification { .. } => PmStatus::GENERIC,
            SourceError::Damaged { status, .. }
            | SourceError::Handshake { status, .. }
            | SourceError::Status { status, .. } => *status,
        }
    }

    /// True when the same attempt may succeed later without anyone doing something.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            SourceError::Connect { .. }
                | SourceError::Io { .. }
                | SourceError::Timeout { .. }
                | SourceError::TooSoon { .. }
                | SourceError::Handshake { status: PmStatus::CONNLIMIT, .. }
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
