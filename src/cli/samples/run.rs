//! Samples of a selection of metrics, one after the other: `eval` prints them, and `export` writes
//! them.
//!
//! Damage of an archive that the reader passes over is a warning, and any other ends the run.
//! The exit status is that of a source that failed. A [`Sink`] prints or writes the samples.

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_runtime::context::Context as AnySource;
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::source::MetadataSource;
use pmderive_runtime::time::TimeZone;

use crate::diag::{Diagnostic, Diagnostics};
use crate::dialect::Dialect;
use crate::engine::{Engine, Finding, Metric, Registered, ReportSample, Results, Session, Space};

use super::arguments::SampleArguments;
use super::pace::Pace;
use super::time::{Course, DEFAULT_INTERVAL};
use super::{SampledSource, Sampler};
use crate::cli::definitions::{CommandDefinitions, Subject};
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::missing::LeftOutDefinitions;
use crate::cli::progress::Progress;
use crate::cli::source::{check_rest, tell_warnings};
use crate::cli::stop::Stop;
use crate::lint::{missing_instances, selects_instances};
use crate::report::samples::Form;

/// Takes samples, one after the other.
pub trait Sink {
    /// Called after the first fetch and before the first sample, or at the end
    /// if there is none; again until it succeeds.
    ///
    /// # Errors
    /// The source fails, or the text before the samples cannot be written.
    fn begin(&mut self, metrics: &[Metric], source: &mut AnySource) -> Result<(), Stop> {
        let _ = (metrics, source);
        Ok(())
    }

    /// Takes a sample.
    fn sample(&mut self, shown: &ReportSample<'_>) -> Result<(), Stop>;

    /// Called after the last sample, also if the source failed.
    fn end(&mut self, _metrics: &[Metric]) -> Result<(), Stop> {
        Ok(())
    }
}

/// One run over one source.
pub struct Run<'r> {
    selected: Selected<'r>,
    /// Takes the samples; its clock may end the run.
    pub sampler: Sampler,
    /// Samples to take; `None` for all that there are.
    pub samples: Option<u64>,
    first: First,
}

/// Whether to show the first sample, in which differences have no values yet.
#[derive(Clone, Copy)]
enum First {
    Shown,
    /// It only serves the next one.
    Unshown,
    /// As [`First::Unshown`], unless some metric already has values in it.
    ShownWithValues,
}

/// The selection, and how it is evaluated over the source.
struct Selected<'r> {
    definitions: &'r CommandDefinitions,
    selection: Vec<&'r Registered>,
    /// Definitions that the arguments do not name one by one and whose operands
    /// are missing.
    left_out: LeftOutDefinitions,
    engine: Arc<Engine>,
    session: Session<AnySource>,
    /// The mistakes of metrics that cannot be used; parallel to the selection.
    mistakes: Vec<Option<String>>,
    /// The samples to take.
    course: Course,
    /// True once the sink has begun.
    has_begun: bool,
    /// How much of an archive has been read.
    progress: Progress,
    space: Space,
    messages: &'r mut Messages,
    /// True if the sink leaves out metrics whose operands a record lacks.
    leaves_out: bool,
    /// False if the sink cannot show failed metrics.
    shows_failures: bool,
    /// Failures that the sink cannot show, by metric; each is reported once.
    failures: Vec<Option<PmStatus>>,
}

impl<'r> Run<'r> {
    /// Compiles the selection for an open source, and reports its mistakes there. `is_reverse` goes
    /// through an archive towards its start.
    ///
    /// # Errors
    /// The source failed, or the options about time make no sense.
    pub fn open(
        arguments: &SampleArguments,
        is_reverse: bool,
        definitions: &'r CommandDefinitions,
        mut source: AnySource,
        messages: &'r mut Messages,
    ) -> Result<Run<'r>, Stop> {
        let is_live = !matches!(source, AnySource::Archive(_));
        let course = arguments.time.choose(&mut source, is_reverse, messages)?;
        course.begin(&mut source)?;
        let follower = arguments.follow.begin(&mut source, messages)?;
        let mut samples = match (arguments.samples, course.live_samples) {
            (Some(samples), Some(until)) => Some(samples.min(until)),
            (samples, until) => samples.or(until).or(is_live.then_some(1)),
        };
        let backend = arguments.backend.for_evaluations(samples);
        let engine = Arc::new(Engine::of_this_machine(arguments.definitions.language(), backend));
        let mut selection = definitions.selection();
        warn_of_instances(definitions, &selection, &engine, &mut source, messages)?;
        let mut diagnostics = Diagnostics::default();
        let mut session =
            Session::new(Arc::clone(&engine), definitions.shared(), source).expect("one language");
        session.choose(&selection, &mut diagnostics)?;
        let mut diagnostics = definitions.hidden_by_mistake(diagnostics);
        let left_out = definitions.leave_out(&mut diagnostics);
        if left_out.len() > 0 {
            selection.retain(|one| !left_out.has(&one.name));
            let told = &mut Diagnostics::default();
            session.choose(&selection, told)?;
        }
        let mistakes = mistakes(&selection, &diagnostics);
        messages.diagnostics(diagnostics, &definitions.sources);
        if follower.is_none() && session.metrics().iter().all(|metric| metric.output.is_none()) {
            // More samples would say the same.
            samples = Some(1);
        }
        // Differences need a sample that comes before the first one. If samples are not counted,
        // the values of other metrics in the earlier sample must not be lost.
        let first = match session.needs_two_samples() && !course.is_reverse {
            false => First::Shown,
            true if samples.is_some() => First::Unshown,
            true => First::ShownWithValues,
        };
        let is_fixed = arguments.definitions.language().dialect == Dialect::Fixed;
        if session.needs_two_samples() && course.is_reverse && is_fixed {
            let words = "towards the start rates and other differences have no values, as the \
                         sample before is a later one";
            messages.warning(&words);
        }
        let mut sampler = Sampler::new(arguments.retry.patience());
        let interval = course.interval.unwrap_or(DEFAULT_INTERVAL);
        sampler.pace = is_live.then(|| Pace::new(interval, sampler.clock.now()));
        sampler.follower = follower;
        let selected = Selected {
            definitions,
            selection,
            left_out,
            engine,
            session,
            mistakes,
            course,
            has_begun: false,
            progress: Progress::default(),
            space: Space::default(),
            messages,
            leaves_out: false,
            shows_failures: true,
            failures: Vec::new(),
        };
        Ok(Run { selected, sampler, samples, first })
    }

    /// Reports the definitions that are left out because their operands are missing.
    pub fn tell_left_out(&self, verbose: bool) {
        self.selected.left_out.tell(verbose, self.selected.messages);
    }

    /// The zone that times are to be shown in, if one was asked for.
    pub fn zone(&self) -> Option<TimeZone> {
        self.selected.course.zone.clone()
    }

    /// Shows how much of an archive has been read. `visible` is false where
    /// samples go to the terminal themselves.
    pub fn show_progress(&mut self, visible: bool) -> Result<(), Stop> {
        let Selected { session, course, progress, .. } = &mut self.selected;
        *progress = Progress::of(session.source(), course.last, visible)?;
        Ok(())
    }

    /// Also gives the first sample of an archive, in which differences have no
    /// values yet.
    pub fn take_all_of_archive(&mut self) {
        if self.sampler.pace.is_none() {
            self.first = First::Shown;
        }
    }

    /// Prepares for a sink that prints samples in this form.
    pub fn suit(&mut self, form: Form) {
        self.selected.leaves_out = form.leaves_out();
        self.selected.shows_failures = form.shows_failures();
    }

    /// Reports failed metrics as messages, for a sink that cannot show them.
    pub fn tell_failures(&mut self) {
        self.selected.shows_failures = false;
    }

    /// True if damage was reported.
    pub fn have_told_damage(&self) -> bool {
        self.selected.messages.have_told_damage()
    }

    /// Leaves metrics out of the selection, and reports them.
    pub fn leave_out(
        &mut self,
        is_unwanted: impl Fn(&Metric) -> bool,
        say: impl Fn(&Metric, &Messages),
    ) -> Result<ExitStatus, Stop> {
        let Selected { session, selection, messages, .. } = &mut self.selected;
        let unwanted: Vec<bool> = session.metrics().iter().map(is_unwanted).collect();
        if !unwanted.contains(&true) {
            return Ok(ExitStatus::Good);
        }
        let of_selection = session.metrics().iter().zip(&unwanted);
        of_selection.filter(|(_, leave)| **leave).for_each(|(metric, _)| say(metric, messages));
        let mut leave = unwanted.into_iter();
        selection.retain(|_| leave.next() != Some(true));
        self.selected.compile()?;
        Ok(ExitStatus::Failed)
    }

    /// Ends the run just before the process ends. The compiled code stays in memory, because the
    /// system takes it back faster than we could free it.
    pub fn leave(self) {
        let Selected { engine, session, .. } = self.selected;
        std::mem::forget(session.program().cloned());
        std::mem::forget(engine);
    }

    /// Passes all samples to a sink.
    ///
    /// # Errors
    /// The source or the sink failed.
    pub fn run(&mut self, sink: &mut dyn Sink) -> Result<ExitStatus, Stop> {
        let ran = self.take(sink);
        let ended = sink.end(self.selected.session.metrics());
        ran.and_then(|outcome| ended.map(|()| outcome).map_err(|stop| stop.after(outcome)))
    }

    fn take(&mut self, sink: &mut dyn Sink) -> Result<ExitStatus, Stop> {
        let Run { selected, sampler, samples, first } = self;
        let source = selected.session.source().name();
        let mut outcome = ExitStatus::Good;
        let mut taken = 0;
        let mut is_first = true;
        while samples.is_none_or(|samples| taken < samples) {
            if !is_first {
                sampler.wait();
            }
            let sampled = sampler.take(selected, |selected| {
                let rule = if is_first { *first } else { First::Shown };
                let sampled = selected.sample(&source, sink, rule);
                tell_warnings(selected.session.source(), selected.messages);
                sampled
            });
            match sampled.map_err(|stop| stop.after(outcome))?.flatten() {
                Some(SampleOutcome::Shown(sample)) => {
                    outcome = outcome.max(sample);
                    taken += 1;
                }
                Some(SampleOutcome::Unshown) => {}
                None => {
                    selected.progress.finish();
                    if taken == 0 && !sampler.clock.is_over() {
                        selected.nothing_found(!is_first);
                        outcome = outcome.max(ExitStatus::Failed);
                    }
                    break;
                }
            }
            is_first = false;
            selected.messages.warnings_of(&selected.engine);
        }
        if !selected.has_begun {
            let (metrics, source) = selected.session.metrics_and_source();
            sink.begin(metrics, source)?;
        }
        Ok(outcome)
    }
}

/// The outcome of a sample.
enum SampleOutcome {
    /// The sink has taken it; with its exit status.
    Shown(ExitStatus),
    /// It serves only the next one.
    Unshown,
}

impl SampledSource for Selected<'_> {
    fn context(&mut self) -> &mut AnySource {
        self.session.source()
    }

    fn messages(&self) -> &Messages {
        self.messages
    }
}

impl Selected<'_> {
    /// Compiles the selection again.
    fn compile(&mut self) -> Result<(), Stop> {
        let mut diagnostics = Diagnostics::default();
        self.session.choose(&self.selection, &mut diagnostics)?;
        let diagnostics = self.definitions.hidden_by_mistake(diagnostics);
        self.mistakes = mistakes(&self.selection, &diagnostics);
        self.messages.diagnostics(diagnostics, &self.definitions.sources);
        Ok(())
    }

    /// Fetches, and passes the sample to a sink if the rule says so. `None` after the last one that
    /// the options ask for.
    fn sample(
        &mut self,
        source: &str,
        sink: &mut dyn Sink,
        rule: First,
    ) -> Result<Option<SampleOutcome>, Stop> {
        if self.session.is_stale() {
            self.compile()?;
        }
        let dialect = self.definitions.registry.language().dialect;
        if dialect == Dialect::Fixed {
            // A metric that was absent starts without a previous sample, as its counters may have
            // been reset.
            self.session.forget_absent();
        }
        let mut sample = match self.session.sample(&mut self.space) {
            Ok(sample) if self.course.is_over(sample.values.timestamp()) => return Ok(None),
            Ok(sample) => sample,
            Err(error) if error.is_end_of_archive() => {
                self.progress.finish();
                check_rest(self.session.source())?;
                return Err(error.into());
            }
            Err(error) => return Err(error.into()),
        };
        self.progress.at(sample.values.timestamp());
        if let Some(found) = sample.found.take() {
            let found = self.definitions.hidden_by_mistake(found);
            self.mistakes = mistakes(&self.selection, &found);
            self.messages.diagnostics(found, &self.definitions.sources);
        }
        let has_values = |metric: &Metric| {
            metric.output.is_some_and(|output| !sample.values.get(output).is_empty())
        };
        let is_shown = match rule {
            First::Shown => true,
            First::Unshown => false,
            First::ShownWithValues => sample.metrics.iter().any(has_values),
        };
        if !is_shown {
            return Ok(Some(SampleOutcome::Unshown));
        }
        if !self.has_begun {
            sink.begin(sample.metrics, sample.source)?;
            self.has_begun = true;
        }
        let domains = sample.domains()?;
        let lacking = match self.course.interval {
            None if self.leaves_out => sample.lacks_operands(|source, pmid| match source {
                AnySource::Archive(archive) => archive.record_holds(pmid),
                _ => true,
            }),
            _ => Vec::new(),
        };
        let shown = ReportSample {
            source,
            metrics: sample.metrics,
            values: Results::Evaluated(&sample.values),
            domains: &domains,
            mistakes: &self.mistakes,
            lacking: &lacking,
        };
        let taken = sink.sample(&shown);
        let messages = (!self.shows_failures).then_some(&*self.messages);
        let outcome = note_failures(&shown, &mut self.failures, messages, dialect);
        taken.map(|()| Some(SampleOutcome::Shown(outcome))).map_err(|stop| stop.after(outcome))
    }

    /// The archive, or the time to sample, ended before there was a sample.
    fn nothing_found(&mut self, is_primed: bool) {
        let archive = self.session.source().name();
        let is_archive = matches!(self.session.source(), AnySource::Archive(_));
        if !is_archive {
            let found = "its clock has passed the end already; it may be ahead of this machine's";
            return self.messages.error(&format_args!("{archive}: {found}"));
        }
        let found = match is_primed {
            true => "only one sample holds values of the metrics, and a difference needs two",
            false => "no record holds a value of the metrics",
        };
        let part = if self.course.is_part() { "in this part of its time " } else { "" };
        self.messages.error(&format_args!("{archive}: {part}{found}"));
    }
}

/// Keeps the failures of metrics, and reports the new ones to `messages`. Returns the exit status
/// of the sample.
fn note_failures(
    shown: &ReportSample<'_>,
    failures: &mut Vec<Option<PmStatus>>,
    messages: Option<&Messages>,
    dialect: Dialect,
) -> ExitStatus {
    let mut outcome = ExitStatus::Good;
    failures.resize(shown.metrics.len(), None);
    for ((metric, finding), before) in shown.findings().zip(failures) {
        let failure = match finding {
            // Other records may lie between those that have the failure.
            Finding::Empty(_) => continue,
            Finding::Values(_) => None,
            Finding::Failed(status) | Finding::Unusable(status, _) => Some(status),
        };
        outcome = outcome.max(failure.map_or(ExitStatus::Good, |_| ExitStatus::Failed));
        if let (Some(status), Some(messages)) = (failure, messages)
            && *before != failure
        {
            match finding {
                // libpcp's words are useful only to users who ask for its answers.
                Finding::Unusable(_, mistake) if dialect == Dialect::Fixed => {
                    messages.error(&format_args!("{}: {mistake}", metric.name));
                }
                _ => messages.error(&format_args!("{}: {}", metric.name, dialect.text(status))),
            }
        }
        *before = failure;
    }
    outcome
}

/// Warns of instances that expressions of the arguments name and that the source does not
/// have: otherwise they would just have no values.
fn warn_of_instances(
    definitions: &CommandDefinitions,
    selection: &[&Registered],
    engine: &Engine,
    source: &mut dyn MetadataSource,
    messages: &mut Messages,
) -> Result<(), Stop> {
    let selects = |one: &&&Registered| !one.is_named && selects_instances(&one.expr);
    let chosen: Vec<&Registered> = selection.iter().filter(selects).copied().collect();
    if chosen.is_empty() || engine.dialect() != Dialect::Fixed {
        return Ok(());
    }
    // Other mistakes are reported when the selection is compiled.
    let unheard = &mut Diagnostics::default();
    let examination = engine.examine(&definitions.registry, &chosen, source, unheard)?;
    let (sources, mut found) = (&definitions.sources, Diagnostics::default());
    missing_instances(&chosen, &examination, sources, source, &mut found)?;
    messages.diagnostics(found, sources);
    Ok(())
}

/// The worst mistake of each definition of a selection, if it has one.
fn mistakes(selection: &[&Registered], diagnostics: &Diagnostics) -> Vec<Option<String>> {
    let mut found: HashMap<Subject<'_>, &Diagnostic> = HashMap::new();
    for diagnostic in diagnostics {
        let worst = found.entry(Subject::of(diagnostic)).or_insert(diagnostic);
        if diagnostic.severity > worst.severity {
            *worst = diagnostic;
        }
    }
    let mistake = |one: &&Registered| Some(found.get(&Subject::from(*one))?.message.clone());
    selection.iter().map(mistake).collect()
}
