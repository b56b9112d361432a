//! `info`, `probe` and `val` report mistakes in definitions at the same time and in the same
//! words as PCP's tools. Both outputs and the exit status are compared byte for byte.
//!
//! Files of mistakes are in the folder with the name of this test.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::side_by_side;
use side_by_side::{Printed, first_difference, tools_are_installed};

const ARCHIVE: &str = "../archives/own-fleet";

/// Options for the definitions: the system's, and those of the command line,
/// which have a short form in pminfo only.
const DEFINITIONS: &[(&str, &[&str])] = &[
    ("", &["own.conf"]),
    ("system.conf", &[]),
    ("system.conf", &["own.conf"]),
    ("system.conf", &["own.conf", "own.conf"]),
    ("own.conf:system.conf", &["system.conf"]),
    ("own.conf:own.conf", &[]),
    // A path of the system's that is missing is no mistake to libpcp, one of
    // the command line ends its list.
    ("nosuch.conf:system.conf::nosuch", &[]),
    ("system.conf:", &["own.conf:"]),
    ("system.conf", &["nosuch.conf"]),
    ("system.conf", &["own.conf:nosuch.conf:own.conf"]),
    ("", &["own.conf::own.conf"]),
    ("", &[":own.conf"]),
    ("own.conf:lines.conf", &[""]),
    ("", &["own.conf", "lines.conf"]),
];

/// A tool and what it is asked for.
const QUESTIONS: &[(&str, &[&str])] = &[
    ("pminfo", &[]),
    ("pminfo", &["own"]),
    ("pminfo", &["-d"]),
    ("pminfo", &["-t", "own", "sys"]),
    ("pminfo", &["-df", "own", "sys"]),
    ("pminfo", &["-f", "own.missing", "own.counter", "own.string", "own.counter", "own", "sys"]),
    ("pminfo", &["-v", "sys.counter", "nosuch", "own.node", "own.node.leaf"]),
    ("pminfo", &["-m", "hinv.ncpu", "own.text", "own.nested", "own.branches"]),
    ("pminfo", &["-dm", "511.0.1", "511.0.3", "511.0.4", "511.0.5", "511.0.4", "511.0.99"]),
    ("pminfo", &["-d", "60.1", "own.domains", "60.1", "own.domains"]),
    ("pmprobe", &[]),
    ("pmprobe", &["own.counter", "hinv.ncpu", "own.missing", "own.good"]),
    ("pmprobe", &["-f", "own.good", "own.counter", "own.missing", "nosuch"]),
    ("pmprobe", &["-v"]),
    ("pmprobe", &["-v", "own", "sys"]),
    ("pmprobe", &["-i", "own.counter", "own.missing", "sys.counter"]),
    ("pmval", &["-s", "2", "own.good"]),
    ("pmval", &["own.counter"]),
    ("pmval", &["own.missing"]),
    ("pmval", &["sys.counter"]),
    ("pmval", &["own.text"]),
    ("pmval", &["-s", "1", "hinv.ncpu"]),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definition_mistakes")
}

/// Runs a tool where the files of mistakes are.
fn run(mut command: Command, system: &str, arguments: &[&str]) -> Printed {
    let run = command
        .args(arguments)
        .current_dir(folder())
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .env("PCP_DERIVED_CONFIG", system)
        .env("PCP_INDOM_CONFIG", "")
        .env_remove("PCP_DERIVED_CONTROL")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Printed { status: run.status.code(), out: text(run.stdout), err: text(run.stderr) }
}

fn ours(tool: &str, compat: &str) -> Command {
    let mut ours = Command::new(env!("CARGO_BIN_EXE_pmderive"));
    ours.args([tool.strip_prefix("pm").expect("a tool's name"), "--compat", compat]);
    ours
}

#[test]
fn mistakes_are_told_as_the_installed_tools_tell_them() {
    if !tools_are_installed() {
        return;
    }
    let (mut differences, mut told) = (Vec::new(), 0);
    for (system, configs) in DEFINITIONS {
        for (tool, asked) in QUESTIONS {
            let option = if *tool == "pminfo" { "-c" } else { "--derived" };
            let mut arguments = vec!["-a", ARCHIVE];
            configs.iter().for_each(|config| arguments.extend([option, config]));
            arguments.extend(*asked);
            let theirs = run(Command::new(tool), system, &arguments);
            let ours = run(ours(tool, "6.0"), system, &arguments);
            told += usize::from(!theirs.err.is_empty());
            if theirs == ours {
                continue;
            }
            differences.push(format!(
                "PCP_DERIVED_CONFIG={system} {tool} {arguments:?}: {:?}, but {:?}\n{}\n{}",
                ours.status,
                theirs.status,
                first_difference(&ours.out, &theirs.out),
                first_difference(&ours.err, &theirs.err),
            ));
        }
    }
    assert!(differences.is_empty(), "{}\n{}", differences.len(), differences.join("\n"));
    assert!(told > 150, "{told}");
}

/// Runs a command of ours in a dialect, and gives exit status and standard error.
fn told(tool: &str, compat: &str, system: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let printed = run(ours(tool, compat), system, &[&["-a", ARCHIVE], arguments].concat());
    (printed.status, printed.err)
}

/// The codes of our own diagnostics, in their order.
fn codes(err: &str) -> Vec<&str> {
    err.lines().filter_map(|line| line.strip_prefix("[PMD")?.split(']').next()).collect()
}

/// Without `--compat` everything is told once, in our words; mistakes in a file
/// that the user has named make the exit status.
#[test]
fn mistakes_are_told_once_in_our_words() {
    // Codes, their order and the status.
    let of_system = ["0033", "0011", "0032", "0033", "0030"];
    let of_own = ["0012", "0033", "0033"];
    let of_meaning = ["0202", "0200", "0100", "0204", "0102", "0200", "0100", "0203", "0100"];
    let with = |rest: &[&[&'static str]]| rest.concat();
    for (tool, system, arguments, expected, status) in [
        // What the system has is told, but the user is not to blame.
        ("pminfo", "system.conf", &["hinv.ncpu"][..], with(&[&of_system]), 0),
        ("pminfo", "nosuch:system.conf", &["sys.good"], with(&[&of_system]), 0),
        // Operands that are missing here are told if someone asks for the metric.
        ("pminfo", "system.conf", &["sys"], with(&[&of_system, &["0202"]]), 0),
        ("pmprobe", "system.conf", &["sys"], with(&[&of_system, &["0202"]]), 0),
        ("pminfo", "system.conf", &["sys.missing"], with(&[&of_system, &["0100"]]), 1),
        ("pmprobe", "system.conf", &["sys.missing"], with(&[&of_system, &["0100"]]), 0),
        ("pmval", "system.conf", &["sys.missing"], with(&[&of_system, &["0100"]]), 1),
        // What the user has.
        ("pminfo", "", &["-c", "own.conf", "own.good"], with(&[&of_own]), 1),
        ("pmval", "", &["-c", "own.conf", "-s", "1", "own.good"], with(&[&of_own]), 1),
        ("pmprobe", "", &["-c", "own.conf", "own"], with(&[&of_own, &of_meaning]), 1),
        ("pminfo", "", &["-c", "own.conf", "own"], with(&[&of_own, &of_meaning]), 1),
        ("pminfo", "", &["-c", "own.conf", "own", "own", "own"], with(&[&of_own, &of_meaning]), 1),
        ("pminfo", "", &["-c", "own.conf", "-f"], with(&[&of_own, &["0103"], &of_meaning]), 1),
        ("pminfo", "", &["-c", "nosuch", "hinv.ncpu"], with(&[&["0035"]]), 1),
        ("pmprobe", "", &["-c", "nosuch", "hinv.ncpu"], with(&[&["0035"]]), 1),
        ("pmval", "", &["-c", "nosuch:", "-s", "1", "hinv.ncpu"], with(&[&["0035", "0035"]]), 1),
    ] {
        let (given, err) = told(tool, "off", system, arguments);
        let mut codes = codes(&err);
        let mut expected = expected;
        // The order is that of the texts, those that cannot be read included.
        codes.sort_unstable();
        expected.sort_unstable();
        assert_eq!(codes, expected, "{tool} {system} {arguments:?}\n{err}");
        assert_eq!(given, Some(status), "{tool} {system} {arguments:?}\n{err}");
    }
    // A definition of one's own in place of the system's is no mistake.
    let (status, err) = told("pminfo", "off", "system.conf", &["-c", "own.conf", "sys.good"]);
    assert_eq!(status, Some(1));
    assert!(!err.contains("system.conf:3"), "{err}");
    let (status, err) = told("pminfo", "off", "nosuch", &["hinv.ncpu"]);
    assert_eq!(status, Some(0));
    let warning = "pmderive: warning: definitions for every client: cannot read nosuch: ";
    assert!(err.starts_with(warning), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

/// What version 7.2 says that 6.0 does not, or says at another time.
#[test]
fn mistakes_are_told_as_version_7_tells_them() {
    let semantic =
        |name: &str, text: &str| format!("Semantic error: derived metric {name}: operand {text}\n");
    let missing = semantic("own.missing", "disk.dev.totl: Unknown operand metric");
    let nested = semantic("own.nested", "own.good: Illegal nested derived metric");
    let branch = semantic("own.branches", "no.such.metric: Unknown metric for ternary expression");
    let unknown = |name: &str| format!("Error: {name}: Unknown metric name\n");
    for (tool, asked, expected) in [
        ("pminfo", &["own.missing"][..], [missing.clone(), unknown("own.missing")].concat()),
        (
            "pminfo",
            &["own.nested", "own.good", "own.nested"],
            [nested.clone(), unknown("own.nested"), unknown("own.nested")].concat(),
        ),
        ("pmprobe", &["own.branches", "own.nested"], [branch.clone(), nested].concat()),
        // The metric of the source counts, and nothing is said.
        ("pminfo", &["-d", "hinv.ncpu"], String::new()),
    ] {
        let (_, err) = told(tool, "7.2", "", &[&["-c", "own.conf"], asked].concat());
        let (_, of_text) = told(tool, "7.2", "", &["-c", "own.conf", "mem.physmem"]);
        let err = err.strip_prefix(&*of_text).expect("what is wrong with the text comes first");
        assert_eq!(err, expected, "{tool} {asked:?}");
    }
}

/// Options of the environment and of `#control` lines; version 6.0 knows none.
#[test]
fn mistakes_in_options_are_told_as_version_7_tells_them() {
    let run = |compat: &str, controls: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmderive"));
        command
            .args(["info", "--compat", compat, "-a", ARCHIVE, "-c", "control.conf", "hinv.ncpu"])
            .current_dir(folder())
            .env("PCP_DERIVED_CONFIG", "")
            .env("PCP_DERIVED_CONTROL", controls);
        let output = command.output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hinv.ncpu\n");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let of_file = "\
[control.conf:2] Warning: unknown derived metric control (no_such)
[control.conf:3] Error: missing '=' in derived metric control (GLOBAL_LIMIT)
[control.conf:4] Warning: missing value in derived metric control (DEBUG_EVAL=)
[control.conf:5] Warning: bad value (1x) for derived metric control (DEBUG_EVAL)
[control.conf:6] Warning: failed to set derived metric control GLOBAL_LIMIT=0: Bad value for function argument
[control.conf:9] Error: pmRegisterDerived(control.two, ...) syntax error
 2
 ^
Too many global derived metrics
[control.conf:10] Error: pmLoadDerivedConfig: missing ``='' after derived metric name
not a definition
";
    assert_eq!(run("7.2", ""), of_file);
    let lines: Vec<&str> = of_file.split_inclusive('\n').collect();
    assert_eq!(run("6.0", "nonsense"), lines[9..].concat());
    // The environment prevails.
    let expected = "\
Warning: $PCP_DERIVED_CONTROL: unknown derived metric control (nonsense)
Warning: $PCP_DERIVED_CONTROL: missing '=' in derived metric control (nothing)
";
    let prevails = "\
[control.conf:7] Warning: failed to set derived metric control global=1: Try again. Information not currently available
";
    let rest = [&lines[..5], &[prevails], &lines[9..]].concat().concat();
    assert_eq!(run("7.2", "nonsense=1,GLOBAL_LIMIT=2,nothing,more"), format!("{expected}{rest}"));
    assert_eq!(codes(&run("off", "nonsense=1")).len(), 8);
}
