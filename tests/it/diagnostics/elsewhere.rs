//! Notation of other languages that has another meaning here: the words of `check` about it,
//! without a source.

use crate::command;
use command::run;

/// What is certain from the text is told without a source.
#[test]
fn notation_of_other_languages_without_a_source() {
    for (text, advice) in [
        ("disk.dev.read[5m]", "leave it out"),
        ("disk.dev.read[\"vda\"]", "write `[vda]`"),
        ("disk.dev.read[$disk]", "definitions have no variables"),
        ("disk.dev.read[vda,vdb]", "matchinst(/^(vda|vdb)$/, disk.dev.read)"),
        ("disk.dev.read[vd*]", "matchinst(/^vd/, disk.dev.read)"),
        ("disk.dev.read[vd.*]", "matchinst(/^vd/, disk.dev.read)"),
        ("disk.dev.read[sd.*1]", "matchinst(/^sd.*1$/, disk.dev.read)"),
        ("disk.dev.read[.*]", "without brackets has all"),
        ("disk.dev.read > 2 ? true : 0", "write `1`"),
        ("disk.dev.read > 2 ? 1 : novalue", "did you mean `novalue()`?"),
        ("disk.dev.read > 2 ? 1 : null", "did you mean `novalue()`?"),
        ("novalue", "no value is a branch of `?:`"),
        ("disk.dev.read[/^sd/]", "write `matchinst(/^sd/, disk.dev.read)`"),
        ("disk.dev.read > inf", "name a number"),
    ] {
        let run = run(&["check", text]);
        assert!(run.err.contains("1 definition, 0 errors, 1 warning"), "{text}: {}", run.err);
        assert!(run.err.contains(advice), "{text}: {}", run.err);
    }
    // A window is advised, and not a constant with units, though the function is unknown.
    let run_of_window = run(&["check", "avg_over(kernel.all.load, 5min)"]);
    assert!(run_of_window.err.contains("write `\"5 min\"`"), "{}", run_of_window.err);
    for text in ["disk.dev.read[vda]", "disk.dev.read[1 minute]", "truth.rate"] {
        let run = run(&["check", text]);
        assert!(run.err.contains("1 definition, 0 errors\n"), "{text}: {}", run.err);
    }
}

/// A file of pmrep's has one mistake: it is no file of definitions.
#[test]
fn below_a_section_nothing_is_told() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("pmrep.conf");
    let text = "one = hinv.ncpu\n[vmstat]\nheader = yes\nx.label = , r\nhinv.ncpu = n,,,,3\n";
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("UTF-8");
    for source in [&[][..], &["-a", "tests/archives/own-fleet"]] {
        let run = run(&[&["check"], source, &[file]].concat());
        assert_eq!(run.err.matches("[PMD").count(), 1, "{}", run.err);
        assert!(run.err.contains("files of definitions have no sections"), "{}", run.err);
    }
}
