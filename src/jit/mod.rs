//! Compiles kernels to native code. Only this stage knows Cranelift.
//!
//! Kernels that are compiled together share one region of code, which is freed with the
//! last of them. If the processor is not supported or executable memory is denied,
//! compiling fails, and the interpreter runs the kernels.

mod columns;
mod divide;
mod emit;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod group;
mod kept;
mod library;
mod listing;
mod quick;
mod reduce;
mod region;

use std::sync::{Arc, OnceLock};

use cranelift_codegen::CodegenError;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, ModuleError};
use pmderive_runtime::kernel::Kernel;

#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_kernel_diff;
pub use listing::listing;

/// Why there is no native code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JitError {
    /// No code generator for this processor.
    #[error("no code generator for this processor: {0}")]
    Unsupported(String),
    /// Generating code failed, or the system denied memory for it.
    #[error("native code cannot be made: {0}")]
    Module(String),
}

impl From<ModuleError> for JitError {
    fn from(error: ModuleError) -> JitError {
        JitError::Module(match error {
            ModuleError::Compilation(CodegenError::Verifier(errors)) => errors.to_string(),
            other => other.to_string(),
        })
    }
}

/// Compiles kernels into one region and supplies each with its native form,
/// those excepted that have none ([`pmderive_runtime::kernel::KernelIr::is_compiled`]).
///
/// # Errors
/// None of them has a native form then.
pub fn compile(kernels: &[Arc<Kernel>]) -> Result<(), JitError> {
    let kernels: Vec<Arc<Kernel>> =
        kernels.iter().filter(|kernel| kernel.ir().is_compiled()).cloned().collect();
    if kernels.is_empty() {
        return Ok(());
    }
    let mut module = new_module()?;
    let mut context = module.make_context();
    let mut builder_context = FunctionBuilderContext::new();
    let mut functions: Vec<FuncId> = Vec::with_capacity(kernels.len());
    let library = library::Library::declare(&mut module)?;
    for kernel in &kernels {
        let target = target(&module);
        let calls = library.calls(kernel.ir(), &mut module, &mut context.func);
        emit::emit(kernel.ir(), calls, target, &mut context.func, &mut builder_context);
        let function = module.declare_anonymous_function(&context.func.signature)?;
        module.define_function(function, &mut context)?;
        module.clear_context(&mut context);
        functions.push(function);
    }
    region::publish(module, &kernels, &functions)
}

/// What a module makes code for.
fn target(module: &JITModule) -> emit::Target {
    let has = |name: &str| {
        let flags = module.isa().isa_flags();
        flags.iter().any(|flag| flag.name == name && flag.as_bool() == Some(true))
    };
    let has_fma = cfg!(target_arch = "aarch64") || has("has_fma") && has("has_avx");
    emit::Target { frontend: module.target_config(), has_fma, has_blend: has("has_sse41") }
}

fn new_module() -> Result<JITModule, JitError> {
    /// What code is made for does not change while the process runs.
    static ISA: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    let isa = ISA.get_or_init(native_isa).clone().map_err(JitError::Unsupported)?;
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    library::add_symbols(&mut builder);
    // The default memory provider answers with an error where executable
    // memory is denied; others panic.
    Ok(JITModule::new(builder))
}

fn native_isa() -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    let enable_verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        // What is emitted has nothing that Cranelift's optimiser would take out: loops are
        // as fast without it, and code is made in two thirds of the time.
        ("opt_level", "none"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_verifier", enable_verifier),
    ] {
        flags.set(name, value).map_err(|error| error.to_string())?;
    }
    let isa = cranelift_native::builder()?;
    isa.finish(settings::Flags::new(flags)).map_err(|error| error.to_string())
}
