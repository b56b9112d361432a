//! Binds each definition of a session at its first use. The result stays until
//! the definition or the source's metadata changes.

use std::sync::Arc;

use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid};
use pmderive_runtime::program::DefinitionKey;
use pmderive_runtime::source::{FetchSource, SourceError};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Session;
use super::lists::{GatheredExpressions, Reads};
use super::shared_parts::CheckedGroup;
use crate::bind::{DefinitionId, Desc};
use crate::check::typed::TypedExpr;
use crate::diag::{Diagnostic, Diagnostics};
use crate::engine::{Registered, anonymous, identifiers};
use crate::text::SourceMap;

/// The bound definitions.
pub(super) type BoundByPmid = FxHashMap<Pmid, Bound>;

/// A bound definition with its outcome.
#[derive(Clone)]
pub(super) struct Bound {
    pub definition: Arc<Registered>,
    pub outcome: Outcome,
}

#[derive(Clone)]
pub(super) enum Outcome {
    /// The metric is the expression at position `at` among those that were
    /// bound together.
    Usable {
        desc: Desc,
        among: Arc<CheckedGroup>,
        at: DefinitionId,
    },
    Unusable(Vec<Diagnostic>),
    /// The source has a metric with that name.
    Hidden(Vec<Diagnostic>),
}

/// Expressions that were bound together, each with the key of its previous
/// samples. Operands come before the expressions that use them.
pub(super) type Typed = Vec<(DefinitionKey, TypedExpr)>;

impl<S: FetchSource> Session<S> {
    /// The mistakes in a derived metric in this session, if any, with the texts that
    /// the diagnostics point into. If a metric of the source hides it, that is one.
    /// [`Session::with_suggestions`] adds names in place of unknown ones.
    ///
    /// # Errors
    /// The source failed.
    pub fn mistakes(&mut self, name: &str) -> Result<(Diagnostics, SourceMap), SourceError> {
        self.refresh();
        let pmid = self.scope.registry.get(name).and_then(|one| one.pmid);
        self.bind(pmid)?;
        Ok(self.found(pmid))
    }

    /// The mistakes in derived metrics since the last call, in the order of the
    /// metrics' first use, with the texts that the diagnostics point into. libpcp
    /// reports mistakes when they happen. [`Session::with_suggestions`] adds names in
    /// place of unknown ones.
    pub fn take_mistakes(&mut self) -> (Diagnostics, SourceMap) {
        let untold = std::mem::take(&mut self.untold);
        self.found(untold)
    }

    /// The mistakes in bound metrics, with their texts.
    fn found(&self, pmids: impl IntoIterator<Item = Pmid>) -> (Diagnostics, SourceMap) {
        let mut diagnostics = Diagnostics::default();
        for pmid in pmids {
            if let Some(Outcome::Unusable(found) | Outcome::Hidden(found)) = self.outcome(pmid) {
                diagnostics.extend(found.iter().cloned());
            }
        }
        (diagnostics, self.scope.sources.clone())
    }

    /// The same mistakes with suggested names in place of unknown ones. Before them come the
    /// mistakes in further definitions that the mistaken ones need. This reads all names of
    /// the source, so call it only for mistakes that a user will see.
    ///
    /// # Errors
    /// The source failed.
    pub fn with_suggestions(&mut self, mistakes: Diagnostics) -> Result<Diagnostics, SourceError> {
        let registry = &self.scope.registry;
        let mut names: Vec<&str> =
            mistakes.iter().filter_map(|one| one.metric.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        let wrong: Vec<&Registered> = names.iter().filter_map(|name| registry.get(name)).collect();
        if wrong.is_empty() {
            return Ok(mistakes);
        }
        let mut found = Diagnostics::default();
        self.engine.examine(registry, &wrong, &mut self.source, &mut found)?;
        let is_of_wrong = |one: &Diagnostic| {
            one.metric.as_deref().is_some_and(|metric| names.binary_search(&metric).is_ok())
        };
        let (own, causes): (Vec<Diagnostic>, Vec<_>) = found.into_iter().partition(is_of_wrong);
        let key = |one: &Diagnostic| (one.code, one.span, one.metric.clone());
        let own: FxHashMap<_, Diagnostic> = own.into_iter().map(|one| (key(&one), one)).collect();
        let mut told = Diagnostics::default();
        told.extend(causes);
        told.extend(mistakes.into_iter().map(|one| own.get(&key(&one)).cloned().unwrap_or(one)));
        Ok(told)
    }

    /// Binds all definitions that are not bound yet, together.
    ///
    /// # Errors
    /// The source failed. None of them is bound then.
    pub(super) fn bind(
        &mut self,
        pmids: impl IntoIterator<Item = Pmid>,
    ) -> Result<(), SourceError> {
        let mut wanted: Vec<Arc<Registered>> = Vec::new();
        let mut seen: FxHashSet<Pmid> = FxHashSet::default();
        for pmid in pmids {
            if !self.bound.contains_key(&pmid)
                && seen.insert(pmid)
                && let Some(definition) = self.scope.registry.by_pmid(pmid)
            {
                wanted.push(Arc::clone(definition));
            }
        }
        let asked: Vec<Pmid> = wanted.iter().filter_map(|definition| definition.pmid).collect();
        wanted.sort_unstable_by_key(|definition| definition.pmid.map(identifiers::order));
        if wanted.is_empty() {
            return Ok(());
        }
        let registry = &self.scope.registry;
        let source = &mut self.source;
        let together = self.engine.check_together(registry, &wanted, source)?;
        if self.bound.is_empty() {
            // The first question may have connected to another peer. All
            // answers are from that peer.
            self.epoch = source.metadata_epoch();
        }
        together.add_to(&mut self.bound);
        let is_wrong = |pmid: &Pmid| {
            matches!(self.outcome(*pmid), Some(Outcome::Unusable(_) | Outcome::Hidden(_)))
        };
        let wrong: Vec<Pmid> = asked.into_iter().filter(is_wrong).collect();
        self.untold.extend(wrong);
        Ok(())
    }

    /// Binds the derived metrics among `names` together, before each is used by itself. A
    /// chain of definitions is then checked once, and not once for each of its metrics. A
    /// metric with mistakes stays unbound, so that its first use finds them.
    ///
    /// # Errors
    /// The source failed.
    pub fn bind_together(&mut self, names: &[impl AsRef<str>]) -> Result<(), SourceError> {
        self.refresh();
        let registry = &self.scope.registry;
        let pmid = |name: &_| registry.get(AsRef::<str>::as_ref(name))?.pmid;
        let pmids: Vec<Pmid> = names.iter().filter_map(pmid).collect();
        let told = self.untold.len();
        self.bind(pmids)?;
        if self.untold.len() > told {
            let bound = Arc::make_mut(&mut self.bound);
            for pmid in self.untold.drain(told..) {
                bound.remove(&pmid);
            }
        }
        Ok(())
    }

    /// The metrics of the source that are fetched for a derived metric, some of them more
    /// than once. Empty if the metric cannot be used.
    ///
    /// # Errors
    /// The source failed.
    pub fn operands(&mut self, pmid: Pmid) -> Result<Vec<Pmid>, SourceError> {
        Ok(self.reads(&[pmid])?.metrics().collect())
    }

    /// The metrics of the source that each metric of a list reads. A metric of the source
    /// reads itself; one that cannot be used reads nothing.
    ///
    /// # Errors
    /// The source failed.
    pub fn reads(&mut self, pmids: &[Pmid]) -> Result<Reads, SourceError> {
        self.refresh();
        self.bind(pmids.iter().copied().filter(|pmid| pmid.is_derived()))?;
        let mut gathered = GatheredExpressions::default();
        let one = |pmid: &Pmid| match self.outcome(*pmid) {
            Some(Outcome::Usable { among, at, .. }) => Some(Ok(gathered.add(among, *at))),
            _ => (!pmid.is_derived()).then_some(Err(*pmid)),
        };
        let list = pmids.iter().map(one).collect();
        Ok(gathered.reads(list))
    }

    /// The outcome of binding a metric, if it is bound.
    pub(super) fn outcome(&self, pmid: Pmid) -> Option<&Outcome> {
        self.bound.get(&pmid).map(|bound| &bound.outcome)
    }

    /// Descriptor of a bound derived metric (`pmLookupDesc(3)`).
    pub(super) fn desc(&self, pmid: Pmid) -> Result<MetricDesc, PmStatus> {
        let desc = match self.outcome(pmid) {
            Some(Outcome::Usable { desc, .. }) => *desc,
            Some(Outcome::Unusable(_) | Outcome::Hidden(_)) => return Err(PmStatus::BADDERIVE),
            None if self.scope.registry.anonymous_of(pmid).is_some() => anonymous::DESC,
            None => return Err(PmStatus::PMID),
        };
        Ok(desc.of_metric(pmid))
    }
}
