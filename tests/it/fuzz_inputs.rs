//! Replays the inputs of the compiler's fuzz targets: every file of `fuzz/seeds/TARGET` and
//! `fuzz/regressions/TARGET`. So a mistake that fuzzing found stays fixed without a fuzzer.

#[cfg(feature = "jit")]
use pmderive::fuzz::fuzz_kernel_diff;
use pmderive::fuzz::{
    fuzz_cached, fuzz_compile, fuzz_definitions, fuzz_equivalent_domains, fuzz_eval, fuzz_format,
    fuzz_metadata, fuzz_parse, fuzz_project, fuzz_test_file, fuzz_timeline,
};
use pmderive_testkit::replays;

use crate::fuzz_hosts::fuzz_hosts;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz");

replays! {
    cached: fuzz_cached;
    compile: fuzz_compile;
    definitions: fuzz_definitions;
    equivalent_domains: fuzz_equivalent_domains;
    eval: fuzz_eval;
    format: fuzz_format;
    hosts: fuzz_hosts;
    metadata: fuzz_metadata;
    parse: fuzz_parse;
    project: fuzz_project;
    test_file: fuzz_test_file;
    timeline: fuzz_timeline;
}

#[cfg(feature = "jit")]
replays! {
    kernel_diff: fuzz_kernel_diff;
}

#[cfg(feature = "fleet")]
replays! {
    serve_config: pmderive::fuzz::fuzz_serve_config;
    sinks: pmderive::fuzz::fuzz_sinks;
    targets: pmderive::fuzz::fuzz_targets;
}

#[cfg(feature = "lsp")]
replays! {
    lsp: pmderive::fuzz::fuzz_lsp;
}
