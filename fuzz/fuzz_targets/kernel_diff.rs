//! A kernel and its input: interpreter against native code.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_kernel_diff(data));
