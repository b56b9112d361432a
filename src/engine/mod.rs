//! The engine: the one object that an application keeps.
//!
//! It compiles definitions against a source, shares kernels between all
//! programs it has made, and decides when they become native code.

mod backend;
mod context;
mod controls;
mod fuzz;
mod identifiers;
mod layers;
mod registry;
mod system;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pmderive_runtime::eval::Binding;
use pmderive_runtime::kernel::{Kernel, KernelIr};
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::program::{NodeId, Program};
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::bind::{Name, Names};
use crate::check::typed::{Desc, TypedExpr};
use crate::check::{Examined, examine};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::{Dialect, Language};
use crate::plan::{Planned, nodes_of, plan};
use crate::syntax::{ControlOption, nearest};

pub use backend::Backend;
use backend::Compiler;
pub use context::{Context, Sample};
#[doc(hidden)]
pub use fuzz::{fuzz_compile, fuzz_eval};
pub use registry::{Registered, Registry};

/// See the module's description.
pub struct Engine {
    language: Language,
    compiler: Compiler,
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
    /// What was found out about each, in the order asked for. A definition
    /// that a metric of the source hides is the values of that metric, and
    /// nothing is said of the nodes of its expression.
    pub expressions: Vec<Examined>,
}

/// A selection of definitions whose names are looked up and that are checked.
pub(crate) struct Checked {
    /// The selection, in the order asked for.
    pub(crate) metrics: Vec<Metric>,
    /// Those that can be used, with the identity of their previous samples;
    /// [`Metric::output`] is the position here.
    pub(crate) typed: Vec<(u64, TypedExpr)>,
}

impl Engine {
    /// An engine for definitions in a language.
    pub fn new(language: impl Into<Language>, backend: Backend) -> Engine {
        let language = language.into();
        Engine { language, compiler: Compiler::new(backend), kernels: Mutex::default() }
    }

    /// The language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The language's dialect.
    pub fn dialect(&self) -> Dialect {
        self.language.dialect
    }

    /// Why kernels are interpreted although native code was wanted, once
    /// that is known; told once.
    pub fn take_warning(&self) -> Option<String> {
        self.compiler.take_warning()
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
        let mut metrics = Vec::with_capacity(selection.len());
        let mut typed: Vec<(u64, TypedExpr)> = Vec::with_capacity(selection.len());
        for (one, examined) in selection.iter().zip(examination.expressions) {
            let is_hidden =
                one.is_named && matches!(examination.names.get(&one.name), Name::Metric(_));
            let (desc, output) = match examined.is_whole.then_some(examined.typed) {
                None => (Err(PmStatus::BADDERIVE), None),
                Some(expr) => {
                    let desc = expr.desc();
                    typed.push((one.identity, expr));
                    (Ok(desc), Some(typed.len() - 1))
                }
            };
            metrics.push(Metric { name: one.name.clone(), desc, output, is_hidden });
        }
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
        let expressions = selection.iter().map(|one| &one.expr);
        let own_names = selection.iter().filter(|one| one.is_named).map(|one| &*one.name);
        let is_derived = |name: &str| registry.get(name).is_some();
        let mut names = Names::look_up(expressions, own_names, is_derived, source)?;
        names.treat_missing_as_novalue(registry.control(ControlOption::NoValue) == 1);
        let vocabulary = Vocabulary::new(source, registry);
        let suggest = |name: &str| vocabulary.nearest(name);
        let mut expressions = Vec::with_capacity(selection.len());
        for one in selection {
            let first = diagnostics.len();
            expressions.push(match names.get(&one.name) {
                Name::Metric(desc) if one.is_named => {
                    diagnostics.push(hidden(one));
                    let typed = TypedExpr::of_metric(desc, one.name_span);
                    Examined { typed, is_whole: true, ..Examined::default() }
                }
                _ => examine(&one.expr, &names, self.language.dialect, &suggest, diagnostics),
            });
            if one.is_named {
                diagnostics.name_metric(first, &one.name);
            }
        }
        vocabulary.finish()?;
        Ok(Examination { names, expressions })
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

/// The source has a metric of this name, which counts instead.
fn hidden(one: &Registered) -> Diagnostic {
    let message = format!("`{}` is a metric of this source, which hides the definition", one.name);
    Diagnostic::warning(Code::HiddenByMetric, one.name_span, message)
        .help("give the derived metric another name")
}

/// Names to suggest in place of unknown ones. The source is asked for its
/// names when the first unknown one is met.
struct Vocabulary<'v> {
    source: RefCell<&'v mut dyn MetadataSource>,
    registry: &'v Registry,
    names: OnceCell<Result<Vec<String>, SourceError>>,
}

impl<'v> Vocabulary<'v> {
    fn new(source: &'v mut dyn MetadataSource, registry: &'v Registry) -> Vocabulary<'v> {
        Vocabulary { source: RefCell::new(source), registry, names: OnceCell::new() }
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let names = self.names.get_or_init(|| self.source.borrow_mut().traverse(""));
        let names = names.as_ref().ok()?.iter().map(String::as_str);
        nearest(name, names.chain(self.registry.names())).map(str::to_string)
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
