//! Text that sinks of a fleet read or pass on: queries, headers, labels.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_sinks(data));
