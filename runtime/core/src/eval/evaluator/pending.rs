//! One evaluation in steps. A step gives values, or it asks for further facts
//! about the source and goes on with the answers.
//!
//! No step waits: the caller gets the answers and calls again.

use std::borrow::Cow;

use super::settle::Misfit;
use super::{Buffers, Evaluator};
use crate::eval::layout::Domain;
use crate::eval::results::Evaluation;
use crate::eval::selected::lacking;
use crate::model::{InDom, InstId, Pmid};
use crate::result::ResultBatch;
use crate::source::{Answer, FetchEvents, Freshness, Question, SourceError, of_kind};

/// The result of a step.
#[derive(Debug)]
// Exhaustive on purpose: a caller must handle each step, and the compiler
// reports a missing one.
pub enum Step<'w> {
    /// The evaluation is complete.
    Done(Evaluation<'w>),
    /// The evaluation needs answers.
    Needs(Pending<'w>),
}

/// An evaluation that waits for answers. If it is dropped, the evaluation did
/// not happen: the previous samples stay, unless there was a gap.
#[derive(Debug)]
pub struct Pending<'w> {
    evaluator: &'w mut Evaluator,
    batch: &'w ResultBatch,
    buffers: &'w mut Buffers,
    at_gap: bool,
    stage: Stage,
}

/// The questions of an evaluation to the source of its values, and the place
/// for the answers. There must be one answer for each question, in order, as
/// [`MetadataSource::ask`](crate::source::MetadataSource::ask) gives them.
///
/// Each evaluation first asks about all of [`Evaluator::named_domains`] with
/// [`Freshness::Cached`]. If some have changed since, it asks about these with
/// [`Freshness::Current`]. If instances with values are still not in their
/// domain, it asks for their names at other times.
#[derive(Debug)]
pub struct Asked<'p> {
    /// The questions.
    pub questions: Cow<'p, [Question<'p>]>,
    /// Receives the answers.
    pub answers: &'p mut Vec<Answer>,
}

/// Names of instances at other times, with the positions of their domains.
pub type OtherNames = Vec<(usize, Vec<(InstId, Box<str>)>)>;

/// Buffers for questions and answers.
#[derive(Debug, Default)]
pub struct Answers {
    questions: Vec<Question<'static>>,
    given: Vec<Answer>,
    domains: Vec<Domain>,
}

/// The current question. Positions count the filters' domains.
#[derive(Debug)]
enum Stage {
    /// Asks for the known state of each filter's domain.
    Known,
    /// Asks for the current state of some domains.
    Current { found: Misfit, positions: Vec<usize>, indoms: Vec<InDom> },
    /// Asks for names at other times of instances that the domains lack.
    OtherTimes { found: Misfit, positions: Vec<usize>, instances: Vec<(InDom, Vec<InstId>)> },
}

/// The parts of the delivery do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Inconsistent {
    /// Fewer value sets than metrics.
    #[error("wrong number of value sets: {got} instead of {want}")]
    ValueSets {
        /// Metrics of the program.
        want: usize,
        /// Value sets.
        got: usize,
    },
    /// A value set of another metric than the one at its position in the list.
    #[error("value set {} is of metric {got} instead of {want}", .at + 1)]
    OtherMetric {
        /// Position in the list.
        at: usize,
        /// The metric at this position.
        want: Pmid,
        /// The metric of the value set.
        got: Pmid,
    },
    /// Fewer instance domains than the list of metrics has.
    #[error("wrong number of instance domains: {got} instead of {want}")]
    Domains {
        /// Domains of the program.
        want: usize,
        /// Domains delivered.
        got: usize,
    },
    /// The number of answers differs from the number of questions.
    #[error("wrong number of answers about instances: {got} instead of {want}")]
    Answers {
        /// Number of questions.
        want: usize,
        /// Number of answers.
        got: usize,
    },
    /// Places of values are 32-bit numbers.
    #[error("the values of one fetch take more than 4 GiB")]
    TooLarge,
}

impl Inconsistent {
    /// The error of the source that delivered this, with the source's name.
    pub fn of_source(self, target: String) -> SourceError {
        SourceError::Malformed { target, source: Box::new(self) }
    }
}

impl Evaluator {
    /// Evaluates the result of a fetch of [`Evaluator::requests`]. Call it
    /// right after the fetch. `events` are those of the fetch. If they report a
    /// gap, previous samples are forgotten at once, even if the evaluation
    /// fails or is dropped.
    ///
    /// A fetch counts as one evaluation, however many questions it takes.
    /// Without filters there are no questions.
    ///
    /// # Errors
    /// The batch does not fit the requests. Nothing was evaluated.
    pub fn evaluate<'w>(
        &'w mut self,
        batch: &'w ResultBatch,
        events: FetchEvents,
        buffers: &'w mut Buffers,
    ) -> Result<Step<'w>, Inconsistent> {
        if events.gap {
            // libpcp has no windows, so every dialect clears them at a gap.
            self.forget_windows();
            if self.program.forget_at_gap {
                self.forget_history();
            }
        }
        buffers.answers.clear();
        let no_filters = self.binding.named_domains.is_empty();
        let at_gap = events.gap;
        let pending = Pending { evaluator: self, batch, buffers, at_gap, stage: Stage::Known };
        if no_filters { pending.proceed() } else { Ok(Step::Needs(pending)) }
    }
}

impl<'w> Pending<'w> {
    /// The questions of this step.
    pub fn asked(&mut self) -> Asked<'_> {
        let Answers { questions, given, .. } = &mut self.buffers.answers;
        let (indoms, freshness) = match &self.stage {
            Stage::Known => (&self.evaluator.binding.named_domains, Freshness::Cached),
            Stage::Current { indoms, .. } => (indoms, Freshness::Current),
            Stage::OtherTimes { instances, .. } => {
                let asked = instances.iter();
                let asked = asked.map(|(indom, ids)| Question::NamesAtOtherTimes(*indom, ids));
                return Asked { questions: asked.collect(), answers: given };
            }
        };
        questions.clear();
        questions.extend(indoms.iter().map(|indom| Question::Domain(*indom, freshness)));
        Asked { questions: Cow::Borrowed(questions), answers: given }
    }

    /// Goes on with the answers.
    ///
    /// # Errors
    /// The number of answers is wrong, or the batch does not fit the requests.
    /// Nothing was evaluated.
    pub fn proceed(self) -> Result<Step<'w>, Inconsistent> {
        let Pending { evaluator, batch, buffers, at_gap, stage } = self;
        let next = match stage {
            Stage::Known => evaluator.with_known_domains(batch, buffers)?,
            Stage::Current { found, positions, .. } => {
                evaluator.with_current_domains(found, &positions, &mut buffers.answers)?
            }
            Stage::OtherTimes { found, positions, .. } => {
                let given = &mut buffers.answers.given;
                expect(positions.len(), given.len())?;
                // Any other answer means that the source has no such names.
                let names = given.drain(..).map(|names| of_kind(names).unwrap_or_default());
                Next::Decode(found, positions.into_iter().zip(names).collect())
            }
        };
        if let Next::Ask(stage) = next {
            return Ok(Step::Needs(Pending { evaluator, batch, buffers, at_gap, stage }));
        }
        evaluator.note_time(batch, at_gap);
        if let Next::Decode(found, others) = next {
            evaluator.change_layout(found, others, batch, buffers)?;
        }
        let layout = evaluator.layout.take().expect("it is made before anything is decoded");
        Ok(Step::Done(evaluator.compute(layout, batch, buffers)))
    }
}

/// The step after some answers.
enum Next {
    /// Ask again.
    Ask(Stage),
    /// All facts are complete, and the current layout does not fit.
    Decode(Misfit, OtherNames),
    /// The layout fits and everything is decoded.
    Compute,
}

impl Evaluator {
    /// Goes on with the known state of the filters' domains.
    fn with_known_domains(
        &mut self,
        batch: &ResultBatch,
        buffers: &mut Buffers,
    ) -> Result<Next, Inconsistent> {
        expect(self.binding.named_domains.len(), buffers.answers.given.len())?;
        let mut answers = std::mem::take(&mut buffers.answers.domains);
        answers.extend(buffers.answers.given.drain(..).map(of_kind));
        // While layouts take turns, the one in force does not fit: nothing is decoded for it.
        let mut delivery = None;
        if self.returning.take_turns {
            buffers.clear_dirty(self.layout.as_ref());
            delivery = self.return_by(batch, buffers)?;
        }
        let mut is_decoded = self.decode_as_expected(&answers, batch, buffers);
        if matches!(is_decoded, Ok(false)) && delivery.is_none() {
            delivery = self.return_by(batch, buffers)?;
            if self.returning.take_turns {
                is_decoded = self.decode_as_expected(&answers, batch, buffers);
            }
        }
        let named = match is_decoded {
            Ok(false) => answers.clone(),
            _ => Vec::new(),
        };
        // Keeps the buffer: the next fetch will ask as many questions.
        answers.clear();
        buffers.answers.domains = answers;
        if is_decoded? {
            return Ok(Next::Compute);
        }
        let found = self.survey(batch, buffers, named, delivery)?;
        if !found.needs_domains {
            return Ok(Next::Decode(found, OtherNames::new()));
        }
        let positions = self.outdated(&found);
        if positions.is_empty() {
            return Ok(Next::Decode(found, OtherNames::new()));
        }
        let indoms = positions.iter().map(|at| self.binding.named_domains[*at]).collect();
        Ok(Next::Ask(Stage::Current { found, positions, indoms }))
    }

    /// Goes on with the current state of some domains.
    fn with_current_domains(
        &mut self,
        mut found: Misfit,
        positions: &[usize],
        answers: &mut Answers,
    ) -> Result<Next, Inconsistent> {
        expect(positions.len(), answers.given.len())?;
        for (at, domain) in positions.iter().zip(answers.given.drain(..)) {
            found.named[*at] = of_kind(domain);
        }
        let (mut positions, mut instances) = (Vec::new(), Vec::new());
        // If verdicts of patterns stay, names of other times do not matter.
        let names_count = !self.program.verdicts_stay;
        for (at, domain) in found.named.iter().enumerate().filter(|_| names_count) {
            let lacking = lacking(&self.program, &found.surveys, at, domain);
            if !lacking.is_empty() {
                positions.push(at);
                instances.push((self.binding.named_domains[at], lacking));
            }
        }
        if positions.is_empty() {
            return Ok(Next::Decode(found, OtherNames::new()));
        }
        Ok(Next::Ask(Stage::OtherTimes { found, positions, instances }))
    }
}

impl Answers {
    /// Removes the answers but keeps the buffers.
    fn clear(&mut self) {
        self.given.clear();
        self.domains.clear();
    }
}

/// Checks the number of answers.
fn expect(want: usize, got: usize) -> Result<(), Inconsistent> {
    if want == got { Ok(()) } else { Err(Inconsistent::Answers { want, got }) }
}
