//! Fetches for commands that look at a source once: values of metrics in the
//! order of a list, the instance domains that they need, and their text form.

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

/// The values of a metric, or why there are none.
pub type Values = Result<Vec<InstanceValue>, PmStatus>;

/// A domain, or why it cannot be had.
pub type Domain = Result<Arc<InstanceDomain>, PmStatus>;

/// Instance domains that were asked for.
pub struct Domains {
    known: HashMap<InDom, Domain>,
    /// Where an archive stood when they were asked for.
    at: Option<Timestamp>,
    scope: Scope,
}

/// At which times domains hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// For good: of a live source.
    Always,
    /// Where an archive stands.
    HereOnly,
    /// Until another domain is asked for: as PCP's tools have it for archives.
    UntilAnother,
    /// An archive's, with all instances that it has ever seen.
    OfAllTimes,
}

impl Domains {
    /// None is known. In archives domains change with the time of the values.
    pub fn new(is_archive: bool, dialect: Dialect) -> Domains {
        let scope = match (is_archive, dialect) {
            (false, _) => Scope::Always,
            (true, Dialect::Fixed) => Scope::HereOnly,
            (true, _) => Scope::UntilAnother,
        };
        Domains { known: HashMap::new(), at: None, scope }
    }

    /// None is known. Those of an archive will have all instances that it has
    /// ever seen.
    pub fn of_all_times() -> Domains {
        Domains { known: HashMap::new(), at: None, scope: Scope::OfAllTimes }
    }

    /// A domain, as it was when it was asked for first at these times.
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

/// Fetches metrics, each as often as it is in the list, from where an archive
/// stands. Domains that are not known come along with the values of a live
/// source, which is tried again while it fails and patience lasts. The inner
/// error: the fetch as a whole failed.
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

/// What a fetch of a metric by itself gives.
pub struct Fetched {
    /// The outer error: the fetch failed.
    pub outcome: Result<Values, PmStatus>,
    /// Where an archive stood after it.
    pub at: Option<Timestamp>,
}

/// Fetches metrics of an archive, each from its own first record after the origin, as
/// if it were fetched alone. Those whose first record is the same come in one fetch.
pub fn fetch_each(
    source: &mut ToolSource,
    pmids: &[Pmid],
    domains: &mut Domains,
    messages: &Messages,
) -> Result<Vec<Fetched>, Stop> {
    let mut found: Vec<Option<Fetched>> = pmids.iter().map(|_| None).collect();
    // Without operands every record counts, and libpcp has a status for some such metrics
    // only where nothing else is in the list.
    let reads = source.context.reads(pmids)?;
    let reads_any = reads.any(|_| true);
    let mut open: Vec<usize> = (0..pmids.len()).filter(|at| reads_any[*at]).collect();
    while open.len() > 1 {
        let list: Vec<Pmid> = open.iter().map(|at| pmids[*at]).collect();
        source.rewind()?;
        let fetched = fetch(source, &list, std::iter::empty(), domains, messages)?;
        let Context::Archive(archive) = source.kind() else { break };
        let at = Some(archive.origin());
        match fetched {
            // It is the first record for all those that it has an operand of.
            Ok(values) => {
                let before = open.len();
                let is_first = reads.any(|pmid| archive.record_holds(pmid));
                let mut values = values.into_iter();
                open.retain(|metric| {
                    let values = values.next().unwrap_or(Err(PmStatus::IPC));
                    if is_first[*metric] {
                        found[*metric] = Some(Fetched { outcome: Ok(values), at });
                    }
                    !is_first[*metric]
                });
                // A fetch of very many that finds few takes longer than these alone.
                if 8 * (before - open.len()) < before {
                    break;
                }
            }
            Err(PmStatus::EOL) => {
                for metric in open.drain(..) {
                    found[metric] = Some(Fetched { outcome: Err(PmStatus::EOL), at });
                }
            }
            // Others may find their records before the damage, or pass over it.
            Err(_) => break,
        }
    }
    let alone = |(pmid, found): (&Pmid, Option<Fetched>)| {
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
        Ok(Fetched { outcome, at })
    };
    pmids.iter().zip(found).map(alone).collect()
}

/// Writes a value as pmPrintValue(3) does, without padding, on one line.
pub fn print_value(out: &mut Output, zone: &TimeZone, value_type: ValueType, value: &RawValue) {
    let clock = |time, digits| match digits {
        9 => zone.clock_nanos(time),
        _ => zone.clock_millis(time),
    };
    let mut printed = Vec::new();
    value.print(&mut printed, value_type, 1, &clock);
    out.text(&printed);
}
