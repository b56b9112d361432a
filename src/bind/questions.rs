//! What binding asks of a source: the names that definitions mention, and the
//! descriptors of the metrics among them.
//!
//! All names of all definitions are asked for together, so that binding costs
//! two round trips however many there are. Blocking and async sources are
//! asked the same. What an answer means for an expression is not known here.

use pmderive_runtime::context::AsyncHostContext;
use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid};
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::transport::Transport;
use rustc_hash::FxHashSet;

use super::references;
use crate::syntax::ast::Expr;

/// A source's answer about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A metric.
    Metric(MetricDesc),
    /// Not a metric; why.
    Unknown(PmStatus),
    /// A metric whose descriptor is not to be had; why.
    NoDescriptor(PmStatus),
}

/// The names to ask for: `others`, and all that `expressions` mention, each once.
pub(crate) fn questions<'e>(
    expressions: impl IntoIterator<Item = &'e Expr>,
    others: impl IntoIterator<Item = &'e str>,
) -> Vec<&'e str> {
    let mut wanted: Vec<&str> = Vec::new();
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut want = |name: &'e str| {
        if seen.insert(name) {
            wanted.push(name);
        }
    };
    others.into_iter().for_each(&mut want);
    for expr in expressions {
        references(expr).map(|reference| reference.name).for_each(&mut want);
    }
    wanted
}

/// What a source says of each name, in order.
///
/// # Errors
/// The source failed.
pub(crate) fn ask(
    names: &[&str],
    source: &mut dyn MetadataSource,
) -> Result<Vec<Found>, SourceError> {
    let pmids = source.lookup_names(names)?;
    let descs = source.lookup_descs(&known(&pmids))?;
    Ok(answers(pmids, descs))
}

/// [`ask`] of a host, without blocking.
///
/// # Errors
/// The host failed.
pub(crate) async fn ask_host<T: Transport>(
    names: &[&str],
    host: &mut AsyncHostContext<T>,
) -> Result<Vec<Found>, SourceError> {
    let pmids = host.lookup_names(names).await?;
    let descs = host.lookup_descs(&known(&pmids)).await?;
    Ok(answers(pmids, descs))
}

fn known(pmids: &[Result<Pmid, PmStatus>]) -> Vec<Pmid> {
    pmids.iter().filter_map(|found| found.ok()).collect()
}

/// Puts descriptors, which are those of the known metrics in order, beside the
/// names' answers.
fn answers(
    pmids: Vec<Result<Pmid, PmStatus>>,
    descs: Vec<Result<MetricDesc, PmStatus>>,
) -> Vec<Found> {
    let mut descs = descs.into_iter();
    let answer = |pmid: Result<Pmid, PmStatus>| match pmid {
        Err(status) => Found::Unknown(status),
        Ok(_) => match descs.next() {
            Some(Ok(desc)) => Found::Metric(desc),
            Some(Err(status)) => Found::NoDescriptor(status),
            None => Found::NoDescriptor(PmStatus::PMID),
        },
    };
    pmids.into_iter().map(answer).collect()
}
