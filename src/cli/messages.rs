//! What a command says on standard error: diagnostics and messages.
//!
//! Nothing here can fail: when standard error is closed, nobody wants to know.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use crate::diag::render::{Style, render};
use crate::diag::{Diagnostic, Diagnostics};
use crate::source::SourceMap;

/// Standard error, and what was said there.
pub struct Messages {
    style: Style,
    /// Diagnostics shown, so that none is shown twice when definitions are
    /// compiled again.
    shown: Vec<Diagnostic>,
}

impl Messages {
    /// In colour if that is a terminal and `NO_COLOR` is not set.
    pub fn to_standard_error() -> Messages {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let style = match wanted && io::stderr().is_terminal() {
            true => Style::Colour,
            false => Style::Plain,
        };
        Messages { style, shown: Vec::new() }
    }

    /// Shows diagnostics in the order of the text, those shown before excepted.
    pub fn diagnostics(&mut self, mut diagnostics: Diagnostics, sources: &SourceMap) {
        diagnostics.sort();
        for diagnostic in diagnostics {
            if !self.shown.contains(&diagnostic) {
                write(format_args!("{}", render(&diagnostic, sources, self.style)));
                self.shown.push(diagnostic);
            }
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
    let _ = io::stderr().lock().write_fmt(text);
}
