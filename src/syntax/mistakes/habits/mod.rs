//! Recognises notation of other languages: PromQL and Grafana, SQL, spreadsheets, C and Python,
//! shells, pmie and pmrep.
//!
//! Only refused texts come here. Tables hold the notation of other languages: [`clauses`] and
//! [`marks`] have clauses and operators, which [`forms`] finds; [`calls`] has functions, [`units`]
//! units of numbers. [`characters`] finds characters that begin no token of our language, with
//! [`braces`], [`numbers`] and [`patterns`]. [`quotes`] finds marks that do not match, [`matchers`]
//! reads the text between braces, and [`operands`] finds additions to metrics. [`binding`] adds the
//! parentheses that a replacement needs. Each habit is reported once, with what to write instead,
//! in the user's own names.

use crate::dialect::Language;
use crate::syntax::{lexer, pcp_error};

pub(super) mod binding;
mod braces;
pub(super) mod calls;
pub(super) mod characters;
mod clauses;
mod forms;
mod marks;
mod matchers;
mod numbers;
pub(super) mod operands;
mod patterns;
pub(super) mod quotes;
mod units;
pub(super) mod words;

pub(crate) use calls::function_elsewhere;
pub(super) use units::of_number;
pub(crate) use units::window;
pub(super) use units::window_in_quotes;

/// Expressions of more tokens are machine-made, and have no habits.
pub(super) const MAX_TOKENS: usize = 5_000;

/// Longest piece of the user's text that a suggestion repeats, in bytes.
const MAX_REPEATED: usize = 160;

/// A template with its places filled in: `$1` to `$9` and others. The text for a digit's
/// place is an operand, and gets parentheses where it needs them. `None` if the result is
/// too long to read, or spans several lines.
fn filled(template: &str, places: &[(char, &str)], language: Language) -> Option<String> {
    let mut out = String::new();
    let mut pieces = template.split('$');
    let mut before = pieces.next()?;
    out.push_str(before);
    for piece in pieces {
        let mut rest = piece.chars();
        let wanted = rest.next()?;
        let after = rest.as_str();
        let text = places.iter().find(|(place, _)| *place == wanted)?.1.trim();
        match wanted.is_ascii_digit() {
            true => {
                let left = binding::edge(before, true, language);
                let right = binding::edge(after, false, language);
                out.push_str(&binding::enclosed(text, left, right, language));
            }
            false => out.push_str(text),
        }
        out.push_str(after);
        before = after;
    }
    (out.len() <= MAX_REPEATED && !out.contains('\n')).then_some(out)
}

/// True if a template has this place.
fn uses(template: &str, place: char) -> bool {
    template.chars().zip(template.chars().skip(1)).any(|pair| pair == ('$', place))
}

/// The language version that understands a text.
#[derive(Clone, Copy, PartialEq)]
enum Understood {
    Plainly,
    WithExtensions,
    Never,
}

/// Decides whether a replacement is an expression, in the dialect of a language.
fn understood(text: &str, language: Language) -> Understood {
    let is_in =
        |language: Language| pcp_error::find(text, &lexer::lex(text, language), language).is_ok();
    let plain = Language { extensions: false, ..language };
    match (is_in(plain), is_in(Language { extensions: true, ..language })) {
        (true, _) => Understood::Plainly,
        (false, true) => Understood::WithExtensions,
        (false, false) => Understood::Never,
    }
}

/// True for PromQL's contents of braces, if they are not empty.
pub(in crate::syntax) fn has_matchers(inside: &str) -> bool {
    matchers::matchers(inside).is_some_and(|matchers| !matchers.is_empty())
}

/// True for an expression, in a language.
pub(in crate::syntax) fn is_understood(text: &str, language: Language) -> bool {
    match understood(text, language) {
        Understood::Plainly => true,
        Understood::WithExtensions => language.extensions,
        Understood::Never => false,
    }
}
