//! Fetching from a host and evaluating what it delivers, without blocking.
//!
//! The counterpart of [`Evaluator::fetch`] for an [`AsyncHostContext`], with the
//! same questions and answers.

use pmderive_core::eval::{Asked, Evaluation, Evaluator, Step, Workspace};
use pmderive_core::source::{FetchEvents, SourceError};

use super::async_host::AsyncHostContext;
use crate::transport::Transport;

impl<T: Transport> AsyncHostContext<T> {
    /// Fetches what an evaluator requests, and evaluates it.
    ///
    /// A future that is dropped before its end has evaluated nothing. It takes
    /// the connection along, so that the next fetch is behind a gap: what needs
    /// two samples has its next value with the one after it.
    ///
    /// The workspace is in use until the future ends. Where many hosts share
    /// one, each has a batch of its own for [`AsyncHostContext::fetch`], and
    /// only [`Evaluator::evaluate`] needs the workspace's buffers; what it
    /// asks, [`AsyncHostContext::ask`] answers.
    ///
    /// # Errors
    /// The source failed, or what it delivered does not fit together; nothing
    /// was evaluated.
    pub async fn evaluate<'w>(
        &mut self,
        evaluator: &'w mut Evaluator,
        workspace: &'w mut Workspace,
    ) -> Result<(Evaluation<'w>, FetchEvents), SourceError> {
        let Workspace { batch, buffers } = workspace;
        let events = self.fetch(evaluator.requests(), batch).await?;
        let mut step = evaluator.evaluate(batch, events, buffers);
        loop {
            match step.map_err(|error| error.of_source(self.spec().to_string()))? {
                Step::Done(evaluation) => return Ok((evaluation, events)),
                Step::Needs(mut pending) => {
                    let Asked { questions, answers } = pending.asked();
                    self.ask(&questions, answers).await?;
                    step = pending.proceed();
                }
            }
        }
    }
}
