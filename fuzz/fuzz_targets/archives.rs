//! Files of two archives that are read as one.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::archive::fuzz_archives(data));
