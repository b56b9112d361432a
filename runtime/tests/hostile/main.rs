//! The client against peers that lie, stall and never stop: every reply of
//! every kind, wrong in every word and cut at every byte.
//!
//! All of it in memory, on a clock that only waiting sets forward.

mod conversations;
#[path = "../shared/counting.rs"]
mod counting;
mod memory;
mod streams;
mod words;
