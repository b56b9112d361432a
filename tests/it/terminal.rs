//! Output of commands with foreign text that would control a terminal: names, values, labels
//! and help of an archive, names of files, texts of definitions, arguments.
//!
//! On a terminal no command prints such characters, on either stream. In a pipe the commands
//! named after PCP's tools, and tables, are exact.

#[path = "terminal/archive.rs"]
mod hostile;
pub mod pty;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pmderive::runtime::escape::is_unshown;
use pmderive_testkit::fake_pmcd::FakePmcd;
use tempfile::TempDir;

use crate::command;
use command::pmderive;
use hostile::{HOSTILE, SHOWN};

/// A folder with hostile files, all of them under hostile names, and a pmcd
/// that says what the archive does.
struct Files {
    folder: TempDir,
    pmcd: FakePmcd,
}

impl Files {
    fn write() -> Files {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = folder.path().join(format!("archive{HOSTILE}"));
        hostile::write(&archive);
        let files = Files { pmcd: hostile::serve(&archive), folder };
        let write = |name: &str, text: String| {
            std::fs::write(files.path(name), text).expect("it is written");
        };
        // Ends of lines and tabs of files are their own.
        let text: String = HOSTILE.chars().filter(|c| !matches!(c, '\n' | '\t')).collect();
        write("bad.conf", format!("evil.bad = evil.set{text} +\nevil.worse = rate(evil.text)\n"));
        write("form.conf", format!("evil.form=evil.set+evil.set\n# {text}\n"));
        write("test.toml", test_file());
        write("names", format!("root {{\n    evil{text} 1:2:3\n}}\n"));
        write("cases", format!("{{\"id\": \"case{text}\"}}\n"));
        files
    }

    /// The path of a file, whose name is hostile.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}{HOSTILE}"))
    }

    /// Arguments in which `@NAME` is such a path, `^` the pmcd, `%` a hostile
    /// text, and `~` one without a tab, as tabs of expressions are their own.
    fn arguments(&self, line: &str) -> Vec<String> {
        let pmcd = self.pmcd.spec().to_string();
        line.split_whitespace()
            .map(|word| word.replace('^', &pmcd))
            .map(|word| match word.split_once('@') {
                // Some names are those of no file.
                Some((before, name)) => format!("{before}{}", self.path(name).display()),
                None => word.replace('%', HOSTILE).replace('~', &HOSTILE.replace('\t', " ")),
            })
            .collect()
    }

    fn command(&self, line: &str) -> std::process::Command {
        let arguments = self.arguments(line);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        pmderive(&arguments)
    }
}

/// A case that fails, with hostile names.
fn test_file() -> String {
    let name: String = HOSTILE
        .chars()
        .map(|character| match character {
            control if control.is_control() => format!("\\u{:04x}", u32::from(control)),
            other => other.to_string(),
        })
        .collect();
    format!(
        "[metrics]\n\"evil.set\" = {{ type = \"u64\", indom = \"set\" }}\n\
         [[case]]\nname = \"case{name}\"\n[case.samples]\n\"evil.set\" = {{ \"inst{name}\" = \"1 2\" }}\n\
         [case.expect]\n\"evil.set\" = {{ \"inst{name}\" = \"1 3\" }}\n"
    )
}

/// Every command that prints. `+` in front: hostile text is to be seen.
const COMMANDS: &[&str] = &[
    "+eval -a @archive evil.set evil.text evil.texts",
    "+eval -a @archive --format csv evil.set evil.text",
    "eval -a @archive --format json evil.set evil.text evil.texts",
    "+eval -a @archive --reverse --why evil.set evil.text rate(evil.text)",
    "+eval -a @archive evil.set[inst%]",
    "+eval -a @archive -t 1 evil.texts",
    "+eval -a @nothing evil.set",
    "+eval -a @archive evil.set%",
    "+eval -a @archive -c @bad.conf evil.set",
    "+eval -a @archive -c @nothing evil.set",
    "+eval -a @archive -Z UTC% evil.set",
    "+export -a @archive evil.set evil.text evil.texts",
    "export -a @archive --format json evil.set evil.text",
    "+export -a @archive -o /proc/self/fd/1 --format csv evil.set evil.text",
    "+export -a @archive -o @nothing/nothing.csv evil.set",
    "+export -a @archive -o @table evil.set",
    "info -a @archive",
    "+info -a @archive -dfmtlsT",
    "+info -a @archive -FxMI",
    "+info -a @archive --compat 6.0 -dfmtlsT",
    "+info -a @archive --compat 7.2 -dfmtlsT",
    "info -a @archive -v",
    "+info -a @archive -z -f evil.set",
    "+info -a @archive -Z UTC% -f evil.set",
    "+info -a @archive evil.nothing%",
    "+info -a @nothing",
    "+info -a @nothing --compat 6.0",
    "+info -a @archive -c @bad.conf",
    "+probe -a @archive -v",
    "+probe -a @archive -I",
    "+probe -a @archive -iI",
    "+probe -a @archive -fI",
    "+probe -a @archive -I --compat 6.0",
    "+probe -a @archive -v --compat 7.2",
    "+probe -a @archive evil.nothing%",
    "+val -a @archive evil.set",
    "+val -a @archive evil.text",
    "+val -a @archive evil.texts",
    "+val -U @archive evil.set",
    "+val -a @archive -w 80 evil.set",
    "+val -a @archive -w 2 evil.texts",
    "+val -a @archive --compat 6.0 evil.texts",
    "+val -a @archive --compat 7.2 evil.set",
    "+val -a @archive -i inst% evil.set",
    "+val -a @archive -z evil.number",
    "+val -a @nothing evil.set",
    "+archive @archive",
    "+archive --scan @archive",
    "+archive -z @archive",
    "+archive @nothing",
    "+check -c @bad.conf",
    "+check -a @archive -c @bad.conf --lint",
    "check -c @bad.conf --format json",
    "+check -c @nothing",
    "+check evil.set%",
    "+check --metadata @form.conf evil.set",
    "explain -a @archive evil.set+evil.number",
    "+explain -a @archive evil.set[inst%]",
    "+explain -a @archive evil.set%",
    "explain -a @archive --format json evil.set[inst%]",
    "deps -a @archive -v evil.set[inst%]",
    "deps -a @archive --format json evil.set[inst%]",
    "deps -a @archive --format pmlogger -v evil.set[inst%]",
    "deps -a @archive --metadata evil.set",
    "+deps -c @nothing",
    "+fmt --check @form.conf",
    "+fmt --stdout @form.conf",
    "+fmt --check @bad.conf",
    "+fmt @nothing",
    "+test @test.toml",
    "test --format json @test.toml",
    "+test @bad.conf",
    "+test @nothing",
    "+record -a @archive -o @copy evil",
    "+record -a @archive -o @archive evil",
    "+record -a @archive -o @copy evil.nothing%",
    "+replay --cases @cases --archives .",
    "+replay --cases @nothing --archives .",
    "eval -a @archive evil.events",
    "eval -a @archive --format csv evil.events",
    "+info -a @archive -x evil.events",
    "+info -a @archive -fx --compat 6.0 evil.events",
    "+val -a @archive evil.events",
    // What comes from a pmcd.
    "+eval -h ^ -s 1 evil.set evil.text evil.texts evil.events",
    "+eval -h ^ -s 1 --format csv evil.set evil.text",
    "eval -h ^ -s 1 --format json evil.set evil.text",
    "+export -h ^ -s 1 evil.set evil.text evil.texts",
    "+info -h ^ -dfmtlsT evil",
    "+info -h ^ -FIM evil",
    "+info -h ^ --compat 6.0 -dfmtlsT evil",
    "+info -h ^ --compat 7.2 -x evil.events",
    "+probe -h ^ -I evil",
    "+probe -h ^ -v evil",
    "+val -h ^ -s 1 evil.set",
    "+val -h ^ -s 1 --compat 6.0 evil.texts",
    "+val -h ^ -s 1 -i inst% evil.set",
    "+record -h ^ -s 1 -o @recorded evil",
    "explain -h ^ evil.set",
    "deps -h ^ -v evil.set[inst%]",
    "+eval -h ^?container=% -s 1 evil.set",
    "+info -h ^?container=% -f evil.set",
    "+info -h ^ --container=% -f evil.set",
    "+eval -h 127.0.0.1:1?container=% --retry=0 evil.set",
    "+info -h 127.0.0.1:1?container=% evil.set",
    "+info -h 127.0.0.1:1?container=% --compat 6.0 evil.set",
    "+eval -h unix://tmp/% --retry=0 evil.set",
    // Messages of several lines.
    "+eval -a @archive -S % evil.set",
    "+eval -a @archive -T @1% evil.set",
    "+eval -a @archive -O x% evil.set",
    "+eval -a @archive -S +1hour% evil.set",
    "+export -a @archive -A 1sec% evil.set",
    "+info -a @archive -O % evil.set",
    "+info -a @archive -O % evil.set --compat 6.0",
    "+info -a @archive -n @names",
    "+info -a @archive -n @names --compat 6.0",
    "+info -a @archive -n @nothing",
    "+info -a @archive -n @nothing --compat 6.0",
    "+info -a @nothing --compat 6.0",
    "+info -a @archive --compat 6.0 -c @bad.conf",
    "+info -a @archive --compat 7.2 -c @bad.conf",
    "+info --compat 6.0 -h pcp://%",
    "+info --compat 6.0 --%",
    "info --compat 6.0 -%",
    "+info --compat 6.0 -h a -h %",
    "+probe -a @archive -O % evil.set",
    "+probe --compat 6.0 -h %:%",
    "+val -a @archive -S % evil.set",
    "+val -a @archive --compat 6.0 -S % evil.set",
    "+val -a @archive --compat 6.0 -t % evil.set",
    "+val -a @archive --compat 6.0 evil.set%",
    "+val -a @archive evil.set[%",
    "+val -a @archive --compat 6.0 evil.set[%",
    "+val -a @archive --compat 6.0 evil.number[%]",
    "+val -a @archive --compat 6.0 -i inst evil.set[%]",
    "+val --compat 6.0 pcp://%/evil.set",
    "+check --diag pcp evil.set+~",
    "+check --diag pcp rate(~",
    "+check --diag pcp -c @bad.conf",
    "+check --diag pcp -a @archive -c @bad.conf",
    "+check --diag pcp -c @nothing",
    // Arguments of a wrong form.
    "+eval --format % evil.set",
    "+eval -h pcp://% evil.set",
    "+eval --%",
    "+info --%",
    "+val -t % evil.set",
    "+val -s % evil.set",
    "+fmt --check --%",
    "+%",
];

/// Colours of diagnostics, and of what is wrong with arguments.
fn without_colours(text: &str) -> String {
    let colour = regex::Regex::new("\x1b\\[(0|1|4|3[0-7]|38;5;[0-9]+)m").expect("a pattern");
    colour.replace_all(text, "").into_owned()
}

/// What of a text a terminal would obey, or whatever looks as if it were ours.
fn hostile_part(text: &str) -> Option<String> {
    let is_obeyed = |c: &char| !matches!(c, '\n' | '\t') && is_unshown(*c);
    let place = text.char_indices().find(|(_, character)| is_obeyed(character));
    let around = |at: usize| {
        let start = text.floor_char_boundary(at.saturating_sub(80));
        format!("{:?}", &text[start..text.ceil_char_boundary(at + 40)])
    };
    let own_lines = ["\nINJECTED", "\tTAB"].into_iter().find_map(|wrong| text.find(wrong));
    place.map(|(at, _)| at).or(own_lines).map(around)
}

/// True if hostile text is in a text, escaped or not.
fn is_seen(text: &str) -> bool {
    text.contains("[45m") || text.contains("\\u{202e}")
}

#[test]
fn a_terminal_gets_nothing_that_it_would_obey() {
    let files = Files::write();
    let mut failures = Vec::new();
    for line in COMMANDS {
        let (is_hostile, line) = match line.strip_prefix('+') {
            Some(line) => (true, line),
            None => (false, *line),
        };
        let printed = pty::run(files.command(line));
        let text = match String::from_utf8(printed) {
            Ok(text) => without_colours(&text),
            Err(error) => {
                failures.push(format!("{line}: {error}"));
                continue;
            }
        };
        if let Some(part) = hostile_part(&text) {
            failures.push(format!("{line}: {part}"));
        } else if is_hostile && !is_seen(&text) {
            failures.push(format!("{line}: no hostile text in {text:?}"));
        } else if text.is_empty() {
            failures.push(format!("{line}: nothing"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Commands whose output is exact in a pipe.
const EXACT: &[&str] = &["info", "probe", "val", "archive", "fmt"];

#[test]
fn a_pipe_gets_text_for_people_escaped_and_all_else_as_it_is() {
    let files = Files::write();
    let mut failures = Vec::new();
    for line in COMMANDS {
        let line = line.strip_prefix('+').unwrap_or(line);
        let ran = files.command(line).output().expect("it runs");
        let command = line.split_whitespace().next().unwrap_or_default();
        let is_exact = EXACT.contains(&command)
            || line.contains("csv")
            || command == "export" && !line.contains("json");
        if !is_exact {
            let text = String::from_utf8_lossy(&ran.stdout);
            if let Some(part) = hostile_part(&text) {
                failures.push(format!("{line}: standard output: {part}"));
            }
        }
        let is_of_pcp = line.contains("--compat") || line.contains("--diag pcp");
        if !is_of_pcp {
            let text = String::from_utf8_lossy(&ran.stderr);
            if let Some(part) = hostile_part(&text) {
                failures.push(format!("{line}: standard error: {part}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_pipe_gets_every_byte() {
    let files = Files::write();
    let whole = HOSTILE.as_bytes();
    let in_bytes = b"\x9b45m gr\xfcn".as_slice();
    let cases: &[(&str, &[&[u8]])] = &[
        ("info -a @archive -flt", &[whole, in_bytes]),
        ("probe -a @archive -I", &[whole, in_bytes]),
        ("probe -a @archive -v", &[whole]),
        ("val -a @archive evil.set", &[whole, in_bytes]),
        ("val -a @archive evil.texts", &[whole, in_bytes]),
        ("archive @archive", &[whole]),
        ("eval -a @archive --format csv evil.set evil.text", &[whole]),
        ("export -a @archive evil.set evil.text", &[whole]),
        ("fmt --stdout @form.conf", &[b"\x1b[45m\x1b]0;x\x07"]),
        ("eval -a @archive --raw evil.set evil.text", &[whole]),
        ("eval -a @nothing --raw evil.set", &[whole]),
        ("archive @nothing --raw", &[whole]),
    ];
    for (line, parts) in cases {
        let ran = files.command(line).output().expect("it runs");
        let both = [ran.stdout, ran.stderr].concat();
        for part in *parts {
            let text = String::from_utf8_lossy(&both);
            assert!(
                contains(&both, part),
                "{line}: {:?} is not in {text:?}",
                String::from_utf8_lossy(part)
            );
        }
    }
    // On a terminal as well, for those who ask for it.
    let printed = pty::run(files.command("eval -a @archive --raw evil.set"));
    assert!(contains(&printed, whole), "{:?}", String::from_utf8_lossy(&printed));
}

/// Formats in UTF-8 have two names where there are two, and two values.
#[test]
fn bytes_that_are_not_utf_8_are_no_other_text() {
    let files = Files::write();
    let (plain, in_json) = (r"\x9b45m gr\xfcn", r"\\x9b45m gr\\xfcn");
    for (line, expected) in [
        ("eval -a @archive --format csv evil.set evil.texts", plain),
        ("eval -a @archive --format json evil.set evil.texts", in_json),
        ("export -a @archive --format csv evil.set evil.texts", plain),
        ("export -a @archive --format json evil.set evil.texts", in_json),
    ] {
        let ran = files.command(line).output().expect("it runs");
        let text = String::from_utf8(ran.stdout).expect("UTF-8");
        // In three samples two names and a value.
        assert_eq!(text.matches(expected).count(), 9, "{line}: {text}");
    }
}

#[test]
fn names_of_files_that_are_not_utf_8_are_told_byte_for_byte() {
    let files = Files::write();
    let folder = files.folder.path();
    let name = OsStr::from_bytes(b"gr\xfcn.conf");
    let file = folder.join("conf").join(name);
    std::fs::create_dir(folder.join("conf")).expect("it is new");
    std::fs::write(&file, "evil.bad = 1 +\n").expect("it is written");
    hostile::write(&folder.join(OsStr::from_bytes(b"gr\xfcn")));
    let mut failures = Vec::new();
    // `*` is a file that is there, `.` the folder that it is in, `+` one that is not, `:` an archive.
    for line in [
        "check -c .",
        "check --format json -c .",
        "check --diag pcp -c .",
        "fmt --check *",
        "fmt +",
        "test +",
        "eval -a : -c . evil.set",
        "eval -a + evil.set",
        "info -a + evil.set",
        "info -a + --compat 6.0 evil.set",
        "info -a : -n + evil.set",
        "val -a : -s 1 evil.number",
        "probe -a + evil.set",
        "archive :",
        "archive +",
        "record -a : -o : evil",
        "export -a : -o +/x.csv evil.set",
    ] {
        let words = line.split(' ').map(|word| match word {
            "*" => file.clone().into_os_string(),
            "." => folder.join("conf").into_os_string(),
            ":" => folder.join(OsStr::from_bytes(b"gr\xfcn")).into_os_string(),
            _ if word.starts_with('+') => {
                let rest = &word[1..];
                let name = folder.join(OsStr::from_bytes(b"gr\xfcn-nothing")).into_os_string();
                [name.as_os_str(), OsStr::new(rest)].join(OsStr::new(""))
            }
            word => word.into(),
        });
        for is_terminal in [false, true] {
            let mut command = pmderive(&[]);
            command.args(words.clone());
            let printed = match is_terminal {
                true => pty::run(command),
                false => {
                    let ran = command.output().expect("it runs");
                    [ran.stdout, ran.stderr].concat()
                }
            };
            let text = String::from_utf8_lossy(&printed);
            let is_json = line.contains("json");
            let shown = if is_json { "gr\\\\xfcn" } else { "gr\\xfcn" };
            if !text.contains(shown) || text.contains('\u{fffd}') {
                failures.push(format!("{line}: {text:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn columns_of_val_stay_where_they_are() {
    let files = Files::write();
    let printed = pty::run(files.command("val -a @archive -Z UTC -w 120 evil.texts"));
    let text = String::from_utf8(printed).expect("UTF-8");
    let lines: Vec<&str> = text.lines().rev().take(4).collect();
    let end = format!("text{SHOWN}\" ");
    for line in &lines[..3] {
        let columns: Vec<&str> = line.split(" \"").collect();
        assert!(line.contains(&end), "{line:?}");
        assert_eq!(line.len(), lines[0].len(), "{columns:?}");
    }
    // Names stand over their columns, and both end where the columns do.
    assert_eq!(lines[3].len(), lines[0].len(), "{lines:#?}");
}

/// The installed tools print the same bytes.
#[test]
fn a_pipe_gets_what_pcp_prints() {
    let is_installed = Path::new("/usr/bin/pminfo").exists();
    assert!(is_installed || std::env::var("CI").is_err(), "PCP is not installed");
    if !is_installed {
        eprintln!("NOT RUN: PCP is not installed (tests/real-pcp install)");
        return;
    }
    let files = Files::write();
    let plain = files.folder.path().join("plain");
    hostile::write(&plain);
    for (tool, options) in [
        ("pminfo", "-dfmtlT evil"),
        ("pminfo", "-F evil"),
        ("pmprobe", "-I"),
        ("pmprobe", "-v"),
        ("pmval", "-U evil.set"),
        ("pmval", "evil.text"),
    ] {
        let mut arguments: Vec<&str> = options.split(' ').collect();
        let archive = plain.to_str().expect("UTF-8");
        if arguments[0] != "-U" {
            arguments.insert(0, "-a");
        }
        arguments.insert(1, archive);
        let theirs = std::process::Command::new(tool)
            .args(&arguments)
            .env("TZ", "UTC")
            .env("PCP_DERIVED_CONFIG", "")
            .output()
            .expect("it runs");
        let ours = pmderive(&[&[&tool[2..], "--compat", "6.0"], &arguments[..]].concat())
            .env("TZ", "UTC")
            .output()
            .expect("it runs");
        let [theirs, ours] =
            [theirs.stdout, ours.stdout].map(|out| String::from_utf8_lossy(&out).into_owned());
        assert!(theirs.contains("evil"), "{theirs:?}");
        assert_eq!(ours, theirs, "{tool} {options}");
    }
}

/// Long pages go through what `PAGER` says, with headings in bold; without one
/// they are printed plainly.
#[test]
fn help_goes_through_a_pager() {
    let on = |terminal: &str, pager: &str| {
        let mut command = pmderive(&["help", "statuses"]);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.env("TERM", terminal).env("PAGER", pager);
        String::from_utf8(pty::run(command)).expect("UTF-8")
    };
    let shown = |pager: &str| on("xterm", pager);
    let paged = shown("sed 's/^/> /'");
    assert!(paged.starts_with("> \u{1b}[1mExit statuses\u{1b}[0m\n> \n"), "{paged}");
    let direct = shown("");
    assert!(direct.starts_with("\u{1b}[1mExit statuses\u{1b}[0m\n\n"), "{direct}");
    assert_eq!(shown("cat"), direct);
    // The shell says that there is no such command.
    assert!(shown("/nowhere/pager").ends_with(&direct));
    let plain = on("dumb", "");
    assert!(plain.starts_with("Exit statuses\n=============\n\n"), "{plain}");
}
