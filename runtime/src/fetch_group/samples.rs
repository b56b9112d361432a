//! Results of the current and the previous fetch, with the place of each
//! metric's values in them.

use pmderive_core::model::{InstId, PmStatus, Pmid, RawValueRef};
use pmderive_core::result::{ResultBatch, SetPlace, ValueSet};

/// A result with its buffers.
#[derive(Debug, Default)]
pub(super) struct FetchedResult {
    pub(super) batch: ResultBatch,
    /// The place of each metric's value set, by position. `None` if the source
    /// delivered the set of another metric there.
    places: Vec<Option<SetPlace>>,
}

impl FetchedResult {
    /// Finds the place of each value set in the batch. `metrics` are the
    /// fetched ones.
    pub(super) fn index(&mut self, metrics: &[Pmid]) {
        self.places.clear();
        let sets = self.batch.placed_sets().zip(metrics);
        let places = sets.map(|((place, set), pmid)| (set.pmid == *pmid).then_some(place));
        self.places.extend(places);
    }

    /// The values of the metric at a position. `None` if the source did not
    /// deliver them, or the metric was not fetched.
    pub(super) fn metric(&self, position: usize) -> Option<ValueSet<'_>> {
        self.batch.set_at((*self.places.get(position)?)?)
    }
}

/// The value of an instance. Without an instance, the first value.
pub(super) fn value_of<'r>(
    metric: &ValueSet<'r>,
    instance: Option<InstId>,
) -> Result<RawValueRef<'r>, PmStatus> {
    metric.count?;
    let is_it = |own: InstId| instance.is_none_or(|instance| own == instance);
    let at = metric.instances().position(is_it).ok_or(PmStatus::VALUE)?;
    value_at(metric, at)
}

/// The value at a position.
pub(super) fn value_at<'r>(metric: &ValueSet<'r>, at: usize) -> Result<RawValueRef<'r>, PmStatus> {
    metric.value(at).ok_or(PmStatus::CONV)
}
