//! Turns the grammars of this directory into parsers in `OUT_DIR`.

fn main() {
    println!("cargo::rerun-if-changed=grammar/derive.lalrpop");
    println!("cargo::rerun-if-changed=grammar/build.rs");
    lalrpop::Configuration::new()
        .set_in_dir("grammar")
        .emit_rerun_directives(false)
        .process()
        .expect("the grammar is well-formed and OUT_DIR is writable");
}
