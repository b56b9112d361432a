//! Compressed archives: the limit of their expansion, and the message if expansion fails for a
//! reason outside of the archive.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use command::{Run, finished, pmderive};

const FLEET: &str = "tests/archives/own-fleet";

/// A folder with the archive `a`, compressed by a program; `None` where that is
/// not installed.
fn compressed(program: &str, suffix: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("a");
    for kind in ["0", "index", "meta"] {
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join(FLEET).with_extension(kind);
        let Ok(made) = Command::new(program).arg("-9c").arg(original).output() else {
            let required = std::env::var("CI").is_ok_and(|value| value == "true");
            assert!(!required, "{program} is not installed");
            eprintln!("SKIPPED: {program} is not installed");
            return None;
        };
        let file = folder.path().join(format!("a.{kind}.{suffix}"));
        std::fs::write(file, made.stdout).expect("there is room");
    }
    Some((folder, archive))
}

/// Prints a sample of an archive.
fn command(archive: &Path, more: &[&str]) -> Command {
    let archive = archive.to_str().expect("UTF-8");
    pmderive(&[&["eval", "-a", archive, "-s", "1", "hinv.ncpu"], more].concat())
}

fn evaluated(mut command: Command) -> Run {
    finished(command.output().expect("the command runs"))
}

#[test]
fn a_limit_that_is_given() {
    let Some((_folder, archive)) = compressed("gzip", "gz") else { return };
    assert_eq!(evaluated(command(&archive, &[])).status, Some(0));
    assert_eq!(evaluated(command(&archive, &["--max-expanded", "1Mb"])).status, Some(0));
    let run = evaluated(command(&archive, &["--max-expanded", "100kb"]));
    assert_eq!(run.status, Some(3), "{}", run.out);
    let expected = "a.0.gz: at byte ";
    assert!(run.err.contains(expected), "{}", run.err);
    assert!(run.err.contains("it expands to more than the 102400 bytes allowed"), "{}", run.err);
    let scan = ["archive", "--scan", "--max-expanded", "100kb", archive.to_str().expect("UTF-8")];
    let run = evaluated(pmderive(&scan));
    assert!(run.err.contains("more than the 102400 bytes allowed"), "{}", run.err);
    let run = evaluated(command(&archive, &["--max-expanded", "100"]));
    assert_eq!(run.status, Some(2));
}

#[test]
fn no_folder_for_temporary_files() {
    let Some((_folder, archive)) = compressed("gzip", "gz") else { return };
    let mut command = command(&archive, &[]);
    command.env("PCP_TMPFILE_DIR", "/none/pcp").env("TMPDIR", "/none/other");
    let run = evaluated(command);
    assert_eq!(run.status, Some(3), "{}", run.out);
    let expected = "no temporary file can be made in /none/pcp (from PCP_TMPFILE_DIR) or in \
                    /none/other: No such file or directory";
    assert!(run.err.contains(expected), "{}", run.err);
}

/// However little memory there is, nothing is said against the archive: the
/// limit grows until there is enough of it, in steps smaller than what the
/// program asks for.
#[test]
fn too_little_memory() {
    let Some((_folder, archive)) = compressed("bzip2", "bz2") else { return };
    let command = command(&archive, &["--backend", "interp"]);
    let arguments: Vec<String> =
        command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let mut told = 0;
    for kilobytes in (10_000..1_000_000).step_by(1500) {
        let script = format!(
            "ulimit -v {kilobytes}; exec {:?} {}",
            command.get_program(),
            arguments.join(" ")
        );
        let limited = Command::new("bash")
            .args(["-c", &script])
            .env("PCP_DERIVED_CONFIG", "")
            .output()
            .expect("bash");
        let run = finished(limited);
        told += usize::from(run.err.contains("there is too little memory for bzip2"));
        assert!(!run.err.contains("invalid data"), "{kilobytes}: {}", run.err);
        if run.status == Some(0) {
            assert!(told > 0, "{kilobytes} kilobytes are enough at once");
            return;
        }
    }
    panic!("there was never enough memory");
}
