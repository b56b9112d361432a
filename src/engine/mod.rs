//! The engine: the one object that an application keeps.
//!
//! It compiles definitions against a source, shares kernels between all
//! programs it has made, and decides when they become native code.

mod anonymous;
mod backend;
mod bind_host;
mod classes;
mod controls;
mod examination;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz_hosts;
mod identifiers;
mod kinds;
mod nesting;
mod registry;
mod selection;
mod session;
mod shared;
mod shown;
mod system;
mod threads;
mod vocabulary;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pmderive_runtime::eval::LayoutPool;
use pmderive_runtime::kernel::{Kernel, KernelIr};
use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid};
use pmderive_runtime::program::{NodeId, Pool, Program};
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::weak_table::Known;

pub use crate::bind::equivalent_domains::EquivalentDomains;
use crate::bind::{Found, Identities, ask, mentions};
use crate::check::typed::Desc;
use crate::diag::Diagnostics;
use crate::dialect::{Dialect, Language};
use crate::plan::{Operands, Planned, nodes_of, plan};

use anonymous::ANONYMOUS;
pub use backend::Backend;
use backend::Compiler;
pub use classes::Compiled;
use classes::{Build, Classes};

pub(crate) use examination::Checked;
use examination::Checking;
pub use examination::Examination;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_cached, fuzz_compile, fuzz_eval};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz_hosts::fuzz_hosts;
pub use kinds::{DEFAULT_KIND_LIMIT, Kind};
pub use nesting::report_cycles;
pub(crate) use nesting::{Arranged, needed};
pub use registry::{Registered, Registry};
pub use selection::Selection;
use session::Alike;
pub use session::{Reading, Readings, Sample, Session, Space};
pub use shared::{Refused, SharedRegistry, Snapshot};
pub use shown::{Finding, Shown};
use threads::Threads;
use vocabulary::Vocabulary;

/// Compiles definitions for sources, once for all that are alike, and decides
/// when they become native code: the one object that an application keeps.
///
/// It may be used by any number of threads. Sources with derived metrics are
/// [`Session`]s of it; hosts whose calls are futures are bound with
/// [`Engine::bind_host`].
///
/// ```
/// use pmderive::diag::Diagnostics;
/// use pmderive::dialect::Dialect;
/// use pmderive::engine::{Backend, Engine, SharedRegistry};
/// use pmderive_runtime::local::LocalContext;
///
/// let shared = SharedRegistry::new(Dialect::Fixed);
/// shared.register("my.load", "sum(kernel.all.load) / hinv.ncpu")?;
/// let engine = Engine::new(Dialect::Fixed, Backend::Auto);
/// let registry = shared.snapshot().registry;
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
    /// Kernels that are in use somewhere; one per form.
    kernels: Mutex<HashMap<KernelIr, Weak<Kernel>>>,
    /// Lists of metrics that are in use.
    metrics: Known<Box<[Metric]>>,
    /// What programs in use have in common,
    pool: Pool,
    /// and what their layouts have.
    layouts: Arc<LayoutPool>,
    /// Kinds of sources that programs are in use for,
    classes: Classes,
    /// and how many these can be.
    kind_limit: usize,
    /// What sessions have in common.
    alike: Alike,
    threads: Threads,
}

/// A derived metric, or an expression without a name, after compilation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Metric {
    /// Name, or the text of an expression without one.
    pub name: Arc<str>,
    /// Metadata of the values, or why there are none: `PM_ERR_BADDERIVE` for a
    /// definition that cannot be used in this context.
    pub desc: Result<Desc, PmStatus>,
    /// Position among the program's outputs, for metrics that have one.
    pub output: Option<usize>,
    /// True if the source has a metric of that name, which counts instead.
    pub is_hidden: bool,
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
            metrics: Known::default(),
            pool: Pool::default(),
            layouts: Arc::default(),
            classes: Classes::default(),
            kind_limit: DEFAULT_KIND_LIMIT,
            alike: Alike::default(),
            threads: Threads::default(),
        }
    }

    /// The engine, with instance domains that operators take for the same.
    /// libpcp 6.0 has no such domains, and neither does its dialect.
    pub fn with_equivalent_domains(self, equivalent: EquivalentDomains) -> Engine {
        Engine { equivalent_domains: Arc::new(equivalent), ..self }
    }

    /// The engine, without threads of its own: compiling is done by whoever asks
    /// for it, while they wait. For simulations, whose time must not pass meanwhile.
    #[doc(hidden)]
    pub fn without_threads(mut self) -> Engine {
        self.threads.in_line = true;
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

    /// Why kernels are interpreted although native code was wanted, or why
    /// equivalent domains do not count, once that is known; told once.
    pub fn take_warning(&self) -> Option<String> {
        self.compiler.take_warning().or_else(|| self.equivalent_domains.take_warning())
    }

    /// How many kinds of sources there are that programs are in use for.
    pub fn classes(&self) -> usize {
        self.classes.count()
    }

    /// Compiles a selection of registered definitions against a source.
    /// Definitions that cannot be used there have a diagnostic and harm no other.
    ///
    /// # Errors
    /// The source failed.
    pub fn compile(
        &self,
        registry: &Registry,
        selection: &[&Registered],
        source: &mut dyn MetadataSource,
        diagnostics: &mut Diagnostics,
    ) -> Result<Arc<Compiled>, SourceError> {
        let selection = Arc::new(Selection::new(registry, selection));
        let found = ask(&selection.mentions(), source)?;
        let compiled = self.compiled_from(&selection, &found, source)?;
        let names = if compiled.misses_names() { source.traverse("")? } else { Vec::new() };
        self.tell(&compiled, &found, &names, diagnostics);
        Ok(compiled)
    }

    /// Compiles a selection against a source. What is wrong with definitions is
    /// in [`Compiled::diagnostics`]; names to suggest are not looked for.
    ///
    /// Costs two round trips. Where a like source has been compiled for before,
    /// nothing is checked or planned again.
    ///
    /// # Errors
    /// The source failed.
    pub fn bind(
        &self,
        selection: &Arc<Selection>,
        source: &mut dyn MetadataSource,
    ) -> Result<Arc<Compiled>, SourceError> {
        let found = ask(&selection.mentions(), source)?;
        self.compiled_from(selection, &found, source)
    }

    /// What is compiled for sources with these answers; it is done here if
    /// nobody has.
    fn compiled_from(
        &self,
        selection: &Arc<Selection>,
        found: &[Found],
        source: &dyn MetadataSource,
    ) -> Result<Arc<Compiled>, SourceError> {
        let (class, identities) = self.class_of(selection, found, || source.name())?;
        let make = || self.build(selection, found, identities.clone());
        Ok(class.compiled(class.build(make), identities))
    }

    /// Says what is wrong with definitions in the words of one source, whose
    /// names are given if they are missed.
    fn tell(
        &self,
        compiled: &Compiled,
        found: &[Found],
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
    fn build(&self, selection: &Selection, found: &[Found], identities: Identities) -> Build {
        let mut diagnostics = Diagnostics::default();
        let vocabulary = Vocabulary::unknown(selection.registry());
        let examination = self.examine_found(selection, found, &vocabulary, &mut diagnostics);
        let chosen = selection.definitions().into_iter().take(selection.len());
        let Checked { metrics, typed } = examination.into_checked(chosen);
        let planned: Vec<Planned<'_>> = typed
            .iter()
            .map(|(definition, expr)| Planned { definition: *definition, expr })
            .collect();
        let (program, operands) = self.plan(&planned);
        let misses_names = vocabulary.is_missed();
        let metrics = self.metrics.list(metrics);
        Build { identities, metrics, program, operands, diagnostics, misses_names }
    }

    /// Checks a selection against a source's answers to its questions.
    fn examine_found(
        &self,
        selection: &Selection,
        found: &[Found],
        vocabulary: &Vocabulary<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Examination {
        let definitions = selection.definitions();
        let suggest = |name: &str| vocabulary.nearest(name);
        let checking = self.checking(selection.registry(), &definitions, selection.len(), &suggest);
        checking.run(&selection.mentions().names, found, diagnostics)
    }

    fn checking<'c>(
        &'c self,
        registry: &'c Registry,
        definitions: &'c [&'c Registered],
        chosen: usize,
        suggest: &'c dyn Fn(&str) -> Option<String>,
    ) -> Checking<'c> {
        let equivalent_domains = &self.equivalent_domains;
        let language = self.language;
        Checking { registry, language, equivalent_domains, definitions, chosen, suggest }
    }

    /// Checks a selection of registered definitions against a source and
    /// keeps everything that is found out about each.
    ///
    /// # Errors
    /// The source failed.
    pub fn examine(
        &self,
        registry: &Registry,
        selection: &[&Registered],
        source: &mut dyn MetadataSource,
        diagnostics: &mut Diagnostics,
    ) -> Result<Examination, SourceError> {
        let definitions = needed(registry, selection);
        let own_names = definitions.iter().filter(|one| one.is_named).map(|one| &*one.name);
        let mentions = mentions(definitions.iter().map(|one| &*one.expr), own_names);
        let found = ask(&mentions, source)?;
        let examine = |vocabulary: &Vocabulary<'_>, diagnostics: &mut Diagnostics| {
            let suggest = |name: &str| vocabulary.nearest(name);
            let checking = self.checking(registry, &definitions, selection.len(), &suggest);
            checking.run(&mentions.names, &found, diagnostics)
        };
        let Told { examination, diagnostics: found, .. } = told(registry, source, examine)?;
        diagnostics.extend(found);
        Ok(examination)
    }

    /// Makes the program of checked definitions.
    pub(crate) fn plan(&self, planned: &[Planned<'_>]) -> (Arc<Program>, Operands) {
        let kernels = &mut |ir| self.kernel(ir);
        let (program, operands) = plan(planned, self.language.dialect, kernels, &self.pool);
        let program = Arc::new(program);
        self.compiler.program_made(&program);
        (program, operands)
    }

    /// The program's node of each node of the expressions that
    /// [`Engine::plan`] makes a program of.
    pub(crate) fn nodes_of(&self, planned: &[Planned<'_>]) -> Vec<Vec<NodeId>> {
        nodes_of(planned, self.language.dialect, &mut |ir| self.kernel(ir))
    }

    /// The kernel of a form, shared with whoever uses it already.
    fn kernel(&self, ir: KernelIr) -> Arc<Kernel> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
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

/// An examination with what was found, in which names are suggested.
struct Told {
    examination: Examination,
    diagnostics: Diagnostics,
    /// True if names of the source were looked for.
    misses_names: bool,
}

/// Examines, and if names might be suggested in place of unknown ones, once
/// more with those that the source has.
fn told(
    registry: &Registry,
    source: &mut dyn MetadataSource,
    examine: impl Fn(&Vocabulary<'_>, &mut Diagnostics) -> Examination,
) -> Result<Told, SourceError> {
    let mut diagnostics = Diagnostics::default();
    let vocabulary = Vocabulary::unknown(registry);
    let mut examination = examine(&vocabulary, &mut diagnostics);
    let misses_names = vocabulary.is_missed();
    if misses_names {
        let names = source.traverse("")?;
        diagnostics = Diagnostics::default();
        examination = examine(&Vocabulary::known(&names, registry), &mut diagnostics);
    }
    Ok(Told { examination, diagnostics, misses_names })
}

/// True for the metrics that libpcp defines for itself.
pub(crate) fn is_anonymous(name: &str) -> bool {
    ANONYMOUS.iter().any(|one| one.name == name)
}

/// Metadata of the metrics that libpcp defines for itself.
fn anonymous_descs(registry: &Registry) -> impl Iterator<Item = (&'static str, MetricDesc)> {
    // A registry of version 6 may not have given them identifiers yet, and no
    // source knows them.
    let given: Vec<Pmid> = registry.anonymous().map(|(pmid, _)| pmid).collect();
    ANONYMOUS.iter().zip(0u32..).filter_map(move |(one, at)| {
        let pmid = given.get(at as usize).copied().or_else(|| identifiers::global(at))?;
        Some((one.name, anonymous::DESC.of_metric(pmid)))
    })
}

/// Identity of a definition: of its name and its text.
fn identity(name: &str, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, text.trim()).hash(&mut hasher);
    hasher.finish()
}
