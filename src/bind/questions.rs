//! The questions that binding asks a source: the names that definitions
//! mention, and the descriptors of the metrics among them.
//!
//! All names of all definitions are asked for together, so binding takes two
//! round trips, however many there are. Blocking and async sources get the same
//! questions. This module does not know what an answer means for an expression.

use pmderive_runtime::context::AsyncHostContext;
use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid};
use pmderive_runtime::source::{Answer, Fact, MetadataSource, Question, SourceError};
use pmderive_runtime::transport::Transport;
use rustc_hash::FxHashSet;

use super::references;
use crate::syntax::ast::Expr;

/// A source's answer about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A metric.
    Metric(MetricDesc),
    /// Not a metric, with the source's status.
    Unknown(PmStatus),
    /// A metric without a descriptor, with the source's status.
    NoDescriptor(PmStatus),
}

/// Names to ask for, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mentions<'e> {
    /// The definitions' own names, then the other names.
    pub names: Vec<&'e str>,
    /// Number of the definitions' own names. It matters whether the source has
    /// metrics with these names, but not why it lacks them.
    pub own: usize,
}

/// The names to ask for: the definitions' `own` names, and all names in
/// `expressions`.
pub(crate) fn mentions<'e>(
    expressions: impl IntoIterator<Item = &'e Expr>,
    own: impl IntoIterator<Item = &'e str>,
) -> Mentions<'e> {
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut names: Vec<&str> = own.into_iter().filter(|name| seen.insert(name)).collect();
    let own = names.len();
    for expr in expressions {
        let mentioned = references(expr).map(|reference| reference.name);
        names.extend(mentioned.filter(|name| seen.insert(name)));
    }
    Mentions { names, own }
}

/// Looks names up. It asks nobody itself: the owner of a source asks the
/// [questions](Inquiry::questions) and passes the answers on, until there are
/// no more questions.
#[derive(Debug)]
pub(crate) struct Inquiry<'n> {
    mentions: &'n Mentions<'n>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The identifiers of the names must be asked for.
    Identifiers,
    /// The identifiers are known; the descriptors must be asked for.
    Descriptors(Vec<Result<Pmid, PmStatus>>),
    Over(Vec<Found>),
}

impl<'n> Inquiry<'n> {
    pub(crate) fn new(mentions: &'n Mentions<'n>) -> Inquiry<'n> {
        Inquiry { mentions, stage: Stage::Identifiers }
    }

    /// The questions to ask now, all together. `None` at the end.
    pub(crate) fn questions(&self) -> Option<Vec<Question<'n>>> {
        match &self.stage {
            Stage::Identifiers => {
                let (own, others) = self.mentions.names.split_at(self.mentions.own);
                let own = own.iter().map(|name| Question::PmidIfAny(name));
                Some(own.chain(others.iter().map(|name| Question::Pmid(name))).collect())
            }
            Stage::Descriptors(pmids) => {
                Some(pmids.iter().flatten().map(|pmid| Question::Desc(*pmid)).collect())
            }
            Stage::Over(_) => None,
        }
    }

    /// Takes the answers.
    pub(crate) fn learn(&mut self, answers: Vec<Answer>) {
        let next = match std::mem::replace(&mut self.stage, Stage::Identifiers) {
            Stage::Identifiers => {
                let pmid = |answer: Answer| match answer? {
                    Fact::Pmid(pmid) => Ok(pmid),
                    _ => Err(PmStatus::IPC),
                };
                Stage::Descriptors(answers.into_iter().map(pmid).collect())
            }
            Stage::Descriptors(pmids) => Stage::Over(found(pmids, answers)),
            over => over,
        };
        self.stage = next;
    }

    /// The results, parallel to the names. Empty before the end.
    pub(crate) fn found(self) -> Vec<Found> {
        match self.stage {
            Stage::Over(found) => found,
            Stage::Identifiers | Stage::Descriptors(_) => Vec::new(),
        }
    }
}

/// Joins the names' identifiers with the descriptors, which belong to the known
/// metrics in order.
fn found(pmids: Vec<Result<Pmid, PmStatus>>, descs: Vec<Answer>) -> Vec<Found> {
    let mut descs = descs.into_iter();
    let found = |pmid: Result<Pmid, PmStatus>| match pmid {
        Err(status) => Found::Unknown(status),
        Ok(_) => match descs.next() {
            Some(Ok(Fact::Desc(desc))) => Found::Metric(desc),
            Some(Err(status)) => Found::NoDescriptor(status),
            Some(Ok(_)) | None => Found::NoDescriptor(PmStatus::PMID),
        },
    };
    pmids.into_iter().map(found).collect()
}

/// The source's answer about each name, in order.
///
/// # Errors
/// The source failed.
pub(crate) fn ask(
    mentions: &Mentions<'_>,
    source: &mut dyn MetadataSource,
) -> Result<Vec<Found>, SourceError> {
    let mut inquiry = Inquiry::new(mentions);
    while let Some(questions) = inquiry.questions() {
        let mut answers = Vec::with_capacity(questions.len());
        source.ask(&questions, &mut answers)?;
        inquiry.learn(answers);
    }
    Ok(inquiry.found())
}

/// [`ask`] for a host, without blocking.
///
/// # Errors
/// The host failed.
pub(crate) async fn ask_host<T: Transport>(
    mentions: &Mentions<'_>,
    host: &mut AsyncHostContext<T>,
) -> Result<Vec<Found>, SourceError> {
    let mut inquiry = Inquiry::new(mentions);
    while let Some(questions) = inquiry.questions() {
        let mut answers = Vec::with_capacity(questions.len());
        host.ask(&questions, &mut answers).await?;
        inquiry.learn(answers);
    }
    Ok(inquiry.found())
}
