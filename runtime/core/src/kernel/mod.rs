//! Kernels: the small typed programs that compute one lane of a column from
//! the same lane of other columns, or one value from a whole column.
//!
//! A kernel's form ([`KernelIr`]) holds no names, constants or places, so
//! metrics of equal shape share it. It is run by the [interpreter](interp) or
//! as [native code](native) that a compiler supplied; both give the same bits.

pub mod interp;
pub mod ir;
pub mod math;
pub mod native;
pub mod ops;
pub mod rows;
pub mod statistic;
mod text;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

pub use ir::{
    Access, BinaryOp, Body, Inst, IrError, KernelIr, Operand, ReduceOp, Reg, Scalar, UnaryOp,
};
pub use native::NativeCode;

pub use rows::{Arenas, LANE_GROUP, Rows, Segment};

/// A kernel in its portable form, with its native form once there is one.
///
/// Shared by everything that needs this shape; the native form may arrive
/// from another thread at any time.
#[derive(Debug)]
pub struct Kernel {
    ir: KernelIr,
    types: Box<[Scalar]>,
    prepared: interp::PreparedKernel,
    native: OnceLock<NativeCode>,
}

/// A reference to a kernel. It equals only references to the same kernel.
#[derive(Clone)]
pub struct KernelRef(pub Arc<Kernel>);

impl fmt::Debug for KernelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelRef")
    }
}

impl Deref for KernelRef {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.0
    }
}

impl PartialEq for KernelRef {
    fn eq(&self, other: &KernelRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for KernelRef {}

impl Hash for KernelRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl Kernel {
    /// A kernel with this form.
    ///
    /// # Errors
    /// The faults that [`KernelIr::verify`] finds.
    pub fn new(ir: KernelIr) -> Result<Kernel, IrError> {
        let types = ir.verify()?;
        let prepared = interp::PreparedKernel::new(&ir, &types);
        Ok(Kernel { ir, types: types.into(), prepared, native: OnceLock::new() })
    }

    /// Type of each register of a map, in order; empty for a reduction.
    pub fn register_types(&self) -> &[Scalar] {
        &self.types
    }

    /// The portable form.
    pub fn ir(&self) -> &KernelIr {
        &self.ir
    }

    /// The native form, if it has been supplied.
    pub fn native(&self) -> Option<&NativeCode> {
        self.native.get()
    }

    /// Supplies the native form, compiled from this kernel's portable one; a
    /// second one is dropped.
    pub fn set_native(&self, code: NativeCode) {
        let _ = self.native.set(code);
    }

    /// Runs `count` segments of `rows` from `first` on: natively where
    /// possible. The answer is not zero when a flag was set in any lane.
    ///
    /// # Panics
    /// When the rows, which must be of this kernel, reach beyond an arena.
    pub fn run(
        &self,
        scratch: &mut interp::Scratch,
        arenas: &mut Arenas<'_>,
        rows: &Rows,
        first: usize,
        count: usize,
    ) -> u64 {
        match self.native.get() {
            Some(code) => code.run(arenas, rows, first, count),
            None => {
                assert!(rows.fit(arenas), "rows reach beyond an arena");
                let rows = rows.words(first, count);
                interp::run_rows(&self.ir, &self.prepared, scratch, arenas, rows)
            }
        }
    }
}
