//! Writes instance domains before values of their instances.
//!
//! An archive knows its domains at any time. A live source is asked again only
//! if a metric has values of other instances than before, or if pmcd gives notice of changes. So a
//! sample usually costs only its fetch.

use std::sync::Arc;

use pmderive_runtime::archive_writer::{ArchiveWriter, WriteError};
use pmderive_runtime::model::{InDom, InstId, InstanceDomain, Pmid, Timestamp};
use pmderive_runtime::result::{InstanceValue, MetricValues};
use pmderive_runtime::source::{FetchSource, Freshness, MetadataSource};
use rustc_hash::{FxHashMap, FxHashSet};

use super::error::RecorderError;
use super::selection::{Metric, search_in_order};
use crate::engine::Session;

/// The instance domains in the archive so far.
#[derive(Debug, Default)]
pub struct Domains {
    /// Each domain as the source gave it, and as it was written.
    known: FxHashMap<InDom, (Arc<InstanceDomain>, Arc<InstanceDomain>)>,
    /// Instances of each metric in the previous sample, in order.
    instances: FxHashMap<Pmid, Vec<InstId>>,
    /// The metadata of the source at the previous sample.
    epoch: u64,
    /// Domains to check for this sample, each once. True if a metric has other
    /// instances than in the previous sample.
    due: Vec<(InDom, bool)>,
    /// Domains that were written for this sample.
    written: Vec<InDom>,
}

impl Domains {
    /// Writes the domains that differ from those written before.
    ///
    /// # Errors
    /// The source failed, or the archive cannot be written.
    pub fn write<S: FetchSource>(
        &mut self,
        context: &mut Session<S>,
        is_archive: bool,
        metrics: &[Metric],
        sets: &[MetricValues],
        time: Timestamp,
        writer: &mut ArchiveWriter,
    ) -> Result<(), RecorderError> {
        self.written.clear();
        let epoch = context.metadata_epoch();
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            // The same identifiers may have other names.
            self.instances.clear();
        }
        self.find_due(is_archive, metrics, sets);
        if self.due.is_empty() {
            return Ok(());
        }
        let freshness = if is_archive { Freshness::Cached } else { Freshness::Current };
        let indoms: Vec<InDom> = self.due.iter().map(|(indom, _)| *indom).collect();
        let answers = context.instance_domain_of_each(&indoms, freshness)?;
        let mut recorded: FxHashMap<InDom, Vec<Pmid>> = FxHashMap::default();
        for metric in metrics {
            if let Some(indom) = metric.desc.indom {
                recorded.entry(indom).or_default().push(metric.recorded.pmid);
            }
        }
        for ((indom, has_changed), domain) in self.due.drain(..).zip(answers) {
            // Values without names are better than no values.
            let Ok(domain) = domain else { continue };
            let known = self.known.get(&indom);
            let is_known = known.is_some_and(|(known, _)| Arc::ptr_eq(known, &domain));
            if is_known && !has_changed {
                continue;
            }
            let (_, last) = known.cloned().unwrap_or_default();
            let values = || {
                let of_domain = recorded.get(&indom).into_iter().flatten();
                let lists = of_domain.filter_map(|pmid| self.instances.get(pmid));
                lists.flatten().copied()
            };
            let missing = values().filter(|id| domain.name(*id).is_none());
            let missing: FxHashSet<InstId> = missing.collect();
            let whole = complete(context, indom, &domain, missing, &last)?;
            if self.known.get(&indom).is_none_or(|(_, last)| *whole != **last) {
                match writer.instances(time, indom, &whole) {
                    // The next sample brings the change, also if its instances are the same.
                    Err(WriteError::ChangedTwice { .. }) => {
                        let pmids = recorded.get(&indom).into_iter().flatten();
                        pmids.for_each(|pmid| drop(self.instances.remove(pmid)));
                        continue;
                    }
                    written => written?,
                }
                self.written.push(indom);
            }
            self.known.insert(indom, (domain, whole));
        }
        Ok(())
    }

    /// Domains that were written for the last sample.
    pub fn written(&self) -> &[InDom] {
        &self.written
    }

    /// The instances of a domain, as they are now in the archive.
    pub fn get(&self, indom: InDom) -> Option<&InstanceDomain> {
        self.known.get(&indom).map(|(_, written)| &**written)
    }

    /// Finds the domains that may differ from those written before.
    fn find_due(&mut self, is_archive: bool, metrics: &[Metric], sets: &[MetricValues]) {
        let mut metric_of = search_in_order(metrics);
        let mut places: FxHashMap<InDom, usize> = FxHashMap::default();
        for set in sets {
            let Some(indom) = metric_of(set.pmid).and_then(|metric| metric.desc.indom) else {
                continue;
            };
            let values: &[InstanceValue] = set.outcome.as_deref().unwrap_or_default();
            let known = self.instances.entry(set.pmid).or_default();
            let is_same = known.iter().copied().eq(values.iter().map(|value| value.instance));
            if !is_same {
                known.clear();
                known.extend(values.iter().map(|value| value.instance));
            }
            let has_changed = !is_same || !self.known.contains_key(&indom);
            match places.get(&indom) {
                Some(place) => self.due[*place].1 |= has_changed,
                None if is_archive || has_changed => {
                    places.insert(indom, self.due.len());
                    self.due.push((indom, has_changed));
                }
                None => {}
            }
        }
    }
}

/// A domain extended by instances that have values and that it lacks. They
/// disappeared between the fetch and the question, or the archive knows them
/// from another time.
fn complete<S: FetchSource>(
    context: &mut Session<S>,
    indom: InDom,
    domain: &Arc<InstanceDomain>,
    mut missing: FxHashSet<InstId>,
    last: &InstanceDomain,
) -> Result<Arc<InstanceDomain>, RecorderError> {
    // Agents may give instances that no reader accepts.
    let is_sound = |(id, name): (InstId, &str)| id >= 0 && !name.contains('\0');
    if missing.is_empty() && domain.instances().all(is_sound) {
        return Ok(Arc::clone(domain));
    }
    let ever = context.known_instances(indom)?.unwrap_or_default();
    let others = last.instances().chain(ever.instances());
    let others: Vec<_> = others.filter(|(id, _)| missing.remove(id)).collect();
    let all = domain.instances().chain(others).filter(|one| is_sound(*one));
    let all = all.map(|(id, name)| (id, name.into()));
    Ok(Arc::new(InstanceDomain::new(all.collect())))
}
