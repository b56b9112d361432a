//! Diagnostics for people: the source lines with the places marked.
//!
//! Only this module knows ariadne. ariadne gets a text that needs no changes
//! whole, once for all diagnostics. Of any other text it gets an excerpt: the
//! lines in question, cut to a readable width around the place. An expression
//! of a megabyte therefore costs no more than a short one. The output depends
//! on the arguments only.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ariadne::{Cache, Color, Config, IndexType, Label as Mark, Report, ReportKind, Source};

use crate::escape;
use crate::text::stray;
use crate::text::{SourceId, SourceMap, Span};

use super::{Code, Derivation, Diagnostic, Severity, Step, printable};

/// The markup of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    Plain,
    /// With ANSI colours.
    Colour,
}

/// Largest number of characters to show of a line.
const WIDTH: usize = 140;
/// Number of characters to show before the place in a cut line.
const LEAD: usize = 50;

/// A renderer of the diagnostics of one [`SourceMap`]. It keeps the texts that
/// can be shown unchanged.
///
/// ```
/// use pmderive::Definitions;
/// use pmderive::diag::render::{Renderer, Style};
///
/// let loaded = Definitions::default().add_text("shop.conf", "shop.sum = hinv.ncpu + )\n");
/// let mut renderer = Renderer::default();
/// for mistake in &loaded.diagnostics {
///     // The line, with a mark below the parenthesis.
///     eprint!("{}", renderer.render(mistake, &loaded.sources, Style::Plain));
/// }
/// # assert!(loaded.diagnostics.errors() > 0);
/// ```
#[derive(Debug, Default)]
pub struct Renderer {
    /// `None` for texts that need excerpts.
    whole: HashMap<SourceId, Option<Source<Arc<str>>>>,
}

impl Renderer {
    /// The diagnostic with the lines that it refers to, as several lines of
    /// text.
    pub fn render(&mut self, diagnostic: &Diagnostic, sources: &SourceMap, style: Style) -> String {
        let labels = diagnostic.labels.iter().map(|label| label.span);
        for span in labels.chain([diagnostic.span]) {
            self.whole.entry(span.source).or_insert_with(|| {
                let text = &sources.get(span.source).text;
                is_plain(text).then(|| Source::from(Arc::clone(text)))
            });
        }
        report(diagnostic, sources, style, &self.whole)
    }
}

/// The diagnostic with the lines that it refers to, as several lines of text.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, style: Style) -> String {
    Renderer::default().render(diagnostic, sources, style)
}

/// True for a text that needs no cuts and no escapes.
fn is_plain(text: &str) -> bool {
    let fits = |line: &str| line.len() < WIDTH && escaped(line) == line;
    text.split('\n').all(fits)
}

fn report(
    diagnostic: &Diagnostic,
    sources: &SourceMap,
    style: Style,
    whole: &HashMap<SourceId, Option<Source<Arc<str>>>>,
) -> String {
    if diagnostic.code == Code::UnreadableFile {
        return headline(diagnostic, style);
    }
    let primary = Place { span: diagnostic.span, text: None, is_primary: true };
    let mut places = vec![primary];
    for label in &diagnostic.labels {
        if label.span == diagnostic.span && places[0].text.is_none() {
            places[0].text = Some(&label.text);
        } else {
            places.push(Place { span: label.span, text: Some(&label.text), is_primary: false });
        }
    }
    let mut excerpts = Excerpts { whole, texts: BTreeMap::new() };
    let mut notes = Vec::new();
    let mut marks = Vec::new();
    for place in &places {
        let anchor =
            if place.span.source == diagnostic.span.source { diagnostic.span } else { place.span };
        excerpts.add(place.span, anchor, sources);
    }
    excerpts.finish(sources);
    // In the order of the text, so that ariadne shows each line once.
    places.sort_by_key(|place| {
        (place.span.source != diagnostic.span.source, place.span.source, place.span.start)
    });
    for place in &places {
        let Some(range) = excerpts.locate(place.span, sources) else {
            let (line, column) = sources.start_of(place.span);
            notes.push(format!("line {line}, column {column}: {}", place.text.unwrap_or("")));
            continue;
        };
        let colour = if place.is_primary { Color::Red } else { Color::Cyan };
        let mark = Mark::new(MarkedRange { source: place.span.source, range })
            .with_color(colour)
            // Without a text ariadne would mark nothing.
            .with_message(printable(place.text.unwrap_or(mark(diagnostic.code))));
        marks.push(mark);
    }
    let kind = match diagnostic.severity {
        Severity::Error => ReportKind::Error,
        Severity::Warning => ReportKind::Warning,
    };
    let range = excerpts.locate(diagnostic.span, sources).unwrap_or(0..0);
    let start = range.start;
    let config = Config::default()
        .with_color(style == Style::Colour)
        .with_index_type(IndexType::Byte)
        .with_tab_width(8);
    let mut report = Report::build(kind, MarkedRange { source: diagnostic.span.source, range })
        .with_config(config)
        .with_code(diagnostic.code)
        .with_message(printable(&diagnostic.message))
        .with_labels(marks);
    if let Some(help) = help(diagnostic) {
        report = report.with_help(printable(&help));
    }
    for note in notes {
        report = report.with_note(printable(&note));
    }
    for derivation in &diagnostic.derivations {
        report = report.with_note(table(derivation, sources));
    }
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = report.finish().write(&mut excerpts, &mut out);
    let text = String::from_utf8_lossy(&out).into_owned();
    let text = excerpts.correct_column(text, diagnostic.span, start, sources);
    match style {
        Style::Colour => text,
        Style::Plain => text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect(),
    }
}

/// The words at a place without words of its own.
fn mark(code: Code) -> &'static str {
    match code {
        Code::IllegalCharacter | Code::UnexpectedToken | Code::MisplacedNoValue => {
            "cannot stand here"
        }
        Code::ConstantTooLarge => "too large",
        Code::UnexpectedEnd => "something is missing here",
        Code::UnbalancedDelimiter => "has no partner",
        Code::UnknownFunction => "no function",
        Code::WrongArguments => "not what belongs here",
        Code::BadKeywordValue
        | Code::BadUnits
        | Code::BadPattern
        | Code::BadAttribute
        | Code::BadControl => "not understood",
        Code::BadDefinitionLine => "no definition",
        _ => "here",
    }
}

/// The first line of a report, for a mistake without a place.
fn headline(diagnostic: &Diagnostic, style: Style) -> String {
    let Diagnostic { code, message, .. } = diagnostic;
    let (colour, word) = match diagnostic.severity {
        Severity::Error => ("\x1b[31m", "Error"),
        Severity::Warning => ("\x1b[33m", "Warning"),
    };
    let (start, end) = match style {
        Style::Plain => ("", ""),
        Style::Colour => (colour, "\x1b[0m"),
    };
    format!("{start}[{code}] {word}:{end} {}\n", printable(message))
}

/// Longest edit to show beside advice, in bytes.
const MAX_SHOWN_FIX: usize = 128;

/// The help: the advice, with the edit if that says more, or else the edit in
/// words.
fn help(diagnostic: &Diagnostic) -> Option<String> {
    if let Some(help) = &diagnostic.help {
        let shown = diagnostic.fix.as_ref().map_or("", |fix| fix.text.trim());
        // A question has already named the edit.
        let is_told = help.ends_with('?') || help.contains(shown);
        // The help describes an edit of lines.
        let says_more = !is_told && !shown.contains('\n');
        return Some(match shown.len() <= MAX_SHOWN_FIX && says_more {
            true => format!("{help}; write `{shown}`"),
            false => help.clone(),
        });
    }
    let fix = diagnostic.fix.as_ref()?;
    Some(match (fix.span.start == fix.span.end, fix.text.is_empty()) {
        (_, true) => "remove it".to_owned(),
        (true, false) => format!("insert `{}`", fix.text),
        (false, false) => format!("write `{}`", fix.text),
    })
}

/// Largest number of steps to show of a derivation.
const MAX_STEPS: usize = 8;
/// Largest number of characters to show of a step's text.
const STEP_WIDTH: usize = 48;

/// A derivation as lines of three columns: text, value, reason.
fn table(derivation: &Derivation, sources: &SourceMap) -> String {
    let Derivation { subject, property, steps, .. } = derivation;
    let left_out = steps.len().saturating_sub(MAX_STEPS);
    let rows: Vec<(String, &Step)> =
        steps[left_out..].iter().map(|step| (shortened(sources.slice(step.span)), step)).collect();
    let width = |text: &str| text.chars().count();
    let first = rows.iter().map(|(text, _)| width(text)).max().unwrap_or(0);
    let second = rows.iter().map(|(_, step)| width(&step.value)).max().unwrap_or(0);
    let mut out = format!("{} of the {subject}", property.name());
    if left_out > 0 {
        out.push_str(&format!(", last {MAX_STEPS} of {} steps", steps.len()));
    }
    out.push(':');
    for (text, step) in rows {
        let gap = |text: &str, column: usize| " ".repeat(column - width(text) + 2);
        let (value, reason) = (&step.value, &step.reason);
        let (after_text, after_value) = (gap(&text, first), gap(value, second));
        out.push_str(&format!("\n  {text}{after_text}{value}{after_value}{reason}"));
    }
    out.lines().map(printable).collect::<Vec<_>>().join("\n")
}

/// A text on one line. A long text loses its middle.
fn shortened(text: &str) -> String {
    let plain: Vec<&str> = text.split_whitespace().collect();
    let plain: Vec<char> = plain.join(" ").chars().collect();
    if plain.len() <= STEP_WIDTH {
        return plain.into_iter().collect();
    }
    let half = (STEP_WIDTH - 1) / 2;
    let (head, tail) = (&plain[..half], &plain[plain.len() - half..]);
    head.iter().chain(&[ELLIPSIS]).chain(tail).collect()
}

/// A place to mark.
struct Place<'d> {
    span: Span,
    text: Option<&'d str>,
    is_primary: bool,
}

/// A range of bytes of an excerpt.
#[derive(Clone)]
struct MarkedRange {
    source: SourceId,
    range: Range<usize>,
}

impl ariadne::Span for MarkedRange {
    type SourceId = SourceId;

    fn source(&self) -> &SourceId {
        &self.source
    }

    fn start(&self) -> usize {
        self.range.start
    }

    fn end(&self) -> usize {
        self.range.end
    }
}

/// The excerpts of a report, by text.
struct Excerpts<'w> {
    whole: &'w HashMap<SourceId, Option<Source<Arc<str>>>>,
    texts: BTreeMap<SourceId, Excerpt>,
}

/// Lines of one text. The excerpt has all lines before the last shown one,
/// because line numbers must be right. The lines not shown are empty. (ariadne
/// has an offset for line numbers, but not for those beside the lines.)
struct Excerpt {
    name: String,
    /// True if the whole text is shown instead.
    is_whole: bool,
    /// The shown lines, by number from 0.
    lines: BTreeMap<usize, Piece>,
    rendered: Source<Arc<str>>,
}

/// The shown part of a line.
struct Piece {
    /// The shown bytes of the whole text.
    shown: Range<usize>,
    /// End of the shown bytes, or of the end of line that follows them.
    covered: usize,
    /// True if the left part is left out.
    is_cut: bool,
    /// Start of the shown bytes in the excerpt.
    at: usize,
}

/// The mark in place of the cut part.
const ELLIPSIS: char = '\u{2026}';

impl Excerpts<'_> {
    /// Shows the first and last line of a span. A long line is cut around
    /// `anchor` if that is in the line, or else around the span.
    fn add(&mut self, span: Span, anchor: Span, sources: &SourceMap) {
        let source = sources.get(span.source);
        let text = &source.text;
        let excerpt = self.texts.entry(span.source).or_insert_with(|| Excerpt {
            name: printable(&source.name),
            is_whole: self.whole.get(&span.source).is_some_and(Option::is_some),
            lines: BTreeMap::new(),
            rendered: Source::from(Arc::from("")),
        });
        if excerpt.is_whole {
            return;
        }
        let end = (span.end as usize).max(span.start as usize + 1) - 1;
        for offset in [span.start as usize, end.min(text.len())] {
            let offset = text.floor_char_boundary(offset);
            let (number, start) = source.line_of(offset);
            let end = text[offset..].find('\n').map_or(text.len(), |length| offset + length);
            let end = start + text[start..end].trim_end_matches('\r').len();
            let anchor = anchor.start as usize;
            let focus = if (start..=end).contains(&anchor) { anchor } else { offset.min(end) };
            excerpt.lines.entry(number).or_insert_with(|| {
                let shown = window(text, start..end, focus);
                let line_end = text[end..].find('\n').map_or(text.len(), |length| end + length);
                let covered = if shown.end == end { line_end } else { shown.end };
                Piece { shown, covered, is_cut: false, at: 0 }
            });
        }
    }

    /// Puts the excerpts together once all lines are known.
    fn finish(&mut self, sources: &SourceMap) {
        for (id, excerpt) in &mut self.texts {
            let text = &sources.get(*id).text;
            let mut out = String::new();
            let mut next = 0;
            for (number, piece) in &mut excerpt.lines {
                out.extend(std::iter::repeat_n('\n', number - next));
                let Range { start, end } = piece.shown;
                piece.is_cut = start > 0 && !text[..start].ends_with('\n');
                if piece.is_cut {
                    out.push(ELLIPSIS);
                }
                piece.at = out.len();
                out.push_str(&escaped(&text[start..end]));
                let rest = text[end..].trim_start_matches('\r');
                if !rest.is_empty() && !rest.starts_with('\n') {
                    out.push(ELLIPSIS);
                }
                next = *number;
            }
            excerpt.rendered = Source::from(Arc::from(out));
        }
    }

    /// The range of a span in its excerpt; `None` if none of it is shown.
    fn locate(&self, span: Span, sources: &SourceMap) -> Option<Range<usize>> {
        let excerpt = self.texts.get(&span.source)?;
        let text = &sources.get(span.source).text;
        if excerpt.is_whole {
            let start = text.floor_char_boundary(span.start as usize);
            let end = text.floor_char_boundary(span.end as usize);
            // An end of line at the end is shown with its line.
            let lines = text.get(start..end).unwrap_or_default().trim_end_matches('\n');
            return Some(start..start + lines.len());
        }
        let place = |offset: usize| {
            let piece = excerpt
                .lines
                .values()
                .find(|piece| (piece.shown.start..=piece.covered).contains(&offset))?;
            let end = text.floor_char_boundary(offset.min(piece.shown.end));
            Some(piece.at + escaped(&text[piece.shown.start..end]).len())
        };
        let (start, end) = (span.start as usize, span.end as usize);
        let inside = |piece: &&Piece| piece.shown.start < end && piece.shown.end > start;
        let first = place(start).or_else(|| excerpt.lines.values().find(inside).map(|p| p.at))?;
        let last = place(end).or_else(|| {
            let piece = excerpt.lines.values().rev().find(inside)?;
            Some(piece.at + escaped(&text[piece.shown.clone()]).len())
        })?;
        Some(first..last.max(first))
    }

    /// Puts the true column into the head of a report whose line was cut.
    fn correct_column(
        &self,
        report: String,
        span: Span,
        start: usize,
        sources: &SourceMap,
    ) -> String {
        let excerpt = self.texts.get(&span.source).filter(|excerpt| !excerpt.is_whole);
        let Some(excerpt) = excerpt else { return report };
        let (line, column) = sources.start_of(span);
        let rendered = &excerpt.rendered.text()[..start];
        let line_start = rendered.rfind('\n').map_or(0, |newline| newline + 1);
        let cut_column = rendered[line_start..].chars().count() + 1;
        if cut_column == column {
            return report;
        }
        let wrong = format!("{}:{line}:{cut_column} ", excerpt.name);
        report.replacen(&wrong, &format!("{}:{line}:{column} ", excerpt.name), 1)
    }
}

impl Cache<SourceId> for &mut Excerpts<'_> {
    type Storage = Arc<str>;

    fn fetch(&mut self, id: &SourceId) -> Result<&Source<Arc<str>>, impl fmt::Debug> {
        let whole = self.whole.get(id).and_then(Option::as_ref);
        let excerpt = || self.texts.get(id).map(|excerpt| &excerpt.rendered);
        whole.or_else(excerpt).ok_or("a text without excerpt")
    }

    fn display<'a>(&self, id: &'a SourceId) -> Option<impl fmt::Display + 'a> {
        self.texts.get(id).map(|excerpt| excerpt.name.clone())
    }
}

/// The part of a line to show: all of it, or some characters around a place.
fn window(text: &str, line: Range<usize>, focus: usize) -> Range<usize> {
    let before = text[line.start..focus].char_indices().rev().take(WIDTH);
    let starts: Vec<usize> = before.map(|(offset, _)| line.start + offset).collect();
    let after: Vec<usize> = text[focus..line.end]
        .char_indices()
        .take(WIDTH)
        .map(|(offset, _)| focus + offset)
        .collect();
    if starts.len() + after.len() < WIDTH {
        return line;
    }
    let start = match starts.get(LEAD) {
        Some(start) => *start,
        None => line.start,
    };
    let shown_before = starts.len().min(LEAD + 1);
    // Behind that many characters, or behind the last one that was counted.
    let end = after.get((WIDTH - shown_before).min(WIDTH - 1)).copied().unwrap_or(line.end);
    start..end
}

/// A part of a line as the report shows it; ariadne makes blanks of tabs.
fn escaped(text: &str) -> Cow<'_, str> {
    match stray::encoded(text) {
        Cow::Borrowed(_) => escape::lines(text.as_bytes()),
        Cow::Owned(bytes) => escape::lines(&bytes).into_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, start: usize, end: usize) -> String {
        let mut sources = SourceMap::default();
        let id = sources.add("file", text);
        let span = Span::new(id, start as u32, end as u32);
        render(&Diagnostic::error(Code::UnexpectedToken, span, "wrong"), &sources, Style::Plain)
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text =
            format!("first\n{}\u{e9}WRONG{}\nlast", "x".repeat(1 << 20), "y".repeat(1 << 20));
        let start = text.find("WRONG").expect("it is there");
        let report = report(&text, start, start + 5);
        assert!(report.len() < 2_000, "{report}");
        assert!(report.contains("WRONG"), "{report}");
        assert!(report.contains("file:2:1048578 "), "{report}");
    }

    #[test]
    fn long_lines_are_cut_behind_a_place_at_their_start() {
        for length in [0, 1, 5, WIDTH - 1, WIDTH, WIDTH + 1, 1 << 20] {
            let report = report(&format!("{}\nlast", "y".repeat(length)), 0, length.min(5));
            assert!(report.len() < 2_000, "{report}");
        }
    }

    #[test]
    fn any_text_and_place_can_be_shown() {
        let texts =
            ["", "\n", "a\r\nb", "a\tb\x0bc\u{85}d\x1b[31m\u{2028}e\n\n\u{e9}\u{4e2d}", "x\n"];
        for text in texts {
            for start in (0..=text.len()).filter(|offset| text.is_char_boundary(*offset)) {
                for end in (start..=text.len()).filter(|offset| text.is_char_boundary(*offset)) {
                    let report = report(text, start, end);
                    assert!(!report.contains('\x1b'), "{report}");
                    assert!(report.starts_with("[PMD0010] Error: wrong\n"), "{report}");
                }
            }
        }
    }

    /// The line below the one that holds `marked`, up to the middle of the mark.
    fn column_of_mark(report: &str, marked: &str) -> (usize, usize) {
        // Ideographs fill two columns of a terminal. Box-drawing characters lie
        // below them.
        let columns = |c: char| if ('\u{2e80}'..'\u{ff00}').contains(&c) { 2 } else { 1 };
        let width = |text: &str| -> usize { text.chars().map(columns).sum() };
        let lines: Vec<&str> = report.lines().collect();
        let index = lines.iter().position(|line| line.contains(marked)).expect("a line of text");
        let (text, marks) = (lines[index], lines[index + 1]);
        let start = text.find(marked).expect("it is there");
        let first = marks.find(['─', '┬']).expect("a mark");
        let body = |line: &str, end: usize| {
            let bar = line.find('│').map_or(0, |bar| bar + '│'.len_utf8());
            width(&line[bar..end])
        };
        (body(text, start), body(marks, first))
    }

    #[test]
    fn marks_stand_below_what_they_mark() {
        for text in
            ["a = WRONG", "a\t=\tWRONG", "\u{e9} = WRONG", "[\u{4e2d}\u{6587}] WRONG \u{6587}"]
        {
            let start = text.find("WRONG").expect("it is there");
            let report = report(text, start, start + 5);
            let (text_column, mark_column) = column_of_mark(&report, "WRONG");
            assert_eq!(text_column, mark_column, "{report}");
        }
    }

    #[test]
    fn places_may_reach_over_lines() {
        let text = "a = (b + \\\n  c + \\\n  d) * e\n";
        let report = report(text, 5, text.find("d)").expect("it is there") + 1);
        for line in ["1 │", "3 │", "wrong"] {
            assert!(report.contains(line), "{report}");
        }
        assert!(!report.contains("  c + "), "{report}");
    }

    #[test]
    fn derivations_are_tables_of_bounded_size() {
        let text = format!("x = {}", "rate(metric.with.a.long.name) * ".repeat(40));
        let mut sources = SourceMap::default();
        let id = sources.add("file", &*text);
        let step = |index: u32| Step {
            span: Span::new(id, 4, 4 + 10 * (index + 1)),
            value: "Kbyte".to_owned(),
            reason: format!("step {index}"),
        };
        let span = Span::new(id, 4, 10);
        let derivation = Derivation {
            span,
            subject: "left operand".to_owned(),
            property: super::super::Property::Units,
            steps: (0..20).map(step).collect(),
        };
        let diagnostic = Diagnostic::error(Code::DimensionMismatch, span, "wrong");
        let report = render(&diagnostic.derived(Some(derivation)), &sources, Style::Plain);
        assert!(report.contains("units of the left operand, last 8 of 20 steps:"), "{report}");
        assert!(report.contains("step 19") && !report.contains("step 11\n"), "{report}");
        let widest = report.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest < 170), "{report}");
    }

    #[test]
    fn colours_are_there_only_when_asked_for() {
        let mut sources = SourceMap::default();
        let id = sources.add("file", "a = b");
        let diagnostic = Diagnostic::error(Code::UnexpectedToken, Span::new(id, 4, 5), "wrong");
        assert!(!render(&diagnostic, &sources, Style::Plain).contains('\x1b'));
        assert!(render(&diagnostic, &sources, Style::Colour).contains('\x1b'));
    }

    #[test]
    fn places_that_are_not_shown_become_notes() {
        let text = format!("(a{} b", " ".repeat(1000));
        let mut sources = SourceMap::default();
        let id = sources.add("file", &*text);
        let last = text.len() as u32;
        let diagnostic =
            Diagnostic::error(Code::UnbalancedDelimiter, Span::new(id, last, last), "unclosed")
                .label(Span::new(id, 0, 1), "opened here");
        let report = render(&diagnostic, &sources, Style::Plain);
        assert!(report.contains("Note: line 1, column 1: opened here"), "{report}");
    }
}
