//! Computes the value of a metric between two records.
//!
//! Input: the values of both records as bits of a known type, and the times. Output:
//! bits of the same type.

use pmderive_core::model::{Semantics, ValueType};

use crate::archive::interpolation::rules::{InterpolationRules, Neighbour, Overflow};

/// A value at a time in seconds. Numbers of 32 bits are in the low half of `bits`. For
/// other values, `bits` has no meaning here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) time: f64,
    pub(super) bits: u64,
}

/// The origin of a value between two records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Between {
    /// The earlier record.
    Earlier,
    /// The later record.
    Later,
    /// An interpolated number.
    Number(u64),
}

/// True for types whose values are numbers.
pub(super) fn is_number(value_type: ValueType) -> bool {
    use ValueType::{F32, F64, I32, I64, U32, U64};
    matches!(value_type, I32 | U32 | I64 | U64 | F32 | F64)
}

/// True if the value of a discrete metric also depends on the record after the time.
pub(super) fn looks_ahead(value_type: ValueType, rules: &InterpolationRules) -> bool {
    rules.neighbour == Neighbour::Nearer && is_number(value_type)
}

/// The formula for values between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The value of the earlier record.
    Earlier,
    /// The value of the nearer record; of the earlier one if both are equally near.
    Nearer,
    /// The value on the straight line between both.
    OnLine,
}

impl Rule {
    /// The rule for metrics of a type and semantics.
    pub(super) fn of(
        value_type: ValueType,
        semantics: Semantics,
        rules: &InterpolationRules,
    ) -> Rule {
        match (semantics, rules.neighbour) {
            _ if !is_number(value_type) => Rule::Earlier,
            (Semantics::Counter, _) => Rule::OnLine,
            (_, Neighbour::Nearer) => Rule::Nearer,
            (_, Neighbour::Earlier) => Rule::Earlier,
        }
    }

    /// The value at `time`, which lies between the two samples.
    pub(super) fn between(
        self,
        value_type: ValueType,
        rules: &InterpolationRules,
        time: f64,
        earlier: Sample,
        later: Sample,
    ) -> Between {
        match self {
            Rule::Nearer if later.is_nearer(&earlier, time) => Between::Later,
            Rule::Earlier | Rule::Nearer => Between::Earlier,
            Rule::OnLine => Between::Number(on_line(value_type, rules, time, earlier, later)),
        }
    }

    /// The bits of the value that [`Rule::between`] gives for numbers.
    #[inline]
    pub(super) fn number(
        self,
        value_type: ValueType,
        rules: &InterpolationRules,
        time: f64,
        earlier: Sample,
        later: Sample,
    ) -> u64 {
        match self {
            Rule::Nearer if later.is_nearer(&earlier, time) => later.bits,
            Rule::Earlier | Rule::Nearer => earlier.bits,
            Rule::OnLine => on_line(value_type, rules, time, earlier, later),
        }
    }
}

impl Sample {
    /// True if `time` is nearer to this sample than to the earlier one.
    #[inline]
    pub(super) fn is_nearer(&self, earlier: &Sample, time: f64) -> bool {
        time > (earlier.time + self.time) / 2.0
    }
}

/// Linear interpolation with libpcp's intermediate types and order of operations.
#[inline]
fn on_line(
    value_type: ValueType,
    rules: &InterpolationRules,
    time: f64,
    earlier: Sample,
    later: Sample,
) -> u64 {
    let span = Span { from: earlier.time, to: later.time };
    match Line::between(value_type, rules, earlier, later) {
        Some(line) => line.bits(value_type, rules.overflow, span.share(time)),
        None => counted_on(value_type, rules, time, earlier, later),
    }
}

/// The times of two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Span {
    /// The seconds from the first time to `time`, and to the second time.
    pub(super) fn share(&self, time: f64) -> (f64, f64) {
        (time - self.from, self.to - self.from)
    }
}

/// The straight line between two samples, without their times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The number at the earlier sample, plus 0.5 for integers.
    start: f64,
    /// The difference between the later and the earlier number.
    rise: f64,
}

impl Line {
    /// The line between two samples. `None` if a counter wraps between them, or if its
    /// number has more bits than a line has.
    pub(super) fn between(
        value_type: ValueType,
        rules: &InterpolationRules,
        earlier: Sample,
        later: Sample,
    ) -> Option<Line> {
        let (before, after) = (earlier.bits, later.bits);
        let has_fallen = match value_type {
            ValueType::I32 => (after as i32) < before as i32,
            ValueType::U32 => (after as u32) < before as u32,
            ValueType::I64 => (after as i64) < before as i64,
            ValueType::U64 => after < before,
            _ => false,
        };
        let is_exact = rules.overflow == Overflow::Nearest;
        let is_long = match value_type {
            ValueType::I64 => {
                [before, after].iter().any(|number| (*number as i64).unsigned_abs() > LARGEST_EXACT)
            }
            ValueType::U64 => before.max(after) > LARGEST_EXACT,
            _ => false,
        };
        // libpcp rounds long numbers, so that a counter that rises seems to fall.
        let is_rounded = is_long && is_exact;
        let wraps = rules.counters_wrap && (is_exact || value_type != ValueType::I64);
        if has_fallen && wraps || is_rounded && !has_fallen {
            return None;
        }
        let (start, rise) = match value_type {
            ValueType::I32 => {
                let (before, after) = (before as i32, after as i32);
                let rise = match is_exact {
                    true => f64::from(after) - f64::from(before),
                    false => f64::from(after.wrapping_sub(before)),
                };
                (0.5 + f64::from(before), rise)
            }
            ValueType::U32 => {
                let (before, after) = (before as u32, after as u32);
                (0.5 + f64::from(before), f64::from(after) - f64::from(before))
            }
            // Unsigned values are taken as signed. Those just below 2^64 stay precise,
            // and they pass their wrap correctly.
            ValueType::I64 | ValueType::U64 => {
                (0.5 + before as i64 as f64, after.wrapping_sub(before) as i64 as f64)
            }
            ValueType::F32 => {
                let (before, after) = (f32::from_bits(before as u32), f32::from_bits(after as u32));
                (f64::from(before), f64::from(after - before))
            }
            _ => {
                let (before, after) = (f64::from_bits(before), f64::from_bits(after));
                (before, after - before)
            }
        };
        Some(Line { start, rise })
    }

    /// The bits of the number at a time, which is given as by [`Span::share`].
    #[inline(always)]
    pub(super) fn bits(
        &self,
        value_type: ValueType,
        overflow: Overflow,
        (passed, span): (f64, f64),
    ) -> u64 {
        let number = self.start + passed * self.rise / span;
        // libpcp rounds negative numbers up, which have 0.5 added too.
        let is_low = overflow == Overflow::Nearest && number < 0.0;
        match value_type {
            ValueType::I32 if is_low => u64::from(number.floor() as i32 as u32),
            ValueType::I32 => u64::from(to_i32(number, overflow) as u32),
            ValueType::U32 => u64::from(number as u32),
            // A number that rises beyond the signed values.
            ValueType::U64 if number >= I64_LIMIT => to_u64(number, overflow),
            ValueType::U64 => to_i64(number, overflow) as u64,
            ValueType::I64 if is_low => number.floor() as i64 as u64,
            ValueType::I64 => to_i64(number, overflow) as u64,
            ValueType::F32 => u64::from((number as f32).to_bits()),
            _ => number.to_bits(),
        }
    }
}

/// Up to this integer, doubles have all of them and the halves between.
const LARGEST_EXACT: u64 = 1 << (f64::MANTISSA_DIGITS - 1);

/// The value of an integer counter that rises from one sample to the next, modulo its
/// number of bits.
fn counted_on(
    value_type: ValueType,
    rules: &InterpolationRules,
    time: f64,
    earlier: Sample,
    later: Sample,
) -> u64 {
    let (passed, span) = (time - earlier.time, later.time - earlier.time);
    let share = |difference: f64| passed * difference / span;
    let (before, rise) = (earlier.bits, later.bits.wrapping_sub(earlier.bits));
    match (value_type, rules.overflow) {
        (ValueType::I32 | ValueType::U32, _) => {
            let passed = (0.5 + share(f64::from(rise as u32))) as u32;
            u64::from((before as u32).wrapping_add(passed))
        }
        (_, Overflow::AsInC) => to_u64(0.5 + before as f64 + share(rise as f64), Overflow::AsInC),
        (_, Overflow::Nearest) => {
            let [passed, span] = [passed, span].map(|seconds| (seconds * 1e9).round() as u128);
            let passed = (u128::from(rise) * passed + span / 2).checked_div(span);
            before.wrapping_add(passed.unwrap_or_default() as u64)
        }
    }
}

fn to_i32(number: f64, overflow: Overflow) -> i32 {
    let fits = number > -2_147_483_649.0 && number < 2_147_483_648.0;
    match overflow {
        Overflow::AsInC if !fits => i32::MIN,
        _ => number as i32,
    }
}

/// The smallest number that is too large for a signed 64-bit integer.
const I64_LIMIT: f64 = 9_223_372_036_854_775_808.0;

fn to_u64(number: f64, overflow: Overflow) -> u64 {
    match overflow {
        Overflow::AsInC if number >= 2.0 * I64_LIMIT => 0,
        _ => number as u64,
    }
}

fn to_i64(number: f64, overflow: Overflow) -> i64 {
    let fits = (-I64_LIMIT..I64_LIMIT).contains(&number);
    match overflow {
        Overflow::AsInC if !fits => i64::MIN,
        _ => number as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters that doubles cannot hold rise by one a second, to the last digit; libpcp's
    /// have the bits that doubles have.
    #[test]
    fn long_counters() {
        let exact = InterpolationRules::default();
        let rounded = InterpolationRules { overflow: Overflow::AsInC, ..exact };
        let long = 1_u64 << 63;
        let cases = [
            (ValueType::U64, long, [long + 5, long]),
            (ValueType::U64, u64::MAX - 20, [u64::MAX - 15, u64::MAX - 14]),
            (ValueType::U64, (1 << 54) + 2, [(1 << 54) + 7, (1 << 54) + 4]),
            (ValueType::I64, 1 << 62, [(1 << 62) + 5, 1 << 62]),
            (ValueType::I64, long, [long + 5, long]),
            (ValueType::U64, 1 << 40, [(1 << 40) + 5, (1 << 40) + 5]),
        ];
        for (value_type, before, expected) in cases {
            let earlier = Sample { time: 100.0, bits: before };
            let later = Sample { time: 110.0, bits: before + 10 };
            let found = [exact, rounded]
                .map(|rules| Rule::OnLine.number(value_type, &rules, 105.0, earlier, later));
            assert_eq!(found, expected, "{value_type} {before}");
        }
        // Numbers that become long, and numbers that rise by more than doubles hold.
        for (value_type, before, after, half) in [
            (ValueType::U64, (1 << 53) - 1, (1 << 53) + 9, (1 << 53) + 4),
            // From 2^52 on, doubles lack the halves by which libpcp rounds.
            (ValueType::U64, (1 << 52) + 1, (1 << 52) + 1, (1 << 52) + 1),
            (ValueType::I64, (1 << 52) + 1, (1 << 52) + 3, (1 << 52) + 2),
            (ValueType::U64, 40, u64::MAX - 5, (1 << 63) + 17),
            (ValueType::I64, 40, i64::MAX as u64 - 5, (1 << 62) + 17),
        ] {
            let (earlier, later) =
                (Sample { time: 0.0, bits: before }, Sample { time: 10.0, bits: after });
            let found = Rule::OnLine.number(value_type, &exact, 5.0, earlier, later);
            assert_eq!(found, half, "{value_type} {before}");
        }
        // A counter that falls has been reset: there is no exact value in between.
        let (earlier, later) =
            (Sample { time: 0.0, bits: long }, Sample { time: 10.0, bits: long - 10 });
        let found = Rule::OnLine.number(ValueType::U64, &exact, 5.0, earlier, later);
        assert!((long - 4096..=long).contains(&found), "{found}");
    }

    /// Numbers below zero are rounded to the nearest one; libpcp's are one too high.
    #[test]
    fn negative_counters() {
        let exact = InterpolationRules::default();
        let rounded = InterpolationRules { overflow: Overflow::AsInC, ..exact };
        for (before, after, time, expected) in [
            (-10, 0, 1.0, [-9, -8]),
            (-10, 0, 0.0, [-10, -9]),
            (-7, 3, 9.0, [2, 2]),
            (-1_500_000_000, 1_500_000_000, 5.0, [0, i32::MIN + 1]),
        ] {
            let sample = |time, number: i32| Sample { time, bits: u64::from(number as u32) };
            let (earlier, later) = (sample(0.0, before), sample(10.0, after));
            let found = [exact, rounded].map(|rules| {
                Rule::OnLine.number(ValueType::I32, &rules, time, earlier, later) as u32 as i32
            });
            assert_eq!(found, expected, "{before} to {after} at {time}");
        }
    }
}
