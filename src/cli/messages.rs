//! Messages of a command on standard error, diagnostics included.
//!
//! A message is one line, whatever names are in it. If standard error is closed, messages are
//! lost; that is no failure.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::diag::render::{Renderer, Style};
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, pcp};
use crate::dialect::Dialect;
use crate::engine::Engine;
use crate::escape;
use crate::syntax::counted;
use crate::text::SourceMap;
use crate::text::{Escaping, stray};

use super::appearance::{self, Colour};
use super::args::{CommonArguments, DiagWords, MAX_DIAGNOSTICS};
use super::lines::Lines;
use super::pcp::arguments::{Impersonated, usage};
use super::progress::beside;
use super::stop::Stop;
use super::terminal::{Output, Purpose, shows_errors, shows_output, write_error};

/// Standard error, with a memory of the messages already printed.
pub struct Messages {
    /// True with `--quiet`: only errors are printed.
    is_quiet: bool,
    /// True with `--verbose`: details are printed as well.
    is_verbose: bool,
    /// When messages have colours.
    colour: Colour,
    words: DiagWords,
    /// True if only diagnostics with words of libpcp are printed.
    is_libpcp: bool,
    /// True with `--raw`: foreign text stays as it is, here and on standard output.
    is_raw: bool,
    /// Number of diagnostics that may still be drawn.
    left: usize,
    /// Hashes of the diagnostics already printed. Definitions that are compiled again give the
    /// same ones.
    told: HashSet<u64>,
    /// Definitions whose mistakes were printed.
    mistaken: HashSet<Box<str>>,
    /// True once damage was reported that the reader passed over.
    has_told_damage: Cell<bool>,
    /// The tool of PCP whose messages are given. In a pipe they are its bytes, as programs
    /// match on them.
    tool: Option<Impersonated>,
}

impl Messages {
    /// Messages in the colours that the environment chooses.
    pub fn to_standard_error() -> Messages {
        Messages {
            is_quiet: false,
            is_verbose: false,
            colour: Colour::Auto,
            words: DiagWords::default(),
            is_libpcp: false,
            is_raw: false,
            left: MAX_DIAGNOSTICS,
            told: HashSet::new(),
            mistaken: HashSet::new(),
            has_told_damage: Cell::new(false),
            tool: None,
        }
    }

    /// Applies the options that all commands have.
    pub fn configure(&mut self, arguments: &CommonArguments) {
        self.is_quiet = arguments.quiet;
        self.is_verbose = arguments.verbose;
        self.colour = arguments.color;
        self.is_raw = arguments.is_raw;
        self.left = arguments.max_diagnostics;
    }

    /// Number of diagnostics that may still be drawn.
    #[cfg(feature = "lsp")]
    pub fn left(&self) -> usize {
        self.left
    }

    /// True if messages have colours.
    pub fn are_coloured(&self) -> bool {
        self.colour.is_used(shows_errors())
    }

    /// True if details are printed.
    pub fn are_verbose(&self) -> bool {
        self.is_verbose && !self.is_quiet
    }

    /// True if only errors are printed.
    pub fn are_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Standard output, for text with this purpose.
    pub fn output(&self, purpose: Purpose) -> Output {
        Output::standard(purpose, self.is_raw)
    }

    /// Output to a terminal that the user named as a file.
    pub fn terminal(&self, file: File, purpose: Purpose) -> Output {
        Output::terminal(file, purpose, self.is_raw)
    }

    /// True if standard output has colours.
    pub fn is_output_coloured(&self) -> bool {
        self.colour.is_used(shows_output())
    }

    /// Standard output for the program's own text, in which escape sequences stay.
    pub fn own_output(&self) -> Output {
        Output::standard(Purpose::Text, true)
    }

    /// Makes all further messages those of a tool of PCP.
    pub fn speak_as(&mut self, tool: Impersonated) {
        self.tool = Some(tool);
    }

    /// True if messages are those of a tool of PCP 6.
    pub fn are_of_version_6(&self) -> bool {
        self.tool.is_some_and(|tool| tool.dialect == Dialect::Pcp6_0)
    }

    /// True if messages are those of a tool of PCP, which explains nothing.
    pub fn are_of_tool(&self) -> bool {
        self.tool.is_some()
    }

    /// The name in front of messages.
    fn name(&self) -> &'static str {
        self.tool.map_or("pmderive", |tool| tool.tool.name)
    }

    /// The purpose of messages.
    fn purpose(&self) -> Purpose {
        if self.are_of_tool() { Purpose::Exact } else { Purpose::Text }
    }

    /// Reports a mistake in the arguments, with the usage of a tool of PCP.
    pub fn misuse(&self, problem: &dyn fmt::Display) -> Stop {
        self.error(problem);
        self.usage()
    }

    /// Prints the usage of a tool of PCP.
    pub fn usage(&self) -> Stop {
        if let Some(tool) = self.tool {
            self.text(&usage(tool.tool, tool.dialect).into());
        }
        Stop::Reported
    }

    /// Reports a failed fetch, as [`Messages::error_lines`]. Messages in pmval's place have
    /// pmval's form.
    pub fn failed_fetch(&self, failure: &[&dyn fmt::Display]) {
        let gap = if self.are_of_tool() { "\n" } else { "" };
        let mut lines = Lines::of(&[&gap, &self.name(), &": "]);
        lines.push(failure);
        self.lines(&[&lines]);
    }

    /// Prints text that has its line ends already.
    pub fn text(&self, text: &Lines) {
        let purpose = self.purpose();
        self.write_bytes(purpose, text.form(self.escaping(purpose)).as_bytes());
    }

    /// Chooses the words of diagnostics.
    pub fn set_words(&mut self, words: DiagWords) {
        self.words = words;
    }

    /// Prints only libpcp's words from now on.
    pub fn speak_as_libpcp(&mut self) {
        self.words = DiagWords::Pcp;
        self.is_libpcp = true;
    }

    /// Prints diagnostics that were not printed before. pmderive's own come in the order of the
    /// text: the worst are drawn, the rest are counted. Also counted are errors whose only
    /// cause is another definition, with mistakes printed before. libpcp's words come in the
    /// order in which libpcp finds mistakes. Then follow, in pmderive's words, the mistakes
    /// that libpcp has no words for.
    pub fn diagnostics(&mut self, mut diagnostics: Diagnostics, sources: &SourceMap) {
        diagnostics.change_each(Diagnostic::name_option);
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        diagnostics.retain(|one| self.told.insert(hasher.hash_one(one)));
        if self.words == DiagWords::Pcp {
            diagnostics.retain(|diagnostic| {
                let Some(text) = pcp::render(diagnostic) else { return true };
                self.write_bytes(Purpose::Exact, &stray::encoded(&text));
                false
            });
            if self.is_libpcp {
                return;
            }
        }
        let mut diagnostics = diagnostics.without_consequences();
        if self.is_quiet {
            diagnostics.retain(|one| one.severity == Severity::Error);
        }
        let wrong = diagnostics.iter().filter(|one| one.severity == Severity::Error);
        self.mistaken.extend(wrong.filter_map(|one| one.metric.clone()));
        let before = diagnostics.len();
        diagnostics.retain(|one| {
            one.code != Code::UnusableOperand || !self.mistaken.contains(sources.slice(one.span))
        });
        let following = before - diagnostics.len();
        let (all, errors) = (diagnostics.len(), diagnostics.errors());
        diagnostics.sort();
        diagnostics.keep_worst(self.left);
        self.left -= diagnostics.len();
        let style = if self.are_coloured() { Style::Colour } else { Style::Plain };
        let mut renderer = Renderer::default();
        for diagnostic in &diagnostics {
            // Rendered text is escaped already, and has colours.
            write(renderer.render(diagnostic, sources, style).as_bytes());
        }
        let errors = errors - diagnostics.errors();
        let counts = [(errors, "more error"), (all - diagnostics.len() - errors, "more warning")];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, noun)| counted(*count, noun)).collect();
        if !counts.is_empty() {
            let counts = counts.join(" and ");
            self.note(&format_args!("{counts}; `--max-diagnostics N` shows more of them"));
        }
        match following {
            0 => {}
            1 => self.note(&"1 more error follows, where a definition needs one of these"),
            _ => self.note(&format_args!(
                "{following} more errors follow, where definitions need one of these"
            )),
        }
    }

    /// Prints an error.
    pub fn error(&self, error: &dyn fmt::Display) {
        self.line(&format_args!("{}: {error}", self.name()));
    }

    /// Prints a warning, unless only errors are printed.
    pub fn warning(&self, warning: &dyn fmt::Display) {
        self.note(&format_args!("{}: warning: {warning}", self.name()));
    }

    /// Reports damage of a source that is still read. It sets the exit status, too.
    pub fn damage(&self, error: &dyn fmt::Display) {
        let name = self.name();
        self.line(&format_args!("{name}: warning: {error}; the rest is used"));
        self.has_told_damage.set(true);
    }

    /// True if [`Messages::damage`] was called.
    pub fn have_told_damage(&self) -> bool {
        self.has_told_damage.get()
    }

    /// Prints an engine's warnings once, such as why it ignores a file.
    pub fn warnings_of(&self, engine: &Engine) {
        if let Some(warning) = engine.take_warning() {
            self.warning(&warning);
        }
    }

    /// Prints a line, unless only errors are printed.
    pub fn note(&self, line: &dyn fmt::Display) {
        if !self.is_quiet {
            self.line(line);
        }
    }

    /// Prints a line.
    pub fn line(&self, line: &dyn fmt::Display) {
        let line = line.to_string();
        write(format!("{}\n", self.escaping(self.purpose()).text(&line)).as_bytes());
    }

    /// Prints an error of several lines. Names in it are [`Foreign`](escape::Foreign), so that
    /// they end no line.
    pub fn error_lines(&self, error: &[&dyn fmt::Display]) {
        let mut lines = Lines::of(&[&self.name(), &": "]);
        lines.push(error);
        self.lines(&[&lines]);
    }

    /// Prints a warning of several lines, like [`Messages::error_lines`].
    pub fn warning_lines(&self, warning: &[&dyn fmt::Display]) {
        if self.is_quiet {
            return;
        }
        let mut lines = Lines::of(&[&self.name(), &": warning: "]);
        lines.push(warning);
        self.lines(&[&lines]);
    }

    /// Prints several lines, like [`Messages::error_lines`].
    pub fn lines(&self, parts: &[&dyn fmt::Display]) {
        let mut lines = Lines::of(parts);
        lines.push(&[&"\n"]);
        self.text(&lines);
    }

    fn write_bytes(&self, purpose: Purpose, lines: &[u8]) {
        match self.escaping(purpose) {
            Escaping::Off => write(lines),
            Escaping::On => write(escape::lines(lines).as_bytes()),
        }
    }

    fn escaping(&self, purpose: Purpose) -> Escaping {
        purpose.escaping(shows_errors(), self.is_raw)
    }
}

fn write(text: &[u8]) {
    let text = appearance::on(shows_errors(), text);
    let _ = beside(|| write_error(&text));
}
