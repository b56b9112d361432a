//! What the table for users says, and that nothing of it is there without the switch.

use pmderive::check::describe;
use pmderive::check::typed::Desc;
use pmderive::diag::Code;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Engine, Registered};
use pmderive::syntax::SIGNATURES;

use crate::shared::{EXTENDED, archive, read};

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
    for row in &SIGNATURES {
        let (registry, _, diagnostics) =
            read(&format!("t.a = {}\n", row.example), Dialect::Fixed.into());
        assert!(registry.get("t.a").is_none(), "{}", row.name);
        let help: Vec<_> = diagnostics.iter().filter_map(|one| one.help.as_deref()).collect();
        assert_eq!(help, [format!("`{}()` needs --extensions", row.name)]);
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

/// and each function has a row.
#[test]
fn the_table_tells_the_truth() {
    let text = include_str!("../../grammar/extensions.md");
    let mut forms = Vec::new();
    for row in text.lines().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [form, _, _, _, _, _, example, gives] = cells[..] else {
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
        forms.extend(form.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    for row in &SIGNATURES {
        assert!(forms.iter().any(|form| form == row.usage), "no row for {}", row.usage);
    }
}
