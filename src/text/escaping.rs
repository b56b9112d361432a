//! What becomes of text of others where a terminal may obey it (see [`escape`]).

use std::borrow::Cow;

use crate::escape;

/// Whether text of others is escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// It stays as it is.
    Off,
    /// It comes out on one line, without anything that a terminal would obey.
    On,
}

impl Escaping {
    /// Text of others, for a line of one's own.
    pub fn text(self, text: &str) -> Cow<'_, str> {
        match self {
            Escaping::Off => text.into(),
            Escaping::On => escape::line(text.as_bytes()),
        }
    }

    /// Bytes of others, for a line of one's own.
    pub fn bytes(self, text: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Escaping::Off => text.into(),
            Escaping::On => match escape::line(text) {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
        }
    }
}
