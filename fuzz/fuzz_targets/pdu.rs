//! One protocol data unit of pmcd.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::pdu::fuzz_pdu(data));
