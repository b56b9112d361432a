//! What hosts know of their metadata in common, once per process: like hosts
//! give like answers, and there may be thousands of them.
//!
//! Things are found by their content and exist as long as some host uses them.
//! Which host that is, and whether it may still rely on them, is not known here.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pmderive_core::model::{InstanceDomain, LabelLevel, LabelSet, MetricDesc, Pmid};
use pmderive_core::weak_table::WeakTable;

/// Answers of a host about names, descriptors and labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Identifier of each name.
    pub(super) pmids: Answered<Box<str>, Pmid>,
    /// Descriptor of each metric.
    pub(super) descs: Answered<Pmid, MetricDesc>,
    /// All names of each metric.
    pub(super) names: Answered<Pmid, Box<[Box<str>]>>,
    /// Labels of each level.
    pub(super) labels: Answered<LabelLevel, Box<[LabelSet]>>,
}

/// Answers to questions of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered<Q: Eq + Hash, A> {
    answers: HashMap<Q, A>,
    /// Of all entries together, whatever their order.
    print: u64,
}

impl<Q: Eq + Hash, A> Default for Answered<Q, A> {
    fn default() -> Self {
        Answered { answers: HashMap::new(), print: 0 }
    }
}

impl<Q: Eq + Hash, A: Hash> Answered<Q, A> {
    pub(super) fn get<B: Eq + Hash + ?Sized>(&self, question: &B) -> Option<&A>
    where
        Q: Borrow<B>,
    {
        self.answers.get(question)
    }

    pub(super) fn insert(&mut self, question: Q, answer: A) {
        // The answer that it replaces, if any, goes out of the print.
        if let Some(former) = self.answers.get(&question) {
            self.print ^= print_of(&(&question, former));
        }
        self.print ^= print_of(&(&question, &answer));
        self.answers.insert(question, answer);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

fn print_of(thing: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// Things in use by their content.
type Table<T> = LazyLock<Mutex<WeakTable<T>>>;

/// The same facts as another host has them, or else these.
pub(super) fn shared_facts(facts: Arc<Facts>) -> Arc<Facts> {
    static TABLE: Table<Facts> = LazyLock::new(Mutex::default);
    let Facts { pmids, descs, names, labels } = &*facts;
    let print = print_of(&[pmids.print, descs.print, names.print, labels.print]);
    shared(&TABLE, print, facts)
}

/// The same instances as another host has them, or else these.
pub(super) fn shared_domain(domain: Arc<InstanceDomain>) -> Arc<InstanceDomain> {
    static TABLE: Table<InstanceDomain> = LazyLock::new(Mutex::default);
    let mut hasher = DefaultHasher::new();
    domain.instances().for_each(|instance| instance.hash(&mut hasher));
    shared(&TABLE, hasher.finish(), domain)
}

fn shared<T: PartialEq>(table: &Table<T>, print: u64, thing: Arc<T>) -> Arc<T> {
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    table.find_or_insert(print, |other| *other == *thing, || Arc::clone(&thing))
}
