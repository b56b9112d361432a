//! Definition files as arguments: which arguments are files, and what happens to unreadable
//! ones. No mistake in them is lost, not even if the output has no reader.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::command;
use command::{Run, finished, pmderive, run};

const SHOP: &str = "tests/cli/shop.conf";
const MISTAKES: &str = "tests/cli/mistakes.conf";
const TYPES: &str = "tests/archives/own-types";

/// The last line on standard error.
fn summary(run: &Run) -> &str {
    run.err.lines().last().unwrap_or_default()
}

#[test]
fn files_names_and_expressions() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    std::fs::create_dir(at("below")).expect("a folder");
    for (name, text) in [("good.conf", "a.b = 1\n"), ("bad", "a = (\n"), ("below/c", "c.d = 2\n")] {
        std::fs::write(at(name), text).expect("a file");
    }
    std::fs::write(at("named"), "x.conf = 1\n").expect("a file");
    let check = |arguments: &[&str]| {
        let mut command = pmderive(&[&["check"], arguments].concat());
        finished(command.current_dir(&folder).output().expect("the command runs"))
    };
    for (arguments, status, expected) in [
        (&["good.conf"][..], 0, "1 definition, 0 errors"),
        (&["./good.conf"], 0, "1 definition, 0 errors"),
        (&["good.conf", "below/", "d.e * 2"], 0, "3 definitions, 0 errors"),
        // An existing file, and one that cannot be anything else.
        (&["bad"], 2, "1 definition, 1 error"),
        (&["./bad"], 2, "1 definition, 1 error"),
        (&["nosuch.conf"], 2, "0 definitions, 1 error"),
        (&["./nosuch"], 2, "0 definitions, 1 error"),
        (&[&at("nosuch")], 2, "0 definitions, 1 error"),
        (&["nosuch"], 0, "1 definition, 0 errors"),
        // A folder is no metric, even if it could be the name of one.
        (&["below"], 0, "1 definition, 0 errors"),
        (&["."], 2, "4 definitions, 1 error"),
        (&["./below"], 0, "1 definition, 0 errors"),
        (&["./below/"], 0, "1 definition, 0 errors"),
        (&["-e", "below"], 0, "1 definition, 0 errors"),
        (&["nosuch/"], 2, "1 definition, 1 error"),
        (&["-e", "good.conf"], 0, "1 definition, 0 errors"),
        (&["-e", "bad", "-e", "-a.b"], 0, "2 definitions, 0 errors"),
        // A name that is defined is no file.
        (&["-c", "named", "x.conf"], 0, "1 definition, 0 errors"),
        (&["named", "x.conf"], 2, "1 definition, 1 error"),
        (&["-c", "good.conf", "./good.conf"], 2, "1 definition, 1 error"),
    ] {
        let run = check(arguments);
        assert_eq!((run.status, summary(&run)), (Some(status), expected), "{arguments:?}");
    }
    let lost = check(&["nosuch.conf"]).err;
    assert!(lost.starts_with("[PMD0035] Error: cannot read nosuch.conf: No such file"), "{lost}");
}

#[test]
fn metrics_that_a_file_needs() {
    let deps = run(&["deps", SHOP]);
    let all = "disk.dev.total\ndisk.dev.total_bytes\nmem.physmem\n";
    assert_eq!((deps.status, &*deps.out, &*deps.err), (Some(0), all, ""));
    let deps = run(&["deps", "-c", SHOP, "shop.memory"]);
    assert_eq!((deps.status, &*deps.out), (Some(0), "mem.physmem\n"));
    let deps = run(&["deps", SHOP, "shop.memory", "a.b * 2"]);
    assert_eq!((deps.status, deps.out), (Some(0), format!("a.b\n{all}")));
    let deps = run(&["deps", "nosuch.conf"]);
    assert_eq!((deps.status, &*deps.out), (Some(2), ""));
    let deps = run(&["deps", "-e", "nosuch.conf"]);
    assert_eq!((deps.status, &*deps.out), (Some(0), "nosuch.conf\n"));
}

/// Of two definitions of a name that of an argument counts, not the system's.
#[test]
fn files_come_before_those_of_the_system() {
    let mut command = pmderive(&["check", "-c", SHOP, "tests/tools/needs.conf"]);
    let run = finished(command.env("PCP_DERIVED_CONFIG", SHOP).output().expect("it runs"));
    assert_eq!(run.status, Some(0), "{}", run.err);
    let run = finished(
        pmderive(&["check", SHOP]).env("PCP_DERIVED_CONFIG", SHOP).output().expect("it runs"),
    );
    assert_eq!((run.status, summary(&run)), (Some(0), "3 definitions, 0 errors"));
}

#[test]
fn standard_input_and_pipes() {
    for arguments in [&["check", "-"][..], &["check", "-c", "/dev/stdin"], &["check", "/dev/stdin"]]
    {
        let mut child = pmderive(arguments)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(b"a.b = 1\na.c = (\n").expect("it reads");
        drop(input);
        let run = finished(child.wait_with_output().expect("it ends"));
        assert_eq!((run.status, summary(&run)), (Some(2), "2 definitions, 1 error"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let name = fifo.to_str().expect("UTF-8").to_owned();
    let writer = std::thread::spawn(move || std::fs::write(fifo, "a.b = 1\n"));
    let run = run(&["check", "-c", &name]);
    writer.join().expect("it ends").expect("all is read");
    assert_eq!((run.status, summary(&run)), (Some(0), "1 definition, 0 errors"));
}

#[test]
fn paths_that_lead_nowhere_are_told() {
    let list = |text: &str| text.replace("SHOP", SHOP);
    for (paths, status, expected) in [
        ("", 2, "[PMD0035] Error: an empty path stands for no file\n"),
        (":SHOP", 2, "[PMD0035] Error: an empty path stands for no file\n"),
        ("SHOP::", 2, "[PMD0035] Error: an empty path stands for no file\n"),
        ("SHOP:", 0, "[PMD0035] Warning: an empty path at the end of a list stands for no file\n"),
        ("SHOP:nosuch", 2, "[PMD0035] Error: cannot read nosuch: No such file"),
    ] {
        let run = run(&["check", "-c", &list(paths)]);
        assert_eq!(run.status, Some(status), "{paths}: {}", run.err);
        assert!(run.err.starts_with(expected), "{paths}: {}", run.err);
    }
    // Nobody's mistake that this user could mend.
    let mut command = pmderive(&["eval", "-a", TYPES, "-s", "1", "s.i.i32"]);
    let command = command.env("PCP_DERIVED_CONFIG", list("nosuch:SHOP:"));
    let run = finished(command.output().expect("the command runs"));
    assert_eq!(run.status, Some(0), "{}", run.err);
    let expected = "pmderive: warning: definitions for every client: cannot read nosuch: No such";
    assert!(run.err.starts_with(expected), "{}", run.err);
}

/// A misspelt name and an empty directory are not a good check of nothing.
#[test]
fn what_has_no_definitions_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("defs/good.conf", "a.b = 1\n"), ("tests/t.toml", ""), ("empty/.old", "")]
    {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let nothing = "no definition file is below this directory";
    for (command, argument, status, told) in [
        ("check", "defs", 0, "1 definition, 0 errors"),
        ("check", "defs/good", 2, "cannot read defs/good: No such file"),
        ("deps", "defs/good", 2, "cannot read defs/good: No such file"),
        // No directory has that name.
        ("check", "def/good", 0, "1 definition, 0 errors"),
        ("check", "defs/good * 2", 0, "1 definition, 0 errors"),
        ("check", "tests", 2, nothing),
        ("check", "empty", 2, nothing),
        ("deps", "empty", 2, nothing),
        ("fmt", "empty", 2, nothing),
    ] {
        let mut command = pmderive(&[command, argument]);
        let run = finished(command.current_dir(folder.path()).output().expect("it runs"));
        assert_eq!(run.status, Some(status), "{argument}: {}", run.err);
        assert!(run.err.contains(told), "{argument}: {}", run.err);
    }
    // A search path may hold nothing.
    let empty = folder.path().join("empty");
    let run = run(&["check", "-c", empty.to_str().expect("UTF-8")]);
    assert_eq!(run.status, Some(0), "{}", run.err);
}

/// Where no files are taken, none is read as an expression.
#[test]
fn commands_that_take_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("R");
    let target = target.to_str().expect("UTF-8");
    let message = "pmderive: `shop.conf` looks like a definition file: give it as `-c shop.conf`\n";
    for (command, status) in [
        (&["eval"][..], 2),
        (&["explain"], 2),
        (&["export"], 2),
        (&["record", "-o", target], 2),
        (&["info"], 1),
        (&["val"], 1),
        (&["probe"], 1),
    ] {
        let run = run(&[command, &["-a", TYPES, "shop.conf"]].concat());
        assert_eq!((run.status, &*run.out, &*run.err), (Some(status), "", message), "{command:?}");
    }
    assert!(folder.path().read_dir().expect("a folder").next().is_none());
    // PCP's own tools know no better.
    let run = run(&["info", "--compat", "6.0", "-a", TYPES, "shop.conf"]);
    assert_eq!(run.err, "Error: shop.conf: Unknown metric name\n");
}

/// Its definitions would otherwise count as defined twice.
#[test]
fn a_file_beside_its_directory_is_read_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["defs", "more"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    for (name, text) in
        [("defs/one", "a.b = 1\n"), ("defs/two", "c.d = 2\n"), ("more/three", "e.f = 3\n")]
    {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let link = folder.path().join("more/link");
    std::os::unix::fs::symlink("../defs/one", link).expect("a link");
    for (arguments, told) in [
        (&["defs/one", "./defs"][..], "2 definitions, 0 errors"),
        (&["defs", "defs/one", "defs/two"], "2 definitions, 0 errors"),
        (&["defs", "more"], "3 definitions, 0 errors"),
        (&["defs/two", "defs/two"], "1 definition, 0 errors"),
    ] {
        let mut command = pmderive(&[&["check"], arguments].concat());
        let run = finished(command.current_dir(&folder).output().expect("it runs"));
        assert_eq!((run.status, summary(&run)), (Some(0), told), "{arguments:?}");
    }
}

#[test]
fn an_archive_among_expressions_is_refused() {
    let message =
        format!("pmderive: `{TYPES}` is the path of an archive: give it as `-a {TYPES}`\n");
    for (command, status) in [("eval", 2), ("explain", 2), ("export", 2), ("info", 1)] {
        let run = run(&[command, "-a", TYPES, TYPES]);
        assert_eq!((run.status, &*run.err), (Some(status), &*message), "{command}");
    }
}

#[test]
fn a_name_with_the_ending_of_a_file() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "x.conf = 7\n").expect("a file");
    let config = file.path().to_str().expect("UTF-8");
    let run = run(&["eval", "-a", TYPES, "-s", "1", "--format", "csv", "-c", config, "x.conf"]);
    assert_eq!(run.status, Some(0), "{}", run.err);
    assert!(run.out.ends_with(",7\n"), "{}", run.out);
}

/// Each command line with the status that it has to have.
const KNOWN: &[(&[&str], i32)] = &[
    (&["check", "--format", "json", MISTAKES], 2),
    (&["check", "--format", "json", SHOP], 0),
    (&["test", "tests/unit_tests/shop.toml", "tests/unit_tests/nosuch.toml"], 2),
    (&["test", "tests/unit_tests/shop.toml"], 0),
    (&["fmt", "--check", "tests/fmt/untidy.conf"], 2),
    (&["fmt", "--stdout", MISTAKES], 2),
    (&["deps", MISTAKES], 2),
    (&["explain", "-a", TYPES, "s.i.i32 + nosuch"], 2),
    (&["eval", "-a", TYPES, "-s", "1", "nosuch"], 1),
    (&["eval", "-a", TYPES, "--format", "csv", "nosuch"], 1),
    (&["eval", "-a", TYPES, "-c", MISTAKES, "s.i.i32"], 2),
    (&["eval", "-a", TYPES, "s.i.i32"], 0),
    (&["export", "-a", TYPES, "nosuch"], 1),
    (&["export", "-a", TYPES, "-c", MISTAKES, "s.i.i32"], 2),
    (&["info", "-a", TYPES, "nosuch", "s"], 1),
    (&["archive", TYPES], 0),
];

#[test]
fn a_closed_output_does_not_hide_what_went_wrong() {
    for (arguments, status) in KNOWN {
        assert_eq!(run(arguments).status, Some(*status), "{arguments:?}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let closed = pmderive(arguments).stdout(writer).stderr(Stdio::null()).status();
        let closed = closed.expect("the command runs");
        assert_eq!(closed.code(), Some(*status), "{arguments:?}, output closed");
    }
}
