//! Partial aggregates: results of a group before all hosts are in.
//!
//! They are computed for one virtual shard at a time, from its hosts by name and each host's
//! instances by name. They are merged in the order of the shards. So the bits of a result
//! depend neither on the arrival of frames nor on the division of shards among collectors.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use pmderive_runtime::kernel::statistic::quantile;

use super::aggregate::Function;
use super::operand::Kind;

/// Most values of a quantile. It is exact, and refused above this.
pub const MAX_QUANTILE_VALUES: usize = 65_536;

/// Numbers of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Hosts of the group.
    pub expected: u32,
    /// Hosts with values.
    pub present: u32,
    /// Hosts without a correct answer before the deadline.
    pub failed: u32,
    /// Hosts whose slot was never begun, or without any report.
    pub missed: u32,
    /// Hosts that answered, without a value of the metric.
    pub no_value: u32,
    /// Hosts that answered with a value that cannot be converted to the first class's type or
    /// units.
    pub left_out: u32,
}

/// Partial result of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Partial {
    /// The number of values.
    pub count: u64,
    /// A sum that identifies the instances and hosts of these values.
    pub members: u128,
    /// The hosts of the group.
    pub hosts: Hosts,
    /// The part that depends on the function.
    pub values: Values,
}

/// The part of a result that depends on the function.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Only the number of values.
    Count,
    /// The exact sum of integers.
    Integer(i128),
    /// A sum.
    Float(f64),
    /// The greatest or least value so far, as bits.
    Extreme(Option<u64>),
    /// The first instances of a ranking, best first.
    Ranked(Vec<Ranked>),
    /// All of them, unless there are more than [`MAX_QUANTILE_VALUES`].
    All(Vec<f64>),
}

/// An instance of a host in a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The greater the better; 0 for NaN.
    pub key: u64,
    /// The value, as bits.
    pub bits: u64,
    /// Name of the host.
    pub host: Arc<str>,
    /// External name of the instance; empty for a metric without a domain.
    pub instance: Arc<str>,
}

/// Result of an aggregate for a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Total {
    /// A value, as bits.
    Value(u64),
    /// Instances of hosts.
    Ranked(Vec<Ranked>),
    /// There were no values.
    Nothing,
    /// The sum overflows its type.
    Overflow,
    /// There are too many values for an exact quantile.
    TooMany,
}

/// A lane that may be ranked: better ones are greater.
type Candidate = (u64, Reverse<u64>, u64);

/// The best lanes of one group and shard.
#[derive(Debug, Default)]
pub struct Ranking(BinaryHeap<Reverse<Candidate>>);

impl Partial {
    /// The result of no values.
    pub fn new(function: Function, kind: Kind) -> Partial {
        let values = match (function, kind) {
            (Function::Count, _) => Values::Count,
            (Function::Sum | Function::Avg, Kind::Float) => Values::Float(0.0),
            (Function::Sum | Function::Avg, _) => Values::Integer(0),
            (Function::Extreme { .. }, _) => Values::Extreme(None),
            (Function::Ranked { .. }, _) => Values::Ranked(Vec::new()),
            (Function::Quantile(_), _) => Values::All(Vec::new()),
        };
        Partial { count: 0, members: 0, hosts: Hosts::default(), values }
    }

    /// Adds the values of one host; not for rankings.
    pub fn add(&mut self, function: Function, kind: Kind, lanes: &[u64]) {
        self.count += lanes.len() as u64;
        match &mut self.values {
            Values::Count | Values::Ranked(_) => {}
            Values::Integer(sum) => {
                *sum += match kind {
                    Kind::Signed => lanes.iter().map(|bits| i128::from(*bits as i64)).sum::<i128>(),
                    _ => lanes.iter().map(|bits| i128::from(*bits)).sum::<i128>(),
                }
            }
            Values::Float(sum) => {
                *sum = lanes.iter().fold(*sum, |sum, bits| sum + f64::from_bits(*bits));
            }
            Values::Extreme(best) => {
                for bits in lanes {
                    take_extreme(best, *bits, function, kind);
                }
            }
            Values::All(all) => {
                if self.count <= MAX_QUANTILE_VALUES as u64 {
                    all.extend(lanes.iter().map(|bits| as_f64(*bits, kind)));
                }
            }
        }
    }

    /// Merges the values of a later shard.
    pub fn merge(&mut self, function: Function, kind: Kind, later: &Partial) {
        self.count += later.count;
        self.members = self.members.wrapping_add(later.members);
        self.hosts.add(&later.hosts);
        match (&mut self.values, &later.values) {
            (Values::Integer(sum), Values::Integer(later)) => *sum += later,
            (Values::Float(sum), Values::Float(later)) => *sum += later,
            (Values::Extreme(best), Values::Extreme(Some(bits))) => {
                take_extreme(best, *bits, function, kind);
            }
            (Values::Ranked(best), Values::Ranked(later)) => best.extend(later.iter().cloned()),
            (Values::All(all), Values::All(later)) if self.count <= MAX_QUANTILE_VALUES as u64 => {
                all.extend(later);
            }
            _ => {}
        }
    }

    /// The result, once all shards are merged.
    pub fn total(self, function: Function, kind: Kind) -> Total {
        if self.count == 0 {
            return Total::Nothing;
        }
        let float = |value: f64| {
            // The bits of a NaN depend on the machine.
            Total::Value(if value.is_nan() { f64::NAN } else { value }.to_bits())
        };
        match (self.values, function) {
            (Values::Integer(sum), Function::Avg) => float(sum as f64 / self.count as f64),
            (Values::Float(sum), Function::Avg) => float(sum / self.count as f64),
            (Values::Integer(sum), _) => match kind {
                Kind::Signed => i64::try_from(sum).ok().map(|sum| sum as u64),
                _ => u64::try_from(sum).ok(),
            }
            .map_or(Total::Overflow, Total::Value),
            (Values::Float(sum), _) => float(sum),
            (Values::Extreme(best), _) => match (best, kind) {
                (None, _) => Total::Nothing,
                (Some(bits), Kind::Float) => float(f64::from_bits(bits)),
                (Some(bits), _) => Total::Value(bits),
            },
            (Values::Ranked(mut best), Function::Ranked { k, .. }) => {
                best.sort_by(Ranked::order);
                best.truncate(usize::try_from(k).unwrap_or(usize::MAX));
                Total::Ranked(best)
            }
            (Values::All(mut all), Function::Quantile(q)) => {
                match self.count > MAX_QUANTILE_VALUES as u64 {
                    true => Total::TooMany,
                    false => float(quantile(&mut all, q)),
                }
            }
            (Values::Count, _) => Total::Value(self.count),
            (Values::Ranked(_) | Values::All(_), _) => Total::Nothing,
        }
    }
}

impl Hosts {
    /// Adds the numbers of other hosts.
    pub fn add(&mut self, other: &Hosts) {
        let Hosts { expected, present, failed, missed, no_value, left_out } = other;
        self.expected += expected;
        self.present += present;
        self.failed += failed;
        self.missed += missed;
        self.no_value += no_value;
        self.left_out += left_out;
    }
}

impl Ranked {
    /// Orders the better first; equals by host and instance.
    fn order(&self, other: &Ranked) -> Ordering {
        let place = (&*self.host, &*self.instance);
        other.key.cmp(&self.key).then_with(|| place.cmp(&(&*other.host, &*other.instance)))
    }
}

impl Ranking {
    /// Adds the values of one host. `place` grows with hosts, and leaves room for as many
    /// numbers as there are lanes.
    pub fn add(&mut self, k: u32, top: bool, kind: Kind, lanes: &[u64], place: u64) {
        let k = usize::try_from(k).unwrap_or(usize::MAX);
        for (at, bits) in (place..).zip(lanes) {
            let candidate = (rank(*bits, kind, top), Reverse(at), *bits);
            if self.0.len() < k {
                self.0.push(Reverse(candidate));
            } else if let Some(mut worst) = self.0.peek_mut()
                && worst.0 < candidate
            {
                *worst = Reverse(candidate);
            }
        }
    }

    /// Takes the best lanes out, best first, each with its place.
    pub fn take(&mut self) -> Vec<(u64, u64, u64)> {
        let mut all: Vec<Candidate> = self.0.drain().map(|Reverse(one)| one).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter().map(|(key, Reverse(place), bits)| (key, place, bits)).collect()
    }
}

/// A rank that grows with better values; 0 for NaN.
fn rank(bits: u64, kind: Kind, top: bool) -> u64 {
    const SIGN: u64 = 1 << 63;
    let ascending = match kind {
        Kind::Signed => bits ^ SIGN,
        Kind::Unsigned | Kind::Other => bits,
        Kind::Float => {
            let value = f64::from_bits(bits);
            if value.is_nan() {
                return 0;
            }
            // Zeros are equal, whatever their sign.
            let bits = (value + 0.0).to_bits();
            if bits & SIGN == 0 { bits | SIGN } else { !bits }
        }
    };
    if top { ascending } else { !ascending }
}

fn as_f64(bits: u64, kind: Kind) -> f64 {
    match kind {
        Kind::Float => f64::from_bits(bits),
        Kind::Signed => bits as i64 as f64,
        Kind::Unsigned | Kind::Other => bits as f64,
    }
}

/// Keeps the first of the greatest or least values; NaN once there is one.
fn take_extreme(best: &mut Option<u64>, bits: u64, function: Function, kind: Kind) {
    let greatest = function == Function::Extreme { greatest: true };
    let Some(known) = *best else {
        *best = Some(bits);
        return;
    };
    let order = match kind {
        Kind::Signed => (bits as i64).cmp(&(known as i64)),
        Kind::Unsigned | Kind::Other => bits.cmp(&known),
        Kind::Float => {
            let (new, old) = (f64::from_bits(bits), f64::from_bits(known));
            if old.is_nan() {
                return;
            }
            if new.is_nan() {
                *best = Some(bits);
                return;
            }
            new.partial_cmp(&old).unwrap_or(Ordering::Equal)
        }
    };
    let better = if greatest { Ordering::Greater } else { Ordering::Less };
    if order == better {
        *best = Some(bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Function; 6] = [
        Function::Count,
        Function::Sum,
        Function::Avg,
        Function::Extreme { greatest: true },
        Function::Extreme { greatest: false },
        Function::Quantile(0.5),
    ];

    /// Results of [`ALL`] over lanes, of which each part is a shard.
    fn totals(kind: Kind, shards: &[&[u64]]) -> Vec<Total> {
        let of = |function: Function| {
            let mut all = Partial::new(function, kind);
            for lanes in shards {
                let mut part = Partial::new(function, kind);
                part.add(function, kind, lanes);
                all.merge(function, kind, &part);
            }
            all.total(function, kind)
        };
        ALL.into_iter().map(of).collect()
    }

    #[test]
    fn each_function_over_floats() {
        use Total::{Nothing, Value};
        let nan = f64::NAN.to_bits();
        let float = |value: f64| Value(value.to_bits());
        for (lanes, expected) in [
            (&[][..], [Nothing, Nothing, Nothing, Nothing, Nothing, Nothing]),
            (&[3.0], [Value(1), float(3.0), float(3.0), float(3.0), float(3.0), float(3.0)]),
            (
                &[1.0, 4.0, -2.5, 3.0],
                [Value(4), float(5.5), float(1.375), float(4.0), float(-2.5), float(2.0)],
            ),
            (
                &[1.0, f64::NAN, 2.0],
                [Value(3), Value(nan), Value(nan), Value(nan), Value(nan), Value(nan)],
            ),
            (
                &[f64::INFINITY, f64::NEG_INFINITY],
                [
                    Value(2),
                    Value(nan),
                    Value(nan),
                    float(f64::INFINITY),
                    float(f64::NEG_INFINITY),
                    Value(nan),
                ],
            ),
        ] {
            let lanes: Vec<u64> = lanes.iter().map(|value: &f64| value.to_bits()).collect();
            let single: Vec<&[u64]> = lanes.chunks(1).collect();
            for shards in [vec![&lanes[..]], single] {
                assert_eq!(totals(Kind::Float, &shards), expected, "{lanes:?}");
            }
        }
    }

    #[test]
    fn each_function_over_integers() {
        use Total::{Overflow, Value};
        let float = |value: f64| Value(value.to_bits());
        let unsigned = totals(Kind::Unsigned, &[&[7, u64::MAX], &[1 << 63]]);
        assert_eq!(unsigned[..2], [Value(3), Overflow]);
        assert_eq!(unsigned[3..5], [Value(u64::MAX), Value(7)]);
        let whole = totals(Kind::Unsigned, &[&[7, 1], &[4]]);
        let expected = [Value(3), Value(12), float(4.0), Value(7), Value(1), float(4.0)];
        assert_eq!(whole, expected);
        let minus = |value: i64| value as u64;
        let signed = totals(Kind::Signed, &[&[minus(-7), 1], &[minus(-3)]]);
        let expected =
            [Value(3), Value(minus(-9)), float(-3.0), Value(1), Value(minus(-7)), float(-3.0)];
        assert_eq!(signed, expected);
        assert_eq!(totals(Kind::Signed, &[&[minus(i64::MIN)], &[minus(-1)]])[1], Overflow);
        // An overflow on the way does not matter.
        let sums = totals(Kind::Signed, &[&[minus(i64::MAX), 1], &[minus(-1)]]);
        assert_eq!(sums[1], Value(minus(i64::MAX)));
    }

    #[test]
    fn a_sum_depends_on_the_shards_and_not_on_who_merges() {
        let lanes = [1e16, 1.0, -1e16, 1.0].map(f64::to_bits);
        let [one, two] = [&lanes[..2], &lanes[2..]];
        let sum = |shards: &[&[u64]]| totals(Kind::Float, shards)[1].clone();
        assert_eq!(sum(&[&lanes]), Total::Value(1f64.to_bits()));
        assert_eq!(sum(&[one, two]), Total::Value(0f64.to_bits()));
    }

    #[test]
    fn quantiles_are_exact_up_to_a_limit() {
        let function = Function::Quantile(1.0);
        for (extra, expected) in
            [(0, Total::Value(7f64.to_bits())), (1, Total::TooMany), (9999, Total::TooMany)]
        {
            let mut all = Partial::new(function, Kind::Unsigned);
            let mut part = Partial::new(function, Kind::Unsigned);
            part.add(function, Kind::Unsigned, &vec![7; MAX_QUANTILE_VALUES - 1 + extra]);
            all.merge(function, Kind::Unsigned, &part);
            let mut last = Partial::new(function, Kind::Unsigned);
            last.add(function, Kind::Unsigned, &[1]);
            all.merge(function, Kind::Unsigned, &last);
            let Values::All(values) = &all.values else { panic!("a quantile has values") };
            assert!(values.len() <= MAX_QUANTILE_VALUES);
            assert_eq!(all.total(function, Kind::Unsigned), expected);
        }
    }

    #[test]
    fn rankings_take_the_first_of_equals_and_nan_last() {
        let of = |top: bool, k: u32, values: &[f64]| {
            let lanes: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            let mut ranking = Ranking::default();
            for (place, lane) in (0..).step_by(10).zip(lanes.chunks(1)) {
                ranking.add(k, top, Kind::Float, lane, place);
            }
            let places: Vec<u64> = ranking.take().iter().map(|(_, place, _)| place / 10).collect();
            places
        };
        let values = [2.0, f64::NAN, 5.0, -0.0, 5.0, 0.0];
        assert_eq!(of(true, 3, &values), [2, 4, 0]);
        assert_eq!(of(false, 3, &values), [3, 5, 0]);
        assert_eq!(of(true, 6, &values), [2, 4, 0, 3, 5, 1]);
        assert_eq!(of(false, 99, &values), [3, 5, 0, 2, 4, 1]);
    }
}
