//! Reads numbers as the C library does.
//!
//! Input: a text. Output: the number that the text begins with, and its length.
//! The rules are those of `strtod(3)` in the C locale, because they decide
//! where a number in PCP's little languages ends. The caller skips leading
//! white space.

/// True for the characters that C counts as white space.
pub const fn is_c_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// The text without white space at its start.
pub fn trim_c_space(text: &str) -> &str {
    text.trim_start_matches(|c| u8::try_from(c).is_ok_and(is_c_space))
}

/// The first offset from `at` on where there is no white space.
pub(super) fn after_space(text: &str, at: usize) -> usize {
    text.len() - trim_c_space(&text[at..]).len()
}

/// The reason why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberError {
    /// The text begins with something else.
    Missing,
    /// The number, of this many bytes, is too large for a double, or too small
    /// for full precision.
    Range(usize),
}

/// The number that `text` begins with, and its length in bytes. Accepts decimal
/// and hexadecimal notation, `inf`, `infinity` and `nan`, with an optional
/// sign.
///
/// # Errors
/// The text does not begin with a number, or the number is out of range.
pub fn leading_number(text: &str) -> Result<(f64, usize), NumberError> {
    let bytes = text.as_bytes();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let negative = bytes.first() == Some(&b'-');
    let body = bytes.get(sign..).unwrap_or_default();
    let (magnitude, length) = special(body)
        .map(Ok)
        .or_else(|| hexadecimal(body))
        .or_else(|| decimal(text.get(sign..).unwrap_or_default()))
        .unwrap_or(Err(NumberError::Missing))
        .map_err(|error| match error {
            NumberError::Missing => NumberError::Missing,
            NumberError::Range(length) => NumberError::Range(sign + length),
        })?;
    Ok((if negative { -magnitude } else { magnitude }, sign + length))
}

/// A number without a sign and its length. `None` if there is no number.
type Unsigned = Option<Result<(f64, usize), NumberError>>;

fn starts_with(bytes: &[u8], word: &str) -> bool {
    bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

fn special(bytes: &[u8]) -> Option<(f64, usize)> {
    if let Some(word) = ["infinity", "inf"].into_iter().find(|word| starts_with(bytes, word)) {
        return Some((f64::INFINITY, word.len()));
    }
    if !starts_with(bytes, "nan") {
        return None;
    }
    // `nan(WORD)` is one number. The word does not matter.
    let rest = &bytes[3..];
    let payload = rest.iter().skip(1).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_');
    let closing = 1 + payload.count();
    let in_parentheses = rest.first() == Some(&b'(') && rest.get(closing) == Some(&b')');
    Some((f64::NAN, if in_parentheses { 3 + closing + 1 } else { 3 }))
}

fn count_digits(bytes: &[u8], is_digit: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_digit(byte)).count()
}

/// Length of `DIGITS[.DIGITS]` or `.DIGITS`; 0 when there is no digit.
fn mantissa_length(bytes: &[u8], is_digit: impl Fn(&u8) -> bool) -> usize {
    let whole = count_digits(bytes, &is_digit);
    if bytes.get(whole) != Some(&b'.') {
        return whole;
    }
    let fraction = count_digits(&bytes[whole + 1..], &is_digit);
    if whole + fraction == 0 { 0 } else { whole + 1 + fraction }
}

/// Length of an exponent that `letter` introduces; 0 if it has no digit.
fn exponent_length(bytes: &[u8], letter: u8) -> usize {
    if !bytes.first().is_some_and(|first| first.eq_ignore_ascii_case(&letter)) {
        return 0;
    }
    let sign = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
    match count_digits(&bytes[1 + sign..], u8::is_ascii_digit) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

/// Refuses values that lose precision: `strtod` reports them as errors too.
fn in_range(value: f64, is_zero: bool, length: usize) -> Result<(f64, usize), NumberError> {
    if value.is_normal() || is_zero { Ok((value, length)) } else { Err(NumberError::Range(length)) }
}

fn decimal(text: &str) -> Unsigned {
    let bytes = text.as_bytes();
    let mantissa = mantissa_length(bytes, u8::is_ascii_digit);
    if mantissa == 0 {
        return None;
    }
    let length = mantissa + exponent_length(&bytes[mantissa..], b'e');
    let is_zero = !bytes[..mantissa].iter().any(|byte| (b'1'..=b'9').contains(byte));
    let value = text.get(..length)?.parse::<f64>().ok()?;
    Some(in_range(value, is_zero, length))
}

fn hexadecimal(bytes: &[u8]) -> Unsigned {
    if !starts_with(bytes, "0x") {
        return None;
    }
    let digits = &bytes[2..];
    let mantissa = mantissa_length(digits, u8::is_ascii_hexdigit);
    if mantissa == 0 {
        // Only the zero before the `x` is a number.
        return None;
    }
    // Keeps at most sixteen digits. Later digits only decide the rounding.
    let (mut significand, mut exponent, mut in_fraction) = (0u64, 0i64, false);
    for byte in &digits[..mantissa] {
        let Some(digit) = char::from(*byte).to_digit(16) else {
            in_fraction = true;
            continue;
        };
        if significand >> 60 == 0 {
            significand = significand << 4 | u64::from(digit);
            exponent -= if in_fraction { 4 } else { 0 };
        } else {
            significand |= u64::from(digit != 0);
            exponent += if in_fraction { 0 } else { 4 };
        }
    }
    let exponent_text = &digits[mantissa..];
    let exponent_digits = exponent_length(exponent_text, b'p');
    exponent += decimal_exponent(&exponent_text[..exponent_digits]);
    let length = 2 + mantissa + exponent_digits;
    // With 64 significant bits, exponents beyond this give zero or infinity
    // anyway.
    let exponent = exponent.clamp(-2000, 2000);
    let (first, second) = (exponent / 2, exponent - exponent / 2);
    let value = significand as f64 * power_of_two(first) * power_of_two(second);
    Some(in_range(value, significand == 0, length))
}

/// Two to a power between -1000 and 1000, exactly.
fn power_of_two(power: i64) -> f64 {
    f64::from_bits((1023 + power).unsigned_abs() << 52)
}

/// Value of an exponent such as `p-12`, saturating. An empty text gives 0.
fn decimal_exponent(text: &[u8]) -> i64 {
    let magnitude = text.iter().filter(|byte| byte.is_ascii_digit()).fold(0i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    let magnitude = magnitude.min(1 << 40);
    if text.get(1) == Some(&b'-') { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_the_c_library_ends_them() {
        for (text, value, length) in [
            ("1", 1.0, 1),
            ("1.5.2", 1.5, 3),
            (".5x", 0.5, 2),
            ("5.", 5.0, 2),
            ("-5 sec", -5.0, 2),
            ("1e3", 1000.0, 3),
            ("1e", 1.0, 1),
            ("1e+", 1.0, 1),
            ("1e+2", 100.0, 4),
            ("0x10", 16.0, 4),
            ("0x", 0.0, 1),
            ("0xg", 0.0, 1),
            ("0x.8", 0.5, 4),
            ("0x1.8p1", 3.0, 7),
            ("0x1p", 1.0, 3),
            ("0x10000000000000000", 18446744073709551616.0, 19),
            ("0x20000000000001", 9007199254740992.0, 16),
            ("0x200000000000010000000000001", 4.056481920730335e+31, 29),
            ("-inf", f64::NEG_INFINITY, 4),
            ("INFINITYx", f64::INFINITY, 8),
            ("0e999999999999999999999", 0.0, 23),
        ] {
            assert_eq!(leading_number(text), Ok((value, length)), "{text}");
        }
        assert!(matches!(leading_number("-nan(x_1)y"), Ok((nan, 9)) if nan.is_nan()));
        assert!(matches!(leading_number("nan(x y)"), Ok((nan, 3)) if nan.is_nan()));
    }

    #[test]
    fn absent_and_unrepresentable_numbers_are_told_apart() {
        for text in ["", "-", ".", "-.", "+-1", "e5", "sec"] {
            assert_eq!(leading_number(text), Err(NumberError::Missing), "{text:?}");
        }
        for text in ["1e400", "-1e-400", "1e-310", "0x1p5000", "0x1p-99999999999999999999"] {
            assert_eq!(leading_number(text), Err(NumberError::Range(text.len())), "{text}");
        }
    }
}
