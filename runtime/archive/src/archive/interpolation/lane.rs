//! One instance of a metric around the time of a fetch.
//!
//! Input: what was met in records, by their ordinals. Output: a stretch of records
//! without values of the instance, and what ends it on either side. Where
//! values are looked for is not known here.

use crate::archive::interpolation::coverage::{Ordinal, Side};
use crate::archive::interpolation::value::Sample;

/// A time among the records covered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) time: f64,
    /// Ordinal of the first record at the time or later.
    pub(super) from: Ordinal,
    /// Ordinal of the first record after the time.
    pub(super) after: Ordinal,
}

impl Cut {
    /// Ordinal of the record next to the time on a side; one of the same time
    /// lies behind it.
    pub(super) fn next(&self, side: Side) -> Ordinal {
        match side {
            Side::Ahead => self.after,
            Side::Behind => self.after - 1,
        }
    }
}

/// What surrounds a time in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A value at that very time: in the earlier or in the later end.
    At(Side),
    /// A value before, and nothing else was asked for, or there is nothing after it.
    Before,
    /// Values before and after.
    Both,
    /// No value before.
    Neither,
}

/// What ends a stretch without values.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    record: Ordinal,
    /// That of a value. There are as many ends as twice the values of a fetch,
    /// so what is no value says so in these fields: its time is not a number,
    /// and the bits are those of its kind.
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

    /// Nobody has looked yet, from this record on.
    pub(super) const fn unknown(record: Ordinal) -> End {
        End { record, sample: Sample { time: f64::NAN, bits: UNKNOWN } }
    }

    /// The end of the archive on a side.
    pub(super) const fn of_archive(side: Side) -> End {
        End::nothing(match side {
            Side::Ahead => Ordinal::MAX,
            Side::Behind => Ordinal::MIN,
        })
    }

    pub(super) fn record(&self) -> Ordinal {
        self.record
    }

    /// The value; without a meaning where there is none.
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

    /// True when it is a value on a side that is nearer than a mark, or at the very
    /// time of the cut.
    pub(super) fn counts_beside(&self, mark: Option<Ordinal>, side: Side, cut: &Cut) -> bool {
        self.is_value_at(cut.time) || mark.is_none_or(|mark| side.is_nearer(self.record, mark))
    }
}

/// One instance. Strictly between the two ends it has no values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) before: End,
    pub(super) after: End,
}

impl Lane {
    /// Nothing is known but the place in the records, before one of them.
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

    /// True when the time of a cut lies between the ends, or where one of them
    /// has a value.
    pub(super) fn surrounds(&self, cut: &Cut) -> bool {
        self.before.record < cut.after && cut.after <= self.after.record
            || self.before.is_value_at(cut.time)
            || self.after.is_value_at(cut.time)
    }
}
