//! Functions of the runtime that native code calls, because their results must have the
//! same bits as the interpreter's.

use cranelift_codegen::ir::{AbiParam, FuncRef, Function, types};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};
use pmderive_runtime::kernel::{BinaryOp, Body, Inst, KernelIr, UnaryOp, math};

use super::error::JitError;

/// The functions as imports of a module.
pub struct Library {
    log: FuncId,
    pow: FuncId,
}

/// The functions as one kernel calls them; a function that it does not call is
/// `None`.
#[derive(Clone, Copy, Default)]
pub struct Calls {
    /// [`math::log`].
    pub log: Option<FuncRef>,
    /// [`math::pow`].
    pub pow: Option<FuncRef>,
}

/// Tells a module under construction the addresses of the functions.
pub fn add_symbols(builder: &mut JITBuilder) {
    let log: extern "C" fn(f64) -> f64 = math::log;
    let pow: extern "C" fn(f64, f64) -> f64 = math::pow;
    builder.symbol(math::LOG, log as *const u8);
    builder.symbol(math::POW, pow as *const u8);
}

impl Library {
    /// Declares the functions in a module.
    pub fn declare(module: &mut JITModule) -> Result<Library, JitError> {
        let mut import = |name: &str, params: usize| {
            let mut signature = module.make_signature();
            signature.params.resize(params, AbiParam::new(types::F64));
            signature.returns.push(AbiParam::new(types::F64));
            let function = module.declare_function(name, Linkage::Import, &signature);
            function.map_err(JitError::from)
        };
        Ok(Library { log: import(math::LOG, 1)?, pow: import(math::POW, 2)? })
    }

    /// Makes the functions that a kernel needs callable from its function.
    pub fn calls(&self, ir: &KernelIr, module: &mut JITModule, function: &mut Function) -> Calls {
        let Body::Map { insts, .. } = &ir.body else { return Calls::default() };
        let needs = |wanted: fn(&Inst) -> bool| insts.iter().any(wanted);
        let log = needs(|inst| matches!(inst, Inst::Unary(UnaryOp::Log, _)));
        let pow = needs(|inst| matches!(inst, Inst::Binary(BinaryOp::Pow, ..)));
        let mut import = |id| module.declare_func_in_func(id, function);
        Calls { log: log.then(|| import(self.log)), pow: pow.then(|| import(self.pow)) }
    }
}
