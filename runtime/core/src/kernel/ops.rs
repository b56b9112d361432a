//! The meaning of every kernel operation, one lane at a time.
//!
//! Lanes travel as 64 bits: 32-bit types in the low half, the high half zero.
//! The interpreter and the evaluator's general path both call these; native
//! code must agree with them bit for bit (any NaN counting as any other).

use super::ir::{BinaryOp, Scalar, UnaryOp};
use super::math;

/// Operation on the bits of one lane.
pub type UnaryFn = fn(u64) -> u64;
/// Operation on the bits of two lanes.
pub type BinaryFn = fn(u64, u64) -> u64;

/// Conversion between a Rust number and the bits of a lane.
pub trait LaneBits: Copy {
    /// The number of a lane's bits.
    fn from_bits64(bits: u64) -> Self;
    /// The lane's bits of a number.
    fn to_bits64(self) -> u64;
}

macro_rules! lane_bits {
    ($($number:ty, $from:expr, $to:expr;)*) => {
        $(impl LaneBits for $number {
            #[inline]
            fn from_bits64(bits: u64) -> $number {
                $from(bits)
            }
            #[inline]
            fn to_bits64(self) -> u64 {
                $to(self)
            }
        })*
    };
}

lane_bits! {
    i32, |b| b as i32, |v: i32| u64::from(v as u32);
    u32, |b| b as u32, u64::from;
    i64, |b| b as i64, |v| v as u64;
    u64, |b| b, |v| v;
    f32, |b| f32::from_bits(b as u32), |v: f32| u64::from(v.to_bits());
    f64, f64::from_bits, |v: f64| v.to_bits();
}

fn one<A: LaneBits, R: LaneBits>(a: u64, op: impl Fn(A) -> R) -> u64 {
    op(A::from_bits64(a)).to_bits64()
}

fn two<A: LaneBits, R: LaneBits>(a: u64, b: u64, op: impl Fn(A, A) -> R) -> u64 {
    op(A::from_bits64(a), A::from_bits64(b)).to_bits64()
}

/// Picks the instance of a generic body for a scalar.
macro_rules! for_scalar {
    ($scalar:expr, $number:ident => $body:expr) => {
        for_scalar!(
            $scalar, $number => $body; I32 = i32, U32 = u32, I64 = i64, U64 = u64, F32 = f32, F64 = f64
        )
    };
    ($scalar:expr, $number:ident => $body:expr; $($kind:ident = $native:ident),*) => {
        match $scalar {
            $(Scalar::$kind => {
                type $number = $native;
                $body
            })*
        }
    };
}
pub(crate) use for_scalar;

/// Integers wrap, floating point does not need to.
macro_rules! arithmetic {
    ($scalar:expr, $wrapping:ident, $op:tt) => {
        match $scalar {
            Scalar::I32 => |a, b| two(a, b, i32::$wrapping),
            Scalar::U32 => |a, b| two(a, b, u32::$wrapping),
            Scalar::I64 => |a, b| two(a, b, i64::$wrapping),
            Scalar::U64 => |a, b| two(a, b, u64::$wrapping),
            Scalar::F32 => |a, b| two(a, b, |a: f32, b: f32| a $op b),
            Scalar::F64 => |a, b| two(a, b, |a: f64, b: f64| a $op b),
        }
    };
}

macro_rules! comparison {
    ($scalar:expr, $op:tt) => {
        for_scalar!($scalar, N => |a, b| two(a, b, |a: N, b: N| u32::from(a $op b)))
    };
}

macro_rules! convert {
    ($scalar:expr, $to:ty) => {
        for_scalar!($scalar, N => |a| one(a, |a: N| a as $to))
    };
}

/// The same function of either floating point type. Verified forms apply it
/// to no other type.
macro_rules! floating {
    ($scalar:expr, $function:ident) => {
        match $scalar {
            Scalar::F32 => |a| one(a, f32::$function),
            _ => |a| one(a, f64::$function),
        }
    };
}

/// The function of two lanes: for integers, for single and for double precision.
macro_rules! extreme {
    ($scalar:expr, $function:ident, $double:path) => {
        match $scalar {
            Scalar::I32 => |a, b| two(a, b, <i32 as Ord>::$function),
            Scalar::U32 => |a, b| two(a, b, <u32 as Ord>::$function),
            Scalar::I64 => |a, b| two(a, b, <i64 as Ord>::$function),
            Scalar::U64 => |a, b| two(a, b, <u64 as Ord>::$function),
            // Every number of single precision is one of double precision.
            Scalar::F32 => {
                |a, b| two(a, b, |a: f32, b: f32| $double(f64::from(a), f64::from(b)) as f32)
            }
            Scalar::F64 => |a, b| two(a, b, $double),
        }
    };
}

/// The operation on lanes of type `scalar`.
pub fn unary(op: UnaryOp, scalar: Scalar) -> UnaryFn {
    match op {
        UnaryOp::Convert(to) => match to {
            Scalar::I32 => convert!(scalar, i32),
            Scalar::U32 => convert!(scalar, u32),
            Scalar::I64 => convert!(scalar, i64),
            Scalar::U64 => convert!(scalar, u64),
            Scalar::F32 => convert!(scalar, f32),
            Scalar::F64 => convert!(scalar, f64),
        },
        UnaryOp::Neg => match scalar {
            Scalar::I32 => |a| one(a, i32::wrapping_neg),
            Scalar::U32 => |a| one(a, u32::wrapping_neg),
            Scalar::I64 => |a| one(a, i64::wrapping_neg),
            Scalar::U64 => |a| one(a, u64::wrapping_neg),
            Scalar::F32 => |a| one(a, |a: f32| -a),
            Scalar::F64 => |a| one(a, |a: f64| -a),
        },
        UnaryOp::Truth => for_scalar!(scalar, N => |a| one(a, |a: N| u32::from(a != 0 as N))),
        UnaryOp::Not => for_scalar!(scalar, N => |a| one(a, |a: N| u32::from(a == 0 as N))),
        UnaryOp::Abs => match scalar {
            Scalar::I32 => |a| one(a, i32::wrapping_abs),
            Scalar::I64 => |a| one(a, i64::wrapping_abs),
            Scalar::U32 | Scalar::U64 => |a| a,
            Scalar::F32 => |a| one(a, f32::abs),
            Scalar::F64 => |a| one(a, f64::abs),
        },
        UnaryOp::Floor => floating!(scalar, floor),
        UnaryOp::Ceil => floating!(scalar, ceil),
        UnaryOp::Round => floating!(scalar, round),
        UnaryOp::Sqrt => floating!(scalar, sqrt),
        UnaryOp::Log => |a| one(a, |a: f64| math::log(a)),
    }
}

/// The operation on two lanes of type `scalar`.
pub fn binary(op: BinaryOp, scalar: Scalar) -> BinaryFn {
    match op {
        BinaryOp::Add => arithmetic!(scalar, wrapping_add, +),
        BinaryOp::Sub => arithmetic!(scalar, wrapping_sub, -),
        BinaryOp::Mul => arithmetic!(scalar, wrapping_mul, *),
        BinaryOp::Div => match scalar {
            Scalar::I32 => |a, b| two(a, b, |a: i32, b: i32| a / b.max(1)),
            Scalar::U32 => |a, b| two(a, b, |a: u32, b: u32| a / b.max(1)),
            Scalar::I64 => |a, b| two(a, b, |a: i64, b: i64| a / b.max(1)),
            Scalar::U64 => |a, b| two(a, b, |a: u64, b: u64| a / b.max(1)),
            Scalar::F32 => |a, b| two(a, b, |a: f32, b: f32| a / b),
            Scalar::F64 => |a, b| two(a, b, |a: f64, b: f64| a / b),
        },
        BinaryOp::Ratio => |a, b| two(a, b, |a: f64, b: f64| if a == 0.0 { 0.0 } else { a / b }),
        BinaryOp::Lt => comparison!(scalar, <),
        BinaryOp::Le => comparison!(scalar, <=),
        BinaryOp::Eq => comparison!(scalar, ==),
        BinaryOp::Ge => comparison!(scalar, >=),
        BinaryOp::Gt => comparison!(scalar, >),
        BinaryOp::Ne => comparison!(scalar, !=),
        BinaryOp::And => for_scalar!(scalar, N =>
            |a, b| two(a, b, |a: N, b: N| u32::from(a != 0 as N && b != 0 as N))),
        BinaryOp::Or => for_scalar!(scalar, N =>
            |a, b| two(a, b, |a: N, b: N| u32::from(a != 0 as N || b != 0 as N))),
        BinaryOp::Min => extreme!(scalar, min, math::min),
        BinaryOp::Max => extreme!(scalar, max, math::max),
        BinaryOp::Pow => |a, b| two(a, b, |a: f64, b: f64| math::pow(a, b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_of_the_language() {
        let ratio = binary(BinaryOp::Ratio, Scalar::F64);
        let value = |a: f64, b: f64| f64::from_bits(ratio(a.to_bits(), b.to_bits()));
        assert_eq!(value(0.0, 0.0), 0.0);
        assert_eq!(value(0.0, f64::NAN), 0.0);
        assert_eq!(value(-1.0, 0.0), f64::NEG_INFINITY);
        assert_eq!(value(7.0, 2.0), 3.5);
    }

    #[test]
    fn magnitudes_and_rounding() {
        let least = u64::from(i32::MIN as u32);
        assert_eq!(unary(UnaryOp::Abs, Scalar::I32)(least), least);
        assert_eq!(unary(UnaryOp::Abs, Scalar::I64)(i64::MIN as u64), i64::MIN as u64);
        assert_eq!(unary(UnaryOp::Abs, Scalar::I64)(-7i64 as u64), 7);
        assert_eq!(unary(UnaryOp::Abs, Scalar::U32)(least), least);
        let of = |op, value: f64| f64::from_bits(unary(op, Scalar::F64)(value.to_bits()));
        assert_eq!(of(UnaryOp::Abs, -0.0).to_bits(), 0);
        assert_eq!(of(UnaryOp::Abs, f64::NEG_INFINITY), f64::INFINITY);
        // Halves go away from zero, and a number just below a half does not.
        for (value, whole) in [(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (-2.5, -3.0), (2.4, 2.0)] {
            assert_eq!(of(UnaryOp::Round, value), whole, "{value}");
        }
        assert_eq!(of(UnaryOp::Round, 0.499_999_999_999_999_94), 0.0);
        assert_eq!(of(UnaryOp::Round, 4_503_599_627_370_497.0), 4_503_599_627_370_497.0);
        assert_eq!((of(UnaryOp::Floor, -1.5), of(UnaryOp::Ceil, -1.5)), (-2.0, -1.0));
        assert_eq!(of(UnaryOp::Ceil, -0.5).to_bits(), (-0.0f64).to_bits());
        assert_eq!(of(UnaryOp::Floor, f64::INFINITY), f64::INFINITY);
        assert!(of(UnaryOp::Sqrt, -1.0).is_nan());
        assert_eq!(of(UnaryOp::Sqrt, -0.0).to_bits(), (-0.0f64).to_bits());
        let single = unary(UnaryOp::Round, Scalar::F32)((-2.5f32).to_bits64());
        assert_eq!(f32::from_bits64(single), -3.0);
    }

    #[test]
    fn extremes_of_each_type() {
        let minus_one = u64::from(u32::MAX);
        assert_eq!(binary(BinaryOp::Min, Scalar::I32)(minus_one, 1), minus_one);
        assert_eq!(binary(BinaryOp::Min, Scalar::U32)(minus_one, 1), 1);
        assert_eq!(binary(BinaryOp::Max, Scalar::I64)(u64::MAX, 0), 0);
        assert_eq!(binary(BinaryOp::Max, Scalar::U64)(u64::MAX, 0), u64::MAX);
        let (nan, one) = (f32::NAN.to_bits64(), 1f32.to_bits64());
        for op in [BinaryOp::Min, BinaryOp::Max] {
            assert!(f32::from_bits64(binary(op, Scalar::F32)(nan, one)).is_nan());
            assert!(f32::from_bits64(binary(op, Scalar::F32)(one, nan)).is_nan());
        }
        let (plus, minus) = (0f32.to_bits64(), (-0f32).to_bits64());
        assert_eq!(binary(BinaryOp::Min, Scalar::F32)(plus, minus), minus);
        assert_eq!(binary(BinaryOp::Max, Scalar::F32)(minus, plus), plus);
    }

    #[test]
    fn truth_of_nan_and_wrapping() {
        let nan = f64::NAN.to_bits();
        assert_eq!(unary(UnaryOp::Truth, Scalar::F64)(nan), 1);
        assert_eq!(unary(UnaryOp::Not, Scalar::F64)(nan), 0);
        assert_eq!(binary(BinaryOp::Ne, Scalar::F64)(nan, nan), 1);
        let million = 1_000_000i32.to_bits64();
        let product = binary(BinaryOp::Mul, Scalar::I32)(million, million);
        assert_eq!(i32::from_bits64(product), -727_379_968);
        let max = u64::from(u32::MAX);
        assert_eq!(unary(UnaryOp::Convert(Scalar::I64), Scalar::I32)(max), u64::MAX);
        assert_eq!(unary(UnaryOp::Convert(Scalar::I64), Scalar::U32)(max), max);
    }
}
