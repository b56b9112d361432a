//! Results of fetches, this one's and the one before, and where in them the
//! values of each metric are.

use crate::model::{PmStatus, RawValueRef, Timestamp};
use crate::result::{Lane, ResultBatch, ResultPart, ValueSet};

/// A result, with its buffers.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) batch: ResultBatch,
    /// Part and offset of the value set of each metric, by the metric's position.
    places: Vec<(usize, usize)>,
}

/// The values of one metric in a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetricResult<'r> {
    part: &'r ResultPart,
    set: ValueSet<'r>,
}

impl Fetched {
    pub(super) fn timestamp(&self) -> Timestamp {
        self.batch.timestamp()
    }

    /// Finds the value sets of the batch.
    pub(super) fn index(&mut self) {
        self.places.clear();
        for (position, part) in self.batch.parts().iter().enumerate() {
            let mut sets = part.sets();
            loop {
                let offset = sets.offset();
                if sets.next().is_none() {
                    break;
                }
                self.places.push((position, offset));
            }
        }
    }

    /// The values of the metric at a position; none for one that was not
    /// among those that were fetched.
    pub(super) fn metric(&self, position: usize) -> Option<MetricResult<'_>> {
        let (part, offset) = *self.places.get(position)?;
        let part = &self.batch.parts()[part];
        Some(MetricResult { part, set: part.set_at(offset)? })
    }
}

impl<'r> MetricResult<'r> {
    /// Number of values, or why there are none.
    pub(super) fn count(&self) -> Result<usize, PmStatus> {
        self.set.count
    }

    /// The values' places, in the order delivered.
    pub(super) fn lanes(&self) -> impl ExactSizeIterator<Item = Lane> + use<'r> {
        self.set.lanes()
    }

    /// The value of an instance, or without one the first value.
    pub(super) fn instance(&self, instance: Option<i32>) -> Result<RawValueRef<'r>, PmStatus> {
        self.set.count?;
        let is_it = |lane: &Lane| instance.is_none_or(|instance| lane.instance == instance);
        let lane = self.lanes().find(is_it).ok_or(PmStatus::VALUE)?;
        self.value(lane)
    }

    pub(super) fn value(&self, lane: Lane) -> Result<RawValueRef<'r>, PmStatus> {
        self.part.value(&self.set, lane).ok_or(PmStatus::CONV)
    }
}
