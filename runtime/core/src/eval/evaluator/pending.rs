//! One evaluation in steps: it gives values, or says what it needs to know
//! besides what was fetched, and goes on with the answers.
//!
//! Nothing here waits, or knows who answers.

use std::borrow::Cow;

use super::settle::Found;
use super::{Buffers, Evaluator};
use crate::eval::layout::Domain;
use crate::eval::results::Evaluation;
use crate::eval::selected::lacking;
use crate::model::{InDom, InstId};
use crate::result::ResultBatch;
use crate::source::{Answer, FetchEvents, Freshness, Question, SourceError, of_kind};

/// What became of an evaluation.
#[derive(Debug)]
pub enum Step<'w> {
    /// It is over.
    Done(Evaluation<'w>),
    /// It goes on once a question is answered.
    Needs(Pending<'w>),
}

/// An evaluation that waits for answers. Dropped, it has not taken place:
/// previous samples are those of the evaluation before, unless there was a gap.
#[derive(Debug)]
pub struct Pending<'w> {
    evaluator: &'w mut Evaluator,
    batch: &'w ResultBatch,
    buffers: &'w mut Buffers,
    at_gap: bool,
    stage: Stage,
}

/// What an evaluation needs to know of the source that its values are from,
/// and the place for the answers: one to each question, in order, as
/// [`MetadataSource::ask`](crate::source::MetadataSource::ask) gives them.
///
/// With every fetch it asks about all of [`Evaluator::named_domains`],
/// [`Freshness::Cached`]; then about those of them that have changed since,
/// [`Freshness::Current`], and for names at other times of instances that have
/// values and are not in their domain.
#[derive(Debug)]
pub struct Asked<'p> {
    /// The questions.
    pub questions: Cow<'p, [Question<'p>]>,
    /// The place for the answers.
    pub answers: &'p mut Vec<Answer>,
}

/// Names that instances had at other times, with the positions of their domains.
pub type OtherNames = Vec<(usize, Vec<(InstId, Box<str>)>)>;

/// Buffers for questions and answers.
#[derive(Debug, Default)]
pub struct Answers {
    questions: Vec<Question<'static>>,
    given: Vec<Answer>,
    domains: Vec<Domain>,
}

/// What is asked now. Positions are those of the filters' domains.
#[derive(Debug)]
enum Stage {
    /// What is known of each filter's domain.
    Known,
    /// What some of them are now.
    Current { found: Found, positions: Vec<usize>, indoms: Vec<InDom> },
    /// What instances that they lack were called at other times.
    OtherTimes { found: Found, positions: Vec<usize>, instances: Vec<(InDom, Vec<InstId>)> },
}

/// What was delivered does not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Inconsistent {
    /// Fewer value sets than metrics.
    #[error("a fetch of {want} metrics was answered with {got} value sets")]
    ValueSets {
        /// Metrics of the program.
        want: usize,
        /// Value sets.
        got: usize,
    },
    /// Fewer instance domains than were to come with the values.
    #[error("a fetch with {want} instance domains was answered with {got}")]
    Domains {
        /// Domains of the program.
        want: usize,
        /// Domains delivered.
        got: usize,
    },
    /// Another number of answers than of what was asked about.
    #[error("{want} questions about instances have {got} answers")]
    Answers {
        /// What was asked about.
        want: usize,
        /// Answers.
        got: usize,
    },
    /// Positions of values are numbers of 32 bits.
    #[error("the values of one fetch take more than 4 GiB")]
    TooLarge,
}

impl Inconsistent {
    /// The error of the source that delivered it, which is named.
    pub fn of_source(self, target: String) -> SourceError {
        SourceError::Malformed { target, source: Box::new(self) }
    }
}

impl Evaluator {
    /// Evaluates what a fetch of [`Evaluator::requests`] delivered, right after
    /// it: `events` are those of the fetch, and if they are of a gap previous
    /// samples are forgotten at once, whatever becomes of the evaluation.
    ///
    /// A fetch is evaluated once, however many questions that takes. Without
    /// filters there are none.
    ///
    /// # Errors
    /// The batch does not fit to the requests; nothing was evaluated.
    pub fn evaluate<'w>(
        &'w mut self,
        batch: &'w ResultBatch,
        events: FetchEvents,
        buffers: &'w mut Buffers,
    ) -> Result<Step<'w>, Inconsistent> {
        if events.gap {
            // Windows are nothing that an older implementation keeps.
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
    /// What the evaluation needs to know.
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
    /// They are not as many as were asked for, or the batch does not fit to the
    /// requests; nothing was evaluated.
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
                // Whatever else is answered, there are no such names.
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

/// What follows from answers.
enum Next {
    /// A further question.
    Ask(Stage),
    /// Everything is known, and is not as the layout in force expects.
    Decode(Found, OtherNames),
    /// Everything was as expected, and is decoded.
    Compute,
}

impl Evaluator {
    /// Goes on with what is known of the filters' domains.
    fn with_known_domains(
        &mut self,
        batch: &ResultBatch,
        buffers: &mut Buffers,
    ) -> Result<Next, Inconsistent> {
        expect(self.binding.named_domains.len(), buffers.answers.given.len())?;
        let mut answers = std::mem::take(&mut buffers.answers.domains);
        answers.extend(buffers.answers.given.drain(..).map(of_kind));
        let is_decoded = self.decode_as_expected(&answers, batch, buffers);
        let named = match is_decoded {
            Ok(false) => answers.clone(),
            _ => Vec::new(),
        };
        // The next fetch is asked for as many.
        answers.clear();
        buffers.answers.domains = answers;
        if is_decoded? {
            return Ok(Next::Compute);
        }
        let found = self.survey(batch, buffers, named)?;
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

    /// Goes on with what some of those domains are now.
    fn with_current_domains(
        &mut self,
        mut found: Found,
        positions: &[usize],
        answers: &mut Answers,
    ) -> Result<Next, Inconsistent> {
        expect(positions.len(), answers.given.len())?;
        for (at, domain) in positions.iter().zip(answers.given.drain(..)) {
            found.named[*at] = of_kind(domain);
        }
        let (mut positions, mut instances) = (Vec::new(), Vec::new());
        // Where verdicts of patterns stay, names of other times count for nothing.
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
    /// Forgets them and keeps their buffers.
    fn clear(&mut self) {
        self.given.clear();
        self.domains.clear();
    }
}

/// As many answers as were asked for.
fn expect(want: usize, got: usize) -> Result<(), Inconsistent> {
    if want == got { Ok(()) } else { Err(Inconsistent::Answers { want, got }) }
}
