//! The definitions and expressions that a session's user chose to compute, in
//! the user's order. Similar sources share the program, as with
//! [`Engine::compile`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use pmderive_runtime::eval::{Evaluator, SharedLayouts};
use pmderive_runtime::program::{Binding, Program};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchEvents, FetchSource, SourceError};

use super::{MOST_REPEATED, NamedInstances, Sample, Session, Space, Task};
use crate::diag::Diagnostics;
use crate::dialect::Dialect;
use crate::engine::metric::Metric;
use crate::engine::{Compiled, Registered, Retry};

/// First and longest time from an incomplete choice to the next look for its missing metrics.
const WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// The current choice.
#[derive(Default)]
pub(super) struct Choice {
    /// The chosen definitions.
    selection: Vec<Registered>,
    /// `None` before the first choice.
    compiled: Option<Arc<Compiled>>,
    /// The next look for metrics that the choice lacks.
    retry: Option<Retry<Instant>>,
    /// Diagnostics of the last rebinding, to be reported with the next sample.
    found: Option<Diagnostics>,
    /// Epoch of the source's metadata for which it was chosen.
    epoch: u64,
    /// True if the source failed, so that it may now be another one.
    lost: bool,
    /// Number of the choice's evaluations when another task replaced it.
    pub evaluations: u64,
}

impl Choice {
    /// Makes an evaluator compute the choice. Returns the number of earlier
    /// evaluations.
    pub fn put_into(&self, evaluator: &mut Evaluator) -> u64 {
        match &self.compiled {
            Some(compiled) => compiled.put_into(evaluator),
            None => evaluator.change_program(
                Arc::default(),
                Arc::<Binding>::default(),
                Arc::new(SharedLayouts::default()),
            ),
        }
        self.evaluations
    }
}

fn metrics(compiled: &Option<Arc<Compiled>>) -> &[Metric] {
    compiled.as_ref().map_or(&[], |compiled| &compiled.metrics)
}

impl<S: FetchSource> Session<S> {
    /// Compiles definitions of the session's registry, and expressions without a
    /// name, for sampling from now on. A definition that cannot be used gets a
    /// diagnostic and does not affect the others. The new choice replaces the old
    /// one. Previous samples stay for definitions with the same name and text as before,
    /// whose operands are the same metrics. Diagnostics point into the texts of the
    /// selection and of the registry, which must therefore be in one map; see [`Session`].
    ///
    /// # Errors
    /// The source failed. Nothing has changed.
    pub fn choose(
        &mut self,
        selection: &[&Registered],
        diagnostics: &mut Diagnostics,
    ) -> Result<(), SourceError> {
        self.refresh();
        let registry = &self.scope.registry;
        let compiled = self.engine.compile(registry, selection, &mut self.source, diagnostics)?;
        let selection = selection.iter().map(|one| (*one).clone()).collect();
        self.adopt(selection, compiled);
        self.put_in_force(Task::Choice);
        Ok(())
    }

    /// Makes a selection the choice, compiled from answers that the source has just given.
    fn adopt(&mut self, selection: Vec<Registered>, compiled: Arc<Compiled>) {
        // The first question may have connected to another peer. All answers
        // are from that peer.
        let epoch = self.source.metadata_epoch();
        let is_whole = compiled.metrics.iter().all(|metric| metric.desc.is_ok());
        let before = self.choice.retry.filter(|_| self.choice.epoch == epoch);
        let retry = (!is_whole).then(|| Retry::after(before, Instant::now(), WAITS));
        let (compiled, found) = (Some(compiled), None);
        self.choice =
            Choice { selection, compiled, retry, found, epoch, lost: false, evaluations: 0 };
    }

    /// Compiles the choice for changed metadata. True if the program is another one then.
    fn follow_metadata(&mut self) -> Result<bool, SourceError> {
        let selection: Vec<&Registered> = self.choice.selection.iter().collect();
        let (registry, mut found) = (&self.scope.registry, Diagnostics::default());
        let compiled = self.engine.compile(registry, &selection, &mut self.source, &mut found)?;
        let before = self.choice.compiled.take();
        let is_same = before.is_some_and(|before| Arc::ptr_eq(&before, &compiled));
        let (selection, evaluations) =
            (std::mem::take(&mut self.choice.selection), self.choice.evaluations);
        self.adopt(selection, compiled);
        self.choice.found = Some(found);
        if is_same {
            self.choice.evaluations = evaluations;
            return Ok(false);
        }
        self.put_in_force(Task::Choice);
        Ok(true)
    }

    /// The chosen metrics, in the order of the request.
    pub fn metrics(&self) -> &[Metric] {
        metrics(&self.choice.compiled)
    }

    /// The chosen metrics, and the source.
    pub fn metrics_and_source(&mut self) -> (&[Metric], &mut S) {
        (metrics(&self.choice.compiled), &mut self.source)
    }

    /// The program for the chosen metrics.
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.choice.compiled.as_ref().map(|compiled| &compiled.program)
    }

    /// True if the first sample leaves a chosen metric without values because
    /// it needs two samples.
    pub fn needs_two_samples(&self) -> bool {
        self.program().is_some_and(|program| !program.histories.is_empty())
    }

    /// True if the source's metadata may have changed since the choice, so that
    /// the choice must be made again. Changed definitions have no part in this: a
    /// choice keeps those that it was made of. A metric that the source lacked may appear without a
    /// notice. So it is time to look again after some seconds, later after half a minute. The
    /// compatible dialects bind only once.
    pub fn is_stale(&self) -> bool {
        let Choice { lost, epoch, retry, .. } = &self.choice;
        let is_due = retry.is_some_and(|retry| retry.is_due(Instant::now()));
        let changed = *lost || is_due || self.source.metadata_epoch() != *epoch;
        self.dialect() == Dialect::Fixed && changed
    }

    /// Fetches and evaluates the chosen metrics. Without a choice there are
    /// none. Call [`Session::is_stale`] before each sample, and choose again if it is
    /// true: otherwise a metric whose type has changed gives wrong numbers. If the reply
    /// itself announces changes, the choice is compiled for them and fetched once more.
    ///
    /// # Errors
    /// The fetch failed.
    pub fn sample<'s>(&'s mut self, space: &'s mut Space) -> Result<Sample<'s, S>, SourceError> {
        if self.running.in_force != Task::Choice {
            self.put_in_force(Task::Choice);
        }
        self.named.values_mut().for_each(NamedInstances::begin);
        let mut events = self.fetch_choice(&mut space.workspace.batch)?;
        for _ in 0..MOST_REPEATED {
            if !self.is_announced(events, self.choice.epoch) {
                break;
            }
            self.running.before = self.running.before.with(events);
            if !self.follow_metadata()? {
                break;
            }
            events = self.fetch_choice(&mut space.workspace.batch)?;
        }
        let Session { engine, source, choice, running, named, .. } = self;
        let sampled = running.evaluate(events, engine, source, &mut space.workspace);
        let (values, events) = sampled.inspect_err(|error| choice.lost |= error.is_transient())?;
        let Choice { compiled, lost, found, .. } = choice;
        let (metrics, compiled) = (metrics(compiled), compiled.as_deref());
        let found = found.take();
        Ok(Sample { metrics, values, source, events, found, compiled, lost, named })
    }

    fn fetch_choice(&mut self, batch: &mut ResultBatch) -> Result<FetchEvents, SourceError> {
        let fetched = self.running.fetch(&mut self.source, batch);
        fetched.inspect_err(|error| self.choice.lost |= error.is_transient())
    }
}
