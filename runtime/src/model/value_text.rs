//! Values as text.
//!
//! Takes one value and appends to a string what `pmPrintValue(3)` prints for
//! it without padding, or the shortest text that gives the same value when it
//! is read again. Knows neither descriptors nor where values are kept.
//! Integers have no function here, as Rust prints them like C.

use std::fmt::{self, Write};
use std::str::FromStr;

/// Significant digits with which `pmPrintValue(3)` prints a FLOAT.
const FLOAT_DIGITS: usize = 8;

/// Significant digits with which `pmPrintValue(3)` prints a DOUBLE.
const DOUBLE_DIGITS: usize = 16;

/// More digits than these say nothing about a double.
const MOST_DIGITS: usize = 17;

/// Appends a value of type FLOAT as `pmPrintValue(3)` prints it: `%.8g` of C.
pub fn write_float(out: &mut String, value: f32) {
    write_g(out, f64::from(value), FLOAT_DIGITS);
}

/// Appends a value of type DOUBLE as `pmPrintValue(3)` prints it: `%.16g` of C.
pub fn write_double(out: &mut String, value: f64) {
    write_g(out, value, DOUBLE_DIGITS);
}

/// Appends a value of type STRING as `pmPrintValue(3)` prints it: between
/// quotes, nothing escaped.
pub fn write_text(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Appends a value of unknown type that is kept in place, in one word, as
/// `pmPrintValue(3)` prints it: as U32, as FLOAT unless that is NaN, and in
/// hexadecimal.
pub fn write_unknown_word(out: &mut String, word: u32) {
    append(out, format_args!("{word}"));
    let float = f32::from_bits(word);
    if !float.is_nan() {
        out.push(' ');
        write_float(out, float);
    }
    append(out, format_args!(" {word:#x}"));
}

/// Appends the bytes of a value of type AGGREGATE, or of unknown type, as
/// `pmPrintValue(3)` prints them: all readings that are possible, as numbers
/// of this machine's byte order and as text, and the bytes in hexadecimal.
pub fn write_unknown_block(out: &mut String, bytes: &[u8]) {
    if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
        append(out, format_args!("{} ", u64::from_ne_bytes(bytes)));
        let double = f64::from_ne_bytes(bytes);
        if !double.is_nan() {
            write_double(out, double);
            out.push(' ');
        }
    }
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        let float = f32::from_ne_bytes(bytes);
        if !float.is_nan() {
            write_float(out, float);
            out.push(' ');
        }
    }
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        out.push('"');
        out.extend(bytes.iter().copied().map(char::from));
        out.push_str("\" ");
    }
    out.push('[');
    for byte in bytes {
        append(out, format_args!("{byte:02x}"));
    }
    out.push(']');
}

/// Appends the fewest digits, 17 at most, that give the same DOUBLE when they
/// are read again, with a point or an exponent so that they are not taken for
/// an integer. `inf`, `-inf` or `nan` when the value is not finite.
pub fn write_exact_double(out: &mut String, value: f64) {
    if value.is_nan() {
        // The sign of NaN says nothing and is left out.
        out.push_str("nan");
    } else if value.is_infinite() {
        write_not_finite(out, value);
    } else {
        write_exact(out, value, DOUBLE_DIGITS);
    }
}

/// Appends the fewest digits, 9 at most, that give the same FLOAT when they
/// are read again; otherwise as [`write_exact_double`].
pub fn write_exact_float(out: &mut String, value: f32) {
    if value.is_finite() {
        write_exact(out, value, FLOAT_DIGITS);
    } else {
        write_exact_double(out, f64::from(value));
    }
}

/// Lays out the shortest text of a finite value as `pmPrintValue(3)` does
/// with `precision`.
fn write_exact<T>(out: &mut String, value: T, precision: usize)
where
    T: Copy + fmt::LowerExp + FromStr + PartialEq,
{
    let shortest = Scientific::of(format_args!("{value:e}"));
    // Of two equally short texts that are equally close to the value, C prints
    // the even one and Rust either. Rounding is no help where the numbers
    // below the value are denser than those above it.
    let rounded = Scientific::of(format_args!("{value:.*e}", shortest.decimals()));
    let reads_back = rounded.text().parse().is_ok_and(|again: T| again == value);
    let start = out.len();
    (if reads_back { rounded } else { shortest }).lay_out(out, precision);
    if !out.as_bytes()[start..].iter().any(|byte| matches!(byte, b'.' | b'e')) {
        out.push_str(".0");
    }
}

/// The text of `%.{digits}g` of C; see [`write_g`].
pub fn format_g(value: f64, digits: usize) -> String {
    let mut text = String::new();
    write_g(&mut text, value, digits);
    text
}

/// Appends what C prints for `%.{digits}g`: that many significant digits,
/// correctly rounded and without trailing zeros, in exponent notation when the
/// exponent is below -4 or not below `digits`. `digits` counts as 1 when it is
/// 0 and as 17 when it is more.
pub fn write_g(out: &mut String, value: f64, digits: usize) {
    if !value.is_finite() {
        return write_not_finite(out, value);
    }
    let digits = digits.clamp(1, MOST_DIGITS);
    Scientific::of(format_args!("{value:.*e}", digits - 1)).lay_out(out, digits);
}

/// C shows the sign of NaN too.
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

/// Room for a sign, 17 digits with a point, and an exponent of up to five characters.
const SCIENTIFIC_BYTES: usize = 32;

/// A finite number as `-d.ddde-12`, off the heap.
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
    /// Takes what `{:e}` prints for a finite number with 17 digits at most.
    fn of(text: fmt::Arguments<'_>) -> Scientific {
        let mut scientific = Scientific::default();
        let written = scientific.write_fmt(text);
        debug_assert!(written.is_ok(), "{text}");
        scientific
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// Mantissa with its sign, and exponent.
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
        // The first digit, and those after the point as far as they matter.
        let (first, rest) = magnitude.split_once('.').unwrap_or((magnitude, ""));
        let rest = rest.trim_end_matches('0');
        match usize::try_from(exponent) {
            // The point moves right, over digits and then zeros.
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
