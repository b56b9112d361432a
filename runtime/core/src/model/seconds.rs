//! Adds seconds and nanoseconds into one number that agrees with libpcp to the
//! last digit.
//!
//! libpcp adds them in the extended precision of the x87 and rounds the sum to
//! a double. That makes three roundings, the first two of them to 64 bits. A
//! single rounding of the exact value has another last digit in one of some
//! 10,000 intervals; rates and interpolated values would differ too. Both ways
//! agree unless the exact value is close to the middle of two doubles.
//! Arithmetic with doubles can tell that, at a tenth of the cost.

/// Bits in the significand of an extended number.
const SIGNIFICAND: u32 = 64;
/// Bits after the point of a computed quotient.
const FRACTION: u32 = 3 * STEP;
/// Bits of the quotient that one 64-bit division gives.
const STEP: u32 = 34;
/// Bits after the point that are kept when there are many seconds.
const FRACTION_BESIDE_MANY: u32 = 64;
/// Number of seconds from which a sum with the whole fraction might not fit.
const MANY: u64 = 1 << 24;

/// `seconds + nanoseconds / 1e9`. The nanoseconds may have either sign. If they
/// exceed a second, the result is rounded as for the carried form, which libpcp
/// does not do.
pub(super) fn seconds(sec: i64, nsec: i64) -> f64 {
    let (sec, nsec) = (sec.saturating_add(nsec / 1_000_000_000), nsec % 1_000_000_000);
    if nsec == 0 || sec.unsigned_abs() >= 1 << 62 {
        return sec as f64;
    }
    clear_of_middles(sec, nsec).unwrap_or_else(|| rounded_as_x87(sec, nsec))
}

/// The double nearest to `sec + nsec / 1e9`. `None` if the sum is so close to
/// the middle of two doubles that earlier roundings could select the other one.
/// The number of seconds must not be whole.
fn clear_of_middles(sec: i64, nsec: i64) -> Option<f64> {
    /// Bits of a double whose product with 1e9 is exact: 1e9 has 21 significant
    /// bits.
    const HEAD: u64 = !((1 << 21) - 1);
    // Larger numbers of seconds are not exact as doubles.
    if sec.unsigned_abs() >= 1 << 53 {
        return None;
    }
    let (sec, nsec) = (sec as f64, nsec as f64);
    // The quotient and its rounding error: `nsec - quotient * 1e9` without
    // rounding.
    let quotient = nsec / 1e9;
    let head = f64::from_bits(quotient.to_bits() & HEAD);
    let lacking = ((nsec - head * 1e9) - (quotient - head) * 1e9) / 1e9;
    // The sum of both numbers and its rounding error.
    let sum = sec + quotient;
    let of_quotient = sum - sec;
    let lost = (sec - (sum - of_quotient)) + (quotient - of_quotient) + lacking;
    let nearest = sum + lost;
    let off = lost - (nearest - sum);
    // Half of the distance to the next double. The distance is smaller below a
    // power of two. All results here are far above the smallest doubles, so
    // `half` is exact.
    let half = f64::from_bits(nearest.to_bits() & 0x7ff0_0000_0000_0000) * (f64::EPSILON / 2.0);
    let is_power_of_two = nearest.to_bits() << 12 == 0;
    // Three roundings to 64 bits move a value by at most 2^-8 of that half.
    // This is false if a subtraction cancels almost all of the rounded
    // quotient.
    let is_left = sec * nsec >= 0.0 || nearest.abs() >= 1.0;
    (is_left && !is_power_of_two && off.abs() < half * (1.0 - 1.0 / 256.0)).then_some(nearest)
}

/// The x87's result: three roundings, the last one to a double. `nsec` must be
/// below one second, and `sec` below 2^62.
fn rounded_as_x87(sec: i64, nsec: i64) -> f64 {
    let quotient = rounded(quotient(nsec.unsigned_abs()));
    let bits = if sec.unsigned_abs() < MANY { FRACTION } else { FRACTION_BESIDE_MANY };
    // At most 2^102. The lowest bits only serve the rounding.
    let fraction = shifted(quotient, FRACTION - bits) as i128;
    let sum = (i128::from(sec) << bits) + if nsec < 0 { -fraction } else { fraction };
    // The conversion rounds; the division by a power of two does not.
    let seconds = rounded(sum.unsigned_abs()) as f64 / (1u128 << bits) as f64;
    if sum < 0 { -seconds } else { seconds }
}

/// `nanoseconds / 1e9` with many bits after the point. The last bit is set if
/// any later bit would be; it matters only for rounding.
fn quotient(nsec: u64) -> u128 {
    let (mut quotient, mut rest) = (0, nsec);
    for _ in 0..FRACTION / STEP {
        let dividend = rest << STEP;
        quotient = quotient << STEP | u128::from(dividend / 1_000_000_000);
        rest = dividend % 1_000_000_000;
    }
    quotient | u128::from(rest != 0)
}

/// The number without its lowest bits. The new last bit is set if any of them
/// was.
fn shifted(number: u128, bits: u32) -> u128 {
    number >> bits | u128::from(number & ((1 << bits) - 1) != 0)
}

/// The nearest number with no more bits than an extended number has. Of two
/// equally near numbers, the even one.
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

    /// The quick way answers nearly always, and agrees with the slow one.
    #[test]
    fn quick_answers_are_those_of_the_x87() {
        let mut state = 1u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let (mut all, mut quick) = (0, 0);
        for round in 0..300_000 {
            let sec = match round % 4 {
                0 => random() as i64 >> (1 + random() % 63),
                1 => 0,
                2 => (random() % 4_000_000_000) as i64,
                _ => (random() % 100) as i64 - 50,
            };
            let nsec = match round % 3 {
                0 => (random() % 1000) as i64 * 1_000_000,
                1 => 1_i64 << (random() % 29),
                _ => (random() % 999_999_999) as i64 + 1,
            };
            let nsec = if random() % 4 == 0 { -nsec } else { nsec };
            if nsec == 0 || sec.unsigned_abs() >= 1 << 62 {
                continue;
            }
            all += 1;
            if let Some(number) = clear_of_middles(sec, nsec) {
                quick += 1;
                let right = rounded_as_x87(sec, nsec);
                assert_eq!(number.to_bits(), right.to_bits(), "{sec} {nsec}");
            }
        }
        assert!(quick * 10 > all * 8, "{quick} of {all}");
    }

    /// Results of pmtimespecToReal(3) of libpcp 6.0.3 on x86-64.
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
