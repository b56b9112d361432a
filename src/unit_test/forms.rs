//! The results of tests in the forms that `test` prints: text, lines of JSON, and suites for the
//! forms that are one document.

use std::fmt::Write as _;
use std::time::Duration;

use super::coverage::CoverageItem;
use super::report::{Failure, Report};
use crate::diag::{Code, Diagnostic};
use crate::report::findings::{Finding, Suite, Test};
use crate::report::json::add_why;
use crate::text::json::write_object;
use crate::text::{Escaping, SourceMap};

/// Writes the results of a file's tests as text. With `is_quiet` only failed tests are written.
pub fn write_text(
    out: &mut String,
    file: &str,
    reports: &[Report],
    sources: &SourceMap,
    escaping: Escaping,
    is_quiet: bool,
) {
    if is_quiet && reports.iter().all(Report::has_passed) {
        return;
    }
    let _ = writeln!(out, "{}", escaping.text(file));
    for report in reports {
        let name = escaping.text(&report.name.text);
        if report.has_passed() && is_quiet {
            continue;
        }
        if report.has_passed() {
            let _ = writeln!(out, "  passed  {name}");
            continue;
        }
        let (line, _) = sources.start_of(report.name.span);
        let _ = writeln!(out, "  FAILED  {name} (line {line})");
        let mut before = None;
        for failure in &report.failures {
            let heading = heading(failure);
            if before.as_ref() != Some(&heading) {
                let _ = writeln!(out, "    {}", escaping.text(&heading));
                before = Some(heading);
            }
            let _ = writeln!(out, "      {}", escaping.text(&difference(failure)));
        }
        if report.omitted > 0 {
            let _ = writeln!(out, "    and {} more", report.omitted);
        }
    }
}

/// Writes the result of a test as an object on one line.
pub fn write_json(out: &mut String, file: &str, report: &Report, sources: &SourceMap) {
    let (line, _) = sources.start_of(report.name.span);
    write_object(out, |object| {
        object.text("file", file);
        object.value("line", line);
        object.text("test", &report.name.text);
        object.value("passed", report.has_passed());
        object.objects("failures", &report.failures, |object, failure| {
            object.text("metric", &failure.metric);
            if let Some((step, time)) = failure.step {
                object.value("step", step);
                object.value("seconds", time.as_secs_f64());
            }
            if let Some(instance) = &failure.instance {
                object.text("instance", instance);
            }
            object.text("expected", &failure.expected);
            object.text("got", &failure.got);
            if let Some(why) = &failure.why {
                add_why(object, why.reason, &why.text);
            }
        });
        object.value("omitted", report.omitted);
    });
    out.push('\n');
}

/// Writes a definition or branch that no test exercises as an object on one line.
pub fn write_uncovered(out: &mut String, one: &CoverageItem, sources: &SourceMap) {
    let (line, column) = sources.start_of(one.span);
    write_object(out, |object| {
        object.text("file", &sources.get(one.span.source).name);
        object.value("line", line);
        object.value("column", column);
        object.text("metric", &one.name);
        object.text("uncovered", &one.what);
    });
    out.push('\n');
}

/// The results of a file's tests for JUnit, with differences as lines.
pub fn suite(file: &str, reports: &[Report], sources: &SourceMap) -> Suite {
    let test = |report: &Report| {
        let (line, _) = sources.start_of(report.name.span);
        let mut text = String::new();
        for failure in &report.failures {
            let _ = writeln!(text, "{}: {}", heading(failure), difference(failure));
        }
        if report.omitted > 0 {
            let _ = writeln!(text, "and {} more", report.omitted);
        }
        let failure = (!report.has_passed()).then_some(text);
        Test { name: report.name.text.to_string(), line, failure, warning: None }
    };
    Suite { file: file.to_owned(), tests: reports.iter().map(test).collect() }
}

/// The finding for a definition or branch that no test exercises.
pub fn uncovered(one: &CoverageItem, sources: &SourceMap) -> Finding {
    let message = format!("{}: {}", one.name, one.what);
    // Only the place and the words matter.
    let diagnostic = Diagnostic::warning(Code::BadTestFile, one.span, message);
    Finding { kind: "coverage".to_owned(), ..Finding::of(&diagnostic, sources) }
}

/// The heading that failures of one group share.
fn heading(failure: &Failure) -> String {
    match failure.step {
        None => failure.metric.to_string(),
        Some((step, time)) => format!("{} at step {step} ({})", failure.metric, seconds(time)),
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

fn difference(failure: &Failure) -> String {
    let Failure { instance, expected, got, why, .. } = failure;
    let mut line = match instance {
        Some(instance) => format!("{instance}: "),
        None => String::new(),
    };
    let _ = write!(line, "expected {expected}, got {got}");
    if let Some(why) = why {
        let _ = write!(line, ": {}", why.text);
    }
    line
}
