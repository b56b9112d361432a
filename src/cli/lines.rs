//! A message of several lines, in which foreign text never ends a line.
//!
//! It keeps two forms, as it does not know its destination. Programs behind a pipe match on
//! bytes, so they get foreign text unchanged. People get the escaped form, which the flag `#`
//! selects for [`Foreign`](crate::escape::Foreign) text and for errors that quote it.

use std::fmt::{Display, Write as _};

use crate::text::Escaping;

/// The text of the message, ends of lines included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    exact: String,
    shown: String,
}

impl Lines {
    /// Joins parts to a message.
    pub fn of(parts: &[&dyn Display]) -> Lines {
        let mut lines = Lines::default();
        lines.push(parts);
        lines
    }

    /// Appends parts.
    pub fn push(&mut self, parts: &[&dyn Display]) {
        for part in parts {
            // Writing to a string does not fail.
            let _ = write!(self.exact, "{part}");
            let _ = write!(self.shown, "{part:#}");
        }
    }

    /// The form for a destination. The escaped form keeps its own ends of lines and tabs. Other
    /// characters in it may still control a terminal.
    pub fn form(&self, escaping: Escaping) -> &str {
        match escaping {
            Escaping::Off => &self.exact,
            Escaping::On => &self.shown,
        }
    }
}

impl Display for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if f.alternate() { &self.shown } else { &self.exact })
    }
}

impl From<String> for Lines {
    fn from(text: String) -> Lines {
        Lines { shown: text.clone(), exact: text }
    }
}
