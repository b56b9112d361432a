//! A text, an edit, and everything that an editor may ask.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive::fuzz::fuzz_lsp(data));
