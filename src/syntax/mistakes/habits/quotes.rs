//! Quotation marks that do not match: of two kinds, with backslashes, doubled, or only
//! one. This module tries plain marks in their place.

use crate::dialect::Language;

use super::super::edit::Edit;
use super::is_understood;

/// Longest text to examine, in bytes.
const MAX_TEXT: usize = 400;

/// Forms of a plain quotation mark in other languages.
const FOREIGN: [&str; 3] = ["\\\"", "\\'", "''"];

/// The mistake in the marks of a text.
pub(in crate::syntax) struct Quotes {
    pub message: &'static str,
    /// The edit that corrects the marks.
    pub edit: Edit,
}

/// The corrected marks of a text, if plain ones make it understood.
pub(in crate::syntax) fn mended(text: &str, language: Language) -> Option<Quotes> {
    if text.len() > MAX_TEXT || !text.contains(is_mark) {
        return None;
    }
    FOREIGN
        .into_iter()
        .find_map(|mark| replaced(text, mark))
        .or_else(|| unequal(text))
        .or_else(|| single(text, language))
        .filter(|quotes| is_understood(&quotes.edit.applied(text), language))
}

fn is_mark(character: char) -> bool {
    matches!(character, '"' | '\'' | '\u{2018}'..='\u{201f}')
}

/// True for the contents of quotation marks, but not for the text between two
/// quoted texts.
fn is_inside(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || " /^_-.:()".contains(c);
    !text.trim().is_empty() && text.chars().all(is_part)
}

/// `\"Mbyte\"`
fn replaced(text: &str, mark: &str) -> Option<Quotes> {
    let (first, last) = (text.find(mark)?, text.rfind(mark)? + mark.len());
    let message = match mark.starts_with('\\') {
        true => "quotation marks have no backslash",
        false => "single quotes mean nothing here",
    };
    // Two single marks may also be an empty text.
    let are_around_texts = mark != "''" || text.split(mark).skip(1).step_by(2).all(is_inside);
    let edit = Edit::certain(first..last, text[first..last].replace(mark, "\""));
    are_around_texts.then_some(Quotes { message, edit })
}

/// `'Mbyte"`
fn unequal(text: &str) -> Option<Quotes> {
    let mut marks = text.char_indices().filter(|(_, character)| is_mark(*character));
    let (first, one) = marks.next()?;
    let (last, other) = marks.next()?;
    let is_pair = one != other && (one.is_ascii() || other.is_ascii()) && marks.next().is_none();
    let inside = &text[first + one.len_utf8()..last];
    is_pair.then(|| Quotes {
        message: "these quotation marks do not match",
        edit: Edit {
            at: first..last + other.len_utf8(),
            text: format!("\"{inside}\""),
            is_certain: is_inside(inside),
        },
    })
}

/// `Mbyte"`, unless that mark is superfluous.
fn single(text: &str, language: Language) -> Option<Quotes> {
    let end = text.find('"').filter(|end| text.rfind('"') == Some(*end))?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || " /^".contains(c);
    let word = text[..end].trim_end_matches(is_part).len();
    let start = end - text[word..end].trim_start().len();
    let without = Edit::certain(end..end + 1, "").applied(text);
    Some(Quotes {
        message: "this text has no beginning",
        edit: Edit {
            at: start..end + 1,
            text: format!("\"{}\"", &text[start..end]),
            is_certain: !is_understood(&without, language),
        },
    })
    .filter(|_| start < end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    /// A comparison may contain one text, two, or a superfluous mark.
    #[test]
    fn what_is_certain_beside_a_comparison() {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        for (text, expected) in [
            ("a == up\"", Some(("a == \"up\"", false))),
            ("a == 'up\"", Some(("a == \"up\"", true))),
            ("a == 'up || b == down\"", Some(("a == \"up || b == down\"", false))),
            ("a == \\\"up\\\" || b == \\\"x\\\"", Some(("a == \"up\" || b == \"x\"", true))),
            ("a == ''up''", Some(("a == \"up\"", true))),
            ("a == '' || b == ''", None),
            ("avg_over(a, 5 min\")", Some(("avg_over(a, \"5 min\")", true))),
        ] {
            let found = mended(text, language);
            let found = found.map(|one| (one.edit.applied(text), one.edit.is_certain));
            let found = found.as_ref().map(|(text, is_certain)| (&**text, *is_certain));
            assert_eq!(found, expected, "{text}");
        }
    }
}
