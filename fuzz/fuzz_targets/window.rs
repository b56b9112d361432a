//! Time zone and options of a time window, each on a line.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::time::fuzz_window(data));
