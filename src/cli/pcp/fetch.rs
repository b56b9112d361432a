//! Fetches for commands that read a source once. They return the values of a list of metrics in
//! its order, their instance domains, and their text form.

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_runtime::context::Context;
use pmderive_runtime::model::{
    InDom, InstanceDomain, PmStatus, Pmid, RawValue, Timestamp, ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, ResultBatch};
use pmderive_runtime::source::{FetchList, FetchSource, Freshness, MetadataSource, SourceError};
use pmderive_runtime::time::TimeZone;

use super::source::{Attempt, ToolSource};
use crate::cli::messages::Messages;
use crate::cli::stop::Stop;
use crate::cli::terminal::Output;
use crate::dialect::Dialect;

/// The values of a metric, or the reason for having none.
pub type Values = Result<Vec<InstanceValue>, PmStatus>;

/// An instance domain, or the reason for having none.
pub type Domain = Result<Arc<InstanceDomain>, PmStatus>;

/// Cache of instance domains.
pub struct Domains {
    known: HashMap<InDom, Domain>,
    /// Position of the archive when they were read.
    at: Option<Timestamp>,
    scope: Scope,
}

/// How long a domain in the cache is valid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// For good: a live source.
    Always,
    /// At the archive's present position only.
    HereOnly,
    /// Until another domain is read, as PCP's tools do it for archives.
    UntilAnother,
    /// For good: an archive's domain with all instances of all times.
    OfAllTimes,
}

impl Domains {
    /// An empty cache. In archives domains change with the time of the values.
    pub fn new(is_archive: bool, dialect: Dialect) -> Domains {
        let scope = match (is_archive, dialect) {
            (false, _) => Scope::Always,
            (true, Dialect::Fixed) => Scope::HereOnly,
            (true, _) => Scope::UntilAnother,
        };
        Domains { known: HashMap::new(), at: None, scope }
    }

    /// An empty cache. An archive's domains have all instances of all times.
    pub fn of_all_times() -> Domains {
        Domains { known: HashMap::new(), at: None, scope: Scope::OfAllTimes }
    }

    /// Gets a domain. Within its validity the first answer stays.
    pub fn get(&mut self, source: &mut ToolSource, indom: InDom) -> Result<Domain, SourceError> {
        if let (Scope::HereOnly, Context::Archive(archive)) = (self.scope, source.kind())
            && self.at.replace(archive.origin()) != Some(archive.origin())
        {
            self.known.clear();
        }
        if let Some(known) = self.known.get(&indom) {
            return Ok(known.clone());
        }
        let domain = match self.scope {
            Scope::OfAllTimes => source.context.known_instances(indom)?,
            _ => source.context.instance_domain(indom, Freshness::Current)?,
        };
        if self.scope == Scope::UntilAnother {
            self.known.clear();
        }
        self.known.insert(indom, domain.clone());
        Ok(domain)
    }
}

/// Fetches a list of metrics, duplicates included, from the archive's present position. A live
/// source also delivers their domains if the cache lacks them. It is tried again while it fails
/// and patience lasts. The inner error means that the fetch as a whole failed.
pub fn fetch(
    source: &mut ToolSource,
    pmids: &[Pmid],
    indoms: impl Iterator<Item = InDom>,
    domains: &mut Domains,
    messages: &Messages,
) -> Result<Result<Vec<Values>, PmStatus>, Stop> {
    let mut distinct: Vec<Pmid> = Vec::new();
    let mut places: HashMap<Pmid, usize> = HashMap::new();
    for pmid in pmids {
        places.entry(*pmid).or_insert_with(|| {
            distinct.push(*pmid);
            distinct.len() - 1
        });
    }
    let mut wanted: Vec<InDom> = Vec::new();
    if !source.is_archive() {
        for indom in indoms {
            if !domains.known.contains_key(&indom) && !wanted.contains(&indom) {
                wanted.push(indom);
            }
        }
    }
    let list = FetchList::new(distinct, wanted);
    let mut batch = ResultBatch::default();
    let ToolSource { context, sampler, .. } = source;
    let fetched = sampler.take(&mut Attempt { context, messages }, |attempt| {
        Ok(attempt.context.fetch(&list, &mut batch)?)
    });
    let events = match fetched {
        Ok(Some(events)) => events,
        Ok(None) => return Ok(Err(PmStatus::EOL)),
        Err(Stop::Source(SourceError::Status { status, .. })) => return Ok(Err(status)),
        Err(Stop::Source(error @ SourceError::Damaged { .. })) => {
            let status = error.status();
            source.note_damage(error);
            return Ok(Err(status));
        }
        Err(stop) => return Err(stop),
    };
    domains.known.extend(list.domains().iter().copied().zip(batch.domains.drain(..)));
    let result = FetchResult::of_batch(&batch, events.changes);
    let outcome = |pmid: &Pmid| match result.sets.get(places[pmid]) {
        Some(set) => set.outcome.clone(),
        None => Err(PmStatus::IPC),
    };
    Ok(Ok(pmids.iter().map(outcome).collect()))
}

/// Metrics of an archive that are fetched before the first of them is printed.
pub const TOGETHER: usize = 128;

/// Result of fetching a metric by itself.
pub struct MetricFetch {
    /// The values. The outer error means that the fetch failed.
    pub outcome: Result<Values, PmStatus>,
    /// Position of the archive after the fetch.
    pub at: Option<Timestamp>,
}

/// Fetches metrics of an archive as if each were fetched alone, from its own first record after
/// the origin. Metrics that share a first record come in one fetch.
pub fn fetch_each(
    source: &mut ToolSource,
    pmids: &[Pmid],
    domains: &mut Domains,
    messages: &Messages,
) -> Result<Vec<MetricFetch>, Stop> {
    let mut found: Vec<Option<MetricFetch>> = pmids.iter().map(|_| None).collect();
    // Without operands every record counts. For some such metrics libpcp returns a status only
    // if the list has no other metric.
    let reads = source.context.reads(pmids)?;
    let reads_any = reads.any(|pmid| !pmid.is_derived());
    let mut open: Vec<usize> = (0..pmids.len()).filter(|at| reads_any[*at]).collect();
    while open.len() > 1 {
        let list: Vec<Pmid> = open.iter().map(|at| pmids[*at]).collect();
        source.rewind()?;
        let fetched = fetch(source, &list, std::iter::empty(), domains, messages)?;
        let Context::Archive(archive) = source.kind() else { break };
        let at = Some(archive.origin());
        match fetched {
            // It is the first record for all metrics that have an operand in it.
            Ok(values) => {
                let before = open.len();
                let is_first = reads.any(|pmid| archive.record_holds(pmid));
                let mut values = values.into_iter();
                open.retain(|metric| {
                    let values = values.next().unwrap_or(Err(PmStatus::IPC));
                    if is_first[*metric] {
                        found[*metric] = Some(MetricFetch { outcome: Ok(values), at });
                    }
                    !is_first[*metric]
                });
                // A large fetch that finds few values would be slower than these alone.
                if 8 * (before - open.len()) < before {
                    break;
                }
            }
            Err(PmStatus::EOL) => {
                for metric in open.drain(..) {
                    found[metric] = Some(MetricFetch { outcome: Err(PmStatus::EOL), at });
                }
            }
            // Others may find their records before the damage, or pass over it.
            Err(_) => break,
        }
    }
    let alone = |(pmid, found): (&Pmid, Option<MetricFetch>)| {
        if let Some(found) = found {
            return Ok(found);
        }
        source.rewind()?;
        let fetched = fetch(source, &[*pmid], std::iter::empty(), domains, messages)?;
        let outcome = fetched.map(|mut values| values.pop().unwrap_or(Err(PmStatus::IPC)));
        let at = match source.kind() {
            Context::Archive(archive) => Some(archive.origin()),
            _ => None,
        };
        Ok(MetricFetch { outcome, at })
    };
    pmids.iter().zip(found).map(alone).collect()
}

/// Writes a value as pmPrintValue(3) does, without padding, on one line.
pub fn print_value(
    out: &mut Output,
    dialect: Dialect,
    zone: &TimeZone,
    value_type: ValueType,
    value: &RawValue,
) {
    let mut printed = Vec::new();
    dialect.print(value.borrowed(), &mut printed, value_type, zone);
    out.text(&printed);
}

/// The time of an event record, as precise as events of this type have it.
pub fn event_clock(zone: &TimeZone, value_type: ValueType, time: Timestamp) -> String {
    match value_type {
        ValueType::HighResEvent => zone.clock_nanos(time),
        _ => zone.clock_millis(time),
    }
}
