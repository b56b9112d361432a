//! Native code to look at: a kernel as Cranelift IR and as the instructions
//! of this processor. Nothing is made executable.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_frontend::FunctionBuilderContext;
use pmderive_runtime::kernel::KernelIr;

use super::{JitError, emit, isa};

/// A kernel as the code generator has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Cranelift IR as it is built, before it is optimised.
    pub clif: String,
    /// Instructions of this processor, by Cranelift's own names and with its
    /// labels, a line each.
    pub assembly: String,
    /// Size of the code in bytes, constants included.
    pub bytes: usize,
}

/// Generates code for a verified kernel, exactly as [`super::compile`] does,
/// and gives it as text.
///
/// # Errors
/// There is no code generator for this processor, or it fails.
pub fn listing(kernel: &KernelIr) -> Result<Listing, JitError> {
    let isa = isa()?;
    let mut context = Context::new();
    context.set_disasm(true);
    context.func.signature.call_conv = isa.default_call_conv();
    let mut builder_context = FunctionBuilderContext::new();
    emit::emit(kernel, isa.frontend_config(), &mut context.func, &mut builder_context);
    let clif = context.func.display().to_string();
    let compiled = context
        .compile(&*isa, &mut ControlPlane::default())
        .map_err(|error| JitError::Module(error.inner.to_string()))?;
    let assembly = compiled.vcode.clone().unwrap_or_default();
    Ok(Listing { clif, assembly, bytes: compiled.code_buffer().len() })
}
