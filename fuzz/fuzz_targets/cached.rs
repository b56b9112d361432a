//! Layouts that come back from the cache, against fresh evaluators.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_cached(data));
