//! One instance of a metric around the time of a fetch.
//!
//! Input: the values and marks in records, by their ordinals. Output: a stretch of records without
//! values of the instance, and its end on either side.

use crate::archive::interpolation::coverage::{Ordinal, Side};
use crate::archive::interpolation::value::Sample;

/// A time among the covered records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) time: f64,
    /// Ordinal of the first record at the time or later.
    pub(super) from: Ordinal,
    /// Ordinal of the first record after the time.
    pub(super) after: Ordinal,
}

impl Cut {
    /// Ordinal of the record next to the time on `side`. A record of exactly this time
    /// lies behind it.
    pub(super) fn next(&self, side: Side) -> Ordinal {
        match side {
            Side::Ahead => self.after,
            Side::Behind => self.after - 1,
        }
    }
}

/// The values around a time in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbours {
    /// A value at exactly that time: the earlier or the later end.
    At(Side),
    /// A value before. The value after does not exist, or was not asked for.
    Before,
    /// Values before and after.
    Both,
    /// No value before.
    Neither,
}

/// The end of a stretch without values.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    record: Ordinal,
    /// The value that ends the stretch. Memory matters here: a fetch needs two ends for
    /// each of its values. So an end that is not a value is encoded in these fields:
    /// its time is not a number, and its bits tell the kind.
    sample: Sample,
}

const NOTHING: u64 = 0;
const UNKNOWN: u64 = 1;

impl End {
    /// A value in a record.
    pub(super) const fn value(record: Ordinal, sample: Sample) -> End {
        End { record, sample }
    }

    /// A mark, or the end of the archive.
    pub(super) const fn nothing(record: Ordinal) -> End {
        End { record, sample: Sample { time: f64::NAN, bits: NOTHING } }
    }

    /// An end that was not looked for yet. The search begins at `record`.
    pub(super) const fn unknown(record: Ordinal) -> End {
        End { record, sample: Sample { time: f64::NAN, bits: UNKNOWN } }
    }

    /// The end of the archive on `side`.
    pub(super) const fn of_archive(side: Side) -> End {
        End::nothing(match side {
            Side::Ahead => Ordinal::MAX,
            Side::Behind => Ordinal::MIN,
        })
    }

    pub(super) fn record(&self) -> Ordinal {
        self.record
    }

    /// The value. It has no meaning if the end is not a value.
    pub(super) fn sample(&self) -> Sample {
        self.sample
    }

    pub(super) fn is_value(&self) -> bool {
        !self.sample.time.is_nan()
    }

    pub(super) fn is_unknown(&self) -> bool {
        !self.is_value() && self.sample.bits == UNKNOWN
    }

    pub(super) fn is_value_at(&self, time: f64) -> bool {
        self.sample.time == time
    }

    /// True for a value that is nearer than a mark on `side`, or at exactly the time of
    /// the cut.
    pub(super) fn counts_beside(&self, mark: Option<Ordinal>, side: Side, cut: &Cut) -> bool {
        self.is_value_at(cut.time) || mark.is_none_or(|mark| side.is_nearer(self.record, mark))
    }
}

/// One instance. It has no values strictly between its two ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) before: End,
    pub(super) after: End,
}

impl Lane {
    /// A lane without searched records, at the place before record `after`.
    pub(super) const fn fresh(after: Ordinal) -> Lane {
        Lane { before: End::unknown(after - 1), after: End::unknown(after) }
    }

    pub(super) fn end(&self, side: Side) -> End {
        match side {
            Side::Behind => self.before,
            Side::Ahead => self.after,
        }
    }

    pub(super) fn set_end(&mut self, side: Side, end: End) {
        match side {
            Side::Behind => self.before = end,
            Side::Ahead => self.after = end,
        }
    }

    /// True if the time of a cut lies between the ends, or at an end with a value.
    pub(super) fn surrounds(&self, cut: &Cut) -> bool {
        self.before.record < cut.after && cut.after <= self.after.record
            || self.before.is_value_at(cut.time)
            || self.after.is_value_at(cut.time)
    }
}
