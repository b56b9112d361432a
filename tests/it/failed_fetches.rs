//! Fetches from an archive that fail as a whole. Like pmval(1), `val` prints one message behind
//! an empty line, and ends with status 1.
//!
//! The archives are those of PCP's own test suite (its script 317).

use std::path::Path;
use std::process::Command;

use crate::command;
use command::{Run, finished, pmderive};

const FOLDER: &str = "/var/lib/pcp/testsuite/badarchives";

/// An archive, a metric, and whether rows beyond those of pmval, without
/// values, come first: libpcp fails as soon as it looks as far as the damage.
const CASES: &[(&str, &str, bool)] = &[
    ("logsummary-bug", "kernel.all.cpu.wait.total", false),
    ("logsummary-bug", "qa", false),
    ("archive-20141125-000009", "mem.freemem", true),
    ("archive-20141125-000009", "mem.util.free", true),
    ("archive-20141125-000009", "mem.util.swapTotal", true),
];

fn run_of(mut command: Command, definitions: &Path, archive: &str, metric: &str) -> Run {
    command.args(["-z", "-a", archive, metric]).current_dir(FOLDER);
    command.env("PCP_DERIVED_CONFIG", definitions).env("TZ", "UTC");
    finished(command.output().expect("it runs"))
}

#[test]
fn val_ends_where_pmval_does() {
    let is_installed = Path::new("/usr/bin/pmval").exists() && Path::new(FOLDER).exists();
    if !is_installed {
        assert!(std::env::var_os("CI").is_none(), "PCP or its test suite is not installed");
        eprintln!("NOT RUN: PCP or its test suite is not installed (tests/real-pcp install)");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let definitions = folder.path().join("qa.conf");
    std::fs::write(&definitions, "qa = kernel.all.cpu.wait.total + kernel.all.cpu.wait.total\n")
        .expect("it is written");
    for (archive, metric, has_more) in CASES {
        let theirs = run_of(Command::new("pmval"), &definitions, archive, metric);
        let failure = "\npmval: pmFetch: Corrupted record in a PCP archive log\n";
        assert_eq!((theirs.status, theirs.err.as_str()), (Some(1), failure), "{archive} {metric}");
        let ours = pmderive(&["val", "--compat", "6.0"]);
        let ours = run_of(ours, &definitions, archive, metric);
        assert_eq!((ours.status, &ours.err), (theirs.status, &theirs.err), "{archive} {metric}");
        let more = ours.out.strip_prefix(&theirs.out).expect("what pmval prints");
        let are_empty = more.lines().all(|line| line.ends_with("  No values available"));
        assert!(are_empty && *has_more != more.is_empty(), "{archive} {metric}: {more}");
        // Without the dialect the same is said in words of its own, with the place.
        let plain = run_of(pmderive(&["val"]), &definitions, archive, metric);
        assert_eq!(plain.status, Some(1), "{archive} {metric}: {}", plain.err);
        let told = plain.err.matches("Corrupted record in a PCP archive").count();
        assert_eq!(told, 1, "{archive} {metric}: {}", plain.err);
    }
}
