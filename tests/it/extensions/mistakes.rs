//! Messages about mistakes, and the edits that fix them.

use std::path::Path;

use pmderive::diag::render::{Style, render};
use pmderive::diag::{Code, Diagnostics};
use pmderive::engine::{Backend, Engine, report_cycles};

use crate::extensions::shared::{EXTENDED, archive, read};

/// What is said of the mistakes in a file, with an archive as source.
fn mistakes(name: &str) -> (Vec<Code>, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions").join(name);
    let text = std::fs::read_to_string(path).expect("a file of the repository");
    let (registry, sources, mut diagnostics) = read(&text, EXTENDED);
    let engine = Engine::new(EXTENDED, Backend::Interp);
    let selection = registry.all();
    let mut source = archive("own-fleet");
    let compiled = engine.compile(&registry, &selection, &mut source, &mut diagnostics);
    for metric in compiled.expect("a readable archive").metrics.iter() {
        assert_eq!(metric.desc.is_ok(), metric.name.starts_with("good."), "{}", metric.name);
    }
    diagnostics.sort();
    let shown = diagnostics.iter().map(|one| render(one, &sources, Style::Plain));
    let shown: Vec<String> = shown.collect();
    (diagnostics.iter().map(|one| one.code).collect(), shown.join("\n"))
}

fn assert_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/extensions"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn mistakes_in_calls() {
    assert_snapshot("calls", &mistakes("calls.conf").1);
}

#[test]
fn mistakes_in_groups() {
    assert_snapshot("by", &mistakes("by.conf").1);
}

#[test]
fn mistakes_of_meaning() {
    assert_snapshot("meaning", &mistakes("meaning.conf").1);
}

#[test]
fn mistakes_of_nesting() {
    let (codes, text) = mistakes("nesting.conf");
    assert_snapshot("nesting", &text);
    assert!(codes.contains(&Code::DefinitionCycle) && codes.contains(&Code::UnusableOperand));
}

/// Cycles need no source to be found.
#[test]
fn cycles_are_found_offline() {
    let text = include_str!("../../extensions/nesting.conf");
    let (registry, _, _) = read(text, EXTENDED);
    let mut diagnostics = Diagnostics::default();
    report_cycles(&registry, &mut diagnostics);
    let codes: Vec<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, [Code::DefinitionCycle; 4], "{diagnostics:?}");
}

/// The command says so too, and fails.
#[test]
fn cycles_are_found_by_the_command() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/nesting.conf");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .env("PCP_DERIVED_CONFIG", "")
        .args(["check", "--extensions", "-c"])
        .arg(file)
        .output()
        .expect("the command runs");
    let said = String::from_utf8(run.stderr).expect("text");
    assert_eq!(said.matches("[PMD0104] Error").count(), 4, "{said}");
    assert!(said.contains("Help: n.a -> n.b -> n.c -> n.a"), "{said}");
    assert_eq!(run.status.code(), Some(2));
}

/// Applying an edit that is offered removes its diagnostic.
#[test]
fn fixes_mend_what_they_promise() {
    let mut mended = 0;
    for text in
        [include_str!("../../extensions/calls.conf"), include_str!("../../extensions/meaning.conf")]
    {
        let found = |text: &str| {
            let (registry, _, mut diagnostics) = read(text, EXTENDED);
            let engine = Engine::new(EXTENDED, Backend::Interp);
            let (selection, mut source) = (registry.all(), archive("own-fleet"));
            let compiled = engine.compile(&registry, &selection, &mut source, &mut diagnostics);
            compiled.expect("a readable archive");
            diagnostics
        };
        let all = found(text);
        for fix in all.iter().filter_map(|diagnostic| diagnostic.fix.as_ref()) {
            let mut edited = text.to_owned();
            edited.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.text);
            assert!(found(&edited).len() < all.len(), "{fix:?}");
            mended += 1;
        }
    }
    assert!(mended >= 8, "{mended} fixes are offered");
}
