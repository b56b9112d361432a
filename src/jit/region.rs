//! Owns finished code and hands out its entry points. Only this module of the
//! crate may use `unsafe`.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex};

use cranelift_jit::JITModule;
use cranelift_module::FuncId;
use pmderive_runtime::kernel::native::EntryPoint;
use pmderive_runtime::kernel::{Kernel, NativeCode};

use super::error::JitError;

/// The code of kernels compiled together; freed on drop.
pub struct CodeRegion {
    /// Locked only to take the module out on drop; the lock makes the region
    /// `Sync`.
    module: Mutex<Option<JITModule>>,
}

impl Drop for CodeRegion {
    fn drop(&mut self) {
        let module = match self.module.get_mut() {
            Ok(module) => module.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        };
        if let Some(module) = module {
            // SAFETY: every entry point into this code was given away together
            // with an `Arc` of this region (see `publish`) and is called only
            // while that lives; this is the last of them, so no function of
            // the module is running or will be called.
            unsafe { module.free_memory() };
        }
    }
}

/// Makes the code of a module executable and supplies it to the kernels,
/// which are parallel to its functions.
pub fn publish(
    mut module: JITModule,
    kernels: &[Arc<Kernel>],
    functions: &[FuncId],
) -> Result<(), JitError> {
    if let Err(error) = module.finalize_definitions() {
        // SAFETY: no entry point was given away.
        unsafe { module.free_memory() };
        return Err(error.into());
    }
    let entries: Vec<*const u8> =
        functions.iter().map(|function| module.get_finalized_function(*function)).collect();
    let region = Arc::new(CodeRegion { module: Mutex::new(Some(module)) });
    for (kernel, entry) in kernels.iter().zip(entries) {
        // SAFETY: `entry` is the start of a finished function that `emit` has
        // built with the signature of `EntryPoint` and the system's C calling
        // convention.
        let entry: EntryPoint = unsafe { std::mem::transmute(entry) };
        // SAFETY: the code stays while `region` lives, which goes along; and
        // `emit` makes code that accesses only what the kernel's rows describe.
        kernel.set_native(unsafe { NativeCode::new(entry, region.clone()) });
    }
    Ok(())
}
