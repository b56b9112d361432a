//! The engine: the one object that an application keeps.
//!
//! It compiles definitions for sources and shares kernels between all programs
//! that it has made. It decides when kernels become native code.

mod anonymous;
mod backend;
mod bind_host;
mod class_statistics;
mod classes;
mod compilation;
mod controls;
mod definitions;
mod examination;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod identifiers;
mod metric;
mod nesting;
mod registry;
mod report_sample;
mod retry;
mod selection;
mod session;
mod system;
mod threads;
mod vocabulary;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use pmderive_runtime::eval::{Evaluator, LayoutPool};
use pmderive_runtime::kernel::{Kernel, KernelIr};
use pmderive_runtime::locks::lock;
use pmderive_runtime::program::{NodeId, Pool, Program};
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::weak_table::Interner;

pub use crate::bind::Desc;
pub use crate::bind::equivalent_domains::EquivalentDomains;
use crate::bind::{Identities, NameAnswer, ask};
use crate::diag::Diagnostics;
use crate::dialect::{Dialect, Language};
use crate::plan::{Operands, Planned, nodes_of, plan};

pub(crate) use anonymous::is_anonymous;
pub use backend::Backend;
use backend::Compiler;
pub use classes::Compiled;
use classes::{Build, Classes};

pub use class_statistics::{DEFAULT_KIND_LIMIT, Difference, Kind, ProgramBytes, Split};
pub use definitions::{ChangeError, Definitions, Loaded, Refused, Snapshot};
pub(crate) use examination::CheckedSelection;
use examination::Checking;
pub use examination::Examination;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_cached, fuzz_compile, fuzz_eval};
pub use metric::Metric;
pub use nesting::report_cycles;
pub(crate) use nesting::{Arranged, needed};
pub use registry::{Registered, Registry};
pub use report_sample::{Finding, ReportSample, Results};
pub(crate) use retry::Retry;
pub use selection::Selection;
use session::SessionParts;
pub use session::{LanguageMismatch, Reading, Readings, Reads, Sample, Session, Space};
pub use threads::Job;
use threads::Threads;
use vocabulary::Vocabulary;

/// Compiles definitions for sources, once for all similar ones, and decides
/// when they become native code. It is the one object that an application
/// keeps.
///
/// Any number of threads may use it. A source with derived metrics is a
/// [`Session`] of the engine. Hosts whose calls are futures are bound with
/// [`Engine::bind_host`].
///
/// ```
/// use pmderive::runtime::local::LocalContext;
/// use pmderive::{Definitions, Diagnostics, Engine};
///
/// let definitions = Definitions::default();
/// definitions.register("my.load", "sum(kernel.all.load) / hinv.ncpu")?;
/// let engine = Engine::default();
/// let registry = definitions.snapshot().registry;
/// let (mut source, mut diagnostics) = (LocalContext::new(), Diagnostics::default());
/// let compiled = engine.compile(&registry, &registry.all(), &mut source, &mut diagnostics)?;
/// assert!(compiled.metrics[0].desc.is_ok() && diagnostics.is_empty());
/// assert_eq!(compiled.program.inputs.len(), 2, "what is fetched");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    language: Language,
    compiler: Compiler,
    equivalent_domains: Arc<EquivalentDomains>,
    /// Kernels in use; one for each form.
    kernels: Mutex<HashMap<KernelIr, Weak<Kernel>>>,
    /// Lists of metrics in use.
    metrics: Interner<Box<[Metric]>>,
    /// Parts that programs in use share.
    pool: Pool,
    /// Parts that layouts of these programs share.
    layouts: Arc<LayoutPool>,
    /// Kinds of sources with programs in use.
    classes: Classes,
    /// Limit for the number of kinds.
    kind_limit: usize,
    /// Parts that sessions share.
    alike: SessionParts,
    threads: Threads,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("language", &self.language)
            .field("classes", &self.classes())
            .finish_non_exhaustive()
    }
}

/// Native code where it pays off, for definitions in the default dialect without extensions.
impl Default for Engine {
    fn default() -> Engine {
        Engine::new(Dialect::default(), Backend::default())
    }
}

impl Engine {
    /// An engine for definitions in a language.
    pub fn new(language: impl Into<Language>, backend: Backend) -> Engine {
        let language = language.into();
        Engine {
            language,
            compiler: Compiler::new(backend),
            equivalent_domains: Arc::default(),
            kernels: Mutex::default(),
            metrics: Interner::default(),
            pool: Pool::default(),
            layouts: Arc::default(),
            classes: Classes::default(),
            kind_limit: DEFAULT_KIND_LIMIT,
            alike: SessionParts::default(),
            threads: Threads::default(),
        }
    }

    /// An engine for definitions in a language, with the equivalent instance
    /// domains of this machine's configuration.
    pub fn of_this_machine(language: impl Into<Language>, backend: Backend) -> Engine {
        let equivalent = EquivalentDomains::of_this_machine();
        Engine::new(language, backend).with_equivalent_domains(equivalent)
    }

    /// Sets the instance domains that operators declare equivalent. libpcp 6.0
    /// does not have them, so its dialect ignores them.
    #[must_use]
    pub fn with_equivalent_domains(self, equivalent: EquivalentDomains) -> Engine {
        Engine { equivalent_domains: Arc::new(equivalent), ..self }
    }

    /// Gives jobs that compile to `run` instead of the engine's threads. `run` must do
    /// them soon, in the order of the calls. If it drops a job, a caller that needs the
    /// program does the job again.
    #[must_use]
    pub fn with_jobs_run_by(mut self, run: impl Fn(Job) + Send + Sync + 'static) -> Engine {
        self.threads.instead = Some(Box::new(run));
        self
    }

    /// The language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The language's dialect.
    pub fn dialect(&self) -> Dialect {
        self.language.dialect
    }

    /// A warning, once there is one: kernels are interpreted although native
    /// code was wanted, or equivalent domains are ignored. Each warning is
    /// given once.
    pub fn take_warning(&self) -> Option<String> {
        self.compiler.take_warning().or_else(|| self.equivalent_domains.take_warning())
    }

    /// Number of kinds of sources with programs in use.
    pub fn classes(&self) -> usize {
        self.classes.count()
    }

    /// Compiles a selection of registered definitions for a source. A
    /// definition that cannot be used gets a diagnostic and does not affect the
    /// others. [`Compiled::metrics`] is parallel to `selection`.
    ///
    /// # Errors
    /// The source failed. Mistakes in definitions are in `diagnostics`.
    pub fn compile(
        &self,
        registry: &Registry,
        selection: &[&Registered],
        source: &mut dyn MetadataSource,
        diagnostics: &mut Diagnostics,
    ) -> Result<Arc<Compiled>, SourceError> {
        let selection = Arc::new(Selection::new(registry, selection));
        let found = ask(selection.mentions(), source)?;
        let compiled = self.compiled_from(&selection, &found, self.kind_limit, source)?;
        let names = if compiled.needs_names() { source.traverse("")? } else { Vec::new() };
        self.diagnose(&compiled, &found, &names, diagnostics);
        Ok(compiled)
    }

    /// Compiles a selection for a source. Mistakes in definitions are in
    /// [`Compiled::diagnostics`]; no names are suggested.
    ///
    /// It needs two round trips. If the engine has compiled for a similar
    /// source, it checks and plans nothing again.
    ///
    /// # Errors
    /// The source failed.
    pub fn bind(
        &self,
        selection: &Arc<Selection>,
        source: &mut dyn MetadataSource,
    ) -> Result<Arc<Compiled>, SourceError> {
        let found = ask(selection.mentions(), source)?;
        self.compiled_from(selection, &found, usize::MAX, source)
    }

    /// The compiled definitions for sources with these answers. Compiles in
    /// this thread unless they exist.
    fn compiled_from(
        &self,
        selection: &Arc<Selection>,
        found: &[NameAnswer],
        limit: usize,
        source: &dyn MetadataSource,
    ) -> Result<Arc<Compiled>, SourceError> {
        let (class, identities) = self.class_of(selection, found, limit, || source.name())?;
        let make = || self.build(selection, found, identities.clone());
        Ok(class.compiled(class.build.get_or_init(make), identities))
    }

    /// Diagnostics about the definitions in terms of one source. `names` has
    /// the names of the source if suggestions need them.
    fn diagnose(
        &self,
        compiled: &Compiled,
        found: &[NameAnswer],
        names: &[String],
        diagnostics: &mut Diagnostics,
    ) {
        if compiled.diagnostics().is_empty() {
            return;
        }
        let selection = compiled.selection();
        let vocabulary = Vocabulary::known(names, selection.registry());
        self.examine_found(selection, found, &vocabulary, diagnostics);
    }

    /// Checks and plans for the first source of a class.
    fn build(&self, selection: &Selection, found: &[NameAnswer], identities: Identities) -> Build {
        let mut diagnostics = Diagnostics::default();
        let vocabulary = Vocabulary::unknown(selection.registry());
        let definitions = selection.definitions();
        let are_nested = selection.are_nested();
        let checking =
            Checking { are_nested, ..self.checking(selection, &definitions, &vocabulary) };
        let mentions = selection.mentions();
        let mut metrics = Vec::new();
        let (program, operands) = self.plan(|add| {
            let mut add = |key, expr| add((key, Cow::Owned(expr)));
            if !self.language.extensions || !are_nested {
                metrics = checking.run_each(mentions, found, &mut diagnostics, add);
                return;
            }
            let examination = checking.run(mentions, found, &mut diagnostics);
            let chosen = definitions.iter().copied().take(selection.len());
            let checked = examination.into_checked(chosen);
            metrics = checked.metrics;
            checked.typed.into_iter().for_each(|(key, expr)| add(key, expr));
        });
        let needs_names = vocabulary.needs_names();
        let metrics = self.metrics.list(metrics);
        Build { identities, metrics, program, operands, diagnostics, needs_names }
    }

    /// Checks a selection against a source's answers to its questions.
    fn examine_found(
        &self,
        selection: &Selection,
        found: &[NameAnswer],
        vocabulary: &Vocabulary<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Examination {
        let definitions = selection.definitions();
        let checking = self.checking(selection, &definitions, vocabulary);
        checking.run(selection.mentions(), found, diagnostics)
    }

    /// A check of a selection, whose definitions may mention each other.
    fn checking<'c>(
        &'c self,
        selection: &'c Selection,
        definitions: &'c [&'c Registered],
        vocabulary: &'c Vocabulary<'c>,
    ) -> Checking<'c> {
        Checking {
            registry: selection.registry(),
            language: self.language,
            equivalent_domains: &self.equivalent_domains,
            definitions,
            chosen: selection.len(),
            are_nested: true,
            vocabulary,
        }
    }

    /// Checks a selection of registered definitions against a source and keeps
    /// all results.
    ///
    /// # Errors
    /// The source failed. Mistakes in definitions are in `diagnostics`.
    pub fn examine(
        &self,
        registry: &Registry,
        selection: &[&Registered],
        source: &mut dyn MetadataSource,
        diagnostics: &mut Diagnostics,
    ) -> Result<Examination, SourceError> {
        let selection = Selection::new(registry, selection);
        let found = ask(selection.mentions(), source)?;
        let mut own = Diagnostics::default();
        let vocabulary = Vocabulary::unknown(registry);
        let mut examination = self.examine_found(&selection, &found, &vocabulary, &mut own);
        // Examines again if a suggestion needs names of the source.
        if vocabulary.needs_names() {
            let names = source.traverse("")?;
            let vocabulary = Vocabulary::known(&names, registry);
            own = Diagnostics::default();
            examination = self.examine_found(&selection, &found, &vocabulary, &mut own);
        }
        diagnostics.extend(own);
        Ok(examination)
    }

    /// Records that an evaluator has evaluated a program of this engine. With
    /// [`Backend::Auto`], the program's kernels become native code after its
    /// second evaluation, in a separate thread. [`Session`] calls this
    /// itself. Call it if you use an [`Evaluator`] directly, as for a host
    /// whose calls are futures; the [first programs](crate::manual::programs)
    /// have an example.
    ///
    /// If [`AsyncHostContext::metadata_epoch`] has changed, or the host has
    /// failed and may now be another one, bind it again and put the result into
    /// the evaluator ([`Compiled::put_into`]).
    ///
    /// [`AsyncHostContext::metadata_epoch`]: pmderive_runtime::context::AsyncHostContext::metadata_epoch
    pub fn evaluated(&self, evaluator: &Evaluator) {
        self.compiler.evaluated(evaluator.program(), evaluator.evaluations(), &self.threads);
    }

    /// Makes the program of checked definitions. `definitions` passes them to a function one
    /// by one.
    pub(crate) fn plan(
        &self,
        definitions: impl FnOnce(&mut dyn FnMut(Planned<'_>)),
    ) -> (Arc<Program>, Operands) {
        let kernels = &mut |ir| self.kernel(ir);
        let (program, operands) = plan(definitions, self.language.dialect, kernels, &self.pool);
        let program = Arc::new(program);
        self.compiler.program_made(&program);
        (program, operands)
    }

    /// For each node of the expressions, its node in the program of
    /// [`Engine::plan`].
    pub(crate) fn nodes_of(&self, planned: &[Planned<'_>]) -> Vec<Vec<NodeId>> {
        nodes_of(planned, self.language.dialect, &mut |ir| self.kernel(ir))
    }

    /// The kernel with a form, shared with those that already use it.
    fn kernel(&self, ir: KernelIr) -> Arc<Kernel> {
        let mut kernels = lock(&self.kernels);
        if let Some(kernel) = kernels.get(&ir).and_then(Weak::upgrade) {
            return kernel;
        }
        let kernel = Arc::new(Kernel::new(ir.clone()).expect("the planner makes verified kernels"));
        kernels.insert(ir, Arc::downgrade(&kernel));
        if kernels.len().is_power_of_two() {
            kernels.retain(|_, kernel| kernel.strong_count() > 0);
        }
        kernel
    }
}
