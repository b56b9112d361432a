//! Lists of metrics to fetch repeatedly. A process stores each list once,
//! because it may ask thousands of similar hosts for the same metrics.
//!
//! A list knows identifiers only. A source decides itself what to derive from a
//! list.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use rustc_hash::FxHasher;

use crate::locks::lock;
use crate::model::{InDom, Pmid};
use crate::weak_table::WeakTable;

/// The metrics of one fetch. Two lists with the same metrics and domains are the
/// same list.
///
/// The caller should list each metric once. A source may deliver only one of
/// two value sets for a metric that is there twice.
/// [`distinct`](super::distinct) removes repetitions.
///
/// ```
/// use pmderive_core::model::{InDom, Pmid};
/// use pmderive_core::source::FetchList;
///
/// let (metric, its_instances) = (Pmid::new(60, 0, 4), InDom::new(60, 1));
/// let list = FetchList::new(vec![metric], vec![its_instances]);
/// assert_eq!(list.pmids(), [metric]);
/// ```
#[derive(Clone, Debug)]
pub struct FetchList(Arc<Contents>);

#[derive(Debug)]
struct Contents {
    id: u64,
    pmids: Box<[Pmid]>,
    domains: Box<[InDom]>,
}

/// The same list: the one with the same [`FetchList::id`].
impl PartialEq for FetchList {
    fn eq(&self, other: &FetchList) -> bool {
        self.id() == other.id()
    }
}

impl Eq for FetchList {}

impl Hash for FetchList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl FetchList {
    /// Makes a list of metrics, and of instance domains to deliver with every
    /// fetch.
    pub fn new(pmids: Vec<Pmid>, domains: Vec<InDom>) -> FetchList {
        static LISTS: LazyLock<Mutex<WeakTable<Contents>>> = LazyLock::new(Mutex::default);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut hasher = FxHasher::default();
        (&pmids, &domains).hash(&mut hasher);
        let is_same = |list: &Contents| *list.pmids == *pmids && *list.domains == *domains;
        let make = || {
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            let (pmids, domains) = (pmids.as_slice().into(), domains.as_slice().into());
            Arc::new(Contents { id, pmids, domains })
        };
        let mut lists = lock(&LISTS);
        FetchList(lists.find_or_insert(hasher.finish(), is_same, make))
    }

    /// A number that differs between lists. With it a source can keep its
    /// preparation for the list that it saw last.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The metrics. A metric's position is its slot.
    pub fn pmids(&self) -> &[Pmid] {
        &self.0.pmids
    }

    /// Domains to deliver in [`ResultBatch::domains`], parallel to it, as of
    /// the fetch. A live source asks for them in the same round trip.
    ///
    /// [`ResultBatch::domains`]: crate::result::ResultBatch::domains
    pub fn domains(&self) -> &[InDom] {
        &self.0.domains
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_same_are_one() {
        let list = |pmids: &[u32], domains: &[u32]| {
            let domains = domains.iter().copied().map(InDom).collect();
            FetchList::new(pmids.iter().copied().map(Pmid).collect(), domains)
        };
        let one = list(&[71, 72], &[7]);
        assert_eq!(one.id(), list(&[71, 72], &[7]).id());
        for other in [list(&[72, 71], &[7]), list(&[71, 72], &[]), list(&[71], &[72, 7])] {
            assert_ne!(one.id(), other.id(), "{other:?}");
        }
        let id = one.id();
        drop(one);
        assert_ne!(list(&[71, 72], &[7]).id(), id, "what was prepared for the former is gone");
    }
}
