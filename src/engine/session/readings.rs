//! The values of one fetch of a list, without copies. Computed values are in
//! the evaluator's columns, delivered ones in the source's result. On demand,
//! both are copied into one result, as in the PMAPI.

use pmderive_runtime::eval::{Evaluation, Value, Values};
use pmderive_runtime::model::{PmStatus, Pmid, Timestamp};
use pmderive_runtime::program::Status;
use pmderive_runtime::result::{ResultBatch, ResultWriter, SetPlace, ValueSet};
use pmderive_runtime::source::FetchEvents;

use super::lists::{Entry, Needs};

/// The result of one fetch of a list, see
/// [`Session::read`](super::Session::read).
#[derive(Clone, Debug)]
pub struct Readings<'s> {
    needs: &'s Needs,
    /// `None` if nothing had to be computed.
    values: Option<Evaluation<'s>>,
    fetched: &'s ResultBatch,
    /// Place of each fetched value set, by slot. Empty if no delivered value is part of
    /// the result.
    places: &'s [SetPlace],
    /// Events since the previous fetch.
    pub events: FetchEvents,
}

/// The result for one metric of a list.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Reading<'s> {
    /// The values of a derived metric, or the reason why it has none.
    Computed(Values<'s>),
    /// A metric of the source, as it was delivered.
    Delivered(ValueSet<'s>),
    /// A metric that never has values.
    Empty,
    /// A status: the derived metric cannot be used or is unknown, or the source
    /// has not delivered the metric.
    Failed(PmStatus),
}

impl<'s> Readings<'s> {
    /// The result of a fetch with computed metrics.
    pub(super) fn computed(
        needs: &'s Needs,
        values: Evaluation<'s>,
        places: &'s mut Vec<SetPlace>,
        events: FetchEvents,
    ) -> Readings<'s> {
        let fetched = values.fetched();
        places.clear();
        if !needs.is_computed {
            places.extend(fetched.placed_sets().map(|(place, _)| place));
        }
        Readings { needs, values: Some(values), fetched, places, events }
    }

    /// The result of a fetch without computed metrics.
    pub(super) fn delivered(
        needs: &'s Needs,
        fetched: &'s ResultBatch,
        places: &'s mut Vec<SetPlace>,
        events: FetchEvents,
    ) -> Readings<'s> {
        places.clear();
        places.extend(fetched.placed_sets().map(|(place, _)| place));
        Readings { needs, values: None, fetched, places, events }
    }

    /// Time stamp of the fetch.
    pub fn timestamp(&self) -> Timestamp {
        self.fetched.timestamp()
    }

    /// The metrics, in the order of the list.
    pub fn pmids(&self) -> &'s [Pmid] {
        &self.needs.pmids
    }

    /// Number of metrics.
    pub fn len(&self) -> usize {
        self.needs.pmids.len()
    }

    /// True for a list of no metrics.
    pub fn is_empty(&self) -> bool {
        self.needs.pmids.is_empty()
    }

    /// The result for the metric at a position of the list.
    ///
    /// # Panics
    /// The position is not below [`Readings::len`].
    pub fn get(&self, at: usize) -> Reading<'s> {
        match (self.needs.entries[at], &self.values) {
            (Entry::Computed(output), Some(values)) => Reading::Computed(values.get(output)),
            (Entry::Computed(_), None) => Reading::Failed(PmStatus::BOTCH),
            (Entry::Empty, _) => Reading::Empty,
            (Entry::Unusable(status) | Entry::Unknown(status), _) => Reading::Failed(status),
            (Entry::Fetched(slot), _) => {
                let place = self.places.get(slot);
                let set = place.and_then(|place| self.fetched.set_at(*place));
                // The source may have delivered fewer sets than the list has
                // metrics, or others.
                let is_it = |set: &ValueSet<'_>| set.pmid == self.needs.pmids[at];
                set.filter(is_it).map_or(Reading::Failed(PmStatus::PMID), Reading::Delivered)
            }
        }
    }

    /// The metrics with their results, in the order of the list.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Pmid, Reading<'s>)> + Clone {
        (0..self.len()).map(|at| (self.needs.pmids[at], self.get(at)))
    }

    /// Copies everything into a result of one part (`pmFetch(3)`).
    pub fn write(&self, batch: &mut ResultBatch) {
        batch.clear();
        let also = self.needs.binding.fetched_domains.len();
        batch.domains.extend(self.fetched.domains.iter().skip(also).cloned());
        let mut writer = ResultWriter::new(batch.add_part(), self.timestamp());
        for (pmid, reading) in self.iter() {
            match reading {
                Reading::Computed(values) => write_computed(&mut writer, pmid, &values),
                Reading::Delivered(set) => writer.copy(&set),
                Reading::Empty => writer.set(pmid),
                Reading::Failed(status) => writer.status(pmid, status),
            }
        }
    }
}

/// Writes the value set of a derived metric.
fn write_computed(writer: &mut ResultWriter<'_>, pmid: Pmid, values: &Values<'_>) {
    match values.status {
        Status::Failed(status) => return writer.status(pmid, status),
        Status::Empty(_) => return writer.set(pmid),
        Status::Values => writer.set(pmid),
    }
    let value_type = values.value_type();
    if values.numbers().is_some() {
        let instances = values.instances.iter().copied();
        values.copy_numbers(writer.numbers(value_type, false, instances));
        return;
    }
    // Every type with values fits.
    let code = u8::try_from(value_type.code()).unwrap_or(u8::MAX);
    for (instance, value) in values.iter() {
        match value {
            Value::Text(text) => writer.pieces(instance, code, &[text, &[0]]),
            Value::Bytes(bytes) => writer.pieces(instance, code, &[bytes]),
            _ => return writer.fail(PmStatus::BOTCH),
        }
    }
}
