//! XML as JUnit writes it, which every system for continuous integration reads.
//!
//! Each file is a suite. Its tests are those of the file, or else its findings. A file without
//! findings has one test, which has passed. So has a warning, which is in the test's output.

use std::fmt::Write as _;

use super::{Finding, Report, Suite, Test};
use crate::diag::Severity;

/// One document.
pub fn to_junit(report: &Report) -> String {
    let mut suites: Vec<Suite> = Vec::new();
    let mut of_file = |file: &str| {
        let known = suites.iter().position(|suite| suite.file == file);
        known.unwrap_or_else(|| {
            suites.push(Suite { file: file.to_owned(), tests: Vec::new() });
            suites.len() - 1
        })
    };
    let mut entries: Vec<(usize, Option<Test>)> = Vec::new();
    for file in &report.files {
        entries.push((of_file(file), None));
    }
    for Finding { kind, severity, message, file, start, .. } in &report.findings {
        let name = format!("{kind} {}:{}", start.line, start.column);
        let words = Some(format!("{}: {message}", severity.word()));
        let (failure, warning) = match severity {
            Severity::Error => (words, None),
            Severity::Warning => (None, words),
        };
        entries.push((of_file(file), Some(Test { name, line: start.line, failure, warning })));
    }
    for suite in &report.suites {
        let at = of_file(&suite.file);
        entries.extend(suite.tests.iter().map(|test| (at, Some(test.clone()))));
    }
    for (at, test) in entries {
        suites[at].tests.extend(test);
    }
    let failures = |suite: &Suite| suite.tests.iter().filter(|one| one.failure.is_some()).count();
    for suite in &mut suites {
        if suite.tests.is_empty() {
            let name = "no mistakes".to_owned();
            suite.tests.push(Test { name, line: 1, failure: None, warning: None });
        }
    }
    let (tests, failed) = suites
        .iter()
        .fold((0, 0), |(tests, failed), one| (tests + one.tests.len(), failed + failures(one)));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"pmderive\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\">"
    );
    for suite in &suites {
        let file = escaped(&suite.file);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{file}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\">",
            suite.tests.len(),
            failures(suite)
        );
        for Test { name, line, failure, warning } in &suite.tests {
            let start = format!(
                "    <testcase name=\"{}\" classname=\"{file}\" file=\"{file}\" line=\"{line}\"",
                escaped(name)
            );
            let _ = match (failure, warning) {
                (None, None) => writeln!(out, "{start}/>"),
                (None, Some(text)) => writeln!(
                    out,
                    "{start}>\n      <system-out>{}</system-out>\n    </testcase>",
                    escaped(text)
                ),
                (Some(text), _) => {
                    let first = escaped(text.lines().next().unwrap_or_default());
                    writeln!(
                        out,
                        "{start}>\n      <failure message=\"{first}\">{}</failure>\n    </testcase>",
                        escaped(text.trim_end())
                    )
                }
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// A text for XML, without the characters that XML forbids.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn suites_of_files() {
        let text = to_junit(&example());
        for part in [
            "<testsuites name=\"pmderive\" tests=\"5\" failures=\"2\" errors=\"0\">",
            "<testsuite name=\"a dir/x,y.conf\" tests=\"2\" failures=\"1\"",
            "<testcase name=\"PMD0010 2:5\"",
            "100% &quot;wrong&quot; &lt;here&gt; &amp; there; a:b,&#10;c",
            "<system-out>warning: a warning\u{fffd}</system-out>",
            "<testcase name=\"no mistakes\" classname=\"good.conf\" file=\"good.conf\" line=\"1\"/>",
            "got 2 ]]&gt;</failure>",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
