//! The processor that code is for, and Cranelift's names for places in memory.

use cranelift_codegen::ir::{MemFlagsData, Type, types};
use cranelift_codegen::isa::TargetFrontendConfig;
use pmderive_runtime::kernel::Scalar;

/// Processors for which Cranelift has every vector operation that groups need.
pub const HAS_VECTORS: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Columns are within the arenas but need not be aligned.
pub fn memory() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// The type of one lane.
pub fn type_of(scalar: Scalar) -> Type {
    match scalar {
        Scalar::I32 | Scalar::U32 => types::I32,
        Scalar::I64 | Scalar::U64 => types::I64,
        Scalar::F32 => types::F32,
        Scalar::F64 => types::F64,
    }
}

/// The processor and conventions that code is made for.
#[derive(Clone, Copy)]
pub struct Target {
    /// Pointers and calling convention.
    pub frontend: TargetFrontendConfig,
    /// True if the processor multiplies and adds in one step, in vectors.
    pub has_fma: bool,
    /// True if it chooses between lanes of two vectors by the signs of a third.
    pub has_blend: bool,
}
