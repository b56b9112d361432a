//! Fetches from a blocking source and evaluates the result, in one call.
//!
//! The evaluator requests values and facts about instances; this module asks the source for them.
//! For sources whose calls are futures, `pmderive_client::context` does it.

use crate::eval::{Asked, Evaluation, Evaluator, Step, Workspace};
use crate::source::{FetchEvents, FetchSource, SourceError};

impl Evaluator {
    /// Fetches from the source and evaluates.
    ///
    /// # Errors
    /// The source failed, or the parts of its answer do not fit together.
    /// Nothing was evaluated.
    pub fn fetch<'w>(
        &'w mut self,
        source: &mut dyn FetchSource,
        workspace: &'w mut Workspace,
    ) -> Result<(Evaluation<'w>, FetchEvents), SourceError> {
        workspace.batch.clear();
        let events = source.fetch(self.requests(), &mut workspace.batch)?;
        Ok((self.evaluate_fetched(events, source, workspace)?, events))
    }

    /// Evaluates the batch of a workspace. It holds the source's latest answer to
    /// [`Evaluator::requests`], with these events.
    ///
    /// # Errors
    /// The source failed, or the parts of its answer do not fit together.
    /// Nothing was evaluated.
    pub fn evaluate_fetched<'w>(
        &'w mut self,
        events: FetchEvents,
        source: &mut dyn FetchSource,
        workspace: &'w mut Workspace,
    ) -> Result<Evaluation<'w>, SourceError> {
        let Workspace { batch, buffers } = workspace;
        let mut step = self.evaluate(batch, events, buffers);
        loop {
            match step.map_err(|error| error.of_source(source.name()))? {
                Step::Done(evaluation) => return Ok(evaluation),
                Step::Needs(mut pending) => {
                    let Asked { questions, answers } = pending.asked();
                    source.ask(&questions, answers)?;
                    step = pending.proceed();
                }
            }
        }
    }
}
