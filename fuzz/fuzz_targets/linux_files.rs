//! Files of /proc and /sys.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::local::fuzz_linux_files(data));
