//! Selects the lanes with the greatest or least values.

use crate::kernel::Scalar;
use crate::kernel::ops::LaneBits;

/// Calls `take` with the positions of at most `k` lanes, in ascending order:
/// those with the greatest (`top`) or least values. Among equal values, earlier
/// lanes come first. NaN comes after all numbers in both cases. `keys` is a
/// buffer.
pub fn ranked(
    scalar: Scalar,
    lanes: &[u64],
    k: u32,
    top: bool,
    keys: &mut Vec<u64>,
    mut take: impl FnMut(usize),
) {
    let k = usize::try_from(k).unwrap_or(usize::MAX).min(lanes.len());
    let Some(last) = k.checked_sub(1) else { return };
    let key = |bits: &u64| rank(scalar, *bits, top);
    keys.clear();
    keys.extend(lanes.iter().map(key));
    // The least chosen key, and the number of lanes to choose with it.
    let (better, worst, _) = keys.select_nth_unstable_by(last, |a, b| b.cmp(a));
    let worst = *worst;
    let mut equals = k - better.iter().filter(|key| **key > worst).count();
    for (at, bits) in lanes.iter().enumerate() {
        let key = key(bits);
        if key > worst {
            take(at);
        } else if key == worst && equals > 0 {
            equals -= 1;
            take(at);
        }
    }
}

/// A key that is greater for lanes that are chosen earlier; zero for NaN.
fn rank(scalar: Scalar, bits: u64, top: bool) -> u64 {
    const SIGN: u64 = 1 << 63;
    let signed = |value: i64| value as u64 ^ SIGN;
    let float = |value: f64| {
        // Zeros are equal, whatever their signs.
        let bits = (value + 0.0).to_bits();
        if bits & SIGN == 0 { bits | SIGN } else { !bits }
    };
    let ascending = match scalar {
        Scalar::I32 => signed(i64::from(i32::from_bits64(bits))),
        Scalar::I64 => signed(i64::from_bits64(bits)),
        Scalar::U32 | Scalar::U64 => bits,
        Scalar::F32 if f32::from_bits64(bits).is_nan() => return 0,
        Scalar::F32 => float(f64::from(f32::from_bits64(bits))),
        Scalar::F64 if f64::from_bits64(bits).is_nan() => return 0,
        Scalar::F64 => float(f64::from_bits64(bits)),
    };
    if top { ascending } else { !ascending }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<N: LaneBits>(scalar: Scalar, values: &[N], k: u32, top: bool) -> Vec<usize> {
        let lanes: Vec<u64> = values.iter().map(|value| value.to_bits64()).collect();
        let mut taken = Vec::new();
        ranked(scalar, &lanes, k, top, &mut Vec::new(), |at| taken.push(at));
        taken
    }

    #[test]
    fn the_order_of_the_lanes_stays() {
        let values = [3.0, 9.0, -1.0, 7.0, 8.0];
        assert_eq!(of(Scalar::F64, &values, 3, true), [1, 3, 4]);
        assert_eq!(of(Scalar::F64, &values, 2, false), [0, 2]);
        assert_eq!(of(Scalar::F64, &values, 1, true), [1]);
        assert_eq!(of(Scalar::F64, &values, 0, true), [0; 0]);
        assert_eq!(of(Scalar::F64, &values, 99, false), [0, 1, 2, 3, 4]);
        assert_eq!(of::<f64>(Scalar::F64, &[], 3, true), [0; 0]);
    }

    #[test]
    fn of_equal_values_the_first_are_taken() {
        assert_eq!(of(Scalar::U32, &[5u32, 7, 5, 7, 5], 3, true), [0, 1, 3]);
        assert_eq!(of(Scalar::U32, &[5u32, 7, 5, 7, 5], 2, false), [0, 2]);
        assert_eq!(of(Scalar::F64, &[0.0, -0.0, 0.0], 2, true), [0, 1]);
        assert_eq!(of(Scalar::F64, &[0.0, -0.0, 0.0], 2, false), [0, 1]);
    }

    #[test]
    fn nan_is_taken_last_and_infinities_by_their_sign() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for values in [[nan, inf, 1.0, -inf], [-nan, inf, 1.0, -inf]] {
            assert_eq!(of(Scalar::F64, &values, 1, true), [1]);
            assert_eq!(of(Scalar::F64, &values, 1, false), [3]);
            assert_eq!(of(Scalar::F64, &values, 3, true), [1, 2, 3]);
            assert_eq!(of(Scalar::F64, &values, 3, false), [1, 2, 3]);
            assert_eq!(of(Scalar::F64, &values, 4, true), [0, 1, 2, 3]);
        }
        let single = [f32::NAN, f32::MAX, f32::MIN];
        assert_eq!(of(Scalar::F32, &single, 1, true), [1]);
        assert_eq!(of(Scalar::F32, &single, 2, false), [1, 2]);
    }

    #[test]
    fn integers_are_ranked_in_their_own_type() {
        assert_eq!(of(Scalar::I32, &[-1i32, i32::MIN, i32::MAX], 1, true), [2]);
        assert_eq!(of(Scalar::I32, &[-1i32, i32::MIN, i32::MAX], 1, false), [1]);
        assert_eq!(of(Scalar::U64, &[u64::MAX, u64::MAX - 1], 1, false), [1]);
        assert_eq!(of(Scalar::I64, &[i64::MIN, i64::MAX, 0], 2, true), [1, 2]);
        assert_eq!(of(Scalar::U64, &[0u64, u64::MAX], 1, true), [1]);
    }
}
