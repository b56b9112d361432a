//! What a command says on standard error: diagnostics and messages.
//!
//! A message is one line, whatever names are in it. Nothing here can fail:
//! when standard error is closed, nobody wants to know.

use std::collections::HashSet;
use std::fmt;

use crate::diag::render::{Style, render};
use crate::diag::{Diagnostic, Diagnostics, pcp};
use crate::escape;
use crate::source::SourceMap;

use super::args::DiagWords;
use super::progress::beside;
use super::terminal::{Escaping, Output, Purpose, shows_errors, write_error};

/// Standard error, and what was said there.
pub struct Messages {
    style: Style,
    words: DiagWords,
    /// What messages are for; programs look for those of libpcp.
    purpose: Purpose,
    /// Text of others stays as it is, here and on standard output.
    is_raw: bool,
    /// Diagnostics shown, so that none is shown twice when definitions are
    /// compiled again.
    shown: HashSet<Diagnostic>,
}

impl Messages {
    /// In colour if that is a terminal and `NO_COLOR` is not set.
    pub fn to_standard_error() -> Messages {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let style = match wanted && shows_errors() {
            true => Style::Colour,
            false => Style::Plain,
        };
        let words = DiagWords::default();
        Messages { style, words, purpose: Purpose::Text, is_raw: false, shown: HashSet::new() }
    }

    /// Leaves text of others as it is, here and on standard output.
    pub fn set_raw(&mut self, is_raw: bool) {
        self.is_raw = is_raw;
    }

    /// Says in a pipe byte for byte what the tools of PCP say.
    pub fn set_exact(&mut self) {
        self.purpose = Purpose::Exact;
    }

    /// Standard output, for text of a purpose.
    pub fn output(&self, purpose: Purpose) -> Output {
        Output::standard(purpose, self.is_raw)
    }

    /// Chooses the words of diagnostics.
    pub fn set_words(&mut self, words: DiagWords) {
        self.words = words;
    }

    /// Shows diagnostics, those shown before excepted: ours in the order of
    /// the text, libpcp's in the order in which it finds them.
    pub fn diagnostics(&mut self, mut diagnostics: Diagnostics, sources: &SourceMap) {
        if self.words == DiagWords::Full {
            diagnostics.sort();
        }
        for diagnostic in diagnostics {
            if self.shown.contains(&diagnostic) {
                continue;
            }
            match self.words {
                // What is rendered is escaped already, and has colours.
                DiagWords::Full => write(&render(&diagnostic, sources, self.style)),
                DiagWords::Pcp => {
                    let text = pcp::render(&diagnostic).unwrap_or_default();
                    self.write_lines(Purpose::Exact, &text);
                }
            }
            self.shown.insert(diagnostic);
        }
    }

    /// Says that something failed.
    pub fn error(&self, error: &dyn fmt::Display) {
        self.line(&format_args!("pmderive: {error}"));
    }

    /// Says something that is good to know.
    pub fn warning(&self, warning: &dyn fmt::Display) {
        self.line(&format_args!("pmderive: warning: {warning}"));
    }

    /// Says something on a line of its own.
    pub fn line(&self, line: &dyn fmt::Display) {
        let line = line.to_string();
        write(&format!("{}\n", self.escaping(self.purpose).text(&line)));
    }

    /// Says that something failed, on as many lines as it takes. Names in them
    /// are [joined](escape::joined), so that they do not end any.
    pub fn error_lines(&self, error: &dyn fmt::Display) {
        self.write_lines(self.purpose, &format!("pmderive: {error}\n"));
    }

    /// Says something on as many lines as it takes, as [`Messages::error_lines`].
    pub fn lines(&self, lines: &dyn fmt::Display) {
        self.write_lines(self.purpose, &format!("{lines}\n"));
    }

    fn write_lines(&self, purpose: Purpose, lines: &str) {
        match self.escaping(purpose) {
            Escaping::Off => write(lines),
            Escaping::On => write(&escape::lines(lines.as_bytes())),
        }
    }

    fn escaping(&self, purpose: Purpose) -> Escaping {
        Escaping::of(purpose, shows_errors(), self.is_raw)
    }
}

fn write(text: &str) {
    let _ = beside(|| write_error(text.as_bytes()));
}
