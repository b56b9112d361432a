//! Finds the probable meaning of units that are not understood.
//!
//! The input is the text, and the place where `pmParseUnitsStr(3)` stops. The
//! output is advice and, if there is no doubt, an edit. The model knows the
//! units.

use std::ops::Range;

use pmderive_runtime::model::{UnitsError, UnitsErrorKind};

use crate::dialect::Dialect;
use crate::syntax::keywords;

use super::edit::Edit;
use super::suggest::nearest;

/// PCP's own words for units, as suggestions.
const WORDS: [&str; 15] = [
    "nanosec", "microsec", "millisec", "sec", "min", "hour", "byte", "Kbyte", "Mbyte", "Gbyte",
    "Tbyte", "Pbyte", "Ebyte", "count", "counts",
];

/// Words for units in other languages, in small letters.
const SYNONYMS: [(&str, &str); 8] = [
    ("nsec|nsecs|nanosecs", "nanosec"),
    ("usec|usecs|microsecs|\u{b5}s|\u{b5}sec", "microsec"),
    ("msec|msecs|millisecs", "millisec"),
    ("secs", "sec"),
    ("mins", "min"),
    ("hrs|hours", "hour"),
    ("octet|octets", "byte"),
    ("op|ops|event|events|packet|packets|request", "count"),
];

/// Possible meanings of words that mean something else elsewhere, in small
/// letters.
const AMBIGUOUS: [(&str, &str); 5] =
    [("b", "byte"), ("k", "Kbyte"), ("m", "Mbyte"), ("g", "Gbyte"), ("page|pages", "count")];

/// Longest word that may be two units without a blank, in bytes.
const MAX_GLUED: usize = 32;

/// Words for the absence of units.
const NOTHING: [&str; 5] = ["none", "null", "unitless", "dimensionless", "ratio"];

const DIVISOR: &str = "the divisor stands behind a `/`";

/// Advice about a text that is not units.
pub struct Advice {
    /// The advice in words.
    pub help: String,
    /// The replacement.
    pub edit: Option<Edit>,
}

/// The advice about units that are not understood.
pub fn advise(text: &str, error: &UnitsError, dialect: Dialect) -> Advice {
    let range = error.range.clone();
    let word = text.get(range.clone()).unwrap_or_default();
    let only = |help: &str| Advice { help: help.to_owned(), edit: None };
    let with = |help: &str, edit| Advice { help: help.to_owned(), edit: Some(edit) };
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
        let edit = (text.trim() == word).then(|| Edit::guess(range, ""));
        return Advice { help, edit };
    }
    if word == "m" {
        return with("minutes are `min`, bytes `Mbyte`", Edit::guess(range, "min"));
    }
    if let Some(bytes) = of_bits(word) {
        let is_divisor = [" per ", "/"].iter().any(|mark| text[..range.start].contains(mark));
        let whole = Edit::guess(range, bytes.clone()).applied(text).replace(" per ", " / ");
        let whole = keywords::units(&whole, dialect).ok().filter(|_| !is_divisor);
        let bytes = whole.map_or(bytes, |units| units.to_string());
        return only(&format!("there are no bits in PCP; `{bytes}` is eight times that"));
    }
    if let Some(size) = word.strip_suffix("Bps").and_then(of_size)
        && text.trim() == word
    {
        let edit = Edit::certain(range, format!("{size} / sec"));
        return with(DIVISOR, edit);
    }
    if let Some(size) = word.strip_suffix("BPS").and_then(of_size)
        && text.trim() == word
    {
        let bytes = format!("{size} / sec");
        let help =
            format!("bytes per second are `{bytes}`; PCP has no bits, of which a byte has eight");
        return with(&help, Edit::guess(range, bytes));
    }
    if let Some((size, end)) = apart(text, &range) {
        let edit = Edit::certain(range.start..end, size);
        return with("there is no blank within the name of a unit", edit);
    }
    if NOTHING.contains(&&*lower) && text.trim() == word {
        return with("no units are the empty text: `\"\"`", Edit::certain(range, ""));
    }
    if text.matches('/').count() > 1 && word.contains('/') {
        let edit = Edit::certain(range, joined(word.split('/')));
        let help = "there is one `/`; all behind it belongs to the divisor";
        // rescale() does not multiply by a number in its units.
        return match word.split('/').any(|part| part.parse::<f64>().is_ok()) {
            true => only(help),
            false => with(help, edit),
        };
    }
    // A known word is wrong because its side already has one of its kind.
    if keywords::units(word, dialect).is_ok() {
        return only(
            "each of space, time and count stands once on each side of the `/`; \
             write powers with `^`, as in `sec^2`",
        );
    }
    if let Some((before, exponent)) = word.split_once('^')
        && keywords::units(before, dialect).is_ok()
    {
        return only(&format!("`{exponent}` is no exponent; exponents are numbers from -8 to 7"));
    }
    if lower == "per" && !text.contains('/') {
        return with(DIVISOR, Edit::certain(range, "/"));
    }
    if let Some(split) = glued(word, dialect) {
        let help = format!("with blanks between its words: `{split}`");
        // Without a mark between them, the second may also be a divisor.
        return with(&help, Edit { at: range, text: split, is_certain: word.contains('*') });
    }
    let certain = keywords::meant(&lower, &SYNONYMS);
    match certain.or_else(|| keywords::meant(&lower, &AMBIGUOUS)).or_else(|| nearest(word, WORDS)) {
        Some(meant) => with(
            &format!("did you mean `{meant}`?"),
            Edit { at: range, text: meant.to_owned(), is_certain: certain.is_some() },
        ),
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

/// The unit of bytes with this prefix, as in `Mi` or `k`. An empty prefix gives
/// bytes.
fn of_size(letter: &str) -> Option<String> {
    // Prefixes such as that of `KiB`.
    let before_i = letter.strip_suffix('i').filter(|before| !before.is_empty());
    let letter = before_i.unwrap_or(letter).to_ascii_uppercase();
    matches!(&*letter, "" | "K" | "M" | "G" | "T").then(|| format!("{letter}byte"))
}

/// The unit of bytes for a word about bits, as in `Mbit`, `kbits` or `Gbps`.
fn of_bits(word: &str) -> Option<String> {
    if let Some(letter) = word.strip_suffix("bps") {
        return of_size(letter).map(|size| format!("{size} / sec"));
    }
    let lower = word.to_ascii_lowercase();
    of_size(lower.strip_suffix('s').unwrap_or(&lower).strip_suffix("bit")?)
}

/// The unit of a letter and the word behind it, as in `M byte`, and the end of that
/// word.
fn apart(text: &str, letter: &Range<usize>) -> Option<(String, usize)> {
    let rest = text.get(letter.end..)?;
    let word = rest.split_whitespace().next().filter(|word| matches!(*word, "byte" | "bytes"))?;
    let size = text.get(letter.clone()).filter(|letter| letter.len() == 1).and_then(of_size)?;
    Some((size, letter.end + rest.find(word)? + word.len()))
}

/// Words with blanks between them. A repeated word becomes a power.
fn joined<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut all: Vec<(&str, u32)> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        match all.iter_mut().find(|(other, _)| *other == word) {
            Some((_, times)) => *times += 1,
            None => all.push((word, 1)),
        }
    }
    let written = all.into_iter().map(|(word, times)| match times {
        1 => word.to_owned(),
        _ => format!("{word}^{times}"),
    });
    written.collect::<Vec<String>>().join(" ")
}

/// Words joined by nothing, `*`, `.` or `-`, in PCP's form.
fn glued(word: &str, dialect: Dialect) -> Option<String> {
    let is_known = |part: &str| part.len() > 1 && keywords::units(part, dialect).is_ok();
    let parts: Vec<&str> = word.split(['*', '.', '-', '_']).collect();
    if parts.len() > 1 && parts.iter().all(|part| is_known(part)) {
        return Some(joined(parts.into_iter()));
    }
    if word.len() > MAX_GLUED {
        return None;
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
        (advice.help, advice.edit.map(|edit| edit.applied(text)))
    }

    #[test]
    fn what_was_meant_is_understood() {
        for (text, fixed) in [
            ("msec", "millisec"),
            ("Usec", "microsec"),
            ("none", ""),
            ("Kbytesec", "Kbyte sec"),
            ("byte*sec", "byte sec"),
            ("byte*byte", "byte^2"),
            ("byte / sec/sec", "byte / sec^2"),
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
    fn only_what_means_one_thing_is_certain() {
        for (text, is_certain) in [
            ("msec", true),
            ("octets / sec", true),
            ("MBps", true),
            ("MBPS", false),
            ("BPS", false),
            ("M byte", true),
            ("m", false),
            ("k", false),
            ("pages", false),
            ("sect", false),
            ("counter", false),
            ("NaN", false),
            ("%", false),
            ("Kbytesec", false),
        ] {
            let error = keywords::units(text, Dialect::Fixed).expect_err(text);
            let edit = advise(text, &error, Dialect::Fixed).edit.expect(text);
            assert_eq!(edit.is_certain, is_certain, "{text}");
        }
    }

    #[test]
    fn bits_are_no_bytes() {
        for (text, bytes) in [
            ("Mbit/s", "Mbyte / sec"),
            ("kbits / sec", "Kbyte / sec"),
            ("Gbit per hour", "Gbyte / hour"),
            ("Kibit", "Kbyte"),
            ("Mbps", "Mbyte / sec"),
            ("bps", "byte / sec"),
            ("gbit", "Gbyte"),
            ("sec / Mbit", "Mbyte"),
        ] {
            let (help, edit) = advised(text, Dialect::Fixed);
            let expected = format!("`{bytes}` is eight times that");
            assert!(help.ends_with(&expected) && edit.is_none(), "{text}: {help}");
        }
        for text in ["MBps", "MBPS"] {
            assert_eq!(advised(text, Dialect::Fixed).1.as_deref(), Some("Mbyte / sec"));
        }
    }

    /// A long word is not tried at each letter.
    #[test]
    fn long_words_take_no_time() {
        let long = "x".repeat(200_000);
        assert_eq!(advised(&long, Dialect::Fixed).1, None);
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
