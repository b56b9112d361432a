//! Definitions and fetched results, from text to values.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::engine::fuzz_eval(data));
