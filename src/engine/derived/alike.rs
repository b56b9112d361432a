//! What contexts with derived metrics have in common when their sources give
//! the same answers: checked definitions, plans of lists, and the memory that
//! only an evaluation under way needs.
//!
//! Each is found by all that it was made of, compared in full, and is there for
//! as long as a context uses it. Where answers differ, be it in identifiers
//! alone, contexts have their own.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pmderive_runtime::eval::Workspace;
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::weak_table::WeakTable;
use rustc_hash::{FxHashMap, FxHasher};

use super::encode::Buffers;
use super::fetch::Needs;
use super::{Bound, BoundByPmid, Outcome, Typed};
use crate::bind::{Found, ask};
use crate::diag::{Diagnostic, Diagnostics};
use crate::engine::vocabulary::Vocabulary;
use crate::engine::{Checked, Engine, Metric, Registered, Registry, Selection};

/// What contexts of an engine share.
#[derive(Default)]
pub(in crate::engine) struct Alike {
    together: Mutex<WeakTable<Together>>,
    needs: Mutex<WeakTable<Needs>>,
    /// As many as were used at the same time.
    spaces: Mutex<Vec<Box<Space>>>,
}

/// What is needed while a context fetches, and by no other meanwhile.
#[derive(Default)]
pub(super) struct Space {
    pub(super) workspace: Workspace,
    pub(super) encoder: Buffers,
}

/// Definitions that were checked together against a source's answers.
pub(super) struct Together {
    selection: Selection,
    definitions: Vec<Arc<Registered>>,
    found: Vec<Found>,
    /// Parallel to the definitions.
    metrics: Vec<Metric>,
    pub(super) typed: Typed,
    /// In the words of the first source.
    diagnostics: Diagnostics,
    /// What came of all of them, as contexts that have nothing else keep it.
    bound: Mutex<Weak<BoundByPmid>>,
}

impl Engine {
    /// Checks definitions against a source, or finds what came of that for a
    /// source with the same answers. What is wrong is in the words of this source.
    ///
    /// # Errors
    /// The source failed.
    pub(super) fn check_together(
        &self,
        registry: &Registry,
        definitions: &[Arc<Registered>],
        source: &mut dyn MetadataSource,
    ) -> Result<(Arc<Together>, Diagnostics), SourceError> {
        let chosen: Vec<&Registered> = definitions.iter().map(|one| &**one).collect();
        let selection = Selection::new(registry, &chosen);
        let found = ask(&selection.names(), source)?;
        let mut hasher = FxHasher::default();
        hasher.write_u64(selection.hash());
        for found in &found {
            if let Found::Metric(desc) = found {
                desc.pmid.hash(&mut hasher);
            }
        }
        let hash = hasher.finish();
        let is_same = |one: &Together| {
            let mut pairs = one.definitions.iter().zip(definitions);
            one.found == found
                && one.definitions.len() == definitions.len()
                && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
                && one.selection == selection
        };
        let known = lock(&self.alike.together).find(hash, is_same);
        let vocabulary = Vocabulary::new(source, registry);
        let suggest = |name: &str| vocabulary.nearest(name);
        let mut diagnostics = Diagnostics::default();
        if let Some(known) = known {
            if !known.diagnostics.is_empty() {
                self.examine_found(&selection, &found, &suggest, &mut diagnostics);
            }
            vocabulary.finish()?;
            return Ok((known, diagnostics));
        }
        let examination = self.examine_found(&selection, &found, &suggest, &mut diagnostics);
        vocabulary.finish()?;
        let Checked { metrics, typed } = examination.into_checked(chosen.into_iter());
        let together = Arc::new(Together {
            selection,
            definitions: definitions.to_vec(),
            found,
            metrics,
            typed,
            diagnostics: diagnostics.clone(),
            bound: Mutex::default(),
        });
        lock(&self.alike.together).insert(hash, &together);
        Ok((together, diagnostics))
    }

    /// What a list needs, made by `make` unless a context has it.
    pub(super) fn needs(
        &self,
        hash: u64,
        is_meant: impl Fn(&Needs) -> bool,
        make: impl FnOnce() -> Needs,
    ) -> Arc<Needs> {
        let known = lock(&self.alike.needs).find(hash, &is_meant);
        known.unwrap_or_else(|| {
            // Nobody waits for the compiler. Of two that were made one counts.
            let made = Arc::new(make());
            lock(&self.alike.needs).find_or_insert(hash, is_meant, || made)
        })
    }

    /// Memory to fetch with.
    pub(super) fn space(&self) -> Box<Space> {
        lock(&self.alike.spaces).pop().unwrap_or_default()
    }

    /// Leaves it to others.
    pub(super) fn give_back(&self, space: Box<Space>) {
        lock(&self.alike.spaces).push(space);
    }
}

impl Together {
    /// What came of the definitions, with what is wrong in a source's words.
    fn outcomes(self: &Arc<Together>, diagnostics: &Diagnostics) -> BoundByPmid {
        let mut by_metric: FxHashMap<&str, Vec<Diagnostic>> = FxHashMap::default();
        for diagnostic in diagnostics {
            if let Some(metric) = &diagnostic.metric {
                by_metric.entry(metric).or_default().push(diagnostic.clone());
            }
        }
        let outcome = |(definition, metric): (&Arc<Registered>, &Metric)| {
            let mut found = || by_metric.remove(&*metric.name).unwrap_or_default();
            let outcome = match (metric.is_hidden, metric.desc, metric.output) {
                (true, ..) => Outcome::Hidden(found()),
                (false, Ok(desc), Some(at)) => {
                    Outcome::Usable { desc, among: Arc::clone(self), at }
                }
                _ => Outcome::Unusable(found()),
            };
            Some((definition.pmid?, Bound { definition: Arc::clone(definition), outcome }))
        };
        self.definitions.iter().zip(&self.metrics).filter_map(outcome).collect()
    }

    /// Adds what came of the definitions to what a context has bound.
    pub(super) fn add_to(
        self: &Arc<Together>,
        bound: &mut Arc<BoundByPmid>,
        diagnostics: &Diagnostics,
    ) {
        if !bound.is_empty() {
            return Arc::make_mut(bound).extend(self.outcomes(diagnostics));
        }
        if *diagnostics != self.diagnostics {
            *bound = Arc::new(self.outcomes(diagnostics));
            return;
        }
        let mut shared = lock(&self.bound);
        *bound = shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(self.outcomes(diagnostics));
            *shared = Arc::downgrade(&made);
            made
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
