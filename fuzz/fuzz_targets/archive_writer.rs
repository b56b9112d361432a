//! Calls of the archive writer, and the archive read back afterwards.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pmderive_runtime::archive_writer::fuzz_archive_writer(data));
