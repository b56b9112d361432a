//! Definition files: metrics, their help texts, control options.
//!
//! A [`DefinitionReader`] reads the texts of files in turn and gives their
//! items. It remembers the defined names: a name counts once, and a help text
//! belongs to a metric defined before it. A mistake ends only its own line.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::diag::pcp::FileLine;
use crate::diag::{Code, Diagnostic, Diagnostics, Fix};
use crate::dialect::{Dialect, Language};
use crate::syntax::ast::Spanned;
use crate::syntax::names::is_space;
use crate::syntax::origin::span;
use crate::syntax::shapes::Shapes;
use crate::syntax::{ParsedExpr, parse_at};
use crate::text::{SourceId, SourceMap, Span, offset};

pub use pmderive_runtime::model::TextKind;

use super::config_names::{check_name, colon_for_assign, ends_too_early, goes_on, is_indented};
use super::control::{Setting, parse_options};
use super::end_comments::move_comment;
use super::expression_cache::ParsedBefore;
use super::line_form::{LineForm, OutlinedLine};
use super::line_habits;
use super::lines::{Line, Lines};
use super::two_definitions;

/// One item of a definition file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DefinitionItem {
    /// `name = expression`
    Definition(Definition),
    /// `name(oneline) = text`
    Text(HelpText),
    /// One option of a `#control` line.
    Control {
        /// The option.
        setting: Setting,
        /// Number of the line, from 1.
        line: u32,
    },
}

/// A derived metric's definition. Names are unique among a reader's definitions
/// without an error.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The metric's name.
    pub name: Spanned<Arc<str>>,
    /// Its expression.
    pub expr: ParsedExpr,
    /// The text after the `=`, lines joined. libpcp prints it with an error.
    /// The offset of [`crate::syntax::PcpError`], plus `skipped`, points into it.
    pub text: Box<str>,
    /// Bytes of `text` before the expression's first.
    pub skipped: u32,
    /// The place of the expression.
    pub expr_span: Span,
    /// Number of the definition's first line, from 1.
    pub line: u32,
}

/// A help text.
#[derive(Clone, Debug)]
pub struct HelpText {
    /// Name of a metric defined before.
    pub metric: Spanned<Box<str>>,
    /// The kind of text.
    pub kind: TextKind,
    /// The text itself.
    pub text: Box<str>,
    /// Number of the first line, from 1.
    pub line: u32,
}

/// Reads definition files in their order.
#[derive(Debug)]
pub struct DefinitionReader {
    pub(super) language: Language,
    /// Defined names, with their places.
    pub(super) defined: FxHashMap<Arc<str>, Span>,
    /// Names with a refused definition.
    pub(super) refused: FxHashSet<Arc<str>>,
    /// Help texts so far, with the places of their names.
    pub(super) texts: FxHashMap<(Box<str>, TextKind), Span>,
    /// Shapes of expressions.
    pub(in crate::syntax) shapes: Shapes,
    /// True if the line before is a definition that ended too early.
    is_unfinished: bool,
    /// True if the reader needs only the forms of lines.
    pub(super) gives_forms: bool,
}

/// Parses one definition file; see [`DefinitionReader::read`].
pub fn parse_definitions(
    source: SourceId,
    sources: &SourceMap,
    language: impl Into<Language>,
    diagnostics: &mut Diagnostics,
) -> Vec<DefinitionItem> {
    DefinitionReader::new(language).read(source, sources, diagnostics)
}

/// Earlier definitions, from outside the files of a reader.
pub trait Earlier {
    /// True for the name of a metric.
    fn defines(&self, name: &str) -> bool;
    /// True if the metric of that name has that text.
    fn has_text(&self, name: &str, kind: TextKind) -> bool;
}

/// A file while it is read.
pub(super) struct FileBeingRead<'r, 't> {
    /// Name of the file.
    pub file: &'r str,
    /// Number of lines by which libpcp's number of a line lags behind.
    pub lag: &'r mut u32,
    /// Earlier definitions, if there are any.
    pub earlier: Option<&'r dyn Earlier>,
    /// The following lines.
    pub lines: &'r mut Lines<'t>,
    /// The cache of parsed expressions.
    pub parsed: Option<&'r mut ParsedBefore>,
    /// The mistakes.
    pub diagnostics: &'r mut Diagnostics,
    /// The file's items.
    pub items: &'r mut Vec<DefinitionItem>,
}

impl<'r> FileBeingRead<'r, '_> {
    /// The line as libpcp's messages name it.
    pub fn said_of<'l>(&self, line: &'l Line<'_>) -> FileLine<'l>
    where
        'r: 'l,
    {
        let number = line.number.saturating_sub(*self.lag);
        FileLine { file: self.file, number, line: &line.text[..line.said] }
    }
}

impl DefinitionReader {
    /// A reader without names.
    pub fn new(language: impl Into<Language>) -> DefinitionReader {
        DefinitionReader {
            language: language.into(),
            defined: FxHashMap::default(),
            refused: FxHashSet::default(),
            texts: FxHashMap::default(),
            shapes: Shapes::default(),
            is_unfinished: false,
            gives_forms: false,
        }
    }

    /// Reads one file (`pmLoadDerivedConfig(3)`). Items come in the order of
    /// the file. A definition with a wrong expression is an item too.
    pub fn read(
        &mut self,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Vec<DefinitionItem> {
        self.read_after(None, source, sources, None, diagnostics)
    }

    /// Reads one file as [`DefinitionReader::read`] does. `earlier` has names
    /// defined outside of this reader's files. Expressions in `before`, which an
    /// earlier state of the file had, are not parsed again.
    pub fn read_after(
        &mut self,
        earlier: Option<&dyn Earlier>,
        source: SourceId,
        sources: &SourceMap,
        before: Option<&mut ParsedBefore>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<DefinitionItem> {
        let file = sources.get(source);
        let lines = Lines::new(source, &file.text, self.language.dialect);
        let before = before.filter(|before| before.language() == self.language);
        self.lines(&file.name, earlier, lines, before, diagnostics, |_| {})
    }

    /// Reads lines, and passes on each with its form.
    pub(super) fn lines<'t>(
        &mut self,
        file: &str,
        earlier: Option<&dyn Earlier>,
        mut lines: Lines<'t>,
        mut parsed: Option<&mut ParsedBefore>,
        diagnostics: &mut Diagnostics,
        mut show: impl FnMut(OutlinedLine<'t>),
    ) -> Vec<DefinitionItem> {
        let (mut items, mut lag) = (Vec::new(), 0);
        let mut start = lines.position();
        // A file of pmrep's has mistakes in all its lines, and one cause.
        let mut has_sections = false;
        while let Some(line) = lines.next_line() {
            let first = diagnostics.len();
            let was_unfinished = std::mem::take(&mut self.is_unfinished);
            let reading = FileBeingRead {
                file,
                lag: &mut lag,
                earlier,
                lines: &mut lines,
                parsed: parsed.as_deref_mut(),
                diagnostics: &mut *diagnostics,
                items: &mut items,
            };
            let form = self.line(&line, reading);
            if form == LineForm::Mistake
                && diagnostics.len() > first
                && let Some(habit) = line_habits::find(&line.text, &line.origin, self.language)
            {
                diagnostics.truncate(first + 1);
                if let Some(one) = diagnostics.since_mut(first).first_mut() {
                    // libpcp's words stay.
                    let (metric, pcp) = (one.metric.take(), one.pcp.take());
                    *one = Diagnostic { metric, pcp, ..habit };
                }
            }
            let is_mistake = form == LineForm::Mistake;
            let goes_on = was_unfinished && is_indented(&line.text) && is_mistake;
            self.is_unfinished |= goes_on;
            if goes_on || has_sections {
                for one in diagnostics.since_mut(first) {
                    one.is_consequence = true;
                }
            }
            has_sections |= is_mistake && is_section(&line.text);
            show(OutlinedLine { line, range: start..lines.position(), form });
            start = lines.position();
        }
        items
    }

    /// Reads a line, and tells its form.
    fn line(&mut self, line: &Line<'_>, reading: FileBeingRead<'_, '_>) -> LineForm {
        let text = &*line.text;
        // libpcp 6 takes a carriage return alone for a definition.
        let is_blank = text == "\r" && self.language.dialect != Dialect::Pcp6_0;
        if text.is_empty() || is_blank {
            return LineForm::Blank;
        }
        if text.starts_with('#') {
            self.comment(line, reading);
            return LineForm::Comment;
        }
        let whole = trimmed(text, 0..text.len());
        let place = |range: &Range<usize>| span(&line.origin, range);
        let pcp = reading.said_of(line);
        let no_assign =
            || pcp.error_with_line(format_args!("missing ``='' after derived metric name"));
        if whole.is_empty() {
            let blanks = text.strip_suffix('\r').unwrap_or(text);
            let blanks = span(&line.origin, &(0..blanks.len()));
            reading.diagnostics.push(
                Diagnostic::warning(Code::BadDefinitionLine, blanks, "a line of blanks only")
                    .help("libpcp complains about it; leave the line empty")
                    .fix(blanks, "")
                    .pcp(no_assign()),
            );
            return LineForm::Blank;
        }
        let Some(assign) = text.find('=') else {
            let error = |message: &str| {
                let error = Diagnostic::error(Code::BadDefinitionLine, place(&whole), message);
                error.pcp(no_assign())
            };
            let (content, at) = (&text[whole.clone()], whole.start);
            reading.diagnostics.push(match colon_for_assign(content) {
                _ if content.starts_with('#') => error("a comment begins in the first column")
                    .fix(span(&line.origin, &(0..whole.start)), ""),
                Some(colon) => {
                    let colon = span(&line.origin, &(at + colon..at + colon + 1));
                    let message = "a definition has `=` behind its name";
                    Diagnostic::error(Code::BadDefinitionLine, colon, message)
                        .label(colon, "no `=`")
                        .fix(colon, " =")
                        .pcp(no_assign())
                }
                None if is_section(content) => error("files of definitions have no sections")
                    .help("sections are pmrep's; what is below is checked when this line is gone"),
                None => error("there is no `=` in this line")
                    .help("a definition is written `name = expression`"),
            });
            return LineForm::Mistake;
        };
        let find = |mark: u8| text.as_bytes()[..assign].iter().position(|byte| *byte == mark);
        let (open, close) = (find(b'('), find(b')'));
        if open.is_some() || close.is_some() {
            return self.attribute(line, assign, open, close, reading);
        }
        self.definition(line, assign, reading)
    }

    fn comment(&mut self, line: &Line<'_>, reading: FileBeingRead<'_, '_>) {
        const MARK: &str = "#control";
        let text = &*line.text;
        let is_control = self.language.dialect.is_version_7()
            && text.get(..MARK.len()).is_some_and(|start| start.eq_ignore_ascii_case(MARK));
        if !is_control {
            return;
        }
        let Some(next) = text[MARK.len()..].chars().next() else { return };
        let options = match self.language.dialect {
            // libpcp accepts any character in place of the blank, but only one.
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => MARK.len() + next.len_utf8()..text.len(),
            Dialect::Fixed if is_space(next) => trimmed(text, MARK.len()..text.len()),
            Dialect::Fixed => return,
        };
        if options.is_empty() {
            return;
        }
        let origin = line.origin.skip(offset(options.start));
        let first = reading.diagnostics.len();
        let pcp = reading.said_of(line);
        let parsed = parse_options(&text[options], &origin, reading.diagnostics);
        for diagnostic in reading.diagnostics.since_mut(first) {
            diagnostic.pcp = diagnostic.pcp.take().map(|said| pcp.control(&said).into());
        }
        for setting in parsed {
            reading.items.push(DefinitionItem::Control { setting, line: line.number });
        }
    }

    /// `name = expression`
    fn definition(
        &mut self,
        line: &Line<'_>,
        assign: usize,
        mut reading: FileBeingRead<'_, '_>,
    ) -> LineForm {
        let text = &*line.text;
        let pcp = reading.said_of(line);
        let range = trimmed(text, 0..assign);
        let name = &text[range.clone()];
        if let Some(diagnostic) = check_name(name, &range, assign, &line.origin, &pcp) {
            let first = reading.diagnostics.len();
            reading.diagnostics.push(diagnostic);
            if !name.is_empty() {
                reading.diagnostics.name_metric(first, name);
            }
            return LineForm::Mistake;
        }
        let value = trimmed(text, assign + 1..text.len());
        if self.gives_forms
            && !value.is_empty()
            && let Some(before) = reading.parsed.as_deref_mut()
            && before.is_right(&text[value.start..])
        {
            return LineForm::Definition { name: range, expression: value.start..text.len() };
        }
        let name: Spanned<Arc<str>> =
            Spanned { value: name.into(), span: span(&line.origin, &range) };
        if value.is_empty() {
            let first = reading.diagnostics.len();
            reading.diagnostics.push(no_expression(line, assign, &pcp));
            reading.diagnostics.name_metric(first, &name.value);
            self.refused.insert(name.value);
            return LineForm::Mistake;
        }
        let is_taken = self.defined.contains_key(&name.value)
            || reading.earlier.is_some_and(|earlier| earlier.defines(&name.value));
        // libpcp does not look at the expression if the name is taken.
        let mut unheard = Diagnostics::default();
        let diagnostics = if is_taken { &mut unheard } else { &mut *reading.diagnostics };
        let first = diagnostics.len();
        // Blanks at the end belong to the expression: libpcp counts them in positions.
        let (expression, origin) = (&text[value.start..], line.origin.skip(offset(value.start)));
        let expr = match reading.parsed {
            Some(before) => before.parse(&origin, expression, diagnostics),
            None => {
                let shapes = Some(&mut self.shapes);
                parse_at(&origin, expression, self.language, shapes, diagnostics)
            }
        };
        diagnostics.name_metric(first, &name.value);
        let whole = reading.lines.text();
        for one in diagnostics.since_mut(first) {
            move_comment(one, text, &line.origin, whole);
            two_definitions::split(one, expression, &origin, self.language);
        }
        let ends_early = diagnostics.since_mut(first).iter().any(ends_too_early);
        // A backslash in the middle of a line joins no lines, and is already
        // reported.
        let is_backslash_last = text.trim_end().ends_with('\\');
        self.is_unfinished = ends_early || is_backslash_last;
        if ends_early
            && !is_backslash_last
            && self.language.dialect.is_version_7()
            && goes_on(&reading.lines.text()[reading.lines.position()..])
        {
            advise_backslash(diagnostics.since_mut(first), line);
        }
        let form = match expr.error {
            None => LineForm::Definition { name: range, expression: value.start..text.len() },
            Some(_) => LineForm::Mistake,
        };
        let said = |offset: usize, message: Option<&str>| {
            pcp.syntax_error(&name.value, &text[assign + 1..], offset, message)
        };
        if is_taken {
            let said = said(value.start - assign - 1, Some("Duplicate global derived metric name"));
            let first = self.defined.get(&name.value);
            reading.diagnostics.push(defined_again(&name, first, said));
            return form;
        }
        if let Some(error) = &expr.error {
            // libpcp stops at its first error, however many there are.
            if let Some(diagnostic) = reading.diagnostics.since_mut(first).first_mut() {
                let offset = usize::try_from(error.offset).unwrap_or(0) + value.start - assign - 1;
                diagnostic.pcp = Some(said(offset, error.message.as_deref()).into());
            }
            self.refused.insert(name.value.clone());
        } else {
            self.defined.insert(name.value.clone(), name.span);
        }
        reading.items.push(DefinitionItem::Definition(Definition {
            name,
            expr,
            text: text[assign + 1..].into(),
            skipped: offset(value.start - assign - 1),
            expr_span: span(&line.origin, &value),
            line: line.number,
        }));
        form
    }
}

/// True for the heading of a section of pmrep's files.
pub(crate) fn is_section(line: &str) -> bool {
    let line = line.trim_matches(is_space);
    line.starts_with('[') && line.ends_with(']') && !line.contains('=')
}

/// The mistake of a line that ends with the `=`.
fn no_expression(line: &Line<'_>, assign: usize, pcp: &FileLine<'_>) -> Diagnostic {
    let end = span(&line.origin, &(line.text.len()..line.text.len()));
    Diagnostic::error(Code::BadDefinitionLine, end, "there is no expression")
        .label(end, "nothing follows")
        .label(span(&line.origin, &(assign..assign + 1)), "an expression is due")
        .pcp(pcp.error_with_line(format_args!("expression missing")))
}

/// Advises to end a line whose expression ends too early with a backslash.
fn advise_backslash(diagnostics: &mut [Diagnostic], line: &Line<'_>) {
    if let Some(ended) = diagnostics.iter_mut().rfind(|one| ends_too_early(one)) {
        // Nothing may stand behind the backslash, not even a carriage return.
        let [end, last] = [line.text.trim_end().len(), line.text.len()];
        let [end, last] = [end, last].map(|at| span(&line.origin, &(at..at)));
        let place = end.to(last);
        ended.help = Some("a line that goes on in the next ends with a backslash".into());
        ended.fix = Some(Fix { span: place, text: " \\".into(), is_certain: true });
    }
}

/// The mistake of a name that is taken, with the place of its first definition
/// if there is one.
fn defined_again(name: &Spanned<Arc<str>>, first: Option<&Span>, said: String) -> Diagnostic {
    let message = format!("`{}` is defined already", name.value);
    let diagnostic = Diagnostic::error(Code::DuplicateName, name.span, message)
        .label(name.span, "defined again here")
        .help("the first definition stays")
        .pcp(said);
    match first.filter(|first| first.source == name.span.source) {
        Some(first) => diagnostic.label(*first, "defined here first"),
        None => diagnostic,
    }
}

/// The range without blanks at its ends. An empty range is placed at its end.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let end = range.start + inside.trim_end_matches(is_space).len();
    let start = range.end - inside.trim_start_matches(is_space).len();
    start.min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, dialect: Dialect) -> (Vec<String>, Vec<String>) {
        let mut sources = SourceMap::default();
        let id = sources.add("test.conf", text);
        let mut diagnostics = Diagnostics::default();
        let items = parse_definitions(id, &sources, dialect, &mut diagnostics)
            .into_iter()
            .map(|item| match item {
                DefinitionItem::Definition(definition) => {
                    assert_eq!(sources.slice(definition.name.span), &*definition.name.value);
                    let state = if definition.expr.error.is_some() { "refused " } else { "" };
                    format!(
                        "{} {state}{}={}",
                        definition.line, definition.name.value, definition.text
                    )
                }
                DefinitionItem::Text(text) => {
                    format!("{} {}({:?})={}", text.line, text.metric.value, text.kind, text.text)
                }
                DefinitionItem::Control { setting, .. } => {
                    format!("{:?}={}", setting.option, setting.value)
                }
            })
            .collect();
        let diagnostics = diagnostics
            .iter()
            .map(|diagnostic| {
                let (line, column) = sources.line_column(id, diagnostic.span.start);
                let covered = sources.slice(diagnostic.span);
                format!("{line}:{column} {} {covered:?}", diagnostic.code)
            })
            .collect();
        (items, diagnostics)
    }

    #[test]
    fn files_are_read_line_by_line() {
        let text = "\
# comment
a = disk.dev.read\r
\r

b.c=a[x] + \\
  2
a(oneline) = short  \n\
a ( helptext ) junk = \"long \\\"q\\\\ \\
joined
kept\" extra
#control novalue=1,g=5
#Controls are many
last = mkconst(1, type=u64)";
        let (items, diagnostics) = read(text, Dialect::Fixed);
        assert_eq!(
            items,
            [
                "2 a= disk.dev.read\r",
                "5 b.c=a[x] +   2",
                "7 a(OneLine)=short  ",
                "8 a(Help)=long \"q\\ joined\nkept",
                "NoValue=1",
                "GlobalLimit=5",
                "13 last= mkconst(1, type=u64)",
            ]
        );
        assert_eq!(diagnostics, ["10:7 PMD0033 \"extra\"", "8:16 PMD0033 \"junk\""]);
        let (items, _) = read("#control g=5\na = b \\\n", Dialect::Pcp6_0);
        assert_eq!(items, ["2 refused a= b \\"]);
    }

    /// Text behind a backslash keeps it from joining lines; the edit removes the text.
    #[test]
    fn backslashes_that_join_no_lines() {
        let good = "c = d \\\n + e\n";
        for text in ["c = d \\\r\n + e\n", "c = d \\  \n + e\n", "c = d \\\t\r\n + e\n"] {
            assert_eq!(crate::syntax::tests::mended(text).as_deref(), Some(good), "{text:?}");
            let (_, diagnostics) = read(text, Dialect::Fixed);
            assert_eq!(diagnostics[0], "1:7 PMD0001 \"\\\\\"", "{text:?}");
        }
        let mut sources = SourceMap::default();
        let id = sources.add("test.conf", "c = d \\\r\n + e\r\n");
        let mut found = Diagnostics::default();
        parse_definitions(id, &sources, Dialect::Fixed, &mut found);
        let told = found.without_consequences();
        assert_eq!(told.len(), 1, "{told:?}");
    }

    /// Nothing stands between the backslash and the line end.
    #[test]
    fn a_line_that_goes_on_gets_its_backslash() {
        for (text, expected) in [
            ("c = d +\n e\n", "c = d + \\\n e\n"),
            ("c = d +\r\n e\r\n", "c = d + \\\n e\r\n"),
            ("c = d + \t\r\n e\n", "c = d + \\\n e\n"),
            ("c = d + \\\n\n e\n", "c = d + \\\n e\n"),
            ("c = d + \\\n\r\n e\n", "c = d + \\\n e\n"),
            (
                "c = mkconst(1, units=\"Kbyte /\r\n sec\")\r\n",
                "c = mkconst(1, units=\"Kbyte / \\\n sec\")\r\n",
            ),
        ] {
            assert_eq!(crate::syntax::tests::mended(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn a_line_of_blanks_keeps_its_end() {
        for (text, expected) in [("a = b\r\n \r\n", "a = b\r\n\r\n"), (" \t\n", "\n")] {
            assert_eq!(crate::syntax::tests::mended(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    /// A refused text does not make the expression end too early as well.
    #[test]
    fn a_text_and_a_comment_behind_it() {
        let (_, diagnostics) = read("a.b = \"x # y\" # z\n", Dialect::Fixed);
        let mut codes: Vec<&str> =
            diagnostics.iter().filter_map(|one| one.split(' ').nth(1)).collect();
        codes.sort_unstable();
        assert_eq!(codes, ["PMD0001", "PMD0010"], "{diagnostics:?}");
    }

    #[test]
    fn every_mistake_is_reported_at_its_place() {
        let text = "\
nothing here
 = a
1a = b
a..b = c
a. = b
x y = c
a =
a = b +
ok = a + \\
 b c
ok2 = b
ok2 = c +
none(oneline) = text
ok2(onelin) = text
ok2(oneline) =
ok2(oneline = text
ok2)oneline( = text
ok2(oneline) = \"open
ok2(oneline) = x
ok2(oneline) = y
 # late
   \n\
#control foo=1,g=x
ok(oneline) = of a refused metric
ok3 = (a";
        let (items, diagnostics) = read(text, Dialect::Fixed);
        assert_eq!(
            diagnostics,
            [
                "1:1 PMD0030 \"nothing here\"",
                "2:2 PMD0030 \"=\"",
                "3:1 PMD0031 \"1\"",
                "4:3 PMD0031 \".\"",
                "5:2 PMD0031 \".\"",
                "6:2 PMD0031 \" \"",
                "7:4 PMD0030 \"\"",
                "8:8 PMD0011 \"\"",
                "10:4 PMD0010 \"c\"",
                "12:1 PMD0032 \"ok2\"",
                "13:1 PMD0033 \"none\"",
                "14:5 PMD0033 \"onelin\"",
                "15:15 PMD0033 \"\"",
                "16:4 PMD0033 \"(\"",
                "17:4 PMD0033 \")\"",
                "18:16 PMD0003 \"\\\"\"",
                "20:1 PMD0033 \"ok2\"",
                "21:2 PMD0030 \"# late\"",
                "22:1 PMD0030 \"   \"",
                "23:10 PMD0034 \"foo=1\"",
                "23:16 PMD0034 \"g=x\"",
                "25:9 PMD0012 \"\"",
            ]
        );
        let good: Vec<&String> = items.iter().filter(|item| !item.contains("refused")).collect();
        assert_eq!(good, ["11 ok2= b", "19 ok2(OneLine)=x"]);
    }
}
