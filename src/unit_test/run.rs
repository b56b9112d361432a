//! Runs the tests of a file.
//!
//! Each case has its own source, and a session for each backend. The results of the first
//! session are compared with the expected ones, and the results of the others with the first.
//! The definitions of this machine are not read, so a test has the same result everywhere.

use std::collections::HashSet;
use std::sync::Arc;

use pmderive_runtime::eval::Value;
use pmderive_runtime::memory::MemorySource;
use pmderive_runtime::program::Status;
use pmderive_runtime::source::SourceError;

use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::engine::{
    Backend, Definitions, Engine, Finding, Registered, Registry, ReportSample, Sample, Session,
    Space, needed,
};
use crate::syntax::{name_mistake, nearest};
use crate::text::SourceMap;

use super::compare::Got;
use super::coverage::{BranchProbes, Coverage, Probes};
use super::definitions::{WRONG_TEXT, add_definitions, mistake, parse, unread};
use super::file::{Case, ExpectedRefusal, FileText, Subject, TestFile};
#[cfg(feature = "fleet")]
use super::fleet::Fleet;
use super::report::{Report, refused, unusable};
use super::series::{self, SeriesSource, name_of};

/// A backend with its name.
pub type NamedBackend = (&'static str, Backend);

/// The results of all tests in a file.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result of each test, in the order of the file.
    pub reports: Vec<Report>,
    /// Warnings about requests that could not be met, such as native code where
    /// there is none.
    pub warnings: Vec<String>,
    /// The coverage of the tests, if requested.
    pub coverage: Option<Coverage>,
}

/// Runs all tests in a file; with `covers` also finds their coverage. Mistakes in definitions
/// are reported, unless a test expects them.
pub fn run(
    file: &TestFile,
    backends: &[NamedBackend],
    covers: bool,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Outcome {
    let mut registry = Registry::new(file.language);
    let mut found = Diagnostics::default();
    let is_whole = add_definitions(
        &file.files,
        file.definitions.as_ref(),
        file,
        &mut registry,
        sources,
        &mut found,
    );
    #[cfg(feature = "fleet")]
    let fleet = Fleet::read(file, &registry, sources, &mut found);
    let engine =
        |(name, backend): &NamedBackend| (*name, Arc::new(Engine::new(file.language, *backend)));
    let engines: Vec<(&str, Arc<Engine>)> = backends.iter().map(engine).collect();
    let probes = engines.first().filter(|_| covers).map(|(_, engine)| {
        let usable = usable(file, &registry, engine);
        Probes::new(&registry, |one| usable.contains(&one.name), sources)
    });
    let mut tester =
        Tester { file, registry, is_whole, sources, engines, found: found.clone(), probes };
    let mut reports = Vec::new();
    for case in &file.cases {
        #[cfg(feature = "fleet")]
        if !case.hosts.is_empty() {
            reports.push(fleet.run(case, &tester.registry, &tester.engines));
            continue;
        }
        #[cfg(not(feature = "fleet"))]
        if !case.hosts.is_empty() {
            let why = "a build without fleets; build it with `--features fleet`";
            let mut report = Report::new(&case.name);
            report.add(unusable("", why));
            reports.push(report);
            continue;
        }
        reports.push(tester.case(case, diagnostics));
    }
    for rejected in &file.rejected {
        reports.push(tester.rejected(rejected, diagnostics));
    }
    let warnings = tester.engines.iter().filter_map(|(_, engine)| engine.take_warning()).collect();
    // A mistake that a test expects is not reported.
    let wanted: HashSet<&str> = file
        .rejected
        .iter()
        .filter_map(|rejected| match &rejected.subject {
            Subject::Definition(name) => Some(&*name.text),
            Subject::Expression(_) => None,
        })
        .collect();
    let is_wanted =
        |one: &Diagnostic| one.metric.as_deref().is_some_and(|name| wanted.contains(name));
    diagnostics.extend(found.into_iter().filter(|one| !is_wanted(one)));
    diagnostics.change_each(Diagnostic::name_key);
    Outcome { reports, warnings, coverage: tester.probes.map(|probes| probes.coverage) }
}

/// The definitions that can be used with the metrics of a file.
fn usable(file: &TestFile, registry: &Registry, engine: &Engine) -> HashSet<Arc<str>> {
    let mut source = MemorySource::new("the metrics of the test", file.metadata.clone(), ());
    let mut ignored = Diagnostics::default();
    let compiled = engine.compile(registry, &registry.all(), &mut source, &mut ignored);
    let metrics = compiled.iter().flat_map(|compiled| compiled.metrics.iter());
    metrics.filter(|one| one.desc.is_ok()).map(|one| Arc::clone(&one.name)).collect()
}

/// The parts that all tests of a file share.
struct Tester<'t> {
    file: &'t TestFile,
    registry: Registry,
    /// True if all files of definitions could be read.
    is_whole: bool,
    sources: &'t mut SourceMap,
    engines: Vec<(&'static str, Arc<Engine>)>,
    /// Mistakes in the texts of the definitions.
    found: Diagnostics,
    /// Coverage so far, if requested.
    probes: Option<Probes>,
}

/// A session while a case runs.
struct RunningCase<'c> {
    backend: &'static str,
    session: Session<SeriesSource<'c>>,
    space: Space,
    /// The mistake of each metric that cannot be used, parallel to the metrics.
    mistakes: Vec<Option<String>>,
}

impl<'t> Tester<'t> {
    fn case(&mut self, case: &'t Case, diagnostics: &mut Diagnostics) -> Report {
        let mut report = Report::new(&case.name);
        let mut subjects = Vec::new();
        for expected in &case.expected {
            let subject = &expected.subject;
            if let Some(why) = self.unread(subject) {
                report.compare_unread(expected, case, why);
                continue;
            }
            match self.registered(subject, diagnostics) {
                Some(registered) => subjects.push((expected, registered)),
                None => report.add(unusable(&subject.text, WRONG_TEXT)),
            }
        }
        let mut selection: Vec<&Registered> = subjects.iter().map(|(_, one)| &**one).collect();
        let probes = self.probes(&selection);
        selection.extend(probes.iter().map(|(_, probe)| &**probe));
        let mut running = match self.start(case, &selection) {
            Ok(running) => running,
            Err(error) => {
                report.add(unusable("", &error.to_string()));
                return report;
            }
        };
        // True once a report says that a metric cannot be used.
        let mut told = vec![false; subjects.len()];
        for step in 0..case.steps {
            let at = (step, series::time_of(case, step));
            let mut first = vec![None; subjects.len()];
            for (nth, one) in running.iter_mut().enumerate() {
                let sample = one.session.sample(&mut one.space);
                if let (0, Some(covered), Ok(sample)) = (nth, &mut self.probes, &sample) {
                    for (index, (branch, _)) in probes.iter().enumerate() {
                        let is_chosen = holds(sample, subjects.len() + index);
                        covered.coverage.branches[*branch].is_exercised |= is_chosen;
                    }
                }
                for (index, (expected, _)) in subjects.iter().enumerate() {
                    let mistake = one.mistakes[index].as_deref();
                    let got = got(&sample, index, self.file, mistake);
                    let (told, first) = (mistake.map(|_| &mut told[index]), &mut first[index]);
                    report.compare_backend(expected, at, &got, told, first, one.backend);
                }
            }
        }
        report
    }

    /// The probes of all definitions behind a selection.
    fn probes(&mut self, selection: &[&Registered]) -> BranchProbes {
        let Some(probes) = &mut self.probes else { return Vec::new() };
        let needed = match self.file.language.extensions {
            true => needed(&self.registry, selection),
            false => selection.to_vec(),
        };
        let names: Vec<Arc<str>> =
            needed.iter().filter(|one| one.is_named).map(|one| one.name.clone()).collect();
        probes.exercise(&names)
    }

    /// Starts a session for each backend.
    fn start(
        &self,
        case: &'t Case,
        selection: &[&Registered],
    ) -> Result<Vec<RunningCase<'t>>, SourceError> {
        let start = |(backend, engine): &(&'static str, Arc<Engine>)| {
            let mut found = Diagnostics::default();
            let source = series::source(self.file, case, &case.samples);
            let shared = Definitions::from(self.registry.clone());
            let mut session =
                Session::new(Arc::clone(engine), shared, source).expect("one language");
            session.choose(selection, &mut found)?;
            let mistakes = selection.iter().map(|one| mistake(one, &found)).collect();
            Ok(RunningCase { backend, session, space: Space::default(), mistakes })
        };
        self.engines.iter().map(start).collect()
    }

    /// The reason for which a name is no expression, if there is one.
    fn unread(&self, subject: &FileText) -> Option<&'static str> {
        match self.registry.get(subject.text.trim()) {
            Some(_) => None,
            None => unread(subject, &self.registry, self.is_whole, &self.file.metadata),
        }
    }

    /// The definition with a name, or a parsed expression.
    fn registered(
        &mut self,
        subject: &FileText,
        diagnostics: &mut Diagnostics,
    ) -> Option<Arc<Registered>> {
        if let Some(definition) = self.registry.definition(subject.text.trim()) {
            return Some(Arc::clone(definition));
        }
        parse(subject, self.file, &self.registry, self.sources, diagnostics)
    }

    fn rejected(&mut self, rejected: &ExpectedRefusal, diagnostics: &mut Diagnostics) -> Report {
        let mut report = Report::new(&rejected.name);
        let mut found = Diagnostics::default();
        let (subject, registered) = match &rejected.subject {
            Subject::Definition(name) => {
                let of_name = |one: &&Diagnostic| one.metric.as_deref() == Some(&*name.text);
                found.extend(self.found.iter().filter(of_name).cloned());
                let registered = self.registry.definition(&name.text).cloned();
                if registered.is_none() && found.is_empty() && self.is_whole {
                    let message = format!("there is no definition of `{}`", name.text);
                    let mut diagnostic = Diagnostic::error(Code::BadTestFile, name.span, message);
                    if let Some(meant) = nearest(&name.text, self.registry.names()) {
                        diagnostic = diagnostic.help(format!("did you mean `{meant}`?"));
                    } else if name_mistake(&name.text).is_some() {
                        diagnostic = diagnostic.help(
                            "`definition` is the name of one; \
                             a text that must be refused is an `expression`",
                        );
                    }
                    diagnostics.push(diagnostic);
                }
                (&name.text, registered)
            }
            Subject::Expression(expression) => {
                (&expression.text, self.registered(expression, &mut found))
            }
        };
        let none = match registered.is_none() && found.is_empty() {
            true => "no such definition",
            false => "no error",
        };
        if let (Some(registered), Some((_, engine))) = (registered, self.engines.first()) {
            let metadata = self.file.metadata.clone();
            let mut source = MemorySource::new("the metrics of the test", metadata, ());
            let compiled = engine.compile(&self.registry, &[&registered], &mut source, &mut found);
            if let Err(error) = compiled {
                report.add(unusable(subject, &error.to_string()));
            }
        }
        let errors: Vec<&Diagnostic> =
            found.iter().filter(|one| one.severity == Severity::Error).collect();
        if !errors.iter().any(|error| error.code == rejected.code) {
            let got: Vec<String> =
                errors.iter().map(|error| format!("{}: {}", error.code, error.message)).collect();
            let got = if got.is_empty() { none.to_owned() } else { got.join("; ") };
            report.add(refused(subject, rejected.code.to_string(), got));
        }
        report
    }
}

/// True if some value of a metric in a sample is not 0.
fn holds(sample: &Sample<'_, SeriesSource<'_>>, index: usize) -> bool {
    let metric = &sample.metrics[index];
    let (Ok(_), Some(output)) = (metric.desc, metric.output) else { return false };
    let values = sample.values.get(output);
    matches!(values.status, Status::Values)
        && (0..values.len()).any(|at| matches!(values.get(at), Value::U32(1..) | Value::I32(1..)))
}

/// The result of a metric in a sample, or in a failed fetch.
fn got<'g>(
    sample: &'g Result<Sample<'_, SeriesSource<'_>>, SourceError>,
    index: usize,
    file: &'g TestFile,
    mistake: Option<&'g str>,
) -> Got<'g> {
    let sample = match sample {
        Ok(sample) => sample,
        Err(error) => return Got::Failed(error.status(), None),
    };
    let Sample { metrics, values, .. } = sample;
    let shown = ReportSample::new("", metrics, values, &[]);
    match shown.finding(index) {
        Finding::Values(values) => {
            let indom = metrics[index].desc.ok().and_then(|desc| desc.indom);
            let names = indom.and_then(|indom| file.instances.get(&indom));
            let named = |(id, value)| (name_of(names.map_or(&[][..], |names| names), id), value);
            Got::Values(values.iter().map(named).collect())
        }
        Finding::Empty(reason) => Got::Empty(reason),
        Finding::Failed(status) => Got::Failed(status, None),
        Finding::Unusable(status, _) => Got::Failed(status, mistake),
    }
}
