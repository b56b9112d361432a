//! Replays the inputs of a fuzz target, starting points and former failures:
//! every file of `fuzz/seeds/TARGET` and `fuzz/regressions/TARGET`.
//!
//! `FUZZ` of the test is the folder `fuzz`.

use std::path::Path;

/// Runs a target's function on all its inputs.
///
/// # Panics
/// If the function does, or there are no inputs.
pub fn replay(fuzz: &str, target: &str, run: fn(&[u8])) {
    let mut count = 0;
    for kind in ["seeds", "regressions"] {
        let root = Path::new(fuzz).join(kind).join(target);
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

/// A test for each target and its function.
#[macro_export]
macro_rules! replays {
    ($($target:ident: $run:path;)*) => {$(
        #[test]
        fn $target() {
            $crate::replays::replay(FUZZ, stringify!($target), $run);
        }
    )*};
}
