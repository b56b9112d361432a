//! `pmderive eval`: evaluates metrics of a source, sample after sample.
//!
//! A live source that fails after the first fetch is tried again at the next
//! interval; the end of an archive ends the samples.

use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use pmderive_runtime::eval::Workspace;
use pmderive_runtime::model::{InstanceDomain, PmStatus};
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::check::typed::Desc;
use crate::diag::Diagnostics;
use crate::dialect::Dialect;
use crate::engine::{Context, Engine, Metric, Registered, Sample};
use crate::equivalent_domains::EquivalentDomains;

use super::args::{BackendArgument, DefinitionArguments, DiagWords, SourceArguments, interval};
use super::definitions::{Definitions, concerns};
use super::messages::Messages;
use super::output::{EvalFormat, Finding, Renderer, Shown};
use super::source::Source;
use super::{Outcome, Stop};

/// Arguments of `eval`.
#[derive(Debug, Args)]
pub struct EvalArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Number of samples to print [default: 1, of an archive all].
    #[arg(short, long, value_name = "SAMPLES", value_parser = samples)]
    pub samples: Option<u64>,
    /// Time between samples, such as 2, 500msec or 1min; `ms` is minutes [default: 1sec].
    #[arg(short = 't', long, value_name = "INTERVAL", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: EvalFormat,
    /// Words of diagnostics.
    #[arg(long, value_enum, default_value_t)]
    pub diag: DiagWords,
    /// How expressions are computed.
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendArgument,
    /// Say why there is no value.
    #[arg(long)]
    pub why: bool,
    /// Taken so that it can be said why it is of no use.
    #[arg(long, hide = true)]
    pub metadata: Option<PathBuf>,
    /// Derived metrics by name, and expressions; without any, all metrics that
    /// the definition files define.
    #[arg(value_name = "NAME|EXPRESSION")]
    pub metrics: Vec<String>,
}

/// Time between samples of a live source when none is given.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);

fn samples(text: &str) -> Result<u64, String> {
    let samples = text.trim().parse().ok().filter(|samples| *samples > 0);
    samples.ok_or_else(|| "a number of samples is 1 or more".to_owned())
}

/// Runs the command.
pub fn run(arguments: &EvalArguments, messages: &mut Messages) -> Result<Outcome, Stop> {
    if arguments.metadata.is_some() {
        return Err(Stop::Usage(
            "metadata in a file have no values: give eval a source with -h, -a or -L; \
             check, explain and deps can do with --metadata"
                .to_owned(),
        ));
    }
    if arguments.source.archive.is_some() && arguments.interval.is_some() {
        return Err(Stop::Usage(
            "values of an archive at an interval need interpolation, which does not exist yet; \
             without -t the archive is read record by record"
                .to_owned(),
        ));
    }
    if arguments.definitions.configs.is_empty() && arguments.metrics.is_empty() {
        return Err(Stop::Usage(
            "nothing to evaluate: give a definition file (-c CONFIG) or an expression".to_owned(),
        ));
    }
    messages.set_words(arguments.diag);
    let mut definitions = Definitions::read(&arguments.definitions);
    match arguments.metrics.is_empty() {
        true => definitions.select_all(),
        false => definitions.select(&arguments.metrics),
    }
    let mut outcome = Outcome::Good;
    let mistakes = std::mem::take(&mut definitions.diagnostics);
    if mistakes.errors() > 0 {
        outcome = Outcome::Mistake;
    }
    definitions.warn_of_system_mistakes(messages);
    messages.diagnostics(mistakes, &definitions.sources);
    if definitions.selection().is_empty() {
        if outcome == Outcome::Good {
            return Err(Stop::Usage("nothing to evaluate: no metric is defined".to_owned()));
        }
        return Ok(outcome);
    }
    let source = Source::open(&arguments.source, messages)?;
    let mut session = Session::open(arguments, &definitions, source, messages)?;
    Ok(outcome.max(session.run()?))
}

/// One run over one source.
struct Session<'r> {
    definitions: &'r Definitions,
    selection: Vec<&'r Registered>,
    engine: Arc<Engine>,
    context: Context<Source>,
    /// What is wrong with metrics that cannot be used; parallel to the selection.
    mistakes: Vec<Option<String>>,
    /// Samples to print; `None` for all that there are.
    samples: Option<u64>,
    /// When to fetch from a live source.
    pace: Option<Pace>,
    workspace: Workspace,
    printer: Printer,
    messages: &'r mut Messages,
    /// Why the source failed since the last sample.
    failure: Option<String>,
}

impl<'r> Session<'r> {
    fn open(
        arguments: &EvalArguments,
        definitions: &'r Definitions,
        mut source: Source,
        messages: &'r mut Messages,
    ) -> Result<Session<'r>, Stop> {
        let is_live = !matches!(source, Source::Archive(_));
        source.follow(arguments.definitions.language().dialect);
        let mut samples = arguments.samples.or(is_live.then_some(1));
        let backend = arguments.backend.for_samples(samples);
        let engine = Arc::new(
            Engine::new(arguments.definitions.language(), backend)
                .with_equivalent_domains(EquivalentDomains::of_this_machine()),
        );
        let selection = definitions.selection();
        let mut diagnostics = Diagnostics::default();
        let name = source.name();
        let context = Context::new(
            Arc::clone(&engine),
            source,
            &definitions.registry,
            &selection,
            &mut diagnostics,
        )?;
        let diagnostics = definitions.without_hidden_ones_of_system(diagnostics);
        let mistakes = mistakes(&selection, &diagnostics);
        messages.diagnostics(diagnostics, &definitions.sources);
        if context.metrics().iter().all(|metric| metric.output.is_none()) {
            // More samples would say the same.
            samples = Some(1);
        }
        let renderer = arguments.format.renderer(samples != Some(1), arguments.why);
        Ok(Session {
            definitions,
            selection,
            engine,
            context,
            mistakes,
            samples,
            pace: is_live.then(|| Pace::new(arguments.interval.unwrap_or(DEFAULT_INTERVAL))),
            workspace: Workspace::default(),
            printer: Printer::new(name, renderer),
            messages,
            failure: None,
        })
    }

    fn run(&mut self) -> Result<Outcome, Stop> {
        self.printer.begin()?;
        let mut outcome = Outcome::Good;
        let mut printed = 0;
        let mut is_first = true;
        // Differences need a sample that comes before the first one printed.
        let mut is_priming = self.context.needs_two_samples();
        while self.samples.is_none_or(|samples| printed < samples) {
            if !is_first && let Some(pace) = &mut self.pace {
                pace.wait();
            }
            match self.sample(!is_priming) {
                Ok(sample) => {
                    outcome = outcome.max(sample);
                    printed += u64::from(!is_priming);
                    is_priming = false;
                    self.failure = None;
                }
                Err(Stop::Source(error)) if error.is_end_of_archive() => {
                    if printed == 0 {
                        self.nothing_found(!is_first);
                        outcome = outcome.max(Outcome::Failed);
                    }
                    break;
                }
                Err(Stop::Source(error)) if !is_first && self.may_recover(&error) => {
                    self.lost(&error);
                }
                Err(stop) => return Err(stop),
            }
            is_first = false;
            if let Some(warning) = self.engine.take_warning() {
                self.messages.warning(&warning);
            }
        }
        Ok(outcome)
    }

    /// Fetches, and prints unless the values only serve the next sample.
    fn sample(&mut self, is_printed: bool) -> Result<Outcome, Stop> {
        // After a failure the connection is made anew, perhaps to another pmcd.
        let lost = self.failure.is_some() && self.engine.dialect() == Dialect::Fixed;
        if lost || self.context.is_stale() {
            let mut diagnostics = Diagnostics::default();
            self.context.recompile(
                &self.definitions.registry,
                &self.selection,
                &mut diagnostics,
            )?;
            let diagnostics = self.definitions.without_hidden_ones_of_system(diagnostics);
            self.mistakes = mistakes(&self.selection, &diagnostics);
            self.messages.diagnostics(diagnostics, &self.definitions.sources);
        }
        let sample = self.context.fetch(&mut self.workspace)?;
        match is_printed {
            true => self.printer.print(sample, &self.mistakes, self.messages),
            false => Ok(Outcome::Good),
        }
    }

    fn may_recover(&self, error: &SourceError) -> bool {
        self.pace.is_some() && error.is_transient()
    }

    fn lost(&mut self, error: &SourceError) {
        let failure = error.to_string();
        // A host that stays away is spoken of once.
        if self.failure.as_ref() != Some(&failure) {
            self.messages.error(&failure);
        }
        self.failure = Some(failure);
    }

    /// The archive ended before anything was printed.
    fn nothing_found(&mut self, is_primed: bool) {
        let archive = self.context.source().name();
        let found = match is_primed {
            true => "only one record holds values of the metrics, and a difference needs two",
            false => "no record holds a value of the metrics",
        };
        self.messages.error(&format_args!("{archive}: {found}"));
    }
}

/// What is wrong with each definition of a selection, if anything is.
fn mistakes(selection: &[&Registered], diagnostics: &Diagnostics) -> Vec<Option<String>> {
    let mistake = |registered: &&Registered| {
        let found = diagnostics.iter().filter(|diagnostic| concerns(diagnostic, registered));
        found.min_by_key(|one| Reverse(one.severity)).map(|worst| worst.message.clone())
    };
    selection.iter().map(mistake).collect()
}

/// Times to fetch at: multiples of an interval, counted from the start.
struct Pace {
    interval: Duration,
    last: Instant,
}

impl Pace {
    fn new(interval: Duration) -> Pace {
        Pace { interval, last: Instant::now() }
    }

    /// Waits for the next time; those that have passed are left out.
    fn wait(&mut self) {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.last).as_nanos();
        // Below the interval, which is no more than 10^18 nanoseconds.
        let since = u64::try_from(since % self.interval.as_nanos()).unwrap_or(0);
        let wait = self.interval.saturating_sub(Duration::from_nanos(since));
        self.last = now + wait;
        std::thread::sleep(wait);
    }
}

/// Brings samples to standard output.
struct Printer {
    source: String,
    renderer: Box<dyn Renderer>,
    buffer: String,
    domains: Vec<Option<Arc<InstanceDomain>>>,
    /// Failures that the form has no place for, by metric; told once.
    failures: Vec<Option<PmStatus>>,
}

impl Printer {
    fn new(source: String, renderer: Box<dyn Renderer>) -> Printer {
        Printer {
            source,
            renderer,
            buffer: String::new(),
            domains: Vec::new(),
            failures: Vec::new(),
        }
    }

    fn begin(&mut self) -> Result<(), Stop> {
        self.renderer.begin(&mut self.buffer);
        self.write()
    }

    fn print(
        &mut self,
        mut sample: Sample<'_, Source>,
        mistakes: &[Option<String>],
        messages: &Messages,
    ) -> Result<Outcome, Stop> {
        self.domains.clear();
        for metric in sample.metrics {
            let domain = instances(metric, &mut sample)?;
            self.domains.push(domain);
        }
        let shown = Shown {
            source: &self.source,
            metrics: sample.metrics,
            values: &sample.values,
            domains: &self.domains,
            mistakes,
        };
        self.renderer.sample(&shown, &mut self.buffer);
        let mut outcome = Outcome::Good;
        self.failures.resize(shown.metrics.len(), None);
        for ((metric, finding), before) in shown.findings().zip(&mut self.failures) {
            let failure = match finding {
                Finding::Values(_) | Finding::Empty(_) => None,
                Finding::Failed(status) | Finding::Unusable(status, _) => Some(status),
            };
            outcome = outcome.max(failure.map_or(Outcome::Good, |_| Outcome::Failed));
            if let Some(status) = failure.filter(|_| !self.renderer.shows_failures())
                && *before != failure
            {
                messages.error(&format_args!("{}: {status}", metric.name));
            }
            *before = failure;
        }
        self.write()?;
        Ok(outcome)
    }

    fn write(&mut self) -> Result<(), Stop> {
        let mut out = io::stdout().lock();
        out.write_all(self.buffer.as_bytes())?;
        out.flush()?;
        self.buffer.clear();
        Ok(())
    }
}

/// The instances of a metric's domain, if it has both a domain and values.
fn instances(
    metric: &Metric,
    sample: &mut Sample<'_, Source>,
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
