//! Help in all its forms; completions and manual pages; colours, quiet runs, and old names of
//! options.

use crate::command;
use crate::terminal::pty;
use command::{Run, finished, pmderive, run};

const SHOP: &str = "tests/cli/shop.conf";
const FLEET: &str = "tests/archives/own-fleet";

/// Commands, and whether `-h` is a host there.
const COMMANDS: &[(&str, bool)] = &[
    ("archive", false),
    ("check", true),
    ("completions", false),
    ("deps", true),
    ("eval", true),
    ("explain", true),
    ("export", true),
    ("fmt", false),
    ("help", false),
    ("info", true),
    ("lsp", true),
    ("man", false),
    ("probe", true),
    ("record", true),
    ("serve", false),
    ("test", false),
    ("val", true),
];

#[test]
fn help_is_where_people_look_for_it() {
    let whole = run(&["-h"]);
    assert_eq!((whole.status, run(&["-?"])), (Some(0), whole.clone()));
    assert!(run(&["help"]).out.starts_with(&run(&["--help"]).out));
    for (name, has_host) in COMMANDS {
        assert!(whole.out.contains(&format!("\n  {name} ")), "{name}: {}", whole.out);
        let [help, long] = ["-?", "--help"].map(|option| run(&[name, option]));
        for one in [&help, &long] {
            assert_eq!((one.status, &*one.err), (Some(0), ""), "{name}");
            assert!(one.out.contains("\nGeneral:\n"), "{name}: {}", one.out);
            assert!(*name == "help" || one.out.contains("Examples:\n"), "{name}: {}", one.out);
        }
        assert!(long.out.len() > help.out.len(), "{name}");
        assert_eq!(run(&["help", name]), long, "{name}");
        let letter = run(&[name, "-h"]);
        match has_host {
            false => assert_eq!(letter, help, "{name}"),
            true => {
                let status = if ["info", "probe", "val"].contains(name) { 1 } else { 2 };
                assert_eq!(letter.status, Some(status), "{name}");
                let way = format!("`pmderive help {name}`");
                assert!(letter.err.contains(&way), "{name}: {}", letter.err);
            }
        }
    }
    let Run { status, err, .. } = run(&["help", "evl"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("did you mean `pmderive help eval`?"), "{err}");
}

/// Options of other tools have another way here; no letter is advised as an argument.
#[test]
fn options_of_other_tools_have_a_way() {
    for (given, way) in [
        (["eval", "-e", "a + b"], "an expression needs no option"),
        (["eval", "-b", "MB"], "`rescale(NAME, "),
        (["eval", "-J3", "a"], "`topk(5, NAME)`"),
        (["export", "--delimiter=;", "a"], "`--format` chooses the form"),
        (["record", "-F", "x"], "`record -o FILE` an archive"),
        (["check", "--junit", "x"], "`--format` chooses the form of the findings"),
        (["check", "--strict", "x"], "in pmderive.toml"),
        (["test", "-o", "x"], "`> FILE`"),
        (["archive", "-a", "x"], "`pmderive archive ARCHIVE`"),
        (["eval", "-o", "csv"], "`--format` chooses the form"),
        (["export", "-i", "sda"], "instances are chosen in the expression"),
        (["check", "-s", "3"], "`pmderive help check` has all options"),
    ] {
        let Run { status, err, .. } = run(&given);
        assert_eq!(status, Some(2), "{given:?}");
        assert!(err.contains(way) && !err.contains("as a value"), "{given:?}: {err}");
    }
}

#[test]
fn commands_of_other_tools_have_a_way() {
    for (given, way) in [
        ("pmval", "that is `pmderive val`"),
        ("pmrep", "`pmderive help pmrep`"),
        ("pmdumplog", "`pmderive archive`"),
        ("lint", "`pmderive check --lint`"),
        ("kernel.all.load", "`pmderive eval kernel.all.load`"),
        ("probee", "a similar subcommand exists: 'probe'"),
    ] {
        let Run { status, err, .. } = run(&[given]);
        assert_eq!(status, Some(2), "{given}");
        assert!(err.contains(way) && err.matches("tip:").count() == 1, "{given}: {err}");
    }
    let Run { status, err, .. } = run(&["val", "-L", "hinv.ncpu", "mem.physmem"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("`eval --format columns` several"), "{err}");
}

#[test]
fn help_has_headings() {
    let Run { out, .. } = run(&["help", "eval"]);
    let places = ["\nSource:\n", "\nTime:\n", "\nLanguage:\n", "\nOutput:\n", "\nGeneral:\n"]
        .map(|heading| out.find(heading).unwrap_or_else(|| panic!("{heading:?} in {out}")));
    assert!(places.is_sorted(), "{out}");
    assert!(out.find("\nExamples:\n") > places.iter().copied().max(), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
}

#[test]
fn shells_get_completions_and_man_gets_pages() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let Run { status, out, err } = run(&["completions", shell]);
        assert_eq!((status, &*err), (Some(0), ""), "{shell}");
        for word in ["export", "archive", "max-diagnostics"] {
            assert!(out.contains(word), "{shell}: {word}");
        }
        // Elvish and PowerShell get options alone.
        for word in ["troubleshooting", "topk", "PMD0202"] {
            assert!(
                out.contains(word) || !["bash", "fish", "zsh"].contains(&shell),
                "{shell}: {word}"
            );
        }
    }
    // What is hidden and what this program refuses are not offered.
    let script = run(&["completions", "bash"]).out;
    for (command, option) in crate::command_line::hidden_options() {
        let (_, of_command) = script.split_once(&format!("__{command})\n")).expect(&command);
        let offered = of_command.lines().next().expect("options");
        assert!(offered.contains(" --help "), "{offered}");
        assert!(!format!("{offered} ").contains(&format!("--{option} ")), "{command}: {option}");
    }
    let forms = script.lines().find(|line| line.contains("\"csv json"));
    let forms = forms.expect("the forms of a table");
    assert_eq!(forms.contains("parquet"), cfg!(feature = "columnar"), "{forms}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("man1");
    let path = path.to_str().expect("UTF-8");
    assert_eq!(run(&["man", "--output", path]).status, Some(0));
    for (name, _) in COMMANDS {
        let page = std::fs::read_to_string(format!("{path}/pmderive-{name}.1")).expect("a page");
        assert_eq!(run(&["man", name]).out, page, "{name}");
    }
    assert!(run(&["man"]).out.contains(".TH PMDERIVE 1 "), "the program's own page");
    assert_eq!(run(&["man", "nosuch"]).status, Some(2));
    assert_eq!(run(&["man", "--output", "/proc/nosuch"]).status, Some(3));
}

/// Standard error of a mistyped expression.
fn mistyped(options: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = pmderive(&[&["check", "rate("], options].concat());
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    finished(command.envs(variables.iter().copied()).output().expect("it runs"))
}

#[test]
fn colours_are_there_where_they_are_wanted() {
    for (options, variables, expected) in [
        (&[][..], &[][..], false),
        (&["--color", "always"], &[], true),
        (&["--colour=always"], &[("NO_COLOR", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "0")], false),
        (&["--color=never"], &[("CLICOLOR_FORCE", "1")], false),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
    ] {
        let Run { status, err, .. } = mistyped(options, variables);
        assert_eq!(status, Some(2));
        assert_eq!(err.contains('\x1b'), expected, "{options:?} {variables:?}: {err}");
    }
    // Those of clap, too.
    assert!(run(&["--color=always", "--help"]).out.contains('\x1b'));
    assert!(run(&["eval", "--nosuch", "--color", "always"]).err.contains('\x1b'));
    assert!(
        run(&["info", "--compat", "6.0", "-a", FLEET, "--color", "never"]).out.contains("hinv")
    );
}

/// Pages of help have the colours that were chosen, with a pager and without.
#[test]
fn help_has_the_colours_that_are_wanted() {
    let escapes = regex::Regex::new("\x1b\\[[0-9;]*m").expect("a pattern");
    for topic in ["eval", "units"] {
        let page = run(&["help", topic, "--color", "always"]);
        assert!(page.out.contains("\x1b["), "{topic}: {}", page.out);
        assert!(!page.out.contains("\\x1b"), "{topic}: {}", page.out);
        let plain = run(&["help", topic]).out;
        let shown = escapes.replace_all(&page.out, "");
        // A rule below a heading stands in for bold.
        let without_rules = |text: &str| -> Vec<String> {
            let is_rule = |line: &&str| !line.starts_with("---") && !line.starts_with("===");
            text.lines().filter(is_rule).map(str::to_owned).collect()
        };
        assert_eq!(without_rules(&shown), without_rules(&plain), "{topic}");
    }
    assert_eq!(
        run(&["help", "eval", "--color", "always"]).out,
        run(&["eval", "--help", "--color", "always"]).out
    );
    let on_a_terminal = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = pmderive(&[&["help", "units"], options].concat());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LESS"] {
            command.env_remove(name);
        }
        // It shows escape sequences as `^[`.
        command.env("TERM", "xterm").env("PAGER", "cat -v").envs(variables.iter().copied());
        String::from_utf8(pty::run(command)).expect("UTF-8")
    };
    let styled = on_a_terminal(&[], &[]);
    assert!(styled.contains("^[[1mTypes, semantics"), "{styled}");
    for (options, variables) in [
        (&[][..], ("TERM", "dumb")),
        (&[], ("NO_COLOR", "1")),
        (&["--color", "never"], ("NO_COLOR", "")),
    ] {
        let plain = on_a_terminal(options, &[variables]);
        assert!(!plain.contains("^[") && plain.contains("====="), "{variables:?}: {plain}");
    }
}

#[test]
fn a_terminal_shows_what_it_can() {
    let on_a_terminal = |variables: &[(&str, &str)]| {
        let mut command = pmderive(&["check", "rate("]);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LC_ALL", "LC_CTYPE", "LANG"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm").envs(variables.iter().copied());
        String::from_utf8(pty::run(command)).expect("UTF-8")
    };
    let colourful = on_a_terminal(&[("LANG", "C.UTF-8")]);
    assert!(colourful.contains('\x1b') && colourful.contains('╭'), "{colourful}");
    for variables in [("TERM", "dumb"), ("NO_COLOR", "1"), ("CLICOLOR", "0")] {
        let plain = on_a_terminal(&[variables]);
        assert!(!plain.contains('\x1b') && plain.contains('╭'), "{plain}");
    }
    let ascii = on_a_terminal(&[("LC_ALL", "C"), ("NO_COLOR", "1")]);
    assert!(ascii.is_ascii() && ascii.contains("+-["), "{ascii}");
    // What is in a file does not depend on who made it.
    assert!(mistyped(&[], &[("LC_ALL", "C")]).err.contains('╭'));
}

#[test]
fn quiet_runs_say_what_is_wrong_and_nothing_else() {
    let nothing = Run { status: Some(0), out: String::new(), err: String::new() };
    assert_eq!(run(&["check", "-q", SHOP]), nothing);
    assert_eq!(run(&["check", "--quiet", "--lint", "-a", FLEET, "rate(mem.physmem)"]), nothing);
    for format in ["text", "json", "github"] {
        let lint = ["check", "-q", "--lint", "-a", FLEET, "--format", format, "rate(mem.physmem)"];
        assert_eq!(run(&lint), nothing, "{format}");
    }
    let wrong = run(&["check", "-q", "tests/cli/mistakes.conf"]);
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.err.contains("Error:") && !wrong.err.contains(" errors"), "{}", wrong.err);
    let tests = run(&["test", "-q", "tests/unit_tests/shop.toml"]);
    assert_eq!((tests.status, &*tests.out), (Some(0), "6 passed, 0 failed\n"));
}

/// Every command takes `--verbose`, and `-v` unless that is an option of PCP's
/// tools or of another meaning.
#[test]
fn every_command_can_say_more() {
    let understood = |words: &[&str]| {
        crate::command_line::understands(words.iter().map(std::ffi::OsString::from).collect())
    };
    for (name, _) in COMMANDS {
        let help = run(&["help", name]).out;
        assert!(help.contains("--verbose"), "{name}: {help}");
        let operand = match *name {
            "completions" => &["bash"][..],
            "fmt" | "test" | "archive" | "val" => &["x"],
            "record" => &["-o", "x", "y"],
            _ => &[],
        };
        for option in ["--verbose", "-v"] {
            // A size in `record`, values in `probe`, a check in `info`.
            if option == "--verbose" || !["record", "probe", "info"].contains(name) {
                let words = [&["pmderive", name, option], operand].concat();
                assert_eq!(understood(&words), Ok(()), "{name} {option}");
            }
        }
        assert_eq!(understood(&[&["pmderive", "-v", name], operand].concat()), Ok(()), "{name}");
    }
    for command in ["explain", "eval", "check", "deps"] {
        let given = [command, "-a", FLEET, "-c", SHOP, "hinv.ncpu"];
        let Run { err, .. } = run(&[&given[..], &["--verbose"]].concat());
        assert!(err.contains("read 3 definitions from tests/cli/shop.conf\n"), "{command}: {err}");
        assert_eq!(run(&[&["--verbose"], &given[..]].concat()).err, err, "{command}");
        assert_eq!(run(&[&["-q", "-v"], &given[..]].concat()).err, "", "{command}");
    }
    let tested = run(&["test", "-v", "tests/unit_tests/shop.toml"]);
    assert!(tested.err.contains("definitions are in "), "{}", tested.err);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.conf");
    std::fs::write(&file, "a=b\n").expect("a file");
    let file = file.to_str().expect("UTF-8");
    assert_eq!(run(&["fmt", "-v", file]).err, format!("{file}: formatted\n"));
    assert_eq!(run(&["fmt", "-v", file]).err, format!("{file}: unchanged\n"));
}

#[test]
fn old_names_of_options_still_work() {
    let same = |new: &[&str], old: &[&str]| {
        let new_run = run(new);
        assert_eq!(new_run.status, Some(0), "{new:?}: {}", new_run.err);
        assert_eq!(new_run, run(old), "{old:?}");
        let help = run(&["help", new[0]]).out;
        let gone = old.iter().filter(|word| !new.contains(word) && word.starts_with("--"));
        for word in gone.map(|word| word.split('=').next().unwrap_or(word)) {
            assert!(word == "--metadata" || !help.contains(&format!("{word} ")), "{word}: {help}");
        }
    };
    let eval = ["eval", "-a", FLEET, "-s", "1", "rate(disk.all.total)"];
    same(&[&eval[..], &["-v"]].concat(), &[&eval[..], &["--why"]].concat());
    for old in ["--config", "--derived"] {
        let (new, old) = (["--definitions", SHOP], [old, SHOP]);
        same(&[&["check"], &new[..]].concat(), &[&["check"], &old[..]].concat());
        let info = ["info", "-a", FLEET, "shop"];
        same(&[&info[..], &new].concat(), &[&info[..], &old].concat());
    }
    let deps = ["deps", "-a", FLEET, SHOP];
    same(&[&deps[..], &["--format", "metadata"]].concat(), &[&deps[..], &["--metadata"]].concat());
}
