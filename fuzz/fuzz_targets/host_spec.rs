//! A host specification.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::context::spec::fuzz_host_spec(data));
