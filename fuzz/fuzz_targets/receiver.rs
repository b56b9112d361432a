//! The receiver of remote write requests of the test kit: HTTP, snappy, protocol buffers.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_testkit::receiver::fuzz_receiver(data));
