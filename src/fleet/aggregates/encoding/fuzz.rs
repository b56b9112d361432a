//! The promises of partial aggregates about any bytes, for fuzzers.

use pmderive_runtime::model::{Semantics, Units, ValueType};

use super::super::Merged;
use super::super::host_metrics::HostMetrics;
use super::super::operand::Reference;
use super::*;
use crate::diag::Diagnostics;
use crate::dialect::{Dialect, Language};
use crate::engine::Registry;
use crate::text::SourceMap;

/// Definitions with an aggregate of each kind, and metadata of their operands.
pub(super) fn example() -> (Arc<FleetDefinitions>, References) {
    let mut registry = Registry::new(Language { dialect: Dialect::Fixed, extensions: true });
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let text = "f.a = sum(x) by (r)\nf.b = avg(n) by (r, d)\nf.c = max(x)\nf.d = count(x) by (r)\n\
                f.e = quantile(0.5, n)\nf.f = topk(2, x) by (r)\n";
    let text = sources.add("fuzz", text);
    registry.add_text(text, &sources, &mut diagnostics);
    let hosts = HostMetrics::of(["x", "n"]);
    let definitions = FleetDefinitions::read(&registry, &[], &hosts, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let reference = |value_type| {
        Some(Reference { value_type, semantics: Semantics::Instant, units: Units::NONE })
    };
    (Arc::new(definitions), Per::from([reference(ValueType::F64), reference(ValueType::U64)]))
}

/// Decodes any bytes as partial aggregates. Correct bytes encode to the same again, and merge.
///
/// # Panics
/// A promise is broken.
pub fn fuzz_partials(data: &[u8]) {
    let (definitions, references) = example();
    // The fuzzer cannot guess the fingerprint, so it is filled in.
    let mut bytes = data.to_vec();
    if let Some(place) = bytes.get_mut(6..14) {
        let fingerprint = Terms::new(&definitions, &references).fingerprint;
        place.copy_from_slice(&fingerprint.to_le_bytes());
    }
    let Ok(shard) = ShardPartials::decode(&bytes, &definitions, &references) else { return };
    assert_eq!(shard.encode(&definitions, &references).as_deref(), Ok(&*bytes));
    let mut merged = Merged::new(Arc::clone(&definitions), &references);
    assert_eq!(merged.add(&shard), Ok(()));
    for (at, aggregate) in definitions.aggregates.enumerate() {
        for (_, partial) in merged.groups(at) {
            let _ = partial.clone().total(aggregate.function, merged.kind(at));
        }
    }
}
