//! A message of several lines, in which text of others never ends a line.
//!
//! It has two forms until it is known where it goes. Programs behind a pipe look for
//! it byte for byte, so they get it unchanged. People get it as it is shown: the form
//! that [`Foreign`](crate::escape::Foreign) text, and errors that repeat such text,
//! give with the flag `#`.

use std::fmt::{Display, Write as _};

use crate::text::Escaping;

/// The text of the message, ends of lines included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    exact: String,
    shown: String,
}

impl Lines {
    /// One part after the other.
    pub fn of(parts: &[&dyn Display]) -> Lines {
        let mut lines = Lines::default();
        lines.push(parts);
        lines
    }

    /// Appends one part after the other.
    pub fn push(&mut self, parts: &[&dyn Display]) {
        for part in parts {
            // Writing to a string does not fail.
            let _ = write!(self.exact, "{part}");
            let _ = write!(self.shown, "{part:#}");
        }
    }

    /// The form for where it goes. What is escaped has ends of lines and tabs
    /// of its own, but may have other characters that a terminal obeys.
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
