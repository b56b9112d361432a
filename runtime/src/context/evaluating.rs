//! Fetching from a host and evaluating what it delivers, without blocking.
//!
//! The counterpart of [`Evaluator::fetch`] for an [`AsyncHostContext`], with the
//! same questions and answers.

use super::async_host::AsyncHostContext;
use crate::eval::{DomainQuestion, Evaluation, Evaluator, Step, Workspace};
use crate::source::{FetchEvents, SourceError};
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
    /// only [`Evaluator::evaluate`] needs the workspace's buffers; then
    /// [`AsyncHostContext::answer_domains`] has the answers.
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
                    self.answer_domains(pending.question()).await?;
                    step = pending.proceed();
                }
            }
        }
    }

    /// Answers what an evaluation needs to know of this host besides values.
    /// Nobody is asked for what is known.
    ///
    /// # Errors
    /// The source failed.
    pub async fn answer_domains(
        &mut self,
        question: DomainQuestion<'_>,
    ) -> Result<(), SourceError> {
        match question {
            DomainQuestion::Domains { indoms, freshness, answers } => {
                let known = self.known_domains(indoms, freshness);
                answers.extend(known.map(Ok));
                let open = &indoms[answers.len()..];
                if !open.is_empty() {
                    answers.extend(self.instance_domain_of_each(open, freshness).await?);
                }
            }
            // A live source has no other times.
            DomainQuestion::Names { instances, answers } => {
                answers.resize_with(instances.len(), Vec::new);
            }
        }
        Ok(())
    }
}
