//! Messages about wrong definitions over a fleet.

use pmderive::diag::render::{Style, render};
use pmderive::runtime::model::{Semantics, ValueType};

use super::fleet::{aggregates, computed, exported, read, schema};

#[test]
fn mistakes_in_definitions_over_a_fleet() {
    let text = include_str!("../../extensions/fleet.conf");
    let exports = ["shop.rate", "shop.name", "shop.size"];
    let (definitions, sources, mut diagnostics) = read(text, &exports);
    let mut fleet = aggregates(&definitions.into());
    assert!(fleet.evaluation.diagnostics().is_empty(), "nothing is known of hosts yet");
    fleet.announce(&schema([
        exported("shop.name", ValueType::String, Semantics::Discrete, ""),
        exported("shop.rate", ValueType::F64, Semantics::Instant, "count / sec"),
        exported("shop.size", ValueType::U64, Semantics::Instant, "byte"),
    ]));
    diagnostics.extend(fleet.evaluation.diagnostics().iter().cloned());
    diagnostics.sort();
    let shown = diagnostics.iter().map(|one| render(one, &sources, Style::Plain));
    let shown: Vec<String> = shown.collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/extensions"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("fleet", shown.join("\n")));
}

#[test]
fn definitions_are_the_same_if_they_mean_the_same() {
    let of = |text: &str| read(text, &["a", "b"]).0;
    let one = of("f.x = sum(a) by (rack) / 2\n");
    assert!(one.is_same(&of("# moved\n\nf.x = sum( a ) by (rack)/2\n")));
    for other in ["f.x = sum(a) by (dc) / 2\n", "f.x = sum(b) by (rack) / 2\n", "f.y = 1\n"] {
        assert!(!one.is_same(&of(other)), "{other}");
    }
    let rates = of("f.x = rate(sum(a) by (rack)) + f.y\nf.y = delta(f.z)\nf.z = count(b)\n");
    assert_eq!(
        computed(&rates, "f.x"),
        "rate(sum(a) by (rack)) * unchanged members of sum(a) by (rack) + f.y"
    );
    assert_eq!(computed(&rates, "f.y"), "delta(f.z) * unchanged members of count(b)");
}
