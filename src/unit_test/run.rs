//! Runs the tests of a file.
//!
//! Each case has a source and contexts of its own, one for each way to
//! compute; what the first gives is compared with what is expected, and what
//! the others give with the first. Definitions of this machine are not looked
//! at, so that a test has the same outcome everywhere.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::eval::Workspace;
use pmderive_runtime::memory::MemorySource;
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::program::Status;

use crate::diag::{Code, Diagnostic, Diagnostics, EXPRESSION, Severity};
use crate::engine::{Backend, Context, Engine, Metric, Registered, Registry};
use crate::source::{SourceMap, Span};
use crate::syntax::ast::Spanned;
use crate::syntax::{Unreadable, definition_files, nearest, read_definition_file};

use super::compare::{Got, Mismatch, Why, compare};
use super::file::{Case, Expected, Rejected, Subject, TestFile};
use super::series::{self, Source};

/// Most differences of one case that are kept.
const MAX_FAILURES: usize = 50;

/// A way to compute, with its name.
pub type NamedBackend = (&'static str, Backend);

/// What came of one test.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the test, and where it stands.
    pub name: Spanned<Box<str>>,
    /// Differences, the first ones. Without any, the test has passed.
    pub failures: Vec<Failure>,
    /// How many differences there are besides.
    pub omitted: usize,
}

/// A difference between what is expected and what there is.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The metric or expression.
    pub metric: Box<str>,
    /// The step, and its time since the first.
    pub step: Option<(usize, Duration)>,
    /// The instance; of the metric as a whole without one.
    pub instance: Option<Box<str>>,
    /// What was expected.
    pub expected: String,
    /// What there is.
    pub got: String,
    /// Why there is no value.
    pub why: Option<Why>,
}

/// Runs all tests of a file. What is wrong with its definitions is reported,
/// unless that is what a test is about.
pub fn run(
    file: &TestFile,
    backends: &[NamedBackend],
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<Report> {
    let mut registry = Registry::new(file.language);
    let mut found = Diagnostics::default();
    add_definitions(file, &mut registry, sources, &mut found);
    let mut tester = Tester { file, registry, sources, engines: Vec::new(), found: found.clone() };
    for (name, backend) in backends {
        tester.engines.push((name, Arc::new(Engine::new(file.language, *backend))));
    }
    let mut reports = Vec::new();
    for case in &file.cases {
        let report = tester.case(case, diagnostics);
        reports.push(report);
    }
    for rejected in &file.rejected {
        let report = tester.rejected(rejected, diagnostics);
        reports.push(report);
    }
    // Mistakes that a test asks for are none of the file's.
    let wanted: HashSet<&str> = file
        .rejected
        .iter()
        .filter_map(|rejected| match &rejected.subject {
            Subject::Definition(name) => Some(&*name.value),
            Subject::Expression(..) => None,
        })
        .collect();
    let is_wanted =
        |one: &Diagnostic| one.metric.as_deref().is_some_and(|name| wanted.contains(name));
    diagnostics.extend(found.into_iter().filter(|one| !is_wanted(one)));
    reports
}

fn add_definitions(
    file: &TestFile,
    registry: &mut Registry,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) {
    for path in &file.files {
        let mut unreadable = |Unreadable { path: at, reason }: Unreadable| {
            let message = format!("cannot read {}: {reason}", at.display());
            diagnostics.push(Diagnostic::error(Code::BadTestFile, path.span, message));
        };
        let mut texts = Vec::new();
        for found in definition_files(&path.value) {
            let read = found.and_then(|path| match read_definition_file(&path) {
                Ok(bytes) => Ok((path, bytes)),
                Err(reason) => Err(Unreadable { path, reason }),
            });
            match read {
                Ok((path, bytes)) => {
                    let text = String::from_utf8_lossy(&bytes);
                    texts.push(sources.add(path.to_string_lossy(), text));
                }
                Err(error) => unreadable(error),
            }
        }
        for text in texts {
            registry.add_text(text, sources, diagnostics);
        }
    }
    if let Some(definitions) = &file.definitions {
        // Empty lines before them, which say nothing, give lines their numbers
        // in the file.
        let start = definitions.span.start;
        let (line, _) = sources.line_column(file.source, start);
        let written = sources.slice(definitions.span);
        let first = written.find(&*definitions.value).unwrap_or(0);
        let before = written[..first].matches('\n').count();
        let text = "\n".repeat(line - 1 + before) + &definitions.value;
        let name = Arc::clone(&sources.get(file.source).name);
        let text = sources.add(name, text);
        registry.add_text(text, sources, diagnostics);
    }
}

/// What the tests of a file have in common.
struct Tester<'t> {
    file: &'t TestFile,
    registry: Registry,
    sources: &'t mut SourceMap,
    engines: Vec<(&'static str, Arc<Engine>)>,
    /// What is wrong with the texts of the definitions.
    found: Diagnostics,
}

/// A context of a case.
struct Running<'c> {
    backend: &'static str,
    context: Context<Source<'c>>,
    workspace: Workspace,
}

impl<'t> Tester<'t> {
    fn case(&mut self, case: &'t Case, diagnostics: &mut Diagnostics) -> Report {
        let mut report = Report { name: case.name.clone(), failures: Vec::new(), omitted: 0 };
        let mut selection = Vec::new();
        let mut expected: Vec<&Expected> = Vec::new();
        for one in &case.expected {
            if let Some(registered) = self.registered(&one.text, one.content, diagnostics) {
                selection.push(registered);
                expected.push(one);
            } else {
                report.add(&one.text.value, None, unusable("the text of the expression is wrong"));
            }
        }
        let selection: Vec<&Registered> = selection.iter().map(|one| &**one).collect();
        let mut running = Vec::new();
        let mut mistakes = Vec::new();
        for (backend, engine) in &self.engines {
            let mut found = Diagnostics::default();
            let source = series::source(self.file, case);
            let engine = Arc::clone(engine);
            match Context::new(engine, source, &self.registry, &selection, &mut found) {
                Ok(context) => {
                    running.push(Running { backend, context, workspace: Workspace::default() });
                }
                // Metadata is in memory.
                Err(error) => report.add("", None, unusable(&error.to_string())),
            }
            mistakes = selection.iter().map(|one| mistake(one, &found)).collect();
        }
        for step in 0..case.steps {
            let at = (step, series::time_of(case, step));
            let mut first: Vec<String> = Vec::new();
            for (position, Running { backend, context, workspace }) in
                running.iter_mut().enumerate()
            {
                let sample = context.fetch(workspace);
                let failed = match &sample {
                    Err(error) => Some(error.status()),
                    Ok(_) => None,
                };
                let sample = sample.ok();
                for (index, expected) in expected.iter().enumerate() {
                    let metric = sample.as_ref().map(|sample| &sample.metrics[index]);
                    let got = match (&sample, metric) {
                        (
                            Some(sample),
                            Some(Metric { desc: Ok(desc), output: Some(output), .. }),
                        ) => {
                            let values = sample.values.get(*output);
                            let instances = desc.indom.and_then(|i| self.file.instances.get(&i));
                            match values.status {
                                Status::Values => {
                                    Got::Values(values, instances.map_or(&[][..], |names| names))
                                }
                                Status::Empty(reason) => Got::Empty(reason),
                                Status::Failed(status) => Got::Failed(status, None),
                            }
                        }
                        (Some(_), Some(Metric { desc: Err(status), .. })) => {
                            Got::Failed(*status, mistakes[index].as_deref())
                        }
                        _ => Got::Failed(failed.unwrap_or(PmStatus::BOTCH), None),
                    };
                    if position == 0 {
                        for mismatch in compare(expected, step, got) {
                            report.add(&expected.text.value, Some(at), mismatch);
                        }
                        first.push(if self.engines.len() > 1 {
                            got.digest()
                        } else {
                            String::new()
                        });
                    } else if first[index] != got.digest() {
                        report.add(
                            &expected.text.value,
                            Some(at),
                            Mismatch {
                                instance: None,
                                expected: format!("{} from both ways to compute", first[index]),
                                got: format!("{} from {backend}", got.digest()),
                                why: None,
                            },
                        );
                    }
                }
            }
        }
        report
    }

    /// The definition of a name, or an expression.
    fn registered(
        &mut self,
        text: &Spanned<Box<str>>,
        content: Option<u32>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Arc<Registered>> {
        if let Some(definition) = self.registry.definition(text.value.trim()) {
            return Some(Arc::clone(definition));
        }
        let length = u32::try_from(text.value.len()).ok()?;
        let place = match content {
            Some(start) => Span::new(self.file.source, start, start + length),
            None => Span::new(self.sources.add(EXPRESSION, &*text.value), 0, length),
        };
        self.registry.parse_within(place, self.sources, diagnostics).ok().map(Arc::new)
    }

    fn rejected(&mut self, rejected: &Rejected, diagnostics: &mut Diagnostics) -> Report {
        let mut report = Report { name: rejected.name.clone(), failures: Vec::new(), omitted: 0 };
        let mut found = Diagnostics::default();
        let (subject, registered) = match &rejected.subject {
            Subject::Definition(name) => {
                let of_name = |one: &&Diagnostic| one.metric.as_deref() == Some(&*name.value);
                found.extend(self.found.iter().filter(of_name).cloned());
                let registered = self.registry.definition(&name.value).cloned();
                if registered.is_none() && found.is_empty() {
                    let message = format!("there is no definition of `{}`", name.value);
                    let mut diagnostic = Diagnostic::error(Code::BadTestFile, name.span, message);
                    if let Some(meant) = nearest(&name.value, self.registry.names()) {
                        diagnostic = diagnostic.help(format!("did you mean `{meant}`?"));
                    }
                    diagnostics.push(diagnostic);
                }
                (&name.value, registered)
            }
            Subject::Expression(text, content) => {
                (&text.value, self.registered(text, *content, &mut found))
            }
        };
        if let (Some(registered), Some((_, engine))) = (registered, self.engines.first()) {
            let metadata = self.file.metadata.clone();
            let mut source = MemorySource::new("the metrics of the test", metadata, ());
            let compiled = engine.compile(&self.registry, &[&registered], &mut source, &mut found);
            if let Err(error) = compiled {
                report.add(subject, None, unusable(&error.to_string()));
            }
        }
        let errors: Vec<&Diagnostic> =
            found.iter().filter(|one| one.severity == Severity::Error).collect();
        if !errors.iter().any(|error| error.code == rejected.code) {
            let got: Vec<String> =
                errors.iter().map(|error| format!("{}: {}", error.code, error.message)).collect();
            report.add(
                subject,
                None,
                Mismatch {
                    instance: None,
                    expected: format!("{}", rejected.code),
                    got: if got.is_empty() { "no error".to_owned() } else { got.join("; ") },
                    why: None,
                },
            );
        }
        report
    }
}

impl Report {
    /// True if nothing differs.
    pub fn has_passed(&self) -> bool {
        self.failures.is_empty()
    }

    fn add(&mut self, metric: &str, step: Option<(usize, Duration)>, mismatch: Mismatch) {
        if self.failures.len() == MAX_FAILURES {
            self.omitted += 1;
            return;
        }
        let Mismatch { instance, expected, got, why } = mismatch;
        self.failures.push(Failure { metric: metric.into(), step, instance, expected, got, why });
    }
}

fn unusable(why: &str) -> Mismatch {
    Mismatch { instance: None, expected: "values".to_owned(), got: why.to_owned(), why: None }
}

/// What is wrong with a definition or expression, if anything is.
fn mistake(one: &Registered, found: &Diagnostics) -> Option<String> {
    let concerns = |diagnostic: &&Diagnostic| match (&diagnostic.metric, one.is_named) {
        (Some(name), true) => *name == one.name,
        (None, false) => {
            let (place, whole) = (diagnostic.span, one.name_span);
            place.source == whole.source && (whole.start..=whole.end).contains(&place.start)
        }
        _ => false,
    };
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.filter(concerns).map(|one| format!("{}: {}", one.code, one.message)).next()
}
