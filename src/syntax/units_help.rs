//! Finds what was probably meant by units that are not understood.
//!
//! It takes the text, and the place where `pmParseUnitsStr(3)` stops. It gives
//! advice and, if there is no doubt, an edit. The model knows the units.

use std::ops::Range;

use pmderive_runtime::model::{UnitsError, UnitsErrorKind};

use crate::dialect::Dialect;

use super::keywords;
use super::suggest::nearest;

/// Words as PCP prints them, which are those to suggest.
const WORDS: [&str; 15] = [
    "nanosec", "microsec", "millisec", "sec", "min", "hour", "byte", "Kbyte", "Mbyte", "Gbyte",
    "Tbyte", "Pbyte", "Ebyte", "count", "counts",
];

/// What units are called elsewhere, in small letters.
const SYNONYMS: [(&str, &str); 30] = [
    ("nsec", "nanosec"),
    ("nsecs", "nanosec"),
    ("usec", "microsec"),
    ("usecs", "microsec"),
    ("\u{b5}s", "microsec"),
    ("\u{b5}sec", "microsec"),
    ("msec", "millisec"),
    ("msecs", "millisec"),
    ("millisecs", "millisec"),
    ("microsecs", "microsec"),
    ("nanosecs", "nanosec"),
    ("secs", "sec"),
    ("mins", "min"),
    ("hrs", "hour"),
    ("hours", "hour"),
    ("b", "byte"),
    ("k", "Kbyte"),
    ("m", "Mbyte"),
    ("g", "Gbyte"),
    ("octet", "byte"),
    ("octets", "byte"),
    ("op", "count"),
    ("ops", "count"),
    ("event", "count"),
    ("events", "count"),
    ("packet", "count"),
    ("packets", "count"),
    ("page", "count"),
    ("pages", "count"),
    ("request", "count"),
];

/// Rates in bits, in small letters, with that of as many bytes.
const BITS: [(&str, &str); 8] = [
    ("bps", "byte / sec"),
    ("kbps", "Kbyte / sec"),
    ("kbit/s", "Kbyte / sec"),
    ("mbps", "Mbyte / sec"),
    ("mbit/s", "Mbyte / sec"),
    ("gbps", "Gbyte / sec"),
    ("bit", "byte"),
    ("bits", "byte"),
];

/// Words that say that there are no units.
const NOTHING: [&str; 5] = ["none", "null", "unitless", "dimensionless", "ratio"];

/// Advice about a text that is no units.
pub struct Advice {
    /// What to do.
    pub help: String,
    /// Bytes of the text to replace, and by what.
    pub fix: Option<(Range<usize>, String)>,
}

/// What to do about units that are not understood.
pub fn advise(text: &str, error: &UnitsError, dialect: Dialect) -> Advice {
    let range = error.range.clone();
    let word = text.get(range.clone()).unwrap_or_default();
    let only = |help: &str| Advice { help: help.to_owned(), fix: None };
    match error.kind {
        UnitsErrorKind::BaseUnit => {}
        UnitsErrorKind::Number => return only("a number in units has no effect; leave it out"),
        UnitsErrorKind::MultipleExtra | UnitsErrorKind::ExtraOnBothSides => {
            return only("units have one of temperature, voltage, current and power at most");
        }
        _ => return only("exponents are numbers from -8 to 7"),
    }
    let lower = word.to_lowercase();
    if lower == "%" || lower == "percent" {
        let help = "a percentage is a plain number, without units".to_owned();
        let fix = (text.trim() == word).then(|| (range, String::new()));
        return Advice { help, fix };
    }
    if let Some((_, rate)) = BITS.iter().find(|(other, _)| *other == lower) {
        let help = format!("there are no bits in PCP; `{rate}` is eight times that");
        return Advice { help, fix: None };
    }
    if NOTHING.contains(&&*lower) && text.trim() == word {
        let help = "no units are the empty text: `\"\"`".to_owned();
        return Advice { help, fix: Some((range, String::new())) };
    }
    if text.matches('/').count() > 1 && word.contains('/') {
        let fixed: Vec<&str> = word.split('/').filter(|part| !part.is_empty()).collect();
        let help = "there is one `/`; all behind it belongs to the divisor".to_owned();
        return Advice { help, fix: Some((range, fixed.join(" "))) };
    }
    // A known word is wrong because its side has one of its kind already.
    if keywords::units(word, dialect).is_ok() {
        return only(
            "each of space, time and count stands once on each side of the `/`; \
             write powers with `^`, as in `sec^2`",
        );
    }
    if let Some((before, exponent)) = word.split_once('^')
        && keywords::units(before, dialect).is_ok()
    {
        let help = format!("`{exponent}` is no exponent; exponents are numbers from -8 to 7");
        return Advice { help, fix: None };
    }
    if lower == "per" && !text.contains('/') {
        let help = "the divisor stands behind a `/`".to_owned();
        return Advice { help, fix: Some((range, "/".to_owned())) };
    }
    if let Some(split) = glued(word, dialect) {
        let help = format!("with blanks between its words: `{split}`");
        return Advice { help, fix: Some((range, split)) };
    }
    let meant = SYNONYMS.iter().find(|(other, _)| *other == lower).map(|(_, word)| *word);
    match meant.or_else(|| nearest(word, WORDS)) {
        Some(meant) => Advice {
            help: format!("did you mean `{meant}`?"),
            fix: Some((range, meant.to_owned())),
        },
        None if dialect.is_version_7() => only(
            "units are words such as byte, Kbyte, sec, millisec, count or `voltage (mV)`, with \
             `^` for powers and one `/` before the divisor: \"Kbyte / sec\"",
        ),
        None => only(
            "units are words such as byte, Kbyte, sec, millisec and count, with `^` for powers \
             and one `/` before the divisor: \"Kbyte / sec\"",
        ),
    }
}

/// Words that are joined by nothing, `*`, `.` or `-`, as PCP wants them.
fn glued(word: &str, dialect: Dialect) -> Option<String> {
    let is_known = |part: &str| part.len() > 1 && keywords::units(part, dialect).is_ok();
    let parts: Vec<&str> = word.split(['*', '.', '-', '_']).collect();
    if parts.len() > 1 && parts.iter().all(|part| is_known(part)) {
        return Some(parts.join(" "));
    }
    let ends = word.char_indices().map(|(end, _)| end);
    ends.filter_map(|end| {
        let (first, second) = word.split_at(end);
        (is_known(first) && is_known(second) && second.len() > 2)
            .then(|| format!("{first} {second}"))
    })
    .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advised(text: &str, dialect: Dialect) -> (String, Option<String>) {
        let error = keywords::units(text, dialect).expect_err(text);
        let advice = advise(text, &error, dialect);
        let fixed = advice.fix.map(|(range, with)| {
            let mut fixed = text.to_owned();
            fixed.replace_range(range, &with);
            fixed
        });
        (advice.help, fixed)
    }

    #[test]
    fn what_was_meant_is_understood() {
        for (text, fixed) in [
            ("msec", "millisec"),
            ("Usec", "microsec"),
            ("none", ""),
            ("Kbytesec", "Kbyte sec"),
            ("byte*sec", "byte sec"),
            ("byte / sec/count", "byte / sec count"),
            ("packets / sec", "count / sec"),
            ("kbyts", "Kbyte"),
            ("mllisec / count", "millisec / count"),
        ] {
            let (_, advised) = advised(text, Dialect::Fixed);
            assert_eq!(advised.as_deref(), Some(fixed), "{text}");
            assert!(keywords::units(fixed, Dialect::Fixed).is_ok(), "{fixed}");
        }
        assert_eq!(advised("Mbyte per sec", Dialect::Fixed).1.as_deref(), Some("Mbyte / sec"));
    }

    #[test]
    fn where_there_is_doubt_no_edit_is_offered() {
        for text in ["sec min", "furlong", "byte^99", "byte^3 sec^x", "voltage (V) power (W)"] {
            assert_eq!(advised(text, Dialect::Fixed).1, None, "{text}");
        }
        assert!(advised("sec min", Dialect::Fixed).0.contains("sec^2"));
        assert!(!advised("furlong", Dialect::Pcp6_0).0.contains("voltage"));
    }
}
