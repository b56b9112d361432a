//! The commands that look at definitions instead of values: explain, deps, and
//! check with metadata from a file.
//!
//! Snapshots in `tests/tools` hold whole runs. After a change of wording run
//! the test with `INSTA_UPDATE=always` and read the difference.

use std::path::Path;

use pmderive_testkit::real_pmcd;
use serde_json::Value;

use crate::command;
use command::{run, settings, transcript};

const FLEET: &str = "tests/archives/own-fleet";
const NEEDS: &str = "tests/tools/needs.conf";

/// Whole runs, by the name of their snapshot.
const RUNS: &[(&str, &[&str])] = &[
    (
        "explain_a_quotient",
        &["explain", "-a", FLEET, "delta(disk.dev.total_bytes) / delta(disk.dev.total)"],
    ),
    ("explain_two_counters", &["explain", "-a", FLEET, "disk.dev.total_bytes / disk.dev.total"]),
    (
        "explain_scales",
        &[
            "explain",
            "-a",
            FLEET,
            "mem.util.free * 2 + rescale(mem.physmem, \"Mbyte\") > mem.util.free + mkconst(4, units=byte) * 2",
        ],
    ),
    (
        "explain_branches",
        &[
            "explain",
            "-a",
            FLEET,
            "-c",
            NEEDS,
            "needs.branch",
            "needs.guard",
            "disk.dev.read == 0 ? novalue() : disk.dev.read[vdb]",
        ],
    ),
    (
        "explain_sharing",
        &[
            "explain",
            "-a",
            FLEET,
            "rate(disk.dev.read) + rate(disk.dev.write)",
            "rate(disk.dev.read)",
            "scalar(instant(disk.dev.read))",
        ],
    ),
    (
        "explain_what_is_wrong",
        &[
            "explain",
            "-a",
            FLEET,
            "rate(disk.dev.totl) / (hinv.ncpu + mem.physmem)",
            "rate(hinv.ncpu) > 1 +",
        ],
    ),
    (
        "explain_in_an_old_version",
        &[
            "explain",
            "-a",
            FLEET,
            "--compat",
            "7.2",
            "--",
            "-rate(kernel.all.cpu.user)",
            "delta(disk.dev.read[vdb])",
            "avg(kernel.all.load)",
        ],
    ),
    (
        "explain_extensions",
        &[
            "explain",
            "-a",
            FLEET,
            "--extensions",
            "ewma(rate(disk.dev.read), \"30 sec\") / clamp(hinv.ncpu, 1, 4)",
        ],
    ),
    (
        "explain_derived_operands",
        &[
            "explain",
            "-a",
            FLEET,
            "-c",
            "tests/tools/nested.conf",
            "--extensions",
            "nested.twice",
            "nested.guard",
            "nested.end",
        ],
    ),
    ("explain_a_hidden_definition", &["explain", "-a", FLEET, "-c", "tests/tools/hidden.conf"]),
    (
        "explain_as_json",
        &["explain", "-a", FLEET, "--format", "json", "delta(disk.dev.read) / 2", "no.such"],
    ),
    ("explain_a_code", &["explain", "--code", "pmd0202"]),
    ("explain_no_code", &["explain", "--code", "9999"]),
    ("explain_nothing", &["explain"]),
    ("deps_offline", &["deps", "-c", NEEDS]),
    ("deps_with_a_source", &["deps", "-a", FLEET, "-c", NEEDS, "-v"]),
    ("deps_of_an_expression", &["deps", "-c", NEEDS, "needs.rate", "hinv.ncpu * 2"]),
    ("deps_as_json", &["deps", "-a", FLEET, "-c", NEEDS, "--format", "json"]),
    (
        "deps_for_pmlogger",
        &["deps", "-a", FLEET, "-c", NEEDS, "--format", "pmlogger", "-t", "1500msec", "-v"],
    ),
    ("deps_metadata", &["deps", "-a", FLEET, "-c", NEEDS, "--metadata"]),
    ("deps_of_others", &["deps", "-c", "tests/tools/nested.conf", "nested.twice"]),
    (
        "deps_of_nested_ones",
        &[
            "deps",
            "-c",
            "tests/tools/nested.conf",
            "--extensions",
            "-v",
            "nested.twice",
            "nested.cycle",
        ],
    ),
    ("deps_of_nothing", &["deps"]),
    ("deps_with_a_useless_interval", &["deps", "-t", "10", "x"]),
    ("deps_with_a_long_interval", &["deps", "-t", "80hours", "--format", "pmlogger", "x"]),
    ("deps_with_a_file_for_a_name", &["deps", "--metadata", "metadata.json"]),
    ("eval_with_metadata", &["eval", "--metadata", "metadata.json", "hinv.ncpu"]),
    ("check_without_the_file", &["check", "--metadata", "tests/tools/none.json", "hinv.ncpu"]),
    ("check_with_another_file", &["check", "--metadata", NEEDS, "hinv.ncpu"]),
    ("check_with_two_sources", &["check", "--metadata", "metadata.json", "-L", "hinv.ncpu"]),
    ("help_of_explain", &["explain", "-?"]),
    ("help_of_deps", &["deps", "-?"]),
];

#[test]
fn whole_runs() {
    settings("tools").bind(|| {
        for (name, arguments) in RUNS {
            insta::assert_snapshot!(*name, transcript(arguments, &[]));
        }
    });
}

/// Explanations fit into a terminal, except words that cannot be broken.
#[test]
fn lines_are_short() {
    for (name, arguments) in RUNS.iter().filter(|(_, arguments)| arguments[0] == "explain") {
        if arguments.contains(&"json") || arguments.contains(&"-?") {
            continue;
        }
        for line in run(arguments).out.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}

/// Metadata from a file lead to the same diagnostics as the source itself, in
/// every form of output.
#[test]
fn a_check_with_recorded_metadata_finds_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.json");
    let file = path.to_str().expect("UTF-8");
    let configs =
        [NEEDS, "tests/cli/shop.conf", "tests/diagnostics/meaning.conf", "tests/tools/hidden.conf"];
    for config in configs {
        for compat in ["off", "7.2", "6.0"] {
            let recorded =
                run(&["deps", "-a", FLEET, "-c", config, "--compat", compat, "--metadata"]);
            std::fs::write(&path, &recorded.out).expect("a file");
            for format in ["text", "json"] {
                let check = |source: [&str; 2]| {
                    run(&[
                        &["check", "-c", config, "--compat", compat, "--format", format],
                        &source[..],
                    ]
                    .concat())
                };
                let (with, without) = (check(["-a", FLEET]), check(["--metadata", file]));
                assert_eq!(
                    (with.status, &with.out, &with.err),
                    (without.status, &without.out, &without.err)
                );
                assert!(!with.err.is_empty(), "{config}");
            }
            let explain = |source: [&str; 2]| {
                let run =
                    run(&[&["explain", "-c", config, "--compat", compat], &source[..]].concat());
                (run.status, run.out, run.err)
            };
            assert_eq!(explain(["-a", FLEET]), explain(["--metadata", file]), "{config}");
            let again = run(&[
                "deps",
                "-c",
                config,
                "--compat",
                compat,
                &format!("--metadata={file}"),
                "--format",
                "json",
            ]);
            let from_archive =
                run(&["deps", "-c", config, "--compat", compat, "-a", FLEET, "--format", "json"]);
            assert_eq!(again.out, from_archive.out, "{config}");
        }
    }
}

/// Definitions of all kinds: those of the conformance corpus are explained, and
/// checked offline with the same findings, lints included.
#[test]
fn definitions_of_the_corpus() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (config, metadata) = (path("corpus.conf"), path("metadata.json"));
    for archive in ["own-dyn", "own-dyn2", "own-types", "own-units"] {
        let expressions = corpus(archive);
        assert!(expressions.len() > 100, "{archive}: {}", expressions.len());
        let lines = expressions.iter().enumerate();
        let lines: String = lines.map(|(at, text)| format!("x.n{at} = {text}\n")).collect();
        std::fs::write(&config, lines).expect("a file");
        let archive = format!("tests/archives/{archive}");
        let source = ["-a", &archive, "-c", &config, "--extensions"];

        let explained = run(&[&["explain", "--format", "json"], &source[..]].concat());
        assert_eq!((explained.status, &*explained.err), (Some(2), ""));
        let explained: Value = serde_json::from_str(&explained.out).expect("JSON");
        let definitions = explained["definitions"].as_array().expect("definitions");
        let refused = definitions.iter().filter(|one| one["fate"] == "refused").count();
        assert!(refused * 2 < definitions.len(), "{refused} of {}", definitions.len());
        let operations = explained["program"]["operations"].as_array().expect("operations");
        assert!(operations.len() > 50, "{}", operations.len());

        let recorded = run(&[&["deps", "--metadata"], &source[..]].concat());
        std::fs::write(&metadata, &recorded.out).expect("a file");
        let check = |source: [&str; 2]| {
            let options = ["check", "-c", &config, "--extensions", "--lint", "--format", "json"];
            let run = run(&[&options[..], &source[..]].concat());
            (run.status, run.out, run.err)
        };
        let (with, without) = (check(["-a", &archive]), check(["--metadata", &metadata]));
        assert_eq!(with, without);
        assert!(with.1.lines().count() > 10, "{}", with.1);
    }
}

/// Expressions of the corpus over an archive, each once, that stand on one line.
fn corpus(archive: &str) -> std::collections::BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut expressions = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|suffix| suffix != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(path).expect("a file").lines() {
            let case: Value = serde_json::from_str(line).expect("JSON");
            let Some(text) = case["expr"].as_str().filter(|_| case["archive"] == archive) else {
                continue;
            };
            if text.len() < 2_000 && !text.contains(['\n', '\r']) {
                expressions.insert(text.to_owned());
            }
        }
    }
    expressions
}

/// The machine code of this processor and Cranelift IR are shown on request.
#[cfg(feature = "jit")]
#[test]
fn native_code() {
    let with = |option: &[&str]| {
        let run = run(&[&["explain", "-a", FLEET, "hinv.ncpu * 2"], option].concat());
        assert_eq!(run.status, Some(0), "{}", run.err);
        run.out
    };
    let plain = with(&[]);
    assert!(!plain.contains("function u0:0"), "{plain}");
    let clif = with(&["--clif"]);
    assert!(clif.contains("function u0:0(i64) -> i64") && clif.contains("imul"), "{clif}");
    assert!(!clif.contains(" bytes\n"), "{clif}");
    let assembly = with(&["--asm"]);
    assert!(assembly.contains(" bytes\n") && assembly.contains("ret"), "{assembly}");
    let json = with(&["--clif", "--asm", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let kernel = &json["program"]["kernels"][0];
    for (form, part) in [("ir", "kernel("), ("clif", "block0"), ("asm", "ret")] {
        assert!(kernel[form].as_str().is_some_and(|text| text.contains(part)), "{form}: {kernel}");
    }
}

/// Every code has its page, and the list names it.
#[test]
fn all_codes() {
    let list = run(&["explain", "--code"]);
    assert_eq!(list.status, Some(0));
    for line in list.out.lines() {
        let (code, headline) = line.split_once(": ").expect("a headline");
        assert!(!headline.is_empty());
        let page = run(&["explain", "--code", code]);
        assert_eq!((page.status, &*page.err), (Some(0), ""));
        assert!(
            page.out.starts_with(&format!("{}\n===", line.replace('`', ""))),
            "{line}: {}",
            page.out
        );
    }
    assert!(list.out.contains("PMD0203"), "{}", list.out);
}

/// Trees of any size can be drawn.
#[test]
fn large_and_deep_expressions() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let deep = format!("{}hinv.ncpu", "-".repeat(2_000));
    let wide = vec!["hinv.ncpu"; 2_000].join(" + ");
    std::fs::write(file.path(), format!("x.deep = {deep}\nx.wide = {wide}\n")).expect("a file");
    let run = run(&["explain", "-a", FLEET, "-c", file.path().to_str().expect("UTF-8")]);
    assert_eq!(run.status, Some(0), "{}", run.err);
    assert!(run.out.len() < 2 << 20, "{}", run.out.len());
}

/// The real pmlogger understands the configuration and knows every metric.
#[test]
fn pmlogger_takes_the_configuration() {
    let Some(pmcd) = real_pmcd::RealPmcd::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pmlogger.conf");
    let host = format!("localhost:{}", pmcd.port);
    let config = folder.path().join("derived.conf");
    let text = "x.a = rate(sample.milliseconds) + mkconst(1, meta=hinv.ncpu)\n\
                x.b = defined(hinv.physmem) ? sample.bin : no.such\n\
                x.c = defined(no.such) ? 1 : sample.colour\n";
    std::fs::write(&config, text).expect("a file");
    let made = run(&[
        "deps",
        "-h",
        &host,
        "-c",
        config.to_str().expect("UTF-8"),
        "--format",
        "pmlogger",
        "-t",
        "10",
        "-v",
    ]);
    assert_eq!(made.status, Some(0), "{}", made.err);
    assert!(made.err.starts_with("read 3 definitions from "), "{}", made.err);
    assert_eq!(made.err.lines().count(), 1, "{}", made.err);
    assert!(made.out.contains("    sample.bin\n") && made.out.contains("on once"), "{}", made.out);
    assert!(!made.out.contains("    no.such\n"), "{}", made.out);
    std::fs::write(&path, &made.out).expect("a file");
    let said = check_by_pmlogger(&host, &path);
    assert!(said.contains("Config parsed"), "{said}");
    assert!(!said.contains("Warning") && !said.contains("Error"), "{said}");
}

/// What pmlogger says of a configuration.
fn check_by_pmlogger(host: &str, config: &Path) -> String {
    let output = std::process::Command::new("pmlogger")
        .args(["-C", "-h", host, "-c"])
        .arg(config)
        .env("LC_ALL", "C")
        .output()
        .expect("pmlogger");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
