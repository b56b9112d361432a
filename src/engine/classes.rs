//! Classes: sources in which definitions mean the same share one program.
//!
//! A [`Class`] is a selection of definitions and a [`Fingerprint`] of all
//! answers to the questions of binding. The engine compiles the program for the
//! first source of a class. For each later source it makes only a binding with
//! the source's own identifiers. A class exists as long as a caller holds its
//! program.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use pmderive_runtime::eval::{Evaluator, LayoutPool, SharedLayouts, SharedParts};
use pmderive_runtime::locks::lock;
use pmderive_runtime::program::{Binding, List, Program};
use pmderive_runtime::source::SourceError;
use pmderive_runtime::weak_table::WeakTable;
use rustc_hash::FxHashSet;

use super::Engine;
use super::compilation::Compilation;
use super::metric::Metric;
use super::selection::Selection;
use crate::bind::{Fingerprint, Identities, NameAnswer};
use crate::diag::Diagnostics;
use crate::plan::Operands;

/// The classes in use.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// The classes, by a hash of selection and fingerprint.
    table: Mutex<WeakTable<Class>>,
}

/// Sources with equal answers to the questions of a selection.
#[derive(Debug)]
pub(super) struct Class {
    /// Number of the class, never used for another one.
    pub number: u64,
    /// The definitions to compile.
    pub selection: Arc<Selection>,
    /// The answers of its sources.
    pub fingerprint: Fingerprint,
    /// The compiled definitions. The first caller makes them; others wait.
    pub build: OnceLock<Build>,
    /// Layouts that the evaluators of its sources share.
    layouts: SharedLayouts,
    /// The tasks that wait for the compiler without blocking.
    pub compilation: Compilation,
    /// The bindings for single sources, by a hash of their identifiers.
    compiled: Mutex<WeakTable<Compiled>>,
}

/// The result of compiling for the first source of a class.
#[derive(Debug)]
pub(super) struct Build {
    pub identities: Identities,
    pub metrics: List<Metric>,
    pub program: Arc<Program>,
    pub operands: Operands,
    /// Diagnostics for the first source, without suggested names. Other sources
    /// may have other domains.
    pub diagnostics: Diagnostics,
    /// True if a suggestion needed the names of a source.
    pub needs_names: bool,
}

/// Definitions compiled for one source. Sources of a class share the program.
/// If their metrics have the same identifiers, they share all of it.
#[derive(Debug)]
pub struct Compiled {
    /// The selected metrics, in the order of the request.
    pub metrics: List<Metric>,
    /// The program for the metrics that can be used.
    pub program: Arc<Program>,
    /// The metrics of this source for the program's inputs.
    pub binding: Arc<Binding>,
    identities: Identities,
    class: Arc<Class>,
}

impl Engine {
    /// The class of a source with these answers, and the source's own
    /// identifiers in them.
    ///
    /// # Errors
    /// There would be too many classes. `name` gives the name of the source.
    pub(super) fn class_of(
        &self,
        selection: &Arc<Selection>,
        found: &[NameAnswer],
        limit: usize,
        name: impl FnOnce() -> String,
    ) -> Result<(Arc<Class>, Identities), SourceError> {
        let equivalent = self.dialect().is_version_7().then_some(&*self.equivalent_domains);
        let (fingerprint, identities) = Fingerprint::new(found, selection.literals(), equivalent);
        match self.classes.find(selection, &fingerprint, limit, &self.layouts) {
            Some(class) => Ok((class, identities)),
            None => {
                let differs = self.unlike_most(selection, &fingerprint);
                Err(SourceError::TooManyKinds { target: name(), limit, differs })
            }
        }
    }
}

impl Compiled {
    /// An evaluator without previous samples. While it exists, other sources of
    /// the class find the compiled program.
    pub fn evaluator(self: &Arc<Compiled>) -> Evaluator {
        let evaluator = Evaluator::new(Arc::clone(&self.program), Arc::clone(&self.binding));
        evaluator.sharing(Arc::clone(self) as Arc<dyn SharedParts>)
    }

    /// Makes an evaluator continue with this program, see
    /// [`Evaluator::change_program`].
    pub fn put_into(self: &Arc<Compiled>, evaluator: &mut Evaluator) {
        let (program, binding) = (Arc::clone(&self.program), Arc::clone(&self.binding));
        evaluator.change_program(program, binding, Arc::clone(self) as Arc<dyn SharedParts>);
    }

    /// The diagnostics of the first source of the class. Other sources have the
    /// same mistakes, perhaps with other numbers of instance domains. No names
    /// are suggested; [`Engine::compile`] and [`Engine::compile_host`] do that.
    ///
    /// [`Engine::compile`]: super::Engine::compile
    /// [`Engine::compile_host`]: super::Engine::compile_host
    pub fn diagnostics(&self) -> &Diagnostics {
        static NONE: Diagnostics = Diagnostics::none();
        self.class.build.get().map_or(&NONE, |build| &build.diagnostics)
    }

    /// True if a suggestion needed the names of the source.
    pub(super) fn needs_names(&self) -> bool {
        self.class.build.get().is_some_and(|build| build.needs_names)
    }

    /// The number of the kind of sources that it was compiled for ([`super::Kind`]).
    pub fn kind(&self) -> u64 {
        self.class.number
    }

    /// The definitions that were compiled.
    pub fn selection(&self) -> &Arc<Selection> {
        &self.class.selection
    }
}

impl SharedParts for Compiled {
    fn layouts(&self) -> &SharedLayouts {
        &self.class.layouts
    }
}

impl Classes {
    /// The class of sources with a fingerprint; a new one if there is none.
    /// `None` if there would be more than `limit`.
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
            static NUMBERS: AtomicU64 = AtomicU64::new(1);
            let class = Arc::new(Class {
                number: NUMBERS.fetch_add(1, Ordering::Relaxed),
                selection: Arc::clone(selection),
                fingerprint: fingerprint.clone(),
                build: OnceLock::new(),
                layouts: SharedLayouts::of(layouts),
                compilation: Compilation::default(),
                compiled: Mutex::default(),
            });
            table.insert(hash, &class);
            Some(class)
        })
    }

    /// The classes in use.
    pub fn all(&self) -> Vec<Arc<Class>> {
        lock(&self.table).all()
    }

    /// Number of classes in use.
    pub fn count(&self) -> usize {
        lock(&self.table).count()
    }
}

impl Class {
    /// Sizes in bytes of the program, and of the parts of layouts that its sources share.
    /// Parts in `seen` do not count; others are added to it.
    pub fn bytes_unless(&self, seen: &mut FxHashSet<usize>) -> (usize, usize) {
        let program = self.build.get().map_or(0, |build| build.program.bytes_unless(seen));
        (program, self.layouts.bytes_unless(seen))
    }

    /// Number of users of its compiled definitions.
    pub fn holders(&self) -> usize {
        let compiled = lock(&self.compiled).all();
        // This list holds one reference itself.
        compiled.iter().map(|one| Arc::strong_count(one) - 1).sum()
    }

    /// The compiled definitions for a source with these identifiers.
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
    /// Metrics and binding for a source with other identifiers.
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
