//! Operands of aggregates, which are metrics of hosts: their type and units.
//!
//! The first class of hosts that has a metric decides about its type, units and
//! semantics ([`Reference`]). Values of other classes are converted if nothing is
//! lost. Classes whose values cannot be converted are left out as a whole.

use std::fmt;

use pmderive_runtime::model::{Conversion, InDom, MetricDesc, Pmid, Semantics, Units, ValueType};
use pmderive_runtime::position::Per;
use pmderive_runtime::positions;

use crate::check::units_name;
use crate::fleet::frame::ExportedMetric;

positions! {
    /// Position of an operand in [`FleetDefinitions::operands`](super::FleetDefinitions::operands).
    pub OperandId;
}

/// Metadata of each operand; `None` before a host has had it.
pub type References = Per<OperandId, Option<Reference>>;

/// Representation of an operand's values: no numbers before a host has had it.
pub fn kind_of(references: &References, operand: OperandId) -> Kind {
    references.get(operand).copied().flatten().map_or(Kind::Other, |one| one.kind())
}

/// Metadata that the values of an operand, or of an aggregate, have all over the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Type; of an operand, that on the hosts of the first class.
    pub value_type: ValueType,
    /// Semantics.
    pub semantics: Semantics,
    /// Units.
    pub units: Units,
}

/// Representation of the fleet's values: 64 bits, whatever type hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `u64`
    Unsigned,
    /// `i64`
    Signed,
    /// `f64`
    Float,
    /// No number; it can be counted.
    Other,
}

/// Treatment of the values of one class of hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// They are used unchanged.
    Nothing,
    /// They are converted to the reference's kind and units.
    Convert {
        /// Their type.
        from: ValueType,
        /// From their units.
        conversion: Conversion,
    },
    /// They are ignored.
    LeaveOut,
}

impl Reference {
    /// The metadata on the hosts of one class.
    pub fn of(metric: &ExportedMetric) -> Reference {
        let ExportedMetric { value_type, semantics, units, .. } = *metric;
        Reference { value_type, semantics, units }
    }

    /// Representation of the values.
    pub fn kind(&self) -> Kind {
        Kind::of(self.value_type)
    }

    /// The description of a metric with this metadata.
    pub fn desc(&self, pmid: Pmid, indom: Option<InDom>) -> MetricDesc {
        let Reference { value_type, semantics, units } = *self;
        MetricDesc { pmid, value_type, indom, semantics, units }
    }

    /// Treatment of the values of hosts that have the metric with this metadata.
    pub fn action(&self, metric: &ExportedMetric) -> Action {
        let kind = self.kind();
        if kind == Kind::Other {
            return Action::Nothing;
        }
        let is_counter = |semantics| semantics == Semantics::Counter;
        let fits = match (Kind::of(metric.value_type), kind) {
            (Kind::Other, _) => false,
            (_, Kind::Float) => true,
            (from, to) => from == to || metric.value_type == ValueType::U32,
        };
        if !fits || is_counter(metric.semantics) != is_counter(self.semantics) {
            return Action::LeaveOut;
        }
        match Conversion::between(metric.units, self.units) {
            Err(_) => Action::LeaveOut,
            Ok(conversion) => {
                let is_whole = metric.value_type == kind.value_type() && conversion.is_identity();
                match is_whole {
                    true => Action::Nothing,
                    false => Action::Convert { from: metric.value_type, conversion },
                }
            }
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reference { value_type, semantics, units } = self;
        write!(f, "{value_type}, {semantics}, units {}", units_name(units))
    }
}

impl Kind {
    fn of(value_type: ValueType) -> Kind {
        match value_type {
            ValueType::U32 | ValueType::U64 => Kind::Unsigned,
            ValueType::I32 | ValueType::I64 => Kind::Signed,
            ValueType::F32 | ValueType::F64 => Kind::Float,
            _ => Kind::Other,
        }
    }

    /// The type of 64 bits.
    pub fn value_type(self) -> ValueType {
        match self {
            Kind::Unsigned => ValueType::U64,
            Kind::Signed => ValueType::I64,
            Kind::Float => ValueType::F64,
            Kind::Other => ValueType::String,
        }
    }
}

/// Appends values, given as the bits of their type, converted by [`Action::Convert`]. Returns
/// false if an integer overflows: then no value counts.
pub fn convert(
    lanes: &[u64],
    from: ValueType,
    conversion: &Conversion,
    kind: Kind,
    into: &mut Vec<u64>,
) -> bool {
    for bits in lanes {
        let integer = match from {
            ValueType::U32 => i128::from(*bits as u32),
            ValueType::I32 => i128::from(*bits as u32 as i32),
            ValueType::U64 => i128::from(*bits),
            ValueType::I64 => i128::from(*bits as i64),
            _ => 0,
        };
        let converted = match (kind, from) {
            (Kind::Float, ValueType::F32) => {
                conversion.apply_f64(f64::from(f32::from_bits(*bits as u32))).to_bits()
            }
            (Kind::Float, ValueType::F64) => conversion.apply_f64(f64::from_bits(*bits)).to_bits(),
            (Kind::Float, _) => conversion.apply_f64(integer as f64).to_bits(),
            _ => match whole(integer, conversion, kind) {
                Some(bits) => bits,
                None => return false,
            },
        };
        into.push(converted);
    }
    true
}

/// Converts an integer to other units, rounded to a whole number.
fn whole(value: i128, conversion: &Conversion, kind: Kind) -> Option<u64> {
    let scaled = conversion.apply_integer(value)?;
    match kind {
        Kind::Unsigned => u64::try_from(scaled).ok(),
        _ => i64::try_from(scaled).ok().map(|value| value as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::sinks::sink_set::SinkSet;

    fn exported(value_type: ValueType, semantics: Semantics, units: &str) -> ExportedMetric {
        let units = Units::parse(units).expect("units").units;
        let (name, help) = ("m".into(), None);
        ExportedMetric {
            name,
            value_type,
            semantics,
            units,
            has_instances: false,
            help,
            sinks: SinkSet::NONE,
        }
    }

    /// The fleet's value that a host's value becomes.
    fn of(first: (ValueType, &str), other: (ValueType, &str), bits: u64) -> Option<u64> {
        let instant = Semantics::Instant;
        let reference = Reference::of(&exported(first.0, instant, first.1));
        match reference.action(&exported(other.0, instant, other.1)) {
            Action::Nothing => Some(bits),
            Action::LeaveOut => None,
            Action::Convert { from, conversion } => {
                let mut into = Vec::new();
                convert(&[bits], from, &conversion, reference.kind(), &mut into).then(|| into[0])
            }
        }
    }

    #[test]
    fn values_become_those_of_the_first_class_or_do_not_count() {
        use ValueType::{F32, F64, I32, I64, String, U32, U64};
        let float = |value: f64| Some(value.to_bits());
        for (first, other, bits, expected) in [
            ((U64, ""), (U64, ""), 7, Some(7)),
            ((U32, ""), (U64, ""), 1 << 40, Some(1 << 40)),
            ((U64, ""), (U32, ""), 7, Some(7)),
            ((U64, ""), (I32, ""), 7, None),
            ((U64, ""), (F64, ""), 7, None),
            ((I64, ""), (U32, ""), u64::from(u32::MAX), Some(u64::from(u32::MAX))),
            ((I64, ""), (I32, ""), u64::from(u32::MAX), Some(u64::MAX)),
            ((I32, ""), (U64, ""), 7, None),
            ((F64, ""), (I32, ""), u64::from(u32::MAX), float(-1.0)),
            ((F64, ""), (U64, ""), u64::MAX, float(18_446_744_073_709_551_616.0)),
            ((F32, ""), (F64, ""), 0.1f64.to_bits(), float(0.1)),
            ((F64, ""), (F32, ""), u64::from(0.5f32.to_bits()), float(0.5)),
            ((F64, "Kbyte"), (U64, "byte"), 512, float(0.5)),
            ((U64, "Kbyte"), (U64, "byte"), 1536, Some(2)),
            ((U64, "byte"), (U64, "Kbyte"), 3, Some(3072)),
            ((U64, "byte"), (U64, "Kbyte"), 1 << 60, None),
            ((U64, "byte"), (U64, "sec"), 3, None),
            ((F64, "temperature (F)"), (U32, "temperature (C)"), 20, float(68.0)),
            ((I64, "temperature (F)"), (I32, "temperature (C)"), 20, Some(68)),
            ((U64, ""), (String, ""), 0, None),
            ((String, ""), (U64, "byte"), 0, Some(0)),
        ] {
            assert_eq!(of(first, other, bits), expected, "{first:?} {other:?} {bits}");
        }
    }

    #[test]
    fn counters_do_not_mix_with_what_is_none() {
        use Semantics::{Counter, Discrete, Instant};
        let of = |first, other| {
            let reference = Reference::of(&exported(ValueType::U64, first, ""));
            reference.action(&exported(ValueType::U64, other, ""))
        };
        assert_eq!(of(Counter, Counter), Action::Nothing);
        assert_eq!(of(Discrete, Instant), Action::Nothing);
        assert_eq!(of(Counter, Instant), Action::LeaveOut);
        assert_eq!(of(Discrete, Counter), Action::LeaveOut);
    }
}
