//! Metadata that hosts have in common, stored once per process: there may be thousands
//! of hosts, and similar hosts have the same metadata.
//!
//! Entries are found by their contents and exist as long as a host uses them. This
//! module does not know which hosts do, or whether they still rely on them.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex};

use pmderive_core::locks::lock;
use pmderive_core::model::{InstanceDomain, LabelLevel, LabelSet, MetricDesc, Pmid};
use pmderive_core::weak_table::WeakTable;

/// A host's answers about names, descriptors and labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The identifier of each name.
    pub(super) pmids: AnswerTable<Box<str>, Pmid>,
    /// The descriptor of each metric.
    pub(super) descs: AnswerTable<Pmid, MetricDesc>,
    /// All names of each metric.
    pub(super) names: AnswerTable<Pmid, Box<[Box<str>]>>,
    /// The labels of each level.
    pub(super) labels: AnswerTable<LabelLevel, Box<[LabelSet]>>,
}

/// Answers to questions of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnswerTable<Q: Eq + Hash, A> {
    answers: HashMap<Q, A>,
    /// Fingerprint of all entries, in any order.
    fingerprint: u64,
}

impl<Q: Eq + Hash, A> Default for AnswerTable<Q, A> {
    fn default() -> Self {
        AnswerTable { answers: HashMap::new(), fingerprint: 0 }
    }
}

impl<Q: Eq + Hash, A: Hash> AnswerTable<Q, A> {
    pub(super) fn get<B: Eq + Hash + ?Sized>(&self, question: &B) -> Option<&A>
    where
        Q: Borrow<B>,
    {
        self.answers.get(question)
    }

    pub(super) fn insert(&mut self, question: Q, answer: A) {
        // A replaced answer is removed from the fingerprint.
        if let Some(former) = self.answers.get(&question) {
            self.fingerprint ^= fingerprint_of(&(&question, former));
        }
        self.fingerprint ^= fingerprint_of(&(&question, &answer));
        self.answers.insert(question, answer);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

fn fingerprint_of(thing: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// Entries in use, found by their contents.
type Table<T> = LazyLock<Mutex<WeakTable<T>>>;

/// The same facts from another host, or else these.
pub(super) fn shared_facts(facts: Arc<Facts>) -> Arc<Facts> {
    static TABLE: Table<Facts> = LazyLock::new(Mutex::default);
    let Facts { pmids, descs, names, labels } = &*facts;
    let fingerprint = fingerprint_of(&[
        pmids.fingerprint,
        descs.fingerprint,
        names.fingerprint,
        labels.fingerprint,
    ]);
    shared(&TABLE, fingerprint, facts)
}

/// The same instances from another host, or else these.
pub(super) fn shared_domain(domain: Arc<InstanceDomain>) -> Arc<InstanceDomain> {
    static TABLE: Table<InstanceDomain> = LazyLock::new(Mutex::default);
    let mut hasher = DefaultHasher::new();
    domain.instances().for_each(|instance| instance.hash(&mut hasher));
    shared(&TABLE, hasher.finish(), domain)
}

fn shared<T: PartialEq>(table: &Table<T>, fingerprint: u64, thing: Arc<T>) -> Arc<T> {
    let mut table = lock(table);
    table.find_or_insert(fingerprint, |other| *other == *thing, || Arc::clone(&thing))
}
