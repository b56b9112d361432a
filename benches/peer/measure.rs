//! Modes that do what `peerbench` does with libpcp, and print the same keys:
//!
//! ```text
//! parse  -N n [-k kind]               registration only
//! bind   -s source -N n [-k kind]     new context, names, descriptors, program
//! fetch  -s source -N n [-k kind] [-M m] [-r fetches] [-i]
//! values -s source -N n [-k kind] [-M m] [-r fetches] [-i]
//! memory -N n [-k kind] [-M m] [-I instances] [-c churn] [-r fetches]
//! codegen -N nodes                    native code of one shape
//! shapes -N n [-k number] [-M m]      registration to native code, of so many shapes
//! definitions -N n [-k kind] [-M m]   the definitions, as a file
//! ```
//!
//! A source is an archive or `host:SPEC`. `memory` has its metrics in memory,
//! and decodes what is fetched; it leaves out what the source takes.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pmderive::diag::Diagnostics;
use pmderive::engine::{Backend, Compiled, Engine, Registry};
use pmderive::internal::jit;
use pmderive_runtime::context::Context;
use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::kernel::{Kernel, KernelIr};
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::source::{FetchSource, Mode};
use rustix::time::{ClockId, clock_gettime};

use crate::synth::{LANGUAGE, Rig, Synth, compile, definitions, register};

/// Fetches that are not measured, as buffers grow in them.
const WARM: usize = 3;
const SECOND: i64 = 1_000_000_000;

/// The options of a mode.
struct Work {
    source: Option<String>,
    kind: String,
    count: u32,
    metrics: u32,
    instances: i32,
    churn: i32,
    fetches: usize,
    interpolated: bool,
}

/// Runs a mode and prints a line.
///
/// # Errors
/// There is no such mode, or its source failed.
pub fn run(mode: &str, options: &[&str]) -> Result<(), String> {
    let work = Work::new(options)?;
    let found = match mode {
        "parse" => parse(&work),
        "bind" => bind(&work)?,
        "fetch" => fetch(&work)?,
        "values" => return values(&work),
        "definitions" => {
            print!("{}", work.text());
            return Ok(());
        }
        "memory" => memory(&work),
        "codegen" => codegen(&work)?,
        "shapes" => shapes(&work)?,
        _ => return Err(format!("no such mode: {mode}")),
    };
    print!("lib=pmderive cmd={mode} kind={} N={}", work.kind, work.count);
    for (key, value) in found {
        print!(" {key}={value:.3}");
    }
    println!();
    Ok(())
}

impl Work {
    fn new(options: &[&str]) -> Result<Work, String> {
        let mut given: HashMap<&str, &str> = HashMap::new();
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            let value = if *option == "-i" { Some(&"1") } else { rest.next() };
            given.insert(option, value.ok_or(format!("{option} lacks its value"))?);
        }
        let number = |option: &str, otherwise: u32| match given.get(option) {
            Some(text) => text.parse().map_err(|_| format!("{option}: no number: {text}")),
            None => Ok(otherwise),
        };
        Ok(Work {
            source: given.get("-s").map(|source| (*source).to_owned()),
            kind: given.get("-k").copied().unwrap_or("mix").to_owned(),
            count: number("-N", 100)?,
            metrics: number("-M", 10)?,
            instances: number("-I", 10)?.cast_signed(),
            churn: number("-c", 0)?.cast_signed(),
            fetches: number("-r", 50)? as usize,
            interpolated: given.contains_key("-i"),
        })
    }

    fn text(&self) -> String {
        definitions(&self.kind, self.count, self.metrics)
    }

    fn open(&self) -> Result<Context, String> {
        let source = self.source.as_deref().ok_or("-s is missing")?;
        let opened = match source.strip_prefix("host:") {
            Some(spec) => Context::host(&spec.parse().map_err(|error| format!("{spec}: {error}"))?),
            None => Context::archive(Path::new(source)),
        };
        opened.map_err(|error| error.to_string())
    }

    fn rewind(&self, source: &mut Context) -> Result<(), String> {
        let Context::Archive(archive) = source else { return Ok(()) };
        let start = archive.label().start;
        let set = match self.interpolated {
            true => {
                let from = Timestamp::new(start.sec, i64::from(start.nsec) + SECOND / 2);
                archive.set_mode(Mode::Interpolated { step: SECOND }, Some(from))
            }
            false => archive.set_mode(Mode::Forward, Some(start)),
        };
        set.map_err(|error| error.to_string())
    }
}

type Found = Vec<(&'static str, f64)>;

fn nanoseconds(begin: Instant) -> f64 {
    begin.elapsed().as_nanos() as f64
}

/// Processor time of this process, in nanoseconds.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Largest memory of this process so far, in KB.
fn peak_kb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn parse(work: &Work) -> Found {
    let text = work.text();
    let begin = Instant::now();
    let registry = register(&text);
    let time = nanoseconds(begin);
    drop(registry);
    vec![("parse_ns", time), ("parse_ns_per", time / f64::from(work.count))]
}

fn compiled(
    registry: &Registry,
    engine: &Engine,
    source: &mut Context,
) -> Result<Arc<Compiled>, String> {
    let mut diagnostics = Diagnostics::default();
    let compiled = engine
        .compile(registry, &registry.all(), source, &mut diagnostics)
        .map_err(|error| error.to_string())?;
    match diagnostics.errors() {
        0 => Ok(compiled),
        _ => Err(format!("{diagnostics:?}")),
    }
}

fn bind(work: &Work) -> Result<Found, String> {
    let text = work.text();
    let begin = Instant::now();
    let registry = register(&text);
    let parsed = nanoseconds(begin);
    let opening = Instant::now();
    let mut source = work.open()?;
    let opened = nanoseconds(opening);
    let (binding, busy) = (Instant::now(), processor());
    let engine = Engine::new(LANGUAGE, Backend::Interp);
    let compiled = compiled(&registry, &engine, &mut source)?;
    let (bound, busy) = (nanoseconds(binding), processor() - busy);
    let mut evaluator = compiled.evaluator();
    evaluator.fetch(&mut source, &mut Workspace::default()).map_err(|error| error.to_string())?;
    let count = f64::from(work.count);
    Ok(vec![
        ("parse_ns_per", parsed / count),
        ("context_ns", opened),
        ("bind_ns", bound),
        ("bind_ns_per", bound / count),
        ("bind_cpu_ns", busy),
        ("first_fetch_ns", nanoseconds(begin)),
        ("peak_kb", peak_kb()),
    ])
}

fn fetch(work: &Work) -> Result<Found, String> {
    let mut source = work.open()?;
    let registry = register(&work.text());
    let engine = Engine::new(LANGUAGE, Backend::Jit);
    let mut evaluator = compiled(&registry, &engine, &mut source)?.evaluator();
    let mut workspace = Workspace::default();
    let (mut times, mut begun, mut warm) = (Vec::new(), 0.0, 0);
    work.rewind(&mut source)?;
    while times.len() < work.fetches {
        if warm == WARM && times.is_empty() {
            begun = processor();
        }
        let begin = Instant::now();
        let fetched = evaluator.fetch(&mut source, &mut workspace).map(drop);
        let time = nanoseconds(begin);
        match fetched {
            Err(error) if warm < WARM => return Err(error.to_string()),
            // Once more from the start.
            Err(_) => {
                work.rewind(&mut source)?;
                next(&mut evaluator, &mut source, &mut workspace)?;
            }
            Ok(()) if warm < WARM => warm += 1,
            Ok(()) => times.push(time),
        }
    }
    let busy = (processor() - begun) / times.len() as f64;
    let time = median(times);
    let count = f64::from(work.count);
    Ok(vec![("derived_ns", time), ("derived_ns_per", time / count), ("derived_cpu_ns", busy)])
}

fn next(
    evaluator: &mut Evaluator,
    source: &mut Context,
    workspace: &mut Workspace,
) -> Result<(), String> {
    evaluator.fetch(source, workspace).map(drop).map_err(|error| error.to_string())
}

/// Prints all values: fetch, metric, instance, and the bits of the value. The
/// first fetches are left out, because libpcp has no rates for them.
fn values(work: &Work) -> Result<(), String> {
    let mut source = work.open()?;
    let registry = register(&work.text());
    let engine = Engine::new(LANGUAGE, Backend::Jit);
    let mut evaluator = compiled(&registry, &engine, &mut source)?.evaluator();
    let mut workspace = Workspace::default();
    work.rewind(&mut source)?;
    let mut out = String::new();
    for fetch in 0..work.fetches {
        let fetched = evaluator.fetch(&mut source, &mut workspace);
        let (evaluation, _) = fetched.map_err(|error| error.to_string())?;
        for (metric, values) in evaluation.outputs() {
            let numbers = values.numbers().ok_or("values that are no numbers")?;
            for (instance, bits) in numbers {
                _ = writeln!(out, "{fetch} {} {instance} {bits:x}", metric.0);
            }
        }
    }
    print!("{out}");
    Ok(())
}

fn memory(work: &Work) -> Found {
    let source = Synth::new(work.metrics, work.instances).with_churn(work.churn);
    let mut rig = Rig::new(&work.text(), source, Backend::Jit);
    let times = (0..work.fetches).map(|_| rig.fetch(1).as_nanos() as f64).collect();
    let time = median(times);
    let lanes = f64::from(work.count) * f64::from(work.instances);
    vec![
        ("derived_ns", time),
        ("derived_ns_per", time / f64::from(work.count)),
        ("derived_ns_per_value", time / lanes),
    ]
}

/// Native code of a sum of so many nodes.
fn codegen(work: &Work) -> Result<Found, String> {
    let mut text = "synth.gd.m0".to_owned();
    for index in 1..work.count.div_ceil(2) {
        let operator = ["+", "*", "-", "/"][index as usize % 4];
        text += &format!(" {operator} synth.gd.m{index}");
    }
    let registry = register(&format!("shape.metric = {text}\n"));
    let compiled = compile(&registry, &mut Synth::new(work.count, 10), Backend::Interp);
    let kernels = compiled.program.steps.iter().map(|step| step.kernel.ir().clone());
    let kernels: Vec<KernelIr> = kernels.collect();
    let mut times = Vec::new();
    for _ in 0..work.fetches {
        let fresh = |ir: &KernelIr| Arc::new(Kernel::new(ir.clone()).expect("a verified kernel"));
        let kernels: Vec<Arc<Kernel>> = kernels.iter().map(fresh).collect();
        let begin = Instant::now();
        jit::compile(&kernels).map_err(|error| error.to_string())?;
        times.push(nanoseconds(begin));
    }
    Ok(vec![("codegen_ns", median(times))])
}

/// Definitions of some shapes, in turn, from their text to native code.
fn shapes(work: &Work) -> Result<Found, String> {
    let shapes: u32 = work.kind.parse().map_err(|_| format!("no number: {}", work.kind))?;
    let line = |index: u32| {
        let metric = |at: u32| format!("synth.gd.m{}", (index + at) % work.metrics);
        let operator = |at: u32| ["+", "-", "*", "/"][((index % shapes) >> (2 * at)) as usize % 4];
        let rest = (0..3).map(|at| format!(" {} {}", operator(at), metric(at + 1)));
        format!("shape.m{index} = {}{}\n", metric(0), rest.collect::<String>())
    };
    let text: String = (0..work.count).map(line).collect();
    let mut times = Vec::new();
    for _ in 0..work.fetches {
        let mut source = Synth::new(work.metrics, 10);
        let begin = Instant::now();
        let registry = register(&text);
        let compiled = compile(&registry, &mut source, Backend::Jit);
        times.push(nanoseconds(begin));
        let mut steps = compiled.program.steps.iter();
        if steps.any(|step| step.kernel.native().is_none()) {
            return Err("a kernel without native code".into());
        }
    }
    Ok(vec![("all_ns", median(times))])
}
