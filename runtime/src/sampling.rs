//! Fetching from a source that blocks, and evaluating what it delivers, in one call.
//!
//! All that evaluating does not do itself: the source is asked for values, and
//! for what the evaluator wants to know about instances. For a source whose
//! calls are futures it is in [`crate::context`].

use crate::eval::{DomainQuestion, Evaluation, Evaluator, Step, Workspace};
use crate::source::{FetchEvents, FetchSource, Freshness, SourceError};

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
                    answer(source, pending.question())?;
                    step = pending.proceed();
                }
            }
        }
    }
}

fn answer(source: &mut dyn FetchSource, question: DomainQuestion<'_>) -> Result<(), SourceError> {
    match question {
        // This is asked with every fetch, and known already.
        DomainQuestion::Domains { indoms, freshness: Freshness::Cached, answers } => {
            for indom in indoms {
                answers.push(source.instance_domain(*indom, Freshness::Cached)?);
            }
        }
        DomainQuestion::Domains { indoms, freshness, answers } => {
            answers.extend(source.instance_domain_of_each(indoms, freshness)?);
        }
        DomainQuestion::Names { instances, answers } => {
            for (indom, instances) in instances {
                answers.push(source.names_at_other_times(*indom, instances)?);
            }
        }
    }
    Ok(())
}
