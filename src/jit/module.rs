//! Cranelift modules, and the processor that their code is for.

use std::sync::OnceLock;

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};

use super::error::JitError;
use super::library::add_symbols;
use super::target::Target;

/// A module, and the target of its code.
pub(super) fn new_module() -> Result<(JITModule, Target), JitError> {
    /// The target of the code does not change while the process runs.
    static ISA: OnceLock<Result<(OwnedTargetIsa, Target), String>> = OnceLock::new();
    let isa = ISA.get_or_init(|| native_isa().map(|isa| (isa.clone(), target(&isa))));
    let (isa, target) = isa.clone().map_err(JitError::Unsupported)?;
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    add_symbols(&mut builder);
    // The default memory provider answers with an error where executable
    // memory is denied; others panic.
    Ok((JITModule::new(builder), target))
}

fn target(isa: &OwnedTargetIsa) -> Target {
    let has = |name: &str| {
        let flags = isa.isa_flags();
        flags.iter().any(|flag| flag.name == name && flag.as_bool() == Some(true))
    };
    let has_fma = cfg!(target_arch = "aarch64") || has("has_fma") && has("has_avx");
    Target { frontend: isa.frontend_config(), has_fma, has_blend: has("has_sse41") }
}

fn native_isa() -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    let enable_verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        // The emitted code has nothing that Cranelift's optimiser would remove. Loops are
        // as fast without it, and compiling needs only two thirds of the time.
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
