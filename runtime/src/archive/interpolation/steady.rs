//! The values of a metric while no record that matters to it is passed.
//!
//! In: what was found for each lane at one time. Out: the values at other times
//! for which the same would be found, without looking. Metrics of numbers only.

use crate::archive::interpolation::coverage::Ordinal;
use crate::archive::interpolation::rules::InterpolationRules;
use crate::archive::interpolation::track::{Cut, End};
use crate::archive::interpolation::value::{Rule, Sample};
use crate::archive::interpolation::writer::SetWriter;
use crate::model::{InstId, ValueType};

/// What holds between two places among the records.
#[derive(Debug)]
pub(super) struct Steady {
    /// It holds while the first record after the time comes behind the one
    /// and not behind the other.
    records: (Ordinal, Ordinal),
    /// And while the time lies strictly between these.
    times: (f64, f64),
    lanes: Vec<SteadyLane>,
}

/// An instance with values.
#[derive(Clone, Copy, Debug)]
struct SteadyLane {
    instance: InstId,
    earlier: Sample,
    later: Sample,
}

impl Default for Steady {
    fn default() -> Steady {
        Steady { records: (0, 0), times: (0.0, 0.0), lanes: Vec::new() }
    }
}

impl Steady {
    /// Holds nowhere any more.
    pub(super) fn forget(&mut self) {
        self.records = (0, 0);
    }

    /// Begins anew, without instances.
    pub(super) fn begin(&mut self) {
        self.records = (Ordinal::MIN, Ordinal::MAX);
        self.times = (f64::NEG_INFINITY, f64::INFINITY);
        self.lanes.clear();
    }

    /// True if the same would be found at a time.
    pub(super) fn holds(&self, cut: &Cut) -> bool {
        let ((passed, next), (from, to)) = (self.records, self.times);
        passed < cut.after && cut.after <= next && from < cut.time && cut.time < to
    }

    /// Holds as long as an instance goes on to live, or not to live, as it does at a time.
    pub(super) fn keep_life(&mut self, (birth, death): (f64, f64), time: f64) {
        match birth <= time {
            true => self.times.0 = self.times.0.max(birth),
            false => self.times.1 = self.times.1.min(birth),
        }
        match death < time {
            true => self.times.0 = self.times.0.max(death),
            false => self.times.1 = self.times.1.min(death),
        }
    }

    /// Holds as long as a lane has the same ends.
    pub(super) fn keep_between(&mut self, before: &End, after: &End) {
        self.records.0 = self.records.0.max(before.record());
        self.records.1 = self.records.1.min(after.record());
        if before.is_value() {
            self.times.0 = self.times.0.max(before.time);
        }
        if after.is_value() {
            self.times.1 = self.times.1.min(after.time);
        }
    }

    /// Adds an instance.
    pub(super) fn add(&mut self, instance: InstId, earlier: Sample, later: Sample) {
        self.lanes.push(SteadyLane { instance, earlier, later });
    }

    /// Writes the values at a time for which it holds.
    pub(super) fn write(
        &self,
        (value_type, rule): (ValueType, Rule),
        rules: &InterpolationRules,
        time: f64,
        in_blocks: bool,
        writer: &mut SetWriter<'_>,
    ) {
        let values = self.lanes.iter().map(|lane| {
            let SteadyLane { instance, earlier, later } = *lane;
            (instance, rule.number(value_type, rules, time, earlier, later))
        });
        writer.numbers(value_type, in_blocks, values);
    }
}
