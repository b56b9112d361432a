//! `pmderive test` as its users see it.
//!
//! The files of `tests/unit_tests` are examples of the format, and pass. Those below `wrong` do
//! not; snapshots hold their messages. After a change of wording run the test with
//! `INSTA_UPDATE=always` and read the difference.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Exit status, standard output, standard error.
fn test(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .arg("test")
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unit_tests"))
        .output()
        .expect("the command runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit status"), text(output.stdout), text(output.stderr))
}

#[test]
fn the_examples_pass() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unit_tests");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let path = path.to_str().expect("UTF-8");
        for backend in ["both", "jit", "interp"] {
            let (status, out, err) = test(&["--backend", backend, path]);
            assert_eq!((status, &*err), (0, ""), "{out}");
            assert!(out.ends_with(" passed, 0 failed\n"), "{out}");
        }
        count += 1;
    }
    assert!(count >= 3, "{count} examples");
}

#[test]
fn what_is_said_of_wrong_ones() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unit_tests/wrong"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for name in [
            "failures",
            "definitions",
            "fleet",
            "groups",
            "hosts",
            "large",
            "mistakes",
            "misspelt",
            "no_name",
            "no_toml",
            "refused",
            "values",
        ] {
            let path = format!("wrong/{name}.toml");
            let (status, out, err) = test(&[&path]);
            insta::assert_snapshot!(
                name,
                format!("{out}--- standard error\n{err}--- exit status {status}\n")
            );
            let (json_status, out, err) = test(&["--format", "json", &path]);
            assert_eq!((json_status, &*err), (status, ""));
            for line in out.lines() {
                let row: Value = serde_json::from_str(line).expect("JSON");
                assert_eq!(row["file"], path, "{row}");
                let is_test = row["passed"] == false && row["failures"][0]["got"].is_string();
                assert!(is_test || row["code"].is_string(), "{row}");
            }
            insta::assert_snapshot!(format!("{name}.json"), out);
        }
    });
}

/// A file that cannot be read does not keep others from being run, and the
/// exit status is that of the worst.
#[test]
fn several_files() {
    let (status, out, err) = test(&["none.toml", "shop.toml", "wrong/failures.toml"]);
    assert_eq!(status, 2);
    assert!(err.starts_with("pmderive: cannot read none.toml: No such file"), "{err}");
    assert!(out.contains("\n  passed  memory is shown in Gbyte\n"), "{out}");
    assert!(out.ends_with("\n6 passed, 9 failed\n"), "{out}");
    let (status, out, _) = test(&["--format", "json", "shop.toml"]);
    assert_eq!(status, 0);
    let rows: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert_eq!(
            (&row["passed"], row["failures"].as_array().map(Vec::len)),
            (&true.into(), Some(0))
        );
    }
    assert_eq!(test(&[]).0, 2);
}

/// A directory stands for the files of tests below it, and `-` for standard input.
#[test]
fn directories_and_standard_input() {
    let folder = tempfile::tempdir().expect("a directory");
    let good = "[[case]]\nname = \"one\"\nsteps = 1\n[case.expect]\n\"1\" = 1\n";
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    let path = folder.path().to_str().expect("UTF-8");
    let (status, _, err) = test(&[path]);
    assert_eq!(status, 2);
    assert!(err.contains("no file of tests"), "{err}");
    for name in ["a.toml", "below/b.toml", ".hidden/c.toml"] {
        write(name, good);
    }
    write("pmderive.toml", "extensions = true\n# [[case]]\n");
    write("serve.toml", "interval = \"10 sec\"\n");
    write("a.conf", "a = b\n");
    // It is run already.
    std::os::unix::fs::symlink("below/b.toml", folder.path().join("again.toml")).expect("a link");
    let (status, out, err) = test(&[path]);
    assert_eq!((status, &*err), (0, ""), "{out}");
    let expected = format!(
        "{path}/a.toml\n  passed  one\n{path}/below/b.toml\n  passed  one\n2 passed, 0 failed\n"
    );
    assert_eq!(out, expected);
    for (text, status) in [
        ("[[case]\n", 2),
        ("[case]\nname = \"one\"\n", 2),
        ("[[\"case\"]]\nname = \"one\"\nsteps = 1\n[case.expect]\n\"1\" = 2\n", 1),
        ("case = [{ name = \"one\", steps = 1, expect = { \"1\" = 2 } }]\n", 1),
        ("rejected = [{ name = \"one\", expression = \"1\", code = \"PMD0203\" }]\n", 1),
        ("cases = []\n", 2),
        ("rows = []\n", 0),
    ] {
        write("below/other.toml", text);
        let (found, out, err) = test(&[path]);
        assert_eq!(found, status, "{text}: {out}{err}");
    }

    let mut child = Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .args(["test", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command runs");
    // Settings of the folder count.
    let text = format!("{good}\"sqrt(4)\" = 2\n");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && out.ends_with("  passed  one\n1 passed, 0 failed\n"),
        "{out}"
    );
}

/// What cannot be used is exercised by no test, and its branches are none.
#[test]
fn refused_definitions_are_not_covered() {
    let (_, out, _) = test(&["--coverage", "wrong/refused.toml"]);
    assert!(!out.contains("r.branch:"), "{out}");
    assert!(out.ends_with("exercised: 1 of 1 definition, 2 of 2 branches\n"), "{out}");
}

/// Metrics may come from what `deps --metadata` has written.
#[test]
fn metadata_of_a_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = env!("CARGO_MANIFEST_DIR");
    let output = Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .args(["deps", "-a", "tests/archives/own-fleet", "-c", "tests/cli/shop.conf", "--metadata"])
        .env("PCP_DERIVED_CONFIG", "")
        .current_dir(root)
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{output:?}");
    std::fs::write(directory.path().join("fleet.json"), output.stdout).expect("a file");
    let text = format!(
        r#"
        files = ["{root}/tests/cli/shop.conf"]
        metadata = "fleet.json"
        [[case]]
        name = "the metrics of an archive"
        [case.samples]
        "disk.dev.total" = {{ sda = "1+5x3" }}
        "disk.dev.total_bytes" = {{ sda = "1+10x3" }}
        [case.expect]
        "shop.size" = {{ sda = "_ 2 2" }}
        "#
    );
    let path = directory.path().join("test.toml");
    std::fs::write(&path, text).expect("a file");
    let (status, out, err) = test(&[path.to_str().expect("UTF-8")]);
    assert_eq!((status, &*err), (0, ""), "{out}");
}
