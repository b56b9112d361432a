//! Replays what the fuzz targets of the compiler start from and what once broke
//! them: every file of `fuzz/seeds/TARGET` and `fuzz/regressions/TARGET`, so
//! that what fuzzing found stays fixed without a fuzzer.

use std::path::Path;

use pmderive::engine::{fuzz_cached, fuzz_compile, fuzz_eval};
use pmderive::equivalent_domains::fuzz_equivalent_domains;
use pmderive::format::fuzz_format;
#[cfg(feature = "jit")]
use pmderive::jit::fuzz_kernel_diff;
use pmderive::metadata::fuzz_metadata;
use pmderive::syntax::{fuzz_definitions, fuzz_parse};
use pmderive::unit_test::{fuzz_test_file, fuzz_timeline};

fn replay(target: &str, run: fn(&[u8])) {
    let mut count = 0;
    for kind in ["seeds", "regressions"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(kind).join(target);
        // A target that never broke has no regressions.
        let Ok(entries) = std::fs::read_dir(&root) else { continue };
        for entry in entries.map(Result::unwrap) {
            // Names the input that a panic was about.
            println!("{}", entry.path().display());
            run(&std::fs::read(entry.path()).unwrap());
            count += 1;
        }
    }
    assert!(count > 0, "no inputs of {target}");
}

macro_rules! replays {
    ($($target:ident: $run:path;)*) => {$(
        #[test]
        fn $target() {
            replay(stringify!($target), $run);
        }
    )*};
}

replays! {
    cached: fuzz_cached;
    compile: fuzz_compile;
    definitions: fuzz_definitions;
    equivalent_domains: fuzz_equivalent_domains;
    eval: fuzz_eval;
    format: fuzz_format;
    metadata: fuzz_metadata;
    parse: fuzz_parse;
    test_file: fuzz_test_file;
    timeline: fuzz_timeline;
}

#[cfg(feature = "jit")]
replays! {
    kernel_diff: fuzz_kernel_diff;
}
