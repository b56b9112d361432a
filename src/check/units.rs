//! Dimensions and scales of the results of operators, and the factors that
//! bring operands to a common scale.

use pmderive_runtime::model::{ExtraUnit, Units};

use super::typed::Scale;
use crate::dialect::Dialect;
use crate::syntax::ast::BinaryOp;

/// Units of a binary operator's result, and how to scale its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Combined {
    /// Units of the result.
    pub units: Units,
    /// Applied to the left operand.
    pub left: Scale,
    /// Applied to the right operand.
    pub right: Scale,
}

/// A dimension's exponent would be outside -8..7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimensionOverflow;

/// One axis of units: exponent and scale.
#[derive(Clone, Copy)]
struct Axis {
    dim: i8,
    scale: i8,
}

/// The axes that have scales, in the order in which factors accumulate.
#[derive(Clone, Copy)]
enum Kind {
    Count,
    Time,
    Space,
}

fn axis(units: &Units, kind: Kind) -> Axis {
    // Scales of the wire have four bits.
    match kind {
        Kind::Count => Axis { dim: units.dim_count, scale: units.scale_count },
        Kind::Time => Axis { dim: units.dim_time, scale: units.scale_time as i8 },
        Kind::Space => Axis { dim: units.dim_space, scale: units.scale_space as i8 },
    }
}

fn set_axis(units: &mut Units, kind: Kind, axis: Axis) {
    let scale = if axis.dim == 0 { 0 } else { axis.scale };
    match kind {
        Kind::Count => (units.dim_count, units.scale_count) = (axis.dim, scale),
        Kind::Time => (units.dim_time, units.scale_time) = (axis.dim, scale as u8),
        Kind::Space => (units.dim_space, units.scale_space) = (axis.dim, scale as u8),
    }
}

/// Number of units of scale `from` in one of the larger scale `to`.
fn ratio(kind: Kind, from: i8, to: i8) -> f64 {
    /// Nanoseconds to microseconds and so on up to hours.
    const TIME_STEPS: [f64; 5] = [1000.0, 1000.0, 1000.0, 60.0, 60.0];
    let step = |scale: i8| match kind {
        Kind::Count => 10.0,
        Kind::Space => 1024.0,
        Kind::Time => TIME_STEPS.get(scale as usize).copied().unwrap_or(1.0),
    };
    (from..to).map(step).product()
}

/// True when values of these units can be added or compared: equal
/// dimensions, or a plain number with a count.
pub fn dimensions_agree(left: &Units, right: &Units) -> bool {
    let dims = |u: &Units| (u.dim_space, u.dim_time, u.dim_count, u.extra.quantity);
    let none = (0, 0, 0, 0);
    let count = (0, 0, 1, 0);
    let (left, right) = (dims(left), dims(right));
    left == right || (left, right) == (none, count) || (left, right) == (count, none)
}

/// Combines the units of two operands under `+ - * /`.
///
/// If both operands have a dimension on an axis, the one with the smaller scale is
/// converted to the larger. `base_is_right` names the operand that gives the
/// labels in the compatible dialects.
///
/// # Errors
/// [`DimensionOverflow`], except in the compatible dialects, where exponents wrap.
pub fn combine(
    op: BinaryOp,
    left: &Units,
    right: &Units,
    base_is_right: bool,
    dialect: Dialect,
) -> Result<Combined, DimensionOverflow> {
    let mut units = if base_is_right { *right } else { *left };
    let (mut left_scale, mut right_scale) = (Scale::ONE, Scale::ONE);
    for kind in [Kind::Count, Kind::Time, Kind::Space] {
        let (l, r) = (axis(left, kind), axis(right, kind));
        let larger = l.scale.max(r.scale);
        let both = l.dim != 0 && r.dim != 0;
        if both && l.scale != r.scale {
            let (small, scale) =
                if l.scale < r.scale { (l, &mut left_scale) } else { (r, &mut right_scale) };
            let factor = ratio(kind, small.scale, larger).powi(i32::from(small.dim.unsigned_abs()));
            if small.dim > 0 {
                scale.div *= factor;
            } else {
                scale.mul *= factor;
            }
        }
        let base = axis(&units, kind);
        let dim = match op {
            BinaryOp::Mul => l.dim + r.dim,
            BinaryOp::Div => l.dim - r.dim,
            _ => base.dim,
        };
        let dim = match dialect {
            Dialect::Fixed if !(-8..=7).contains(&dim) => return Err(DimensionOverflow),
            _ => wrap(dim),
        };
        let scale = match dialect {
            Dialect::Fixed if both => larger,
            Dialect::Fixed => (if l.dim != 0 { l } else { r }).scale,
            // The label follows the conversion of the left operand only.
            _ if both && l.scale < r.scale => r.scale,
            _ if !both
                && l.dim == 0
                && dim != 0
                && !matches!(op, BinaryOp::Add | BinaryOp::Sub) =>
            {
                r.scale
            }
            _ => base.scale,
        };
        set_axis(&mut units, kind, Axis { dim, scale });
    }
    units.extra = match op {
        BinaryOp::Mul if left.extra.quantity != 0 => left.extra,
        BinaryOp::Mul => right.extra,
        BinaryOp::Div if left.extra == right.extra => ExtraUnit::default(),
        BinaryOp::Div if left.extra.quantity != 0 => left.extra,
        BinaryOp::Div => ExtraUnit { quantity: -right.extra.quantity, ..right.extra },
        _ => units.extra,
    };
    Ok(Combined { units, left: as_rescaled(left_scale), right: as_rescaled(right_scale) })
}

/// Factors beyond 31 bits, which libpcp gets wrong, are applied in one step
/// like those of `rescale()`. Both ways then give the same digits.
fn as_rescaled(scale: Scale) -> Scale {
    const LIMIT: f64 = (1u64 << 31) as f64;
    if scale.div < LIMIT && scale.mul < LIMIT {
        return scale;
    }
    Scale { div: 1.0, mul: scale.mul / scale.div }
}

/// Four-bit two's complement, as exponents are stored.
fn wrap(dim: i8) -> i8 {
    (dim << 4) >> 4
}

/// Seconds in a unit of time of that scale, computed as libpcp does.
pub fn seconds(scale_time: u8) -> f64 {
    let mut factor = 1.0;
    for _ in scale_time..3 {
        factor /= 1000.0;
    }
    for _ in 3..scale_time {
        factor *= 60.0;
    }
    factor
}

/// Units of the rate of values of these units.
pub fn per_second(units: &Units) -> Units {
    let dim_time = units.dim_time - 1;
    Units { dim_time, scale_time: if dim_time == 0 { 0 } else { 3 }, ..*units }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Units {
        Units::parse(text).expect(text).units
    }

    /// Units and factors of `left op right`, neither being a constant.
    fn table(op: BinaryOp, left: &str, right: &str) -> (String, f64, f64) {
        let fixed = combine(op, &units(left), &units(right), false, Dialect::Fixed);
        let Combined { units, left, right } = fixed.expect("no overflow");
        (units.to_string(), left.mul / left.div, right.mul / right.div)
    }

    #[test]
    fn smaller_scales_are_brought_to_larger_ones() {
        use BinaryOp::{Add, Div, Mul};
        let row = |op, left, right, units: &str, l: f64, r: f64| {
            assert_eq!(table(op, left, right), (units.to_string(), l, r), "{left} {op:?} {right}");
        };
        row(Add, "Kbyte", "byte", "Kbyte", 1.0, 1.0 / 1024.0);
        row(Add, "byte", "Kbyte", "Kbyte", 1.0 / 1024.0, 1.0);
        row(Add, "byte / sec", "byte / hour", "byte / hour", 3600.0, 1.0);
        row(Mul, "/ sec", "hour", "", 3600.0, 1.0);
        row(Add, "byte^2", "Kbyte^2", "Kbyte^2", 1.0 / 1048576.0, 1.0);
        row(Div, "byte", "sec", "byte / sec", 1.0, 1.0);
        row(Mul, "count", "sec", "sec count", 1.0, 1.0);
        row(Add, "byte", "Tbyte", "Tbyte", 1.0 / 1024f64.powi(4), 1.0);
    }

    #[test]
    fn exponents_overflow_only_where_libpcp_must_be_followed() {
        let seven = units("byte^7");
        let one = units("byte");
        let product = |dialect| combine(BinaryOp::Mul, &seven, &one, false, dialect);
        assert_eq!(product(Dialect::Fixed), Err(DimensionOverflow));
        assert_eq!(product(Dialect::Pcp7_2).map(|c| c.units.dim_space), Ok(-8));
    }

    #[test]
    fn seconds_of_time_scales() {
        let all: Vec<f64> = (0..6).map(seconds).collect();
        assert_eq!(all, [1.0 / 1000.0 / 1000.0 / 1000.0, 1e-3 / 1000.0, 1e-3, 1.0, 60.0, 3600.0]);
    }
}
