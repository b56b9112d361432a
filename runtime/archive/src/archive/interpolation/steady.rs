//! The values of a metric as long as time passes no record that matters to it.
//!
//! Input: the values found for each lane at one time. Output: the values at other times
//! for which the same would be found, without a search. Only metrics of numbers have
//! this.

use pmderive_core::model::{InstId, ValueType};
use pmderive_core::result::ResultWriter;

use crate::archive::interpolation::coverage::Ordinal;
use crate::archive::interpolation::lane::{Cut, Lane};
use crate::archive::interpolation::rules::InterpolationRules;
use crate::archive::interpolation::value::{Line, Rule, Sample, Span};

/// A range of records and of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The first record after the time comes after the one and not after the other.
    records: (Ordinal, Ordinal),
    /// The time lies strictly between these.
    times: (f64, f64),
}

impl Stretch {
    /// The empty range.
    pub(super) const NONE: Stretch = Stretch { records: (0, 0), times: (0.0, 0.0) };
    /// The unlimited range.
    pub(super) const ALL: Stretch = Stretch {
        records: (Ordinal::MIN, Ordinal::MAX),
        times: (f64::NEG_INFINITY, f64::INFINITY),
    };

    /// True if a time lies in the range.
    pub(super) fn holds(&self, cut: &Cut) -> bool {
        let ((passed, next), (from, to)) = (self.records, self.times);
        passed < cut.after && cut.after <= next && from < cut.time && cut.time < to
    }

    /// The intersection of both ranges.
    pub(super) fn and(self, other: Stretch) -> Stretch {
        Stretch {
            records: (self.records.0.max(other.records.0), self.records.1.min(other.records.1)),
            times: (self.times.0.max(other.times.0), self.times.1.min(other.times.1)),
        }
    }
}

/// The values found for a metric, and the range where they hold.
#[derive(Debug)]
pub(super) struct Steady {
    stretch: Stretch,
    value_type: ValueType,
    rule: Rule,
    instances: Vec<InstId>,
    /// Parallel to `instances`, if all values lie on straight lines between the same
    /// two times.
    lines: Vec<Line>,
    /// These two times.
    span: Span,
    /// Parallel to `instances` otherwise: the values before and after.
    samples: Vec<(Sample, Sample)>,
}

/// An instance with the values that its own value lies between.
#[derive(Clone, Copy, Debug)]
pub(super) struct SteadyLane {
    pub(super) instance: InstId,
    pub(super) earlier: Sample,
    pub(super) later: Sample,
}

impl Default for Steady {
    fn default() -> Steady {
        Steady {
            stretch: Stretch::NONE,
            value_type: ValueType::Unknown,
            rule: Rule::Earlier,
            instances: Vec::new(),
            lines: Vec::new(),
            span: Span { from: 0.0, to: 0.0 },
            samples: Vec::new(),
        }
    }
}

impl Steady {
    /// The range where the same would be found.
    pub(super) fn stretch(&self) -> Stretch {
        self.stretch
    }

    /// Empties the range.
    pub(super) fn forget(&mut self) {
        self.stretch = Stretch::NONE;
    }

    /// Begins a new search. Until it finds something, the range is unlimited.
    pub(super) fn begin(&mut self) {
        self.stretch = Stretch::ALL;
    }

    /// Restricts the range to times strictly between two others.
    pub(super) fn keep_times(&mut self, (from, to): (f64, f64)) {
        let times = &mut self.stretch.times;
        *times = (times.0.max(from), times.1.min(to));
    }

    /// Restricts the range to times at which a lane has the same ends.
    pub(super) fn keep_between(&mut self, Lane { before, after }: &Lane) {
        let Stretch { records, times } = &mut self.stretch;
        records.0 = records.0.max(before.record());
        records.1 = records.1.min(after.record());
        if before.is_value() {
            times.0 = times.0.max(before.sample().time);
        }
        if after.is_value() {
            times.1 = times.1.min(after.sample().time);
        }
    }

    /// Completes the search with its results: instances, and for each the two values that its own
    /// values lie between. The values have a type and follow a rule.
    pub(super) fn finish(
        &mut self,
        instances: impl ExactSizeIterator<Item = InstId>,
        values: impl ExactSizeIterator<Item = (Sample, Sample)> + Clone,
        (value_type, rule): (ValueType, Rule),
        rules: &InterpolationRules,
    ) {
        (self.value_type, self.rule) = (value_type, rule);
        renew(&mut self.instances, instances);
        let span =
            |(earlier, later): &(Sample, Sample)| Span { from: earlier.time, to: later.time };
        self.span = values.clone().next().as_ref().map_or(self.span, span);
        let line = |values: (Sample, Sample)| {
            let is_alike = span(&values) == self.span;
            is_alike.then(|| Line::between(value_type, rules, values.0, values.1))?
        };
        let count = if rule == Rule::OnLine { values.len() } else { 0 };
        self.lines.clear();
        self.lines.reserve_exact(count);
        self.lines.extend(values.clone().take(count).map_while(line));
        let others = if self.lines.len() == values.len() { 0 } else { values.len() };
        renew(&mut self.samples, values.take(others));
    }

    /// Writes the values at `time`, which must be in the range.
    pub(super) fn write(
        &self,
        rules: &InterpolationRules,
        time: f64,
        in_blocks: bool,
        writer: &mut ResultWriter<'_>,
    ) {
        let instances = self.instances.iter().copied();
        self.overwrite(rules, time, writer.numbers(self.value_type, !in_blocks, instances));
    }

    /// Overwrites values that were written with those at `time`, which must be in the
    /// range.
    pub(super) fn overwrite(&self, rules: &InterpolationRules, time: f64, out: &mut [u8]) {
        let Steady { value_type, rule, samples, lines, .. } = self;
        if samples.is_empty() {
            let share = self.span.share(time);
            let bits = |line: &Line| line.bits(*value_type, rules.overflow, share);
            put(*value_type, lines.iter().map(bits), out);
        } else {
            let bits = |(earlier, later): &(Sample, Sample)| {
                rule.number(*value_type, rules, time, *earlier, *later)
            };
            put(*value_type, samples.iter().map(bits), out);
        }
    }
}

/// Replaces the contents of a list. The list gets no larger than it has to be.
fn renew<T>(list: &mut Vec<T>, of: impl ExactSizeIterator<Item = T>) {
    list.clear();
    list.reserve_exact(of.len());
    list.extend(of);
}

/// Writes numbers of a type into lanes, given as bits.
#[inline]
fn put(value_type: ValueType, numbers: impl Iterator<Item = u64>, out: &mut [u8]) {
    if value_type.lane_bytes() == 8 {
        let lanes = out.as_chunks_mut().0.iter_mut();
        lanes.zip(numbers).for_each(|(lane, bits)| *lane = bits.to_ne_bytes());
    } else {
        let lanes = out.as_chunks_mut().0.iter_mut();
        lanes.zip(numbers).for_each(|(lane, bits)| *lane = (bits as u32).to_ne_bytes());
    }
}
