//! From text to a program: parsing, registering, compiling against a source,
//! and native code for kernels. The cost per metric does not grow with their
//! number (Q37); libpcp compares each new name with all others.

mod synth;

use std::fmt::Write;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pmderive::SourceId;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Definitions, Engine};
use pmderive::internal::jit;
use pmderive::syntax::parse_expr;
use pmderive_runtime::kernel::{Kernel, KernelIr};
use synth::{LANGUAGE, Synth, compile, definitions, register};

/// An expression of so many nodes, about half of them metrics.
fn expression(nodes: usize) -> String {
    let mut text = "synth.gd.m0".to_string();
    for index in 1..nodes.div_ceil(2) {
        let op = ["+", "*", "-", "/"][index % 4];
        write!(text, " {op} synth.gd.m{index}").expect("strings grow");
    }
    if nodes.is_multiple_of(2) { format!("-({text})") } else { text }
}

fn parse(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    for nodes in [1, 20, 200] {
        let text = expression(nodes);
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function(format!("expression/{nodes}"), |b| {
            b.iter(|| {
                let mut diagnostics = Diagnostics::default();
                parse_expr(SourceId(0), &text, 0, Dialect::Fixed, &mut diagnostics)
            });
        });
    }
    for count in [1_000, 10_000] {
        let text = definitions("mix", count, 334);
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(format!("file/{count}"), |b| b.iter(|| register(&text)));
    }
}

/// Registration of single definitions while contexts share them: each is
/// published by itself.
fn registration(c: &mut Criterion) {
    let mut group = c.benchmark_group("register");
    group.sample_size(20);
    for count in [1_000, 10_000] {
        let text = definitions("mix", count, 334);
        let pairs: Vec<(&str, &str)> =
            text.lines().filter_map(|line| line.split_once(" = ")).collect();
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(format!("one by one/{count}"), |b| {
            b.iter(|| {
                let shared = Definitions::new(Dialect::Fixed);
                for (name, text) in &pairs {
                    shared.register(name, text).expect("a good definition");
                }
                shared
            });
        });
    }
}

/// Bind and check, without a plan.
fn examination(c: &mut Criterion) {
    let mut group = c.benchmark_group("bind and check");
    group.sample_size(20);
    for count in [1_000, 10_000] {
        let registry = register(&definitions("mix", count, 334));
        let engine = Engine::new(LANGUAGE, Backend::Interp);
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(count.to_string(), |b| {
            b.iter(|| {
                let mut diagnostics = Diagnostics::default();
                engine.examine(
                    &registry,
                    &registry.all(),
                    &mut Synth::new(334, 10),
                    &mut diagnostics,
                )
            });
        });
    }
}

/// Binding, checking and planning; with native code also that of the distinct
/// kernels.
fn compilation(c: &mut Criterion) {
    let mut group = c.benchmark_group("compile");
    group.sample_size(20);
    for count in [1_000, 10_000] {
        let registry = register(&definitions("mix", count, 334));
        group.throughput(Throughput::Elements(count.into()));
        for (name, backend) in [("native", Backend::Jit), ("interp", Backend::Interp)] {
            group.bench_function(format!("{name}/{count}"), |b| {
                b.iter(|| compile(&registry, &mut Synth::new(334, 10), backend));
            });
        }
    }
}

/// Native code of kernels that all differ, per kernel; and of one kernel, by the
/// number of its nodes.
fn shapes(c: &mut Criterion) {
    const SHAPES: usize = 50;
    let distinct: Vec<usize> = (0..SHAPES).map(|index| 3 + 2 * (index % 25) + index / 25).collect();
    let mut group = c.benchmark_group("native code");
    group.sample_size(20);
    let rows = [("distinct shapes".to_string(), distinct)];
    let single = [3, 9, 21, 51, 101].map(|nodes| (format!("{nodes} nodes"), vec![nodes]));
    for (name, shapes) in rows.into_iter().chain(single) {
        let lines = shapes.iter().enumerate();
        let text = lines.map(|(at, nodes)| format!("shape.m{at} = {}\n", expression(*nodes)));
        let text: String = text.collect();
        let compiled = compile(&register(&text), &mut Synth::new(334, 10), Backend::Interp);
        let steps = compiled.program.steps.iter();
        let forms: Vec<KernelIr> = steps.map(|step| step.kernel.ir().clone()).collect();
        let fresh = || -> Vec<Arc<Kernel>> {
            let kernel =
                |ir: &KernelIr| Arc::new(Kernel::new(ir.clone()).expect("forms are verified"));
            forms.iter().map(kernel).collect()
        };
        group.throughput(Throughput::Elements(forms.len() as u64));
        group.bench_function(name, |b| {
            let compile = |kernels: Vec<Arc<Kernel>>| jit::compile(&kernels).map(|()| kernels);
            b.iter_batched(fresh, compile, BatchSize::PerIteration);
        });
    }
}

criterion_group!(benches, parse, registration, examination, compilation, shapes);
criterion_main!(benches);
