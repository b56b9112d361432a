//! When kernels become native code.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pmderive_runtime::eval::Evaluator;
use pmderive_runtime::kernel::Kernel;
use pmderive_runtime::program::Program;
use rustc_hash::FxHashSet;

use super::Engine;
use super::threads::Threads;

/// How kernels are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Backend {
    /// By native code if it is worth it: from soon after the second evaluation on.
    #[default]
    Auto,
    /// By native code from the first evaluation on.
    Jit,
    /// By interpretation.
    Interp,
}

impl Backend {
    /// The backend for a number of evaluations, if that is known: native code is
    /// not worth it for a single one.
    pub fn for_evaluations(self, number: Option<u64>) -> Backend {
        match (self, number) {
            (Backend::Auto, Some(1)) => Backend::Interp,
            _ => self,
        }
    }
}

/// Compiles kernels when their time has come.
#[derive(Debug)]
pub struct Compiler {
    backend: Backend,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Native code turned out to be impossible; it is not tried again.
    failed: AtomicBool,
    warning: Mutex<Option<String>>,
    /// Addresses of kernels that threads are compiling, and hold.
    under_way: Mutex<FxHashSet<usize>>,
}

impl Engine {
    /// Notes that an evaluator has evaluated a program of this engine. With
    /// [`Backend::Auto`] its kernels become native code, in a thread of their
    /// own, when it has done two. [`super::Session`] says so by itself; this is
    /// for whoever has an [`Evaluator`], for which nothing else is needed to
    /// evaluate the metrics of a host whose calls are futures:
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use pmderive::dialect::Dialect;
    /// use pmderive::engine::{Backend, Engine, Selection, SharedRegistry};
    /// use pmderive_runtime::context::AsyncHostContext;
    /// use pmderive_runtime::eval::{Value, Workspace};
    /// # use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut world = World::new();
    /// # let disks = world.add_domain(&["sda", "sdb"]);
    /// # world.add(Metric::new("disk.dev.read", Script::counter(25.0)).per(disks));
    /// # let pmcd = FakePmcd::start(FakeHost::new(world));
    /// # let spec = pmcd.spec();
    /// let shared = SharedRegistry::new(Dialect::Fixed);
    /// shared.register("web.reads", "rate(disk.dev.read[sda])")?;
    /// let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Auto));
    /// let registry = &shared.snapshot().registry;
    /// let selection = Arc::new(Selection::new(registry, &registry.all()));
    ///
    /// let mut host: AsyncHostContext = AsyncHostContext::open(&spec).await?;
    /// let compiled = engine.bind_host(&selection, &mut host).await?;
    /// let output = compiled.metrics[0].output.ok_or("it cannot be used on this host")?;
    ///
    /// let mut evaluator = compiled.evaluator();
    /// let mut workspace = Workspace::default();
    /// let mut rates = Vec::new();
    /// for _ in 0..3 {
    ///     let (values, _) = host.evaluate(&mut evaluator, &mut workspace).await?;
    ///     let values = values.get(output);
    ///     rates.push(values.iter().next().map(|(_, value)| value == Value::F64(25.0)));
    ///     engine.evaluated(&evaluator);
    /// }
    /// assert_eq!(rates, [None, Some(true), Some(true)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// When [`AsyncHostContext::metadata_epoch`] has changed, or the host has
    /// failed and may be another one now, bind it again and
    /// give the evaluator what comes of it ([`super::Compiled::put_into`]).
    ///
    /// [`AsyncHostContext::metadata_epoch`]: pmderive_runtime::context::AsyncHostContext::metadata_epoch
    pub fn evaluated(&self, evaluator: &Evaluator) {
        self.compiler.evaluated(evaluator.program(), evaluator.evaluations(), &self.threads);
    }
}

impl Compiler {
    pub fn new(backend: Backend) -> Compiler {
        Compiler { backend, state: Arc::default() }
    }

    pub fn take_warning(&self) -> Option<String> {
        lock(&self.state.warning).take()
    }

    /// A program was made and not evaluated yet.
    pub fn program_made(&self, program: &Program) {
        if self.backend == Backend::Jit {
            self.state.compile(&missing(program));
        }
    }

    /// A program was evaluated for the `count`th time in a context. What is to
    /// become native does so on the threads, once however many contexts ask.
    pub fn evaluated(&self, program: &Program, count: u64, threads: &Threads) {
        if self.backend != Backend::Auto || count != 2 || self.state.failed.load(Ordering::Relaxed)
        {
            return;
        }
        let mut kernels = missing(program);
        let mut under_way = lock(&self.state.under_way);
        kernels.retain(|kernel| under_way.insert(Arc::as_ptr(kernel).addr()));
        drop(under_way);
        if kernels.is_empty() {
            return;
        }
        let state = Arc::clone(&self.state);
        threads.run(Box::new(move || {
            state.compile(&kernels);
            let mut under_way = lock(&state.under_way);
            kernels.iter().for_each(|kernel| _ = under_way.remove(&Arc::as_ptr(kernel).addr()));
        }));
    }
}

/// Kernels of a program's steps that have no native form yet.
fn missing(program: &Program) -> Vec<Arc<Kernel>> {
    let missing = program.steps.iter().filter(|step| step.kernel.native().is_none());
    let mut seen = FxHashSet::default();
    let kernels = missing.filter(|step| seen.insert(&step.kernel));
    kernels.map(|step| Arc::clone(&step.kernel.0)).collect()
}

impl State {
    #[cfg(feature = "jit")]
    fn compile(&self, kernels: &[Arc<Kernel>]) {
        if self.failed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = crate::jit::compile(kernels) {
            self.fail(format!("kernels are interpreted: {error}"));
        }
    }

    #[cfg(not(feature = "jit"))]
    fn compile(&self, _: &[Arc<Kernel>]) {
        self.fail(
            "kernels are interpreted: this program was built without native code".to_string(),
        );
    }

    fn fail(&self, warning: String) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            *lock(&self.warning) = Some(warning);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
