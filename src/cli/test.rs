//! `pmderive test`: runs unit tests of definitions and prints their results.
//!
//! [`crate::unit_test`] reads and runs the files of tests.

use std::fmt::Write as _;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use toml::de::DeTable;

use crate::diag::Diagnostics;
use crate::engine::Backend;
use crate::escape;
use crate::project::{FILE_NAME, Folders};
use crate::syntax::{
    STANDARD_INPUT, Unreadable, counted, is_hidden, own_files_below, read_text, read_text_file,
};
use crate::text::SourceMap;
use crate::text::json::write_object;
use crate::unit_test::forms::{suite, uncovered, write_json, write_text, write_uncovered};
use crate::unit_test::{Coverage, NamedBackend, Report, read, run as run_tests};

use super::args::{FindingsFormat, LanguageArguments};
use super::exit_status::ExitStatus;
use super::findings::FindingsOutput;
use super::folders::refuse_mistakes;
use super::messages::Messages;
use super::stop::Stop;
use super::terminal::Purpose;

/// Limit of the size of a file of tests, in bytes.
const MAX_TEST_FILE_BYTES: u64 = 4 << 20;

/// Help text after the options.
const NOTES: &str = "\
A file of tests names definition files, describes metrics, and has cases. A case lists samples and
the values that are expected at each step:

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

With definitions over a fleet (fleet = [\"racks.conf\"], or fleet-definitions = '''...'''), a case has
hosts, and expects values of groups:

  [case.hosts.web1]
  labels = { rack = \"a\" }
  missed = [2]
  samples = { \"mem.free\" = \"100 200 300\" }
  [case.expect]
  \"racks.free\" = { '{rack=\"a\"}' = \"100 200 _\" }

7x3 is 7 7 7, and 10+5x3 is 10 15 20. `_` is no value, `*` is any, and x* goes on to the end.
3.3~0.1 and 3.3~1% are nearly 3.3. PM_ERR_AGAIN is a metric that fails.";

/// Arguments of `test`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct TestArguments {
    /// Choose how expressions are computed.
    #[arg(long, value_enum, default_value_t)]
    backend: TestBackend,
    /// Choose the form of the outcome.
    #[arg(long, value_enum, default_value_t)]
    format: FindingsFormat,
    /// Also report the definitions, and the branches of `?:`, that no test exercises.
    #[arg(long)]
    coverage: bool,
    /// Files of tests (TOML). A directory stands for all files of tests below it, `-` for
    /// standard input.
    #[arg(required = true, value_name = "FILE|DIRECTORY|-")]
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
pub fn run(arguments: &TestArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    let mut total = Total::default();
    let mut findings = FindingsOutput::new(arguments.format);
    let mut folders = Folders::default();
    for input in arguments.files.iter().flat_map(|path| inputs(path)) {
        match input {
            Ok(Input { path, name, text }) => {
                let file_result = test(&path, name, text, arguments, &mut folders, messages)?;
                total.count(&file_result);
                tell(file_result, &mut findings, messages)?;
            }
            Err(file) => {
                total.is_mistaken = true;
                tell_unreadable(&file, &mut findings, messages)?;
            }
        }
    }
    findings.end(messages)?;
    if arguments.format == FindingsFormat::Text {
        messages.output(Purpose::Text).print(total.summary(arguments.coverage))?;
    }
    Ok(total.outcome())
}

/// Results of a file of tests.
struct FileResult {
    /// Name of the file, escaped.
    name: String,
    /// The file's text and those of its definition files, for diagnostics.
    sources: SourceMap,
    /// Mistakes in the file itself.
    diagnostics: Diagnostics,
    /// One report per test; empty if the file cannot be run.
    reports: Vec<Report>,
    /// Coverage of the file's tests, with `--coverage`.
    coverage: Option<Coverage>,
}

/// Reads and runs a file of tests.
fn test(
    path: &Path,
    name: String,
    text: String,
    arguments: &TestArguments,
    folders: &mut Folders,
    messages: &mut Messages,
) -> Result<FileResult, Stop> {
    let mut sources = SourceMap::default();
    let source = sources.add(&*name, text);
    let mut diagnostics = Diagnostics::default();
    let directory = path.parent().unwrap_or(Path::new(""));
    let usual = LanguageArguments::default().of_file(path, folders, messages)?;
    let mut file = read(source, directory, usual, &sources, &mut diagnostics);
    if let Some(file) = &mut file {
        file.read_settings(&mut diagnostics);
        refuse_mistakes(&mut file.folders, messages)?;
    }
    let (mut reports, mut coverage) = (Vec::new(), None);
    // A mistake in the file makes the results of its tests meaningless.
    if let Some(file) = file.filter(|_| diagnostics.errors() == 0) {
        if messages.are_verbose() {
            for one in &file.files {
                messages.note(&format_args!("definitions are in {}", escape::path(&one.value)));
            }
        }
        let backends = arguments.backend.backends();
        let covers = arguments.coverage;
        let outcome = run_tests(&file, backends, covers, &mut sources, &mut diagnostics);
        outcome.warnings.iter().for_each(|warning| messages.warning(warning));
        (reports, coverage) = (outcome.reports, outcome.coverage);
    }
    Ok(FileResult { name, sources, diagnostics, reports, coverage })
}

/// Results of all files.
#[derive(Default)]
struct Total {
    /// Number of tests that passed.
    passed: usize,
    failed: usize,
    /// Pairs for definitions, then branches: the number exercised, and the number of all.
    covered: [(usize, usize); 2],
    /// True if a file has a mistake or cannot be read.
    is_mistaken: bool,
}

impl Total {
    fn count(&mut self, file_result: &FileResult) {
        let passed = file_result.reports.iter().filter(|report| report.has_passed()).count();
        self.passed += passed;
        self.failed += file_result.reports.len() - passed;
        self.is_mistaken |= file_result.diagnostics.errors() > 0;
        if let Some(coverage) = &file_result.coverage {
            let parts = [&coverage.definitions, &coverage.branches];
            for (sum, part) in self.covered.iter_mut().zip(parts) {
                let (exercised, all) = Coverage::count(part);
                *sum = (sum.0 + exercised, sum.1 + all);
            }
        }
    }

    /// The line with the number of tests, and with `coverage` the share that they exercise.
    fn summary(&self, coverage: bool) -> String {
        let mut summary = format!("{} passed, {} failed\n", self.passed, self.failed);
        if coverage {
            let [(definitions, all), (branches, both)] = self.covered;
            let all = counted(all, "definition");
            let both = match both {
                1 => "1 branch".to_owned(),
                _ => format!("{both} branches"),
            };
            let _ = writeln!(summary, "exercised: {definitions} of {all}, {branches} of {both}");
        }
        summary
    }

    /// The exit status. A mistake in a file weighs more than a failed test.
    fn outcome(&self) -> ExitStatus {
        match (self.is_mistaken, self.failed) {
            (true, _) => ExitStatus::Mistake,
            (false, 0) => ExitStatus::Good,
            (false, _) => ExitStatus::Failed,
        }
    }
}

/// Prints the results of a file, or keeps them for the document.
fn tell(
    file_result: FileResult,
    findings: &mut FindingsOutput,
    messages: &mut Messages,
) -> Result<(), Stop> {
    let FileResult { name, sources, diagnostics, reports, coverage } = file_result;
    findings.diagnostics(diagnostics, &sources, messages)?;
    let missing = coverage.as_ref().map(Coverage::missing).unwrap_or_default();
    let mut out = String::new();
    match findings.format {
        FindingsFormat::Text => {
            let mut output = messages.output(Purpose::Text);
            let escaping = output.escaping();
            write_text(&mut out, &name, &reports, &sources, escaping, messages.are_quiet());
            for one in missing {
                let place = sources.place(one.span).unwrap_or_default();
                let line = format!("{place}: {}: {}", one.name, one.what);
                let _ = writeln!(out, "  {}", escaping.text(&line));
            }
            output.print(&out)
        }
        FindingsFormat::Json => {
            reports.iter().for_each(|report| write_json(&mut out, &name, report, &sources));
            missing.into_iter().for_each(|one| write_uncovered(&mut out, one, &sources));
            messages.output(Purpose::Exact).print(&out)
        }
        _ => {
            let report = &mut findings.report;
            report.findings.extend(missing.into_iter().map(|one| uncovered(one, &sources)));
            report.suites.push(suite(&name, &reports, &sources));
            Ok(())
        }
    }
}

/// Reports a file that cannot be read; in JSON as an object on one line.
fn tell_unreadable(
    file: &Unreadable,
    findings: &mut FindingsOutput,
    messages: &Messages,
) -> Result<(), Stop> {
    findings.unreadable(file, messages);
    let kept = findings.report.findings.last();
    let Some(finding) = kept.filter(|_| findings.format == FindingsFormat::Json) else {
        return Ok(());
    };
    let mut out = String::new();
    write_object(&mut out, |object| {
        object.text("kind", &finding.kind);
        object.text("file", &finding.file);
        object.text("message", &finding.message);
    });
    messages.output(Purpose::Exact).print(out + "\n")
}

/// The input of one run: a file of tests.
struct Input {
    /// The path whose folder has the settings.
    path: PathBuf,
    /// Name of the file in messages.
    name: String,
    text: String,
}

/// The inputs of an argument: a file, all files of tests below a directory, or standard input.
/// Each file is read in its turn.
fn inputs(path: &Path) -> Box<dyn Iterator<Item = Result<Input, Unreadable>>> {
    if path == Path::new("-") {
        return Box::new(iter::once(match read_text(io::stdin().lock(), MAX_TEST_FILE_BYTES) {
            Ok(text) => Ok(Input { path: "./-".into(), name: STANDARD_INPUT.to_owned(), text }),
            Err(reason) => Err(Unreadable { path: STANDARD_INPUT.into(), reason }),
        }));
    }
    if !path.is_dir() {
        return Box::new(iter::once(read_file(path.to_owned())));
    }
    let files = own_files_below(path, may_have_tests).into_iter();
    let read = files.map(|file| file.and_then(read_file));
    let mut read =
        read.filter(|read| read.as_ref().map_or(true, |input| has_tests(&input.text))).peekable();
    if read.peek().is_some() {
        return Box::new(read);
    }
    let reason = "no file of tests (TOML with `[[case]]`) is below this directory".to_owned();
    Box::new(iter::once(Err(Unreadable { path: path.to_owned(), reason })))
}

/// True if a file or directory may have tests, by its name. Hidden ones and settings have none.
fn may_have_tests(path: &Path) -> bool {
    let is_settings = || path.file_name().is_some_and(|name| name == FILE_NAME);
    let is_file = || path.extension().is_some_and(|end| end == "toml") && !is_settings();
    !is_hidden(path) && (path.is_dir() || is_file())
}

/// True for a text with tests, even if they have mistakes or it is no TOML.
fn has_tests(text: &str) -> bool {
    let begins = |key: &str| ["case", "rejected"].iter().any(|word| key.starts_with(word));
    match DeTable::parse(text) {
        Ok(table) => table.get_ref().keys().any(|key| begins(key.get_ref())),
        Err(_) => {
            text.lines().any(|line| begins(line.trim_start_matches(['[', ' ', '\t', '"', '\''])))
        }
    }
}

fn read_file(path: PathBuf) -> Result<Input, Unreadable> {
    match read_text_file(&path, MAX_TEST_FILE_BYTES) {
        Ok(text) => Ok(Input { name: escape::path(&path).into_owned(), path, text }),
        Err(reason) => Err(Unreadable { path, reason }),
    }
}
