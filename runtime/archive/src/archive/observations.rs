//! Records of metadata that hold from a time on: those of an instance domain, or the labels of
//! one level.
//!
//! They have their places in the metadata. What they contain is decoded elsewhere, on demand.

use pmderive_core::model::Timestamp;

use crate::archive::domain_record::Change;
use crate::archive::meta_files::RecordPlace;

/// A record and its place in the metadata.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    /// The time from which it holds.
    pub(super) stamp: Timestamp,
    pub(super) place: RecordPlace,
    /// How it changes what held before. Labels are always whole.
    pub(super) change: Change,
}

/// All records of one subject.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    /// After `settle`, these are in order of time; with equal times, in order of the
    /// file.
    pub(super) list: Vec<Observation>,
    unsorted: bool,
    /// Counts how often adding observations has changed the order of earlier ones.
    pub(super) revision: u32,
}

impl Observations {
    /// Adds a record.
    pub(super) fn add(&mut self, observation: Observation) {
        self.unsorted |= self.list.last().is_some_and(|last| last.stamp > observation.stamp);
        self.list.push(observation);
    }

    /// Adds the records of another archive.
    pub(super) fn merge(&mut self, other: Observations) {
        other.list.into_iter().for_each(|observation| self.add(observation));
    }

    /// Restores the order of time. Must be called after records were added.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.unsorted) {
            self.list.sort_by_key(|observation| observation.stamp);
            self.revision += 1;
        }
    }

    /// The times from which the records hold.
    pub(super) fn times(&self) -> impl Iterator<Item = Timestamp> {
        self.list.iter().map(|observation| observation.stamp)
    }

    /// The last record up to `time`. `None` before the first one.
    pub(super) fn last_at(&self, time: Timestamp) -> Option<Observation> {
        let count = self.list.partition_point(|observation| observation.stamp <= time);
        self.list[..count].last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::positions::MetadataFileId;

    #[test]
    fn the_last_record_up_to_a_time_is_in_force() {
        let mut history = Observations::default();
        for (offset, sec) in [(1, 10), (2, 30), (3, 20), (4, 30)] {
            let stamp = Timestamp::new(sec, 0);
            let place = RecordPlace { file: MetadataFileId::default(), offset, length: 0 };
            history.add(Observation { stamp, place, change: Change::Whole });
        }
        history.settle();
        let at = |sec| history.last_at(Timestamp::new(sec, 0)).map(|found| found.place.offset);
        assert_eq!(
            [9, 10, 19, 20, 30, 99].map(at),
            [None, Some(1), Some(1), Some(3), Some(4), Some(4)]
        );
    }
}
