//! Compiled expressions: the kernels and steps of their programs, as snapshots beside this
//! file. After a change of the planner run the test with `INSTA_UPDATE=always` and read the
//! difference.

use std::fmt::Write as _;
use std::path::Path;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Engine, Registry};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::program::Program;

const LANGUAGE: Language = Language { dialect: Dialect::Fixed, extensions: true };

fn program(texts: &[&str]) -> std::sync::Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
    let mut archive = ArchiveContext::open(path).expect("an archive of the repository");
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let registry = Registry::new(LANGUAGE);
    let parsed: Vec<_> = texts
        .iter()
        .map(|text| {
            let source = sources.add("<test>", *text);
            registry.parse(source, &sources, &mut diagnostics).expect("a correct expression")
        })
        .collect();
    let selection: Vec<_> = parsed.iter().collect();
    let engine = Engine::new(LANGUAGE, Backend::Interp);
    let compiled = engine.compile(&registry, &selection, &mut archive, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let compiled = compiled.expect("a readable archive");
    std::sync::Arc::clone(&compiled.program)
}

fn describe(texts: &[&str]) -> String {
    let program = program(texts);
    let mut out = String::new();
    for text in texts {
        let _ = writeln!(out, "# {text}");
    }
    for step in &program.steps {
        let kernel = step.kernel.ir();
        let _ = writeln!(
            out,
            "\nlevel {}: node {} from {:?}",
            step.level, step.output.0, step.operands
        );
        let _ = write!(out, "{kernel}");
    }
    for output in &program.outputs {
        let placement = &program.placements[output.root.index()];
        let _ = writeln!(out, "\noutput: node {} by {placement:?}", output.root.0);
    }
    out
}

fn check(name: &str, texts: &[&str]) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plan"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, describe(texts)));
}

#[test]
fn a_tree_is_one_kernel() {
    check("tree", &["100 * delta(disk.dev.read) / (delta(disk.dev.read) + delta(disk.dev.write))"]);
}

#[test]
fn scales_are_constants() {
    check("scales", &["mem.util.free + rescale(mem.util.used, \"byte\")"]);
}

#[test]
fn a_rate_drops_what_falls() {
    check("rate", &["rate(kernel.all.cpu.user)"]);
}

#[test]
fn reductions_and_histories_of_trees_have_columns() {
    check(
        "columns",
        &["sum(kernel.all.load) / count(kernel.all.load)", "delta(disk.dev.read + disk.dev.write)"],
    );
}

#[test]
fn scalars_and_filters_are_ways_to_read() {
    check(
        "views",
        &[
            "scalar(disk.dev.read)",
            "disk.dev.read[vda]",
            "scalar(disk.dev.read + disk.dev.write)",
            "hinv.map.scsi_id",
        ],
    );
}

#[test]
fn ternaries_with_constants_and_novalue() {
    check(
        "ternaries",
        &[
            "delta(disk.dev.read) == 0 ? mkconst(0, meta=disk.dev.read, type=double, semantics=instant) : delta(disk.dev.read) / 1",
            "disk.dev.read > 5 ? disk.dev.read : novalue()",
            "defined(no.such) ? no.such : hinv.ncpu",
        ],
    );
}

#[test]
fn functions_of_numbers_are_kernels() {
    check(
        "functions",
        &[
            "clamp(round(kernel.all.load * 100), 0, 1000)",
            "log(delta(disk.dev.read) / 7) + pow(hinv.ncpu, 2)",
            "quantile(0.9, delta(disk.dev.read)) / stdev(matchinst(/^v/, disk.dev.write))",
        ],
    );
}

/// What no kernel computes begins with columns that kernels have computed.
#[test]
fn kernels_lead_up_to_what_they_cannot_do() {
    check(
        "general",
        &[
            "topk(3, rate(disk.dev.read)) + rate(disk.dev.write)",
            "avg_over(kernel.all.load * 2, \"5 min\") - 1",
            "hinv.map.scsi_id == \"scsi0\"",
            "disk.dev.read * 2",
        ],
    );
}

/// Metrics of one shape share a kernel, whatever their names and constants are.
#[test]
fn equal_shapes_share_kernels() {
    let program = program(&[
        "disk.dev.read * 2",
        "disk.dev.write * 7",
        "disk.dev.read_bytes * 4294967295",
        "network.interface.in.packets * 3",
    ]);
    let mut kernels: Vec<_> = program.steps.iter().map(|step| &step.kernel).collect();
    assert_eq!(kernels.len(), 4);
    kernels.dedup();
    assert_eq!(kernels.len(), 1);
}

/// Adding a metric changes no other's kernel.
#[test]
fn shapes_do_not_depend_on_other_metrics() {
    let alone = program(&["(disk.dev.read + disk.dev.write) * 2"]);
    let with_part =
        program(&["disk.dev.read + disk.dev.write", "(disk.dev.read + disk.dev.write) * 2"]);
    let kernel = |program: &Program, step: usize| program.steps[step].kernel.ir().clone();
    assert_eq!(alone.steps.len(), 1);
    assert_eq!(with_part.steps.len(), 2);
    assert_eq!(kernel(&alone, 0), kernel(&with_part, 1));
}

/// In a chain each metric has its own part only, and names the one before.
#[test]
fn what_metrics_need_of_each_other_is_there_once() {
    let mut texts = vec!["kernel.all.load * 2".to_owned()];
    for level in 1..300 {
        texts.push(format!("({}) * 2", texts[level - 1]));
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let program = program(&texts);
    let needs = &program.needs;
    let nodes: usize = needs.nodes.iter().map(<[_]>::len).sum();
    assert!(nodes < 10 * texts.len(), "{nodes} nodes");
}

/// All of a program, in the order of its tables.
fn whole(program: &Program) -> String {
    let mut out = String::new();
    for (node, placement) in program.nodes.iter().zip(&program.placements) {
        let _ = writeln!(out, "{node:?} by {placement:?}");
    }
    for step in &program.steps {
        let _ = writeln!(out, "{step:?}\n{}", step.kernel.ir());
    }
    let Program { inputs, histories, baselines, windows, outputs, needs, constants, .. } = program;
    let _ = writeln!(out, "{inputs:?}\n{histories:?}\n{baselines:?}\n{windows:?}");
    let _ = writeln!(out, "{outputs:?}\n{needs:?}\n{constants:?}");
    out
}

/// In a file, definitions like earlier ones get copies of their trees and steps. Registered one by
/// one, they do not, and the program is the same.
#[test]
fn definitions_like_earlier_ones() {
    let expressions = [
        "A",
        "A + B",
        "100 * A",
        "A / B * 100",
        "delta(A) / delta(B)",
        "rate(A) + delta(A)",
        "sum(A) / count(B)",
        "rate(A + B)",
        "delta(A) - A",
        "A > B ? A : B",
        "A > B ? A : novalue()",
        "defined(A) ? rate(A) : B",
        "rescale(rate(A), \"count/min\")",
        "scalar(A[vdb]) + sum(B)",
        "matchinst(/v/, A) + B",
        "mkconst(2, meta=A) * B",
        "-(A * 3) + (A * 3)",
        "count(A) + A",
        "topk(1, rate(A)) + B",
        "avg_over(A, \"1 min\") * 2",
        "max_over(rate(A), \"1 min\")",
        "avg(A + B)",
        "round(A / 3)",
        "sum(rate(A)) / sum(rate(B))",
        "instant(A)",
        "5",
    ];
    let pairs = [
        ["disk.dev.read", "disk.dev.write"],
        ["disk.dev.write", "disk.dev.total"],
        ["disk.dev.total", "disk.dev.total"],
        ["disk.dev.read", "disk.dev.write"],
        ["disk.all.read", "disk.all.write"],
        ["disk.dev.read_bytes", "disk.dev.write_bytes"],
        ["disk.dev.write_bytes", "disk.dev.total_bytes"],
        ["disk.dev.total_bytes", "disk.dev.read_bytes"],
        ["mem.util.free", "disk.dev.read"],
        ["disk.dev.no", "disk.dev.read"],
    ];
    let texts = expressions.iter().flat_map(|expression| {
        pairs.iter().map(|[a, b]| expression.replace('A', a).replace('B', b))
    });
    let texts: Vec<String> = texts.collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
    for dialect in [Dialect::Fixed, Dialect::Pcp6_0, Dialect::Pcp7_2] {
        for extensions in [false, true] {
            let language = Language { dialect, extensions };
            let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
            let (mut by_file, mut by_one) = (Registry::new(language), Registry::new(language));
            let lines = texts.iter().enumerate();
            let file: String = lines.map(|(at, text)| format!("like.m{at} = {text}\n")).collect();
            let file = sources.add("like.conf", file);
            by_file.add_text(file, &sources, &mut diagnostics);
            for (at, text) in texts.iter().enumerate() {
                let source = sources.add("<test>", text.as_str());
                _ = by_one.register(&format!("like.m{at}"), source, &sources, &mut diagnostics);
            }
            let [by_file, by_one] = [by_file, by_one].map(|registry| {
                let mut archive = ArchiveContext::open(&path).expect("it is in the repository");
                let engine = Engine::new(language, Backend::Interp);
                let selection = registry.all();
                let mut found = Diagnostics::default();
                let compiled = engine.compile(&registry, &selection, &mut archive, &mut found);
                let compiled = compiled.expect("a readable archive");
                let messages: Vec<_> =
                    found.iter().map(|one| (&one.metric, &one.message)).collect();
                format!("{messages:?}\n{:?}\n{}", compiled.metrics, whole(&compiled.program))
            });
            let differ = by_file.lines().zip(by_one.lines()).find(|(file, one)| file != one);
            assert!(by_file == by_one, "{language:?}: {differ:?}");
        }
    }
}
