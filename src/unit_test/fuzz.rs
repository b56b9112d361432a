//! The promises of test files and timelines about any text, for fuzzers.

use std::path::Path;

use super::*;
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::Backend;
use crate::text::SourceMap;

/// Reads any text as a test file, and runs short ones.
///
/// # Panics
/// The place of a mistake is not in the text, or running fails.
pub fn fuzz_test_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // The fuzzer must not read files of this machine.
    if text.contains("/dev") || text.contains("/proc") {
        return;
    }
    let mut sources = SourceMap::default();
    let source = sources.add("fuzz", text);
    let mut diagnostics = Diagnostics::default();
    let directory = Path::new("/nonexistent");
    let usual = Language::default();
    let file = read(source, directory, usual, &sources, &mut diagnostics);
    assert!(file.is_some() || diagnostics.errors() > 0, "{text:?}");
    if let Some(mut file) = file.filter(|_| diagnostics.errors() == 0) {
        file.files.clear();
        file.fleet_files.clear();
        file.cases.iter_mut().for_each(|case| case.hosts.truncate(4));
        file.cases.retain(|case| case.steps <= 20 && case.expected.len() <= 20);
        let tests = file.cases.len() + file.rejected.len();
        let backends = [("interp", Backend::Interp), ("auto", Backend::Auto)];
        let outcome = run(&file, &backends, false, &mut sources, &mut diagnostics);
        assert_eq!(outcome.reports.len(), tests);
    }
    for diagnostic in &diagnostics {
        let place = diagnostic.span.start as usize..diagnostic.span.end as usize;
        let text = &sources.get(diagnostic.span.source).text;
        assert!(text.get(place).is_some(), "{diagnostic:?} in {text:?}");
    }
}

/// Parses any text as a timeline, and reads all of its steps.
///
/// # Panics
/// A place is not in the text, or a step is lost.
pub fn fuzz_timeline(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Timeline::parse(text) {
        Ok(timeline) => {
            let steps = timeline.steps().unwrap_or(MAX_STEPS);
            for step in [0, steps / 2, steps - 1] {
                let item = timeline.at(step).to_string();
                assert!(!item.is_empty(), "{text:?}");
            }
            assert!(timeline.steps().is_none() || timeline.at(steps) == Item::Absent, "{text:?}");
            assert!(timeline.numbers().count() <= 2 * timeline.runs().len());
        }
        Err(error) => assert!(text.get(error.place.clone()).is_some(), "{error:?} in {text:?}"),
    }
}
