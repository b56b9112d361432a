//! What a command says on standard error: diagnostics and messages.
//!
//! A message is one line, whatever names are in it. Nothing here fails: if standard
//! error is closed, there is nobody to tell.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::diag::render::{Renderer, Style};
use crate::diag::{Code, Diagnostics, Severity, pcp};
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

/// Standard error, and what was said there.
pub struct Messages {
    /// Only errors are printed.
    is_quiet: bool,
    /// Details are printed as well.
    is_verbose: bool,
    /// When there are colours.
    colour: Colour,
    words: DiagWords,
    /// Nothing is told of what libpcp has no words for.
    is_libpcp: bool,
    /// Text of others stays as it is, here and on standard output.
    is_raw: bool,
    /// How many more diagnostics may be drawn.
    left: usize,
    /// Hashes of diagnostics that were told, so that none is told twice when
    /// definitions are compiled again.
    told: HashSet<u64>,
    /// Definitions of whose mistakes was told.
    mistaken: HashSet<Box<str>>,
    /// Damage was told that reading goes on behind.
    has_told_damage: Cell<bool>,
    /// The tool whose messages are given, in a pipe byte for byte, as programs
    /// look for them.
    tool: Option<Impersonated>,
}

impl Messages {
    /// In the colours that the environment asks for.
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

    /// Does what the options say that all commands have.
    pub fn configure(&mut self, arguments: &CommonArguments) {
        self.is_quiet = arguments.quiet;
        self.is_verbose = arguments.verbose;
        self.colour = arguments.color;
        self.is_raw = arguments.is_raw;
        self.left = arguments.max_diagnostics;
    }

    /// How many diagnostics may still be shown.
    #[cfg(feature = "lsp")]
    pub fn left(&self) -> usize {
        self.left
    }

    /// True if messages have colours.
    pub fn are_coloured(&self) -> bool {
        self.colour.is_used(shows_errors())
    }

    /// True if details are to be printed.
    pub fn are_verbose(&self) -> bool {
        self.is_verbose && !self.is_quiet
    }

    /// True if only errors are to be printed.
    pub fn are_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Standard output, for text of a purpose.
    pub fn output(&self, purpose: Purpose) -> Output {
        Output::standard(purpose, self.is_raw)
    }

    /// A terminal that was named as a file.
    pub fn terminal(&self, file: File, purpose: Purpose) -> Output {
        Output::terminal(file, purpose, self.is_raw)
    }

    /// True if standard output has colours.
    pub fn is_output_coloured(&self) -> bool {
        self.colour.is_used(shows_output())
    }

    /// Standard output for text of our own, in which escape sequences stay.
    pub fn own_output(&self) -> Output {
        Output::standard(Purpose::Text, true)
    }

    /// From now on messages are those of a tool of PCP.
    pub fn speak_as(&mut self, tool: Impersonated) {
        self.tool = Some(tool);
    }

    /// True if messages are those of a tool of PCP, which explains nothing.
    pub fn are_of_tool(&self) -> bool {
        self.tool.is_some()
    }

    /// Who speaks.
    fn name(&self) -> &'static str {
        self.tool.map_or("pmderive", |tool| tool.tool.name)
    }

    /// What messages are for.
    fn purpose(&self) -> Purpose {
        if self.are_of_tool() { Purpose::Exact } else { Purpose::Text }
    }

    /// Says what is wrong with the arguments, and how a tool of PCP wants them.
    pub fn misuse(&self, problem: &dyn fmt::Display) -> Stop {
        self.error(problem);
        self.usage()
    }

    /// Says how a tool of PCP wants its arguments.
    pub fn usage(&self) -> Stop {
        if let Some(tool) = self.tool {
            self.text(&usage(tool.tool, tool.dialect).into());
        }
        Stop::Said
    }

    /// Says that a fetch failed, as [`Messages::error_lines`]: as pmval(1) does,
    /// where messages are its own.
    pub fn failed_fetch(&self, failure: &[&dyn fmt::Display]) {
        let gap = if self.are_of_tool() { "\n" } else { "" };
        let mut lines = Lines::of(&[&gap, &self.name(), &": "]);
        lines.push(failure);
        self.lines(&[&lines]);
    }

    /// Says something that has its line ends already.
    pub fn text(&self, text: &Lines) {
        let purpose = self.purpose();
        self.write_bytes(purpose, text.form(self.escaping(purpose)).as_bytes());
    }

    /// Chooses the words of diagnostics.
    pub fn set_words(&mut self, words: DiagWords) {
        self.words = words;
    }

    /// From now on only libpcp's words are told.
    pub fn speak_as_libpcp(&mut self) {
        self.words = DiagWords::Pcp;
        self.is_libpcp = true;
    }

    /// Tells diagnostics that were not told before: ours in the order of the
    /// text, the worst of them drawn and the rest counted, as are those which only say that
    /// another definition has mistakes that were told; libpcp's in the
    /// order in which it finds them, and then in our words those for which it
    /// has none.
    pub fn diagnostics(&mut self, mut diagnostics: Diagnostics, sources: &SourceMap) {
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
            // What is rendered is escaped already, and has colours.
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

    /// Says that something failed.
    pub fn error(&self, error: &dyn fmt::Display) {
        self.line(&format_args!("{}: {error}", self.name()));
    }

    /// Says something that is good to know, unless only errors are wanted.
    pub fn warning(&self, warning: &dyn fmt::Display) {
        self.note(&format_args!("{}: warning: {warning}", self.name()));
    }

    /// Says what is wrong with a source that is still read. The exit status
    /// will tell it, too.
    pub fn damage(&self, error: &dyn fmt::Display) {
        let name = self.name();
        self.line(&format_args!("{name}: warning: {error}; the others are used"));
        self.has_told_damage.set(true);
    }

    /// True if [`Messages::damage`] was told.
    pub fn have_told_damage(&self) -> bool {
        self.has_told_damage.get()
    }

    /// Says what an engine has to say, such as why it ignores a file; it says so once.
    pub fn warnings_of(&self, engine: &Engine) {
        if let Some(warning) = engine.take_warning() {
            self.warning(&warning);
        }
    }

    /// Says something on a line of its own, unless only errors are wanted.
    pub fn note(&self, line: &dyn fmt::Display) {
        if !self.is_quiet {
            self.line(line);
        }
    }

    /// Says something on a line of its own.
    pub fn line(&self, line: &dyn fmt::Display) {
        let line = line.to_string();
        write(format!("{}\n", self.escaping(self.purpose()).text(&line)).as_bytes());
    }

    /// Says that something failed, on as many lines as it takes: names in them
    /// are [`Foreign`](escape::Foreign), so that they do not end any.
    pub fn error_lines(&self, error: &[&dyn fmt::Display]) {
        let mut lines = Lines::of(&[&self.name(), &": "]);
        lines.push(error);
        self.lines(&[&lines]);
    }

    /// As [`Messages::error_lines`], of something that is good to know.
    pub fn warning_lines(&self, warning: &[&dyn fmt::Display]) {
        if self.is_quiet {
            return;
        }
        let mut lines = Lines::of(&[&self.name(), &": warning: "]);
        lines.push(warning);
        self.lines(&[&lines]);
    }

    /// Says something on as many lines as it takes, as [`Messages::error_lines`].
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
