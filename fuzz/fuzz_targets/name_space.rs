//! Text of a name space, with and without the preprocessor.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::name_space::fuzz_name_space(data));
