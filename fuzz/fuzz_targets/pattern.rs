//! A pattern of `matchinst` and the text to match.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::pattern::fuzz_pattern(data));
