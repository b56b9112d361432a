//! What a live context has learnt of names, descriptors, instance domains and labels.
//!
//! Answers go in, and come out until they are declared out of date. Instance
//! domains that turn out unchanged keep their `Arc`, so that callers can
//! compare pointers. Nothing is asked here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, Pmid, StateChange};
use crate::pdu::Instances;

#[derive(Debug, Default)]
pub(super) struct MetadataCache {
    pmids: HashMap<Box<str>, Pmid>,
    descs: HashMap<Pmid, MetricDesc>,
    domains: HashMap<InDom, CachedDomain>,
    names: HashMap<Pmid, Vec<Box<str>>>,
    /// Labels of all levels but that of instances, which come and go.
    labels: HashMap<LabelLevel, Vec<LabelSet>>,
    /// Name of the host as pmcd gives it.
    pub(super) host_name: Option<String>,
}

#[derive(Debug)]
struct CachedDomain {
    domain: Arc<InstanceDomain>,
    current: bool,
}

impl MetadataCache {
    pub(super) fn pmid(&self, name: &str) -> Option<Pmid> {
        self.pmids.get(name).copied()
    }

    pub(super) fn learn_name(&mut self, name: &str, pmid: Pmid) {
        self.pmids.insert(name.into(), pmid);
    }

    pub(super) fn desc(&self, pmid: Pmid) -> Option<MetricDesc> {
        self.descs.get(&pmid).copied()
    }

    pub(super) fn learn_desc(&mut self, desc: MetricDesc) {
        self.descs.insert(desc.pmid, desc);
    }

    pub(super) fn domain(&self, indom: InDom) -> Option<Arc<InstanceDomain>> {
        self.domains
            .get(&indom)
            .filter(|cached| cached.current)
            .map(|cached| Arc::clone(&cached.domain))
    }

    /// The domain of an answer: the one known already if nothing changed.
    pub(super) fn learn_domain(&mut self, instances: &Instances<'_>) -> Arc<InstanceDomain> {
        if let Some(cached) = self.domains.get_mut(&instances.indom)
            && same_instances(&cached.domain, instances)
        {
            cached.current = true;
            return Arc::clone(&cached.domain);
        }
        let names = || instances.iter().map(|(id, name)| (id, external_name(name)));
        let in_bytes = names().filter(|(_, name)| matches!(name, Cow::Owned(_))).map(|(id, _)| id);
        let entries = names().map(|(id, name)| (id, name.into())).collect();
        let domain = InstanceDomain::new(entries).with_names_in_bytes(in_bytes.collect());
        let domain = Arc::new(domain);
        let cached = CachedDomain { domain: Arc::clone(&domain), current: true };
        self.domains.insert(instances.indom, cached);
        domain
    }

    /// All names of a metric.
    pub(super) fn names(&self, pmid: Pmid) -> Option<Vec<Box<str>>> {
        self.names.get(&pmid).cloned()
    }

    pub(super) fn learn_names(&mut self, pmid: Pmid, names: &[Box<str>]) {
        self.names.insert(pmid, names.into());
    }

    pub(super) fn labels(&self, level: LabelLevel) -> Option<Vec<LabelSet>> {
        self.labels.get(&level).cloned()
    }

    pub(super) fn learn_labels(&mut self, level: LabelLevel, sets: &[LabelSet]) {
        if !matches!(level, LabelLevel::Instances(_)) {
            self.labels.insert(level, sets.into());
        }
    }

    /// Forgets what a notice of pmcd concerns.
    pub(super) fn forget(&mut self, change: StateChange) {
        if change.concerns_labels() {
            self.labels.clear();
        }
        if change.host_name_changed() {
            self.host_name = None;
        }
        if change.concerns_metadata() {
            self.invalidate();
        }
    }

    /// Forgets everything, and asks for every domain again.
    pub(super) fn invalidate(&mut self) {
        self.pmids.clear();
        self.descs.clear();
        self.names.clear();
        self.labels.clear();
        self.host_name = None;
        self.domains.values_mut().for_each(|cached| cached.current = false);
    }
}

fn same_instances(domain: &InstanceDomain, instances: &Instances<'_>) -> bool {
    domain.len() == instances.len()
        && domain
            .instances()
            .zip(instances.iter())
            .all(|((id, name), (other, bytes))| id == other && name == external_name(bytes))
}

/// The name of an instance as text. Bytes that are not UTF-8 stand for the
/// characters of their numbers.
pub(super) fn external_name(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(name) => Cow::Borrowed(name),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::Pdu;

    #[test]
    fn domains_keep_their_identity_until_they_change() {
        let mut cache = MetadataCache::default();
        let indom = InDom::new(60, 1);
        let learn = |cache: &mut MetadataCache, list: &[(i32, &[u8])]| {
            let mut pdu = Vec::new();
            Instances::encode_list(indom, list, &mut pdu);
            cache.learn_domain(&Instances::decode(&pdu).expect("well formed"))
        };
        let first = learn(&mut cache, &[(1, b"sda"), (2, b"sd\xe9")]);
        assert_eq!(first.name(2), Some("sd\u{e9}"));
        assert!(Arc::ptr_eq(&cache.domain(indom).expect("cached"), &first));
        cache.invalidate();
        assert!(cache.domain(indom).is_none());
        assert!(Arc::ptr_eq(&learn(&mut cache, &[(1, b"sda"), (2, b"sd\xe9")]), &first));
        let other = learn(&mut cache, &[(2, b"sda"), (1, b"sd\xe9")]);
        assert!(!Arc::ptr_eq(&other, &first));
        assert_eq!(other.name(2), Some("sda"));
    }
}
