//! The stages from a text to values in another text, each with a constant
//! input.

use std::sync::Arc;

use pmderive::Escaping;
use pmderive::SourceId;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Engine, ReportSample};
use pmderive::internal::jit;
use pmderive::report::samples::Form;
use pmderive::syntax::parse_expr;
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::kernel::{Kernel, KernelIr};
use pmderive_runtime::model::InstanceDomain;
use pmderive_runtime::source::{FetchSource, Mode};

use crate::families::{FAMILIES, compiled};
use crate::synth::kernel::KernelRig;
use crate::synth::{
    LANGUAGE, Rig, Synth, compile, definitions, expression, register, write_archive,
};

/// A receiver of stages. It gets a stage's name, and the function to run.
type Stage<'s> = &'s mut dyn FnMut(&str, &mut dyn FnMut());

/// Derived metrics of a stage.
const COUNT: u32 = 160;
/// Metrics of each type.
const METRICS: u32 = 40;
/// Instances of each metric.
const INSTANCES: i32 = 10;
/// Records of the archive.
const RECORDS: u32 = 20;
/// Values of a column of a kernel that is counted alone.
const LANES: u32 = 1_000;
const SECOND: i64 = 1_000_000_000;

/// Prepares the stages, one after the other.
pub fn each(stage: Stage<'_>) {
    language(stage);
    code(stage);
    fetches(stage);
    archive(stage);
    kernels(stage);
}

/// Texts become programs.
fn language(stage: Stage<'_>) {
    let expressions: Vec<String> =
        (0..COUNT).map(|index| expression("mix", index, METRICS)).collect();
    stage("parse", &mut || {
        for text in &expressions {
            let mut diagnostics = Diagnostics::default();
            parse_expr(SourceId(0), text, 0, Dialect::Fixed, &mut diagnostics);
        }
    });
    let text = definitions("mix", COUNT, METRICS);
    stage("register", &mut || drop(register(&text)));
    let registry = register(&text);
    stage("bind and check", &mut || {
        let mut diagnostics = Diagnostics::default();
        Engine::new(LANGUAGE, Backend::Interp)
            .examine(&registry, &registry.all(), &mut Synth::new(METRICS, 10), &mut diagnostics)
            .expect("memory does not fail");
    });
    stage("bind, check and plan", &mut || {
        drop(compile(&registry, &mut Synth::new(METRICS, INSTANCES), Backend::Interp));
    });
}

/// Kernels become native code.
fn code(stage: Stage<'_>) {
    for (name, kind, count) in
        [("codegen of 8 kernels", "mix", 8), ("codegen of a tree", "tree", 1)]
    {
        let registry = register(&definitions(kind, count, METRICS));
        let compiled = compile(&registry, &mut Synth::new(METRICS, INSTANCES), Backend::Interp);
        let kernels = compiled.program.steps.iter().map(|step| step.kernel.ir().clone());
        let kernels: Vec<KernelIr> = kernels.collect();
        stage(name, &mut || {
            let fresh =
                |ir: &KernelIr| Arc::new(Kernel::new(ir.clone()).expect("a verified kernel"));
            let kernels: Vec<Arc<Kernel>> = kernels.iter().map(fresh).collect();
            jit::compile(&kernels).expect("this processor has native code");
        });
    }
}

/// Values are decoded, computed and written.
fn fetches(stage: Stage<'_>) {
    for (name, kind, churn) in [("decode", "copy", 0), ("evaluate", "mix", 0), ("churn", "mix", 1)]
    {
        let count = if kind == "copy" { METRICS } else { COUNT };
        let source = Synth::new(METRICS, INSTANCES).with_churn(churn);
        let mut rig = Rig::new(&definitions(kind, count, METRICS), source, Backend::Jit);
        stage(name, &mut || _ = rig.fetch(1));
    }
    let mut source = Synth::new(METRICS, INSTANCES);
    let registry = register(&definitions("mix", COUNT, METRICS));
    let compiled = compile(&registry, &mut source, Backend::Jit);
    let mut evaluator = compiled.evaluator();
    let mut workspace = Workspace::default();
    for _ in 0..2 {
        evaluator.fetch(&mut source, &mut workspace).expect("memory does not fail");
    }
    let (values, _) = evaluator.fetch(&mut source, &mut workspace).expect("memory does not fail");
    let names = (0..INSTANCES).map(|id| (id, format!("i{id}").into())).collect();
    let domains = vec![Some(Arc::new(InstanceDomain::new(names))); COUNT as usize];
    let metrics = &compiled.metrics;
    let shown = ReportSample::new("synth", metrics, &values, &domains);
    for (name, form) in [("text", Form::Text), ("CSV", Form::Csv), ("JSON", Form::Json)] {
        let mut renderer = form.renderer(true, false, None, Escaping::Off, Dialect::Fixed);
        let mut out = String::new();
        stage(name, &mut || {
            out.clear();
            renderer.sample(&shown, &mut out);
        });
    }
}

/// Archives are read.
fn archive(stage: Stage<'_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("synth");
    write_archive(&path, Synth::new(METRICS, INSTANCES), RECORDS);
    stage("open an archive", &mut || drop(ArchiveContext::open(&path).expect("it was written")));
    let mut archive = ArchiveContext::open(&path).expect("it was written");
    let start = archive.label().start;
    for (name, mode) in [
        ("scan an archive", Mode::Forward),
        ("interpolate, fine", Mode::Interpolated { step: SECOND / 10 }),
        ("interpolate, coarse", Mode::Interpolated { step: 2 * SECOND }),
    ] {
        let mut evaluator = of_archive(&mut archive);
        let mut workspace = Workspace::default();
        stage(name, &mut || {
            archive.set_mode(mode, Some(start)).expect("archives have it");
            while evaluator.fetch(&mut archive, &mut workspace).is_ok() {}
        });
    }
}

fn of_archive(archive: &mut ArchiveContext) -> Evaluator {
    let registry = register(&definitions("mix", COUNT, METRICS));
    let mut diagnostics = Diagnostics::default();
    let compiled = Engine::new(LANGUAGE, Backend::Jit)
        .compile(&registry, &registry.all(), archive, &mut diagnostics)
        .expect("metadata are readable");
    compiled.evaluator()
}

/// Native code of each family, over columns of [`LANES`].
fn kernels(stage: Stage<'_>) {
    for (name, expression) in FAMILIES {
        let compiled = compiled(expression, Backend::Jit).expect("a good expression");
        let mut rig = KernelRig::new(&compiled.program, LANES);
        stage(&format!("kernel {name}"), &mut || _ = rig.run());
    }
}
