//! README.md shows the example `rates` unchanged, and its output.

#[path = "../examples/rates.rs"]
#[allow(dead_code)]
mod rates;

/// The first block of a language behind a heading.
fn block(heading: &str, language: &str) -> &'static str {
    let (_, rest) = include_str!("../README.md").split_once(heading).expect("the heading");
    let (_, rest) = rest.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("its end").0
}

#[test]
fn the_program_is_the_example() {
    assert_eq!(block("## A program", "rust"), include_str!("../examples/rates.rs"));
}

#[test]
fn the_transcript_is_what_the_program_prints() {
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/archives/own-fleet");
    let context = pmderive_runtime::context::Context::archive(archive).expect("opened");
    let printed = rates::rates(context).expect("rates");
    assert_eq!(block("## A program", "text"), printed, "{printed}");
}
