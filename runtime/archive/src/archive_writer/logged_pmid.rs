//! The identifiers of derived metrics in archives.

use pmderive_core::model::Pmid;

/// The identifier of a derived metric in an archive. It has a bit that tells tools to
/// use the recorded values instead of deriving them again. Identifiers of other metrics
/// are returned unchanged.
pub fn logged_pmid(pmid: Pmid) -> Pmid {
    match pmid.is_derived() {
        true => Pmid::new(pmid.domain(), pmid.cluster() | 2048, pmid.item()),
        false => pmid,
    }
}
