//! Fetches from a host and evaluates the result, without blocking.
//!
//! This is the counterpart of [`Evaluator::fetch`] for an [`AsyncHostContext`].

use pmderive_core::eval::{Asked, Buffers, Evaluation, Evaluator, Step, Workspace};
use pmderive_core::result::ResultBatch;
use pmderive_core::source::{FetchEvents, SourceError};

use super::async_host::AsyncHostContext;
use crate::transport::Transport;

impl<T: Transport> AsyncHostContext<T> {
    /// Fetches the metrics that an evaluator requests, and evaluates them.
    ///
    /// If the future is dropped before its end, nothing has been evaluated, and the
    /// connection is dropped too. The next fetch then reports a gap. Expressions that
    /// need two samples have their next value only with the fetch after it.
    ///
    /// The workspace is in use until the future ends. If many hosts share buffers, give
    /// each host its own batch for [`AsyncHostContext::fetch`], and evaluate it with
    /// [`AsyncHostContext::evaluate_fetched`].
    ///
    /// If [`metadata_epoch`](AsyncHostContext::metadata_epoch) is another one afterwards, the
    /// program may have read other metrics than it was bound to: discard these values, and bind
    /// again before the next ones.
    ///
    /// # Errors
    /// The source failed, or its result is inconsistent. Nothing was evaluated.
    pub async fn evaluate<'w>(
        &mut self,
        evaluator: &'w mut Evaluator,
        workspace: &'w mut Workspace,
    ) -> Result<(Evaluation<'w>, FetchEvents), SourceError> {
        let Workspace { batch, buffers } = workspace;
        let events = self.fetch(evaluator.requests(), batch).await?;
        Ok((self.evaluate_fetched(events, evaluator, batch, buffers).await?, events))
    }

    /// Evaluates a batch that holds this host's latest answer to [`Evaluator::requests`],
    /// with these events.
    ///
    /// # Errors
    /// As for [`AsyncHostContext::evaluate`].
    pub async fn evaluate_fetched<'w>(
        &mut self,
        events: FetchEvents,
        evaluator: &'w mut Evaluator,
        batch: &'w ResultBatch,
        buffers: &'w mut Buffers,
    ) -> Result<Evaluation<'w>, SourceError> {
        let mut step = evaluator.evaluate(batch, events, buffers);
        loop {
            match step.map_err(|error| error.of_source(self.spec().to_string()))? {
                Step::Done(evaluation) => return Ok(evaluation),
                Step::Needs(mut pending) => {
                    let Asked { questions, answers } = pending.asked();
                    self.ask(&questions, answers).await?;
                    step = pending.proceed();
                }
            }
        }
    }
}
