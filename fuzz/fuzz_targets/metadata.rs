//! Metadata of metrics in a file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_metadata(data));
