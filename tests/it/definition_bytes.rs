//! Definition files with bytes that are 0 or not UTF-8. libpcp's messages repeat these bytes
//! and count them as columns; pmderive's messages show their values.

use std::path::Path;
use std::process::{Command, Output};

use crate::side_by_side;
use side_by_side::tools_are_installed;

const ARCHIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives/own-fleet");

/// Lines that are accepted or refused, each by itself. None has the byte 0xff,
/// which libpcp takes for the end of a text, and which is as any other here.
const LINES: &[&[u8]] = &[
    b"by.operator = hinv.ncpu + \xc3 1",
    b"by.character = hinv.ncpu \xc3\xa9 + 1",
    b"by.word = hin.\xe4",
    b"by.private = \xf4\x8f\xbf\xbf + 1",
    b"by.tabs = \t\xe9\t+ 1",
    b"by.many = 1 + \xe9\xe9\xe9 +",
    b"by.units = mkconst(1, units=\"\xe9\")",
    b"by.type = mkconst(1, type=\"\xe9\")",
    b"by.rescale = rescale(hinv.ncpu, \"\xe9\")",
    b"by.pattern = matchinst(/\xe9(/, hinv.ncpu)",
    b"by.text = 1 + \"\xe4\" + 1",
    b"by.nul = 1\0 + 5",
    b"by.nul.name\0s = 2",
    b"by.nul.value =\0 2",
    b"\0by.nul.first = 2",
    b"by.nul.alone\0",
    b"by.extra = 1",
    b"by.extra(one\0line) = text",
    b"by.extra(helptext) = \"\xe9\" \xe8",
];

fn run(mut command: Command, file: &Path, arguments: &[&str]) -> Output {
    command
        .args(["-a", ARCHIVE])
        .args(arguments)
        .env("PCP_DERIVED_CONFIG", file)
        .env_remove("PCP_DERIVED_CONTROL")
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .output()
        .expect("it runs")
}

fn ours(command: &str, compat: &str) -> Command {
    let mut ours = Command::new(env!("CARGO_BIN_EXE_pmderive"));
    ours.args([command, "--compat", compat]);
    ours
}

#[test]
fn stray_bytes_are_told_as_pminfo_tells_them() -> std::io::Result<()> {
    if !tools_are_installed() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bytes.conf");
    std::fs::write(&file, [LINES.join(&b"\n"[..]), b"\n".to_vec()].concat())?;
    for asked in [&["-f", "by", "hinv.ncpu"][..], &["-d", "by.character"]] {
        let theirs = run(Command::new("pminfo"), &file, asked);
        let ours = run(ours("info", "6.0"), &file, asked);
        assert_eq!(ours.status, theirs.status);
        assert_eq!(ours.stdout, theirs.stdout, "{}", ours.stdout.escape_ascii());
        let lines = |bytes: &[u8]| -> Vec<String> {
            bytes.split(|byte| *byte == b'\n').map(|line| line.escape_ascii().to_string()).collect()
        };
        assert_eq!(lines(&ours.stderr), lines(&theirs.stderr));
        assert!(lines(&ours.stderr).len() > LINES.len());
    }
    // The same words of `check`, whose file has them all.
    let theirs = run(Command::new("pminfo"), &file, &["hinv.ncpu"]);
    let mut check = ours("check", "6.0");
    check.args(["--raw", "--diag", "pcp"]).arg(&file);
    let ours = check.args(["-a", ARCHIVE]).env("PCP_DERIVED_CONFIG", "").output()?;
    let said = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let (ours, theirs) = (said(&ours.stderr), said(&theirs.stderr));
    assert!(ours.starts_with(&theirs), "{ours}\n{theirs}");
    Ok(())
}

/// Ours name the byte, in the file's own columns and offsets.
#[test]
fn stray_bytes_are_shown_as_what_they_are() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bytes.conf");
    std::fs::write(&file, b"a = \"\xe9\" + \xff\nb = 1 + \xe9 2\n")?;
    let check = |options: &[&str]| {
        let mut check = Command::new(env!("CARGO_BIN_EXE_pmderive"));
        check.arg("check").args(options).arg(&file).current_dir(folder.path());
        let run = check.env("PCP_DERIVED_CONFIG", "").output().expect("it runs");
        assert_eq!(run.status.code(), Some(2));
        (String::from_utf8(run.stdout).expect("UTF-8"), String::from_utf8(run.stderr))
    };
    let (_, drawn) = check(&[]);
    let drawn = drawn.expect("UTF-8");
    for line in ["the byte 0xff is not UTF-8", " 1 │ a = \"\\xe9\" + \\xff", " 2 │ b = 1 + \\xe9 2"]
    {
        assert!(drawn.contains(line), "{line}\n{drawn}");
    }
    assert!(drawn.contains("bytes.conf:2:9 ]"), "{drawn}");
    let (json, _) = check(&["--format", "json"]);
    assert!(json.contains("\"span\":[20,21],\"line\":2,\"column\":9,"), "{json}");
    Ok(())
}

/// A NUL is a mistake of its line and of no other.
#[test]
fn a_nul_is_shown_where_it_is() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("nul.conf");
    std::fs::write(&file, b"# a comment\0\na.b = 1\0 + 5\na.c = hinv.ncpu\nd\0e = 1\na.f = 2\n")?;
    let mut check = Command::new(env!("CARGO_BIN_EXE_pmderive"));
    check.args(["check", "-a", ARCHIVE]).arg(&file).env("PCP_DERIVED_CONFIG", "");
    let run = check.output()?;
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    for place in ["nul.conf:2:8 ]", "nul.conf:4:2 ]"] {
        assert!(said.contains(place), "{place}\n{said}");
    }
    assert!(said.ends_with("4 definitions, 2 errors\n"), "{said}");
    Ok(())
}
