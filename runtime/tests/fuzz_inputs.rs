//! Replays what the fuzz targets of this crate start from and what once broke
//! them: every file of `fuzz/seeds/TARGET` and `fuzz/regressions/TARGET`, so
//! that what fuzzing found stays fixed without a fuzzer.

#[macro_use]
#[path = "shared/replays.rs"]
mod replays;

use pmderive_runtime::archive::{fuzz_archive, fuzz_decompress};
use pmderive_runtime::context::spec::fuzz_host_spec;
use pmderive_runtime::local::fuzz_linux_files;
use pmderive_runtime::model::{fuzz_interval, fuzz_labels, fuzz_units};
use pmderive_runtime::pattern::fuzz_pattern;
use pmderive_runtime::pdu::fuzz_pdu;
use pmderive_runtime::proto::fuzz_stream;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz");

replays! {
    archive: fuzz_archive;
    decompress: fuzz_decompress;
    host_spec: fuzz_host_spec;
    interval: fuzz_interval;
    labels: fuzz_labels;
    linux_files: fuzz_linux_files;
    pattern: fuzz_pattern;
    pdu: fuzz_pdu;
    stream: fuzz_stream;
    units: fuzz_units;
}
