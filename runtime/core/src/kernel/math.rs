//! Functions of numbers whose last bit depends on the library.
//!
//! The interpreter calls them and native code is linked to them, so both give
//! the same bits on every machine. Nothing here panics.

/// Name under which native code finds [`log`].
pub const LOG: &str = "pmderive_log";
/// Name under which native code finds [`pow`].
pub const POW: &str = "pmderive_pow";

/// Natural logarithm, as `log(3)`: negative infinity of zero, NaN below it.
#[inline(never)]
pub extern "C" fn log(value: f64) -> f64 {
    value.ln()
}

/// `base` to the power of `exponent`, as `pow(3)`. It is one for an exponent of
/// zero or a base of one, whatever the other is. Otherwise it is NaN if an
/// operand is NaN, or if the base is negative and the exponent is not whole.
#[inline(never)]
pub extern "C" fn pow(base: f64, exponent: f64) -> f64 {
    base.powf(exponent)
}

/// The lesser of two numbers, NaN if one is NaN; -0 is less than 0.
pub fn min(a: f64, b: f64) -> f64 {
    match a.partial_cmp(&b) {
        // Equal numbers differ in the sign of zero at most.
        Some(std::cmp::Ordering::Equal) => f64::from_bits(a.to_bits() | b.to_bits()),
        Some(std::cmp::Ordering::Less) => a,
        Some(std::cmp::Ordering::Greater) => b,
        None => f64::NAN,
    }
}

/// The greater of two numbers, NaN if one is NaN; 0 is greater than -0.
pub fn max(a: f64, b: f64) -> f64 {
    match a.partial_cmp(&b) {
        Some(std::cmp::Ordering::Equal) => f64::from_bits(a.to_bits() & b.to_bits()),
        Some(std::cmp::Ordering::Less) => b,
        Some(std::cmp::Ordering::Greater) => a,
        None => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_those_of_c() {
        assert_eq!(log(1.0), 0.0);
        assert_eq!(log(0.0), f64::NEG_INFINITY);
        assert_eq!(log(f64::INFINITY), f64::INFINITY);
        assert!(log(-1.0).is_nan());
        assert_eq!(pow(2.0, 10.0), 1024.0);
        assert_eq!(pow(f64::NAN, 0.0), 1.0);
        assert_eq!(pow(1.0, f64::NAN), 1.0);
        assert_eq!(pow(0.0, -1.0), f64::INFINITY);
        assert!(pow(-8.0, 0.5).is_nan());
    }

    #[test]
    fn extremes_let_nan_through_and_tell_zeros_apart() {
        assert_eq!((min(1.0, 2.0), max(1.0, 2.0)), (1.0, 2.0));
        assert_eq!((min(3.0, -2.0), max(3.0, -2.0)), (-2.0, 3.0));
        assert_eq!(max(f64::NEG_INFINITY, f64::INFINITY), f64::INFINITY);
        for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
            assert!(min(a, b).is_sign_negative());
            assert!(max(a, b).is_sign_positive());
        }
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
            assert!(min(a, b).is_nan() && max(a, b).is_nan());
        }
    }
}
