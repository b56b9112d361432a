//! Compiles kernels to native code. Only this stage knows Cranelift.
//!
//! Kernels compiled together share one region of code, which is freed with the last of
//! them. If the processor is not supported or executable memory is denied, compiling
//! fails. The interpreter then runs the kernels.

mod columns;
mod conditions;
mod constants;
mod divide;
mod emit;
mod error;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod group;
mod library;
mod listing;
mod map;
mod module;
mod quick;
mod reduce;
mod region;
mod target;
mod vectors;

use std::cell::Cell;
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_frontend::FunctionBuilderContext;
use cranelift_module::{FuncId, Module};
use pmderive_runtime::kernel::Kernel;

pub use error::JitError;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_kernel_diff;
pub use listing::listing;

/// Compiles kernels into one region and supplies each with its native form. Kernels
/// without one ([`pmderive_runtime::kernel::KernelIr::is_compiled`]) stay as they are.
///
/// # Errors
/// None of the kernels has a native form then.
pub fn compile(kernels: &[Arc<Kernel>]) -> Result<(), JitError> {
    let kernels: Vec<Arc<Kernel>> =
        kernels.iter().filter(|kernel| kernel.ir().is_compiled()).cloned().collect();
    if kernels.is_empty() {
        return Ok(());
    }
    thread_local! {
        /// The contexts of the compiler. The next compilation uses their memory again.
        static KEPT: Cell<Option<(Context, FunctionBuilderContext)>> = const { Cell::new(None) };
    }
    let (mut module, target) = module::new_module()?;
    let make = || (module.make_context(), FunctionBuilderContext::new());
    let (mut context, mut builder_context) = KEPT.take().unwrap_or_else(make);
    let mut functions: Vec<FuncId> = Vec::with_capacity(kernels.len());
    let library = library::Library::declare(&mut module)?;
    for kernel in &kernels {
        let calls = library.calls(kernel.ir(), &mut module, &mut context.func);
        emit::emit(kernel.ir(), calls, target, &mut context.func, &mut builder_context);
        let function = module.declare_anonymous_function(&context.func.signature)?;
        module.define_function(function, &mut context)?;
        module.clear_context(&mut context);
        functions.push(function);
    }
    KEPT.set(Some((context, builder_context)));
    region::publish(module, &kernels, &functions)
}
