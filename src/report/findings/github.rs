//! Workflow commands of GitHub, which become annotations at the lines of a pull
//! request.

use std::fmt::Write as _;

use super::{Finding, Position, Report};

/// A line for each finding and each test that has failed.
pub fn to_github(report: &Report) -> String {
    let mut out = String::new();
    for Finding { kind, severity, message, file, start, end, .. } in &report.findings {
        let command = severity.word();
        // An end column counts only on the line of the first one.
        let ends = match (start.line == end.line, end) {
            (true, Position { column, .. }) if *column > start.column => {
                format!(",endColumn={column}")
            }
            (true, _) => String::new(),
            (false, Position { line, .. }) => format!(",endLine={line}"),
        };
        let _ = writeln!(
            out,
            "::{command} file={},line={},col={}{ends},title={}::{}",
            property(file),
            start.line,
            start.column,
            property(kind),
            data(message)
        );
    }
    for suite in &report.suites {
        for test in &suite.tests {
            let Some(failure) = &test.failure else { continue };
            let _ = writeln!(
                out,
                "::error file={},line={},title={}::{}",
                property(&suite.file),
                test.line,
                property(&test.name),
                data(failure.trim_end())
            );
        }
    }
    out
}

/// The text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which ends at a comma or colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn what_ends_a_command_is_escaped() {
        let text = to_github(&example());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "::warning file=a dir/x%2Cy.conf,line=1,col=5,endColumn=6,title=PMD0301::a warning\u{1}",
                "::error file=a dir/x%2Cy.conf,line=2,col=5,endColumn=9,title=PMD0010::\
                 100%25 \"wrong\" <here> & there; a:b,%0Ac",
                "::error file=t.toml,line=9,title=a \"test\" & more::x at step 1%0A  \
                 expected 1, got 2 ]]>",
            ]
        );
    }
}
