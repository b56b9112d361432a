//! Hosts that change under the hands of clients that share what is alike,
//! against clients that share nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_hosts(data));
