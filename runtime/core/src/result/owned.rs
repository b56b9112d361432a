//! Results as owned values, like those of `pmFetch(3)`. They suit callers that accept an allocation
//! per value for convenience.

use super::ResultBatch;
use crate::model::{
    InstId, PmStatus, Pmid, RawValue, RawValueRef, StateChange, Timestamp, Value, ValueType,
};

/// The result of a fetch (`pmResult` of pmFetch(3)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResult {
    /// Time of the values.
    pub timestamp: Timestamp,
    /// The changes at pmcd since the previous fetch.
    pub changes: StateChange,
    /// One set for each requested metric, in the order of the request.
    pub sets: Vec<MetricValues>,
}

/// One metric's values in a result (`pmValueSet` of pmFetch(3)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricValues {
    /// The metric.
    pub pmid: Pmid,
    /// The values in the order delivered (possibly none), or a status.
    pub outcome: Result<Vec<InstanceValue>, PmStatus>,
}

/// The value of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceValue {
    /// The instance, -1 (`PM_IN_NULL`) for a metric without an instance domain.
    pub instance: InstId,
    /// Its value.
    pub value: RawValue,
}

impl FetchResult {
    /// Copies the value sets of a batch. A metric with a missing block fails
    /// with [`PmStatus::IPC`].
    pub fn of_batch(batch: &ResultBatch, changes: StateChange) -> FetchResult {
        let sets = batch.sets().map(|set| {
            let values = |_count| {
                let value = |(instance, value): (InstId, Option<RawValueRef<'_>>)| {
                    Ok(InstanceValue { instance, value: value.ok_or(PmStatus::IPC)?.to_owned() })
                };
                set.values().map(value).collect::<Result<Vec<_>, PmStatus>>()
            };
            MetricValues { pmid: set.pmid, outcome: set.count.and_then(values) }
        });
        FetchResult { timestamp: batch.timestamp(), changes, sets: sets.collect() }
    }

    /// Sorts the values of each metric by instance (`pmSortInstances(3)`).
    /// Equal instances keep their order.
    pub fn sort_instances(&mut self) {
        for values in self.sets.iter_mut().filter_map(|set| set.outcome.as_mut().ok()) {
            values.sort_by_key(|value| value.instance);
        }
    }
}

impl MetricValues {
    /// The values of a metric of type `value_type`, by instance.
    ///
    /// # Errors
    /// The status of the metric, or [`PmStatus::CONV`] if a value is not of
    /// that type.
    pub fn decode(&self, value_type: ValueType) -> Result<Vec<(InstId, Value)>, PmStatus> {
        let values = self.outcome.as_ref().map_err(|status| *status)?;
        let decoded = values.iter().map(|one| Ok((one.instance, one.value.decode(value_type)?)));
        decoded.collect()
    }
}
