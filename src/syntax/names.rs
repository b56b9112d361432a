//! Names of metrics, as libpcp and pmcd accept them.
//!
//! A name has components of letters, digits and `_`, with points between them.
//! Each component begins with a letter. The same rule holds for definition
//! files and for programs.

use std::ops::Range;

/// A mistake in a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMistake {
    /// The wrong bytes of the name. Empty for a name without any.
    pub at: Range<usize>,
    /// The rule that they break.
    pub rule: &'static str,
}

/// The first mistake in a metric's name, if there is one.
pub fn name_mistake(name: &str) -> Option<NameMistake> {
    let mistake = |at, rule| Some(NameMistake { at, rule });
    if name.is_empty() {
        return mistake(0..0, "a name has at least one letter");
    }
    let mut component_begins = true;
    for (position, character) in name.char_indices() {
        let rule = match character {
            '.' if component_begins => Some("a letter must stand before this point"),
            '.' => None,
            'a'..='z' | 'A'..='Z' => None,
            '0'..='9' | '_' if !component_begins => None,
            '0'..='9' | '_' => Some("each component of a name begins with a letter"),
            other if is_space(other) => Some("a name has no blanks"),
            _ => Some("names consist of letters, digits, `_` and `.`"),
        };
        component_begins = character == '.';
        if let Some(rule) = rule {
            return mistake(position..position + character.len_utf8(), rule);
        }
    }
    match component_begins {
        true => mistake(name.len() - 1..name.len(), "a name does not end with a point"),
        false => None,
    }
}

/// `isspace(3)` in the C locale.
pub fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// True for a text that the lexer reads as one name.
pub(super) fn is_metric_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(is_of_name)
}

/// True for a character of such a name.
pub fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::name_mistake;

    #[test]
    fn names_and_what_is_wrong_with_others() {
        for (name, expected) in [
            ("a", None),
            ("a.b_1.C2", None),
            ("", Some(0..0)),
            (".a", Some(0..1)),
            ("a..b", Some(2..3)),
            ("a.", Some(1..2)),
            ("a.1", Some(2..3)),
            ("_a", Some(0..1)),
            ("a b", Some(1..2)),
            ("a\u{e9}", Some(1..3)),
            ("a(b)", Some(1..2)),
        ] {
            assert_eq!(name_mistake(name).map(|mistake| mistake.at), expected, "{name}");
        }
    }
}
