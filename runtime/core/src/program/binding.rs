//! The metrics and domains that the positions in a [`Program`](super::Program)
//! stand for in one context.
//!
//! A program names no metrics and no domains; a [`Binding`] does. Contexts
//! whose metrics have the same identifiers share a binding.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{HistoryKey, InputSlot};
use crate::model::{InDom, MetricDesc, Pmid};

/// The metrics and domains of a program's inputs in one context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// Metrics, parallel to the program's inputs.
    pub pmids: Vec<Pmid>,
    /// Fingerprints of the metrics' descriptors, parallel to `pmids`.
    pub prints: Vec<u64>,
    /// Domains that are delivered with every fetch.
    pub fetched_domains: Vec<InDom>,
    /// Domains whose instance names filters read.
    pub named_domains: Vec<InDom>,
}

/// Identity of stored samples when the program of a context changes. Samples of
/// other metrics are useless, even to the same definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// The definition and the position in it.
    pub history: HistoryKey,
    /// Fingerprint of the metrics below the operand: identifiers, types,
    /// domains, semantics, units.
    metrics: u64,
}

impl Binding {
    /// The binding to metrics, parallel to the program's inputs, and to
    /// domains.
    pub fn new(
        metrics: &[MetricDesc],
        fetched_domains: Vec<InDom>,
        named_domains: Vec<InDom>,
    ) -> Binding {
        let pmids = metrics.iter().map(|desc| desc.pmid).collect();
        let prints = metrics.iter().map(Binding::print_of).collect();
        Binding { pmids, prints, fetched_domains, named_domains }
    }

    /// Fingerprint of a descriptor.
    fn print_of(desc: &MetricDesc) -> u64 {
        let MetricDesc { pmid, value_type, indom, semantics, units } = desc;
        let mut hasher = DefaultHasher::new();
        (pmid, value_type, indom, semantics, units).hash(&mut hasher);
        hasher.finish()
    }

    /// Identity of the samples of a history or a window over `inputs`.
    pub fn sample_key(&self, history: HistoryKey, inputs: &[InputSlot]) -> SampleKey {
        let mut hasher = DefaultHasher::new();
        for slot in inputs {
            self.prints.get(slot.index()).hash(&mut hasher);
        }
        SampleKey { history, metrics: hasher.finish() }
    }
}
