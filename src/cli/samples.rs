//! Samples of a selection of metrics, one after the other: what `eval` prints
//! and `export` writes.
//!
//! A live source that fails is tried again for as long as patience lasts; the
//! end of an archive ends the samples. Damage that an archive is read behind is
//! told, and makes the outcome that of a source that failed. What becomes of a
//! sample is the affair of a [`Sink`].

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_runtime::context::Context as AnySource;
use pmderive_runtime::model::{InstanceDomain, PmStatus};
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::time::TimeZone;

use crate::check::typed::Desc;
use crate::diag::{Diagnostic, Diagnostics};
use crate::engine::{Engine, Finding, Metric, Registered, Sample, Session, Shown, Space};
use crate::equivalent_domains::EquivalentDomains;

use super::definitions::{Definitions, Subject};
use super::ending::Ending;
use super::following::Follower;
use super::messages::Messages;
use super::missing::LeftOut;
use super::pace::Pace;
use super::patience::{Clock, Patience, SystemClock};
use super::progress::Progress;
use super::sample_arguments::SampleArguments;
use super::source::{check_rest, tell_warnings};
use super::time_options::{Course, DEFAULT_INTERVAL};
use super::{Outcome, Stop};

/// Takes samples, one after the other.
pub trait Sink {
    /// Called after the first fetch and before the first sample, and if there
    /// is none, in the end; until it succeeds.
    ///
    /// # Errors
    /// The source fails, or what is to stand before samples cannot be brought
    /// to where it belongs.
    fn begin(&mut self, metrics: &[Metric], source: &mut AnySource) -> Result<(), Stop> {
        let _ = (metrics, source);
        Ok(())
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// It cannot be brought to where it belongs.
    fn sample(&mut self, shown: &Shown<'_>) -> Result<(), Stop>;

    /// False for one that has no place for metrics that fail.
    fn shows_failures(&self) -> bool {
        true
    }
}

/// One run over one source.
pub struct Run<'r> {
    definitions: &'r Definitions,
    selection: Vec<&'r Registered>,
    /// Definitions that the arguments do not name one by one and whose operands
    /// are missing.
    left_out: LeftOut,
    engine: Arc<Engine>,
    session: Session<AnySource>,
    /// What is wrong with metrics that cannot be used; parallel to the selection.
    mistakes: Vec<Option<String>>,
    /// Samples to take; `None` for all that there are.
    samples: Option<u64>,
    /// Which samples are taken.
    course: Course,
    /// True if the first sample of all only serves the next one.
    is_primed: bool,
    /// True once the sink has begun.
    has_begun: bool,
    /// When to fetch from a live source.
    pace: Option<Pace>,
    /// Present while an archive is followed.
    follower: Option<Follower>,
    /// How much of an archive has been read.
    progress: Progress,
    /// Signals to end at, if they are not to end the process.
    ending: Option<Ending>,
    space: Space,
    messages: &'r mut Messages,
    /// With a live source that fails.
    patience: Patience,
    domains: Vec<Option<Arc<InstanceDomain>>>,
    /// Failures that the sink has no place for, by metric; told once.
    failures: Vec<Option<PmStatus>>,
}

impl<'r> Run<'r> {
    /// Compiles the selection for a source that is open, and says what is
    /// wrong with it there. `is_reverse` goes through an archive towards its start.
    ///
    /// # Errors
    /// The source failed, or the options about time make no sense.
    pub fn open(
        arguments: &SampleArguments,
        is_reverse: bool,
        definitions: &'r Definitions,
        mut source: AnySource,
        messages: &'r mut Messages,
    ) -> Result<Run<'r>, Stop> {
        let is_live = !matches!(source, AnySource::Archive(_));
        let course = arguments.time.choose(&mut source, is_reverse, messages)?;
        course.begin(&mut source)?;
        let follower = arguments.follow.begin(&mut source, messages)?;
        let mut samples = match (arguments.samples, course.live_samples()) {
            (Some(samples), Some(until)) => Some(samples.min(until)),
            (samples, until) => samples.or(until).or(is_live.then_some(1)),
        };
        let backend = arguments.backend.for_samples(samples);
        let engine = Arc::new(
            Engine::new(arguments.definitions.language(), backend)
                .with_equivalent_domains(EquivalentDomains::of_this_machine()),
        );
        let mut selection = definitions.selection();
        let mut diagnostics = Diagnostics::default();
        let mut session = Session::new(Arc::clone(&engine), definitions.shared(), source);
        session.choose(&selection, &mut diagnostics)?;
        let mut diagnostics = definitions.without_hidden_ones_of_system(diagnostics);
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
        // Differences need a sample that comes before the first one.
        let is_primed = session.needs_two_samples() && !course.is_reverse();
        Ok(Run {
            definitions,
            selection,
            left_out,
            engine,
            session,
            mistakes,
            samples,
            is_primed,
            has_begun: false,
            pace: is_live.then(|| Pace::new(course.interval.unwrap_or(DEFAULT_INTERVAL))),
            course,
            follower,
            progress: Progress::default(),
            ending: None,
            space: Space::default(),
            messages,
            patience: arguments.retry.patience(),
            domains: Vec::new(),
            failures: Vec::new(),
        })
    }

    /// Tells which definitions are left out as their operands are missing.
    pub fn tell_left_out(&self, verbose: bool) {
        self.left_out.tell(verbose, self.messages);
    }

    /// Number of samples that will be taken, if that is known.
    pub fn samples(&self) -> Option<u64> {
        self.samples
    }

    /// The zone that times are to be shown in, if one was asked for.
    pub fn zone(&self) -> Option<TimeZone> {
        self.course.zone.clone()
    }

    /// Shows how much of an archive has been read. `visible` is false where
    /// samples go to the terminal themselves.
    ///
    /// # Errors
    /// The archive has no end.
    pub fn show_progress(&mut self, visible: bool) -> Result<(), Stop> {
        self.progress = Progress::of(self.session.source(), self.course.last(), visible)?;
        Ok(())
    }

    /// Has every sample that an archive holds, the first one as well, where
    /// differences have no values yet.
    pub fn take_all_of_archive(&mut self) {
        self.is_primed &= self.pace.is_some();
    }

    /// Has signals end the samples.
    pub fn end_by(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    /// True if the source is damaged, which was told.
    pub fn have_told_damage(&self) -> bool {
        self.messages.have_told_damage()
    }

    /// True if a signal has ended the samples.
    pub fn is_ended_by_signal(&self) -> bool {
        self.ending.as_ref().is_some_and(Ending::is_asked)
    }

    /// Leaves metrics out of the selection, and says so.
    ///
    /// # Errors
    /// The source failed.
    pub fn leave_out(
        &mut self,
        is_unwanted: impl Fn(&Metric) -> bool,
        say: impl Fn(&Metric, &Messages),
    ) -> Result<Outcome, Stop> {
        let unwanted: Vec<bool> = self.session.metrics().iter().map(is_unwanted).collect();
        if !unwanted.contains(&true) {
            return Ok(Outcome::Good);
        }
        let of_selection = self.session.metrics().iter().zip(&unwanted);
        of_selection
            .filter(|(_, leave)| **leave)
            .for_each(|(metric, _)| say(metric, self.messages));
        let mut leave = unwanted.into_iter();
        self.selection.retain(|_| leave.next() != Some(true));
        self.compile()?;
        Ok(Outcome::Failed)
    }

    /// Brings all samples to a sink.
    ///
    /// # Errors
    /// The source or the sink failed.
    pub fn run(&mut self, sink: &mut dyn Sink) -> Result<Outcome, Stop> {
        let source = self.session.source().name();
        let mut outcome = Outcome::Good;
        let mut taken = 0;
        let mut is_first = true;
        let mut is_priming = self.is_primed;
        while self.samples.is_none_or(|samples| taken < samples) {
            // A failure was followed by a pause.
            if !is_first
                && !self.patience.is_tried()
                && let Some(pace) = &mut self.pace
            {
                match &self.ending {
                    Some(ending) => ending.wait(pace.until_next()),
                    None => pace.wait(),
                }
            }
            if self.is_ended_by_signal() {
                break;
            }
            let sampled = self.sample(&source, (!is_priming).then_some(&mut *sink));
            tell_warnings(self.session.source(), self.messages);
            match sampled {
                Ok(Some(sample)) => {
                    outcome = outcome.max(sample);
                    taken += u64::from(!is_priming);
                    is_priming = false;
                    self.patience.succeeded();
                }
                Ok(None) if self.waits()? => continue,
                Ok(None) => {
                    self.progress.finish();
                    if taken == 0 {
                        self.nothing_found(!is_first);
                        outcome = outcome.max(Outcome::Failed);
                    }
                    break;
                }
                Err(Stop::Source(error)) if self.may_recover(&error) => {
                    let clock: &dyn Clock = match &self.ending {
                        Some(ending) => ending,
                        None => &SystemClock,
                    };
                    self.patience.failed(error, clock, self.messages)?;
                }
                Err(stop) => return Err(stop.after(outcome)),
            }
            is_first = false;
            if let Some(warning) = self.engine.take_warning() {
                self.messages.warning(&warning);
            }
        }
        if !self.has_begun {
            let (metrics, source) = self.session.metrics_and_source();
            sink.begin(metrics, source)?;
        }
        Ok(outcome)
    }

    /// At the end of an archive that is followed, waits until there may be
    /// more of it. False if the archive is not followed any more.
    fn waits(&mut self) -> Result<bool, Stop> {
        let Some(follower) = &mut self.follower else { return Ok(false) };
        self.progress.finish();
        let ending = &self.ending;
        let pause = |time| match ending {
            Some(ending) => {
                ending.wait(time);
                !ending.is_asked()
            }
            None => {
                std::thread::sleep(time);
                true
            }
        };
        if !follower.wait(self.session.source(), pause)? {
            // What was withheld until now comes yet.
            self.follower = None;
        }
        Ok(true)
    }

    /// Compiles the selection anew.
    fn compile(&mut self) -> Result<(), Stop> {
        let mut diagnostics = Diagnostics::default();
        self.session.choose(&self.selection, &mut diagnostics)?;
        let diagnostics = self.definitions.without_hidden_ones_of_system(diagnostics);
        self.mistakes = mistakes(&self.selection, &diagnostics);
        self.messages.diagnostics(diagnostics, &self.definitions.sources);
        Ok(())
    }

    /// Fetches; without a sink the values only serve the next sample. `None`
    /// after the last one.
    fn sample(
        &mut self,
        source: &str,
        sink: Option<&mut dyn Sink>,
    ) -> Result<Option<Outcome>, Stop> {
        if self.session.is_stale() {
            self.compile()?;
        }
        let mut sample = match self.session.sample(&mut self.space) {
            Ok(sample) if self.course.is_over(sample.values.timestamp()) => {
                self.follower = None;
                return Ok(None);
            }
            Ok(sample) => sample,
            Err(error) if error.is_end_of_archive() => {
                check_rest(self.session.source())?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        self.progress.at(sample.values.timestamp());
        let Some(sink) = sink else { return Ok(Some(Outcome::Good)) };
        if !self.has_begun {
            sink.begin(sample.metrics, sample.source)?;
            self.has_begun = true;
        }
        self.domains.clear();
        for metric in sample.metrics {
            let domain = instances(metric, &mut sample)?;
            self.domains.push(domain);
        }
        let shown = Shown {
            source,
            metrics: sample.metrics,
            values: &sample.values,
            domains: &self.domains,
            mistakes: &self.mistakes,
        };
        let taken = sink.sample(&shown);
        let mut outcome = Outcome::Good;
        self.failures.resize(shown.metrics.len(), None);
        for ((metric, finding), before) in shown.findings().zip(&mut self.failures) {
            let failure = match finding {
                Finding::Values(_) | Finding::Empty(_) => None,
                Finding::Failed(status) | Finding::Unusable(status, _) => Some(status),
            };
            outcome = outcome.max(failure.map_or(Outcome::Good, |_| Outcome::Failed));
            if let Some(status) = failure.filter(|_| !sink.shows_failures())
                && *before != failure
            {
                self.messages.error(&format_args!("{}: {status}", metric.name));
            }
            *before = failure;
        }
        taken.map(|()| Some(outcome)).map_err(|stop| stop.after(outcome))
    }

    fn may_recover(&self, error: &SourceError) -> bool {
        self.pace.is_some() && error.is_transient()
    }

    /// The archive ended before there was a sample.
    fn nothing_found(&mut self, is_primed: bool) {
        let archive = self.session.source().name();
        let found = match is_primed {
            true => "only one sample holds values of the metrics, and a difference needs two",
            false => "no record holds a value of the metrics",
        };
        let part = if self.course.is_part() { "in this part of its time " } else { "" };
        self.messages.error(&format_args!("{archive}: {part}{found}"));
    }
}

/// What is wrong with each definition of a selection, if anything is.
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

/// The instances of a metric's domain, if it has both a domain and values.
fn instances(
    metric: &Metric,
    sample: &mut Sample<'_, AnySource>,
) -> Result<Option<Arc<InstanceDomain>>, SourceError> {
    let (Ok(Desc { indom: Some(indom), .. }), Some(output)) = (metric.desc, metric.output) else {
        return Ok(None);
    };
    let values = sample.values.get(output);
    if values.is_empty() {
        return Ok(None);
    }
    Ok(sample.instance_names(indom, values.instances)?.ok())
}
