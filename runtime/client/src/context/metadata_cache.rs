//! The metadata that a live context has learnt: names, descriptors, instance domains
//! and labels.
//!
//! Input: answers of pmcd. Output: the same answers until they are declared out of
//! date. Unchanged instance domains keep their `Arc`, so callers can compare pointers.
//! `common_metadata` has the metadata that hosts share. This module does not ask pmcd.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use pmderive_core::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, Pmid, StateChange, text_of_bytes,
};

use super::common_metadata::{AnswerTable, Facts, shared_domain, shared_facts};
use crate::pdu::Instances;

#[derive(Debug, Default)]
pub(super) struct MetadataCache {
    /// Shared with similar hosts once settled.
    facts: Arc<Facts>,
    is_settled: bool,
    domains: HashMap<InDom, CachedDomain>,
    /// Labels of the context. They name the host, so they are not shared.
    context_labels: Option<Box<[LabelSet]>>,
    /// Name of the host, from its pmcd.
    pub(super) host_name: Option<String>,
}

#[derive(Debug)]
struct CachedDomain {
    domain: Arc<InstanceDomain>,
    current: bool,
}

impl MetadataCache {
    pub(super) fn pmid(&self, name: &str) -> Option<Pmid> {
        self.facts.pmids.get(name).copied()
    }

    pub(super) fn learn_name(&mut self, name: &str, pmid: Pmid) {
        self.learn(|facts| facts.pmids.insert(name.into(), pmid));
    }

    pub(super) fn desc(&self, pmid: Pmid) -> Option<MetricDesc> {
        self.facts.descs.get(&pmid).copied()
    }

    pub(super) fn learn_desc(&mut self, desc: MetricDesc) {
        self.learn(|facts| facts.descs.insert(desc.pmid, desc));
    }

    pub(super) fn domain(&self, indom: InDom) -> Option<Arc<InstanceDomain>> {
        self.domains
            .get(&indom)
            .filter(|cached| cached.current)
            .map(|cached| Arc::clone(&cached.domain))
    }

    /// The domain of an answer. If this or another host has the same domain, that one
    /// is returned.
    pub(super) fn learn_domain(&mut self, instances: &Instances<'_>) -> Arc<InstanceDomain> {
        if let Some(cached) = self.domains.get_mut(&instances.indom)
            && same_instances(&cached.domain, instances)
        {
            cached.current = true;
            return Arc::clone(&cached.domain);
        }
        let names = || instances.iter().map(|(id, name)| (id, text_of_bytes(name)));
        let in_bytes = names().filter(|(_, name)| matches!(name, Cow::Owned(_))).map(|(id, _)| id);
        let entries = names().map(|(id, name)| (id, name.into())).collect();
        let domain = InstanceDomain::new(entries).with_names_in_bytes(in_bytes.collect());
        let domain = shared_domain(Arc::new(domain));
        let cached = CachedDomain { domain: Arc::clone(&domain), current: true };
        self.domains.insert(instances.indom, cached);
        domain
    }

    /// All names of a metric.
    pub(super) fn names(&self, pmid: Pmid) -> Option<Vec<Box<str>>> {
        self.facts.names.get(&pmid).map(|names| names.to_vec())
    }

    pub(super) fn learn_names(&mut self, pmid: Pmid, names: &[Box<str>]) {
        self.learn(|facts| facts.names.insert(pmid, names.into()));
    }

    pub(super) fn labels(&self, level: LabelLevel) -> Option<Vec<LabelSet>> {
        let sets = match level {
            LabelLevel::Context => self.context_labels.as_ref(),
            level => self.facts.labels.get(&level),
        };
        sets.map(|sets| sets.to_vec())
    }

    /// Stores labels, except those of instances, which come and go.
    pub(super) fn learn_labels(&mut self, level: LabelLevel, sets: &[LabelSet]) {
        match level {
            LabelLevel::Instances(_) => {}
            LabelLevel::Context => self.context_labels = Some(sets.into()),
            level => self.learn(|facts| facts.labels.insert(level, sets.into())),
        }
    }

    /// Stores facts. They are this host's own until they are settled.
    fn learn(&mut self, add: impl FnOnce(&mut Facts)) {
        self.is_settled = false;
        add(Arc::make_mut(&mut self.facts));
    }

    /// Shares facts with hosts that know the same. Call this when nothing more will be
    /// learnt for a while.
    pub(super) fn settle(&mut self) {
        if !self.is_settled {
            self.facts = shared_facts(std::mem::take(&mut self.facts));
            self.is_settled = true;
        }
    }

    /// Forgets the metadata that a notice of pmcd concerns.
    pub(super) fn forget(&mut self, change: StateChange) {
        if change.concerns_labels() {
            self.forget_labels();
        }
        if change.host_name_changed() {
            self.host_name = None;
        }
        if change.concerns_metadata() {
            self.invalidate();
        }
    }

    fn forget_labels(&mut self) {
        self.context_labels = None;
        if !self.facts.labels.is_empty() {
            self.learn(|facts| facts.labels = AnswerTable::default());
        }
    }

    /// Forgets everything. Every domain needs a new question.
    pub(super) fn invalidate(&mut self) {
        self.facts = Arc::default();
        self.is_settled = false;
        self.context_labels = None;
        self.host_name = None;
        self.domains.values_mut().for_each(|cached| cached.current = false);
    }
}

fn same_instances(domain: &InstanceDomain, instances: &Instances<'_>) -> bool {
    domain.len() == instances.len()
        && domain
            .instances()
            .zip(instances.iter())
            .all(|((id, name), (other, bytes))| id == other && name == text_of_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::Pdu;
    use pmderive_core::model::{Semantics, Units, ValueType};

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

    const COUNT: u32 = 50;

    /// The metadata of a host, learnt in some order. Such hosts are alike.
    fn like(order: impl Iterator<Item = u32>, units: Units) -> MetadataCache {
        let mut cache = MetadataCache::default();
        for item in order {
            let pmid = Pmid::new(60, 0, item);
            cache.learn_name(&format!("m.{item}"), pmid);
            let (value_type, semantics) = (ValueType::U32, Semantics::Counter);
            cache.learn_desc(MetricDesc { pmid, value_type, indom: None, semantics, units });
            cache.learn_names(pmid, &[format!("m.{item}").into()]);
            cache.learn_labels(LabelLevel::Item(pmid), &[]);
        }
        cache.learn_labels(LabelLevel::Context, &[]);
        cache.settle();
        cache
    }

    #[test]
    fn like_hosts_share_what_they_know_until_they_differ() {
        let bytes = Units::parse("byte").expect("a unit").units;
        let [one, mut other] = [false, true].map(|is_reversed| match is_reversed {
            false => like(0..COUNT, Units::NONE),
            true => like((0..COUNT).rev(), Units::NONE),
        });
        assert!(Arc::ptr_eq(&one.facts, &other.facts));
        let different = like(0..COUNT, bytes);
        assert!(!Arc::ptr_eq(&one.facts, &different.facts));

        // Later answers and omissions of one host stay its own.
        let pmid = Pmid::new(60, 0, 0);
        other.learn_name("m.more", pmid);
        other.settle();
        assert_eq!((one.pmid("m.more"), other.pmid("m.more")), (None, Some(pmid)));
        assert_eq!((one.pmid("m.7"), other.pmid("m.7")), (one.pmid("m.7"), one.pmid("m.7")));
        other.forget_labels();
        let level = LabelLevel::Item(pmid);
        assert_eq!((one.labels(level), other.labels(level)), (Some(Vec::new()), None));
        assert_eq!(other.labels(LabelLevel::Context), None);
        other.invalidate();
        assert_eq!((one.pmid("m.7").is_some(), other.pmid("m.7")), (true, None));

        // A replaced answer leaves no trace.
        let mut corrected = like(0..COUNT, bytes);
        for item in 0..COUNT {
            corrected.learn_desc(one.desc(Pmid::new(60, 0, item)).expect("known"));
        }
        corrected.settle();
        assert!(Arc::ptr_eq(&one.facts, &corrected.facts));
    }

    #[test]
    fn what_no_host_knows_any_more_goes() {
        // Other tests have other metadata.
        let cache = like(1000..1000 + COUNT, Units::NONE);
        let facts = Arc::downgrade(&cache.facts);
        let twin = like(1000..1000 + COUNT, Units::NONE);
        assert_eq!(facts.strong_count(), 2);
        drop((cache, twin));
        assert_eq!(facts.strong_count(), 0);
    }

    #[test]
    fn like_domains_of_hosts_are_one() {
        let learn = |indom: InDom, name: &[u8]| {
            let mut pdu = Vec::new();
            Instances::encode_list(indom, &[(1, name)], &mut pdu);
            MetadataCache::default().learn_domain(&Instances::decode(&pdu).expect("well formed"))
        };
        let one = learn(InDom::new(60, 1), b"one and the same");
        assert!(Arc::ptr_eq(&one, &learn(InDom::new(60, 1), b"one and the same")));
        assert!(!Arc::ptr_eq(&one, &learn(InDom::new(60, 1), b"one and another")));
        // Text and bytes that stand for the same characters are not the same domain.
        let (text, bytes) = ("gr\u{fc}n".as_bytes(), &b"gr\xfcn"[..]);
        let [text, bytes] = [text, bytes].map(|name| learn(InDom::new(60, 1), name));
        assert_eq!(text.name(1), bytes.name(1));
        assert!(!Arc::ptr_eq(&text, &bytes));
    }
}
