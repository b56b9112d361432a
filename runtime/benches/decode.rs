//! From bytes to value sets: checking the PDU of a fetch, and scanning the
//! records of an archive. The group `copy` of the compiler's benchmark
//! `evaluation` gives the cost of columns of values.

use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{Pmid, Timestamp};
use pmderive_runtime::pdu::{Resolution, ResultFrame, encode_result};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultPart, ResultWriter};
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource};

/// Values of a PDU: 20 metrics of 1,000 instances.
const METRICS: u32 = 20;
const INSTANCES: i32 = 1_000;

/// Writes one value for an instance.
type WriteValue = fn(&mut ResultWriter<'_>, i32);

fn pdus(c: &mut Criterion) {
    let mut group = c.benchmark_group("pdu");
    group.throughput(Throughput::Elements(u64::from(METRICS) * INSTANCES as u64));
    let kinds: [(&str, WriteValue); 2] = [
        ("32-bit", |writer, id| writer.in_place(id, id as u32)),
        ("64-bit", |writer, id| writer.block(id, BlockValue::U64(id as u64))),
    ];
    for (kind, write) in kinds {
        let mut part = ResultPart::default();
        let pmids: Vec<Pmid> = (0..METRICS).map(|item| Pmid::new(250, 0, item)).collect();
        let mut writer = ResultWriter::new(&mut part, Timestamp::new(1_700_000_000, 0));
        for pmid in &pmids {
            writer.set(*pmid);
            (0..INSTANCES).for_each(|id| write(&mut writer, id));
        }
        let mut pdu = Vec::new();
        encode_result(&part, Resolution::Micro, &mut pdu);
        group.bench_function(format!("check/{kind}"), |b| {
            b.iter(|| ResultFrame::decode(&pdu, Resolution::Micro, Some(&pmids)));
        });
    }
    group.finish();
}

fn archives(c: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/archives/own-fleet");
    let open = || ArchiveContext::open(&path).expect("the archive is part of the project");
    let mut archive = open();
    let names = archive.traverse("").expect("archives have names");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = archive.lookup_names(&names).expect("the file is readable");
    let list = FetchList::new(pmids.into_iter().flatten().collect(), Vec::new());
    let mut batch = ResultBatch::default();
    let mut records = |mut archive: ArchiveContext| {
        let mut count = 0;
        while archive.fetch(&list, &mut batch).is_ok() {
            count += 1;
        }
        count
    };
    let count = records(archive);
    let mut group = c.benchmark_group("archive");
    group.throughput(Throughput::Elements(count));
    group
        .bench_function("records", |b| b.iter_batched(open, &mut records, BatchSize::PerIteration));
    group.finish();
}

criterion_group!(benches, pdus, archives);
criterion_main!(benches);
