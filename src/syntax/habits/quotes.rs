//! Quotation marks that do not match: of two kinds, with backslashes, doubled, or only
//! one. It tries plain ones in their place.

use std::ops::Range;

use crate::dialect::Language;

use super::is_understood;

/// Longest text that is looked at, in bytes.
const MAX_TEXT: usize = 400;

/// What stands for a plain quotation mark elsewhere.
const FOREIGN: [&str; 3] = ["\\\"", "\\'", "''"];

/// What is wrong with the marks of a text.
pub(in crate::syntax) struct Quotes {
    pub place: Range<usize>,
    pub message: &'static str,
    /// What to write in that place.
    pub text: String,
}

/// The marks of a text that is understood once they are plain ones.
pub(in crate::syntax) fn mended(text: &str, language: Language) -> Option<Quotes> {
    if text.len() > MAX_TEXT || !text.contains(is_mark) {
        return None;
    }
    FOREIGN
        .into_iter()
        .find_map(|mark| replaced(text, mark))
        .or_else(|| unequal(text))
        .or_else(|| single(text))
        .filter(|quotes| {
            let mut edited = text.to_owned();
            edited.replace_range(quotes.place.clone(), &quotes.text);
            is_understood(&edited, language)
        })
}

fn is_mark(character: char) -> bool {
    matches!(character, '"' | '\'' | '\u{2018}'..='\u{201f}')
}

/// `\"Mbyte\"`
fn replaced(text: &str, mark: &str) -> Option<Quotes> {
    let (first, last) = (text.find(mark)?, text.rfind(mark)? + mark.len());
    let message = match mark.starts_with('\\') {
        true => "quotation marks have no backslash",
        false => "single quotes mean nothing here",
    };
    let place = first..last;
    Some(Quotes { text: text[place.clone()].replace(mark, "\""), place, message })
}

/// `'Mbyte"`
fn unequal(text: &str) -> Option<Quotes> {
    let mut marks = text.char_indices().filter(|(_, character)| is_mark(*character));
    let (first, one) = marks.next()?;
    let (last, other) = marks.next()?;
    let is_pair = one != other && (one.is_ascii() || other.is_ascii()) && marks.next().is_none();
    let inside = &text[first + one.len_utf8()..last];
    is_pair.then(|| Quotes {
        place: first..last + other.len_utf8(),
        message: "these quotation marks do not match",
        text: format!("\"{inside}\""),
    })
}

/// `Mbyte"`
fn single(text: &str) -> Option<Quotes> {
    let end = text.find('"').filter(|end| text.rfind('"') == Some(*end))?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || " /^".contains(c);
    let word = text[..end].trim_end_matches(is_part).len();
    let start = end - text[word..end].trim_start().len();
    Some(Quotes {
        place: start..end,
        message: "this text has no beginning",
        text: format!("\"{}", &text[start..end]),
    })
    .filter(|_| start < end)
}
