//! Writes numbers as text.
//!
//! Input: one value. Output, appended to a string: the text of
//! `pmPrintValue(3)` without padding, or the shortest text that reads back as
//! the same value. Integers need no function here, because Rust prints them like C.

use std::fmt::{self, Write};
use std::str::FromStr;

/// Significant digits of a FLOAT in `pmPrintValue(3)`.
const FLOAT_DIGITS: usize = 8;

/// Significant digits of a DOUBLE in `pmPrintValue(3)`.
const DOUBLE_DIGITS: usize = 16;

/// Number of significant digits that distinguish all doubles.
const MOST_DIGITS: usize = 17;

/// A FLOAT's text up to this length has at most 6 digits, and no other text
/// with as many digits gives the same value.
const PLAIN_FLOAT_BYTES: usize = 7;

/// Like [`write_plain`], for a FLOAT.
fn write_plain_float(out: &mut String, value: f32) -> bool {
    let magnitude = value.abs();
    if !(1e-4..1e6).contains(&magnitude) && magnitude != 0.0 {
        return false;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    let is_plain = text.len() <= PLAIN_FLOAT_BYTES;
    out.push_str(if is_plain { text } else { "" });
    is_plain
}

/// Appends a value of type FLOAT as `pmPrintValue(3)` prints it: `%.8g` of C.
pub fn write_float(out: &mut String, value: f32) {
    write_g(out, f64::from(value), FLOAT_DIGITS);
}

/// Appends a value of type DOUBLE as `pmPrintValue(3)` prints it: `%.16g` of C.
pub fn write_double(out: &mut String, value: f64) {
    write_g(out, value, DOUBLE_DIGITS);
}

/// Swaps the bytes of a number block with the type code `code` between network
/// byte order and that of this machine. Other blocks stay unchanged, as in
/// libpcp.
pub(super) fn native_block(code: u8, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let size = if code == 4 { 4 } else { 8 };
    if cfg!(target_endian = "little") && matches!(code, 2..=5) && bytes.len() == size {
        bytes.reverse();
    }
    bytes
}

/// Appends the fewest digits, at most 17, that read back as the same DOUBLE. A
/// point or an exponent keeps the text apart from an integer. Values that are
/// not finite become `inf`, `-inf` or `nan`.
pub fn write_exact_double(out: &mut String, value: f64) {
    if value.is_nan() {
        // The sign of NaN has no meaning and is left out.
        out.push_str("nan");
    } else if value.is_infinite() {
        write_not_finite(out, value);
    } else if !write_plain(out, value) {
        write_exact(out, value, DOUBLE_DIGITS);
    }
}

/// Appends a finite value of medium size whose shortest text is the only one of
/// its length. Returns false for other values. The text is the same as
/// [`write_exact`]'s, but faster.
fn write_plain(out: &mut String, value: f64) -> bool {
    let magnitude = value.abs();
    // Outside this range the text has an exponent. Zero is inside.
    if !(1e-4..1e15).contains(&magnitude) && magnitude != 0.0 {
        return false;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    if text.len() > PLAIN_BYTES && is_halfway(value, text) {
        return false;
    }
    out.push_str(text);
    true
}

/// A text up to this length has at most 15 digits, and no other text with as
/// many digits gives the same value.
const PLAIN_BYTES: usize = 16;

/// True if a value may lie halfway between two texts as long as `text`, its
/// shortest one. Then the value has exactly one binary digit more after the
/// point than `text` has decimal digits there.
fn is_halfway(value: f64, text: &str) -> bool {
    let decimals = text.bytes().rev().position(|byte| byte == b'.').unwrap_or_default();
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64 - 1075;
    let binary = -exponent - i64::from((bits | 1 << 52).trailing_zeros());
    binary == decimals as i64 + 1
}

/// Appends the fewest digits, at most 9, that read back as the same FLOAT.
/// Otherwise like [`write_exact_double`].
pub fn write_exact_float(out: &mut String, value: f32) {
    if value.is_finite() {
        if !write_plain_float(out, value) {
            write_exact(out, value, FLOAT_DIGITS);
        }
    } else {
        write_exact_double(out, f64::from(value));
    }
}

/// As [`write_exact_float`], without `.0` behind whole numbers.
pub fn write_shortest_float(out: &mut String, value: f32) {
    write_exact_float(out, value);
    drop_point(out);
}

/// As [`write_exact_double`], without `.0` behind whole numbers.
pub fn write_shortest_double(out: &mut String, value: f64) {
    write_exact_double(out, value);
    drop_point(out);
}

fn drop_point(out: &mut String) {
    if out.ends_with(".0") {
        out.truncate(out.len() - 2);
    }
}

/// Lays out the shortest text of a finite value, as `pmPrintValue(3)` does with
/// `precision`.
fn write_exact<T>(out: &mut String, value: T, precision: usize)
where
    T: Copy + fmt::LowerExp + FromStr + PartialEq,
{
    let shortest = Scientific::of(format_args!("{value:e}"));
    // If two equally short texts are equally close to the value, C prints the
    // even one and Rust may print either. Rounding gives the even one, but it
    // does not always read back: numbers below a power of two are denser than
    // those above.
    let rounded = Scientific::of(format_args!("{value:.*e}", shortest.decimals()));
    let reads_back = rounded.text().parse().is_ok_and(|again: T| again == value);
    let start = out.len();
    (if reads_back { rounded } else { shortest }).lay_out(out, precision);
    if !out.as_bytes()[start..].iter().any(|byte| matches!(byte, b'.' | b'e')) {
        out.push_str(".0");
    }
}

/// The text of C's `%.{digits}g`; see [`write_g`].
pub fn format_g(value: f64, digits: usize) -> String {
    let mut text = String::new();
    write_g(&mut text, value, digits);
    text
}

/// Appends the text that C prints for `%.{digits}g`: so many significant
/// digits, correctly rounded and without trailing zeros. It uses exponent
/// notation if the exponent is below -4 or at least `digits`. `digits` is
/// limited to 1 to 17.
pub fn write_g(out: &mut String, value: f64, digits: usize) {
    if !value.is_finite() {
        return write_not_finite(out, value);
    }
    let digits = digits.clamp(1, MOST_DIGITS);
    Scientific::of(format_args!("{value:.*e}", digits - 1)).lay_out(out, digits);
}

/// Unlike the exact forms, C shows the sign of NaN too.
fn write_not_finite(out: &mut String, value: f64) {
    if value.is_sign_negative() {
        out.push('-');
    }
    out.push_str(if value.is_nan() { "nan" } else { "inf" });
}

fn append(out: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}

/// Room for a sign, 17 digits with a point, and an exponent of at most five
/// characters.
const SCIENTIFIC_BYTES: usize = 32;

/// A finite number as `-d.ddde-12`, not on the heap.
#[derive(Default)]
struct Scientific {
    bytes: [u8; SCIENTIFIC_BYTES],
    length: usize,
}

impl Write for Scientific {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl Scientific {
    /// Reads the text that `{:e}` prints for a finite number with at most 17
    /// digits.
    fn of(text: fmt::Arguments<'_>) -> Scientific {
        let mut scientific = Scientific::default();
        let written = scientific.write_fmt(text);
        debug_assert!(written.is_ok(), "{text}");
        scientific
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// The mantissa with its sign, and the exponent.
    fn parts(&self) -> (&str, i32) {
        let (mantissa, exponent) = self.text().split_once('e').unwrap_or((self.text(), "0"));
        (mantissa, exponent.parse().unwrap_or_default())
    }

    /// Number of digits after the point.
    fn decimals(&self) -> usize {
        self.parts().0.split_once('.').map_or(0, |(_, decimals)| decimals.len())
    }

    /// Appends the number by the rules of `%.{precision}g`.
    fn lay_out(&self, out: &mut String, precision: usize) {
        let (mantissa, exponent) = self.parts();
        let magnitude = mantissa.trim_start_matches('-');
        if magnitude.len() < mantissa.len() {
            out.push('-');
        }
        // The first digit, and the significant digits after the point.
        let (first, rest) = magnitude.split_once('.').unwrap_or((magnitude, ""));
        let rest = rest.trim_end_matches('0');
        match usize::try_from(exponent) {
            // The point moves right, over digits and then over zeros.
            Ok(right) if right < precision => {
                let whole = right.min(rest.len());
                out.push_str(first);
                out.push_str(&rest[..whole]);
                out.extend(std::iter::repeat_n('0', right - whole));
                if whole < rest.len() {
                    out.push('.');
                    out.push_str(&rest[whole..]);
                }
            }
            Err(_) if exponent >= -4 => {
                out.push_str("0.");
                out.extend((exponent + 1..0).map(|_| '0'));
                out.push_str(first);
                out.push_str(rest);
            }
            _ => {
                out.push_str(first);
                if !rest.is_empty() {
                    out.push('.');
                    out.push_str(rest);
                }
                let sign = if exponent < 0 { '-' } else { '+' };
                append(out, format_args!("e{sign}{:02}", exponent.unsigned_abs()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short way gives the same text as the long one, or declines.
    #[test]
    fn plain_numbers_are_exact_ones() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let (mut plain, mut others) = (0, 0);
        for round in 0..30_000u32 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let exponent = 1023 - 14 + random % 64;
            let values = [
                f64::from_bits(random & ((1 << 52) - 1) | exponent << 52),
                // Few digits, and binary fractions, which include ties.
                (random % 1_000_000) as f64 / 100.0,
                (random >> 11) as f64 / (1u64 << (round % 60)) as f64,
                (random >> 40 | 1) as f64 / (1u64 << (round % 25)) as f64 + 0.5,
                -f64::from(round),
            ];
            for value in values {
                let (mut short, mut long) = (String::new(), String::new());
                match write_plain(&mut short, value) {
                    true => {
                        write_exact(&mut long, value, DOUBLE_DIGITS);
                        assert_eq!(short, long, "{value:e}");
                        plain += 1;
                    }
                    false => others += 1,
                }
            }
        }
        assert!(plain > 100_000 && others > 100, "{plain} {others}");
    }

    #[test]
    fn shortest_texts() {
        let of = |write: &dyn Fn(&mut String)| {
            let mut text = String::new();
            write(&mut text);
            text
        };
        for (value, wanted) in
            [(3.42f32, "3.42"), (104.0, "104"), (0.0, "0"), (-2.5e10, "-2.5e+10"), (0.1, "0.1")]
        {
            assert_eq!(of(&|out| write_shortest_float(out, value)), wanted);
        }
        let sum = std::hint::black_box(0.1) + 0.2;
        for (value, wanted) in
            [(sum, "0.30000000000000004"), (100.0, "100"), (1e20, "1e+20"), (f64::NAN, "nan")]
        {
            assert_eq!(of(&|out| write_shortest_double(out, value)), wanted);
        }
    }

    /// The short way gives the same text as the long one, or declines.
    #[test]
    fn plain_floats_are_exact_ones() {
        let mut plain = 0;
        let mut compare = |value: f32| {
            let (mut short, mut long) = (String::new(), String::new());
            write_exact(&mut long, value, FLOAT_DIGITS);
            match write_plain_float(&mut short, value) {
                true => assert_eq!(short, long),
                false => assert_eq!(short, ""),
            }
            plain += usize::from(!short.is_empty());
        };
        for number in (0..1_000_000u32).step_by(7) {
            for unit in [1.0, 10.0, 1e3, 1e5, 1e8] {
                compare((f64::from(number) / unit) as f32);
                compare(-(f64::from(number) / unit) as f32);
                compare(f32::from_bits(number.wrapping_mul(4294)));
            }
        }
        assert!(plain > 500_000, "{plain}");
    }
}
