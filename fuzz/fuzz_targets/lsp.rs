//! A text, an edit, and every request that an editor may send.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_lsp(data));
