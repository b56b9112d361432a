//! Converts values from one scale to another.
//!
//! Input: two [`Units`] of the same dimensions. Output: a [`Conversion`], which
//! holds the numbers of the conversion and applies it to floating-point values.
//! These functions are the reference for generated code, so each is one plain
//! formula.

use super::units_words::{TEMPERATURE, extra_word};
use super::{PmStatus, Units};

/// The conversion of values from some units to others: `pmConvScale(3)`.
///
/// A value is first multiplied by `mult / div`. Then the extra unit is converted.
/// An integer is rounded to the nearest one. Or, as in libpcp, it becomes
/// `(value * mult + div / 2) / div`, truncated toward zero. There, the half
/// divisor is added to negative values too, and products may overflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conversion {
    /// Multiplier; at least 1, except in [`Conversion::of_libpcp`].
    pub mult: i64,
    /// Divisor; at least 1. In [`Conversion::of_libpcp`] it may have wrapped,
    /// but is never 0.
    pub div: i64,
    /// The conversion of the extra unit if the units differ: `(a, b, c, d)` of
    /// `a + b * (value + c) / d`, evaluated in double precision and in this
    /// order.
    pub extra: Option<(f64, f64, f64, f64)>,
}

impl Conversion {
    /// The conversion that changes nothing.
    pub const IDENTITY: Conversion = Conversion { mult: 1, div: 1, extra: None };

    /// The conversion of values in `from` to values in `to`.
    ///
    /// A value without dimension counts as one of dimension count. Zero points
    /// of temperatures count only if both units are a plain temperature; libpcp
    /// applies them to `temperature (C) / sec` too.
    ///
    /// # Errors
    /// [`PmStatus::CONV`] if the dimensions or extra quantities differ, or if
    /// the factor needs more than 64 bits. [`PmStatus::UNIT`] if a scale is
    /// beyond exabytes or hours, or if an extra unit is unknown.
    pub fn between(from: Units, to: Units) -> Result<Conversion, PmStatus> {
        Conversion::with_factor(from, to, |factor| factor.reduced())
    }

    /// The conversion with libpcp's factor. The factor is not reduced, so products
    /// overflow early. It wraps if it needs more than 64 bits.
    ///
    /// # Errors
    /// As [`Conversion::between`]; also [`PmStatus::CONV`] where libpcp divides by 0.
    pub fn of_libpcp(from: Units, to: Units) -> Result<Conversion, PmStatus> {
        Conversion::with_factor(from, to, |factor| {
            let (mult, div) = (factor.mult as i64, factor.div as i64);
            match mult.checked_rem(div)? {
                0 => Some((mult.wrapping_div(div), 1)),
                _ => Some((mult, div)),
            }
        })
    }

    fn with_factor(
        from: Units,
        to: Units,
        in_64_bits: impl FnOnce(Factor) -> Option<(i64, i64)>,
    ) -> Result<Conversion, PmStatus> {
        let from = with_dimension(from);
        let to = with_dimension(to);
        let dimensions = |units: &Units| {
            (units.dim_space, units.dim_time, units.dim_count, units.extra.quantity)
        };
        if dimensions(&from) != dimensions(&to) {
            return Err(PmStatus::CONV);
        }
        let mut factor = Factor { mult: 1, div: 1, overflows: false };
        if from.dim_space != 0 {
            factor.scale_by(space(from.scale_space)?, space(to.scale_space)?, from.dim_space);
        }
        if from.dim_time != 0 {
            factor.scale_by(time(from.scale_time)?, time(to.scale_time)?, from.dim_time);
        }
        factor.scale_by(count(from.scale_count), count(to.scale_count), from.dim_count);
        let (mult, div) = in_64_bits(factor).ok_or(PmStatus::CONV)?;
        Ok(Conversion { mult, div, extra: extra(from, to)? })
    }

    /// True if the conversion changes no value.
    pub fn is_identity(&self) -> bool {
        *self == Conversion::IDENTITY
    }

    /// The factor of integers: `mult` and `div` without common factors.
    pub fn of_integers(&self) -> (i64, i64) {
        let common = greatest_common_divisor(self.mult.into(), self.div.into()) as i64;
        (self.mult / common, self.div / common)
    }

    /// An integer in the other units, rounded to the nearest integer, halves away from
    /// zero. `None` if an intermediate result needs more than 127 bits.
    pub fn apply_integer(&self, value: i128) -> Option<i128> {
        let (mult, div) = self.of_integers();
        let (mult, div) = (i128::from(mult), i128::from(div));
        let scaled = (value.checked_mul(mult)? + value.signum() * (div / 2)) / div;
        match self.extra {
            None => Some(scaled),
            Some(extra) => Some(affine(scaled as f64, extra).round() as i128),
        }
    }

    /// Converts a value of type FLOAT. The factor is the single-precision
    /// quotient of `mult` and `div`, each rounded to single precision first.
    pub fn apply_f32(&self, value: f32) -> f32 {
        let scaled = value * (self.mult as f32 / self.div as f32);
        match self.extra {
            Some(extra) => affine(f64::from(scaled), extra) as f32,
            None => scaled,
        }
    }

    /// Converts a value of type DOUBLE. The factor is the quotient of `mult`
    /// and `div`, each rounded to double precision first.
    pub fn apply_f64(&self, value: f64) -> f64 {
        let scaled = value * (self.mult as f64 / self.div as f64);
        match self.extra {
            Some(extra) => affine(scaled, extra),
            None => scaled,
        }
    }
}

fn affine(value: f64, (a, b, c, d): (f64, f64, f64, f64)) -> f64 {
    a + b * (value + c) / d
}

fn with_dimension(units: Units) -> Units {
    if units.is_dimensionless() { Units { dim_count: 1, ..units } } else { units }
}

/// A positive fraction, not reduced.
#[derive(Clone, Copy)]
struct Factor {
    mult: i128,
    div: i128,
    /// Either has overflown and is right in its low 64 bits only.
    overflows: bool,
}

impl Factor {
    /// Multiplies the fraction by `from / to`, raised to `dimension`: the
    /// factor of one axis.
    fn scale_by(&mut self, from: Scale, to: Scale, dimension: i8) {
        let mult = from.mult * to.div;
        let div = from.div * to.mult;
        let (mult, div) = if dimension < 0 { (div, mult) } else { (mult, div) };
        for _ in 0..dimension.unsigned_abs() {
            for (number, factor) in [(&mut self.mult, mult), (&mut self.div, div)] {
                let (product, overflows) = number.overflowing_mul(factor);
                *number = product;
                self.overflows |= overflows;
            }
        }
    }

    /// The fraction in the least reduced form that fits into 64 bits: with a
    /// divisor of 1 if that is possible, else without common factors of two,
    /// else fully reduced. `None` if even that does not fit.
    ///
    /// Without common factors of two, quotients in floating point are those of
    /// libpcp's fraction. Half the divisor must stay exact for
    /// [`Value::rescale`](super::Value::rescale), so an even divisor stays even.
    fn reduced(self) -> Option<(i64, i64)> {
        if self.overflows {
            return None;
        }
        if self.mult % self.div == 0 {
            return Some((i64::try_from(self.mult / self.div).ok()?, 1));
        }
        let common = greatest_common_divisor(self.mult, self.div);
        let twos = 1 << common.trailing_zeros();
        [twos, common].into_iter().find_map(|divisor| {
            let mult = i64::try_from(self.mult / divisor).ok()?;
            let div = i64::try_from(self.div / divisor).ok()?;
            let factor = if div % 2 == 0 { 1 } else { 2 };
            Some((mult.checked_mul(factor)?, div.checked_mul(factor)?))
        })
    }
}

/// The greatest common divisor of two positive numbers.
fn greatest_common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A unit of some scale as a fraction of the unit that stands for the axis.
#[derive(Clone, Copy)]
struct Scale {
    mult: i128,
    div: i128,
}

/// The unit of a space scale, in megabytes.
fn space(scale: u8) -> Result<Scale, PmStatus> {
    match i32::from(scale) - 2 {
        power @ ..0 => Ok(Scale { mult: 1, div: 1 << (10 * -power) }),
        power @ 0..=4 => Ok(Scale { mult: 1 << (10 * power), div: 1 }),
        _ => Err(PmStatus::UNIT),
    }
}

/// The unit of a time scale, in seconds.
fn time(scale: u8) -> Result<Scale, PmStatus> {
    const SCALES: [(i128, i128); 6] =
        [(1, 1_000_000_000), (1, 1_000_000), (1, 1000), (1, 1), (60, 1), (3600, 1)];
    let (mult, div) = *SCALES.get(usize::from(scale)).ok_or(PmStatus::UNIT)?;
    Ok(Scale { mult, div })
}

/// The unit of a count scale, in ones.
fn count(scale: i8) -> Scale {
    // A scale has four bits on the wire, so 8 is the largest magnitude.
    let power = 10i128.pow(u32::from(scale.unsigned_abs().min(8)));
    if scale < 0 { Scale { mult: 1, div: power } } else { Scale { mult: power, div: 1 } }
}

/// The conversion between two units of one extra quantity. `None` if the unit
/// is the same.
fn extra(from: Units, to: Units) -> Result<Option<(f64, f64, f64, f64)>, PmStatus> {
    let (quantity, from_unit, to_unit) = (from.extra.quantity, from.extra.unit, to.extra.unit);
    if quantity == 0 || from_unit == to_unit {
        return Ok(None);
    }
    let word = extra_word(quantity).ok_or(PmStatus::UNIT)?;
    let power = |unit: u8| {
        let position = usize::from(unit).checked_sub(1)?;
        word.units.get(position).map(|(_, power)| *power)
    };
    let steps = power(from_unit).ok_or(PmStatus::UNIT)? - power(to_unit).ok_or(PmStatus::UNIT)?;
    let (a, b, c, d) = if quantity.unsigned_abs() == TEMPERATURE {
        temperature(from_unit, to_unit).ok_or(PmStatus::UNIT)?
    } else {
        // At most 10^9, so the conversion is exact.
        let power = 10i64.pow(steps.unsigned_abs()) as f64;
        if steps > 0 { (0.0, power, 0.0, 1.0) } else { (0.0, 1.0, 0.0, power) }
    };
    let basic = [from.dim_space, from.dim_time, from.dim_count];
    Ok(Some(if quantity < 0 {
        (0.0, d, 0.0, b)
    } else if basic != [0; 3] {
        // Only a plain temperature has a zero point. For its change per second,
        // for example, only the size of a degree counts.
        (0.0, b, 0.0, d)
    } else {
        (a, b, c, d)
    }))
}

/// The conversion between degrees Celsius (1), Fahrenheit (2) and kelvins (3).
fn temperature(from: u8, to: u8) -> Option<(f64, f64, f64, f64)> {
    match (from, to) {
        (1, 2) => Some((32.0, 18.0, 0.0, 10.0)),
        (2, 1) => Some((0.0, 10.0, -32.0, 18.0)),
        (1, 3) => Some((273.15, 1.0, 0.0, 1.0)),
        (3, 1) => Some((0.0, 1.0, -273.15, 1.0)),
        (2, 3) => Some((273.15, 10.0, -32.0, 18.0)),
        (3, 2) => Some((32.0, 18.0, -273.15, 10.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ExtraUnit;
    use super::*;

    fn units(text: &str) -> Units {
        Units::parse(text).unwrap().units
    }

    fn between(from: &str, to: &str) -> Result<Conversion, PmStatus> {
        Conversion::between(units(from), units(to))
    }

    #[test]
    fn factors_are_reduced_and_never_overflow() {
        for (from, to, factor) in [
            ("byte", "Kbyte", (1, 1024)),
            ("Kbyte", "byte", (1024, 1)),
            ("Ebyte^2", "Pbyte^2", (1 << 20, 1)),
            ("byte / sec", "Kbyte / min", (15, 256)),
            ("/ sec", "/ millisec", (1, 1000)),
            ("", "count x 10^3", (1, 1000)),
            ("count x 10", "hour / hour", (10, 1)),
            ("min / count x 10^3", "millisec / count", (60, 1)),
            ("count / min", "count x 10 / sec", (1, 600)),
            ("sec / count x 10", "hour / count x 10^2", (25, 9000)),
            ("Kbyte / millisec", "Ebyte / microsec", (1, 1000 << 50)),
        ] {
            let conversion = between(from, to).unwrap();
            assert_eq!((conversion.mult, conversion.div), factor, "{from} to {to}");
        }
        assert_eq!(between("Ebyte^7", "byte^7"), Err(PmStatus::CONV));
        assert_eq!(between("byte^7", "Ebyte^7"), Err(PmStatus::CONV));
        assert_eq!(between("Zbyte", "byte"), Err(PmStatus::UNIT));
        assert!(between("sec", "sec").unwrap().is_identity());
    }

    #[test]
    fn factors_of_libpcp_are_not_reduced_and_wrap() {
        let of_libpcp =
            |from, to| Conversion::of_libpcp(units(from), units(to)).map(|one| (one.mult, one.div));
        assert_eq!(of_libpcp("byte", "Kbyte"), Ok((1 << 10, 1 << 20)));
        assert_eq!(of_libpcp("nanosec", "microsec"), Ok((1_000_000, 1_000_000_000)));
        assert_eq!(of_libpcp("Kbyte", "byte"), Ok((1024, 1)));
        assert_eq!(of_libpcp("Ebyte^2", "byte^2"), Ok((0, 1)));
        assert_eq!(of_libpcp("byte^2", "Ebyte^2"), Err(PmStatus::CONV), "it divides by 0");
        assert_eq!(of_libpcp("byte", "sec"), Err(PmStatus::CONV));
    }

    #[test]
    fn extra_units_convert_after_the_basic_ones() {
        let fahrenheit = between("temperature (C)", "temperature (F)").unwrap();
        assert_eq!(fahrenheit.apply_f64(20.0), 68.0);
        let kelvin = between("temperature (C)", "temperature (K)").unwrap();
        assert_eq!(kelvin.apply_f64(20.0), 293.15);
        assert_eq!(between("voltage (V)", "voltage (mV)").unwrap().apply_f64(20.0), 20000.0);
        assert_eq!(between("power (W)", "power (kW)").unwrap().apply_f64(20.0), 0.02);
        assert_eq!(between("power (kW)", "power (uW)").unwrap().apply_f32(2.0), 2e9);
        let both = between("power (W) / sec", "power (mW) / min").unwrap();
        assert_eq!(both.apply_f64(2.0), 120_000.0);
    }

    #[test]
    fn per_quantity_converts_the_other_way() {
        let per_volt = between("/ voltage (V)", "/ voltage (mV)").unwrap();
        assert_eq!(per_volt.apply_f64(1000.0), 1.0);
        let per_degree = between("/ temperature (C)", "/ temperature (F)").unwrap();
        assert_eq!(per_degree.apply_f64(18.0), 10.0);
    }

    #[test]
    fn only_a_temperature_itself_has_a_zero_point() {
        let rate = between("temperature (C) / sec", "temperature (F) / min").unwrap();
        assert_eq!(rate.apply_f64(1.0), 108.0);
    }

    #[test]
    fn different_or_unknown_quantities_do_not_convert() {
        assert_eq!(between("voltage (V)", "current (mA)"), Err(PmStatus::CONV));
        assert_eq!(between("voltage (V)", "/ voltage (V)"), Err(PmStatus::CONV));
        assert_eq!(between("temperature (C)", "count"), Err(PmStatus::CONV));
        assert_eq!(between("", "temperature (C)"), Err(PmStatus::CONV));
        for (quantity, from, to) in [(9, 1, 2), (2, 1, 7), (2, 0, 1), (1, 5, 1)] {
            let unit = |unit| Units { extra: ExtraUnit { quantity, unit }, ..Units::NONE };
            assert_eq!(Conversion::between(unit(from), unit(to)), Err(PmStatus::UNIT));
        }
    }
}
