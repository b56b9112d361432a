//! The table for users is true, and without the switch none of its extensions exists.

use pmderive::diag::Code;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::Desc;
use pmderive::engine::{Backend, Engine, Registered};
use pmderive::internal::check::describe;
use pmderive::syntax::{functions, manual};

use crate::extensions::shared::{EXTENDED, archive, read};

/// Without the switch nothing of all this is understood.
#[test]
fn the_switch_is_needed() {
    let definitions = "t.nested = t.a + 1\nt.a = s.i.u32\n";
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2] {
        let language = Language::from(dialect);
        let (registry, _, mut diagnostics) = read(definitions, language);
        let engine = Engine::new(language, Backend::Interp);
        let selection = [registry.get("t.nested").expect("a defined name")];
        let mut source = archive("own-types");
        let compiled = engine.compile(&registry, &selection, &mut source, &mut diagnostics);
        assert!(compiled.expect("a readable archive").metrics[0].desc.is_err());
        let found: Vec<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(found, [Code::NestedDerived]);
    }
    for function in functions() {
        let (registry, _, diagnostics) =
            read(&format!("t.a = {}\n", function.example.call), Dialect::Fixed.into());
        assert!(registry.get("t.a").is_none(), "{}", function.name);
        let help: Vec<_> = diagnostics.iter().filter_map(|one| one.help.as_deref()).collect();
        assert_eq!(help, [format!("`{}()` needs extensions", function.name)]);
    }
}

/// `by` as well, wherever it is right with the switch.
#[test]
fn the_switch_is_needed_for_groups() {
    let text = "t.a = sum(disk.dev.total) by (rack, dc)\n";
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0] {
        let (registry, _, diagnostics) = read(text, dialect.into());
        assert!(registry.get("t.a").is_none());
        let labels = diagnostics.iter().flat_map(|one| &one.labels);
        let labels: Vec<&str> = labels.map(|label| &*label.text).collect();
        assert_eq!(labels, ["groups of hosts, which need extensions and a fleet"]);
        let help: Vec<_> = diagnostics.iter().filter_map(|one| one.help.as_deref()).collect();
        assert_eq!(help, ["leave the labels out; write `sum(disk.dev.total)`"]);
        let (registry, _, diagnostics) = read(text, Language { dialect, extensions: true });
        assert!(registry.get("t.a").is_some() && diagnostics.is_empty());
    }
}

/// Metadata of an expression over an archive.
fn desc_of(definitions: &str, archive_name: &str) -> Result<Desc, String> {
    let (registry, _, mut diagnostics) = read(definitions, EXTENDED);
    let engine = Engine::new(EXTENDED, Backend::Interp);
    let selection: Vec<&Registered> = registry.get("t.example").into_iter().collect();
    let mut source = archive(archive_name);
    let compiled = engine.compile(&registry, &selection, &mut source, &mut diagnostics);
    let compiled = compiled.expect("a readable archive");
    let metrics = &compiled.metrics;
    match metrics.first().map(|metric| metric.desc) {
        Some(Ok(desc)) if diagnostics.is_empty() => Ok(desc),
        _ => Err(format!("{diagnostics:?}")),
    }
}

/// The rows of functions are made from `src/functions`; `INSTA_UPDATE=always`
/// writes them.
#[test]
fn the_table_has_the_functions_as_they_are() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/extensions.md");
    let text = std::fs::read_to_string(PATH).expect("the description");
    let heading = text.find("|---|").expect("a table");
    let start = heading + text[heading..].find('\n').expect("rows") + 1;
    let rows =
        text[start..].split_inclusive('\n').take(functions().count()).map(str::len).sum::<usize>();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        let text = format!("{}{}{}", &text[..start], manual(), &text[start + rows..]);
        std::fs::write(PATH, text).expect("a file that can be written");
        return;
    }
    assert_eq!(text[start..start + rows], manual());
}

/// What the examples of the table give is as it says.
#[test]
fn the_table_tells_the_truth() {
    let text = include_str!("../../../grammar/extensions.md");
    for row in text.lines().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, _, _, _, _, _, example, gives] = cells[..] else {
            panic!("eight cells in {row}");
        };
        let mut code = example.split('`').skip(1).step_by(2);
        let mut definitions = format!("t.example = {}\n", code.next().expect("an example"));
        for definition in code {
            definitions.push_str(definition);
            definitions.push('\n');
        }
        match desc_of(&definitions, "own-fleet") {
            Ok(desc) => assert_eq!(describe(&desc), gives, "{example}"),
            Err(mistakes) => panic!("{example}: {mistakes}"),
        }
    }
}
