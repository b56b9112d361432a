//! Findings of checks and tests, in the forms that systems for continuous
//! integration read: SARIF, JUnit and the annotations of GitHub.
//!
//! ```text
//! diagnostics ──► Finding ─┬─► sarif
//! tests ─────────► Suite ──┼─► junit
//!                          └─► github
//! ```
//!
//! A finding has a place: file, line and column, both from 1, columns in
//! characters. Nothing here reads files or writes to streams.

mod github;
mod junit;
mod sarif;

pub use github::to_github;
pub use junit::to_junit;
pub use sarif::to_sarif;

use crate::diag::{Diagnostic, Diagnostics, Severity};
use crate::text::{SourceMap, Span, stray};

/// A mistake with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind: the code of a diagnostic, or a word such as `format`.
    pub kind: String,
    /// Its severity.
    pub severity: Severity,
    /// The mistake and advice, on one line.
    pub message: String,
    /// The file.
    pub file: String,
    /// Place of its first character.
    pub start: Position,
    /// Place of the first character behind it.
    pub end: Position,
    /// An edit that fixes it.
    pub edit: Option<Edit>,
}

/// Line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// A text that replaces another.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Start of the replaced text.
    pub start: Position,
    /// End of the replaced text.
    pub end: Position,
    /// The text.
    pub text: String,
}

/// Results of the tests of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suite {
    /// The file.
    pub file: String,
    /// Its tests.
    pub tests: Vec<Test>,
}

/// Result of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// Its line in the file, from 1.
    pub line: usize,
    /// The differences, line by line; `None` if it has passed.
    pub failure: Option<String>,
    /// A warning of a test that has passed.
    pub warning: Option<String>,
}

/// Findings and results that are reported together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// All findings.
    pub findings: Vec<Finding>,
    /// Results of tests, by file.
    pub suites: Vec<Suite>,
    /// All files that were checked, with or without findings.
    pub files: Vec<String>,
}

impl Report {
    /// Adds diagnostics, in the order of their texts.
    pub fn add(&mut self, mut diagnostics: Diagnostics, sources: &SourceMap) {
        diagnostics.sort();
        self.findings.extend(diagnostics.iter().map(|one| Finding::of(one, sources)));
    }
}

impl Finding {
    /// A finding about a file as a whole.
    pub fn of_file(kind: &str, file: &str, message: String) -> Finding {
        let start = Position { line: 1, column: 1 };
        let (kind, file) = (kind.to_owned(), plain(file));
        let severity = Severity::Error;
        let message = plain(&message);
        Finding { kind, severity, message, file, start, end: start, edit: None }
    }

    /// A diagnostic as a finding.
    pub fn of(diagnostic: &Diagnostic, sources: &SourceMap) -> Finding {
        let (start, end) = ends(diagnostic.span, sources);
        let message = match &diagnostic.help {
            Some(help) => format!("{}; {help}", diagnostic.message),
            None => diagnostic.message.clone(),
        };
        let edit = diagnostic.fix.as_ref().filter(|fix| fix.span.source == diagnostic.span.source);
        Finding {
            kind: diagnostic.code.to_string(),
            severity: diagnostic.severity,
            message: plain(&message),
            file: plain(&sources.get(diagnostic.span.source).name),
            start,
            end,
            edit: edit.map(|fix| {
                let (start, end) = ends(fix.span, sources);
                Edit { start, end, text: plain(&fix.text) }
            }),
        }
    }
}

fn ends(span: Span, sources: &SourceMap) -> (Position, Position) {
    let position = |offset| {
        let (line, column) = sources.line_column(span.source, offset);
        Position { line, column }
    };
    (position(span.start), position(span.end))
}

/// The text, without characters that stand for raw bytes.
fn plain(text: &str) -> String {
    stray::replaced(text).into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::diag::Code;

    /// One of each kind, with characters that each form has to escape.
    pub(crate) fn example() -> Report {
        let mut sources = SourceMap::default();
        let source = sources.add("a dir/x,y.conf", "a = b\n\u{e9} = rate(mem.util.free)\n");
        let mut diagnostics = Diagnostics::default();
        let at = |start, end| Span::new(source, start, end);
        diagnostics.push(
            Diagnostic::error(Code::UnexpectedToken, at(11, 15), "100% \"wrong\" <here> & there")
                .help("a:b,\nc")
                .fix(at(11, 15), "delta"),
        );
        diagnostics.push(Diagnostic::warning(Code::GaugeDelta, at(4, 5), "a warning\u{1}"));
        let mut report = Report::default();
        report.add(diagnostics, &sources);
        report.files = vec!["a dir/x,y.conf".to_owned(), "good.conf".to_owned()];
        report.suites.push(Suite {
            file: "t.toml".to_owned(),
            tests: vec![
                Test { name: "works".to_owned(), line: 3, failure: None, warning: None },
                Test {
                    name: "a \"test\" & more".to_owned(),
                    line: 9,
                    failure: Some("x at step 1\n  expected 1, got 2 ]]>\n".to_owned()),
                    warning: None,
                },
            ],
        });
        report
    }

    #[test]
    fn places_count_characters() {
        let report = example();
        let place = |one: &Finding| (one.start.line, one.start.column, one.end.column);
        let places: Vec<_> = report.findings.iter().map(place).collect();
        assert_eq!(places, [(1, 5, 6), (2, 5, 9)]);
    }
}
