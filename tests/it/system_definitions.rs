//! The system's definitions, which every client of PCP on a machine has, and the options of the
//! environment, as the commands see them.

use std::path::Path;
use std::process::Command;

const TYPES: &str = "tests/archives/own-types";

/// Variables of the environment, none of which are otherwise set.
type Environment<'e> = &'e [(&'e str, &'e str)];

/// Exit status, standard output and standard error of a run.
fn run(environment: Environment<'_>, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmderive"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("PCP") || name.starts_with("PM")) {
            command.env_remove(name);
        }
    }
    // Nothing of the machine's own.
    command.env("PCP_VAR_DIR", "/nonexistent").env("PCP_CONF", "/nonexistent");
    let output = command.envs(environment.iter().copied()).output().expect("the command runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The last field of each line of values that `eval` prints as CSV.
fn values(environment: Environment<'_>, arguments: &[&str]) -> Vec<String> {
    let fixed = ["eval", "-a", TYPES, "-s", "1", "--format", "csv"];
    let (status, out, err) = run(environment, &[&fixed, arguments].concat());
    assert_eq!(status, Some(0), "{err}");
    out.lines().skip(1).filter_map(|line| Some(line.rsplit(',').next()?.to_owned())).collect()
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn where_definitions_come_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let var = folder.path().join("var");
    let var = var.to_str().expect("UTF-8");
    write(folder.path(), "var/config/derived/one.conf", "sys.a = 1\n");
    write(folder.path(), "var/config/derived/two.conf", "sys.b = 2\n");
    let other = write(folder.path(), "other.conf", "sys.c = 3\nsys.d = 4\n");
    let missing = folder.path().join("missing");
    let missing = missing.to_str().expect("UTF-8");

    let is_known = |environment: Environment<'_>, name: &str| {
        run(environment, &["eval", "-a", TYPES, "-s", "1", name]).0 == Some(0)
    };
    let list = format!("{missing}:{other}:");
    for (environment, known, unknown) in [
        (&[("PCP_VAR_DIR", var)][..], &["sys.a", "sys.b"][..], &["sys.c"][..]),
        (&[("PCP_VAR_DIR", missing)], &[], &["sys.a"]),
        (&[("PCP_VAR_DIR", var), ("PCP_DERIVED_CONFIG", "")], &[], &["sys.a", "sys.c"]),
        (&[("PCP_VAR_DIR", var), ("PCP_DERIVED_CONFIG", &other)], &["sys.c", "sys.d"], &["sys.a"]),
        (&[("PCP_DERIVED_CONFIG", &list)], &["sys.c"], &["sys.a"]),
    ] {
        known
            .iter()
            .for_each(|name| assert!(is_known(environment, name), "{name} {environment:?}"));
        for name in unknown {
            assert!(!is_known(environment, name), "{name} {environment:?}");
        }
    }
    // The machine's own settings say where PCP_VAR_DIR is.
    let conf = write(folder.path(), "pcp.conf", &format!("PCP_VAR_DIR={var}\n"));
    assert_eq!(values(&[("PCP_CONF", &conf), ("PCP_VAR_DIR", "")], &["sys.a"]), ["1"]);
}

#[test]
fn definitions_of_the_arguments_and_of_the_system() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = write(
        folder.path(),
        "system.conf",
        "both = 1\nsys.only = 2\ns.i.i32 = 3\nsys.lost = no.such\nsys.wrong = (a\n",
    );
    let own = write(folder.path(), "own.conf", "both = 10\nown.only = 20\n");
    let environment: Environment<'_> = &[("PCP_DERIVED_CONFIG", &system)];
    let with_own = |names: &[&'static str]| [&["-c", &*own], names].concat();

    // Without names, what the arguments define and nothing else.
    assert_eq!(values(environment, &with_own(&[])), ["10", "20"]);
    assert_eq!(values(environment, &with_own(&["sys.only", "own.only"])), ["2", "20"]);
    // The first definition of a name counts; version 6 reads the system's first.
    assert_eq!(values(environment, &with_own(&["both"])), ["10"]);
    let fixed = ["eval", "-a", TYPES, "-s", "1", "--format", "csv", "--compat", "6.0", "both"];
    let (status, out, err) = run(environment, &[&fixed[..], &with_own(&[])].concat());
    assert!(out.ends_with(",1\n"), "{out}{err}");
    assert_eq!(status, Some(2), "the own definition is a duplicate then");
    assert!(err.contains("`both` is defined already"), "{err}");

    // A metric of the source counts, and nobody needs to be told.
    let (status, out, err) = run(environment, &["eval", "-a", TYPES, "-s", "1", "s.i.i32"]);
    assert_eq!((status, &*err), (Some(0), ""), "{out}");
    assert!(!out.contains("value 3\n"), "{out}");

    // Mistakes matter when they concern what was selected.
    let (status, _, err) = run(environment, &["eval", "-a", TYPES, "-s", "1", "sys.only"]);
    assert_eq!((status, &*err), (Some(0), ""));
    let (status, _, err) = run(environment, &["eval", "-a", TYPES, "-s", "1", "sys.lost"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("unknown metric `no.such`"), "{err}");
    let (status, _, err) = run(environment, &["eval", "-a", TYPES, "-s", "1", "sys.wrong"]);
    assert_eq!(status, Some(1));
    let warning = format!("warning: the definition of sys.wrong at {system}:5:15 was passed over");
    assert!(err.contains(&warning), "{err}");

    let (status, _, err) = run(environment, &["check", "-a", TYPES, "sys.lost"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("unknown metric `no.such`"), "{err}");
    let (status, _, err) = run(environment, &["check", "-a", TYPES, "sys.only"]);
    assert_eq!((status, &*err), (Some(0), "1 definition, 0 errors\n"));
    let (status, _, err) = run(environment, &["check", "-a", TYPES, "-c", &own]);
    assert_eq!((status, &*err), (Some(0), "2 definitions, 0 errors\n"));
}

#[test]
fn options_of_the_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = write(
        folder.path(),
        "own.conf",
        "#control novalue=1\na = no.such\n#control GLOBAL_LIMIT=2\nb = 1\nc = 2\n",
    );
    let eval = |environment: Environment<'_>| {
        run(environment, &["eval", "-a", TYPES, "-s", "1", "--format", "csv", "-c", &own])
    };
    let (status, out, err) = eval(&[]);
    assert_eq!((status, out.lines().count()), (Some(2), 2), "{out}{err}");
    assert!(err.contains("GLOBAL_LIMIT allows no more than 2 definitions"), "{err}");
    assert!(!err.contains("no.such"), "{err}");

    // What the environment says, no file can change.
    let (status, out, err) = eval(&[("PCP_DERIVED_CONTROL", "option=0,GLOBAL_LIMIT=-1")]);
    assert_eq!((status, out.lines().count()), (Some(1), 3), "{out}{err}");
    assert!(err.contains("unknown metric `no.such`"), "{err}");
    assert!(err.contains("cannot set OPTION_NOVALUE to 1"), "{err}");
    assert!(err.contains("PCP_DERIVED_CONTROL in the environment takes precedence"), "{err}");

    // Its own mistakes are warnings: no definition is the worse for them.
    let environment: Environment<'_> = &[("PCP_DERIVED_CONTROL", "nonsense=1,context=5,debug")];
    let (status, out, err) = run(environment, &["eval", "-a", TYPES, "-s", "1", "s.i.i32"]);
    assert_eq!(status, Some(0), "{out}{err}");
    assert_eq!(err.matches("Warning").count(), 3, "{err}");
}

/// With `novalue`, metrics that the source lacks are `novalue()`, in both branches too.
#[test]
fn a_choice_between_missing_metrics_has_no_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "#control novalue=1\na = s.i.i32 ? no.such : no.other\n\
                b = (s.i.i32 ? no.such : no.other) + 1\nc = s.i.i32\n";
    let own = write(folder.path(), "own.conf", text);
    for backend in ["jit", "interp"] {
        for dialect in ["7.2", "off"] {
            let options = ["-a", TYPES, "-s", "2", "--format", "csv", "-c", &own];
            let options = [&options[..], &["--compat", dialect, "--backend", backend]].concat();
            let (status, out, err) = run(&[], &[&["eval"], &options[..]].concat());
            assert_eq!(status, Some(0), "{out}{err}");
            let lines = |name: &str| out.matches(&format!("Z,{name},")).count();
            assert_eq!([lines("a"), lines("b"), lines("c")], [0, 0, 2], "{out}{err}");
        }
    }
}

/// A machine hardly ever has all that the definitions of every client are for.
#[test]
fn operands_that_a_source_does_not_have() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "s.lost = no.such\ns.lost.too = rate(no.such) + no.other\ns.found = s.i.i32 * 2\n";
    let system = write(folder.path(), "system.conf", text);
    let own = write(folder.path(), "own.conf", text);
    let link = folder.path().join("link.conf");
    std::os::unix::fs::symlink(&system, &link).expect("a link");
    let link = link.to_str().expect("UTF-8");
    let environment: Environment<'_> = &[("PCP_DERIVED_CONFIG", &system)];
    let lines =
        "left out: 2 definitions whose operands this source does not have (-v lists them)\n";

    let check = |environment, arguments: &[&str]| {
        let (status, _, err) = run(environment, &[&["check", "-a", TYPES], arguments].concat());
        (status, err)
    };
    let good = (Some(0), format!("{lines}3 definitions, 0 errors\n"));
    // Whichever way leads to a file of the system.
    assert_eq!(check(environment, &["-c", &system]), good);
    assert_eq!(check(environment, &[link]), good);
    assert_eq!(check(&[], &["--missing", "ignore", &own]), good);
    let (status, err) = check(environment, &["-v", &system]);
    assert_eq!(status, Some(0));
    let listed = format!(
        "read 3 definitions from {system}\n\
                  left out: s.lost: unknown metric `no.such`\n\
                  left out: s.lost.too: unknown metric `no.such`, unknown metric `no.other`\n\
                  3 definitions, 0 errors\n"
    );
    assert_eq!(err, listed);
    for (environment, arguments) in [
        (&[][..], &["-c", &*own][..]),
        (&[], &[&own]),
        (environment, &[&own]),
        (environment, &["--missing", "error", &system]),
    ] {
        let (status, err) = check(environment, arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {err}");
        assert!(err.ends_with("3 definitions, 3 errors\n"), "{arguments:?}: {err}");
    }
    for file in [&own, &system] {
        let (status, err) = check(environment, &["--missing", "warn", file]);
        assert_eq!(status, Some(0), "{err}");
        assert!(err.ends_with("3 definitions, 0 errors, 3 warnings\n"), "{err}");
    }
    // Other mistakes stay what they are.
    let mixed = write(folder.path(), "mixed.conf", "s.mixed = no.such + 1\ns.bad = s.str + 1\n");
    let (status, err) = check(&[("PCP_DERIVED_CONFIG", &mixed)], &[&mixed]);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("left out: 1 definition whose"), "{err}");
    assert!(err.ends_with("2 definitions, 1 error\n"), "{err}");

    // The metrics of a group are those that there are.
    let export = |environment, arguments: &[&str]| {
        run(environment, &[&["export", "-a", TYPES, "-s", "1"], arguments].concat())
    };
    let (status, out, err) = export(environment, &["s"]);
    assert_eq!((status, &*err), (Some(0), lines));
    assert!(out.contains(",s.found,") && !out.contains("s.lost"), "{out}");
    let (status, _, err) = export(environment, &["-v", "s"]);
    assert_eq!(status, Some(0));
    assert!(err.contains("left out: s.lost: unknown metric `no.such`\n"), "{err}");
    // What is asked for by its name, and what the user has written, is missed.
    for (environment, arguments) in [
        (environment, &["s", "s.lost"][..]),
        (environment, &["s.lost"]),
        (&[], &["-c", &own, "s"]),
        (&[], &["-c", &own]),
    ] {
        let (status, _, err) = export(environment, arguments);
        assert_eq!(status, Some(1), "{arguments:?}: {err}");
        assert!(err.contains("unknown metric `no.such`"), "{arguments:?}: {err}");
    }
}

#[test]
fn recorded_groups_say_what_they_lack() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "t.u.found = a.i.i32\nt.u.lost = no.such\nt.u.more = no.such + 1\n";
    let file = write(folder.path(), "t.conf", text);
    let environment: Environment<'_> = &[("PCP_DERIVED_CONFIG", &file)];
    let record = |number: u8, environment, arguments: &[&str]| {
        let out = folder.path().join(format!("r{number}")).display().to_string();
        run(environment, &[&["record", "-a", TYPES, "-s", "1", "-o", &out], arguments].concat())
    };
    for (number, group) in ["t", "t.u", "."].into_iter().enumerate() {
        let (status, _, err) = record(number as u8, environment, &[group]);
        let counted = "left out: 2 definitions whose operands this source does not have\n";
        assert_eq!(status, Some(0), "{group}: {err}");
        assert!(err.starts_with(counted) && err.contains(": 1 record of "), "{group}: {err}");
    }
    // What is asked for by its name, and what the user has written, is missed.
    for (number, environment, arguments) in
        [(3, environment, &["t", "t.u.lost"][..]), (4, &[], &["-c", &file, "t"])]
    {
        let (status, _, err) = record(number, environment, arguments);
        assert_eq!(status, Some(1), "{arguments:?}: {err}");
        assert!(err.contains("unknown metric `no.such`"), "{arguments:?}: {err}");
    }
}
