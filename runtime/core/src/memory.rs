//! A source of metrics in memory: for tests, for benchmarks, and for
//! applications with values of their own.
//!
//! A [`MemorySource`] keeps its metadata in tables and takes its values from a
//! [`Feed`]. The feed answers each fetch and decides about time, gaps and
//! failures. For current metrics of this machine, agents of `pmderive_local`
//! are the better choice.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crate::model::{
    InDom, InstId, InstanceDomain, InstanceProfile, LabelLevel, LabelSet, MetricDesc, PmStatus,
    Pmid, TextKind, TextSubject,
};
use crate::result::ResultBatch;
use crate::source::{
    Answer, Fact, FetchEvents, FetchList, FetchSource, MetadataSource, Question, SourceError,
    by_simpler_questions, is_at_or_below,
};

/// Answers the fetches of a [`MemorySource`].
///
/// ```
/// use pmderive_core::memory::{Feed, MemoryMetadata, MemorySource};
/// use pmderive_core::model::*;
/// use pmderive_core::result::{ResultBatch, ResultWriter};
/// use pmderive_core::source::*;
///
/// /// Counts the fetches, one a second.
/// struct Fetches(u32);
///
/// impl Feed for Fetches {
///     fn fetch(
///         &mut self,
///         list: &FetchList,
///         _: &mut MemoryMetadata,
///         batch: &mut ResultBatch,
///     ) -> Result<FetchEvents, SourceError> {
///         self.0 += 1;
///         let time = Timestamp::new(i64::from(self.0), 0);
///         let mut writer = ResultWriter::new(batch.add_part(), time);
///         for pmid in list.pmids() {
///             writer.set(*pmid);
///             writer.in_place(-1, self.0);
///         }
///         Ok(FetchEvents::default())
///     }
/// }
///
/// let mut metadata = MemoryMetadata::default();
/// metadata.add_metric("fetches", MetricDesc {
///     pmid: Pmid::new(400, 0, 0),
///     value_type: ValueType::U32,
///     indom: None,
///     semantics: Semantics::Counter,
///     units: Units::NONE,
/// });
/// let mut source = MemorySource::new("an example", metadata, Fetches(0));
/// assert_eq!(source.traverse("").unwrap(), ["fetches"]);
/// let list = FetchList::new(vec![Pmid::new(400, 0, 0)], vec![]);
/// let mut batch = ResultBatch::default();
/// source.fetch(&list, &mut batch).unwrap();
/// assert_eq!(batch.timestamp(), Timestamp::new(1, 0));
/// ```
pub trait Feed {
    /// Fills the empty `batch` as [`FetchSource::fetch`] does. The feed updates
    /// the instances in `metadata` to those of this fetch. If `batch` then
    /// lacks instance domains of the list, the source adds them from
    /// `metadata`.
    ///
    /// # Errors
    /// The fetch as a whole failed.
    fn fetch(
        &mut self,
        list: &FetchList,
        metadata: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError>;
}

/// A function with these arguments is a feed.
impl<F> Feed for F
where
    F: FnMut(&FetchList, &mut MemoryMetadata, &mut ResultBatch) -> Result<FetchEvents, SourceError>,
{
    fn fetch(
        &mut self,
        list: &FetchList,
        metadata: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self(list, metadata, batch)
    }
}

/// Names, descriptors, instance domains, help texts and labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryMetadata {
    names: BTreeMap<Box<str>, NamedMetric>,
    /// Number of names that were ever added.
    added: usize,
    descs: HashMap<Pmid, MetricDesc>,
    domains: HashMap<InDom, Arc<InstanceDomain>>,
    texts: HashMap<(TextSubject, TextKind), Box<str>>,
    labels: HashMap<LabelLevel, Vec<LabelSet>>,
    epoch: u64,
}

/// The metric of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamedMetric {
    pmid: Pmid,
    /// Number of names that were added before it.
    position: usize,
}

impl MemoryMetadata {
    /// Adds a metric, or replaces the descriptor of one. A metric may have
    /// several names. The source lists names in the order in which they were
    /// added.
    pub fn add_metric(&mut self, name: impl Into<Box<str>>, desc: MetricDesc) {
        self.add_name(name, desc.pmid);
        self.descs.insert(desc.pmid, desc);
    }

    /// Gives a metric a name. The metric may have no descriptor: pmcd can have
    /// names for metrics that no agent knows.
    ///
    /// Names are not checked. The name of a metric may also be a node with other
    /// metrics below it, as in some archives.
    pub fn add_name(&mut self, name: impl Into<Box<str>>, pmid: Pmid) {
        let named = NamedMetric { pmid, position: self.added };
        self.added += 1;
        self.names.entry(name.into()).or_insert(named).pmid = pmid;
        self.epoch += 1;
    }

    /// Sets the instances of a domain.
    pub fn set_instances(&mut self, indom: InDom, instances: Vec<(InstId, Box<str>)>) {
        let instances = InstanceDomain::new(instances);
        if self.domains.get(&indom).is_none_or(|known| **known != instances) {
            self.domains.insert(indom, Arc::new(instances));
        }
    }

    /// Sets the help text of a metric or an instance domain.
    pub fn set_text(&mut self, of: TextSubject, kind: TextKind, text: impl Into<Box<str>>) {
        self.texts.insert((of, kind), text.into());
    }

    /// Sets the labels of a level: one set, or one for each instance that has
    /// labels. An empty list removes the labels.
    pub fn set_labels(&mut self, level: LabelLevel, sets: Vec<LabelSet>) {
        self.labels.insert(level.of_cluster(), sets);
    }

    /// Number of metrics.
    pub fn len(&self) -> usize {
        self.descs.len()
    }

    /// True if there are no metrics.
    pub fn is_empty(&self) -> bool {
        self.descs.is_empty()
    }

    /// Descriptor of a metric.
    pub fn desc(&self, pmid: Pmid) -> Option<&MetricDesc> {
        self.descs.get(&pmid)
    }

    /// Removes a name. The metric goes with its last name. True if the name
    /// existed.
    pub fn remove_name(&mut self, name: &str) -> bool {
        let Some(named) = self.names.remove(name) else { return false };
        if self.names.values().all(|other| other.pmid != named.pmid) {
            self.descs.remove(&named.pmid);
        }
        self.epoch += 1;
        true
    }

    /// Identifier of the metric with a name.
    ///
    /// # Errors
    /// `PM_ERR_NONLEAF` for a name of a group, `PM_ERR_NAME` for an unknown one.
    pub fn pmid_of(&self, name: &str) -> Result<Pmid, PmStatus> {
        match self.names.get(name) {
            Some(named) => Ok(named.pmid),
            None if self.names_at(name).next().is_some() => Err(PmStatus::NONLEAF),
            None => Err(PmStatus::NAME),
        }
    }

    /// All names of a metric, in the order in which they were added.
    pub fn names_of(&self, pmid: Pmid) -> Vec<&str> {
        let mut names: Vec<_> = self.names.iter().filter(|(_, n)| n.pmid == pmid).collect();
        names.sort_unstable_by_key(|(_, named)| named.position);
        names.into_iter().map(|(name, _)| &**name).collect()
    }

    /// The descriptor of the metric with a name.
    pub fn lookup(&self, name: &str) -> Option<&MetricDesc> {
        self.desc(self.names.get(name)?.pmid)
    }

    /// Instances of a domain. The same `Arc` as long as they do not change.
    ///
    /// # Errors
    /// `PM_ERR_INDOM` if the source does not have the domain.
    pub fn instances(&self, indom: InDom) -> Result<Arc<InstanceDomain>, PmStatus> {
        self.domains.get(&indom).cloned().ok_or(PmStatus::INDOM)
    }

    /// Help text. If there is only one line of text, it serves as the help text
    /// too.
    ///
    /// # Errors
    /// `PM_ERR_TEXT` if there is no text.
    pub fn text(&self, of: TextSubject, kind: TextKind) -> Result<&str, PmStatus> {
        let text = self.own_text(of, kind).or_else(|| self.own_text(of, TextKind::OneLine));
        text.ok_or(PmStatus::TEXT)
    }

    /// The help text of exactly this kind.
    pub fn own_text(&self, of: TextSubject, kind: TextKind) -> Option<&str> {
        self.texts.get(&(of, kind)).map(|text| &**text)
    }

    /// Labels of a level.
    ///
    /// # Errors
    /// `PM_ERR_NOLABELS` while the source has no labels at all. `PM_ERR_NOAGENT` for
    /// a domain without metrics ([`Pmid::domain`]), as from pmcd.
    pub fn labels(&self, level: LabelLevel) -> Result<&[LabelSet], PmStatus> {
        if self.labels.is_empty() {
            return Err(PmStatus::NOLABELS);
        }
        if let Some(sets) = self.labels.get(&level.of_cluster()) {
            return Ok(sets);
        }
        let domain = match level {
            LabelLevel::Context => return Ok(&[]),
            LabelLevel::Domain(domain) => domain,
            LabelLevel::InDom(indom) | LabelLevel::Instances(indom) => indom.domain(),
            LabelLevel::Cluster(pmid) | LabelLevel::Item(pmid) => pmid.domain(),
        };
        if self.has_agent(domain) { Ok(&[]) } else { Err(PmStatus::NOAGENT) }
    }

    /// True when a domain ([`Pmid::domain`]) has metrics.
    pub fn has_agent(&self, domain: u32) -> bool {
        self.descs.keys().any(|pmid| pmid.domain() == domain)
    }

    /// All names at or below `prefix`, in the order in which they were added.
    /// The empty prefix matches all names.
    ///
    /// # Errors
    /// `PM_ERR_NAME` if there are none.
    pub fn traverse(&self, prefix: &str) -> Result<Vec<&str>, PmStatus> {
        let mut names: Vec<(&str, NamedMetric)> = self.named_at(prefix).collect();
        if names.is_empty() && !prefix.is_empty() {
            return Err(PmStatus::NAME);
        }
        names.sort_unstable_by_key(|(_, named)| named.position);
        Ok(names.into_iter().map(|(name, _)| name).collect())
    }

    /// All names at or below `prefix`, in byte order. The empty prefix matches
    /// all names.
    pub fn names_at<'a>(&'a self, prefix: &str) -> impl Iterator<Item = &'a str> {
        self.named_at(prefix).map(|(name, _)| name)
    }

    fn named_at<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (&'a str, NamedMetric)> {
        self.names
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map(|(name, named)| (&**name, *named))
            .take_while(move |(name, _)| name.starts_with(prefix))
            .filter(move |(name, _)| is_at_or_below(name, prefix))
    }
}

/// A source with metadata in memory and values from a feed. [`Feed`] shows one
/// that answers fetches.
///
/// ```
/// use pmderive_core::memory::{MemoryMetadata, MemorySource};
/// use pmderive_core::model::*;
/// use pmderive_core::source::MetadataSource;
///
/// let pmid = Pmid::new(400, 0, 0);
/// let (value_type, semantics) = (ValueType::U32, Semantics::Counter);
/// let desc = MetricDesc { pmid, value_type, indom: None, semantics, units: Units::NONE };
/// let mut metadata = MemoryMetadata::default();
/// metadata.add_metric("my.requests", desc);
/// // Checking definitions needs no values, so `()` is feed enough.
/// let mut source = MemorySource::new("an example", metadata, ());
/// assert_eq!(source.lookup_names(&["my.requests"])?, [Ok(pmid)]);
/// # Ok::<(), pmderive_core::source::SourceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemorySource<F> {
    name: Box<str>,
    metadata: MemoryMetadata,
    feed: F,
    profile: InstanceProfile,
}

impl<F> MemorySource<F> {
    /// A new source. Messages call it `name`.
    pub fn new(name: impl Into<Box<str>>, metadata: MemoryMetadata, feed: F) -> MemorySource<F> {
        let profile = InstanceProfile::default();
        MemorySource { name: name.into(), metadata, feed, profile }
    }

    /// The feed that answers the fetches.
    pub fn feed(&mut self) -> &mut F {
        &mut self.feed
    }

    /// The metadata of the source's metrics.
    pub fn metadata(&mut self) -> &mut MemoryMetadata {
        &mut self.metadata
    }
}

impl<F> MetadataSource for MemorySource<F> {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        for question in questions {
            let metadata = &self.metadata;
            answers.push(match *question {
                Question::Pmid(name) | Question::PmidIfAny(name) => {
                    metadata.pmid_of(name).map(Fact::Pmid)
                }
                Question::Desc(pmid) => {
                    metadata.desc(pmid).copied().map(Fact::Desc).ok_or(PmStatus::PMID)
                }
                Question::Domain(indom, _) => metadata.instances(indom).map(Fact::Domain),
                Question::MetricsBelow(node) => metadata
                    .traverse(node)
                    .map(|names| Fact::Names(names.into_iter().map(Box::from).collect())),
                Question::Text(of, kind) => {
                    metadata.text(of, kind).map(|text| Fact::Text(text.into()))
                }
                Question::Labels(level) => {
                    metadata.labels(level).map(|sets| Fact::Labels(sets.to_vec()))
                }
                other => by_simpler_questions(self, other)?,
            });
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.name.to_string()
    }

    fn metadata_epoch(&self) -> u64 {
        self.metadata.epoch
    }
}

impl<F: Feed> FetchSource for MemorySource<F> {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        batch.clear();
        let events = self.feed.fetch(list, &mut self.metadata, batch)?;
        for indom in list.domains().iter().skip(batch.domains.len()) {
            batch.domains.push(self.metadata.instances(*indom));
        }
        batch.select(&self.profile, |pmid| self.metadata.desc(pmid)?.indom);
        Ok(events)
    }

    /// Removes values of the feed that the profile does not admit.
    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        self.profile.clone_from(profile);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LabelFlags, Semantics, Timestamp, Units, ValueType};
    use crate::result::ResultWriter;

    const DOMAIN: InDom = InDom::new(1, 0);

    fn metadata(names: &[&str]) -> MemoryMetadata {
        let mut metadata = MemoryMetadata::default();
        for (item, name) in (0..).zip(names) {
            metadata.add_metric(
                *name,
                MetricDesc {
                    pmid: Pmid::new(1, 0, item),
                    value_type: ValueType::U32,
                    indom: None,
                    semantics: Semantics::Instant,
                    units: Units::NONE,
                },
            );
        }
        metadata
    }

    #[test]
    fn names_and_domains() {
        let mut metadata = metadata(&["a.bc", "a.b.d", "a.b.c", "a.b", "b"]);
        metadata.set_instances(DOMAIN, vec![(3, "x".into())]);
        let before = metadata.instances(DOMAIN).expect("a domain");
        metadata.set_instances(DOMAIN, vec![(3, "x".into())]);
        assert!(Arc::ptr_eq(&before, &metadata.instances(DOMAIN).expect("a domain")));
        assert!(metadata.names_at("").is_sorted());
        // A name keeps its position, even when it stands for another metric.
        let desc = *metadata.lookup("b").expect("a metric");
        metadata.add_metric("a.b.d", desc);
        let mut source = MemorySource::new("test", metadata, ());
        for (prefix, names) in [
            ("", &["a.bc", "a.b.d", "a.b.c", "a.b", "b"][..]),
            ("a", &["a.bc", "a.b.d", "a.b.c", "a.b"]),
            ("a.b", &["a.b.d", "a.b.c", "a.b"]),
            ("b", &["b"]),
        ] {
            assert_eq!(source.traverse(prefix).expect("memory"), names, "{prefix}");
        }
        for prefix in ["a.", "c"] {
            let error = source.traverse(prefix).expect_err("no such node");
            assert_eq!(error.status(), PmStatus::NAME, "{prefix}");
            assert_eq!(source.children(prefix).expect("memory"), Err(PmStatus::NAME), "{prefix}");
        }
        assert_eq!(
            source.lookup_names(&["b", "a", "c"]).expect("memory"),
            [Ok(Pmid::new(1, 0, 4)), Err(PmStatus::NONLEAF), Err(PmStatus::NAME)]
        );
        let mut empty = MemorySource::new("empty", MemoryMetadata::default(), ());
        assert!(empty.traverse("").expect("memory").is_empty());
    }

    #[test]
    fn texts() {
        let mut metadata = metadata(&["a", "b", "c"]);
        let [a, b, c] = [0, 1, 2].map(|item| TextSubject::Metric(Pmid::new(1, 0, item)));
        let domain = TextSubject::Domain(DOMAIN);
        metadata.set_text(a, TextKind::OneLine, "one");
        metadata.set_text(a, TextKind::Help, "all of it");
        metadata.set_text(b, TextKind::OneLine, "other");
        metadata.set_text(b, TextKind::OneLine, "only");
        metadata.set_text(domain, TextKind::Help, "help");
        let mut source = MemorySource::new("test", metadata, ());
        let mut text = |of, kind| source.text(of, kind).expect("memory");
        for (of, one_line, help) in [
            (a, Ok("one"), Ok("all of it")),
            (b, Ok("only"), Ok("only")),
            (c, Err(PmStatus::TEXT), Err(PmStatus::TEXT)),
            (domain, Err(PmStatus::TEXT), Ok("help")),
        ] {
            assert_eq!(text(of, TextKind::OneLine).as_deref(), one_line.as_ref().copied());
            assert_eq!(text(of, TextKind::Help).as_deref(), help.as_ref().copied());
        }
    }

    #[test]
    fn labels() {
        let mut source = MemorySource::new("test", metadata(&["a"]), ());
        let level = LabelLevel::Cluster(Pmid::new(1, 0, 5));
        assert_eq!(source.labels(level).expect("memory"), Err(PmStatus::NOLABELS));
        let set = LabelSet::parse(r#"{"place":"here"}"#, LabelFlags::default());
        let sets = vec![set.expect("a set of labels")];
        source.metadata().set_labels(level, sets.clone());
        let (own, other) = (Pmid::new(1, 0, 0), Pmid::new(2, 0, 0));
        let (none, nobody) = (Ok(vec![]), Err(PmStatus::NOAGENT));
        for (level, expected) in [
            (LabelLevel::Context, &none),
            (LabelLevel::Domain(1), &none),
            (LabelLevel::Domain(2), &nobody),
            (LabelLevel::Cluster(own), &Ok(sets)),
            (LabelLevel::Cluster(other), &nobody),
            (LabelLevel::Item(own), &none),
            (LabelLevel::Item(other), &nobody),
            (LabelLevel::InDom(DOMAIN), &none),
            (LabelLevel::Instances(InDom::new(2, 0)), &nobody),
        ] {
            assert_eq!(&source.labels(level).expect("memory"), expected, "{level:?}");
        }
        source.metadata().set_labels(level, vec![]);
        assert_eq!(source.labels(level).expect("memory"), none);
    }

    /// Delivers no values, always at the same time.
    struct Silent;

    impl Feed for Silent {
        fn fetch(
            &mut self,
            _: &FetchList,
            _: &mut MemoryMetadata,
            batch: &mut ResultBatch,
        ) -> Result<FetchEvents, SourceError> {
            ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
            Ok(FetchEvents::default())
        }
    }

    #[test]
    fn a_fetch_leaves_nothing_of_the_one_before() {
        let mut source = MemorySource::new("test", metadata(&["a"]), Silent);
        let list = FetchList::new(vec![], vec![DOMAIN]);
        let mut batch = ResultBatch::default();
        for instances in 1..3 {
            let all = (0..instances).map(|id| (id, format!("x{id}").into())).collect();
            source.metadata().set_instances(DOMAIN, all);
            source.fetch(&list, &mut batch).expect("memory");
            assert_eq!(batch.parts().len(), 1);
            let counts: Vec<_> =
                batch.domains.iter().flatten().map(|domain| domain.len()).collect();
            assert_eq!(counts, [usize::try_from(instances).expect("few")]);
        }
    }
}
