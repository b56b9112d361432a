//! Unit tests of definitions.
//!
//! A test gives samples of metrics step by step, with gaps, counters that start again, instances
//! that come and go, and fetches that fail; and it says what comes of them. Input: the TOML text of
//! a file of tests. Output: for each test what differs. The command prints that.
//!
//! | key                 | meaning                                                       |
//! |---------------------|---------------------------------------------------------------|
//! | `files`             | list of definition files and directories, from where the file is |
//! | `definitions`       | text of further definitions                                   |
//! | `compat`            | `"6.0"`, `"7.2"` or `"off"`, as on the command line            |
//! | `extensions`        | `true` for functions and forms that libpcp does not have       |
//! | `metadata`          | file of metrics, as `pmderive deps --metadata` writes it       |
//! | `interval`          | time between steps, for cases that say nothing else            |
//! | `tolerance`         | how near numbers have to be: `0.01` or `"0.1%"`                |
//! | `[metrics]`         | by name: `{ type, semantics, units, indom }`                   |
//! | `[[case]]`          | one test                                                      |
//! | `name`              | what it is called                                             |
//! | `interval`, `tolerance` | as above, of this case                                    |
//! | `steps`             | number of steps, if no timeline tells it                       |
//! | `gaps`              | steps, from 0, before which a mark or a new connection lies    |
//! | `failures`          | fetches that fail: `[{ step = 2, error = "PM_ERR_IPC" }]`      |
//! | `[case.samples]`    | by metric: a timeline, or by instance timelines                |
//! | `[case.expect]`     | by definition or expression: as above                          |
//! | `[[rejected]]`      | a `definition` or `expression` that has an error, and its `code` |
//!
//! What a metric or an instance has at each step is a [`Timeline`], all of a
//! case with as many steps. An instance that is not mentioned has no value,
//! and a metric without samples has none at all. Where a metric with instances
//! fails or has no values, one of its instances says so (`PM_ERR_AGAIN`,
//! `none(gap)`), or a timeline without instances. An example:
//!
//! ```toml
#![doc = include_str!("../../tests/unit_tests/shop.toml")]
//! ```

mod compare;
mod file;
mod metrics;
mod read;
mod run;
mod series;
mod timeline;

pub use compare::Why;
pub use file::{Case, Expected, Rejected, Subject, TestFile, Written};
pub use read::read;
pub use run::{Failure, NamedBackend, Outcome, Report, run};
#[cfg(any(test, feature = "fuzz"))]
pub use timeline::fuzz_timeline;
pub use timeline::{Item, MAX_STEPS, Number, Run, Timeline, TimelineError, Tolerance};

/// Reads any text as a file of tests, and runs those that are short.
///
/// # Panics
/// When a place of a mistake is not in the text, or running fails.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_test_file(data: &[u8]) {
    use std::path::Path;

    use crate::diag::Diagnostics;
    use crate::engine::Backend;
    use crate::text::SourceMap;

    let Ok(text) = std::str::from_utf8(data) else { return };
    // Whatever files there are on this machine, they are not read.
    if text.contains("/dev") || text.contains("/proc") {
        return;
    }
    let mut sources = SourceMap::default();
    let source = sources.add("fuzz", text);
    let mut diagnostics = Diagnostics::default();
    let file = read(source, Path::new("/nonexistent"), &sources, &mut diagnostics);
    assert!(file.is_some() || diagnostics.errors() > 0, "{text:?}");
    if let Some(mut file) = file.filter(|_| diagnostics.errors() == 0) {
        file.files.clear();
        file.cases.retain(|case| case.steps <= 20 && case.expected.len() <= 20);
        let tests = file.cases.len() + file.rejected.len();
        let backends = [("interp", Backend::Interp), ("auto", Backend::Auto)];
        let outcome = run(&file, &backends, &mut sources, &mut diagnostics);
        assert_eq!(outcome.reports.len(), tests);
    }
    for diagnostic in &diagnostics {
        let place = diagnostic.span.start as usize..diagnostic.span.end as usize;
        let text = &sources.get(diagnostic.span.source).text;
        assert!(text.get(place).is_some(), "{diagnostic:?} in {text:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tests::{Generator, mutations};

    #[test]
    fn damaged_files_have_mistakes_in_them() {
        let mut generator = Generator::new(9);
        for seed in [
            include_str!("../../tests/unit_tests/shop.toml"),
            include_str!("../../tests/unit_tests/wrong/mistakes.toml"),
        ] {
            mutations(seed.as_bytes(), &mut generator, fuzz_test_file);
        }
    }
}
