//! The reasons why a kernel has no native code.

use cranelift_codegen::CodegenError;
use cranelift_module::ModuleError;

/// The reasons why there is no native code.
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
