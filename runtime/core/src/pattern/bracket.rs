//! Bracket expressions of patterns, such as `[^[:digit:]a-f]`.

use super::error::PatternError;

/// One character or class within brackets.
enum Element {
    Character(char),
    /// `[=a=]`. It stands for its character but cannot end a range.
    Equivalence(char),
    /// `[:NAME:]`.
    Class(&'static str),
}

/// The inside of a bracket expression. A backslash is an ordinary character
/// there.
pub(super) struct Bracket<'t> {
    text: &'t str,
    position: usize,
}

/// Classes of characters that have the same name in both syntaxes.
const CLASSES: [&str; 12] = [
    "alpha", "digit", "alnum", "upper", "lower", "space", "blank", "punct", "print", "graph",
    "cntrl", "xdigit",
];

impl<'t> Bracket<'t> {
    /// Starts after the opening bracket.
    pub(super) fn new(text: &'t str) -> Bracket<'t> {
        Bracket { text, position: 0 }
    }

    /// Length of the expression without its opening bracket, and its
    /// translation.
    pub(super) fn translate(mut self) -> Result<(usize, String), PatternError> {
        let mut out = String::from("[");
        if self.text.is_empty() {
            return Err(PatternError::Invalid);
        }
        if self.eat("^") {
            out.push('^');
            if self.rest().is_empty() {
                return Err(PatternError::Invalid);
            }
        }
        let mut first = true;
        while first || !self.eat("]") {
            // A hyphen stands for itself only as the first or last element or as the end of a range.
            if !first && self.rest().starts_with('-') && !self.rest().starts_with("-]") {
                return Err(PatternError::BadRange);
            }
            first = false;
            let low = self.element()?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            match (low, is_range) {
                (Element::Class(name), false) => out.push_str(&format!("[:{name}:]")),
                (Element::Class(_) | Element::Equivalence(_), true) => {
                    return Err(PatternError::BadRange);
                }
                (Element::Character(c) | Element::Equivalence(c), false) => {
                    push_class_member(&mut out, c);
                }
                (Element::Character(low), true) => {
                    self.position += 1;
                    if self.rest().is_empty() {
                        return Err(PatternError::UnmatchedBracket);
                    }
                    match self.element()? {
                        Element::Character(high) if low <= high => {
                            push_class_member(&mut out, low);
                            out.push('-');
                            push_class_member(&mut out, high);
                        }
                        _ => return Err(PatternError::BadRange),
                    }
                }
            }
        }
        out.push(']');
        Ok((self.position, out))
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.position += prefix.len();
        }
        found
    }

    fn element(&mut self) -> Result<Element, PatternError> {
        for (open, close) in [("[:", ":]"), ("[=", "=]"), ("[.", ".]")] {
            if !self.rest().starts_with(open) {
                continue;
            }
            let inside = &self.rest()[2..];
            let Some(length) = inside.find(close) else {
                return Err(PatternError::UnmatchedBracket);
            };
            let name = &inside[..length];
            self.position += length + 4;
            if open == "[:" {
                let class = CLASSES.iter().find(|class| **class == name);
                return class.map(|class| Element::Class(class)).ok_or(PatternError::BadClass);
            }
            let mut characters = name.chars();
            return match (characters.next(), characters.next()) {
                (Some(character), None) if open == "[=" => Ok(Element::Equivalence(character)),
                (Some(character), None) => Ok(Element::Character(character)),
                _ => Err(PatternError::BadCollation),
            };
        }
        let character = self.rest().chars().next().ok_or(PatternError::UnmatchedBracket)?;
        self.position += character.len_utf8();
        Ok(Element::Character(character))
    }
}

fn push_class_member(out: &mut String, character: char) {
    if character.is_ascii() && !character.is_ascii_alphanumeric() {
        out.push_str(&format!("\\x{:02X}", u32::from(character)));
    } else {
        out.push(character);
    }
}
