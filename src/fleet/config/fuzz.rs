//! The promises of configurations about any bytes, for fuzzers.

use std::path::Path;

use super::*;
use crate::diag::Diagnostics;
use crate::text::SourceMap;

/// For fuzzing: reads any bytes as a configuration. A configuration that is read without a mistake
/// keeps its promises.
pub fn fuzz_serve_config(data: &[u8]) {
    let mut sources = SourceMap::default();
    let source = sources.add("serve.toml", String::from_utf8_lossy(data));
    let mut diagnostics = Diagnostics::default();
    let config = read(source, Path::new(""), &mut sources, &mut diagnostics);
    for diagnostic in &diagnostics {
        assert!(sources.holds(diagnostic.span), "{diagnostic:?}");
    }
    let Some(config) = config.filter(|_| diagnostics.errors() == 0) else { return };
    assert!(config.sinks.len() <= MAX_SINKS && !config.groups.is_empty());
    assert!(config.groups.iter().all(|group| group.deadline < group.interval));
    let grace = config.fleet.and_then(|fleet| fleet.grace).unwrap_or_default();
    let is_waited_for =
        |group: &Group| grace <= group.interval * crate::fleet::aggregates::MAX_GRACE;
    assert!(config.groups.iter().all(is_waited_for));
}
