//! Calls native code of kernels. The only module of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::rows::{Arenas, Rows};

/// What native code is called with.
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

/// An entry point with what keeps its code in memory.
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
