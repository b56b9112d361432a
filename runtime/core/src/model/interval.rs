//! Time intervals as text.
//!
//! Input: a text such as `1h 30m`. Output: a [`Duration`], or the place of the
//! fault. The words are not those of units: `ms` is minutes here, as in PCP's
//! tools.

use std::time::Duration;

use super::TextFault;
use super::c_number::{after_space, leading_number};

/// The words of each unit in lower case, and its length in nanoseconds.
const WORDS: &[(&[&str], f64)] = &[
    (&["nanosecond", "nsec"], 1.0),
    (&["microsecond", "usec"], 1e3),
    (&["millisecond", "msec"], 1e6),
    (&["second", "sec", "s"], 1e9),
    (&["minute", "min", "m"], 60e9),
    (&["hour", "hr", "h"], 3600e9),
    (&["day", "d"], 86400e9),
];

const NSEC_PER_SEC: f64 = 1e9;

/// Largest count of a unit. As a float it is just above the limit of `i64`.
const NUMBER_LIMIT: f64 = 9_223_372_036_854_775_807.0;

/// Reads an interval (`pmParseInterval(3)`, `pmParseHighResInterval(3)`):
/// numbers with units, which are added. A number without a unit counts seconds.
///
/// # Errors
/// The text is empty, a part of it is neither a number nor a unit, or the
/// interval is longer than the longest [`Duration`].
pub fn parse_interval(text: &str) -> Result<Duration, TextFault> {
    let error = |offset, problem| TextFault { text: text.to_owned(), offset, problem };
    if text.is_empty() {
        return Err(error(0, "Null or empty specification"));
    }
    let mut total = Duration::ZERO;
    let mut at = after_space(text, 0);
    while at < text.len() {
        let start = at;
        let (number, length) = match leading_number(&text[at..]) {
            // The C library reads the number NaN in `nanosecond`; the rest is
            // wrong then.
            Ok((number, length)) if number.is_nan() => (number, length),
            Ok((number, length)) if (0.0..=NUMBER_LIMIT).contains(&number) => (number, length),
            _ => return Err(error(start, "unexpected value")),
        };
        at = after_space(text, at + length);
        let letters = text[at..].bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match letters {
            0 => Some(NSEC_PER_SEC),
            _ => unit_of(&text[at..at + letters]),
        };
        let Some(unit) = unit else { return Err(error(at, "unexpected value")) };
        at = after_space(text, at + letters);
        let sum = duration(number, unit).and_then(|part| total.checked_add(part));
        total = sum.ok_or_else(|| error(start, "unexpected value"))?;
    }
    Ok(total)
}

/// The message about a unit `ms` outside of PCP's tools.
pub const AMBIGUOUS_UNIT: &str = "`ms` would be minutes here; write `msec` or `min`";

/// The place of a unit `ms` in an interval, in bytes. It is minutes to PCP's tools, and
/// milliseconds to almost everyone else.
pub fn ambiguous_unit(text: &str) -> Option<usize> {
    let mut at = 0;
    text.split(|c: char| !c.is_ascii_alphabetic()).find_map(|word| {
        let start = at;
        at += word.len() + text[start + word.len()..].chars().next().map_or(0, char::len_utf8);
        word.eq_ignore_ascii_case("ms").then_some(start)
    })
}

/// The duration of `number` units of `unit` nanoseconds, to the nearest
/// nanosecond. `None` if `number` is NaN.
fn duration(number: f64, unit: f64) -> Option<Duration> {
    let seconds = if unit < NSEC_PER_SEC {
        number / (NSEC_PER_SEC / unit)
    } else {
        number * (unit / NSEC_PER_SEC)
    };
    let whole = Duration::try_from_secs_f64(seconds.trunc()).ok()?;
    // The product is rounded, and the rounding may have produced the half.
    let product = seconds.fract() * NSEC_PER_SEC;
    let is_less = seconds.fract().mul_add(NSEC_PER_SEC, -product) < 0.0;
    let rounded = (product + 0.5).floor();
    let is_half = rounded - product == 0.5;
    // At most 10^9, so the conversion is exact; a whole second carries over.
    let nanoseconds = rounded as u64 - u64::from(is_half && is_less);
    whole.checked_add(Duration::from_nanos(nanoseconds))
}

fn unit_of(word: &str) -> Option<f64> {
    let word = word.to_ascii_lowercase();
    // A plural has more than one letter.
    let singular = word.strip_suffix('s').filter(|rest| !rest.is_empty()).unwrap_or(&word);
    let (_, unit) = WORDS.iter().find(|(words, _)| words.contains(&singular))?;
    Some(*unit)
}

#[cfg(test)]
mod tests {
    use crate::model::fuzz_interval;

    #[test]
    fn any_text_is_an_interval_or_has_a_fault_in_it() {
        let pieces = ["1", ".5", "e3", " ", "s", "min", "ms", "nan", "-", "\u{e9}", "0x", "99999"];
        let mut state: u64 = 1;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..state >> 61 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            fuzz_interval(text.as_bytes());
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        }
    }
}
