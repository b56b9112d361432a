//! All lanes of a metric around the time of a fetch.
//!
//! Input: the ends of the lanes' stretches, as they are found. Output: these ends. Most metrics
//! have all their instances in each value set. Then all lanes end in the same two records, and of
//! each only bits are kept. One pass over the next value set moves all of them.

use crate::archive::interpolation::coverage::Ordinal;
use crate::archive::interpolation::lane::{End, Lane};
use crate::archive::interpolation::positions::LaneId;
use crate::archive::interpolation::value::Sample;

/// The lanes of a metric.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Each with its own ends; empty while they are together.
    apart: Box<[Lane]>,
    together: Option<Together>,
}

/// Lanes that have values in the same two records.
#[derive(Debug)]
pub(super) struct Together {
    before: Moment,
    after: Moment,
    /// The bits of the values before.
    earlier: Vec<u64>,
    /// The bits of the values after: as many.
    later: Vec<u64>,
}

/// A covered record with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) record: Ordinal,
    pub(super) time: f64,
}

impl Lanes {
    /// This many lanes, about which nothing is known.
    pub(super) fn fresh(count: usize) -> Lanes {
        Lanes { apart: vec![Lane::fresh(0); count].into(), together: None }
    }

    pub(super) fn len(&self) -> usize {
        self.together.as_ref().map_or(self.apart.len(), |lanes| lanes.later.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get(&self, lane: LaneId) -> Lane {
        match &self.together {
            Some(lanes) => lanes.get(lane.index()),
            None => self.apart[lane.index()],
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Lane> {
        LaneId::first(self.len()).map(|lane| self.get(lane))
    }

    /// A lane to change. After that each has its own ends.
    pub(super) fn get_mut(&mut self, lane: LaneId) -> &mut Lane {
        if let Some(lanes) = self.together.take() {
            self.apart = (0..lanes.later.len()).map(|at| lanes.get(at)).collect();
        }
        &mut self.apart[lane.index()]
    }

    /// True if the end after each lane is the value in one record.
    pub(super) fn all_end_in(&self, end: Moment) -> bool {
        match &self.together {
            Some(lanes) => lanes.after == end,
            None => self.apart.iter().all(|Lane { after, .. }| {
                after.record() == end.record && after.is_value_at(end.time)
            }),
        }
    }

    /// The lanes, if all have values in the same two records.
    pub(super) fn together(&self) -> Option<&Together> {
        self.together.as_ref()
    }

    /// Moves all lanes across the record in which all of them end. They get their values in the
    /// next record, whose bits are in `later`.
    pub(super) fn cross(
        &mut self,
        (before, after): (Moment, Moment),
        later: impl Iterator<Item = u64>,
    ) {
        let apart = std::mem::take(&mut self.apart);
        let lanes = self.together.get_or_insert_with(|| Together {
            before,
            after: before,
            earlier: Vec::with_capacity(apart.len()),
            later: apart.iter().map(|lane| lane.after.sample().bits).collect(),
        });
        std::mem::swap(&mut lanes.earlier, &mut lanes.later);
        (lanes.before, lanes.after) = (before, after);
        lanes.later.clear();
        lanes.later.extend(later);
    }
}

impl Together {
    /// The lane at a position.
    pub(super) fn get(&self, at: usize) -> Lane {
        let end = |Moment { record, time }, bits| End::value(record, Sample { time, bits });
        Lane { before: end(self.before, self.earlier[at]), after: end(self.after, self.later[at]) }
    }

    /// The values before and after, by lane.
    pub(super) fn samples(&self) -> impl ExactSizeIterator<Item = (Sample, Sample)> + Clone {
        let (from, to) = (self.before.time, self.after.time);
        let values = self.earlier.iter().zip(&self.later);
        values.map(move |(earlier, later)| {
            (Sample { time: from, bits: *earlier }, Sample { time: to, bits: *later })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::interpolation::coverage::Side;

    /// Lanes that are together have the ends that they would have apart.
    #[test]
    fn lanes_come_together_and_part() {
        let moment = |record: Ordinal| Moment { record, time: record as f64 };
        let mut lanes = Lanes::fresh(3);
        for lane in LaneId::first(3) {
            assert!(!lanes.all_end_in(moment(1)));
            let bits = lane.index() as u64;
            *lanes.get_mut(lane) =
                Lane { before: End::nothing(0), after: End::value(1, Sample { time: 1.0, bits }) };
        }
        for record in 1..4 {
            assert!(lanes.all_end_in(moment(record)));
            assert!(!lanes.all_end_in(Moment { time: 0.5, ..moment(record) }));
            let later = (0..3).map(|lane| lane + 10 * record as u64);
            lanes.cross((moment(record), moment(record + 1)), later);
        }
        let sample = |time, bits| Sample { time, bits };
        let ends = |lane: Lane| (lane.before.record(), lane.before.sample(), lane.after.sample());
        let found: Vec<_> = lanes.iter().map(ends).collect();
        let expected = [0, 1, 2].map(|at| (3, sample(3.0, 20 + at), sample(4.0, 30 + at)));
        assert_eq!(found, expected);
        lanes.get_mut(LaneId::at(1)).set_end(Side::Ahead, End::nothing(7));
        assert!(lanes.together().is_none() && lanes.len() == 3);
        let found: Vec<_> = lanes.iter().map(ends).collect();
        assert_eq!([found[0], found[2]], [expected[0], expected[2]]);
        assert!(!lanes.all_end_in(moment(4)));
    }
}
