//! `pmderive test`: runs unit tests of definitions and prints what came of them.
//!
//! Files of tests are read and run by [`crate::unit_test`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::diag::Diagnostics;
use crate::diag::json::to_json;
use crate::engine::Backend;
use crate::escape;
use crate::report::json::{add_why, write_object};
use crate::text::SourceMap;
use crate::unit_test::{Failure, NamedBackend, Report, read, run as run_tests};

use super::messages::Messages;
use super::terminal::{Purpose, RawArgument};
use super::{Outcome, Stop};
use crate::text::Escaping;

/// Largest file of tests that is read, in bytes.
const MAX_TEST_FILE_BYTES: u64 = 4 << 20;

/// Said after the options.
const NOTES: &str = "\
A file of tests has definitions or the names of their files, metrics, and cases: samples and what
is expected, step by step. For example:

  files = [\"shop.conf\"]
  interval = \"10 sec\"
  [metrics]
  \"disk.dev.total\" = { type = \"u64\", semantics = \"counter\", units = \"count\", indom = \"disks\" }

  [[case]]
  name = \"a disk that comes later\"
  [case.samples]
  \"disk.dev.total\" = { sda = \"100+50x4\", sdb = \"_x2 7 9\" }
  [case.expect]
  \"shop.rate\" = { sda = \"none(first-sample) 5x3\", sdb = \"_x3 0.2~0.001\" }

7x3 is 7 7 7, 10+5x3 is 10 15 20, _ is no value, x* goes to the end, PM_ERR_AGAIN is a metric that
fails, * is anything, 3.3~0.1 and 3.3~1% are nearly 3.3.";

/// Arguments of `test`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct TestArguments {
    /// How expressions are computed.
    #[arg(long, value_enum, default_value_t)]
    backend: TestBackend,
    /// Form of the outcome.
    #[arg(long, value_enum, default_value_t)]
    format: TestFormat,
    /// Text of others as it is.
    #[command(flatten)]
    pub raw: RawArgument,
    /// Files of tests.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// How expressions are computed in tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TestBackend {
    /// By interpretation and by native code, which have to agree.
    #[default]
    Both,
    /// By native code.
    Jit,
    /// By interpretation.
    Interp,
}

/// Forms of the outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TestFormat {
    /// A line for each test, and what differs.
    #[default]
    Text,
    /// One object for each test or mistake, on one line.
    Json,
}

impl TestBackend {
    fn backends(self) -> &'static [NamedBackend] {
        const INTERP: NamedBackend = ("interp", Backend::Interp);
        const JIT: NamedBackend = ("jit", Backend::Jit);
        match self {
            TestBackend::Both => &[INTERP, JIT],
            TestBackend::Jit => &[JIT],
            TestBackend::Interp => &[INTERP],
        }
    }
}

/// Runs the command.
pub fn run(arguments: &TestArguments, messages: &mut Messages) -> Result<Outcome, Stop> {
    let purpose = match arguments.format {
        TestFormat::Text => Purpose::Text,
        TestFormat::Json => Purpose::Exact,
    };
    let escaping = messages.output(purpose).escaping();
    let mut outcome = Outcome::Good;
    let (mut passed, mut failed) = (0, 0);
    for path in &arguments.files {
        let bytes = match read_file(path) {
            Ok(text) => text,
            Err(reason) => {
                messages.error(&format_args!("cannot read {}: {reason}", escape::path(&path)));
                outcome = outcome.max(Outcome::Mistake);
                continue;
            }
        };
        let name = escape::path(&path).into_owned();
        let mut sources = SourceMap::default();
        let source = sources.add(&*name, bytes);
        let mut diagnostics = Diagnostics::default();
        let directory = path.parent().unwrap_or(Path::new(""));
        let file = read(source, directory, &sources, &mut diagnostics);
        let mut reports = Vec::new();
        if let Some(file) = file.filter(|_| diagnostics.errors() == 0) {
            let backends = arguments.backend.backends();
            let outcome = run_tests(&file, backends, &mut sources, &mut diagnostics);
            outcome.warnings.iter().for_each(|warning| messages.warning(warning));
            reports = outcome.reports;
        }
        for report in &reports {
            match report.has_passed() {
                true => passed += 1,
                false => failed += 1,
            }
        }
        if diagnostics.errors() > 0 {
            outcome = outcome.max(Outcome::Mistake);
        }
        let mut out = String::new();
        match arguments.format {
            TestFormat::Text => {
                write_text(&mut out, &name, &reports, &sources, escaping);
                messages.diagnostics(diagnostics, &sources);
            }
            TestFormat::Json => {
                diagnostics.sort();
                for diagnostic in &diagnostics {
                    let _ = writeln!(out, "{}", to_json(diagnostic, &sources));
                }
                for report in &reports {
                    write_json(&mut out, &name, report, &sources);
                }
            }
        }
        messages.output(purpose).print(&out)?;
    }
    if arguments.format == TestFormat::Text {
        messages.output(purpose).print(format!("{passed} passed, {failed} failed\n"))?;
    }
    Ok(if failed > 0 { outcome.max(Outcome::Failed) } else { outcome })
}

fn read_file(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(MAX_TEST_FILE_BYTES + 1).read_to_string(&mut text);
    match read {
        Ok(length) if u64::try_from(length).is_ok_and(|length| length > MAX_TEST_FILE_BYTES) => {
            Err(format!("larger than {MAX_TEST_FILE_BYTES} bytes"))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}

/// What is the same for failures that belong together.
fn heading(failure: &Failure) -> String {
    match failure.step {
        None => failure.metric.to_string(),
        Some((step, time)) => format!("{} at step {step} ({})", failure.metric, seconds(time)),
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

fn write_text(
    out: &mut String,
    file: &str,
    reports: &[Report],
    sources: &SourceMap,
    escaping: Escaping,
) {
    let _ = writeln!(out, "{}", escaping.text(file));
    for report in reports {
        let name = escaping.text(&report.name.text);
        if report.has_passed() {
            let _ = writeln!(out, "  passed  {name}");
            continue;
        }
        let (line, _) = sources.line_column(report.name.span.source, report.name.span.start);
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

fn write_json(out: &mut String, file: &str, report: &Report, sources: &SourceMap) {
    let (line, _) = sources.line_column(report.name.span.source, report.name.span.start);
    write_object(out, |object| {
        object.text("file", file);
        object.value("line", line);
        object.text("test", &report.name.text);
        object.value("passed", report.has_passed());
        object.list("failures", &report.failures, |out, failure| {
            write_object(out, |object| {
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
        });
        object.value("omitted", report.omitted);
    });
    out.push('\n');
}
