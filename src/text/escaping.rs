//! Escapes text from others where a terminal may obey it (see [`escape`]).

use std::borrow::Cow;

use crate::escape;

/// The choice to escape foreign text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// The text stays unchanged.
    Off,
    /// The text is put on one line, without characters that a terminal would
    /// obey.
    On,
}

impl Escaping {
    /// Text from others, as part of a line.
    pub fn text(self, text: &str) -> Cow<'_, str> {
        match self {
            Escaping::Off => text.into(),
            Escaping::On => escape::line_of(text),
        }
    }

    /// Bytes from others, as part of a line.
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
