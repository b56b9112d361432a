//! The engine: the one object that an application keeps.
//!
//! It compiles definitions against a source, shares kernels between all
//! programs it has made, and decides when they become native code.

mod anonymous;
mod backend;
mod context;
mod controls;
mod derived;
mod fuzz;
mod identifiers;
mod nesting;
mod registry;
mod shared;
mod shown;
mod system;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pmderive_runtime::eval::Binding;
use pmderive_runtime::kernel::{Kernel, KernelIr};
use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid};
use pmderive_runtime::program::{NodeId, Program};
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::bind::{Name, Names};
use crate::check::typed::{Desc, TypedExpr};
use crate::check::{Examined, examine};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::{Dialect, Language};
use crate::equivalent_domains::EquivalentDomains;
use crate::plan::{Planned, nodes_of, plan};
use crate::syntax::{ControlOption, nearest_metric};

use anonymous::ANONYMOUS;
pub use backend::Backend;
use backend::Compiler;
pub use context::{Context, Sample};
pub use derived::DerivedContext;
#[doc(hidden)]
pub use fuzz::{fuzz_cached, fuzz_compile, fuzz_eval};
pub use nesting::report_cycles;
pub(crate) use nesting::{Arranged, needed};
pub use registry::{Registered, Registry};
pub use shared::{Refused, SharedRegistry, Snapshot};
pub use shown::{Finding, Shown};

/// See the module's description.
pub struct Engine {
    language: Language,
    compiler: Compiler,
    equivalent_domains: Arc<EquivalentDomains>,
    /// Kernels that are in use somewhere; one per form.
    kernels: Mutex<HashMap<KernelIr, Weak<Kernel>>>,
}

/// A derived metric, or an expression without a name, after compilation.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Name, or the text of an expression without one.
    pub name: Box<str>,
    /// Metadata of the values, or why there are none: `PM_ERR_BADDERIVE` for a
    /// definition that cannot be used in this context.
    pub desc: Result<Desc, PmStatus>,
    /// Position among the program's outputs, for metrics that have one.
    pub output: Option<usize>,
    /// True if the source has a metric of that name, which counts instead.
    pub is_hidden: bool,
}

/// Definitions compiled against one source.
#[derive(Debug)]
pub struct Compiled {
    /// The selection, in the order asked for.
    pub metrics: Vec<Metric>,
    /// What computes those that can be used.
    pub program: Arc<Program>,
    /// What the program's inputs are in this source.
    pub binding: Binding,
}

/// Definitions checked against one source.
#[derive(Debug)]
pub struct Examination {
    /// What the names in them stand for.
    pub names: Names,
    /// What was found out about each, in the order asked for, and after those
    /// about the definitions that they mention. A definition that a metric of
    /// the source hides is the values of that metric, and nothing is said of
    /// the nodes of its expression.
    pub expressions: Vec<Examined>,
    /// Parallel to the expressions: under what previous samples are kept.
    identities: Vec<u64>,
    /// Positions of the expressions, operands first.
    order: Vec<usize>,
    /// Parallel to the expressions: whether values are needed.
    wanted: Vec<bool>,
}

/// A selection of definitions whose names are looked up and that are checked.
pub(crate) struct Checked {
    /// The selection, in the order asked for.
    pub(crate) metrics: Vec<Metric>,
    /// Those that can be used, with the identity of their previous samples;
    /// [`Metric::output`] is the position here.
    pub(crate) typed: Vec<(u64, TypedExpr)>,
}

impl Examination {
    /// The expressions that are whole and wanted, in an order for planning.
    pub(crate) fn arranged(&self) -> Arranged {
        nesting::arrange(&self.identities, &self.order, &self.wanted, self.expressions.clone())
    }

    /// Whether values of the expression at a position are needed.
    pub(crate) fn is_wanted(&self, position: usize) -> bool {
        self.wanted.get(position).copied().unwrap_or(false)
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
        }
    }

    /// The engine, with instance domains that operators take for the same.
    /// libpcp 6.0 has no such domains, nor has its dialect.
    pub fn with_equivalent_domains(self, equivalent: EquivalentDomains) -> Engine {
        Engine { equivalent_domains: Arc::new(equivalent), ..self }
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
    ) -> Result<Compiled, SourceError> {
        let Checked { metrics, typed } = self.check(registry, selection, source, diagnostics)?;
        let planned: Vec<Planned<'_>> = typed
            .iter()
            .map(|(definition, expr)| Planned { definition: *definition, expr })
            .collect();
        let (program, binding) = self.plan(&planned);
        Ok(Compiled { metrics, program, binding })
    }

    /// Looks up the names of a selection and checks it: all of compiling that
    /// needs the source.
    ///
    /// # Errors
    /// The source failed.
    pub(crate) fn check(
        &self,
        registry: &Registry,
        selection: &[&Registered],
        source: &mut dyn MetadataSource,
        diagnostics: &mut Diagnostics,
    ) -> Result<Checked, SourceError> {
        let examination = self.examine(registry, selection, source, diagnostics)?;
        let Examination { names, expressions, identities, order, wanted } = examination;
        let Arranged { typed, outputs } =
            nesting::arrange(&identities, &order, &wanted, expressions);
        let metric = |(one, output): (&&Registered, &Option<usize>)| {
            let desc = output.map(|output| typed[output].1.desc());
            let desc = desc.ok_or(PmStatus::BADDERIVE);
            let is_hidden = one.is_named && matches!(names.get(&one.name), Name::Metric(_));
            Metric { name: one.name.clone(), desc, output: *output, is_hidden }
        };
        let metrics = selection.iter().zip(&outputs).map(metric).collect();
        Ok(Checked { metrics, typed })
    }

    /// Makes the program of checked definitions.
    pub(crate) fn plan(&self, planned: &[Planned<'_>]) -> (Arc<Program>, Binding) {
        let (program, binding) = plan(planned, self.language.dialect, &mut |ir| self.kernel(ir));
        let program = Arc::new(program);
        self.compiler.program_made(&program);
        (program, binding)
    }

    /// The program's node of each node of the expressions that
    /// [`Engine::plan`] makes a program of.
    pub(crate) fn nodes_of(&self, planned: &[Planned<'_>]) -> Vec<Vec<NodeId>> {
        nodes_of(planned, self.language.dialect, &mut |ir| self.kernel(ir))
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
        let extensions = self.language.extensions;
        let definitions = needed(registry, selection);
        let expressions = definitions.iter().map(|one| &one.expr);
        let own_names = definitions.iter().filter(|one| one.is_named).map(|one| &*one.name);
        let is_derived = |name: &str| registry.get(name).is_some() || is_anonymous(name);
        let mut names = Names::look_up(expressions, own_names, is_derived, source)?;
        names.equivalent_domains = Arc::clone(&self.equivalent_domains);
        names.treat_missing_as_novalue(registry.control(ControlOption::NoValue) == 1);
        for (name, desc) in anonymous_descs(registry) {
            names.describe(name, desc);
        }
        if extensions {
            names.refuse(|name| registry.is_refused(name));
        }
        let is_definition = |name: &str| matches!(names.get(name), Name::Derived);
        // Without extensions no metric needs another, so a cycle is no mistake of its own.
        let mut cycles = Diagnostics::default();
        let mut order = nesting::order(&definitions, is_definition, &mut cycles);
        if extensions {
            diagnostics.extend(cycles);
        } else {
            order.is_refused.fill(false);
        }
        let vocabulary = Vocabulary::new(source, registry);
        let suggest = |name: &str| vocabulary.nearest(name);
        let mut expressions: Vec<Examined> = vec![Examined::default(); definitions.len()];
        let mut mistakes: Vec<Diagnostics> = vec![Diagnostics::default(); definitions.len()];
        for position in order.positions.iter().copied() {
            let (one, found) = (definitions[position], &mut mistakes[position]);
            let examined = match names.get(&one.name) {
                Name::Metric(_) if position >= selection.len() => continue,
                Name::Metric(desc) if one.is_named => {
                    found.push(hidden(one));
                    let typed = TypedExpr::of_metric(desc, one.name_span);
                    Examined { typed, is_whole: true, ..Examined::default() }
                }
                _ if order.is_refused[position] => Examined::default(),
                _ => examine(&one.expr, &names, self.language, &suggest, found),
            };
            if one.is_named {
                found.name_metric(0, &one.name);
            }
            let desc = examined.is_whole.then(|| examined.typed.desc());
            if extensions && one.is_named {
                names.define(&one.name, desc.map(|desc| (desc, position)));
            } else if let (Some(desc), Some(pmid)) = (desc, one.pmid) {
                names.describe(&one.name, desc.of_metric(pmid));
            }
            expressions[position] = examined;
        }
        vocabulary.finish()?;
        let wanted = match extensions {
            true => nesting::with_values(&definitions, selection.len(), &order, &expressions),
            false => (0..definitions.len()).map(|position| position < selection.len()).collect(),
        };
        for (found, _) in mistakes.into_iter().zip(&wanted).filter(|(_, wanted)| **wanted) {
            diagnostics.extend(found);
        }
        let identities = definitions.iter().map(|one| one.identity).collect();
        let order = order.positions;
        Ok(Examination { names, expressions, identities, order, wanted })
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

/// True for the metrics that libpcp defines for itself.
pub(crate) fn is_anonymous(name: &str) -> bool {
    ANONYMOUS.iter().any(|one| one.name == name)
}

/// Metadata of the metrics that libpcp defines for itself.
fn anonymous_descs(registry: &Registry) -> impl Iterator<Item = (&'static str, MetricDesc)> {
    // A registry of version 6 may not have given them identifiers yet, and
    // sources know neither these nor others.
    let given: Vec<Pmid> = registry.anonymous().map(|(pmid, _)| pmid).collect();
    ANONYMOUS.iter().zip(0u32..).filter_map(move |(one, at)| {
        let pmid = given.get(at as usize).copied().or_else(|| identifiers::global(at))?;
        Some((one.name, anonymous::DESC.of_metric(pmid)))
    })
}

/// The source has a metric of this name, which counts instead.
fn hidden(one: &Registered) -> Diagnostic {
    let message = format!("`{}` is a metric of this source, which hides the definition", one.name);
    Diagnostic::warning(Code::HiddenByMetric, one.name_span, message)
        .label(one.name_span, "this definition is not used")
        .help("give the derived metric another name")
}

/// Names to suggest in place of unknown ones. The source is asked for its
/// names when the first unknown one is met.
struct Vocabulary<'v> {
    source: RefCell<&'v mut dyn MetadataSource>,
    registry: &'v Registry,
    names: OnceCell<Result<Vec<String>, SourceError>>,
    /// How many more names may be compared.
    left: Cell<usize>,
}

/// Names that are compared for suggestions at most: where very many are
/// unknown, the last ones go without.
const MAX_COMPARISONS: usize = 20_000_000;

impl<'v> Vocabulary<'v> {
    fn new(source: &'v mut dyn MetadataSource, registry: &'v Registry) -> Vocabulary<'v> {
        let left = Cell::new(MAX_COMPARISONS);
        Vocabulary { source: RefCell::new(source), registry, names: OnceCell::new(), left }
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let names = self.names.get_or_init(|| self.source.borrow_mut().traverse(""));
        let names = names.as_ref().ok()?.iter().map(String::as_str);
        let count = names.len() + self.registry.definitions().len();
        self.left.set(self.left.get().checked_sub(count)?);
        nearest_metric(name, names.chain(self.registry.names())).map(str::to_string)
    }

    /// Whether the source failed meanwhile.
    fn finish(self) -> Result<(), SourceError> {
        self.names.into_inner().transpose().map(drop)
    }
}

/// Identity of a definition: of its name and its text.
fn identity(name: &str, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, text.trim()).hash(&mut hasher);
    hasher.finish()
}
