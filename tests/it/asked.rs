//! Arguments of commands: expressions in place of names, groups of metrics in place of
//! expressions, codes of diagnostics, JSON.

use crate::command;
use command::{Run, run};

const FLEET: &str = "tests/archives/own-fleet";

fn good(arguments: &[&str]) -> String {
    let Run { status, out, err } = run(arguments);
    assert_eq!((status, &*err), (Some(0), ""), "{arguments:?}");
    out
}

#[test]
fn info_val_and_probe_take_expressions() {
    let doubled = good(&["info", "-a", FLEET, "-f", "2 * hinv.ncpu", "hinv.ncpu"]);
    assert_eq!(doubled, "\n2 * hinv.ncpu\n    value 4\n\nhinv.ncpu\n    value 2\n");
    let selected = good(&["info", "-a", FLEET, "-f", "disk.dev.total[vdb]"]);
    assert!(selected.starts_with("\ndisk.dev.total[vdb]\n    inst [1 or \"vdb\"]"), "{selected}");
    assert_eq!(selected.lines().count(), 3, "{selected}");
    let described = good(&["info", "-a", FLEET, "-m", "-d", "rate(disk.dev.total)"]);
    assert!(described.contains("Semantics: instant  Units: count / sec"), "{described}");
    let probed = good(&["probe", "-a", FLEET, "-I", "disk.dev.total * 1", "hinv.ncpu+1"]);
    assert_eq!(
        probed,
        "disk.dev.total * 1 3 \"vdb\" \"nvme0n1\" \"sdc\"\nhinv.ncpu+1 1 PM_IN_NULL\n"
    );
    let values = good(&["val", "-a", FLEET, "-Z", "UTC", "-s", "2", "sum(disk.dev.total)"]);
    assert!(values.contains("metric:    sum(disk.dev.total)\n"), "{values}");
    let named = ["val", "-a", FLEET, "-Z", "UTC", "-s", "3", "-r"];
    let rows = |metric| {
        let out = good(&[&named[..], &[metric]].concat());
        out.lines().skip_while(|line| !line.starts_with("20:")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(rows("disk.dev.total * 1"), rows("disk.dev.total"));
}

#[test]
fn a_wrong_expression_harms_no_other_name() {
    for command in ["info", "probe", "val"] {
        let Run { status, err, .. } = run(&[command, "-a", FLEET, "rate(disk.dev.totl)"]);
        assert_eq!(status, Some(1), "{command}");
        assert!(err.contains("did you mean `disk.dev.total`?"), "{command}: {err}");
        assert!(!err.contains("Unknown metric name"), "{command}: {err}");
    }
    for arguments in [&["info", "-f"][..], &["probe", "-v"]] {
        let both = run(&[arguments, &["-a", FLEET, "rate(", "hinv.ncpu"]].concat());
        assert_eq!(both.status, Some(1), "{arguments:?}");
        assert!(both.out.contains("hinv.ncpu"), "{arguments:?}: {}", both.out);
    }
    // PCP's tools take names only.
    for compat in ["6.0", "7.2"] {
        let Run { status, err, .. } =
            run(&["info", "--compat", compat, "-a", FLEET, "2 * hinv.ncpu"]);
        assert_eq!((status, &*err), (Some(1), "Error: 2 * hinv.ncpu: Unknown metric name\n"));
    }
}

#[test]
fn record_takes_expressions_with_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("copy");
    let base = base.to_str().expect("UTF-8");
    let run_of = |names: &[&str]| run(&[&["record", "-a", FLEET, "-o", base], names].concat());
    let refused = run_of(&["rate(disk.all.total)"]);
    assert_eq!(refused.status, Some(2));
    assert!(refused.err.contains("write `NAME = EXPRESSION`"), "{}", refused.err);
    let wrong = run_of(&["my.rate = rate(disk.all.totl)"]);
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.err.contains("did you mean `disk.all.total`?"), "{}", wrong.err);
    let done = run_of(&["my.rate = rate(disk.all.total)", "hinv.ncpu"]);
    assert_eq!(done.status, Some(0), "{}", done.err);
    let values = ["--format", "csv"];
    let recorded = good(&[&["eval", "-a", base, "my.rate"], &values[..]].concat());
    let computed = good(&[&["eval", "-a", FLEET, "rate(disk.all.total)"], &values[..]].concat());
    let column = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("time"));
        let values = lines.map(|line| line.rsplit(',').next().unwrap_or_default().to_owned());
        values.collect::<Vec<_>>()
    };
    assert!(column(&recorded).iter().any(|value| value.parse::<f64>().is_ok()), "{recorded}");
    assert_eq!(column(&recorded), column(&computed));
}

#[test]
fn eval_takes_groups() {
    let group = good(&["eval", "-a", FLEET, "-s", "1", "disk.all"]);
    let names: Vec<&str> = good(&["info", "-a", FLEET, "disk.all"]).leak().lines().collect();
    assert!(names.len() > 1, "{names:?}");
    for name in &names {
        assert!(group.contains(&format!("\n{name}\n")), "{name}: {group}");
    }
    // In alphabetical order, except where the answers are to be libpcp's.
    assert!(names.is_sorted(), "{names:?}");
    let places: Vec<Option<usize>> =
        names.iter().map(|name| group.find(&format!("\n{name}\n"))).collect();
    assert!(places.is_sorted(), "{group}");
    let as_pcp = ["--compat", "6.0", "-a", FLEET, "disk.all"];
    let of_pcp = good(&[&["info"], &as_pcp[..]].concat());
    assert_ne!(of_pcp.lines().collect::<Vec<_>>(), names);
    let values = good(&[&["eval", "-s", "1"], &as_pcp[..]].concat());
    let place = |name: &str| values.find(&format!("\n{name}\n"));
    assert!(of_pcp.lines().map(place).is_sorted(), "{values}");
    // A metric beside a group, and an expression.
    let mixed = good(&["eval", "-a", FLEET, "-s", "1", "hinv.ncpu", "disk.all", "hinv.ncpu + 1"]);
    assert!(mixed.contains("\nhinv.ncpu + 1\n") && mixed.contains("disk.all.total"), "{mixed}");
    let all = good(&["eval", "-a", FLEET, "-s", "1", "."]);
    assert!(all.matches("Semantics: ").count() > names.len(), "{all}");
}

#[test]
fn libpcps_words_are_for_those_who_ask_for_its_answers() {
    let eval = ["eval", "-a", FLEET, "-s", "1", "rate(disk.all.totl)"];
    let own = run(&eval);
    assert_eq!(own.out, "\nrate(disk.all.totl)\nError: unknown metric `disk.all.totl`\n");
    assert_eq!(own.status, Some(1), "{}", own.err);
    let of_pcp = run(&[&eval[..], &["--compat", "6.0"]].concat());
    assert!(of_pcp.out.ends_with("\nError: Derived metric definition failed\n"), "{}", of_pcp.out);
}

#[test]
fn values_of_this_machine_say_so() {
    let out = good(&["eval", "-L", "--json", "hinv.ncpu"]);
    assert!(out.contains(r#""source":"this machine""#), "{out}");
}

#[test]
fn codes_are_explained_without_an_option() {
    let page = good(&["explain", "PMD0202"]);
    assert_eq!(good(&["explain", "202"]), page);
    // Rendered, as pages of the manual are.
    assert!(page.starts_with("PMD0202: ") && page.contains("\n=====") && !page.contains("```"));
    assert!(good(&["explain", "PMD0202", "--color", "always"]).starts_with("\x1b[1mPMD0202: "));
    assert_eq!(page, good(&["explain", "--code", "PMD0202"]));
    assert_eq!(good(&["explain", "pmd0202"]), page);
    let two = good(&["explain", "PMD0202", "PMD0100"]);
    assert!(two.starts_with(&page) && two.len() > page.len(), "{two}");
    let json = good(&["explain", "--format", "json", "PMD0202", "PMD0100"]);
    assert!(json.starts_with("{\"pages\":[{\"code\":\"PMD0202\",\"page\":\"# PMD0202: "), "{json}");
    assert!(json.contains("{\"code\":\"PMD0100\",") && json.ends_with("\"}]}\n"), "{json}");
    assert_eq!(json.matches("{\"code\":").count(), 2);
    let all = good(&["explain", "--code", "--json"]);
    assert!(all.matches("{\"code\":\"PMD").count() > 70 && all.lines().count() == 1);
    let Run { status, err, .. } = run(&["explain", "PMD0202", "rate(hinv.ncpu)"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("codes are explained by themselves"), "{err}");
    let Run { status, err, .. } = run(&["explain", "PMD9999"]);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("PMD9999"), "{err}");
}

#[test]
fn json_is_short_for_its_format() {
    for line in [
        &["eval", "-a", FLEET, "-s", "1", "hinv.ncpu"][..],
        &["export", "-a", FLEET, "-s", "1", "hinv.ncpu"],
        &["check", "rate(x"],
        &["explain", "-a", FLEET, "hinv.ncpu + 1"],
        &["deps", "a + b"],
        &["test", "tests/unit_tests/shop.toml"],
    ] {
        let json = run(&[line, &["--json"]].concat());
        assert!(json.out.starts_with('{'), "{line:?}: {}", json.out);
        assert_eq!(json, run(&[line, &["--format", "json"]].concat()), "{line:?}");
        assert_eq!(run(&[line, &["--json", "--format", "json"]].concat()).status, Some(2));
    }
}

/// Those of an archive come in one fetch where their first record is the same, as if each
/// were fetched alone: its first record is one with values of it.
#[test]
fn metrics_that_are_fetched_together_are_as_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = folder.path().join("own.conf");
    let text = "own.a = delta(disk.dev.total)\nown.b = own.a * 2\nown.c = mkconst(3, type=u32)\n\
                own.d = defined(hinv.nosuch) ? 1 : hinv.ncpu\nown.e = sum(disk.dev.total)\n";
    std::fs::write(&conf, text).expect("a file");
    let conf = conf.to_str().expect("UTF-8");
    for (archive, group) in [("tests/archives/own-types", &[][..]), (FLEET, &["own"])] {
        let source = ["-a", archive, "-c", conf, "--extensions"];
        let asked = |command: &[&str], name: &[&str]| run(&[command, &source, name].concat()).out;
        let names = asked(&["info"], group);
        for command in [&["info", "-f"][..], &["probe", "-v"]] {
            let alone: String = names.lines().map(|name| asked(command, &[name])).collect();
            assert_eq!(asked(command, group), alone, "{archive}: {command:?}");
        }
    }
}

/// `NAME = EXPRESSION` is a definition that the other arguments may name.
#[test]
fn a_result_has_the_name_that_an_argument_gives() {
    let two = ["half = hinv.ncpu / 2", "half"];
    let out = good(&[&["eval", "-a", FLEET, "-s", "1"], &two[..]].concat());
    assert_eq!(out, "\nhalf\n    Semantics: discrete  Units: none\n    value 1\n");
    let table = good(&["export", "-a", FLEET, "-s", "1", " ncpu.twice=2 * hinv.ncpu"]);
    let row = "qa.example.com,ncpu.twice,,,U32,discrete,,4,\n";
    assert!(table.ends_with(row), "{table}");
    assert_eq!(good(&["deps", "-c", "tests/cli/shop.conf", two[0]]), "hinv.ncpu\n");
    assert!(good(&["explain", "-a", FLEET, two[0]]).starts_with("half = hinv.ncpu / 2\n"));
    let both = ["--extensions", "quarter = half / 2", "half = hinv.ncpu / 2"];
    let out = good(&[&["eval", "-a", FLEET, "-s", "1"], &both[..]].concat());
    assert!(out.contains("\nquarter\n") && out.contains("    value 0.5\n"), "{out}");
    let checked = run(&["check", "-a", FLEET, "half = hinv.ncpus / 2"]);
    assert!(checked.err.contains("did you mean `hinv.ncpu`?"));
    assert!(checked.err.contains("1 definition, 1 error"), "{}", checked.err);
    // A comparison is meant.
    let hidden = run(&["eval", "-a", FLEET, "-s", "1", "hinv.ncpu = 2"]);
    assert!(hidden.err.contains("or compare by `==`"), "{}", hidden.err);
    // A mistake is told once.
    let broken = run(&["eval", "-a", FLEET, "-s", "1", "half = hinv.ncpu /", "hinv.ncpu"]);
    assert_eq!((broken.status, broken.err.matches("[PMD").count()), (Some(2), 1), "{}", broken.err);
    assert!(broken.out.contains("\nhinv.ncpu\n"), "{}", broken.out);
}
