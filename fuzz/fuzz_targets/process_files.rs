//! Files of processes below /proc.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::local::fuzz_process_files(data));
