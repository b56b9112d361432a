//! One evaluation per fetch: per metric, per value, with instances that come
//! and go, and the kernels alone. The throughput of `metrics` is in derived
//! metrics, that of `sum` in summed values, that of all other groups in values
//! of the derived metrics. `copy` is the cost of decoding alone.

mod synth;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pmderive::engine::Backend;
use synth::kernel::KernelRig;
use synth::{Rig, Synth, compile, definitions, register};

const BACKENDS: [(&str, Backend); 2] = [("native", Backend::Jit), ("interp", Backend::Interp)];
const KINDS: [&str; 8] = ["copy", "rate", "addd", "ratio", "tern", "rescale", "sum", "tree"];
/// Kinds of extensions. Kernels alone do not compute most of them.
const EXTENSIONS: [&str; 10] = [
    "round",
    "log",
    "quantile",
    "topk",
    "toprate",
    "avg_over",
    "max_over",
    "ewma",
    "text",
    "matchvalue",
];
/// Metrics per type where the instances are many.
const FEW: u32 = 10;

fn metrics(c: &mut Criterion) {
    let mut group = c.benchmark_group("metrics");
    for count in [100, 1_000, 10_000] {
        for (backend_name, backend) in BACKENDS {
            let mut session =
                Rig::new(&definitions("mix", count, 334), Synth::new(334, 10), backend);
            group.throughput(Throughput::Elements(count.into()));
            group.bench_function(format!("{backend_name}/{count}"), |b| {
                b.iter_custom(|times| session.fetch(times));
            });
        }
    }
}

fn values(c: &mut Criterion) {
    for instances in [1_000, 10_000] {
        let mut group = c.benchmark_group(format!("values/{instances}"));
        group.throughput(Throughput::Elements(u64::from(FEW) * instances as u64));
        for kind in KINDS {
            for (backend_name, backend) in BACKENDS {
                let source = Synth::new(FEW, instances);
                let mut session = Rig::new(&definitions(kind, FEW, FEW), source, backend);
                group.bench_function(format!("{backend_name}/{kind}"), |b| {
                    b.iter_custom(|times| session.fetch(times));
                });
            }
        }
    }
}

fn extensions(c: &mut Criterion) {
    const INSTANCES: u32 = 1_000;
    let mut group = c.benchmark_group(format!("extensions/{INSTANCES}"));
    group.throughput(Throughput::Elements(u64::from(INSTANCES)));
    for kind in EXTENSIONS {
        for (backend_name, backend) in BACKENDS {
            let source = Synth::new(FEW, INSTANCES as i32);
            let mut session = Rig::new(&definitions(kind, 1, FEW), source, backend);
            // Windows are full before they are measured.
            session.fetch(100);
            group.bench_function(format!("{backend_name}/{kind}"), |b| {
                b.iter_custom(|times| session.fetch(times));
            });
        }
    }
}

fn churn(c: &mut Criterion) {
    let mut group = c.benchmark_group("churn");
    for metrics in [1_000, 10_000] {
        let source = Synth::new(334, 10).with_churn(1);
        let mut session = Rig::new(&definitions("mix", metrics, 334), source, Backend::Jit);
        group.throughput(Throughput::Elements(u64::from(metrics)));
        group.bench_function(format!("mix/{metrics}"), |b| {
            b.iter_custom(|times| session.fetch(times));
        });
    }
    for instances in [1_000, 10_000] {
        let source = Synth::new(FEW, instances).with_churn(1);
        let mut session = Rig::new(&definitions("rate", FEW, FEW), source, Backend::Jit);
        group.throughput(Throughput::Elements(u64::from(FEW) * instances as u64));
        group.bench_function(format!("rate/{instances}"), |b| {
            b.iter_custom(|times| session.fetch(times));
        });
    }
}

fn kernels(c: &mut Criterion) {
    const LANES: u32 = 1_000;
    let mut group = c.benchmark_group("kernels");
    group.throughput(Throughput::Elements(LANES.into()));
    for kind in KINDS.into_iter().filter(|kind| *kind != "copy") {
        for (backend_name, backend) in BACKENDS {
            let registry = register(&definitions(kind, 1, FEW));
            let compiled = compile(&registry, &mut Synth::new(FEW, 1), backend);
            let mut rig = KernelRig::new(&compiled.program, LANES);
            group.bench_function(format!("{backend_name}/{kind}"), |b| b.iter(|| rig.run()));
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_millis(700));
    targets = metrics, values, extensions, churn, kernels
}
criterion_main!(benches);
