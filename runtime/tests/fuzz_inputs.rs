//! Replays what the fuzz targets of this crate start from and what once broke
//! them: every file of `fuzz/seeds/TARGET` and `fuzz/regressions/TARGET`, so
//! that what fuzzing found stays fixed without a fuzzer.

use std::path::Path;

use pmderive_runtime::archive::{fuzz_archive, fuzz_decompress};
use pmderive_runtime::context::spec::fuzz_host_spec;
use pmderive_runtime::local::fuzz_linux_files;
use pmderive_runtime::model::{fuzz_interval, fuzz_labels, fuzz_units};
use pmderive_runtime::pattern::fuzz_pattern;
use pmderive_runtime::pdu::fuzz_pdu;
use pmderive_runtime::proto::fuzz_stream;

fn replay(target: &str, run: fn(&[u8])) {
    let mut count = 0;
    for kind in ["seeds", "regressions"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(kind).join(target);
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
