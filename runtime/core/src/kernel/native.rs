//! Calls native code of kernels. The only module of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::rows::{Arenas, Rows};

/// The arguments of native code.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// Workspace, history and constants, in this order.
    bases: *const *mut u8,
    /// Segment rows, back to back (see [`super::rows`]).
    segments: *const u32,
    /// Number of rows.
    segment_count: u64,
}

/// Native code of a kernel: runs over the segments of a frame and answers not
/// zero when a flag was set in any lane.
pub type EntryPoint = unsafe extern "C" fn(*const Frame) -> u64;

/// An entry point with the owner that keeps its code in memory.
#[derive(Clone)]
pub struct NativeCode {
    entry: EntryPoint,
    _owner: Arc<dyn Any + Send + Sync>,
}

impl NativeCode {
    /// Takes an entry point and the owner of its code.
    ///
    /// # Safety
    /// `entry` stays callable while `owner` lives. For every frame whose rows
    /// are of the kernel it was compiled from it reads and writes only the
    /// operands, outputs and constants that the rows describe, columns padded
    /// to [`super::rows::LANE_GROUP`] lanes, and writes only outputs.
    pub unsafe fn new(entry: EntryPoint, owner: Arc<dyn Any + Send + Sync>) -> NativeCode {
        NativeCode { entry, _owner: owner }
    }

    /// Runs `count` segments from `first` on. `rows` must be of the kernel
    /// that this code was compiled from.
    pub(super) fn run(
        &self,
        arenas: &mut Arenas<'_>,
        rows: &Rows,
        first: usize,
        count: usize,
    ) -> u64 {
        assert!(rows.fit(arenas), "rows reach beyond an arena");
        let words = rows.words(first, count);
        let bases: [*mut u8; 3] = [
            arenas.work.as_mut_ptr(),
            arenas.history.as_ptr().cast_mut(),
            arenas.constants.as_ptr().cast_mut(),
        ];
        let frame =
            Frame { bases: bases.as_ptr(), segments: words.as_ptr(), segment_count: count as u64 };
        // SAFETY: the contract of `new` gives that the entry point is callable
        // and stays within what the rows describe; `fit` has just shown that
        // this lies within the arenas, which are borrowed for this call, the
        // workspace exclusively; and `frame` holds exactly `count` rows.
        unsafe { (self.entry)(&frame) }
    }
}

impl fmt::Debug for NativeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NativeCode({:p})", self.entry as *const ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Access, Body, Inst, Kernel, KernelIr, Operand, Reg, Scalar, Segment};

    /// A compiler's code for "add one to each lane". It is written by hand,
    /// because Miri, which checks the call, runs no machine code.
    unsafe extern "C" fn add_one(frame: *const Frame) -> u64 {
        // SAFETY: the test calls this with a frame that `NativeCode::run` built
        // for rows of a kernel with one column operand of type U32.
        unsafe {
            let frame = &*frame;
            let work = *frame.bases;
            let rows = std::slice::from_raw_parts(frame.segments, 4 * frame.segment_count as usize);
            for row in rows.chunks_exact(4) {
                for lane in 0..row[0] as usize {
                    let from = work.add(row[1] as usize + lane * 4).cast::<u32>();
                    let to = work.add(row[2] as usize + lane * 4).cast::<u32>();
                    to.write_unaligned(from.read_unaligned() + 1);
                }
            }
        }
        7
    }

    fn kernel() -> Kernel {
        let operand = Operand { scalar: Scalar::U32, access: Access::Column, previous: false };
        let insts = [Inst::Operand(0)].into();
        let body = Body::Map { insts, result: Reg(0), flags: [].into() };
        let ir = KernelIr { operands: [operand].into(), constants: [].into(), body };
        Kernel::new(ir).expect("a well-formed kernel")
    }

    #[test]
    fn native_code_is_called_with_the_rows_and_arenas() {
        let kernel = kernel();
        let mut rows = Rows::new(kernel.ir());
        rows.push(kernel.ir(), Segment { lanes: 2, operands: &[0], output: 16, constants: 0 });
        rows.push(kernel.ir(), Segment { lanes: 1, operands: &[4], output: 32, constants: 0 });
        let owner = Arc::new(());
        // SAFETY: `add_one` keeps to the rows of this kernel, and stays.
        kernel.set_native(unsafe { NativeCode::new(add_one, owner.clone()) });
        let mut work: Vec<u8> = [5u32, 6, 0, 0].iter().flat_map(|v| v.to_ne_bytes()).collect();
        work.resize(48, 0);
        let mut arenas = Arenas { work: &mut work, history: &[], constants: &[] };
        let answer = kernel.run(&mut Default::default(), &mut arenas, &rows, 0, 2);
        assert_eq!(answer, 7);
        let lane = |at: usize| u32::from_ne_bytes(work[at..at + 4].try_into().expect("4 bytes"));
        assert_eq!([lane(16), lane(20), lane(32)], [6, 7, 7]);
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(kernel);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    #[should_panic(expected = "beyond an arena")]
    fn rows_that_reach_beyond_an_arena_are_not_run() {
        let kernel = kernel();
        let mut rows = Rows::new(kernel.ir());
        rows.push(kernel.ir(), Segment { lanes: 2, operands: &[0], output: 1000, constants: 0 });
        // SAFETY: as above; it is not reached.
        kernel.set_native(unsafe { NativeCode::new(add_one, Arc::new(())) });
        let mut arenas = Arenas { work: &mut [0; 64], history: &[], constants: &[] };
        kernel.run(&mut Default::default(), &mut arenas, &rows, 0, 1);
    }
}
