//! Scans of an archive: 200 records with 1,002 metrics of 10 instances each.
//!
//! `read` finds the requested metrics and returns them as they are encoded,
//! `decode` makes columns of them, and `evaluate` computes 1,000 derived metrics
//! of these columns. `records` and `backward` go from record to record. `fine`
//! and `coarse` have 20 times as many points in time as there are records, and a
//! tenth; `reverse` has those of `fine` from the end. Each point of `crossed` is
//! between two records, and between other ones than the point before. The
//! throughput is in fetches.

mod synth;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pmderive::diag::Diagnostics;
use pmderive::engine::{Backend, Engine};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, Mode};
use synth::{LANGUAGE, Synth, definitions, register, write_archive};

const METRICS: u32 = 334;
const RECORDS: u32 = 200;
const SECOND: i64 = 1_000_000_000;

fn evaluator(text: &str, archive: &mut ArchiveContext) -> Evaluator {
    let registry = register(text);
    let mut diagnostics = Diagnostics::default();
    let compiled = Engine::new(LANGUAGE, Backend::Jit)
        .compile(&registry, &registry.all(), archive, &mut diagnostics)
        .expect("metadata are readable");
    assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
    compiled.evaluator()
}

/// Names of the metrics that definitions are made of, each once.
fn operands(definitions: &str) -> Vec<&str> {
    let is_separator = |c: char| !c.is_ascii_alphanumeric() && c != '.';
    let words = definitions.split(is_separator).filter(|word| word.starts_with("synth."));
    let mut operands: Vec<&str> = words.collect();
    operands.sort_unstable();
    operands.dedup();
    operands
}

fn scans(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("synth");
    write_archive(&path, Synth::new(METRICS, 10), RECORDS);
    let mut archive = ArchiveContext::open(&path).expect("it was written");
    let (start, end) = (archive.label().start, archive.end_time().expect("it has records"));
    let mix = definitions("mix", 1_000, METRICS);
    let operands = operands(&mix);
    let pmids = archive.lookup_names(&operands).expect("archives know their names");
    let list = FetchList::new(pmids.into_iter().flatten().collect(), Vec::new());
    let copies = (0..).zip(&operands).map(|(index, name)| format!("copy.m{index} = {name}\n"));
    let copies: String = copies.collect();
    let mut batch = ResultBatch::default();
    let mut workspace = Workspace::default();
    for (name, mode, fetches) in [
        ("records", Mode::Forward, RECORDS),
        ("backward", Mode::Backward, RECORDS),
        ("fine", Mode::Interpolated { step: SECOND / 20 }, 20 * RECORDS),
        ("reverse", Mode::Interpolated { step: -SECOND / 20 }, 20 * RECORDS),
        ("crossed", Mode::Interpolated { step: SECOND }, RECORDS - 1),
        ("coarse", Mode::Interpolated { step: 10 * SECOND }, RECORDS / 10),
    ] {
        let from = match mode {
            Mode::Backward | Mode::Interpolated { step: ..0 } => end,
            Mode::Interpolated { step: SECOND } => Timestamp::new(start.sec, 500_000_000),
            _ => start,
        };
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(fetches.into()));
        group.bench_function("read", |bencher| {
            bencher.iter(|| {
                archive.set_mode(mode, Some(from)).expect("archives have it");
                while archive.fetch(&list, &mut batch).is_ok() {}
            });
        });
        for (name, definitions) in [("decode", &copies), ("evaluate", &mix)] {
            let mut evaluator = evaluator(definitions, &mut archive);
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    archive.set_mode(mode, Some(from)).expect("archives have it");
                    while evaluator.fetch(&mut archive, &mut workspace).is_ok() {}
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = scans
}
criterion_main!(benches);
