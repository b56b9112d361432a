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
        let start = out.len();
        let after = match self.precision {
            Some(precision) => {
                fixed(out, number, precision);
                ""
            }
            None => fitting(out, number),
        };
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

/// Appends as many digits as the size of the number calls for, and gives what
/// comes after them where other numbers have digits.
fn fitting(out: &mut Vec<u8>, number: f64) -> &'static str {
    let (precision, after) = match number {
        0.0 => (0, ".0   "),
        _ if !(0.1..=9999.0).contains(&number) && !number.is_nan() => {
            scientific(out, number);
            return "";
        }
        _ if number <= 0.9999 => (4, ""),
        _ if number <= 9.999 => (3, " "),
        _ if number <= 99.99 => (2, "  "),
        _ if number <= 999.9 => (1, "   "),
        _ => (0, ".    "),
    };
    fixed(out, number, precision);
    after
}

/// Appends `%.{precision}f` of C.
fn fixed(out: &mut Vec<u8>, number: f64, precision: usize) {
    if !number.is_finite() {
        not_finite(out, number);
    } else if !short(out, number, precision) {
        let _ = write!(out, "{number:.precision$}");
    }
}

/// Parts of a number that digits are wanted of, by their number.
const PARTS: [f64; 5] = [1.0, 10.0, 100.0, 1_000.0, 10_000.0];

/// Appends a number with few digits, of which none is in doubt; false if it is
/// another. It says nothing that [`fixed`] would not, but sooner.
fn short(out: &mut Vec<u8>, number: f64, precision: usize) -> bool {
    let Some(parts) = PARTS.get(precision) else { return false };
    let count = number * parts;
    // Far enough from the middle between two texts, for a product that may be
    // wrong in its 16th digit.
    let is_clear = (count - count.floor() - 0.5).abs() > 1e-6;
    if !is_clear || !(0.0..1e9).contains(&count) || number.is_sign_negative() {
        return false;
    }
    let mut rest = count.round() as u64;
    let mut digits = [b'0'; 16];
    let mut first = digits.len();
    let point = digits.len() - precision;
    while rest > 0 || first >= point {
        if first == point && precision > 0 {
            first -= 1;
            digits[first] = b'.';
        }
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[first..]);
    true
}

/// Appends a number in which a dot stands behind the first of four digits, and
/// none of these is in doubt; false if it is another. It says nothing that
/// [`scientific`] would not, but sooner.
fn short_scientific(out: &mut Vec<u8>, number: f64) -> bool {
    if !(1e4..1e15).contains(&number) {
        return false;
    }
    let (mut exponent, mut unit) = (4u8, 10.0);
    while number >= unit * 10_000.0 {
        (exponent, unit) = (exponent + 1, unit * 10.0);
    }
    // The unit is exact. As in `short`, the middle is far away; and so are the
    // next greater numbers with another exponent.
    let count = number / unit;
    let is_clear = (count - count.floor() - 0.5).abs() > 1e-6;
    if !is_clear || count > 9999.0 {
        return false;
    }
    let count = count.round() as u16;
    let digit = |unit: u16| b'0' + (count / unit % 10) as u8;
    let exponent = [b'0' + exponent / 10, b'0' + exponent % 10];
    out.extend_from_slice(&[digit(1000), b'.', digit(100), digit(10), digit(1), b'E', b'+']);
    out.extend_from_slice(&exponent);
    true
}

/// Appends `%.3E` of C.
fn scientific(out: &mut Vec<u8>, number: f64) {
    if short_scientific(out, number) {
        return;
    }
    let start = out.len();
    match number.is_finite() {
        true => out.extend_from_slice(format_e(number, 3).as_bytes()),
        false => not_finite(out, number),
    }
    out[start..].make_ascii_uppercase();
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
                    let mut out = Vec::new();
                    if short(&mut out, number, precision) {
                        assert_eq!(out, format!("{number:.precision$}").as_bytes());
                        shorter += 1;
                    }
                }
            }
        }
        assert!(shorter > 500_000, "{shorter}");
        let mut scientific = 0;
        for step in 0..60_000u32 {
            let number = 1.000_37f64.powf(f64::from(step)) * 9_990.0;
            let mut out = Vec::new();
            if short_scientific(&mut out, number) {
                let text = format_e(number, 3).to_uppercase();
                assert_eq!(out, text.as_bytes(), "{number:e}");
                scientific += 1;
            }
        }
        assert!(scientific > 50_000, "{scientific}");
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
