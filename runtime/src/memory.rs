//! Metrics held in memory, as a source for the engine: for tests, for
//! benchmarks, and for applications that bring their own values.
//!
//! A [`MemorySource`] has its metadata in tables and its values from a
//! [`Feed`], which answers each fetch and decides about time, gaps and
//! failures. Agents of [`crate::local`] are the better choice for metrics of
//! this machine as of now.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crate::model::{InDom, InstId, InstanceDomain, MetricDesc, PmStatus, Pmid};
use crate::result::ResultBatch;
use crate::source::{FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError};

/// Answers the fetches of a [`MemorySource`].
///
/// ```
/// use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
/// use pmderive_runtime::model::*;
/// use pmderive_runtime::result::{ResultBatch, ResultWriter};
/// use pmderive_runtime::source::*;
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
///         writer.finish();
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
    /// Fills `batch` as [`FetchSource::fetch`] does. Instances of `metadata`
    /// are to be those of the moment of the fetch; instance domains that the
    /// list asks for and `batch` does not have afterwards are taken from there.
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

/// Names, descriptors and instance domains.
#[derive(Clone, Debug, Default)]
pub struct MemoryMetadata {
    names: BTreeMap<Box<str>, Pmid>,
    descs: HashMap<Pmid, MetricDesc>,
    domains: HashMap<InDom, Arc<InstanceDomain>>,
    epoch: u64,
}

impl MemoryMetadata {
    /// Adds a metric, or gives one another descriptor. A metric may have
    /// several names.
    pub fn add_metric(&mut self, name: impl Into<Box<str>>, desc: MetricDesc) {
        self.names.insert(name.into(), desc.pmid);
        self.descs.insert(desc.pmid, desc);
        self.epoch += 1;
    }

    /// Says which instances a domain has from now on.
    pub fn set_instances(&mut self, indom: InDom, instances: Vec<(InstId, Box<str>)>) {
        let instances = InstanceDomain::new(instances);
        if self.domains.get(&indom).is_none_or(|known| **known != instances) {
            self.domains.insert(indom, Arc::new(instances));
        }
    }

    /// Number of metrics.
    pub fn len(&self) -> usize {
        self.descs.len()
    }

    /// True without metrics.
    pub fn is_empty(&self) -> bool {
        self.descs.is_empty()
    }

    /// Descriptor of a metric.
    pub fn desc(&self, pmid: Pmid) -> Option<&MetricDesc> {
        self.descs.get(&pmid)
    }

    /// The metric of a name.
    pub fn lookup(&self, name: &str) -> Option<&MetricDesc> {
        self.desc(*self.names.get(name)?)
    }

    /// Instances of a domain; the same `Arc` while nothing changed.
    pub fn instances(&self, indom: InDom) -> Result<Arc<InstanceDomain>, PmStatus> {
        self.domains.get(&indom).cloned().ok_or(PmStatus::INDOM)
    }

    /// All names at or below one; the empty one is above all.
    pub fn names_at<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.names
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map(|(name, _)| &**name)
            .take_while(move |name| name.starts_with(prefix))
            .filter(move |name| {
                prefix.is_empty() || matches!(name.as_bytes().get(prefix.len()), None | Some(b'.'))
            })
    }
}

/// A source whose metadata is in memory and whose values come from a feed.
#[derive(Clone, Debug)]
pub struct MemorySource<F> {
    name: Box<str>,
    metadata: MemoryMetadata,
    feed: F,
}

impl<F> MemorySource<F> {
    /// Makes a source; the name is for messages.
    pub fn new(name: impl Into<Box<str>>, metadata: MemoryMetadata, feed: F) -> MemorySource<F> {
        MemorySource { name: name.into(), metadata, feed }
    }

    /// What answers its fetches.
    pub fn feed(&mut self) -> &mut F {
        &mut self.feed
    }

    /// What it knows of its metrics.
    pub fn metadata(&mut self) -> &mut MemoryMetadata {
        &mut self.metadata
    }
}

impl<F> MetadataSource for MemorySource<F> {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        let lookup = |name: &&str| match self.metadata.names.get(*name) {
            Some(pmid) => Ok(*pmid),
            None if self.metadata.names_at(name).next().is_some() => Err(PmStatus::NONLEAF),
            None => Err(PmStatus::NAME),
        };
        Ok(names.iter().map(lookup).collect())
    }

    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        let lookup = |pmid: &Pmid| self.metadata.desc(*pmid).copied().ok_or(PmStatus::PMID);
        Ok(pmids.iter().map(lookup).collect())
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        _: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        Ok(self.metadata.instances(indom))
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        Ok(self.metadata.names_at(prefix).map(str::to_owned).collect())
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
        let events = self.feed.fetch(list, &mut self.metadata, batch)?;
        for indom in list.domains().iter().skip(batch.domains.len()) {
            batch.domains.push(self.metadata.instances(*indom));
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Semantics, Units, ValueType};

    #[test]
    fn names_and_domains() {
        let mut metadata = MemoryMetadata::default();
        for (item, name) in (0..).zip(["a.b", "a.bc", "a.b.c", "b"]) {
            metadata.add_metric(
                name,
                MetricDesc {
                    pmid: Pmid::new(1, 0, item),
                    value_type: ValueType::U32,
                    indom: None,
                    semantics: Semantics::Instant,
                    units: Units::NONE,
                },
            );
        }
        let indom = InDom::new(1, 0);
        metadata.set_instances(indom, vec![(3, "x".into())]);
        let before = metadata.instances(indom).expect("a domain");
        metadata.set_instances(indom, vec![(3, "x".into())]);
        assert!(Arc::ptr_eq(&before, &metadata.instances(indom).expect("a domain")));
        let mut source = MemorySource::new("test", metadata, ());
        for (prefix, names) in [
            ("", &["a.b", "a.b.c", "a.bc", "b"][..]),
            ("a", &["a.b", "a.b.c", "a.bc"]),
            ("a.b", &["a.b", "a.b.c"]),
            ("a.", &[]),
            ("c", &[]),
        ] {
            assert_eq!(source.traverse(prefix).expect("memory"), names, "{prefix}");
        }
        assert_eq!(
            source.lookup_names(&["b", "a", "c"]).expect("memory"),
            [Ok(Pmid::new(1, 0, 3)), Err(PmStatus::NONLEAF), Err(PmStatus::NAME)]
        );
    }
}
