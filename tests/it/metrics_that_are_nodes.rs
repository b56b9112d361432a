//! Names that are both a metric and a node. The lists of them and the properties of each are
//! compared with the installed tools, and checked without `--compat`.

use std::path::Path;

use crate::side_by_side;
use side_by_side::{Printed, ours_with, pmderive_with, theirs_with, tools_are_installed};

const ARCHIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives/own-fleet");

/// Definition files, as text.
const DEFINITIONS: &[&str] = &[
    "q.b = hinv.ncpu\nq.b.x = 2 * hinv.ncpu\n",
    "q = 1\nq.a = 2\n",
    "q.a = 1\nq.b = 2\nq.b.x = 3\nq.b.y = 4\nq.c = 5\n",
    "q.b = nosuch\nq.b.x = 2\n",
    "q.b = 2\nq.b.x = nosuch\n",
    "hinv.ncpu.x = 2 * hinv.ncpu\n",
    "hinv.ncpu = 3\n",
    "hinv = 3\n",
    "hinv.z = 1\nhinv.y = 2\nhinv.z.w = 4\n",
    "q.. = 1\n",
    ". = 1\n",
    "a b\n",
];

/// What is asked for: metrics, nodes, and what is neither; nothing is all.
const ASKED: &[&[&str]] = &[
    &[],
    &["q"],
    &["q."],
    &["q.."],
    &["q.a"],
    &["q.b"],
    &["q.b."],
    &["q.b.x"],
    &["hinv"],
    &["hinv."],
    &["hinv.ncpu"],
    &["hinv.ncpu."],
    &["hinv.ncpu.x"],
    &["hinv.z"],
    &["hinv.z.w"],
];

/// The ways to ask. The definitions come by the environment where no option
/// names them.
const QUESTIONS: &[(&str, &[&str])] =
    &[("pminfo", &["-mft"]), ("pmprobe", &["-v", "--derived", "FILE"])];

#[test]
fn they_are_listed_as_by_the_tools() -> std::io::Result<()> {
    if !tools_are_installed() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("names.conf");
    let path = file.to_str().expect("UTF-8");
    let mut differences = Vec::new();
    for definitions in DEFINITIONS {
        std::fs::write(&file, definitions)?;
        for (tool, options) in QUESTIONS {
            let has_option = options.contains(&"FILE");
            let variables = [("PCP_DERIVED_CONFIG", if has_option { "" } else { path })];
            let options: Vec<&str> =
                options.iter().map(|one| if *one == "FILE" { path } else { one }).collect();
            for asked in ASKED {
                let arguments = [&["-a", ARCHIVE], &options[..], asked].concat();
                let theirs = theirs_with(&variables, tool, &arguments);
                let ours = ours_with(&variables, tool, &arguments);
                if ours != theirs {
                    differences.push(format!("{definitions:?} {tool} {arguments:?}\n{ours:?}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

/// What a command prints of a definition file, by the variable.
fn printed(
    file: &Path,
    definitions: &str,
    command: &str,
    options: &[&str],
) -> std::io::Result<Printed> {
    std::fs::write(file, definitions)?;
    let variables = [("PCP_DERIVED_CONFIG", file.to_str().expect("UTF-8"))];
    Ok(pmderive_with(&variables, &[&[command, "-a", ARCHIVE], options].concat()))
}

/// Here a name can be both, and all metrics are listed. libpcp hides one of
/// them, or aborts where a node's name comes behind those below it.
#[test]
fn here_all_are_listed() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("names.conf");
    let both = ["q.b = hinv.ncpu\nq.b.x = 5\n", "q.b.x = 5\nq.b = hinv.ncpu\n"];
    for definitions in both {
        for asked in ["q", "q.b"] {
            let found = printed(&file, definitions, "probe", &["-v", asked])?;
            assert_eq!((found.status, &*found.out), (Some(0), "q.b 1 2\nq.b.x 1 5\n"));
            let found = printed(&file, definitions, "info", &[asked])?;
            assert_eq!((found.status, &*found.out), (Some(0), "q.b\nq.b.x\n"));
        }
    }
    // Where libpcp aborts, its dialect lists what is there, too.
    let found = printed(&file, both[1], "probe", &["--compat", "6.0", "-v", "q"])?;
    assert_eq!((found.status, &*found.out), (Some(0), "q.b 1 2\nq.b.x 1 5\n"));
    for asked in ["hinv", "hinv.ncpu"] {
        let found = printed(&file, "hinv.ncpu.x = 5\n", "probe", &["-v", asked])?;
        let mut lines = found.out.lines().filter(|line| line.starts_with("hinv.ncpu"));
        assert!(lines.by_ref().eq(["hinv.ncpu 1 2", "hinv.ncpu.x 1 5"]), "{found:?}");
    }
    // What cannot be used is told, and not listed.
    std::fs::write(&file, "q.b = nosuch\nq.b.x = 5\n")?;
    let path = file.to_str().expect("UTF-8");
    let found = pmderive_with(&[], &["probe", "-a", ARCHIVE, "--derived", path, "-v", "q"]);
    assert_eq!(found.out, "q.b.x 1 5\n");
    assert!(found.err.contains("unknown metric `nosuch`"), "{found:?}");
    Ok(())
}

/// A name with a point at its end is told to be none.
#[test]
fn here_a_point_at_the_end_is_refused() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("names.conf");
    let found = printed(&file, "q. = 1\n", "info", &["q."])?;
    assert_eq!((found.status, &*found.out), (Some(1), ""));
    assert!(found.err.contains("a name does not end with a point"), "{found:?}");
    Ok(())
}
