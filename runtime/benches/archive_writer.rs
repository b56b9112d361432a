//! Writing an archive: records in memory, the whole way from archive to
//! archive, and pmlogextract(1) on that way.
//!
//! ```text
//! cargo bench -p pmderive-runtime --bench archive_writer
//! ```
//!
//! `WRITER_ARCHIVE` names another archive than the one recorded for this
//! project. Records that the writer would refuse are skipped one by one.

use std::path::{Path, PathBuf};
use std::process::Command;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pmderive_runtime::archive::{ArchiveContext, MetadataRecord, MetadataRecords, Version};
use pmderive_runtime::archive_writer::{ArchiveWriter, WriterOptions};
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::result::FetchResult;

/// Writes `records` and the metadata of `from` to a new archive `to`.
fn write(
    from: &Path,
    to: &Path,
    records: impl Iterator<Item = impl std::borrow::Borrow<FetchResult>>,
) {
    let context = ArchiveContext::open(from).expect("an archive");
    let options = WriterOptions { version: Version::V3, ..context.label().clone().into() };
    let mut writer = ArchiveWriter::create(to, options).expect("nothing is there");
    let mut timed: Vec<(Timestamp, MetadataRecord)> = Vec::new();
    for record in MetadataRecords::open(from).expect("it was opened before") {
        let record = record.expect("it is good");
        match record {
            MetadataRecord::Instances { time, .. } | MetadataRecord::Labels { time, .. } => {
                timed.push((time, record));
            }
            _ => writer.metadata(&record).expect("it is good"),
        }
    }
    timed.sort_by_key(|(time, _)| *time);
    let mut timed = timed.into_iter().peekable();
    for record in records {
        let record = record.borrow();
        while let Some((_, said)) = timed.next_if(|(time, _)| *time <= record.timestamp) {
            writer.metadata(&said).expect("it is good");
        }
        let _ = match record.sets.is_empty() {
            true => writer.mark(record.timestamp),
            false => writer.record(record),
        };
    }
    writer.finish().expect("there is room");
}

fn records(archive: &Path) -> impl Iterator<Item = FetchResult> {
    let mut context = ArchiveContext::open(archive).expect("an archive");
    std::iter::from_fn(move || context.next_record().ok())
}

fn writes(criterion: &mut Criterion) {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/archives/own-fleet");
    let archive = std::env::var_os("WRITER_ARCHIVE").map_or(PathBuf::from(own), PathBuf::from);
    let in_memory: Vec<FetchResult> = records(&archive).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("out");
    let cleared = || {
        for entry in folder.path().read_dir().expect("it is there") {
            std::fs::remove_file(entry.expect("it is there").path()).expect("it is ours");
        }
        &to
    };
    let mut group = criterion.benchmark_group("archive writer");
    group.throughput(Throughput::Elements(in_memory.len() as u64));
    group.sample_size(10);
    group.bench_function("from memory", |bencher| {
        bencher.iter(|| write(&archive, cleared(), in_memory.iter()));
    });
    group.bench_function("from archive to archive", |bencher| {
        bencher.iter(|| write(&archive, cleared(), records(&archive)));
    });
    if Command::new("pmlogextract").arg("-V").output().is_ok() {
        group.bench_function("pmlogextract", |bencher| {
            bencher.iter(|| {
                let extract = Command::new("pmlogextract").arg(&archive).arg(cleared()).output();
                assert!(extract.is_ok_and(|output| output.status.success()));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, writes);
criterion_main!(benches);
