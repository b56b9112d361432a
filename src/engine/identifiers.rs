//! Identifiers of derived metrics: domain 511, as PMAPI(3) describes it.
//!
//! Global metrics ascend from 511.0.1. Metrics of a context descend from
//! 511.2047.1023 and have the flag bit set, which is not printed. Item 0 is
//! never a metric. Cluster bit 2048 belongs to derived metrics in archives.

use pmderive_runtime::model::Pmid;

/// The domain of derived metrics. No agent has it.
pub const DOMAIN: u32 = 511;
const LAST_CLUSTER: u32 = 2047;
const ITEMS: u32 = 1023;
/// The bit that distinguishes metrics of contexts from global ones.
const FLAG: u32 = 1 << 31;

/// The identifier of the global metric that is registered after `earlier`
/// others. `None` if there are no more identifiers.
pub fn global(earlier: u32) -> Option<Pmid> {
    let (cluster, item) = (earlier / ITEMS, earlier % ITEMS + 1);
    (cluster <= LAST_CLUSTER).then_some(Pmid::new(DOMAIN, cluster, item))
}

/// The identifier of the metric that is added to a context after `earlier`
/// others. `None` if there are no more identifiers.
pub fn of_context(earlier: u32) -> Option<Pmid> {
    let (cluster, item) = (LAST_CLUSTER.checked_sub(earlier / ITEMS)?, ITEMS - earlier % ITEMS);
    Some(Pmid(Pmid::new(DOMAIN, cluster, item).0 | FLAG))
}

/// True for the identifier of a metric of a context.
pub fn is_of_context(pmid: Pmid) -> bool {
    pmid.is_derived() && pmid.0 & FLAG != 0
}

/// A sort key: global metrics come before those of a context, each in the order
/// of registration.
pub fn order(pmid: Pmid) -> (bool, u32) {
    match is_of_context(pmid) {
        false => (false, pmid.0),
        true => (true, !pmid.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spaces_from_end_to_end() {
        const ALL: u32 = 2048 * 1023;
        for (earlier, expected) in [
            (0, Some("511.0.1")),
            (1022, Some("511.0.1023")),
            (1023, Some("511.1.1")),
            (ALL - 1, Some("511.2047.1023")),
            (ALL, None),
            (u32::MAX, None),
        ] {
            let text = global(earlier).map(|pmid| pmid.to_string());
            assert_eq!(text.as_deref(), expected, "{earlier}");
        }
        for (earlier, expected) in [
            (0, Some("511.2047.1023")),
            (1022, Some("511.2047.1")),
            (1023, Some("511.2046.1023")),
            (ALL - 1, Some("511.0.1")),
            (ALL, None),
            (u32::MAX, None),
        ] {
            let text = of_context(earlier).map(|pmid| pmid.to_string());
            assert_eq!(text.as_deref(), expected, "{earlier}");
        }
    }

    #[test]
    fn kinds_are_told_apart_and_ordered() {
        let list = [global(0), global(1), global(5000), of_context(0), of_context(1023)];
        let list = list.map(|pmid| pmid.expect("one of the first"));
        assert!(list.iter().all(|pmid| pmid.is_derived()));
        assert_eq!(list.map(is_of_context), [false, false, false, true, true]);
        assert!(list.is_sorted_by_key(|pmid| order(*pmid)));
        assert!(!is_of_context(Pmid::NULL));
    }
}
