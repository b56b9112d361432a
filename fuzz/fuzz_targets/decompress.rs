//! A compressed file of an archive.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::archive::fuzz_decompress(data));
