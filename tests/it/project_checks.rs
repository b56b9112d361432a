//! `check`, `test` and `fmt --check` as people use them on a folder of
//! definitions: edits, comments that allow, `pmderive.toml`, what has changed,
//! and the forms that systems for continuous integration read.

mod reports;
mod schema;

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// The metrics that definitions are checked against.
const FLEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives/own-fleet");

/// A folder of files.
struct Folder(TempDir);

/// Exit status, standard output, standard error.
type Ended = (i32, String, String);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a directory"));
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect("a file")
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_pmderive"))
            .args(arguments)
            .current_dir(self.path())
            .env("PCP_DERIVED_CONFIG", "")
            .output()
            .expect("the command runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code().expect("an exit status"), text(output.stdout), text(output.stderr))
    }

    fn git(&self, arguments: &[&str]) -> bool {
        let git = Command::new("git")
            .args(["-c", "user.name=qa", "-c", "user.email=qa@example.com"])
            .args(arguments)
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output();
        git.is_ok_and(|output| output.status.success())
    }
}

const WITH_MISTAKES: &str = "\
# comments stay,\n\
busy = hinv.ncpu > 2 and kernel.all.nprocs > 5\n\
\n\
free   =   rescale( mem.util.free; 'Mbyte' )   \n\
free(oneline) = and so do help texts\n\
half = kernel.all.load * 0,5 // a comment\n\
wrong = rate(disk.dev.totl)\n\
long = hinv.ncpu +\n\
\x20  kernel.all.nprocs\n";

const MENDED: &str = "\
# comments stay,\n\
busy = hinv.ncpu > 2 && kernel.all.nprocs > 5\n\
\n\
free   =   rescale( mem.util.free, \"Mbyte\" )   \n\
free(oneline) = and so do help texts\n\
# a comment\n\
half = kernel.all.load * 0.5\n\
wrong = rate(disk.dev.totl)\n\
long = hinv.ncpu + \\\n\
\x20  kernel.all.nprocs\n";

/// What is certain is written, what is a guess is not, and nothing else changes.
#[test]
fn edits_are_written_where_nothing_else_can_be_meant() {
    let folder = Folder::with(&[("x.conf", WITH_MISTAKES)]);
    let (status, out, err) = folder.run(&["check", "--diff", "-a", FLEET, "x.conf"]);
    assert_eq!(status, 2, "{err}");
    assert!(out.contains("+busy = hinv.ncpu > 2 && kernel.all.nprocs > 5\n"), "{out}");
    assert!(!out.contains("+wrong"), "{out}");
    assert_eq!(folder.read("x.conf"), WITH_MISTAKES, "--diff writes nothing");
    let (status, out, err) = folder.run(&["check", "--fix", "-a", FLEET, "x.conf"]);
    assert_eq!((status, &*out), (2, ""), "{err}");
    assert!(err.contains("did you mean `disk.dev.total`?"), "{err}");
    assert!(err.ends_with("edits in 1 file\n5 definitions, 1 error\n"), "{err}");
    assert_eq!(folder.read("x.conf"), MENDED);
    // Once more, and nothing is left to do.
    let (_, out, err) = folder.run(&["check", "--fix", "-a", FLEET, "x.conf"]);
    assert!(!err.contains("edit"), "{err}");
    assert_eq!((folder.read("x.conf").as_str(), &*out), (MENDED, ""));
    let (_, out, _) = folder.run(&["check", "--diff", "-a", FLEET, "x.conf"]);
    assert_eq!(out, "");
}

/// What is below is no part of what is unfinished, and stays.
#[test]
fn edits_leave_the_next_definition_alone() {
    for below in
        [" c.d = hinv.ncpu * 2\n", " # a comment\nc.d = hinv.ncpu\n", "\tc.d(oneline) = text\n"]
    {
        for unfinished in ["a.b = hinv.ncpu +\n", "a.b = (hinv.ncpu + 1\n"] {
            let text = unfinished.to_owned() + below;
            let folder = Folder::with(&[("x.conf", &text)]);
            folder.run(&["check", "--fix", "-a", FLEET, "x.conf"]);
            let after = folder.read("x.conf");
            assert!(after.ends_with(below), "{after}");
            assert!(!after.contains('\\'), "{after}");
        }
    }
}

/// A mark of the byte order is no part of the text, and stays before it.
#[test]
fn a_byte_order_mark_stays() {
    let text = "\u{feff}a.b = hinv.ncpu > 1 and hinv.ndisk > 1\n";
    let folder = Folder::with(&[("x.conf", text)]);
    let (status, out, _) = folder.run(&["check", "--diff", "-a", FLEET, "x.conf"]);
    assert!(status == 2 && out.contains("\n-\u{feff}a.b"), "{status} {out:?}");
    folder.run(&["check", "--fix", "-a", FLEET, "x.conf"]);
    assert_eq!(folder.read("x.conf"), text.replace("and", "&&"));
    // To libpcp it is part of the first name.
    let old = "\u{feff}a.b = 1\na.c = hinv.ncpu > 1 and 1\n";
    fs::write(folder.path().join("z.conf"), old).expect("a file");
    folder.run(&["check", "--fix", "--compat", "7.2", "-a", FLEET, "z.conf"]);
    assert_eq!(folder.read("z.conf"), old.replace("and", "&&"));
    let (status, _, err) = folder.run(&["fmt", "--check", "x.conf"]);
    assert_eq!(status, 0, "{err}");
    fs::write(folder.path().join("y.conf"), "\u{feff}a.b  =  hinv.ncpu\n").expect("a file");
    folder.run(&["fmt", "y.conf"]);
    assert_eq!(folder.read("y.conf"), "\u{feff}a.b = hinv.ncpu\n");
}

/// A folder may have files that are no definitions. By its name each of them is taken.
#[test]
fn what_has_no_definition_below_a_folder_is_not_edited() {
    let source = "//! About a program.\nfn main() {}\n";
    let script = "MODE=1\nRATE=1e6\n";
    let files = [("x.conf", "a = hinv.ncpu;\nb = 1\n"), ("main.rs", source), ("run.sh", script)];
    let folder = Folder::with(&files);
    let (status, _, err) = folder.run(&["check", "--fix", "."]);
    assert!(err.contains("1 edit in 1 file\n") && err.contains("name the others"), "{err}");
    assert_eq!((status, &*folder.read("main.rs")), (2, source));
    assert_eq!(folder.read("run.sh"), script);
    assert_eq!(folder.read("x.conf"), "a = hinv.ncpu\nb = 1\n");
    folder.run(&["check", "--fix", "main.rs"]);
    assert!(folder.read("main.rs").starts_with("#"), "{}", folder.read("main.rs"));
}

/// What comes from standard input has no file, but a patch can be shown of it.
#[test]
fn a_patch_of_standard_input_is_shown() {
    let folder = Folder::with(&[("x.conf", "a = hinv.ncpu > 1 and 2\n")]);
    for (option, patch, words) in [
        ("--diff", "\n-a = hinv.ncpu > 1 and 2\n+a = hinv.ncpu > 1 && 2\n", ""),
        ("--fix", "", "has no file to edit"),
    ] {
        let checked = Command::new(env!("CARGO_BIN_EXE_pmderive"))
            .args(["check", option, "-"])
            .current_dir(folder.path())
            .stdin(fs::File::open(folder.path().join("x.conf")).expect("a file"))
            .output()
            .expect("the command runs");
        let [out, err] = [checked.stdout, checked.stderr].map(String::from_utf8);
        let (out, err) = (out.expect("UTF-8"), err.expect("UTF-8"));
        assert!(out.ends_with(patch) && out.is_empty() == patch.is_empty(), "{option}: {out}");
        assert_eq!(err.contains("has no file to edit"), !words.is_empty(), "{option}: {err}");
        assert!(err.contains(words), "{option}: {err}");
    }
}

/// All mistakes of the tests at once: whatever is mended, nothing that can be
/// mended is left.
#[test]
fn nothing_certain_is_left_after_all_edits() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut all = String::new();
    for name in ["beginners", "other-languages"] {
        let text = fs::read_to_string(tests.join(format!("mistakes/{name}.txt"))).expect("a file");
        let lines = text.lines().filter(|line| !line.starts_with("== "));
        for (number, line) in lines.enumerate() {
            // Names are unique, so that no definition hides another.
            let line = match line.strip_prefix("x ") {
                Some(rest) => format!("x.{name}{number} {rest}", name = &name[..1]),
                None => line.to_owned(),
            };
            all.push_str(&line);
            all.push('\n');
        }
    }
    let folder = Folder::with(&[("all.conf", &all)]);
    let (_, _, err) = folder.run(&["check", "--lint", "--fix", "-a", FLEET, "all.conf"]);
    assert!(err.contains(" edits in 1 file\n"), "{err}");
    let (_, out, _) = folder.run(&["check", "--lint", "--format", "json", "-a", FLEET, "all.conf"]);
    let mut count = 0;
    for line in out.lines() {
        let one: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_ne!(one["fix"]["certain"], true, "{one}");
        count += 1;
    }
    assert!(count > 30, "{count}");
    let (status, out, _) = folder.run(&["check", "--lint", "--diff", "-a", FLEET, "all.conf"]);
    assert_eq!((status, &*out), (2, ""));
}

#[test]
fn comments_allow_lints() {
    let folder = Folder::with(&[(
        "x.conf",
        "# pmderive: allow PMD0301\nchange = delta(mem.util.free)\n\
         # pmderive: allow PMD0316\nfine = hinv.ncpu\n",
    )]);
    let (status, out, err) = folder.run(&["check", "--lint", "-a", FLEET, "x.conf"]);
    assert_eq!((status, &*out), (0, ""), "{err}");
    assert!(err.contains("nothing here needs PMD0316 to be allowed"), "{err}");
    assert!(err.ends_with("2 definitions, 0 errors, 1 warning\n"), "{err}");
    // Without metadata nobody knows what they are needed for.
    let (_, _, err) = folder.run(&["check", "--lint", "x.conf"]);
    assert!(!err.contains("PMD0320"), "{err}");
    // Another host may need them.
    let before = folder.read("x.conf");
    folder.run(&["check", "--lint", "--fix", "-a", FLEET, "x.conf"]);
    assert_eq!(folder.read("x.conf"), before);
}

/// A comment is called idle only above what lints have seen.
#[test]
fn comments_allow_what_was_not_looked_at() {
    for (code, expression) in [
        ("PMD0301", "delta(mem.util.free) +"),
        ("PMD0301", "delta(no.such.metric)"),
        ("PMD0301", "defined(no.such.metric) ? delta(mem.util.free) : delta(disk.all.read)"),
        ("PMD0323", "rescale(mem.util.free, \"Mbyte\")"),
        ("PMD0110", "disk.dev.read[vda]"),
        ("PMD0304", "hinv.ncpu"),
    ] {
        let text = format!("# pmderive: allow {code} because others need it\nx = {expression}\n");
        let folder = Folder::with(&[("x.conf", &text)]);
        for missing in ["error", "warn", "ignore"] {
            let asked = ["check", "--lint", "--fix", "--missing", missing, "-a", FLEET, "x.conf"];
            let (_, _, err) = folder.run(&asked);
            assert!(!err.contains("PMD0320"), "{expression}: {err}");
            assert_eq!(folder.read("x.conf"), text, "{expression}");
        }
    }
    let text = "# pmderive: allow PMD0301\n\nx = delta(mem.util.free)\n";
    let folder = Folder::with(&[("x.conf", text)]);
    let (_, _, err) = folder.run(&["check", "--lint", "--fix", "-a", FLEET, "x.conf"]);
    assert!(err.contains("this comment allows nothing"), "{err}");
    assert_eq!(folder.read("x.conf"), text);
}

/// To libpcp 6.0 the branch that is never chosen may say which instances there are.
#[test]
fn a_branch_that_is_left_out_stays() {
    let text = "x.c = 0 ? disk.dev.inflight : max(disk.dev.inflight)\n";
    let folder = Folder::with(&[("x.conf", text)]);
    let asked = ["check", "--lint", "--fix", "--format", "json", "-a", FLEET, "x.conf"];
    for compat in ["off", "6.0"] {
        let (_, out, err) = folder.run(&[&asked[..], &["--compat", compat]].concat());
        let found = out.lines().find(|line| line.contains("PMD0303")).unwrap_or_default();
        let has_edit = found.contains("\"certain\":");
        assert_eq!((found.is_empty(), has_edit), (false, compat == "off"), "{out} {err}");
        assert_eq!(folder.read("x.conf"), text);
    }
}

/// The file beside the definitions, or above them, chooses.
#[test]
fn settings_of_a_folder() {
    let folder = Folder::with(&[
        ("pmderive.toml", "[lints]\nall = \"allow\"\nPMD0301 = \"deny\"\nPMD0300 = \"warn\"\n"),
        ("sub/x.conf", "a = delta(mem.util.free)\nb = rate(mem.util.free)\nc = hinv.ncpu / 0\n"),
        ("ext/pmderive.toml", "extensions = true\ncompat = \"7.2\"\n"),
        ("ext/y.conf", "a = abs(hinv.ncpu)\n"),
    ]);
    let (status, _, err) = folder.run(&["check", "-a", FLEET, "sub/x.conf"]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("[PMD0301] Error"), "{err}");
    assert!(err.contains("[PMD0300] Warning"), "{err}");
    assert!(!err.contains("PMD0315"), "{err}");
    assert_eq!(folder.run(&["check", "-a", FLEET, "ext/y.conf"]).0, 0);
    // Metadata that the folder has are used unless a source is given.
    let (status, metadata, err) = folder.run(&["deps", "--metadata", "-a", FLEET, "sub/x.conf"]);
    assert_eq!(status, 0, "{err}");
    folder.write("sub/fleet.json", &metadata);
    folder.write("sub/pmderive.toml", "metadata = \"fleet.json\"\n");
    let (status, _, err) = folder.run(&["check", "sub/x.conf"]);
    assert_eq!((status, &*err), (0, "3 definitions, 0 errors\n"));
    let (status, explained, err) = folder.run(&["explain", "-c", "sub/x.conf", "a"]);
    assert_eq!((status, &*err), (0, ""));
    assert!(explained.contains("mem.util.free"), "{explained}");
    // What the metadata lack is still a metric to log.
    folder.write("sub/new.conf", "new = rate(disk.all.total)\n");
    let listed = folder.run(&["deps", "sub/new.conf"]);
    assert_eq!(listed, (0, "disk.all.total\n".to_owned(), String::new()));
    // Its own mistakes have carets.
    folder.write("pmderive.toml", "[lint]\nall = \"allow\"\n[lints]\nPMD0301 = \"alow\"\n");
    folder.write("z.conf", "a = 1\n");
    folder.write("ext/pmderive.toml", "compat = \"7.3\"\n");
    let (status, _, err) = folder.run(&["check", "-a", FLEET, "z.conf"]);
    assert_eq!(status, 2);
    for part in ["pmderive.toml:1:2 ", "did you mean `lints`?", "did you mean `allow`?"] {
        assert!(err.contains(part), "{part}\n{err}");
    }
    let (status, _, err) = folder.run(&["check", "ext/y.conf"]);
    assert_eq!(status, 2);
    assert!(err.contains("ext/pmderive.toml:1:10 "), "{err}");
}

/// Each file is read as its own folder says, whichever comes first.
#[test]
fn each_folder_has_its_own_settings() {
    let folder = Folder::with(&[
        ("plain/pmderive.toml", "[lints]\nPMD0315 = \"deny\"\n"),
        ("plain/p.conf", "a = hinv.ncpu / 0\n"),
        ("ext/pmderive.toml", "extensions = true\n"),
        ("ext/e.conf", "b = abs(hinv.ncpu)\n"),
        ("old/pmderive.toml", "compat = \"6.0\"\n"),
        ("old/o.conf", "c = 1\n"),
    ]);
    for files in [["plain/p.conf", "ext/e.conf"], ["ext/e.conf", "plain/p.conf"]] {
        let (status, _, err) = folder.run(&[&["check", "-a", FLEET], &files[..]].concat());
        assert_eq!(status, 2, "{err}");
        assert!(err.contains("[PMD0315] Error") && !err.contains("abs"), "{err}");
    }
    let (status, _, err) = folder.run(&["check", "ext/e.conf", "old/o.conf"]);
    assert_eq!(status, 2);
    assert!(err.contains("differ in `compat`"), "{err}");
    // All commands read them.
    let (status, _, err) = folder.run(&["fmt", "--check", "ext/e.conf"]);
    assert_eq!((status, &*err), (0, ""));
    let (status, _, err) = folder.run(&["eval", "-a", FLEET, "-c", "ext/e.conf", "-s", "1", "b"]);
    assert_eq!(status, 0, "{err}");
    let (status, _, err) = folder.run(&["explain", "-a", FLEET, "-c", "ext/e.conf", "b"]);
    assert_eq!(status, 0, "{err}");
    folder.write(
        "ext/t.toml",
        "files = [\"e.conf\"]\n[metrics]\n\"hinv.ncpu\" = { type = \"32\" }\n[[case]]\nname = \"x\"\n\
         [case.samples]\n\"hinv.ncpu\" = \"-1\"\n[case.expect]\n\"b\" = \"1\"\n",
    );
    let (status, out, err) = folder.run(&["test", "ext/t.toml"]);
    assert_eq!(status, 0, "{out}{err}");
}

/// Without definition files only options count, whatever this directory or those above it
/// and below it say; beside files an expression is in their language.
#[test]
fn expressions_have_no_folder() {
    let folder = Folder::with(&[("x.conf", "a = 1\n"), ("b/other/x.conf", "a = 1\n")]);
    for settings in ["compat = \"7.3\"\n[lint]\n", "compat = \"6.0\"\nextensions = true\n"] {
        folder.write("pmderive.toml", settings);
        folder.write("b/other/pmderive.toml", settings);
        for command in [&["eval", "-s", "1"][..], &["export", "-s", "1"], &["explain"]] {
            let on = |expression| [command, &["-a", FLEET, expression]].concat();
            let (status, out, err) = folder.run(&on("disk.all.read > 5"));
            assert_eq!((status, &*err), (0, ""), "{command:?}");
            assert!(out.contains("instant"), "{command:?}: {out}");
            let (status, _, err) = folder.run(&on("abs(hinv.ncpu)"));
            assert!(status == 2 && err.contains("--extensions"), "{command:?}: {err}");
        }
    }
    let beside = ["eval", "-v", "-s", "1", "-a", FLEET, "-c", "x.conf", "abs(hinv.ncpu)"];
    let (status, _, err) = folder.run(&beside);
    assert_eq!(status, 0, "{err}");
    assert!(err.contains("read settings from ") && err.contains("pmderive.toml\n"), "{err}");
    folder.write("pmderive.toml", "[lints]\nall = \"deny\"\n");
    let checked = ["check", "-a", FLEET, "-c", "x.conf", "rate(mem.util.free)"];
    let (status, _, err) = folder.run(&checked);
    assert!(status == 0 && !err.contains("PMD0300"), "{err}");
    folder.write("pmderive.toml", "extensions = true\n");
    // Definitions from standard input are a file in the current directory.
    folder.write("y.conf", "y = abs(hinv.ncpu)\n");
    let checked = Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .args(["check", "-"])
        .current_dir(folder.path())
        .stdin(fs::File::open(folder.path().join("y.conf")).expect("a file"))
        .output();
    let checked = checked.expect("the command runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// What stands beside definitions and has none is no definition file.
#[test]
fn settings_and_hidden_files_are_no_definitions() {
    let folder = Folder::with(&[
        ("pmderive.toml", "extensions = true\n"),
        ("metadata.json", "{}\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("a.conf", "a = abs(1)\n"),
    ]);
    for directory in [".", "./"] {
        let (status, _, err) = folder.run(&["check", "-c", directory]);
        assert_eq!(status, 0, "{err}");
        assert!(err.ends_with("1 definition, 0 errors\n"), "{err}");
    }
}

/// Files over the fleet are read as those of hosts are.
#[test]
#[cfg(feature = "fleet")]
fn files_over_the_fleet_take_part() {
    let fleet = "racks.a = sum(shop.a) by (rack) > 1 and count(shop.a) by (rack) > 2\n";
    let hosts = "shop.a = rate(disk.all.read)\n";
    let folder = Folder::with(&[("fleet.conf", fleet), ("hosts.conf", hosts)]);
    let (status, _, err) = folder.run(&["check", "--fleet", "fleet.conf", "--fix", "hosts.conf"]);
    assert!(status == 0 && err.contains("1 edit in 1 file\n"), "{status} {err}");
    assert_eq!(folder.read("fleet.conf"), fleet.replace("and", "&&"));
    let text = "# pmderive: allow PMD9999\nracks.a = sum(shop.a) by (rack)\n";
    fs::write(folder.path().join("fleet.conf"), text).expect("a file");
    let (_, _, err) = folder.run(&["check", "--fleet", "fleet.conf", "--lint", "hosts.conf"]);
    assert!(err.contains("PMD9999"), "{err}");
    let (_, _, err) = folder.run(&["check", "--fleet", "fleet.conf", "-v", "hosts.conf"]);
    assert!(err.contains("read 1 definition from fleet.conf"), "{err}");
}

#[cfg(feature = "fleet")]
#[test]
fn settings_say_which_definitions_are_over_the_fleet() {
    let folder = Folder::with(&[
        ("pmderive.toml", "fleet = [\"racks.conf\"]\n"),
        ("hosts.conf", "shop.rate = rate(disk.dev.total)\n"),
        ("racks.conf", "racks.rate = sum(shop.rate) by (rack)\n"),
    ]);
    for files in [&["-c", "."][..], &["hosts.conf", "racks.conf"]] {
        let (status, _, err) = folder.run(&[&["check", "-a", FLEET], files].concat());
        assert_eq!((status, &*err), (0, "2 definitions, 0 errors\n"));
    }
}

/// Lints look at definitions over the fleet as people wrote them, and edits keep a `by`.
#[cfg(feature = "fleet")]
#[test]
fn definitions_over_the_fleet_are_linted_and_edited() {
    let good = "r.good = count(shop.a) by (rack)\n";
    let folder = Folder::with(&[
        ("pmderive.toml", "fleet = [\"racks.conf\"]\n[lints]\nall = \"warn\"\n"),
        ("hosts.conf", "shop.a = rate(disk.all.read)\nshop.b = disk.dev.total\n"),
    ]);
    for (line, code, suggestion) in [
        ("r.x = count(shop.a) by (rack) < 0", "PMD0307", None),
        ("r.x = sum(shop.a) by (rack) / 0", "PMD0315", None),
        ("r.x = count(shop.a) by (rack)", "PMD0305", None),
        (
            "r.x = 1 ? sum(shop.b) by (rack) : r.good",
            "PMD0303",
            Some("\"text\":\"sum(shop.b) by (rack)\""),
        ),
        ("r.x = !!(sum(shop.a) by (rack) > 1)", "PMD0323", None),
        ("r.x = delta(count(shop.b) by (rack))", "PMD0301", None),
        // Only the direction is wanted.
        ("r.x = delta(count(shop.b) by (rack)) > 0", "", None),
        ("r.x = delta(sum(shop.b) by (rack)) / delta(sum(shop.b))", "", None),
        // What hosts compute for it asks for nothing of theirs.
        ("r.x = avg(delta(shop.b)) by (rack)", "", None),
    ] {
        folder.write("racks.conf", &format!("{good}{line}\n"));
        let (status, out, err) = folder.run(&["check", "--format", "json", "-a", FLEET, "."]);
        assert_eq!(status, 0, "{line}: {out}{err}");
        let codes: Vec<&str> = out.lines().filter_map(|line| line.get(9..16)).collect();
        let expected: &[&str] = if code.is_empty() { &[] } else { &[code] };
        assert_eq!(codes, expected, "{line}: {out}");
        assert!(out.contains(suggestion.unwrap_or_default()), "{line}: {out}");
    }
    folder.write("racks.conf", &format!("{good}r.x = r.good > 1 and r.good < 9\n"));
    let (status, _, err) = folder.run(&["check", "--fix", "."]);
    assert!(status == 0 && err.contains("1 edit in 1 file\n"), "{status} {err}");
    assert_eq!(folder.read("racks.conf"), format!("{good}r.x = r.good > 1 && r.good < 9\n"));
}

/// What settings name is told with its place if it is not there.
#[test]
fn settings_name_files_that_are_not_there() {
    let folder = Folder::with(&[("a.conf", "a = hinv.ncpu\n")]);
    for (settings, status, words) in [
        ("\nfleet = [\"racks.conf\"]\n", 2, ["pmderive.toml:2:10 ", "there is no file "]),
        ("metadata = \"m.json\"\n", 3, ["is named at ", "pmderive.toml:1:12\n"]),
    ] {
        folder.write("pmderive.toml", settings);
        let (found, _, err) = folder.run(&["check", "a.conf"]);
        assert_eq!(found, status, "{err}");
        assert!(words.iter().all(|one| err.contains(one)), "{words:?}\n{err}");
    }
}

/// A file of tests has definitions of another folder, which says how they are read.
#[test]
fn tests_read_definitions_as_their_folders_say() {
    let tests = "files = [\"../defs/x.conf\"]\n[metrics]\n\
        \"m.d\" = { type = \"u32\", indom = \"disks\" }\n\"m.n\" = { type = \"32\" }\n\
        [[case]]\nname = \"x\"\n[case.samples]\n\"m.d\" = { sda = \"1\", sdb = \"3\" }\n\
        \"m.n\" = \"-1\"\n[case.expect]\n\"t.b\" = \"1\"\n";
    let (old, new) = ("\"t.a\" = { sda = \"3\", sdb = \"3\" }\n", "\"t.a\" = \"3\"\n");
    let folder = Folder::with(&[
        ("defs/pmderive.toml", "compat = \"6.0\"\nextensions = true\n"),
        ("defs/x.conf", "t.a = 1 ? max(m.d) : m.d\nt.b = abs(m.n)\n"),
        ("other/pmderive.toml", "compat = \"7.2\"\n"),
        ("other/y.conf", "t.c = 1\n"),
    ]);
    for (text, expected, words) in [
        (format!("{tests}{old}"), 0, "1 passed, 0 failed"),
        (format!("{tests}{new}"), 1, "0 passed, 1 failed"),
        // What the file says itself counts first.
        (format!("compat = \"off\"\n{tests}{new}"), 0, "1 passed, 0 failed"),
        (format!("extensions = false\n{tests}{old}"), 2, "`abs()` needs `extensions = true`"),
        (tests.replace("x.conf\"", "x.conf\", \"../other/y.conf\""), 2, "differ in `compat`"),
    ] {
        folder.write("tests/t.toml", &text);
        let (status, out, err) = folder.run(&["test", "tests"]);
        assert_eq!(status, expected, "{text}\n{out}{err}");
        assert!(out.contains(words) || err.contains(words), "{words}: {out}{err}");
    }
}

/// An error in a file that has not changed counts if the change is its cause.
#[test]
fn changes_that_break_other_files_are_told() {
    let folder = Folder::with(&[
        ("a.conf", "a.x = hinv.ncpu\n"),
        ("b.conf", "b.y = a.x + 1\nb.z = b.y * 2\nb.other = no.such\n"),
    ]);
    let is_ready = folder.git(&["init", "-q"])
        && folder.git(&["add", "."])
        && folder.git(&["commit", "-q", "-m", "first"]);
    if !is_ready {
        println!("NOT RUN: there is no git");
        assert!(std::env::var_os("CI").is_none(), "git is missing");
        return;
    }
    let check = |files: &[&str]| {
        let arguments = ["check", "--extensions", "-a", FLEET, "--changed-since", "HEAD"];
        folder.run(&[&arguments, files].concat())
    };
    let (status, _, err) = check(&["a.conf", "b.conf"]);
    assert_eq!(status, 0, "{err}");
    folder.write("a.conf", "a.new = hinv.ncpu\n");
    let (status, _, err) = check(&["a.conf", "b.conf"]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("b.conf:1:7 ") && !err.contains("no.such"), "{err}");
    // The same for a file that is gone.
    fs::remove_file(folder.path().join("a.conf")).expect("it was there");
    let (status, _, err) = check(&["b.conf"]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("b.conf:1:7 ") && !err.contains("no.such"), "{err}");
}

#[test]
fn a_file_of_tests_that_is_not_there_is_an_error_in_every_form() {
    let folder = Folder::with(&[]);
    for (format, part) in [
        ("json", "\"kind\":\"unreadable\""),
        ("junit", "failures=\"1\""),
        ("sarif", "cannot read nosuch.toml"),
        ("github", "::error file=nosuch.toml"),
    ] {
        let (status, out, err) = folder.run(&["test", "nosuch.toml", "--format", format]);
        assert_eq!(status, 2, "{err}");
        assert!(out.contains(part), "{format}: {out}");
    }
}

#[test]
fn each_code_that_was_reported_is_explained() {
    let folder = Folder::with(&[("x.conf", "a = 1e3\nb = 2e3\nc = 90%\n")]);
    let (_, _, err) = folder.run(&["check", "--explain-all", "x.conf"]);
    assert_eq!(err.matches("\nPMD0010: ").count(), 1, "{err}");
    assert_eq!(err.matches("\nPMD0001: ").count(), 1, "{err}");
}

#[test]
fn what_has_changed_since_a_revision() {
    let folder = Folder::with(&[("old.conf", "a = 1e3\n"), ("new.conf", "b = hinv.ncpu\n")]);
    let is_ready = folder.git(&["init", "-q"])
        && folder.git(&["add", "."])
        && folder.git(&["commit", "-q", "-m", "first"]);
    if !is_ready {
        println!("NOT RUN: there is no git");
        assert!(std::env::var_os("CI").is_none(), "git is missing");
        return;
    }
    let check =
        |files: &[&str]| folder.run(&[&["check", "--changed-since", "HEAD"], files].concat());
    let (status, _, err) = check(&["old.conf", "new.conf"]);
    assert_eq!(status, 0, "nothing has changed: {err}");
    // A hook has the repository in its environment. Standard input is always new.
    for (file, status) in [("new.conf", 0), ("old.conf", 0), ("-", 2)] {
        let found = Command::new(env!("CARGO_BIN_EXE_pmderive"))
            .args(["check", "--changed-since", "HEAD", file])
            .current_dir(folder.path())
            .envs([("PCP_DERIVED_CONFIG", ""), ("GIT_DIR", ".git"), ("GIT_PREFIX", "")])
            .stdin(fs::File::open(folder.path().join("old.conf")).expect("it is there"))
            .output()
            .expect("the command runs");
        let err = String::from_utf8_lossy(&found.stderr);
        assert_eq!(found.status.code(), Some(status), "{file}: {err}");
    }
    folder.write("new.conf", "b = 90%\n");
    let (status, _, err) = check(&["old.conf", "new.conf"]);
    assert_eq!(status, 2);
    assert!(err.contains("new.conf:1:7 ") && !err.contains("old.conf:"), "{err}");
    // What git does not know has changed.
    folder.write("more/newest.conf", "c = 5e1\n");
    let (status, _, err) = check(&["old.conf", "more/newest.conf"]);
    assert_eq!(status, 2);
    assert!(err.contains("newest.conf:1:5 ") && !err.contains("old.conf:"), "{err}");
    // Nobody knows whether what cannot be read has changed.
    for unread in ["no-such.conf", "./no-such"] {
        let (status, _, err) = check(&["old.conf", unread]);
        assert_eq!(status, 2, "{unread}");
        assert!(err.contains("PMD0035") && !err.contains("old.conf:"), "{err}");
    }
    for wrong in ["no-such-revision", "--output=x"] {
        let argument = format!("--changed-since={wrong}");
        let (status, _, err) = folder.run(&["check", &argument, "old.conf"]);
        assert_eq!(status, 2, "{wrong}");
        assert!(err.contains("revision"), "{err}");
    }
    let outside = Folder::with(&[("x.conf", "a = 1\n")]);
    let (status, _, err) = outside.run(&["check", "--changed-since", "HEAD", "x.conf"]);
    assert_eq!(status, 2);
    assert!(err.contains("git: "), "{err}");
}

/// A branch that no sample takes, and a definition that nothing expects.
#[test]
fn coverage_of_tests() {
    let tests = "files = [\"x.conf\"]\n\
         [metrics]\n\"hinv.ncpu\" = { type = \"u32\", semantics = \"discrete\" }\n\
         [[case]]\nname = \"few\"\n[case.samples]\n\"hinv.ncpu\" = \"1 2\"\n\
         [case.expect]\n\"kind\" = \"0 0\"\n";
    let folder = Folder::with(&[
        ("x.conf", "kind = hinv.ncpu > 2 ? hinv.ncpu > 8 ? 2 : 1 : 0\nother = hinv.ncpu * 2\n"),
        ("t.toml", tests),
    ]);
    let (status, out, err) = folder.run(&["test", "--coverage", "t.toml"]);
    assert_eq!((status, &*err), (0, ""), "{out}");
    for line in [
        "  x.conf:1:24: kind: `hinv.ncpu > 2` is never true, so this is chosen by no test\n",
        "  x.conf:2:1: other: `other` is evaluated by no test\n",
        "1 passed, 0 failed\nexercised: 1 of 2 definitions, 1 of 4 branches\n",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
    assert!(!out.contains("hinv.ncpu > 8"), "it is within what is told: {out}");
    folder.write("t.toml", &tests.replace("1 2", "3 9").replace("0 0", "1 2"));
    let (_, out, _) = folder.run(&["test", "--coverage", "t.toml"]);
    assert!(out.contains("x.conf:1:48: kind: `hinv.ncpu > 2` is never false"), "{out}");
    assert!(out.ends_with("exercised: 1 of 2 definitions, 3 of 4 branches\n"), "{out}");
    folder.write("t.toml", &tests.replace("1 2", "3 3").replace("0 0", "1 1"));
    let (_, out, _) = folder.run(&["test", "--coverage", "t.toml"]);
    assert!(out.contains("kind: `hinv.ncpu > 8` is never true where it is asked for,"), "{out}");
    let (_, out, _) = folder.run(&["test", "--coverage", "--format", "json", "t.toml"]);
    assert!(out.contains("\"uncovered\":\"`other` is evaluated by no test\""), "{out}");
    let (_, plain, _) = folder.run(&["test", "t.toml"]);
    assert!(!plain.contains("exercised"), "{plain}");
}

/// When nobody reads the output any more, the status stays.
#[test]
fn a_closed_output_keeps_the_status() {
    let folder = Folder::with(&[
        ("bad.conf", "a = 1e3\nb=2\n"),
        (
            "t.toml",
            "files = [\"bad.conf\"]\n[[case]]\nname = \"x\"\n[case.expect]\n\"b\" = \"3\"\n",
        ),
    ]);
    let program = env!("CARGO_BIN_EXE_pmderive");
    for (arguments, wanted) in [
        ("test t.toml t.toml", 2),
        ("fmt --check bad.conf", 2),
        ("check --format json bad.conf", 2),
        ("check --format sarif bad.conf", 2),
        ("fmt --check --format junit bad.conf", 2),
    ] {
        let script =
            format!("{{ {program} {arguments}; echo $? >&3; }} 3>status | head -c 1 >/dev/null");
        let status = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).status();
        assert!(status.is_ok_and(|status| status.success()));
        assert_eq!(folder.read("status").trim(), wanted.to_string(), "{arguments}");
    }
}
