//! Definitions and expressions that a session was told to compute, in an order.
//! Sources that are alike share the program, as with [`Engine::compile`].

use std::sync::Arc;

use pmderive_runtime::eval::{Evaluator, SharedLayouts};
use pmderive_runtime::program::{Binding, Program};
use pmderive_runtime::source::{FetchSource, SourceError};

use super::{InForce, Sample, Session, Space};
use crate::diag::Diagnostics;
use crate::dialect::Dialect;
use crate::engine::{Compiled, Metric, Registered};

/// What was chosen.
#[derive(Default)]
pub(super) struct Choice {
    /// Nothing before the first choice.
    compiled: Option<Arc<Compiled>>,
    /// The source's metadata that it was compiled against.
    epoch: u64,
    /// The source failed, so that it may be another one now.
    lost: bool,
    /// How often it was evaluated when something else came into force.
    pub evaluations: u64,
}

impl Choice {
    /// Lets an evaluator compute it; gives how often it was evaluated.
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
    /// Compiles definitions of the session's registry, and expressions without
    /// a name, to be sampled from now on. Those that cannot be used have a
    /// diagnostic and harm no other. What was chosen before is replaced;
    /// previous samples of definitions whose operands are the same metrics as
    /// before are kept.
    ///
    /// # Errors
    /// The source failed; everything is as before.
    pub fn choose(
        &mut self,
        selection: &[&Registered],
        diagnostics: &mut Diagnostics,
    ) -> Result<(), SourceError> {
        self.refresh();
        let registry = &self.scope.registry;
        let compiled = self.engine.compile(registry, selection, &mut self.source, diagnostics)?;
        // The first question may have made a connection to another peer; all
        // answers are its.
        let epoch = self.source.metadata_epoch();
        self.choice = Choice { compiled: Some(compiled), epoch, lost: false, evaluations: 0 };
        self.put_in_force(InForce::Choice);
        Ok(())
    }

    /// The chosen metrics, in the order asked for.
    pub fn metrics(&self) -> &[Metric] {
        metrics(&self.choice.compiled)
    }

    /// The chosen metrics, and the source.
    pub fn metrics_and_source(&mut self) -> (&[Metric], &mut S) {
        (metrics(&self.choice.compiled), &mut self.source)
    }

    /// What computes the chosen metrics.
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.choice.compiled.as_ref().map(|compiled| &compiled.program)
    }

    /// True if a first sample gives some chosen metric no value because it
    /// needs two.
    pub fn needs_two_samples(&self) -> bool {
        self.program().is_some_and(|program| !program.histories.is_empty())
    }

    /// True if the source's metadata may have changed since the choice, so that
    /// it is to be made again. The compatible dialects bind once.
    pub fn is_stale(&self) -> bool {
        let changed = self.choice.lost || self.source.metadata_epoch() != self.choice.epoch;
        self.dialect() == Dialect::Fixed && changed
    }

    /// Fetches and evaluates what was chosen. Without a choice there are no
    /// metrics.
    ///
    /// # Errors
    /// Those of the fetch.
    pub fn sample<'s>(&'s mut self, space: &'s mut Space) -> Result<Sample<'s, S>, SourceError> {
        if self.running.in_force != InForce::Choice {
            self.put_in_force(InForce::Choice);
        }
        let Session { engine, source, choice, running, .. } = self;
        let fetched = running.fetch(engine, source, &mut space.workspace);
        let (values, events) = fetched.inspect_err(|error| choice.lost |= error.is_transient())?;
        let Choice { compiled, lost, .. } = choice;
        Ok(Sample { metrics: metrics(compiled), values, source, events, lost })
    }
}
