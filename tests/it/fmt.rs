//! `pmderive fmt` as its users see it: its effect on files, its output, and its exit status.
//!
//! `tests/fmt/untidy.conf` has something of everything; the snapshots beside
//! it hold its canonical forms.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

const UNTIDY: &str = include_str!("../fmt/untidy.conf");

/// Exit status, standard output, standard error.
type Run = (Option<i32>, String, String);

fn fmt(arguments: &[&str], directory: &Path, input: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .arg("fmt")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn good(out: &str) -> Run {
    (Some(0), out.to_owned(), String::new())
}

#[test]
fn a_file_with_something_of_everything() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fmt"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fmt");
        for (name, arguments) in [
            ("version_7", &["--stdout", "untidy.conf"][..]),
            ("version_6", &["--stdout", "--compat", "6.0", "untidy.conf"]),
            ("check", &["--check", "untidy.conf"]),
        ] {
            let (status, out, err) = fmt(arguments, &here, b"");
            let status = status.expect("an exit status");
            insta::assert_snapshot!(
                name,
                format!("{out}--- standard error\n{err}--- exit status {status}\n")
            );
        }
    });
}

#[test]
fn files_are_replaced_and_keep_what_is_theirs() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("conf/more")).expect("a directory");
    for name in ["conf/a.conf", "conf/more/b.conf", "target"] {
        fs::write(at(name), "a=b\n").expect("a file");
    }
    fs::write(at("conf/tidy.conf"), "a = b\n").expect("a file");
    let tidy = fs::metadata(at("conf/tidy.conf")).expect("a file");
    fs::set_permissions(at("conf/a.conf"), fs::Permissions::from_mode(0o640)).expect("ours");
    symlink("../target", at("conf/link.conf")).expect("a link");
    // A directory may hold scripts, too.
    fs::write(at("conf/run.sh"), "A=1\n").expect("a file");

    let fmt = |arguments: &[&str]| fmt(arguments, directory.path(), b"");
    let (status, diff, err) = fmt(&["--check", "conf"]);
    assert_eq!((status, &*err), (Some(1), ""));
    let heads: Vec<&str> = diff.lines().filter(|line| line.starts_with("--- ")).collect();
    assert_eq!(heads, ["--- conf/a.conf", "--- conf/more/b.conf"]);
    assert_eq!(fs::read_to_string(at("conf/a.conf")).expect("a file"), "a=b\n");

    assert_eq!(fmt(&["conf"]), good(""));
    for name in ["conf/a.conf", "conf/more/b.conf", "conf/tidy.conf"] {
        assert_eq!(fs::read_to_string(at(name)).expect("a file"), "a = b\n", "{name}");
    }
    for (name, text) in [("target", "a=b\n"), ("conf/run.sh", "A=1\n")] {
        assert_eq!(fs::read_to_string(at(name)).expect("a file"), text, "{name}");
    }
    // By its name a link is followed.
    assert_eq!(fmt(&["conf/link.conf"]), good(""));
    assert_eq!(fs::read_to_string(at("target")).expect("a file"), "a = b\n");
    let mode = |name| fs::metadata(at(name)).expect("a file").permissions().mode() & 0o7777;
    assert_eq!(mode("conf/a.conf"), 0o640);
    assert!(at("conf/link.conf").is_symlink());
    let modified = |metadata: fs::Metadata| metadata.modified().expect("a time");
    let now = fs::metadata(at("conf/tidy.conf")).expect("a file");
    assert_eq!(modified(now), modified(tidy), "nothing was to change");
    let entries = fs::read_dir(at("conf")).expect("a directory").count();
    assert_eq!(entries, 5, "no other file is left behind");
    assert_eq!(fmt(&["--check", "conf", "target"]), good(""));
}

#[test]
fn standard_input_is_printed() {
    let here = Path::new("/");
    assert_eq!(fmt(&["-"], here, b"a=b"), good("a = b\n"));
    assert_eq!(fmt(&["-"], here, b""), good(""));
    let (status, diff, err) = fmt(&["--check", "-"], here, b"a=b\n");
    assert_eq!((status, &*err), (Some(1), ""));
    assert!(diff.starts_with("--- <standard input>\t\n"), "{diff}");
    assert!(diff.ends_with("-a=b\n+a = b\n"), "{diff}");
    assert_eq!(fmt(&["--check", "-"], here, b"a = b\n"), good(""));
}

/// What fails with one file harms no other, and loses nothing.
#[test]
fn what_cannot_be_read_stays_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("latin"), b"a=b\na(oneline)=caf\xe9\n").expect("a file");

    fs::write(at("good"), "a=b\n").expect("a file");
    let arguments = ["latin", "none", "/dev/null", "good"];
    let (status, out, err) = fmt(&arguments, directory.path(), b"");
    assert_eq!((status, &*out), (Some(2), ""));
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), 2, "{err}");
    assert!(lines[0].starts_with("pmderive: cannot read none: No such file"), "{err}");
    assert_eq!(lines[1], "pmderive: cannot read /dev/null: neither a file nor a directory");
    // Bytes that are not UTF-8 are those of the user.
    assert_eq!(fs::read(at("latin")).expect("a file"), b"a = b\na(oneline) = caf\xe9\n");
    assert_eq!(fs::read(at("good")).expect("a file"), b"a = b\n");
    assert_eq!(fmt(&[], directory.path(), b"").0, Some(2));
}

/// The untidy file and its canonical form define the same.
#[test]
fn the_command_says_the_same_of_both_forms() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("c");
    let check = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmderive"));
        let command = command.args(["check", "--format", "json", "-c"]).arg(&file);
        let output = command.output().expect("the command runs");
        let found = String::from_utf8(output.stdout).expect("UTF-8");
        let found = found.lines().map(|line| {
            let found: serde_json::Value = serde_json::from_str(line).expect("JSON");
            found["message"].clone()
        });
        let summary = String::from_utf8(output.stderr).expect("UTF-8");
        (found.collect::<Vec<_>>(), summary.lines().last().map(str::to_owned))
    };
    // The one mistake that is mended: a line of blanks.
    fs::write(&file, UNTIDY.replace("\n \n", "\n\n")).expect("a file");
    let before = check();
    assert_eq!(before.0.len(), 1, "{before:?}");
    fmt(&["c"], directory.path(), b"");
    assert_ne!(fs::read_to_string(&file).expect("a file"), UNTIDY);
    assert_eq!(check(), before);
}
