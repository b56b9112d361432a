//! Client and fake pmcd coupled: what both do, and what goes wrong.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_testkit::fake_pmcd::fuzz_session(data));
