//! Sources in which the same definitions mean the same share one program.
//!
//! A [`Class`] is a selection of definitions and a [`Fingerprint`] of all that
//! binding them asks a source. The first source of a class is compiled for;
//! for each later one the program is there, and what the source calls its
//! metrics and domains is put into a binding. Classes exist as long as someone
//! uses what was compiled for them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pmderive_runtime::eval::{Evaluator, InCommon, LayoutPool, SharedLayouts};
use pmderive_runtime::program::{Binding, List, Program};
use pmderive_runtime::weak_table::WeakTable;

use super::Metric;
use super::bind_host::Flight;
use super::selection::Selection;
use crate::bind::{Fingerprint, Identities};
use crate::diag::Diagnostics;
use crate::plan::Operands;

/// The classes in use.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// By a hash of selection and fingerprint.
    table: Mutex<WeakTable<Class>>,
}

/// Sources that are alike for a selection of definitions.
#[derive(Debug)]
pub(super) struct Class {
    selection: Arc<Selection>,
    fingerprint: Fingerprint,
    /// Made once, by whoever comes first; others wait.
    build: OnceLock<Build>,
    /// For the evaluators of its sources.
    layouts: SharedLayouts,
    /// Who waits for that without blocking.
    flight: Flight,
    /// What was made for single sources, by a hash of their identifiers.
    compiled: Mutex<WeakTable<Compiled>>,
}

/// What was compiled for the first source of a class.
#[derive(Debug)]
pub(super) struct Build {
    pub identities: Identities,
    pub metrics: List<Metric>,
    pub program: Arc<Program>,
    pub operands: Operands,
    /// As of the first source, without names to suggest: others may have other domains.
    pub diagnostics: Diagnostics,
    /// True if names of a source might be suggested in place of unknown ones.
    pub misses_names: bool,
}

/// Definitions compiled against one source. Sources that are alike share the
/// program, and all of it if their metrics have the same identifiers.
#[derive(Debug)]
pub struct Compiled {
    /// The selection, in the order asked for.
    pub metrics: List<Metric>,
    /// What computes those that can be used.
    pub program: Arc<Program>,
    /// What the program's inputs are in this source.
    pub binding: Arc<Binding>,
    identities: Identities,
    class: Arc<Class>,
}

impl Compiled {
    /// An evaluator without previous samples. As long as it is there, like
    /// sources find what was compiled.
    pub fn evaluator(self: &Arc<Compiled>) -> Evaluator {
        let evaluator = Evaluator::new(Arc::clone(&self.program), Arc::clone(&self.binding));
        evaluator.sharing(Arc::clone(self) as Arc<dyn InCommon>)
    }

    /// Lets an evaluator go on with this program, see [`Evaluator::change_program`].
    pub fn put_into(self: &Arc<Compiled>, evaluator: &mut Evaluator) {
        let (program, binding) = (Arc::clone(&self.program), Arc::clone(&self.binding));
        evaluator.change_program(program, binding, Arc::clone(self) as Arc<dyn InCommon>);
    }

    /// What was found when the program was made, for the first source of its
    /// kind. For like sources the same is wrong; numbers of instance domains
    /// may be others. Names are not suggested: see [`Engine::compile`] and
    /// [`Engine::compile_host`].
    ///
    /// [`Engine::compile`]: super::Engine::compile
    /// [`Engine::compile_host`]: super::Engine::compile_host
    pub fn diagnostics(&self) -> &Diagnostics {
        static NONE: Diagnostics = Diagnostics::none();
        self.class.build.get().map_or(&NONE, |build| &build.diagnostics)
    }

    /// True if names of the source might be suggested in place of unknown ones.
    pub(super) fn misses_names(&self) -> bool {
        self.class.build.get().is_some_and(|build| build.misses_names)
    }

    /// The definitions that were compiled.
    pub fn selection(&self) -> &Arc<Selection> {
        &self.class.selection
    }
}

impl InCommon for Compiled {
    fn layouts(&self) -> &SharedLayouts {
        &self.class.layouts
    }
}

impl Classes {
    /// The class of sources with a fingerprint, a new one if there is none;
    /// nothing if that would be more than `limit`.
    pub fn find(
        &self,
        selection: &Arc<Selection>,
        fingerprint: &Fingerprint,
        limit: usize,
        layouts: &Arc<LayoutPool>,
    ) -> Option<Arc<Class>> {
        let hash = selection.hash() ^ fingerprint.hash().rotate_left(32);
        let is_same =
            |class: &Class| class.fingerprint == *fingerprint && class.selection == *selection;
        let mut table = lock(&self.table);
        let known = table.find(hash, is_same);
        known.or_else(|| {
            if table.count() >= limit {
                return None;
            }
            let class = Arc::new(Class {
                selection: Arc::clone(selection),
                fingerprint: fingerprint.clone(),
                build: OnceLock::new(),
                layouts: SharedLayouts::of(layouts),
                flight: Flight::default(),
                compiled: Mutex::default(),
            });
            table.insert(hash, &class);
            Some(class)
        })
    }

    /// Those in use.
    pub fn all(&self) -> Vec<Arc<Class>> {
        lock(&self.table).all()
    }

    /// How many are in use.
    pub fn count(&self) -> usize {
        lock(&self.table).count()
    }
}

impl Class {
    /// What its sources answer.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Who holds what was compiled for it.
    pub fn holders(&self) -> usize {
        let compiled = lock(&self.compiled).all();
        // One is held here.
        compiled.iter().map(|one| Arc::strong_count(one) - 1).sum()
    }

    /// What its definitions are.
    pub fn selection(&self) -> &Arc<Selection> {
        &self.selection
    }

    /// Compiling for it on the engine's threads.
    pub fn flight(&self) -> &Flight {
        &self.flight
    }

    /// What was compiled for it; `make` does that if nobody has.
    pub fn build(&self, make: impl FnOnce() -> Build) -> &Build {
        self.build.get_or_init(make)
    }

    /// True once it is compiled.
    pub fn is_built(&self) -> bool {
        self.build.get().is_some()
    }

    /// What was compiled, for a source with these identifiers.
    pub fn compiled(self: &Arc<Class>, build: &Build, identities: Identities) -> Arc<Compiled> {
        let is_same = |one: &Compiled| one.identities == identities;
        lock(&self.compiled).find_or_insert(identities.hash(), is_same, || {
            let (metrics, binding) = build.translated(&identities);
            let program = Arc::clone(&build.program);
            let (identities, class) = (identities.clone(), Arc::clone(self));
            Arc::new(Compiled { metrics, program, binding, identities, class })
        })
    }
}

impl Build {
    /// Metrics and binding in a source with other identifiers.
    fn translated(&self, identities: &Identities) -> (List<Metric>, Arc<Binding>) {
        if *identities == self.identities {
            return (self.metrics.clone(), Arc::new(self.operands.binding()));
        }
        let to = self.identities.translation(identities);
        let metric = |metric: &Metric| {
            let mut metric = metric.clone();
            if let Ok(desc) = &mut metric.desc {
                desc.indom = desc.indom.map(|indom| to.domain(indom));
            }
            metric
        };
        let Operands { metrics, fetched_domains, named_domains } = &self.operands;
        let operands = Operands {
            metrics: metrics.iter().map(|desc| to.desc(*desc)).collect(),
            fetched_domains: fetched_domains.iter().map(|indom| to.domain(*indom)).collect(),
            named_domains: named_domains.iter().map(|indom| to.domain(*indom)).collect(),
        };
        let metrics: Vec<Metric> = self.metrics.iter().map(metric).collect();
        (metrics.into(), Arc::new(operands.binding()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
