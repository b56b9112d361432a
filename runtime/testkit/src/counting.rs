//! Counts the allocations of each thread: how many, and how many bytes it
//! holds.
//!
//! A program to be counted has `#[global_allocator] static ALLOCATOR: Counting
//! = Counting;`.
#![allow(unsafe_code, reason = "an allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counts.
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes; below zero when a thread freed what others allocated.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count_allocation() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

fn count_bytes(bytes: usize, sign: isize) {
    // An allocation is never larger than the type's maximum.
    let now = NOW.get() + sign * bytes.cast_signed();
    NOW.set(now);
    MOST.set(MOST.get().max(now));
}

// SAFETY: everything is passed on to the system's allocator as it is; counting
// neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation();
        count_bytes(layout.size(), 1);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count_bytes(layout.size(), -1);
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_allocation();
        count_bytes(layout.size(), -1);
        count_bytes(size, 1);
        // SAFETY: the caller keeps to the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Number of allocations of this thread during some work.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Number of allocations of this thread so far.
pub fn allocations_so_far() -> u64 {
    ALLOCATIONS.get()
}

/// Bytes that this thread has allocated and no thread has freed. Memory that
/// one thread allocates and another one frees falsifies the number.
pub fn held_bytes() -> isize {
    NOW.get()
}

/// The most bytes that this thread held at once during some work, beyond what
/// it held before.
pub fn most(work: impl FnOnce()) -> usize {
    let before = NOW.get();
    MOST.set(before);
    work();
    (MOST.get() - before).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn counting_counts() {
        assert!(allocations(|| drop(std::hint::black_box(vec![1]))) > 0);
        assert!(most(|| drop(std::hint::black_box(vec![0u8; 3 << 20]))) >= 3 << 20);
    }
}
