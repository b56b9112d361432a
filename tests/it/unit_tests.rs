//! `pmderive test` as its users see it.
//!
//! The files of `tests/unit_tests` are examples of the format, and pass. Those
//! below `wrong` do not; snapshots hold what is said of them. After a change
//! of wording run the test with `INSTA_UPDATE=always` and read the difference.

use std::process::Command;

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
        for name in ["failures", "definitions", "fleet", "hosts", "mistakes", "no_toml"] {
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
