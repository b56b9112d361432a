//! A file of unit tests.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::unit_test::fuzz_test_file(data));
