//! The questions that binding asks a source: the names that definitions
//! mention, and the descriptors of the metrics among them.
//!
//! Binding asks for all names of all definitions together. It needs two round
//! trips, however many definitions there are. Blocking and async sources get
//! the same questions. The checker decides what an answer means for an
//! expression.

use std::sync::Arc;

use pmderive_runtime::context::AsyncHostContext;
use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid};
use pmderive_runtime::source::{Answer, Fact, MetadataSource, Question, SourceError};
use pmderive_runtime::transport::Transport;
use rustc_hash::FxHashSet;

use super::references::references;
use crate::syntax::ast::Expr;

/// A source's answer about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameAnswer {
    /// A metric.
    Metric(MetricDesc),
    /// Not a metric, with the source's status.
    Unknown(PmStatus),
    /// A metric without a descriptor, with the source's status.
    NoDescriptor(PmStatus),
}

/// Names to ask for, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    /// The definitions' own names, then the other names.
    pub names: Vec<Arc<str>>,
    /// Number of the definitions' own names. Binding needs to know whether the
    /// source has metrics with these names, but not why it lacks them.
    pub own: usize,
}

/// The names to ask for: the definitions' `own` names, and all names in
/// `expressions`.
pub(crate) fn mentions<'e>(
    expressions: impl IntoIterator<Item = &'e Expr>,
    own: impl IntoIterator<Item = &'e Arc<str>>,
) -> Mentions {
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let own = own.into_iter();
    seen.reserve(own.size_hint().1.unwrap_or(0));
    let mut names: Vec<Arc<str>> = own.filter(|name| seen.insert(name)).cloned().collect();
    let own = names.len();
    for expr in expressions {
        let mentioned = references(expr).map(|reference| reference.name);
        names.extend(mentioned.filter(|name| seen.insert(name)).map(Arc::from));
    }
    Mentions { names, own }
}

impl Mentions {
    /// The first questions: the identifiers of the names, in order.
    fn identifiers(&self) -> Vec<Question<'_>> {
        let (own, others) = self.names.split_at(self.own);
        let own = own.iter().map(|name| Question::PmidIfAny(name));
        own.chain(others.iter().map(|name| Question::Pmid(name))).collect()
    }
}

/// The identifiers in the answers.
fn pmids(answers: Vec<Answer>) -> Vec<Result<Pmid, PmStatus>> {
    let pmid = |answer: Answer| match answer? {
        Fact::Pmid(pmid) => Ok(pmid),
        _ => Err(PmStatus::IPC),
    };
    answers.into_iter().map(pmid).collect()
}

/// The second questions: the descriptors of the metrics among the names.
fn descriptors(pmids: &[Result<Pmid, PmStatus>]) -> Vec<Question<'static>> {
    pmids.iter().flatten().map(|pmid| Question::Desc(*pmid)).collect()
}

/// Joins the names' identifiers with the descriptors. `descs` has one for each
/// known metric, in order.
fn found(pmids: Vec<Result<Pmid, PmStatus>>, descs: Vec<Answer>) -> Vec<NameAnswer> {
    let mut descs = descs.into_iter();
    let found = |pmid: Result<Pmid, PmStatus>| match pmid {
        Err(status) => NameAnswer::Unknown(status),
        Ok(pmid) => match descs.next() {
            Some(Ok(Fact::Desc(desc))) if desc.pmid == pmid => NameAnswer::Metric(desc),
            // A source of an application may confuse metrics.
            Some(Ok(Fact::Desc(_))) => NameAnswer::NoDescriptor(PmStatus::IPC),
            Some(Err(status)) => NameAnswer::NoDescriptor(status),
            Some(Ok(_)) | None => NameAnswer::NoDescriptor(PmStatus::PMID),
        },
    };
    pmids.into_iter().map(found).collect()
}

/// The source's answer about each name, in order.
///
/// # Errors
/// The source failed.
pub(crate) fn ask(
    mentions: &Mentions,
    source: &mut dyn MetadataSource,
) -> Result<Vec<NameAnswer>, SourceError> {
    let mut answers = Vec::with_capacity(mentions.names.len());
    source.ask(&mentions.identifiers(), &mut answers)?;
    let pmids = pmids(std::mem::take(&mut answers));
    source.ask(&descriptors(&pmids), &mut answers)?;
    Ok(found(pmids, answers))
}

/// [`ask`] for a host, without blocking.
///
/// # Errors
/// The host failed.
pub(crate) async fn ask_host<T: Transport>(
    mentions: &Mentions,
    host: &mut AsyncHostContext<T>,
) -> Result<Vec<NameAnswer>, SourceError> {
    let mut answers = Vec::with_capacity(mentions.names.len());
    host.ask(&mentions.identifiers(), &mut answers).await?;
    let pmids = pmids(std::mem::take(&mut answers));
    host.ask(&descriptors(&pmids), &mut answers).await?;
    Ok(found(pmids, answers))
}
