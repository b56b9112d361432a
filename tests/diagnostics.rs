//! Every kind of mistake as a person and as a program sees it.
//!
//! The files of `tests/diagnostics` are full of mistakes; the snapshots beside
//! them hold what is said. After a change of wording run the test with
//! `INSTA_UPDATE=always` and read the difference.

use std::path::Path;

use pmderive::diag::json::to_json;
use pmderive::diag::render::{Style, render};
use pmderive::diag::{Code, Diagnostics};
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Engine, Registry};
use pmderive::source::SourceMap;
use pmderive::syntax::parse_definitions;
use pmderive_runtime::archive::ArchiveContext;

fn diagnose(name: &str) -> (SourceMap, Diagnostics) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics").join(name);
    let text = std::fs::read_to_string(path).expect("a file of the repository");
    let mut sources = SourceMap::default();
    let source = sources.add(name, text);
    let mut diagnostics = Diagnostics::default();
    parse_definitions(source, &sources, Dialect::Fixed, &mut diagnostics);
    diagnostics.sort();
    (sources, diagnostics)
}

/// What compiling the definitions of a file against an archive finds besides.
fn diagnose_meaning(name: &str, archive: &str) -> (SourceMap, Diagnostics) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let text = std::fs::read_to_string(tests.join("diagnostics").join(name));
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let source = sources.add(name, text.expect("a file of the repository"));
    let mut registry = Registry::new(Dialect::Fixed);
    registry.add_text(source, &sources, &mut diagnostics);
    let mut archive =
        ArchiveContext::open(&tests.join("archives").join(archive)).expect("an archive");
    let engine = Engine::new(Dialect::Fixed, Backend::Interp);
    let selection = registry.all();
    let compiled = engine.compile(&registry, &selection, &mut archive, &mut diagnostics);
    let usable = compiled.expect("a readable archive").metrics;
    let usable: Vec<&str> = usable.iter().filter(|m| m.desc.is_ok()).map(|m| &*m.name).collect();
    assert_eq!(usable, ["hinv.ncpu", "d.good"], "mistakes must not spread or stay unseen");
    (sources, diagnostics)
}

fn check(name: &str) {
    let (sources, diagnostics) = diagnose(name);
    assert_snapshots(name, &sources, &diagnostics);
}

fn assert_snapshots(name: &str, sources: &SourceMap, diagnostics: &Diagnostics) {
    let plain: Vec<String> =
        diagnostics.iter().map(|diagnostic| render(diagnostic, sources, Style::Plain)).collect();
    let json: Vec<String> =
        diagnostics.iter().map(|diagnostic| to_json(diagnostic, sources)).collect();
    let stem = name.trim_end_matches(".conf");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("diagnostics");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!(format!("{stem}.plain"), plain.join("\n"));
        insta::assert_snapshot!(format!("{stem}.json"), json.join("\n"));
    });
}

#[test]
fn mistakes_in_expressions() {
    check("expressions.conf");
}

#[test]
fn mistakes_in_lines() {
    check("lines.conf");
}

#[test]
fn mistakes_of_meaning() {
    let (sources, diagnostics) = diagnose_meaning("meaning.conf", "own-fleet");
    assert_snapshots("meaning.conf", &sources, &diagnostics);
    // A metric that has no descriptor exists with a live pmcd only.
    let mut codes: Vec<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    codes.push(Code::NoDescriptor);
    let of_meaning = Code::ALL
        .iter()
        .filter(|code| (100..110).contains(&code.number()) || (200..300).contains(&code.number()));
    let missing: Vec<&Code> = of_meaning.filter(|code| !codes.contains(code)).collect();
    assert!(missing.is_empty(), "without an example: {missing:?}");
}

/// Every code that parsing can give has its example.
#[test]
fn every_code_of_the_parser_has_an_example() {
    let mut codes: Vec<Code> = Vec::new();
    for name in ["expressions.conf", "lines.conf"] {
        codes.extend(diagnose(name).1.iter().map(|diagnostic| diagnostic.code));
    }
    // Examples of these are too large, no text at all, or found by the registry.
    codes.extend([Code::TooComplex, Code::UnreadableFile, Code::LimitReached]);
    for code in Code::ALL.iter().filter(|code| code.number() < 100) {
        assert!(codes.contains(code), "{code} has no example");
    }
}

/// Applying the edits that the parser offers leaves fewer mistakes.
#[test]
fn fixes_mend_what_they_promise() {
    for name in ["expressions.conf", "lines.conf"] {
        let (sources, diagnostics) = diagnose(name);
        for diagnostic in &diagnostics {
            let Some(fix) = &diagnostic.fix else { continue };
            let mut text = sources.get(fix.span.source).text.to_string();
            text.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.text);
            let mut mended = SourceMap::default();
            let source = mended.add("mended", text);
            let mut left = Diagnostics::default();
            parse_definitions(source, &mended, Dialect::Fixed, &mut left);
            assert!(left.len() < diagnostics.len(), "{diagnostic:?}");
        }
    }
}
