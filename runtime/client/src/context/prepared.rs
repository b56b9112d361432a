//! Encoded requests for values, stored once per process, because many hosts get the
//! same list again and again.
//!
//! Input: a list, and the precision of time stamps. Output: the requests.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex};

use pmderive_core::locks::lock;
use pmderive_core::model::Pmid;
use pmderive_core::source::FetchList;
use pmderive_core::weak_table::WeakTable;
use rustc_hash::FxHasher;

use crate::pdu::Resolution;
use crate::proto::FetchRequest;

/// The requests for a list. They are kept as long as a context fetches it.
#[derive(Debug)]
pub(super) struct PreparedList {
    list: u64,
    resolution: Resolution,
    requests: Box<[Arc<FetchRequest>]>,
}

impl PreparedList {
    /// The requests for a list: those of the context's last fetch if it had the same
    /// list, or those of another context, or else new ones.
    pub(super) fn renew<'p>(
        kept: &'p mut Option<Arc<PreparedList>>,
        list: &FetchList,
        resolution: Resolution,
    ) -> &'p [Arc<FetchRequest>] {
        let is_for = |one: &PreparedList| (one.list, one.resolution) == (list.id(), resolution);
        let known = kept.take().filter(|known| is_for(known));
        let prepared = kept.insert(known.unwrap_or_else(|| {
            static LISTS: LazyLock<Mutex<WeakTable<PreparedList>>> = LazyLock::new(Mutex::default);
            let mut hasher = FxHasher::default();
            list.id().hash(&mut hasher);
            let mut lists = lock(&LISTS);
            let make = || Arc::new(PreparedList::new(list, resolution));
            lists.find_or_insert(hasher.finish(), is_for, make)
        }));
        &prepared.requests
    }

    fn new(list: &FetchList, resolution: Resolution) -> PreparedList {
        let pmids: &[Pmid] = match list.pmids() {
            // pmcd sends its time only with values, so a list without metrics asks for
            // a null metric.
            [] => &[Pmid::NULL],
            pmids => pmids,
        };
        let parts = pmids.chunks(FetchRequest::MAX_PMIDS);
        let requests = parts.map(|pmids| Arc::new(FetchRequest::new(pmids, resolution))).collect();
        PreparedList { list: list.id(), resolution, requests }
    }
}
