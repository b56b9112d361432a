//! What a command says on standard error: diagnostics and messages.
//!
//! Nothing here can fail: when standard error is closed, nobody wants to know.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, IsTerminal, Write};

use crate::diag::render::{Style, render};
use crate::diag::{Diagnostic, Diagnostics, pcp};
use crate::source::SourceMap;

use super::args::DiagWords;
use super::progress::beside;

/// Standard error, and what was said there.
pub struct Messages {
    style: Style,
    words: DiagWords,
    /// Diagnostics shown, so that none is shown twice when definitions are
    /// compiled again.
    shown: HashSet<Diagnostic>,
}

impl Messages {
    /// In colour if that is a terminal and `NO_COLOR` is not set.
    pub fn to_standard_error() -> Messages {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let style = match wanted && io::stderr().is_terminal() {
            true => Style::Colour,
            false => Style::Plain,
        };
        Messages { style, words: DiagWords::default(), shown: HashSet::new() }
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
            let text = match self.words {
                DiagWords::Full => render(&diagnostic, sources, self.style),
                DiagWords::Pcp => pcp::render(&diagnostic).unwrap_or_default(),
            };
            write(format_args!("{text}"));
            self.shown.insert(diagnostic);
        }
    }

    /// Says that something failed.
    pub fn error(&self, error: &dyn fmt::Display) {
        write(format_args!("pmderive: {error}\n"));
    }

    /// Says something that is good to know.
    pub fn warning(&self, warning: &dyn fmt::Display) {
        write(format_args!("pmderive: warning: {warning}\n"));
    }

    /// Says something on a line of its own.
    pub fn line(&self, line: &dyn fmt::Display) {
        write(format_args!("{line}\n"));
    }
}

fn write(text: fmt::Arguments<'_>) {
    let _ = beside(|| io::stderr().lock().write_fmt(text));
}
