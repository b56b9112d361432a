//! The bytes that a peer sends before a connection is ready.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::proto::fuzz_handshake(data));
