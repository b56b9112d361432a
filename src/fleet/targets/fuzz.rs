//! The promises of files of targets about any bytes, for fuzzers.

use super::*;

/// For fuzzing: reads any bytes as a file of targets.
pub fn fuzz_targets(data: &[u8]) {
    let mut sources = SourceMap::default();
    let source = sources.add("hosts.json", String::from_utf8_lossy(data));
    let mut diagnostics = Diagnostics::default();
    let mut targets = Targets::default();
    targets.read(source, GroupId(0), &Labels::default(), 16, &mut sources, &mut diagnostics);
    let all = targets.into_all();
    assert!(all.len() <= 16);
    for target in all {
        assert!(target.labels.iter().all(|(name, _)| is_label_name(name)));
        assert!(target.spec.user.is_none());
    }
    for diagnostic in &diagnostics {
        assert!(sources.holds(diagnostic.span), "{diagnostic:?}");
    }
}
