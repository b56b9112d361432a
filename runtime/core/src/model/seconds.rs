//! Seconds and nanoseconds as one number, to the last digit what libpcp makes
//! of them.
//!
//! libpcp adds them in the extended precision of the x87 and rounds the sum to
//! a double: three roundings, of which the first two are to 64 bits. One
//! rounding of the exact value has another last digit in one of some 10,000
//! intervals, and rates and interpolated values with it. Where the exact value
//! is not next to the middle of two doubles both give the same, and doubles
//! tell that at a tenth of the cost.

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
    clear_of_middles(sec, nsec).unwrap_or_else(|| rounded_as_x87(sec, nsec))
}

/// The double nearest to `sec + nsec / 1e9`, unless that is so close to the
/// middle of two that roundings before the last one could choose the other.
/// Not for a whole number of seconds.
fn clear_of_middles(sec: i64, nsec: i64) -> Option<f64> {
    /// Bits that times 1e9, which has 21 but for zeros, make an exact product.
    const HEAD: u64 = !((1 << 21) - 1);
    // Beyond this a number of seconds is no exact double.
    if sec.unsigned_abs() >= 1 << 53 {
        return None;
    }
    let (sec, nsec) = (sec as f64, nsec as f64);
    // The quotient, and what it lacks: `nsec - quotient * 1e9` without rounding.
    let quotient = nsec / 1e9;
    let head = f64::from_bits(quotient.to_bits() & HEAD);
    let lacking = ((nsec - head * 1e9) - (quotient - head) * 1e9) / 1e9;
    // The sum of both numbers, and what it lacks.
    let sum = sec + quotient;
    let of_quotient = sum - sec;
    let lost = (sec - (sum - of_quotient)) + (quotient - of_quotient) + lacking;
    let nearest = sum + lost;
    let off = lost - (nearest - sum);
    // Half of the distance to the next double. It is smaller below a power of
    // two, and less by far than any result's here when it is no number.
    let half = f64::from_bits(nearest.to_bits() & 0x7ff0_0000_0000_0000) * (f64::EPSILON / 2.0);
    let is_power_of_two = nearest.to_bits() << 12 == 0;
    // Three roundings to 64 bits move a value by at most 2^-8 of that half,
    // unless next to nothing is left of the quotient that was rounded first.
    let is_left = sec * nsec >= 0.0 || nearest.abs() >= 1.0;
    (is_left && !is_power_of_two && off.abs() < half * (1.0 - 1.0 / 256.0)).then_some(nearest)
}

/// What the x87 gives: three roundings, the last one to a double. Of less than
/// a second of nanoseconds, and less than 2^62 seconds.
fn rounded_as_x87(sec: i64, nsec: i64) -> f64 {
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

    /// The quick way has an answer for nearly all, and the same one.
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
