//! Scripts of a fake pmcd's values: functions of the time, the number of the
//! fetch, the instance and the host.
//!
//! A script keeps no state. One script serves any number of hosts, and the same
//! moment always gives the same values.

use std::fmt;
use std::sync::Arc;

use pmderive_core::model::{InstId, PmStatus, Pmid, Timestamp, Value, ValueType};

/// The origin of a metric's values. Computed values have the metric's type;
/// whole numbers wrap like counters of that width.
#[derive(Clone)]
#[non_exhaustive]
pub enum Script {
    /// Always this value, whatever type the metric has.
    Constant(Value),
    /// One value after another with each fetch of the host, in a cycle. An
    /// empty list gives no value.
    Cycle(Arc<[Value]>),
    /// Grows with the time since the host or the agent was started.
    Counter {
        /// The first value.
        start: u64,
        /// The growth per second.
        per_second: f64,
    },
    /// Swings with the time since the host was started.
    Sine {
        /// In the middle.
        mean: f64,
        /// Greatest distance from there.
        amplitude: f64,
        /// Seconds from one crest to the next.
        period: f64,
    },
    /// A number between two others, another one for each fetch, instance and
    /// host, and the same again for the same seed.
    Random {
        /// Least number.
        low: f64,
        /// Greatest number.
        high: f64,
    },
    /// The same shape for every instance and host, but of another size: the
    /// script's numbers times a factor between 1 - `spread` and 1 + `spread`.
    Varied {
        /// The shape.
        of: Box<Script>,
        /// Greatest deviation of the factor from 1.
        spread: f64,
    },
    /// The number of fetches that the host has answered, this one included.
    Fetches,
    /// Name of the host.
    HostName,
    /// No value, and a status.
    Fails(PmStatus),
    /// No value, without a status.
    Silent,
    /// A value from a function; `None` for no value of that instance.
    Function(Compute),
}

/// A function that computes values.
pub type Compute = Arc<dyn Fn(&Moment<'_>) -> Option<Value> + Send + Sync>;

/// The facts that a value may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'h> {
    /// The time of the values.
    pub time: Timestamp,
    /// Seconds since the host, or the metric's agent if that was later, was started.
    pub age: f64,
    /// Number of this fetch on the host, from 1.
    pub fetch: u64,
    /// Distinguishes hosts that share a world.
    pub seed: u64,
    /// Name of the host.
    pub host: &'h str,
    /// The metric.
    pub pmid: Pmid,
    /// The instance, -1 without an instance domain.
    pub instance: InstId,
}

impl Script {
    /// Always this one.
    pub fn constant(value: impl Into<Value>) -> Script {
        Script::Constant(value.into())
    }

    /// One value after another with each fetch.
    pub fn cycle<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Script {
        Script::Cycle(values.into_iter().map(Into::into).collect())
    }

    /// Grows from zero.
    pub const fn counter(per_second: f64) -> Script {
        Script::Counter { start: 0, per_second }
    }

    /// Values from a function.
    pub fn function(
        compute: impl Fn(&Moment<'_>) -> Option<Value> + Send + Sync + 'static,
    ) -> Script {
        Script::Function(Arc::new(compute))
    }

    /// See [`Script::Varied`].
    #[must_use]
    pub fn varied(self, spread: f64) -> Script {
        Script::Varied { of: Box::new(self), spread }
    }

    /// The value of a metric of a type at a moment. `Ok(None)` without one.
    pub(super) fn value(
        &self,
        value_type: ValueType,
        moment: &Moment<'_>,
    ) -> Result<Option<Value>, PmStatus> {
        let number = match self {
            Script::Constant(value) => return Ok(Some(value.clone())),
            Script::Cycle(values) => {
                let turn = moment.fetch.saturating_sub(1).checked_rem(as_u64(values.len()));
                let turn = turn.and_then(|turn| usize::try_from(turn).ok());
                return Ok(turn.and_then(|turn| values.get(turn).cloned()));
            }
            Script::HostName => return Ok(Some(Value::Text(moment.host.into()))),
            Script::Fails(status) => return Err(*status),
            Script::Silent => return Ok(None),
            Script::Function(compute) => return Ok(compute(moment)),
            computed => computed.number(moment),
        };
        number.of_type(value_type).map(Some)
    }

    /// The number that a computed script gives; zero for all others.
    fn number(&self, moment: &Moment<'_>) -> Number {
        match self {
            Script::Counter { start, per_second } => {
                let grown = per_second * moment.age;
                // A negative rate counts down; both wrap.
                let whole = start.wrapping_add_signed(wrapping_i64(grown));
                Number { whole, real: *start as f64 + grown }
            }
            Script::Sine { mean, amplitude, period } => {
                let turns = moment.age / period;
                Number::real(mean + amplitude * (turns * std::f64::consts::TAU).sin())
            }
            Script::Random { low, high } => {
                Number::real(low + (high - low) * unit(moment, moment.fetch))
            }
            Script::Varied { of, spread } => {
                let factor = 1.0 + spread * (2.0 * unit(moment, 0) - 1.0);
                match **of {
                    Script::Counter { start, per_second } => {
                        let per_second = per_second * factor;
                        Script::Counter { start, per_second }.number(moment)
                    }
                    ref other => Number::real(other.number(moment).real * factor),
                }
            }
            Script::Fetches => Number { whole: moment.fetch, real: moment.fetch as f64 },
            _ => Number::real(0.0),
        }
    }

    /// The type that the values have by themselves, if they have one.
    pub(super) fn own_type(&self) -> Option<ValueType> {
        match self {
            Script::Constant(value) => Some(value.value_type()),
            Script::Cycle(values) => values.first().map(Value::value_type),
            Script::Counter { .. } | Script::Fetches => Some(ValueType::U64),
            Script::Sine { .. } | Script::Random { .. } => Some(ValueType::F64),
            Script::Varied { of, .. } => of.own_type(),
            Script::HostName => Some(ValueType::String),
            Script::Fails(_) | Script::Silent | Script::Function(_) => None,
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Script::Constant(value) => f.debug_tuple("Constant").field(value).finish(),
            Script::Cycle(values) => f.debug_tuple("Cycle").field(values).finish(),
            Script::Counter { start, per_second } => {
                write!(f, "Counter({start} + {per_second}/s)")
            }
            Script::Sine { mean, amplitude, period } => {
                write!(f, "Sine({mean} +- {amplitude} in {period} s)")
            }
            Script::Random { low, high } => write!(f, "Random({low}..={high})"),
            Script::Varied { of, spread } => write!(f, "Varied({of:?}, {spread})"),
            Script::Fetches => f.write_str("Fetches"),
            Script::HostName => f.write_str("HostName"),
            Script::Fails(status) => f.debug_tuple("Fails").field(status).finish(),
            Script::Silent => f.write_str("Silent"),
            Script::Function(_) => f.write_str("Function"),
        }
    }
}

/// A number before its conversion to a type.
struct Number {
    /// Modulo 2^64; negative numbers in two's complement.
    whole: u64,
    real: f64,
}

impl Number {
    fn real(real: f64) -> Number {
        Number { whole: wrapping_i64(real).cast_unsigned(), real }
    }

    /// # Errors
    /// [`PmStatus::CONV`] for a type whose values are not numbers.
    fn of_type(&self, value_type: ValueType) -> Result<Value, PmStatus> {
        // Casts of whole numbers drop the upper bits, as a counter that wraps.
        Ok(match value_type {
            ValueType::I32 => Value::I32(self.whole as i32),
            ValueType::U32 => Value::U32(self.whole as u32),
            ValueType::I64 => Value::I64(self.whole.cast_signed()),
            ValueType::U64 => Value::U64(self.whole),
            ValueType::F32 => Value::F32(self.real as f32),
            ValueType::F64 => Value::F64(self.real),
            ValueType::String => Value::Text(self.real.to_string().into()),
            _ => return Err(PmStatus::CONV),
        })
    }
}

/// The whole part, modulo 2^64; zero for a number that is not finite.
fn wrapping_i64(real: f64) -> i64 {
    const MODULUS: f64 = 18_446_744_073_709_551_616.0;
    // The remainder is below 2^64, which 128 bits hold.
    (real % MODULUS) as i128 as i64
}

/// A number from 0 to below 1 that a moment's host, metric, instance and `turn` decide.
fn unit(moment: &Moment<'_>, turn: u64) -> f64 {
    let place = u64::from(moment.pmid.0) << 32 | u64::from(moment.instance.cast_unsigned());
    let mixed = mix(mix(mix(moment.seed) ^ place) ^ turn);
    // The upper 53 bits are what a double can hold.
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// Spreads the bits of a number over all of it (the finaliser of splitmix64).
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

fn as_u64(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(age: f64, fetch: u64) -> Moment<'static> {
        Moment {
            time: Timestamp::new(1_000, 0),
            age,
            fetch,
            seed: 7,
            host: "web1",
            pmid: Pmid::new(60, 0, 1),
            instance: -1,
        }
    }

    #[test]
    fn counters_wrap_as_their_type_does() {
        let fast = Script::Counter { start: u64::from(u32::MAX) - 1, per_second: 2.0 };
        let at = |value_type, age| fast.value(value_type, &moment(age, 1)).expect("a number");
        assert_eq!(at(ValueType::U32, 0.0), Some(Value::U32(u32::MAX - 1)));
        assert_eq!(at(ValueType::U32, 1.5), Some(Value::U32(1)));
        assert_eq!(at(ValueType::U64, 1.5), Some(Value::U64(u64::from(u32::MAX) + 2)));
        assert_eq!(at(ValueType::F64, 1.0), Some(Value::F64(4_294_967_296.0)));
        assert_eq!(at(ValueType::I32, 0.0), Some(Value::I32(-2)));
        let last = Script::Counter { start: u64::MAX, per_second: 1.0 };
        assert_eq!(last.value(ValueType::U64, &moment(1.0, 1)), Ok(Some(Value::U64(0))));
        assert_eq!(fast.value(ValueType::Event, &moment(1.0, 1)), Err(PmStatus::CONV));
    }

    #[test]
    fn random_numbers_are_the_same_for_the_same_seed_and_lie_where_they_should() {
        let script = Script::Random { low: 10.0, high: 20.0 };
        let number = |seed, fetch, instance| {
            let at = Moment { seed, instance, ..moment(0.0, fetch) };
            match script.value(ValueType::F64, &at) {
                Ok(Some(Value::F64(number))) => number,
                other => panic!("{other:?}"),
            }
        };
        let mut sum = 0.0;
        for fetch in 0..1000 {
            let value = number(1, fetch, 3);
            assert!((10.0..=20.0).contains(&value));
            assert_eq!(value.to_bits(), number(1, fetch, 3).to_bits());
            assert_ne!(value.to_bits(), number(2, fetch, 3).to_bits());
            assert_ne!(value.to_bits(), number(1, fetch, 4).to_bits());
            sum += value;
        }
        assert!((14.0..16.0).contains(&(sum / 1000.0)), "{sum}");
    }

    #[test]
    fn cycles_and_shapes() {
        let cycle = Script::cycle([1u32, 2, 3]);
        let turn = |fetch| cycle.value(ValueType::U32, &moment(0.0, fetch)).expect("a value");
        assert_eq!([1, 2, 3, 4].map(turn), [1, 2, 3, 1].map(|n| Some(Value::U32(n))));
        assert_eq!(Script::cycle([0u32; 0]).value(ValueType::U32, &moment(0.0, 1)), Ok(None));
        let sine = Script::Sine { mean: 5.0, amplitude: 2.0, period: 4.0 };
        let crest = sine.value(ValueType::F64, &moment(1.0, 1));
        assert!(matches!(crest, Ok(Some(Value::F64(v))) if (v - 7.0).abs() < 1e-9), "{crest:?}");
        let varied = Script::counter(100.0).varied(0.5);
        let mut seen = std::collections::BTreeSet::new();
        for instance in 0..100 {
            let at = Moment { instance, ..moment(1.0, 1) };
            let Ok(Some(Value::U64(value))) = varied.value(ValueType::U64, &at) else {
                panic!("no number");
            };
            assert!((50..=150).contains(&value), "{value}");
            seen.insert(value);
        }
        assert!(seen.len() > 40, "{seen:?}");
    }
}
