//! Reals and rates in a column, so that their decimal points come to stand
//! below each other as far as four significant digits go.
//!
//! Knows numbers, not where they come from.

use std::io::Write;

use pmderive_runtime::model::format_e;

/// How numbers that may have a fraction are laid out.
#[derive(Clone, Copy, Debug)]
pub struct NumberFormat {
    /// Characters of a column at least.
    pub width: usize,
    /// Digits after the decimal point; `None` for as many as the size of the
    /// number calls for.
    pub precision: Option<usize>,
}

impl NumberFormat {
    /// Appends a number.
    pub fn write(self, out: &mut Vec<u8>, number: f64) {
        let mut text = ShortText::new();
        let form = self.precision.map_or_else(|| Form::fitting(number), Form::digits);
        if (LONGEST_AFTER..=ROOM).contains(&self.width) && form.write_short(&mut text, number) {
            out.extend_from_slice(text.in_columns(self.width));
            return;
        }
        let start = out.len();
        let after = form.write(out, number);
        let length = out.len() - start;
        match self.width.checked_sub(after.len()) {
            Some(width) => {
                let padding = width.saturating_sub(length);
                out.resize(start + padding + length, b' ');
                out.copy_within(start..start + length, start + padding);
                out[start..start + padding].fill(b' ');
            }
            // Too few columns for what comes after the digits count as columns
            // for the digits, and those begin on the left.
            None => out.resize(start + length.max(after.len() - self.width), b' '),
        }
        out.extend_from_slice(after.as_bytes());
    }

    /// Appends a number that cannot be negative unless a counter fell, of
    /// which an exclamation mark tells.
    pub fn write_growth(self, out: &mut Vec<u8>, number: f64) {
        if number < 0.0 {
            let _ = write!(out, "{:>width$}", "!", width = self.width);
        } else {
            self.write(out, number);
        }
    }
}

/// What a number of some size looks like.
enum Form {
    /// This many digits after the point, and then this.
    Fixed(usize, &'static str),
    Scientific,
}

impl Form {
    /// As many digits as the size of the number calls for, and what comes
    /// after them where other numbers have digits.
    fn fitting(number: f64) -> Form {
        match number {
            0.0 => Form::Fixed(0, ".0   "),
            _ if !(0.1..=9999.0).contains(&number) && !number.is_nan() => Form::Scientific,
            _ if number <= 0.9999 => Form::Fixed(4, ""),
            _ if number <= 9.999 => Form::Fixed(3, " "),
            _ if number <= 99.99 => Form::Fixed(2, "  "),
            _ if number <= 999.9 => Form::Fixed(1, "   "),
            _ => Form::Fixed(0, ".    "),
        }
    }

    /// A number of digits after the point.
    fn digits(precision: usize) -> Form {
        Form::Fixed(precision, "")
    }

    /// Appends the digits of a number, and gives what comes after them.
    fn write(&self, out: &mut Vec<u8>, number: f64) -> &'static str {
        match *self {
            Form::Fixed(precision, after) => {
                fixed(out, number, precision);
                after
            }
            Form::Scientific => {
                scientific(out, number);
                ""
            }
        }
    }

    /// Writes a number with few digits, of which none is in doubt, and what
    /// comes after them; false if it is another. It says nothing that
    /// [`Form::write`] would not, but sooner.
    fn write_short(&self, text: &mut ShortText, number: f64) -> bool {
        match *self {
            Form::Fixed(precision, after) => {
                text.push_text(after);
                short_fixed(text, number, precision)
            }
            Form::Scientific => short_scientific(text, number),
        }
    }
}

/// Most bytes that come after the digits of a form.
const LONGEST_AFTER: usize = 5;

/// Appends `%.{precision}f` of C.
fn fixed(out: &mut Vec<u8>, number: f64, precision: usize) {
    if number.is_finite() {
        let _ = write!(out, "{number:.precision$}");
    } else {
        not_finite(out, number);
    }
}

/// Appends `%.3E` of C.
fn scientific(out: &mut Vec<u8>, number: f64) {
    let start = out.len();
    match number.is_finite() {
        true => out.extend_from_slice(format_e(number, 3).as_bytes()),
        false => not_finite(out, number),
    }
    out[start..].make_ascii_uppercase();
}

/// Bytes of a [`ShortText`].
const ROOM: usize = 64;

/// A text of a few characters that is written from its end to its beginning,
/// with blanks in front of it.
struct ShortText {
    bytes: [u8; ROOM],
    first: usize,
}

impl ShortText {
    fn new() -> ShortText {
        ShortText { bytes: [b' '; ROOM], first: ROOM }
    }

    /// Writes a text at the end, where nothing is yet.
    #[inline]
    fn push_text(&mut self, text: &str) {
        self.first = ROOM - text.len();
        self.bytes[self.first..].copy_from_slice(text.as_bytes());
    }

    #[inline]
    fn push_front(&mut self, byte: u8) {
        self.first -= 1;
        self.bytes[self.first] = byte;
    }

    /// Writes the last `count` digits of a number, and gives those before them.
    #[inline]
    fn push_digits(&mut self, mut number: u32, count: usize) -> u32 {
        for _ in 0..count {
            self.push_front(b'0' + (number % 10) as u8);
            number /= 10;
        }
        number
    }

    /// In at least `columns` columns, of which there are not more than fit.
    fn in_columns(&self, columns: usize) -> &[u8] {
        &self.bytes[self.first.min(ROOM - columns)..]
    }
}

/// Parts of a number that digits are wanted of, by their number.
const PARTS: [f64; 5] = [1.0, 10.0, 100.0, 1_000.0, 10_000.0];

fn short_fixed(text: &mut ShortText, number: f64, precision: usize) -> bool {
    let Some(parts) = PARTS.get(precision) else { return false };
    let count = match rounded(number * parts) {
        Some(count) if number.is_sign_positive() => count,
        _ => return false,
    };
    let mut whole = text.push_digits(count, precision);
    if precision > 0 {
        text.push_front(b'.');
    }
    loop {
        whole = text.push_digits(whole, 1);
        if whole == 0 {
            return true;
        }
    }
}

/// A dot stands behind the first of four digits.
fn short_scientific(text: &mut ShortText, number: f64) -> bool {
    if !(1e4..1e15).contains(&number) {
        return false;
    }
    let (mut exponent, mut unit) = (4u32, 10.0);
    while number >= unit * 10_000.0 {
        (exponent, unit) = (exponent + 1, unit * 10.0);
    }
    // The unit is exact. Beyond this the next exponent is near.
    let Some(count) = rounded(number / unit).filter(|count| *count < 9999) else { return false };
    let digit = |unit: u32| b'0' + (count / unit % 10) as u8;
    let (tens, ones) = (b'0' + (exponent / 10) as u8, b'0' + (exponent % 10) as u8);
    let all = [digit(1000), b'.', digit(100), digit(10), digit(1), b'E', b'+', tens, ones];
    text.first = ROOM - all.len();
    text.bytes[text.first..].copy_from_slice(&all);
    true
}

/// The nearest whole number, if it is below 10^9 and `count` far enough from
/// the middle between two for the result of an operation that may be wrong in
/// its 16th digit.
fn rounded(count: f64) -> Option<u32> {
    if !(0.0..1e9).contains(&count) {
        return None;
    }
    let whole = count as u32;
    let beyond = count - f64::from(whole) - 0.5;
    (beyond.abs() > 1e-6).then(|| whole + u32::from(beyond > 0.0))
}

/// C shows the sign of NaN too.
fn not_finite(out: &mut Vec<u8>, number: f64) {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(if number.is_nan() { b"nan" } else { b"inf" });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers with what pmval prints for them in a column of 13.
    const FITTING: &[(f64, &str)] = &[
        (0.0, "       0.0   "),
        (-0.0, "      -0.0   "),
        (1e-320, "   1.000E-320"),
        (1e-100, "   1.000E-100"),
        (0.05, "    5.000E-02"),
        (0.099999, "    1.000E-01"),
        (0.1, "       0.1000"),
        (0.9999, "       0.9999"),
        (0.99991, "       1.000 "),
        (9.999, "       9.999 "),
        (9.9991, "      10.00  "),
        (31.4159, "      31.42  "),
        (99.99, "      99.99  "),
        (99.991, "     100.0   "),
        (999.9, "     999.9   "),
        (999.94, "    1000.    "),
        (9998.9, "    9999.    "),
        (9999.0, "    9999.    "),
        (9999.1, "    9.999E+03"),
        (1e10, "    1.000E+10"),
        (-5.5, "   -5.500E+00"),
        (-5e4, "   -5.000E+04"),
        (f64::NAN, "     nan.    "),
        (f64::INFINITY, "          INF"),
        (f64::NEG_INFINITY, "         -INF"),
    ];

    #[test]
    fn numbers_have_the_digits_that_their_size_calls_for() {
        for (number, expected) in FITTING {
            let mut out = Vec::new();
            NumberFormat { width: 13, precision: None }.write(&mut out, *number);
            assert_eq!(out, expected.as_bytes(), "{number:e}");
        }
    }

    #[test]
    fn a_precision_holds_for_numbers_of_any_size() {
        for (precision, width, number, expected) in [
            (3, 12, 9999.1, "    9999.100"),
            (0, 4, 0.5, "   0"),
            (0, 1, 12345.6, "12346"),
            (2, 6, -1.005, " -1.00"),
            (2, 6, f64::NAN, "   nan"),
            (2, 6, f64::NEG_INFINITY, "  -inf"),
        ] {
            let mut out = Vec::new();
            NumberFormat { width, precision: Some(precision) }.write(&mut out, number);
            assert_eq!(out, expected.as_bytes(), "{number:e}");
        }
    }

    /// The short way says what the long one does, or nothing.
    #[test]
    fn short_numbers_are_those_of_the_library() {
        let mut shorter = 0;
        for step in 0..60_000u32 {
            for number in [f64::from(step) / 8.0, f64::from(step) * 0.000_05, f64::from(step) / 7.0]
            {
                for precision in 0..=5 {
                    let mut text = ShortText::new();
                    if short_fixed(&mut text, number, precision) {
                        let expected = format!("{number:.precision$}");
                        assert_eq!(text.in_columns(0), expected.as_bytes());
                        shorter += 1;
                    }
                }
            }
        }
        assert!(shorter > 500_000, "{shorter}");
        let mut scientific = 0;
        for step in 0..60_000u32 {
            let number = 1.000_37f64.powf(f64::from(step)) * 9_990.0;
            let mut text = ShortText::new();
            if short_scientific(&mut text, number) {
                let expected = format_e(number, 3).to_uppercase();
                assert_eq!(text.in_columns(0), expected.as_bytes(), "{number:e}");
                scientific += 1;
            }
        }
        assert!(scientific > 50_000, "{scientific}");
    }

    /// Whatever the width, it does not matter which way a number took.
    #[test]
    fn columns_are_as_wide_as_they_are_asked_to_be() {
        for width in 0..150 {
            for (number, digits, after) in [
                (7.5, "7.500", " "),
                (0.0, "0", ".0   "),
                (1e6, "1.000E+06", ""),
                (-2e6, "-2.000E+06", ""),
            ] {
                let mut out = b"before".to_vec();
                NumberFormat { width, precision: None }.write(&mut out, number);
                let columns = width.saturating_sub(after.len());
                let expected = match width < after.len() {
                    false => format!("before{digits:>columns$}{after}"),
                    true => {
                        format!("before{digits:<columns$}{after}", columns = after.len() - width)
                    }
                };
                assert_eq!(String::from_utf8(out).as_deref(), Ok(&*expected), "{number} {width}");
            }
        }
    }

    #[test]
    fn a_counter_that_fell_has_no_rate() {
        let format = NumberFormat { width: 5, precision: Some(1) };
        let mut out = Vec::new();
        format.write_growth(&mut out, -0.5);
        format.write_growth(&mut out, -0.0);
        format.write_growth(&mut out, 0.5);
        assert_eq!(out, b"    ! -0.0  0.5");
    }
}
