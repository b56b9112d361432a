//! Fetching from a source that blocks, and evaluating what it delivers, in one call.
//!
//! All that evaluating does not do itself: the source is asked for values, and
//! for what the evaluator wants to know about instances. For a source whose
//! calls are futures it is in `pmderive_client::context`.

use crate::eval::{Asked, Evaluation, Evaluator, Step, Workspace};
use crate::source::{FetchEvents, FetchSource, SourceError};

impl Evaluator {
    /// Fetches from the source and evaluates.
    ///
    /// # Errors
    /// The source failed, or what it delivered does not fit together; nothing
    /// was evaluated.
    pub fn fetch<'w>(
        &'w mut self,
        source: &mut dyn FetchSource,
        workspace: &'w mut Workspace,
    ) -> Result<(Evaluation<'w>, FetchEvents), SourceError> {
        let Workspace { batch, buffers } = workspace;
        batch.clear();
        let events = source.fetch(self.requests(), batch)?;
        let mut step = self.evaluate(batch, events, buffers);
        loop {
            match step.map_err(|error| error.of_source(source.name()))? {
                Step::Done(evaluation) => return Ok((evaluation, events)),
                Step::Needs(mut pending) => {
                    let Asked { questions, answers } = pending.asked();
                    source.ask(&questions, answers)?;
                    step = pending.proceed();
                }
            }
        }
    }
}
