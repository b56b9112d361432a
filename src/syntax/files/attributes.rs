//! Help texts of definition files: `name(oneline) = text` and `name(helptext) =
//! "text"`.
//!
//! This is the part of a [`DefinitionReader`] that reads a line with
//! parentheses before its `=`, and the further lines of a quoted text. A text
//! belongs to a metric defined before it and counts once.

use std::ops::Range;

use crate::diag::pcp::FileLine;
use crate::diag::{Code, Diagnostic};
use crate::dialect::Dialect;
use crate::syntax::ast::Spanned;
use crate::syntax::mistakes::suggest::{choices, nearest, nearest_after};
use crate::syntax::names::is_space;
use crate::syntax::origin::{Origin, span};
use crate::text::{Span, offset, stray};

use super::config::{DefinitionItem, DefinitionReader, FileBeingRead, HelpText, TextKind, trimmed};
use super::config_names::check_name;
use super::line_form::LineForm;
use super::lines::Line;

/// The text of an attribute.
struct AttributeText {
    text: Box<str>,
    is_quoted: bool,
    /// True if a text follows the closing quote.
    has_rest: bool,
}

/// The form of a help text.
const FORM: &str = "a help text is written `name(oneline) = text` or `name(helptext) = text`";

/// Advice to keep all words of a help text.
const QUOTED: &str = "write `\\\"` for a quote within quotes; a text without quotes takes all to the end of its line";

/// An error at a range of a line.
fn error(line: &Line<'_>, range: &Range<usize>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadAttribute, span(&line.origin, range), message)
}

impl DefinitionReader {
    /// `name(attribute) = text`
    pub(super) fn attribute(
        &mut self,
        line: &Line<'_>,
        assign: usize,
        open: Option<usize>,
        close: Option<usize>,
        mut reading: FileBeingRead<'_, '_>,
    ) -> LineForm {
        let text = &*line.text;
        let mut pcp = reading.said_of(line);
        let told = reading.diagnostics.len();
        // libpcp looks at the name and the attribute before it looks for a text.
        let is_fixed = self.language.dialect == Dialect::Fixed;
        let value = is_fixed.then(|| self.value(line, assign, &mut pcp, &mut reading));
        let refused = match &value {
            Some(Err(form)) => form.clone(),
            Some(Ok(_)) | None => LineForm::Mistake,
        };
        let (open, close) = match (open, close) {
            (Some(open), Some(close)) if open < close => (open, close),
            _ => {
                if let Some(Ok(_)) = value {
                    reading.diagnostics.truncate(told);
                }
                reading.diagnostics.push(unpaired(line, assign, [open, close], &pcp));
                return refused;
            }
        };
        let range = trimmed(text, 0..open);
        let name = &text[range.clone()];
        if let Some(diagnostic) = check_name(name, &range, open, &line.origin, &pcp) {
            if let Some(Ok(_)) = value {
                reading.diagnostics.truncate(told);
            }
            reading.diagnostics.push(diagnostic);
            return refused;
        }
        let between = trimmed(text, close + 1..assign);
        if !between.is_empty() {
            // libpcp skips it without a message.
            let place = span(&line.origin, &between);
            let message = "what stands between `)` and `=` is ignored";
            let ignored = Diagnostic::warning(Code::BadAttribute, place, message).help(FORM);
            reading.diagnostics.push(ignored.guess(place, ""));
        }
        let is_defined = self.defined.contains_key(name)
            || reading.earlier.is_some_and(|earlier| earlier.defines(name));
        let attribute = trimmed(text, open + 1..close);
        if attribute.is_empty() {
            let message = "there is no attribute between the parentheses";
            let said = pcp.error_with_line(format_args!("attribute name missing"));
            let missing = error(line, &(open..close + 1), message).help(FORM).pcp(said);
            reading.diagnostics.push(missing);
            return refused;
        }
        let value = value.unwrap_or_else(|| self.value(line, assign, &mut pcp, &mut reading));
        let value = match value {
            Ok(value) => value,
            // A missing text is already reported.
            Err(form) => return form,
        };
        let kind = match &text[attribute.clone()] {
            "oneline" => TextKind::OneLine,
            "helptext" => TextKind::Help,
            _ => {
                reading.diagnostics.push(unknown(line, &attribute, name, is_defined, &pcp));
                return LineForm::Mistake;
            }
        };
        let form = if !value.has_rest && between.is_empty() {
            let start = trimmed(text, assign + 1..text.len()).start;
            LineForm::Text {
                name: range.clone(),
                kind,
                value: line.origin.offset(offset(start)) as usize,
                is_quoted: value.is_quoted,
            }
        } else {
            LineForm::Mistake
        };
        let metric: Spanned<Box<str>> =
            Spanned { value: name.into(), span: span(&line.origin, &range) };
        if !is_defined {
            let unknown = self.of_unknown_metric(&metric, &pcp, reading.diagnostics.len());
            reading.diagnostics.extend(unknown);
            return form;
        }
        let key = (metric.value.clone(), kind);
        let first = self.texts.get(&key);
        if first.is_some() || reading.earlier.is_some_and(|earlier| earlier.has_text(name, kind)) {
            let said = pcp.error_with_line(format_args!(
                "duplicate value for attribute ({}) of metric ({name})",
                &text[attribute]
            ));
            reading.diagnostics.push(given_again(&metric, first).pcp(said));
            return form;
        }
        self.texts.insert(key, metric.span);
        let text =
            HelpText { metric, kind, text: stray::replaced(&value.text).into(), line: line.number };
        reading.items.push(DefinitionItem::Text(text));
        form
    }

    /// The mistake of a text for a metric that no line before defines; `reported` mistakes
    /// come before it. A metric whose definition was refused needs no second complaint, but
    /// libpcp makes one.
    fn of_unknown_metric(
        &self,
        metric: &Spanned<Box<str>>,
        pcp: &FileLine<'_>,
        reported: usize,
    ) -> Option<Diagnostic> {
        let name = &*metric.value;
        if self.refused.contains(name) && self.language.dialect == Dialect::Fixed {
            return None;
        }
        let message = format!("no metric `{name}` is defined before this line");
        let known = self.defined.keys().map(|name| &**name);
        let meant = nearest_after(reported, name, known);
        let otherwise = "a help text follows the definition of its metric";
        let diagnostic = Diagnostic::error(Code::BadAttribute, metric.span, message);
        Some(diagnostic.pcp(not_defined(name, pcp)).meant(metric.span, meant, otherwise))
    }

    /// The text after the `=` of an attribute. A text in quotes may continue over lines, which
    /// are then skipped.
    ///
    /// # Errors
    /// There is no text, which is reported. The error is the line's form.
    fn value(
        &self,
        line: &Line<'_>,
        assign: usize,
        pcp: &mut FileLine<'_>,
        FileBeingRead { lag, lines, diagnostics, .. }: &mut FileBeingRead<'_, '_>,
    ) -> Result<AttributeText, LineForm> {
        let text = &*line.text;
        let value = trimmed(text, assign + 1..text.len());
        let dialect = self.language.dialect;
        let first = text[value.clone()].chars().next();
        // libpcp 6 misses a text whose opening quote ends the line.
        let is_missed = dialect == Dialect::Pcp6_0 && value.start + 1 == text.len();
        let quote = match first.filter(|first| !(is_missed && matches!(first, '"' | '\''))) {
            None => {
                let end = span(&line.origin, &(text.len()..text.len()));
                let said = pcp.error_with_line(format_args!("attribute value missing"));
                diagnostics
                    .push(Diagnostic::error(Code::BadAttribute, end, "there is no text").pcp(said));
                return Err(LineForm::Mistake);
            }
            Some(quote @ ('"' | '\'')) => quote,
            // Without quotes, the text is the rest of the line, blanks
            // included.
            Some(_) => {
                let rest = &text[value.start..];
                let text = match dialect {
                    Dialect::Fixed => rest.strip_suffix('\r').unwrap_or(rest),
                    Dialect::Pcp6_0 | Dialect::Pcp7_2 => rest,
                };
                return Ok(AttributeText { text: text.into(), is_quoted: false, has_rest: false });
            }
        };
        let source = span(&line.origin, &(value.start..value.start + 1));
        let start = source.start as usize + 1;
        // Version 6 does not count the lines that a text spans, except the
        // last. Its numbers lag behind from then on.
        let mut count = |text: &str| {
            let more = u32::try_from(text.matches('\n').count()).unwrap_or(0);
            if !self.language.dialect.is_version_7() && more > 0 {
                pcp.number += more - 1;
                **lag += 1;
            }
        };
        let mut plain = String::new();
        let mut characters = lines.text()[start..].char_indices();
        while let Some((position, character)) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some((_, '\n')) | None => {}
                    Some((_, other)) => plain.push(other),
                },
                end if end == quote => {
                    let after = start + position + 1;
                    count(&lines.text()[start..after]);
                    let rest = lines.text()[after..].split('\n').next().unwrap_or("");
                    let origin = Origin::new(source.source, offset(after));
                    let ignored = behind_quote(rest, &origin);
                    let has_rest = ignored.is_some();
                    let goes_on = lines.text()[start..after].contains('\n');
                    diagnostics.extend(ignored.map(|ignored| match extra_text(rest, goes_on) {
                        "" => ignored,
                        extra => ignored.pcp(pcp.extra_text(extra)),
                    }));
                    lines.skip_line_of(start + position);
                    return Ok(AttributeText { text: plain.into(), is_quoted: true, has_rest });
                }
                other => plain.push(other),
            }
        }
        count(&lines.text()[start..]);
        // libpcp reads the whole rest as the text.
        if self.language.dialect != Dialect::Fixed {
            let end = lines.text().len();
            lines.skip_line_of(end);
        }
        diagnostics.push(
            Diagnostic::error(Code::Unterminated, source, "this text has no end")
                .label(source, "begins here")
                .help(format!("end it with `{quote}`"))
                .pcp(pcp.error(format_args!("missing termination ({quote}) for value"))),
        );
        Err(LineForm::Unterminated)
    }
}

/// The mistake of a text that a metric has already; `first` is the place where it was given.
fn given_again(metric: &Spanned<Box<str>>, first: Option<&Span>) -> Diagnostic {
    let message = format!("`{}` has this text already", metric.value);
    let diagnostic = Diagnostic::error(Code::BadAttribute, metric.span, message)
        .label(metric.span, "given again here")
        .help("the first text stays");
    match first.filter(|first| first.source == metric.span.source) {
        Some(first) => diagnostic.label(*first, "given here first"),
        None => diagnostic,
    }
}

/// The warning of the rest of a line behind a closing quote, if there is one.
fn behind_quote(rest: &str, origin: &Origin) -> Option<Diagnostic> {
    let extra = trimmed(rest, 0..rest.len());
    if extra.is_empty() {
        return None;
    }
    let place = span(origin, &extra);
    let message = "text after the closing quote is ignored";
    let ignored = Diagnostic::warning(Code::BadAttribute, place, message);
    Some(match rest[extra].trim_matches([';', ',']) {
        "" => ignored.fix(place, ""),
        _ => ignored.help(QUOTED),
    })
}

/// libpcp's name for the text behind a quoted text. It skips the first byte if
/// the text continues over lines.
fn extra_text(rest: &str, goes_on: bool) -> &str {
    let mut characters = rest.chars();
    if goes_on {
        characters.next();
    }
    characters.as_str().trim_start_matches(is_space)
}

/// The mistake of a line whose first parentheses do not match.
fn unpaired(
    line: &Line<'_>,
    assign: usize,
    [open, close]: [Option<usize>; 2],
    pcp: &FileLine<'_>,
) -> Diagnostic {
    let text = &*line.text;
    let (at, message, said) = match (open, close) {
        (Some(open), None) => {
            let range = trimmed(text, 0..open);
            let wrong = check_name(&text[range.clone()], &range, open, &line.origin, pcp);
            if let Some(wrong) = wrong {
                return wrong;
            }
            let said = pcp.error_with_line(format_args!("missing ')' after attribute"));
            (open, "this `(` is not closed before the `=`", said)
        }
        _ => {
            let name = &text[trimmed(text, 0..open.unwrap_or(assign))];
            let said = pcp.error(format_args!("illegal derived metric name ({name})"));
            (close.unwrap_or(assign), "`)` without a `(` before it", said)
        }
    };
    error(line, &(at..at + 1), message).help(FORM).pcp(said)
}

/// The mistake of an unknown attribute. `name` is the metric's.
fn unknown(
    line: &Line<'_>,
    attribute: &Range<usize>,
    name: &str,
    is_defined: bool,
    pcp: &FileLine<'_>,
) -> Diagnostic {
    let other = &line.text[attribute.clone()];
    let known = ["oneline", "helptext"];
    let diagnostic = error(line, attribute, format!("there is no attribute `{other}`"));
    // libpcp looks at the metric first.
    let diagnostic = diagnostic.pcp(match is_defined {
        true => {
            pcp.error_with_line(format_args!("attribute ({other}) is unknown for metric ({name})"))
        }
        false => not_defined(name, pcp),
    });
    let otherwise = format!("it is {}", choices(known));
    diagnostic.meant(span(&line.origin, attribute), nearest(other, known), otherwise)
}

/// libpcp's words for a help text whose metric is not defined.
fn not_defined(name: &str, pcp: &FileLine<'_>) -> String {
    pcp.error_with_line(format_args!("cannot set attribute, derived metric ({name}) not defined"))
}
