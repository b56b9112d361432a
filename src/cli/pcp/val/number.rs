//! Reals and rates in a column. Their decimal points are aligned as far as four significant
//! digits allow.

use std::io::Write;

use pmderive_runtime::model::format_e;

/// Layout of numbers that may have a fraction.
#[derive(Clone, Copy, Debug)]
pub struct NumberFormat {
    /// Least width of a column, in characters.
    pub width: usize,
    /// Digits after the decimal point; `None` if the size of the number decides.
    pub precision: Option<usize>,
}

impl NumberFormat {
    /// Appends a number.
    pub fn write(self, out: &mut Vec<u8>, number: f64) {
        let form = self.precision.map_or_else(|| Form::fitting(number), Form::digits);
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
            // The text behind the digits needs more columns than there are. As in C, this is a
            // negative width for the digits: they begin on the left.
            None => out.resize(start + length.max(after.len() - self.width), b' '),
        }
        out.extend_from_slice(after.as_bytes());
    }

    /// Appends a rate. Only a counter that fell makes it negative; then an exclamation mark is
    /// printed.
    pub fn write_growth(self, out: &mut Vec<u8>, number: f64) {
        if number < 0.0 {
            let _ = write!(out, "{:>width$}", "!", width = self.width);
        } else {
            self.write(out, number);
        }
    }

    /// Does the same as [`NumberFormat::write`], but faster, and into blanks of the same width.
    /// Returns false if it cannot; the blanks are then spoilt.
    #[inline]
    pub fn write_short(self, blanks: &mut [u8], number: f64) -> bool {
        match self.precision {
            None => short_fitting(blanks, number),
            Some(precision) => short_fixed(blanks, number, precision),
        }
    }
}

/// Form of a number of some size.
enum Form {
    /// This many digits after the point, and then this text.
    Fixed(usize, &'static str),
    Scientific,
}

impl Form {
    /// The form with as many digits as the size of the number needs. Blanks fill the place of
    /// digits that other numbers have.
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

    /// The form with this many digits after the point.
    fn digits(precision: usize) -> Form {
        Form::Fixed(precision, "")
    }

    /// Appends the digits of a number. Returns the text behind them.
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
}

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

/// Powers of ten, all of them exact.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Writes a number in the form that fits its size. It has four digits, with the point always in
/// the same column, or one digit before the point and an exponent.
#[inline]
fn short_fitting(blanks: &mut [u8], number: f64) -> bool {
    let width = blanks.len();
    if !(0.1..=9999.0).contains(&number) {
        let is_zero = number.to_bits() == 0;
        return match is_zero {
            true => put(blanks, width.wrapping_sub(6), b"0.0   "),
            false => short_scientific(blanks, number),
        };
    }
    let limits = [0.9999, 9.999, 99.99, 999.9];
    let whole: usize = limits.iter().map(|limit| usize::from(number > *limit)).sum();
    match rounded(number * POWERS[4 - whole]) {
        Some(count @ 1000..=9999) => {
            let is_put = put(blanks, width.wrapping_sub(5 + whole), &four_digits(count, whole));
            is_put && (whole > 0 || put(blanks, width.wrapping_sub(6), b"0"))
        }
        _ => false,
    }
}

fn short_scientific(blanks: &mut [u8], number: f64) -> bool {
    let (count, sign, exponent) = if (9999.0..1e15).contains(&number) {
        let exponent = (number as u64).ilog10() as usize;
        (number / POWERS[exponent - 3], b'+', exponent)
    } else if (1e-18..0.1).contains(&number) {
        // Between some powers of two it is one too small, which makes too few digits.
        let halvings = 1022 - (number.to_bits() >> 52);
        let exponent = 1 + ((halvings * 1233) >> 12) as usize;
        let count = number * POWERS[exponent + 3];
        match count < 1000.0 {
            true => (count * 10.0, b'-', exponent + 1),
            false => (count, b'-', exponent),
        }
    } else {
        return false;
    };
    // Beyond this the next exponent is near.
    let Some(count @ 1000..9999) = rounded(count) else { return false };
    let [tens, ones] = PAIRS[exponent];
    let width = blanks.len();
    put(blanks, width.wrapping_sub(4), &[b'E', sign, tens, ones])
        && put(blanks, width.wrapping_sub(9), &four_digits(count, 1))
}

/// Writes text at an offset. Returns false if there is no room.
#[inline]
fn put<const N: usize>(blanks: &mut [u8], offset: usize, text: &[u8; N]) -> bool {
    match blanks.get_mut(offset..).and_then(<[u8]>::first_chunk_mut::<N>) {
        Some(place) => {
            *place = *text;
            true
        }
        None => false,
    }
}

/// The decimal numbers of two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// A number below 10,000 in four digits, with a point behind the first `whole` of them.
#[inline]
fn four_digits(number: u32, whole: usize) -> [u8; 5] {
    let pair = |number: u32| u64::from(u16::from_le_bytes(PAIRS[number as usize]));
    // The first character is the lowest byte.
    let digits = pair(number / 100) | pair(number % 100) << 16;
    let point = 8 * whole;
    let before = digits & ((1 << point) - 1);
    let text = before | u64::from(b'.') << point | (digits ^ before) << 8;
    let [a, b, c, d, e, ..] = text.to_le_bytes();
    [a, b, c, d, e]
}

/// Most digits after the point for which [`rounded`] is certain.
const MOST_DIGITS: usize = 4;

/// Writes a number of at least zero with some digits after the point.
fn short_fixed(blanks: &mut [u8], number: f64, precision: usize) -> bool {
    if precision > MOST_DIGITS || number.is_sign_negative() {
        return false;
    }
    let Some(count) = rounded(number * POWERS[precision]) else { return false };
    let (mut left, mut at) = (count, 0);
    for place in blanks.iter_mut().rev() {
        let is_point = precision > 0 && at == precision;
        *place = if is_point { b'.' } else { b'0' + (left % 10) as u8 };
        left /= if is_point { 1 } else { 10 };
        at += 1;
        if left == 0 && at > precision + usize::from(precision > 0) {
            return true;
        }
    }
    false
}

/// The nearest whole number, if it is below 10^9. `None` if `count` is too near the middle
/// between two, as its 16th digit may be wrong.
#[inline]
fn rounded(count: f64) -> Option<u32> {
    // Numbers of this size are whole; their last bits are those of the sum.
    const WHOLE: f64 = (1u64 << 52) as f64;
    let sum = count + WHOLE;
    let is_clear = (count - (sum - WHOLE)).abs() < 0.5 - 1e-6;
    ((0.0..1e9).contains(&count) && is_clear).then_some(sum.to_bits() as u32)
}

/// Appends infinity or NaN. C prints the sign of NaN, too.
fn not_finite(out: &mut Vec<u8>, number: f64) {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(if number.is_nan() { b"nan" } else { b"inf" });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers with pmval's output for them in a column of 13.
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

    /// The short way writes the same as the long one, or nothing.
    #[test]
    fn short_numbers_are_those_of_the_library() {
        let eighths = (0..60_000u32).map(|step| f64::from(step) / 8.0);
        let fine = (0..60_000u32).map(|step| f64::from(step) * 0.000_05);
        let sevenths = (0..60_000u32).map(|step| f64::from(step) / 7.0);
        let powers = (0..60_000u32).map(|step| 1.001_1f64.powf(f64::from(step)) * 1e-19);
        let fitting = FITTING.iter().map(|(number, _)| *number);
        let numbers: Vec<f64> =
            fitting.chain(eighths).chain(fine).chain(sevenths).chain(powers).collect();
        for precision in [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)] {
            let format = NumberFormat { width: 13, precision };
            let mut shorter = 0;
            for number in &numbers {
                let mut blanks = [b' '; 13];
                if format.write_short(&mut blanks, *number) {
                    let mut expected = Vec::new();
                    format.write(&mut expected, *number);
                    let (blanks, expected) = (blanks.escape_ascii(), expected.escape_ascii());
                    assert_eq!(blanks.to_string(), expected.to_string(), "{number:e}");
                    shorter += 1;
                }
            }
            let least = if precision == Some(5) { 0 } else { 150_000 };
            assert!(shorter >= least, "{precision:?}: {shorter}");
        }
    }

    /// In any width. The short way is used only if there is room.
    #[test]
    fn columns_are_as_wide_as_they_are_asked_to_be() {
        for width in 0..150 {
            for (number, digits, after) in [
                (7.5, "7.500", " "),
                (0.25, "0.2500", ""),
                (0.0, "0", ".0   "),
                (1e6, "1.000E+06", ""),
                (-2e6, "-2.000E+06", ""),
            ] {
                let format = NumberFormat { width, precision: None };
                let mut out = b"before".to_vec();
                format.write(&mut out, number);
                let columns = width.saturating_sub(after.len());
                let expected = match width < after.len() {
                    false => format!("before{digits:>columns$}{after}"),
                    true => {
                        format!("before{digits:<columns$}{after}", columns = after.len() - width)
                    }
                };
                assert_eq!(String::from_utf8(out).as_deref(), Ok(&*expected), "{number} {width}");
                let mut blanks = vec![b' '; width];
                let is_short = format.write_short(&mut blanks, number);
                let has_room = width >= digits.len() + after.len();
                assert_eq!(is_short, has_room && number >= 0.0, "{number} {width}");
                assert!(!is_short || expected.as_bytes()[6..] == blanks);
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
