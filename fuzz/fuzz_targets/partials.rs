//! Partial aggregates of a shard, from another process.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_partials(data));
