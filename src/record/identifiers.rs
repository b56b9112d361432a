//! Identifiers of metrics in an archive.
//!
//! A metric keeps the identifier of its source. A derived metric also gets the
//! flag of derived metrics in archives. If another metric already has that
//! identifier, the metric gets the next free one of its cluster.

use pmderive_runtime::model::Pmid;
use rustc_hash::FxHashSet;

/// The cluster bit of derived metrics in archives (see pmlogger(1)).
const RECORDED: u32 = 2048;

/// Number of items in a cluster.
const ITEMS: u32 = 1024;
const CLUSTERS: u32 = 4096;

/// The identifiers in use.
#[derive(Debug, Default)]
pub struct Identifiers {
    taken: FxHashSet<Pmid>,
}

impl Identifiers {
    /// Assigns an identifier to a metric with `pmid` at its source. No other
    /// metric will get it. `None` if the agent's identifiers are exhausted.
    pub fn assign(&mut self, pmid: Pmid) -> Option<Pmid> {
        let (domain, item) = (pmid.domain(), pmid.item());
        let cluster = if pmid.is_derived() { pmid.cluster() | RECORDED } else { pmid.cluster() };
        let wanted = Pmid::new(domain, cluster, item);
        if self.taken.insert(wanted) {
            return Some(wanted);
        }
        // Searches from the end, where agents seldom have metrics. Item 0 may
        // be a dynamic node.
        let clusters = (cluster..CLUSTERS).chain(cluster & RECORDED..cluster);
        let mut free = clusters
            .flat_map(|cluster| (1..ITEMS).rev().map(move |item| Pmid::new(domain, cluster, item)));
        free.find(|pmid| self.taken.insert(*pmid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_its_own() {
        let mut identifiers = Identifiers::default();
        for (pmid, expected) in [
            (Pmid::new(60, 0, 4), "60.0.4"),
            (Pmid::new(511, 0, 3), "511.2048.3"),
            // A derived metric that another archive has as data.
            (Pmid::new(511, 2048, 3), "511.2048.1023"),
            (Pmid::new(60, 0, 4), "60.0.1023"),
            (Pmid(Pmid::new(511, 2047, 1023).0 | 1 << 31), "511.4095.1023"),
        ] {
            let assigned = identifiers.assign(pmid).expect("one is free").to_string();
            assert_eq!(assigned, expected);
        }
        // If a cluster is full, the next cluster is used.
        let last = (0..1024).filter_map(|_| identifiers.assign(Pmid::new(60, 0, 4))).last();
        assert_eq!(last.map(|pmid| pmid.to_string()).as_deref(), Some("60.1.1021"));
    }
}
