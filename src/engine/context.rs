//! A selection of derived metrics in one context: fetches and evaluates.

use std::sync::Arc;

use pmderive_runtime::eval::{Evaluation, Evaluator, Workspace};
use pmderive_runtime::model::{InDom, InstanceDomain, PmStatus};
use pmderive_runtime::program::Program;
use pmderive_runtime::source::{FetchEvents, FetchSource, Freshness, SourceError};

use super::{Engine, Metric, Registered, Registry};
use crate::diag::Diagnostics;
use crate::dialect::Dialect;

/// A source of metrics with derived metrics compiled for it. May move between
/// threads; several contexts fetch and evaluate in parallel.
pub struct Context<S> {
    pub(super) engine: Arc<Engine>,
    pub(super) source: S,
    metrics: Arc<[Metric]>,
    pub(super) evaluator: Evaluator,
    /// The source's metadata that the metrics were compiled against.
    epoch: u64,
    /// Evaluations of the program in use.
    pub(super) evaluations: u64,
}

/// What one fetch gave.
#[derive(Debug)]
pub struct Sample<'s, S> {
    /// The metrics, in the order asked for.
    pub metrics: &'s [Metric],
    /// Values of those that have an output.
    pub values: Evaluation<'s>,
    /// The source, for names of instances as of the fetch.
    pub source: &'s mut S,
    /// What happened since the previous fetch.
    pub events: FetchEvents,
}

impl<S: FetchSource> Context<S> {
    /// Compiles a selection for a source.
    ///
    /// # Errors
    /// The source failed. Mistakes in definitions are in `diagnostics`.
    pub fn new(
        engine: Arc<Engine>,
        mut source: S,
        registry: &Registry,
        selection: &[&Registered],
        diagnostics: &mut Diagnostics,
    ) -> Result<Context<S>, SourceError> {
        let compiled = engine.compile(registry, selection, &mut source, diagnostics)?;
        let (metrics, evaluator) = (Arc::clone(&compiled.metrics), compiled.evaluator());
        let epoch = source.metadata_epoch();
        Ok(Context { engine, source, metrics, evaluator, epoch, evaluations: 0 })
    }

    /// A source without derived metrics yet.
    pub(super) fn empty(engine: Arc<Engine>, source: S) -> Context<S> {
        let evaluator = Evaluator::new(Arc::default(), Arc::default());
        let epoch = source.metadata_epoch();
        Context { engine, source, metrics: Arc::default(), evaluator, epoch, evaluations: 0 }
    }

    /// The metrics, in the order asked for.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The program in use.
    pub fn program(&self) -> &Arc<Program> {
        self.evaluator.program()
    }

    /// The source.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// The metrics, and the source.
    pub fn metrics_and_source(&mut self) -> (&[Metric], &mut S) {
        (&self.metrics, &mut self.source)
    }

    /// True if a first sample gives some metric no value because it needs two.
    pub fn needs_two_samples(&self) -> bool {
        !self.evaluator.program().histories.is_empty()
    }

    /// True if the source's metadata may have changed since compilation, so
    /// that [`Context::recompile`] is due. The compatible dialects bind once.
    pub fn is_stale(&self) -> bool {
        self.engine.dialect() == Dialect::Fixed && self.source.metadata_epoch() != self.epoch
    }

    /// Binds and compiles anew. Previous samples of definitions whose
    /// operands are the same metrics as before are kept.
    ///
    /// # Errors
    /// The source failed; everything is as before.
    pub fn recompile(
        &mut self,
        registry: &Registry,
        selection: &[&Registered],
        diagnostics: &mut Diagnostics,
    ) -> Result<(), SourceError> {
        let compiled = self.engine.compile(registry, selection, &mut self.source, diagnostics)?;
        self.metrics = Arc::clone(&compiled.metrics);
        compiled.put_into(&mut self.evaluator);
        // The first question may have made a connection to another peer; all
        // answers are its.
        self.epoch = self.source.metadata_epoch();
        self.evaluations = 0;
        Ok(())
    }

    /// Fetches and evaluates.
    ///
    /// # Errors
    /// Those of the fetch.
    pub fn fetch<'s>(
        &'s mut self,
        workspace: &'s mut Workspace,
    ) -> Result<Sample<'s, S>, SourceError> {
        self.evaluations += 1;
        self.engine.compiler.evaluated(
            self.evaluator.program(),
            self.evaluations,
            &self.engine.threads,
        );
        let (values, events) = self.evaluator.fetch(&mut self.source, workspace)?;
        Ok(Sample { metrics: &self.metrics, values, source: &mut self.source, events })
    }
}

impl<S: FetchSource> Sample<'_, S> {
    /// Names of a domain's instances as of the fetch. If one of `ids` is not
    /// among those known the source is asked again, and an archive for the
    /// names that instances have at other times.
    ///
    /// # Errors
    /// The source failed.
    pub fn instance_names(
        &mut self,
        indom: InDom,
        ids: &[i32],
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        let complete = |domain: &InstanceDomain| ids.iter().all(|id| domain.name(*id).is_some());
        let known = self.source.instance_domain(indom, Freshness::Cached)?;
        if known.as_ref().is_ok_and(|domain| complete(domain)) {
            return Ok(known);
        }
        let now = self.source.instance_domain(indom, Freshness::Current)?;
        if now.as_ref().is_ok_and(|domain| complete(domain)) {
            return Ok(now);
        }
        let lacks = |id: &&i32| now.as_ref().map_or(true, |now| now.name(**id).is_none());
        let lacking: Vec<i32> = ids.iter().filter(lacks).copied().collect();
        let others = self.source.names_at_other_times(indom, &lacking)?;
        if others.is_empty() {
            return Ok(now);
        }
        let own = now.iter().flat_map(|domain| domain.instances());
        let own = own.map(|(id, name)| (id, name.into()));
        Ok(Ok(Arc::new(InstanceDomain::new(own.chain(others).collect()))))
    }
}
