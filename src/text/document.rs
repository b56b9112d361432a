//! Reads a TOML text as values with places, and reports mistakes as
//! diagnostics.
//!
//! The caller of an access expects a certain kind of value. Any other is reported at its place
//! and treated as absent, so one run finds all mistakes in a file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pmderive_runtime::model::{AMBIGUOUS_UNIT, ambiguous_unit, parse_interval};
use toml::de::{DeTable, DeValue};

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::{Dialect, Language};
use crate::syntax::ast::Spanned;
use crate::syntax::{choices, nearest};
use crate::text::{SourceId, Span};

/// A value of a document.
pub type Value<'t> = toml::Spanned<DeValue<'t>>;
/// A table of a document.
pub type Table<'t> = DeTable<'t>;

/// A key or value of a document, or a span.
pub trait Placed {
    /// Its place.
    fn place(self, document: &Document<'_>) -> Span;
}

impl Placed for Span {
    fn place(self, _: &Document<'_>) -> Span {
        self
    }
}

impl<T> Placed for &toml::Spanned<T> {
    fn place(self, document: &Document<'_>) -> Span {
        document.span(self.span())
    }
}

/// Range of times for a value.
pub struct Times {
    /// The shortest.
    pub shortest: Duration,
    /// The longest.
    pub longest: Duration,
    /// The range, in words.
    pub words: &'static str,
}

/// The text that is read, and the mistakes so far.
pub struct Document<'d> {
    code: Code,
    source: SourceId,
    text: &'d str,
    diagnostics: &'d mut Diagnostics,
}

impl<'d> Document<'d> {
    /// Parses a text of the source map, shorter than 4 GiB. Returns no table if
    /// the text is not TOML, which is reported. All mistakes get the same code.
    pub fn parse(
        code: Code,
        source: SourceId,
        text: &'d str,
        diagnostics: &'d mut Diagnostics,
    ) -> (Document<'d>, Option<Table<'d>>) {
        let mut document = Document { code, source, text, diagnostics };
        let table = match DeTable::parse(text) {
            Ok(table) => Some(table.into_inner()),
            Err(error) => {
                let place = error.span().unwrap_or(0..0);
                let span = document.span(place);
                document.error(span, format!("this is not TOML: {}", error.message().trim_end()));
                None
            }
        };
        (document, table)
    }

    /// The place of a range of the text's bytes.
    pub fn span(&self, range: Range<usize>) -> Span {
        Span::within(self.source, self.text, range)
    }

    /// Reports a mistake.
    pub fn error(&mut self, at: impl Placed, message: impl Into<String>) {
        self.report(Diagnostic::error(self.code, at.place(self), message));
    }

    /// Reports a mistake with advice.
    pub fn error_with_help(
        &mut self,
        at: impl Placed,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report(Diagnostic::error(self.code, at.place(self), message).help(help));
    }

    /// Warns, with advice.
    #[cfg(feature = "fleet")]
    pub fn warning_with_help(
        &mut self,
        at: impl Placed,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report(Diagnostic::warning(self.code, at.place(self), message).help(help));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports keys of a table that are not in `known`. Returns true if there are none.
    pub fn only(&mut self, table: &Table<'_>, known: &[&str]) -> bool {
        let mut are_known = true;
        for key in table.keys() {
            let name = &**key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let message = format!("there is no key `{name}` here");
            let help = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the keys are {}", choices(known.iter().copied())),
            };
            self.error_with_help(key, message, help);
            are_known = false;
        }
        are_known
    }

    /// A value that should be a table.
    pub fn table<'v, 't>(&mut self, value: &'v Value<'t>) -> Option<&'v Table<'t>> {
        let found = value.get_ref().as_table();
        self.expected(found, value, "a table")
    }

    /// The value of a key that should be a table, if it is there.
    pub fn section<'v, 't>(&mut self, of: &'v Table<'t>, key: &str) -> Option<&'v Table<'t>> {
        of.get(key).and_then(|value| self.table(value))
    }

    /// A value that should be a text, with its place.
    pub fn string<'v>(&mut self, value: &'v Value<'_>) -> Option<(&'v str, Span)> {
        let found = value.get_ref().as_str();
        let span = self.span(value.span());
        Some((self.expected(found, value, "a text")?, span))
    }

    /// A value that should be true or false.
    pub fn boolean(&mut self, value: &Value<'_>) -> Option<bool> {
        let found = value.get_ref().as_bool();
        self.expected(found, value, "`true` or `false`")
    }

    /// A value that should be a whole number, `least` or greater.
    pub fn count(&mut self, value: &Value<'_>, least: usize) -> Option<usize> {
        let integer = value.get_ref().as_integer();
        let found = integer.and_then(|i| usize::from_str_radix(i.as_str(), i.radix()).ok());
        match (found, integer) {
            (Some(number), _) if number >= least => Some(number),
            (None, None) => {
                self.expected(None, value, &format!("a whole number, {least} or greater"))
            }
            (None, Some(integer)) if !integer.as_str().starts_with('-') => {
                self.error(value, "this number is too large");
                None
            }
            _ => {
                self.error(value, format!("this number should be {least} or greater"));
                None
            }
        }
    }

    /// A value that should be a list.
    pub fn array<'v, 't>(&mut self, value: &'v Value<'t>) -> &'v [Value<'t>] {
        let found = value.get_ref().as_array();
        self.expected(found, value, "a list").map_or(&[], |array| array)
    }

    /// A value that should be one of these words. Returns the meaning of the word.
    pub fn word<T: Copy>(&mut self, value: &Value<'_>, words: &[(&str, T)]) -> Option<T> {
        let (text, span) = self.string(value)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words = words.iter().map(|(word, _)| *word);
            let message = format!("this should be {}", choices(words.clone()));
            match nearest(text, words) {
                Some(near) => {
                    self.error_with_help(span, message, format!("did you mean `{near}`?"))
                }
                None => self.error(span, message),
            }
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// The language in the keys `compat` and `extensions` of a table; `usual` for missing keys.
    pub fn language(&mut self, table: &Table<'_>, usual: Language) -> Language {
        let dialect = table.get("compat").and_then(|value| self.word(value, &Dialect::NAMED));
        let extensions = table.get("extensions").and_then(|value| self.boolean(value));
        Language {
            dialect: dialect.unwrap_or(usual.dialect),
            extensions: extensions.unwrap_or(usual.extensions),
        }
    }

    /// A value that should be a time: a number of seconds, or a text such as `1min`.
    pub fn time(&mut self, value: &Value<'_>, times: &Times) -> Option<Duration> {
        let text = number_of(value).or_else(|| value.get_ref().as_str());
        let text = self.expected(text, value, "a time")?;
        if ambiguous_unit(text).is_some() {
            self.error(value, AMBIGUOUS_UNIT);
            return None;
        }
        let time = parse_interval(text).ok();
        let time = time.filter(|time| (times.shortest..=times.longest).contains(time));
        if time.is_none() {
            let message = format!("this should be a time from {}", times.words);
            self.error_with_help(value, message, "such as \"10 sec\" or \"1 min\"");
        }
        time
    }

    /// A value that should be a path, relative to a directory.
    pub fn path(&mut self, value: &Value<'_>, directory: &Path) -> Option<Spanned<PathBuf>> {
        let (text, span) = self.string(value)?;
        if text.is_empty() {
            self.error(span, "a path is missing");
            return None;
        }
        Some(Spanned { value: directory.join(text), span })
    }

    /// A value that should be a list of paths, relative to a directory.
    pub fn paths(&mut self, value: &Value<'_>, directory: &Path) -> Vec<Spanned<PathBuf>> {
        self.array(value).iter().filter_map(|one| self.path(one, directory)).collect()
    }

    /// The tables of a list of tables.
    pub fn tables<'v, 't>(&mut self, of: &'v Table<'t>, key: &str) -> Vec<(&'v Table<'t>, Span)> {
        let array = of.get(key).map_or(&[][..], |value| self.array(value));
        let table = |value| Some((self.table(value)?, self.span(Value::span(value))));
        array.iter().filter_map(table).collect()
    }

    fn expected<T>(&mut self, found: Option<T>, value: &Value<'_>, what: &str) -> Option<T> {
        if found.is_none() {
            let kind = value.get_ref().type_str();
            self.error(value, format!("this should be {what}, but has type {kind}"));
        }
        found
    }

    /// Offset of the first byte of a text's content, if the content is in the
    /// document without escapes.
    pub fn content(&self, span: Span, content: &str) -> Option<u32> {
        let written = self.text.get(span.start as usize..span.end as usize)?;
        let (before, inside) = ["'''", "\"\"\"", "'", "\"", ""].into_iter().find_map(|quote| {
            let inside = written.strip_prefix(quote)?.strip_suffix(quote)?;
            Some((quote.len(), inside))
        })?;
        // A line end directly after the opening quotes is not part of the
        // content.
        let skipped = inside.strip_suffix(content)?;
        let is_line_end = before == 3 && matches!(skipped, "\n" | "\r\n");
        let skipped = (skipped.is_empty() || is_line_end).then_some(skipped.len())?;
        u32::try_from(span.start as usize + before + skipped).ok()
    }

    /// The place of a range in a text's content. If the content has escapes, it is the place of
    /// the whole text.
    pub fn within(&self, span: Span, content: &str, range: Range<usize>) -> Span {
        match self.content(span, content) {
            Some(first) => self.span(first as usize + range.start..first as usize + range.end),
            None => span,
        }
    }
}

/// The text of a number; `None` for any other value.
pub fn number_of<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value.get_ref() {
        DeValue::Integer(integer) => Some(integer.as_str()),
        DeValue::Float(float) => Some(float.as_str()),
        _ => None,
    }
}
