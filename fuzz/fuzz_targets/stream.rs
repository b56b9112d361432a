//! The bytes that a peer sends, over the life of a connection.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::proto::fuzz_stream(data));
