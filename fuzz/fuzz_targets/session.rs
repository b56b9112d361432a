//! Client and fake pmcd coupled: the actions of both, and faults between them.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_testkit::fake_pmcd::fuzz_session(data));
