//! Results of the current and the previous fetch, with the place of each
//! metric's values in them.

use pmderive_core::model::{InstId, PmStatus, Pmid, RawValueRef, Timestamp};
use pmderive_core::result::{ResultBatch, SetPlace, ValueSet};

/// A result with its buffers.
#[derive(Debug, Default)]
pub(super) struct FetchedResult {
    pub(super) batch: ResultBatch,
    /// The place of each metric's value set, by position. `None` if the source
    /// delivered the set of another metric there.
    places: Vec<Option<SetPlace>>,
}

/// The values of one metric in a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetricResult<'r> {
    set: ValueSet<'r>,
}

impl FetchedResult {
    pub(super) fn timestamp(&self) -> Timestamp {
        self.batch.timestamp()
    }

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
    pub(super) fn metric(&self, position: usize) -> Option<MetricResult<'_>> {
        let place = (*self.places.get(position)?)?;
        Some(MetricResult { set: self.batch.set_at(place)? })
    }
}

impl<'r> MetricResult<'r> {
    /// Number of values, or the status if there are none.
    pub(super) fn count(&self) -> Result<usize, PmStatus> {
        self.set.count
    }

    /// The instances of the values, in the order delivered.
    pub(super) fn instances(&self) -> impl ExactSizeIterator<Item = InstId> + use<'r> {
        self.set.instances()
    }

    /// The value of an instance. Without an instance, the first value.
    pub(super) fn instance(&self, instance: Option<InstId>) -> Result<RawValueRef<'r>, PmStatus> {
        self.set.count?;
        let is_it = |own: InstId| instance.is_none_or(|instance| own == instance);
        let at = self.instances().position(is_it).ok_or(PmStatus::VALUE)?;
        self.value(at)
    }

    /// The value at a position.
    pub(super) fn value(&self, at: usize) -> Result<RawValueRef<'r>, PmStatus> {
        self.set.value(at).ok_or(PmStatus::CONV)
    }
}
