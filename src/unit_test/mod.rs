//! Unit tests of definitions.
//!
//! A test gives samples of metrics step by step, with gaps, counters that start
//! again, instances that come and go, and fetches that fail. It also gives the
//! expected results. Input: the TOML text of a test file. Output: the
//! differences for each test. The command prints them.
//!
//! [The manual](crate::manual::checking) has the keys of a file.
//!
//! The result of a metric or an instance at each step is in a [`Timeline`]. All
//! timelines of a case have the same number of steps. An instance without a
//! timeline has no value, and a metric without samples has none at all. If a
//! metric with instances fails or has no values, the timeline of one of its
//! instances says so (`PM_ERR_AGAIN`, `none(gap)`), or a timeline without
//! instances. An example:
//!
//! ```toml
#![doc = include_str!("../../tests/unit_tests/shop.toml")]
//! ```
//!
//! A case with hosts tests definitions over a fleet. Its expected results are for groups of
//! hosts, by their labels in any order.
//!
//! ```toml
#![doc = include_str!("../../tests/unit_tests/fleet.toml")]
//! ```

mod compare;
mod coverage;
mod cursor;
mod definitions;
mod file;
#[cfg(feature = "fleet")]
mod fleet;
pub mod forms;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod groups;
mod hosts;
mod metrics;
mod read;
mod report;
mod run;
mod series;
mod timeline;

pub use compare::Why;
pub use coverage::{Coverage, CoverageItem};
pub use cursor::TextError;
pub use file::{
    Case, ExpectedRefusal, ExpectedTimelines, FileText, Host, Samples, Subject, TestFile,
};
pub use read::read;
pub use report::{Failure, Report};
pub use run::{NamedBackend, Outcome, run};
pub use timeline::{Item, MAX_STEPS, Number, Run, Timeline, Tolerance};

#[cfg(test)]
mod tests {
    use crate::fuzz::fuzz_test_file;
    use crate::syntax::tests::{Generator, mutations};

    /// A build without fleets reports that, and compares nothing.
    #[cfg(not(feature = "fleet"))]
    #[test]
    fn cases_with_hosts_need_the_feature() {
        let (mut sources, mut diagnostics) = Default::default();
        let text = include_str!("../../tests/unit_tests/fleet.toml");
        let source = SourceMap::add(&mut sources, "fleet.toml", text);
        let (directory, language) = ("tests/unit_tests".as_ref(), Default::default());
        let file = read(source, directory, language, &sources, &mut diagnostics);
        let file = file.expect("a good file");
        let backends = [("interp", Backend::Interp)];
        let outcome = run(&file, &backends, false, &mut sources, &mut diagnostics);
        for (case, report) in file.cases.iter().zip(&outcome.reports) {
            let got: Vec<&str> = report.failures.iter().map(|one| &*one.got).collect();
            let expected = "a build without fleets; build it with `--features fleet`";
            assert!(case.hosts.is_empty() || got == [expected], "{got:?}");
        }
    }

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
