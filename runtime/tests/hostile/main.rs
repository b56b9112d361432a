//! The client against peers that lie, stall and never stop: every reply of
//! every kind, wrong in every word and cut at every byte.
//!
//! All tests run in memory, on a clock that only waiting sets forward.
//! `PMDERIVE_HOSTILE=N` runs more: N times as many lives of connections, and
//! words that change places over N times the distance.

mod conversations;
mod memory;
mod seeds;
mod streams;
mod swaps;
mod words;

use pmderive_testkit::choices;
use pmderive_testkit::counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Factor for the usual number of runs.
fn times() -> usize {
    std::env::var("PMDERIVE_HOSTILE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}
