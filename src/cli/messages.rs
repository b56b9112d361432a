//! What a command says on standard error: diagnostics and messages.
//!
//! Nothing here can fail: when standard error is closed, nobody wants to know.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, IsTerminal, Write};

use crate::diag::render::{Style, render};
use crate::diag::{Diagnostics, pcp};
use crate::source::SourceMap;

use super::args::DiagWords;
use super::progress::beside;

/// Standard error, and what was said there.
pub struct Messages {
    style: Style,
    words: DiagWords,
    /// How many more diagnostics may be drawn.
    left: usize,
    /// Hashes of diagnostics that were told, so that none is told twice when
    /// definitions are compiled again.
    told: HashSet<u64>,
}

/// Diagnostics that are drawn unless the arguments say otherwise.
pub const MAX_DIAGNOSTICS: usize = 100;

impl Messages {
    /// In colour if that is a terminal and `NO_COLOR` is not set.
    pub fn to_standard_error() -> Messages {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let style = match wanted && io::stderr().is_terminal() {
            true => Style::Colour,
            false => Style::Plain,
        };
        let words = DiagWords::default();
        Messages { style, words, left: MAX_DIAGNOSTICS, told: HashSet::new() }
    }

    /// Chooses how many diagnostics are drawn at most; the rest is counted.
    pub fn set_limit(&mut self, limit: usize) {
        self.left = limit;
    }

    /// Chooses the words of diagnostics.
    pub fn set_words(&mut self, words: DiagWords) {
        self.words = words;
    }

    /// Tells diagnostics, those told before excepted: ours in the order of the
    /// text, the worst of them drawn and the rest counted; libpcp's in the
    /// order in which it finds them.
    pub fn diagnostics(&mut self, mut diagnostics: Diagnostics, sources: &SourceMap) {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        diagnostics.retain(|one| self.told.insert(hasher.hash_one(one)));
        if self.words == DiagWords::Pcp {
            let said = diagnostics.iter().filter_map(pcp::render);
            return said.for_each(|text| write(format_args!("{text}")));
        }
        let (all, errors) = (diagnostics.len(), diagnostics.errors());
        diagnostics.sort();
        diagnostics.keep_worst(self.left);
        self.left -= diagnostics.len();
        for diagnostic in &diagnostics {
            let text = render(diagnostic, sources, self.style);
            write(format_args!("{text}"));
        }
        let errors = errors - diagnostics.errors();
        let counts = [(errors, "more error"), (all - diagnostics.len() - errors, "more warning")];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, noun)| counted(*count, noun)).collect();
        if !counts.is_empty() {
            let counts = counts.join(" and ");
            self.line(&format_args!("{counts}; `--max-diagnostics N` shows more of them"));
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

/// A number of things, as in `2 errors`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn write(text: fmt::Arguments<'_>) {
    let _ = beside(|| io::stderr().lock().write_fmt(text));
}
