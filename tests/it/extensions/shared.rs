//! Samples of definitions over an archive, and their comparison.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Engine, Metric, Registry, Space};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::eval::Value;
use pmderive_runtime::program::Status;

use crate::choosing::choosing;

pub const EXTENDED: Language = Language { dialect: Dialect::Fixed, extensions: true };

pub fn backends() -> Vec<Backend> {
    if cfg!(feature = "jit") { vec![Backend::Interp, Backend::Jit] } else { vec![Backend::Interp] }
}

pub fn archive(name: &str) -> ArchiveContext {
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    ArchiveContext::open(archives.join(name)).expect("an archive of the repository")
}

/// Definitions with what was found wrong in their text.
pub fn read(definitions: &str, language: Language) -> (Registry, SourceMap, Diagnostics) {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(language);
    let source = sources.add("definitions", definitions);
    registry.add_text(source, &sources, &mut diagnostics);
    (registry, sources, diagnostics)
}

/// Values of a metric by instance, -1 for a single value; texts of others than numbers.
pub type Values = BTreeMap<i32, f64>;

/// What a fetch gives.
pub struct Sampled {
    /// True after a mark record, so that nothing before counts.
    pub begins_anew: bool,
    /// Parallel to the definitions.
    pub metrics: Vec<Values>,
}

/// Samples of the metrics that are defined.
pub fn evaluate(archive_name: &str, definitions: &str, backend: Backend) -> Vec<Sampled> {
    let (registry, _, mut diagnostics) = read(definitions, EXTENDED);
    let all = registry.all();
    let engine = Arc::new(Engine::new(EXTENDED, backend));
    let source = archive(archive_name);
    let session = choosing(engine, source, &registry, &all, &mut diagnostics);
    let mut session = session.expect("a readable archive");
    assert!(diagnostics.is_empty(), "{definitions}: {diagnostics:?}");
    let mut space = Space::default();
    let mut samples = Vec::new();
    while let Ok(sample) = session.sample(&mut space) {
        let begins_anew = sample.events.gap;
        let values = |metric: &Metric| {
            let values = sample.values.get(metric.output.expect("a usable metric"));
            match values.status {
                Status::Values => values.iter().map(|(id, value)| (id, number(value))).collect(),
                _ => Values::new(),
            }
        };
        let metrics = sample.metrics.iter().map(values).collect();
        samples.push(Sampled { begins_anew, metrics });
    }
    assert!(samples.len() > 2, "{archive_name} has records for {definitions}");
    samples
}

pub fn number(value: Value<'_>) -> f64 {
    match value {
        Value::I32(value) => f64::from(value),
        Value::U32(value) => f64::from(value),
        Value::I64(value) => value as f64,
        Value::U64(value) => value as f64,
        Value::F32(value) => f64::from(value),
        Value::F64(value) => value,
        other => panic!("{other:?} is no number"),
    }
}

pub fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

pub fn assert_same(what: &str, found: &Values, expected: &Values) {
    let agree = found.len() == expected.len()
        && found.iter().zip(expected).all(|((i, a), (j, b))| i == j && same(*a, *b));
    assert!(agree, "{what}: {found:?} instead of {expected:?}");
}
