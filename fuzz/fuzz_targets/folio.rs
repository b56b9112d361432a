//! Folios, which name the archives of a recording.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::record_mode::fuzz_folio(data));
