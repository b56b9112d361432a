//! The definitions and expressions that a session's user chose to compute, in
//! the user's order. Similar sources share the program, as with
//! [`Engine::compile`].

use std::sync::Arc;

use pmderive_runtime::eval::{Evaluator, SharedLayouts};
use pmderive_runtime::program::{Binding, Program};
use pmderive_runtime::source::{FetchSource, SourceError};

use super::{NamedInstances, Sample, Session, Space, Task};
use crate::diag::Diagnostics;
use crate::dialect::Dialect;
use crate::engine::metric::Metric;
use crate::engine::{Compiled, Registered};

/// The current choice.
#[derive(Default)]
pub(super) struct Choice {
    /// `None` before the first choice.
    compiled: Option<Arc<Compiled>>,
    /// Epoch of the source's metadata for which it was compiled.
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
    /// one. Previous samples stay for definitions whose operands are the same
    /// metrics as before. Diagnostics point into the texts of the selection and of
    /// the registry, which must therefore be in one map; see [`Session`].
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
        // The first question may have connected to another peer. All answers
        // are from that peer.
        let epoch = self.source.metadata_epoch();
        self.choice = Choice { compiled: Some(compiled), epoch, lost: false, evaluations: 0 };
        self.put_in_force(Task::Choice);
        Ok(())
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
    /// the choice must be made again. The compatible dialects bind only once.
    pub fn is_stale(&self) -> bool {
        let changed = self.choice.lost || self.source.metadata_epoch() != self.choice.epoch;
        self.dialect() == Dialect::Fixed && changed
    }

    /// Fetches and evaluates the chosen metrics. Without a choice there are
    /// none. The choice stays bound to the metadata that it was made with. Call
    /// [`Session::is_stale`] before each sample, and choose again if it is true:
    /// otherwise a metric whose type has changed gives wrong numbers.
    ///
    /// # Errors
    /// The fetch failed.
    pub fn sample<'s>(&'s mut self, space: &'s mut Space) -> Result<Sample<'s, S>, SourceError> {
        if self.running.in_force != Task::Choice {
            self.put_in_force(Task::Choice);
        }
        let Session { engine, source, choice, running, named, .. } = self;
        named.values_mut().for_each(NamedInstances::begin);
        let fetched = running.fetch(engine, source, &mut space.workspace);
        let (values, events) = fetched.inspect_err(|error| choice.lost |= error.is_transient())?;
        let Choice { compiled, lost, .. } = choice;
        let (metrics, compiled) = (metrics(compiled), compiled.as_deref());
        Ok(Sample { metrics, values, source, events, compiled, lost, named })
    }
}
