//! Reads the short notations of test files from left to right: names of groups, and timelines.

use std::ops::Range;

/// The mistake in a text of a test file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TextError {
    /// The bytes at fault.
    pub place: Range<usize>,
    /// The mistake.
    pub message: String,
}

impl TextError {
    pub(super) fn new(place: Range<usize>, message: impl Into<String>) -> TextError {
        TextError { place, message: message.into() }
    }
}

/// A place in a text that is being read. Each notation adds methods of its own.
pub(super) struct Cursor<'t> {
    pub text: &'t str,
    pub at: usize,
}

impl<'t> Cursor<'t> {
    /// The beginning of a text.
    pub fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips these characters if they come next. Returns whether it did.
    pub fn take(&mut self, characters: &str) -> bool {
        let found = self.rest().starts_with(characters);
        self.at += if found { characters.len() } else { 0 };
        found
    }

    pub fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|character| !accepts(character)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }
}
