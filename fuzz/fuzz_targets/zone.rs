//! Text of a time zone, or the bytes of a zone file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::time::fuzz_zone(data));
