//! Walks through the name space as pmTraversePMNS(3) does.

use pmderive_runtime::model::{PmStatus, Pmid};
use pmderive_runtime::source::{FetchSource, MetadataSource, SourceError};

use crate::cli::pcp::source::ToolSource;
use crate::dialect::Dialect;
use crate::engine::Session;

/// The names of the metrics at or below a node; the empty name is the root.
///
/// pmcd lists them itself, and derived metrics follow. A client with its own name space, from
/// an archive or a file, lists node by node: a node's own children come before those of derived
/// metrics. Outside of libpcp's dialects the names are in alphabetical order.
///
/// # Errors
/// The source failed. The inner error: there is no such node.
pub fn metrics_below(
    source: &mut ToolSource,
    node: &str,
) -> Result<Result<Vec<String>, PmStatus>, SourceError> {
    let mut found = metrics_in_order_of_libpcp(source, node)?;
    if let Ok(names) = &mut found
        && source.dialect == Dialect::Fixed
    {
        names.sort_unstable();
    }
    Ok(found)
}

fn metrics_in_order_of_libpcp(
    source: &mut ToolSource,
    node: &str,
) -> Result<Result<Vec<String>, PmStatus>, SourceError> {
    if source.is_archive() || source.context.source().is_replaced() {
        return node_by_node(&mut source.context, node);
    }
    match source.context.traverse(node) {
        Ok(names) => Ok(Ok(names)),
        Err(SourceError::Status { status, .. }) => Ok(Err(status)),
        Err(error) => Err(error),
    }
}

/// The status with which pmLookupName(3) fails for a batch of names. A name without a metric
/// makes no other fail. Nor does one whose agent is missing, unless it is alone.
pub fn lookup_failure(dialect: Dialect, found: &[Result<Pmid, PmStatus>]) -> Option<PmStatus> {
    let is_failure = |status: &PmStatus| match *status {
        PmStatus::NAME | PmStatus::NONLEAF => false,
        PmStatus::NOAGENT => found.len() == 1,
        _ => true,
    };
    let mut statuses = found.iter().filter_map(|pmid| pmid.err());
    statuses.find(is_failure).filter(|_| dialect != Dialect::Fixed)
}

/// Like [`metrics_below`], but only metrics that the archive has. pminfo(1) ignores other names
/// of a file.
///
/// # Errors
/// The source failed. The inner error: there is no such node or metric.
pub fn known_metrics_below(
    source: &mut ToolSource,
    node: &str,
) -> Result<Result<Vec<String>, PmStatus>, SourceError> {
    let found = metrics_below(source, node)?;
    if !source.is_archive() || !source.context.source().is_replaced() {
        return Ok(found);
    }
    let Ok(names) = found else { return Ok(found) };
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = source.context.lookup_names(&texts)?;
    let pmids: Vec<Pmid> = pmids.into_iter().map(|pmid| pmid.unwrap_or(Pmid::NULL)).collect();
    let descs = source.context.lookup_descs(&pmids)?;
    // Derived metrics are not in the file.
    let is_known = |pmid: Pmid, is_described| is_described || pmid.is_derived();
    let known = names.into_iter().zip(pmids).zip(descs);
    let known: Vec<String> = known
        .filter(|((_, pmid), desc)| is_known(*pmid, desc.is_ok()))
        .map(|((name, _), _)| name)
        .collect();
    Ok(if known.is_empty() { Err(PmStatus::NAME) } else { Ok(known) })
}

fn node_by_node<S: FetchSource>(
    context: &mut Session<S>,
    start: &str,
) -> Result<Result<Vec<String>, PmStatus>, SourceError> {
    let mut metrics = Vec::new();
    // A stack of nodes still to visit.
    let mut open = vec![(start.to_owned(), false)];
    while let Some((name, is_leaf)) = open.pop() {
        let has_derived = context.has_derived_below(&name);
        let children = match is_leaf && !has_derived {
            true => Vec::new(),
            false => match context.children(&name)? {
                Ok(children) => children,
                Err(status) if name == start => return Ok(Err(status)),
                Err(_) if is_leaf => Vec::new(),
                Err(_) => continue,
            },
        };
        // A subtree that its agent does not know counts as a metric.
        let is_metric = match children.is_empty() {
            true => !name.is_empty(),
            false => has_derived && context.is_metric_besides(&name)?,
        };
        open.extend(below(&name, children));
        if is_metric {
            metrics.push(name);
        }
    }
    Ok(Ok(metrics))
}

/// Full names of children, the first one last.
fn below(node: &str, children: Vec<pmderive_runtime::source::Child>) -> Vec<(String, bool)> {
    let name = |child: &str| match node {
        "" => child.to_owned(),
        _ => format!("{node}.{child}"),
    };
    children.iter().rev().map(|child| (name(&child.name), child.is_leaf)).collect()
}
