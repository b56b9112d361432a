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
        ("disk.dev.read > 2 ? 1 : novalue", "write `novalue()`"),
        ("disk.dev.read > inf", "name a number"),
    ] {
        let run = run(&["check", text]);
        assert!(run.err.contains("1 definition, 0 errors, 1 warning"), "{text}: {}", run.err);
        assert!(run.err.contains(advice), "{text}: {}", run.err);
    }
    for text in ["disk.dev.read[vda]", "disk.dev.read[1 minute]", "truth.rate"] {
        let run = run(&["check", text]);
        assert!(run.err.contains("1 definition, 0 errors\n"), "{text}: {}", run.err);
    }
}
