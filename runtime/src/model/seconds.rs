//! Seconds and nanoseconds as one number, to the last digit what libpcp makes
//! of them.
//!
//! libpcp adds them in the extended precision of the x87 and rounds the sum to
//! a double: three roundings, of which the first two are to 64 bits. One
//! rounding of the exact value has another last digit in one of some 10,000
//! intervals, and rates and interpolated values with it.

/// Bits of an extended number's significand.
const SIGNIFICAND: u32 = 64;
/// Bits behind the point that a quotient is computed to.
const FRACTION: u32 = 3 * STEP;
/// Bits of the quotient that one 64-bit division gives.
const STEP: u32 = 34;
/// Bits behind the point that are kept beside many seconds.
const FRACTION_BESIDE_MANY: u32 = 64;
/// Seconds from which on a sum with all of the fraction might not fit.
const MANY: u64 = 1 << 24;

/// `seconds + nanoseconds / 1e9`. The nanoseconds may have either sign; more
/// than a second of them is rounded as it would be here, not as libpcp does it.
pub(super) fn seconds(sec: i64, nsec: i64) -> f64 {
    let (sec, nsec) = (sec.saturating_add(nsec / 1_000_000_000), nsec % 1_000_000_000);
    if nsec == 0 || sec.unsigned_abs() >= 1 << 62 {
        return sec as f64;
    }
    let quotient = rounded(quotient(nsec.unsigned_abs()));
    let bits = if sec.unsigned_abs() < MANY { FRACTION } else { FRACTION_BESIDE_MANY };
    // At most 2^102, and the lowest bits are only there to be rounded off.
    let fraction = shifted(quotient, FRACTION - bits) as i128;
    let sum = (i128::from(sec) << bits) + if nsec < 0 { -fraction } else { fraction };
    // This conversion rounds; that by a power of two does not.
    let seconds = rounded(sum.unsigned_abs()) as f64 / (1u128 << bits) as f64;
    if sum < 0 { -seconds } else { seconds }
}

/// `nanoseconds / 1e9` with so many bits behind the point that the last one,
/// which is set where any after it were, only matters to a rounding.
fn quotient(nsec: u64) -> u128 {
    let (mut quotient, mut rest) = (0, nsec);
    for _ in 0..FRACTION / STEP {
        let dividend = rest << STEP;
        quotient = quotient << STEP | u128::from(dividend / 1_000_000_000);
        rest = dividend % 1_000_000_000;
    }
    quotient | u128::from(rest != 0)
}

/// Without its lowest bits, but with the last one set if any of them was.
fn shifted(number: u128, bits: u32) -> u128 {
    number >> bits | u128::from(number & ((1 << bits) - 1) != 0)
}

/// A number to the nearest one that has no more bits than an extended number,
/// the even one of two.
fn rounded(number: u128) -> u128 {
    let Some(bits) = (u128::BITS - number.leading_zeros()).checked_sub(SIGNIFICAND + 1) else {
        return number;
    };
    let half = 1 << bits;
    let (kept, rest) = (number >> (bits + 1), number & (2 * half - 1));
    let up = rest > half || rest == half && kept & 1 == 1;
    (kept + u128::from(up)) << (bits + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What pmtimespecToReal(3) of libpcp 6.0.3 gives on x86-64.
    #[test]
    fn numbers_are_those_of_libpcp() {
        for (sec, nsec, expected) in [
            (0, 0, 0.0),
            (0, 1, 1e-9),
            (-3, 250_000_000, -2.75),
            (i64::MAX, 999_999_999, 9223372036854775807.0),
            (i64::MIN, 1, -9223372036854775808.0),
        ] {
            assert_eq!(seconds(sec, nsec), expected, "{sec} {nsec}");
        }
        let table = include_str!("seconds.tsv");
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for row in rows {
            let words: Vec<&str> = row.split('\t').collect();
            let [sec, nsec, bits] = words[..] else { panic!("{row}") };
            let number = seconds(sec.parse().expect("seconds"), nsec.parse().expect("nanoseconds"));
            assert_eq!(format!("{:016x}", number.to_bits()), bits, "{row}");
            count += 1;
        }
        assert!(count >= 60, "{count}");
    }
}
