//! A file of metric definitions, formatted.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_format(data));
