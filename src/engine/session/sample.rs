//! One sample of the chosen metrics, and the names of their instances.

use std::sync::Arc;

use pmderive_runtime::eval::Evaluation;
use pmderive_runtime::model::{InDom, InstId, InstanceDomain, Pmid};
use pmderive_runtime::program::Op;
use pmderive_runtime::source::{FetchEvents, FetchSource, Freshness, OneAnswer, SourceError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bind::Desc;
use crate::diag::Diagnostics;
use crate::engine::Compiled;
use crate::engine::metric::Metric;

/// The result of one fetch of the chosen metrics, see
/// [`Session::sample`](super::Session::sample).
///
/// ```
/// use pmderive::runtime::archive::ArchiveContext;
/// use pmderive::{Definitions, Diagnostics, Engine, Session, Space};
///
/// let definitions = Definitions::default();
/// definitions.register("shop.reads", "rate(disk.dev.read)")?;
/// let registry = definitions.snapshot().registry;
/// let archive = ArchiveContext::open("tests/archives/own-fleet")?;
/// let mut session = Session::new(Engine::default(), definitions, archive)?;
/// session.choose(&registry.all(), &mut Diagnostics::default())?;
/// let mut space = Space::default();
/// // The first sample has no rates.
/// session.sample(&mut space)?;
/// let mut sample = session.sample(&mut space)?;
/// let domains = sample.domains()?;
/// for (metric, domain) in sample.metrics.iter().zip(&domains) {
///     let (Some(output), Some(domain)) = (metric.output, domain) else { continue };
///     for (instance, rate) in sample.values.get(output).iter() {
///         println!("{} of {:?}: {rate:?}", metric.name, domain.name(instance));
///     }
/// #   assert_eq!(sample.values.get(output).iter().count(), 3);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`ReportSample`](crate::engine::ReportSample) tells why a metric has no values.
#[derive(Debug)]
pub struct Sample<'s, S> {
    /// The metrics, in the order of the request.
    pub metrics: &'s [Metric],
    /// Values of the metrics that have an output.
    pub values: Evaluation<'s>,
    /// The source, for names of instances as of the fetch.
    pub source: &'s mut S,
    /// Events since the previous fetch.
    pub events: FetchEvents,
    /// Diagnostics of the chosen definitions, if the choice was compiled again because a reply
    /// announced other metadata.
    pub found: Option<Diagnostics>,
    pub(super) compiled: Option<&'s Compiled>,
    /// The session's flag to set when the source fails, because it may then be
    /// another one.
    pub(super) lost: &'s mut bool,
    pub(super) named: &'s mut FxHashMap<InDom, NamedInstances>,
}

/// The instances of a domain whose names samples have asked for.
#[derive(Debug, Default)]
pub(super) struct NamedInstances {
    /// The instances of the previous sample, in the order of its questions.
    before: Vec<InstId>,
    /// The instances of this sample, so far.
    now: Vec<InstId>,
    /// The names that the source gave last.
    known: Option<Arc<InstanceDomain>>,
    /// True if the source was asked again for this sample.
    is_current: bool,
}

impl NamedInstances {
    /// Begins the next sample.
    pub(super) fn begin(&mut self) {
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        self.is_current = false;
    }

    /// Takes the names of instances. True if they may belong to instances that are gone: the
    /// previous sample lacks one of the identifiers, but the names are still the same.
    fn may_be_old(&mut self, ids: &[InstId], names: Option<&Arc<InstanceDomain>>) -> bool {
        let start = self.now.len();
        self.now.extend_from_slice(ids);
        let before = std::mem::replace(&mut self.known, names.cloned());
        let is_same = before.zip(names).is_some_and(|(before, now)| Arc::ptr_eq(&before, now));
        // Most samples ask the same questions.
        if !is_same || self.is_current || self.before.get(start..self.now.len()) == Some(ids) {
            return false;
        }
        let before: FxHashSet<InstId> = self.before.iter().copied().collect();
        !ids.iter().all(|id| before.contains(id))
    }
}

impl<S: FetchSource> Sample<'_, S> {
    /// The instance domain of each metric that has both a domain and values, with names as of the
    /// fetch; parallel to the metrics. [`ReportSample`](crate::engine::ReportSample) needs them.
    ///
    /// # Errors
    /// The source failed.
    pub fn domains(&mut self) -> Result<Vec<Option<Arc<InstanceDomain>>>, SourceError> {
        let metrics = self.metrics;
        // Most metrics of a domain have the same instances.
        let mut known: FxHashMap<InDom, (&[InstId], Option<Arc<InstanceDomain>>)> =
            FxHashMap::default();
        let domain = |metric: &Metric| {
            let (Ok(Desc { indom: Some(indom), .. }), Some(output)) = (metric.desc, metric.output)
            else {
                return Ok(None);
            };
            let ids = self.values.get(output).instances;
            if ids.is_empty() {
                return Ok(None);
            }
            if let Some((same, domain)) = known.get(&indom)
                && *same == ids
            {
                return Ok(domain.clone());
            }
            let domain = self.instance_names(indom, ids)?.ok();
            known.insert(indom, (ids, domain.clone()));
            Ok(domain)
        };
        metrics.iter().map(domain).collect()
    }

    /// For each metric, true if it reads metrics of the source and `holds` is false for all of
    /// them. Empty if it is true for no metric.
    pub fn lacks_operands(&mut self, holds: impl Fn(&mut S, Pmid) -> bool) -> Vec<bool> {
        let Some(Compiled { program, binding, .. }) = self.compiled else { return Vec::new() };
        if binding.pmids.iter().all(|pmid| holds(self.source, *pmid)) {
            return Vec::new();
        }
        // For each node, whether one of its operands is there; `None` if it has none.
        let mut known: Vec<Option<bool>> = Vec::with_capacity(program.nodes.len());
        for node in &program.nodes {
            let mut found = match node.op {
                Op::Input(slot) => Some(holds(self.source, binding.pmids[slot.index()])),
                _ => None,
            };
            node.op.operands(|operand| found = found.max(known[operand.index()]));
            known.push(found);
        }
        let lacks = |metric: &Metric| {
            let root = metric.output.map(|output| program.outputs[output.index()].root);
            root.is_some_and(|root| known[root.index()] == Some(false))
        };
        self.metrics.iter().map(lacks).collect()
    }

    /// Names of a domain's instances as of the fetch. If the known names lack
    /// one of `ids`, the source is asked again, and an archive also for names
    /// at other times. The source is also asked again about an instance that
    /// the sample before lacks: its identifier may have had another name.
    ///
    /// # Errors
    /// The source failed. The inner error is its status for the domain.
    pub fn instance_names(&mut self, indom: InDom, ids: &[i32]) -> OneAnswer<Arc<InstanceDomain>> {
        let found = self.find_names(indom, ids);
        *self.lost |= found.as_ref().is_err_and(SourceError::is_transient);
        found
    }

    fn find_names(&mut self, indom: InDom, ids: &[i32]) -> OneAnswer<Arc<InstanceDomain>> {
        let complete = |domain: &InstanceDomain| ids.iter().all(|id| domain.name(*id).is_some());
        let known = self.source.instance_domain(indom, Freshness::Cached)?;
        let named = self.named.entry(indom).or_default();
        let may_be_old = named.may_be_old(ids, known.as_ref().ok());
        if !may_be_old && known.as_ref().is_ok_and(|domain| complete(domain)) {
            return Ok(known);
        }
        let now = self.source.instance_domain(indom, Freshness::Current)?;
        (named.known, named.is_current) = (now.as_ref().ok().cloned(), true);
        if now.as_ref().is_ok_and(|domain| complete(domain)) {
            return Ok(now);
        }
        let lacks = |id: &&i32| now.as_ref().map_or(true, |now| now.name(**id).is_none());
        let lacking: Vec<i32> = ids.iter().filter(lacks).copied().collect();
        let mut others = self.source.names_at_other_times(indom, &lacking)?;
        // An instance that ended since the fetch has the name that it had in the sample before.
        if let Ok(known) = &known {
            let found: FxHashSet<InstId> = others.iter().map(|(id, _)| *id).collect();
            let named = self.named.get(&indom).map_or(&[][..], |named| &named.before);
            let lost = lacking.iter().filter(|id| !found.contains(*id) && named.contains(*id));
            others.extend(lost.filter_map(|id| Some((*id, known.name(*id)?.into()))));
        }
        if others.is_empty() {
            return Ok(now);
        }
        let own = now.iter().flat_map(|domain| domain.instances());
        let own = own.map(|(id, name)| (id, name.into()));
        Ok(Ok(Arc::new(InstanceDomain::new(own.chain(others).collect()))))
    }
}
