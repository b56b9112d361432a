//! The instances of a metric, and the position of a metric in a frame.

use std::sync::Arc;

use pmderive_runtime::model::InstId;
use pmderive_runtime::positions;
use rustc_hash::FxHashMap;

use crate::fleet::labels::Labels;

positions! {
    /// Position of a metric in [`Schema::metrics`](super::Schema::metrics).
    pub ExportedId;
}

/// Instances of one metric in one slot, in the order of the values.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Instances {
    /// Internal identifiers; one of -1 for a metric without a domain.
    pub ids: Box<[InstId]>,
    /// External names, parallel to the identifiers; empty for a metric without a domain.
    pub names: Box<[Arc<str>]>,
    /// Labels of the domain (`pmGetInDomLabels(3)`).
    pub domain_labels: Labels,
    /// Labels of each instance (`pmGetInstancesLabels(3)`), parallel to the identifiers; empty
    /// if no instance has any.
    pub labels: Box<[Labels]>,
}

impl Instances {
    /// Tells by the position of an instance whether the same instance comes again later. A
    /// series has one value at a time: that of the last.
    pub fn come_again(&self) -> impl Fn(usize) -> bool {
        let last: FxHashMap<InstId, usize> = match self.ids.is_sorted_by(|one, next| one < next) {
            true => FxHashMap::default(),
            false => self.ids.iter().copied().zip(0..).collect(),
        };
        let ids = &self.ids;
        move |at| last.get(&ids[at]).is_some_and(|last| *last != at)
    }

    /// Bytes of memory, with the names and labels.
    pub fn bytes(&self) -> usize {
        /// Bytes of the two counters of an `Arc`.
        const SHARED: usize = 16;
        let names = self.names.iter().map(|name| size_of_val(name) + SHARED + name.len());
        let labels = self.labels.iter().map(|one| size_of_val(one) + SHARED + one.bytes());
        size_of::<Instances>()
            + SHARED
            + size_of_val(&*self.ids)
            + self.domain_labels.bytes()
            + names.sum::<usize>()
            + labels.sum::<usize>()
    }
}
