//! Decides when kernels become native code.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pmderive_runtime::kernel::Kernel;
use pmderive_runtime::locks::lock;
use pmderive_runtime::program::Program;
use rustc_hash::FxHashSet;

use super::threads::Threads;

/// The way in which kernels run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Backend {
    /// Native code if it is worth it: kernels are compiled after the second
    /// evaluation.
    #[default]
    Auto,
    /// Native code from the first evaluation on.
    Jit,
    /// Interpretation.
    Interp,
}

impl Backend {
    /// The backend for a known number of evaluations. Native code does not pay
    /// off for a single one.
    pub fn for_evaluations(self, number: Option<u64>) -> Backend {
        match (self, number) {
            (Backend::Auto, Some(1)) => Backend::Interp,
            _ => self,
        }
    }
}

/// Decides when to compile kernels, and compiles them.
#[derive(Debug)]
pub struct Compiler {
    backend: Backend,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// True if native code is impossible; it is not tried again.
    failed: AtomicBool,
    warning: Mutex<Option<String>>,
    /// Addresses of kernels that threads are compiling. The threads keep the
    /// kernels alive.
    under_way: Mutex<FxHashSet<usize>>,
}

impl Compiler {
    pub fn new(backend: Backend) -> Compiler {
        Compiler { backend, state: Arc::default() }
    }

    pub fn take_warning(&self) -> Option<String> {
        lock(&self.state.warning).take()
    }

    /// Handles a new program, before its first evaluation.
    pub fn program_made(&self, program: &Program) {
        if self.backend == Backend::Jit {
            self.state.compile(&missing(program));
        }
    }

    /// Handles the `count`th evaluation of a program in a context. Kernels are
    /// compiled on the threads, and only once, however many contexts ask.
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
