//! Shows native code: a kernel as Cranelift IR and as the instructions of this
//! processor. Nothing is made executable.

use cranelift_codegen::control::ControlPlane;
use cranelift_frontend::FunctionBuilderContext;
use cranelift_module::Module;
use pmderive_runtime::kernel::KernelIr;

use super::emit;
use super::error::JitError;
use super::library::Library;
use super::module::new_module;

/// The listing of a kernel as the code generator has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Cranelift IR as it is built, before it is optimised.
    pub clif: String,
    /// Instructions of this processor, by Cranelift's own names and with its
    /// labels, a line each.
    pub assembly: String,
    /// The code, its own constants included. It may lie anywhere, unless the
    /// kernel calls functions of the runtime, whose places it lacks.
    pub code: Vec<u8>,
}

/// Generates code for a verified kernel, exactly as [`super::compile`] does,
/// and returns it as text. `None` for a kernel without native form
/// ([`KernelIr::is_compiled`]).
///
/// # Errors
/// There is no code generator for this processor, or it fails.
pub fn listing(kernel: &KernelIr) -> Result<Option<Listing>, JitError> {
    if !kernel.is_compiled() {
        return Ok(None);
    }
    let (mut module, target) = new_module()?;
    let mut context = module.make_context();
    context.set_disasm(true);
    let calls = Library::declare(&mut module)?.calls(kernel, &mut module, &mut context.func);
    emit::emit(kernel, calls, target, &mut context.func, &mut FunctionBuilderContext::new());
    let clif = context.func.display().to_string();
    let compiled = context
        .compile(module.isa(), &mut ControlPlane::default())
        .map_err(|error| JitError::Module(error.inner.to_string()))?;
    let assembly = compiled.vcode.clone().unwrap_or_default();
    Ok(Some(Listing { clif, assembly, code: compiled.code_buffer().to_vec() }))
}
