//! Runs every example of the manual and of the README.
//!
//! A block called `console` shows a terminal. `$ ` begins a command, which continues behind a
//! backslash and in a here-document. The lines after it are its output, standard error
//! included. The commands of a page run in one shell, in a folder of their own with `tests` in
//! it, so a page can use its earlier results. `...` stands for any further lines of an output,
//! behind at least one. In a block called `console varies` numbers may differ.
//!
//! Blocks called `sh` are not run, as their hosts and files do not exist; the arguments of
//! `pmderive` in them must be correct. Definitions in blocks called `conf` must have no
//! mistakes. Files in blocks called `toml`, `json` and `lua` are parsed. Blocks called `rust`
//! are tests of the documentation.
//!
//! `MANUAL=update cargo test --test it manual` writes the present output of the commands.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pmderive::diag::{Code, page};
use pmderive::manual::TOPICS;
use pmderive_testkit::real_pmcd::{RealPmcd, not_run};

use crate::command;
use command::{finished, pmderive, run};

/// Where examples find a pmcd; a test puts the port of its own in its place.
const EXAMPLE_PORT: &str = "localhost:44321";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of the README and of all pages of the manual.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    pages.extend(TOPICS.iter().map(|topic| file_of(topic.name)));
    pages
}

/// The file of a page: in the folder of the manual is a reference to one that
/// stands elsewhere.
fn file_of(topic: &str) -> PathBuf {
    let manual = root().join("src/manual");
    let file = manual.join(format!("{topic}.md"));
    let page = std::fs::read_to_string(&file).expect("a page of the book");
    match page.strip_prefix("{{#include ").and_then(|rest| rest.split_once("}}")) {
        Some((elsewhere, _)) => manual.join(elsewhere),
        None => file,
    }
}

/// A fenced block: what it is called, and its text with its place in the page.
struct Block<'p> {
    kind: &'p str,
    start: usize,
    text: &'p str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open): (Vec<Block<'_>>, Option<(&str, usize)>) = (Vec::new(), None);
    let mut offset = 0;
    for line in page.split_inclusive('\n') {
        if let Some(kind) = line.strip_prefix("```") {
            open = match open {
                None => Some((kind.trim(), offset + line.len())),
                Some((kind, start)) => {
                    blocks.push(Block { kind, start, text: &page[start..offset] });
                    None
                }
            };
        }
        offset += line.len();
    }
    assert!(open.is_none(), "a block without end");
    blocks
}

/// A command and what it prints.
#[derive(Debug)]
struct Example {
    command: String,
    output: String,
    varies: bool,
}

fn examples(block: &Block<'_>) -> Vec<Example> {
    let varies = block.kind.contains("varies");
    let (mut examples, mut lines) = (Vec::new(), block.text.lines().peekable());
    while let Some(line) = lines.next() {
        let mut command = line.strip_prefix("$ ").expect("a command").to_owned();
        let document = command.split_once("<<").map(|(_, end)| end.trim_matches('\'').to_owned());
        let is_whole = |command: &str| match &document {
            Some(end) => command.lines().skip(1).any(|line| line == end),
            None => !command.ends_with('\\'),
        };
        while !is_whole(&command) {
            command.push('\n');
            command.push_str(lines.next().expect("the rest of a command"));
        }
        let mut output = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            output.push_str(line);
            output.push('\n');
        }
        examples.push(Example { command, output, varies });
    }
    examples
}

/// What the commands print, one after the other in one shell.
fn outputs(examples: &[Example], port: Option<u16>) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(root().join("tests"), folder.path().join("tests")).expect("a link");
    let mut script = String::from("exec 2>&1\n");
    for example in examples {
        let mut command = example.command.clone();
        if let Some(port) = port {
            command = command.replace(EXAMPLE_PORT, &format!("localhost:{port}"));
        }
        // A mark that nothing prints ends each output.
        let _ = writeln!(script, "{command}\nprintf '\\001'");
    }
    let ours = Path::new(env!("CARGO_BIN_EXE_pmderive")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    // The surrounding of the command's other tests, for the shell.
    let surrounding = pmderive(&[]);
    let mut shell = Command::new("bash");
    for (name, value) in surrounding.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell
        .arg("-c")
        .arg(&script)
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", ours.display()))
        .env("HOME", folder.path())
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let out = finished(output).out;
    let out = match port {
        Some(port) => out.replace(&format!("localhost:{port}"), EXAMPLE_PORT),
        None => out,
    };
    let mut outputs: Vec<String> = out.split('\u{1}').map(str::to_owned).collect();
    assert_eq!(outputs.pop().as_deref(), Some(""), "{out}");
    assert_eq!(outputs.len(), examples.len(), "{out}");
    outputs
}

/// A text in which all figures are alike, and how wide columns are is not seen.
fn without_figures(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_whitespace() {
        let word = word.trim_end_matches("e").to_owned();
        let mut in_figure = false;
        for character in word.chars() {
            let belongs = character.is_ascii_digit()
                || in_figure && matches!(character, '.' | 'e' | '-' | '+' | ':' | 'T' | 'Z');
            if !belongs {
                out.push(character);
            } else if !in_figure {
                out.push('#');
            }
            in_figure = belongs;
        }
        out.push(' ');
    }
    out
}

/// What is printed must be what the page says.
fn agrees(example: &Example, printed: &str) -> bool {
    let shown = |line: &str| match example.varies {
        true => without_figures(line),
        false => line.to_owned(),
    };
    let wanted: Vec<&str> = example.output.lines().collect();
    let found: Vec<&str> = printed.lines().collect();
    let is_cut = wanted.last() == Some(&"...");
    let count = wanted.len() - usize::from(is_cut);
    // Nothing before the dots would say nothing.
    if is_cut && count == 0 {
        return false;
    }
    (found.len() == count || is_cut && found.len() > count)
        && wanted.iter().zip(&found).take(count).all(|(want, found)| shown(want) == shown(found))
}

/// The page with what was printed.
fn updated(page: &str, examples: &[Example], printed: &[String]) -> String {
    let mut out = String::new();
    let (mut end, mut at) = (0, 0);
    for block in blocks(page).iter().filter(|block| block.kind.starts_with("console")) {
        out.push_str(&page[end..block.start]);
        end = block.start + block.text.len();
        for _ in 0..self::examples(block).len() {
            let (example, printed) = (&examples[at], &printed[at]);
            let _ = writeln!(out, "$ {}", example.command);
            match agrees(example, printed) {
                true => out.push_str(&example.output),
                false => {
                    let lines = example.output.lines().position(|line| line == "...");
                    // With nothing before it, the dots ask for all of it.
                    let lines = lines.filter(|lines| *lines > 0);
                    let shown = printed.lines().take(lines.unwrap_or(usize::MAX));
                    shown.for_each(|line| out += &format!("{line}\n"));
                    out.push_str(if lines.is_some() { "...\n" } else { "" });
                }
            }
            at += 1;
        }
    }
    out.push_str(&page[end..]);
    out
}

/// Runs the examples of a page; the complaints.
fn checked(path: &Path) -> Vec<String> {
    let page = std::fs::read_to_string(path).expect("a page");
    let of_console = blocks(&page).into_iter().filter(|block| block.kind.starts_with("console"));
    let examples: Vec<Example> = of_console.flat_map(|block| self::examples(&block)).collect();
    let uses = |what: &str| examples.iter().any(|example| example.command.contains(what));
    if examples.is_empty() {
        return Vec::new();
    }
    if uses("/var/lib/pcp") && !Path::new("/var/lib/pcp/testsuite/archives").is_dir() {
        not_run(&format!("{}: PCP's test suite is not installed", path.display()));
        return Vec::new();
    }
    if ["pminfo", "pmval"].iter().any(|tool| uses(&format!("{tool} -")))
        && !Path::new("/usr/bin/pminfo").exists()
    {
        not_run(&format!("{}: PCP is not installed", path.display()));
        return Vec::new();
    }
    let pmcd = match uses(EXAMPLE_PORT).then(RealPmcd::start) {
        Some(None) => return Vec::new(),
        started => started.flatten(),
    };
    // It runs as long as the commands do.
    let printed = outputs(&examples, pmcd.as_ref().map(|pmcd| pmcd.port));
    if std::env::var("MANUAL").is_ok_and(|value| value == "update") {
        std::fs::write(path, updated(&page, &examples, &printed)).expect("a writable page");
        return Vec::new();
    }
    let complaint = |(example, printed): (&Example, &String)| {
        let Example { command, output, .. } = example;
        (!agrees(example, printed)).then(|| {
            format!("{}: $ {command}\n--- wanted\n{output}--- found\n{printed}", path.display())
        })
    };
    examples.iter().zip(&printed).filter_map(complaint).collect()
}

#[test]
fn examples_print_what_pages_say() {
    let complaints: Vec<String> = pages().iter().flat_map(|path| checked(path)).collect();
    assert!(complaints.is_empty(), "{}\nMANUAL=update writes them", complaints.join("\n"));
}

/// Commands that are not run are at least understood.
#[test]
fn commands_of_pages_are_understood() {
    let mut commands = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).expect("a page");
        for block in blocks(&page).iter().filter(|block| block.kind == "sh") {
            let whole = block.text.replace("\\\n", " ");
            for line in whole.lines().filter(|line| line.starts_with("pmderive ")) {
                let line = line.split(" | ").next().unwrap_or_default();
                // The shell takes it apart, and knows nothing of the command.
                let script = format!("set -- {}; shift; printf '%s\\0' \"$@\"", line);
                let words =
                    Command::new("bash").arg("-c").arg(&script).output().expect("bash runs");
                let words = finished(words).out;
                let words: Vec<&str> = words.split_terminator('\0').collect();
                let words = std::iter::once("pmderive").chain(words).map(Into::into).collect();
                let understood = crate::command_line::understands(words);
                assert_eq!(understood, Ok(()), "{}: {line}", path.display());
                commands += 1;
            }
        }
    }
    assert!(commands > 10, "{commands}");
}

#[test]
fn definitions_of_pages_have_no_mistakes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("page.conf");
    for path in pages() {
        let page = std::fs::read_to_string(&path).expect("a page");
        for block in blocks(&page).iter().filter(|block| block.kind == "conf") {
            std::fs::write(&file, block.text).expect("a file");
            let run = run(&["check", "--extensions", file.to_str().expect("UTF-8")]);
            assert_eq!(run.status, Some(0), "{}: {}\n{}", path.display(), block.text, run.err);
        }
    }
}

/// The blocks of a kind of all pages.
fn texts_of(kind: &str) -> Vec<String> {
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a page");
    let pages: Vec<String> = pages().iter().map(read).collect();
    let blocks = pages.iter().flat_map(|page| blocks(page));
    blocks.filter(|block| block.kind == kind).map(|block| block.text.to_owned()).collect()
}

/// Each file that pages show is read by what reads such files.
#[test]
fn files_of_pages_are_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let [targets] = &texts_of("json")[..] else { panic!("one file of targets") };
    write("hosts.json", targets);
    let definitions = write("shop.conf", "shop.load = kernel.all.load\n");
    write("racks.conf", "racks.load = avg(shop.load)\n");
    let mut kinds = BTreeSet::new();
    for text in texts_of("toml") {
        let mistakes = if text.contains("[dependencies]") {
            kinds.insert("Cargo.toml");
            mistakes_of_dependency(&text)
        } else if text.contains("[language-server.pmderive]") {
            kinds.insert("languages.toml");
            assert!(text.contains("command = \"pmderive\"\nargs = [\"lsp\", \"-L\"]"), "{text}");
            String::new()
        } else if text.contains("[[group]]") {
            kinds.insert("serve.toml");
            run(&["serve", "--check", "--config", &write("serve.toml", &text)]).err
        } else {
            kinds.insert("pmderive.toml");
            write("fleet.json", &run(&["deps", "-L", "--format", "metadata", &definitions]).out);
            write("pmderive.toml", &text);
            run(&["-q", "check", &definitions]).err
        };
        assert_eq!(mistakes, "", "{text}");
    }
    let all = ["Cargo.toml", "languages.toml", "pmderive.toml", "serve.toml"];
    assert_eq!(kinds, BTreeSet::from(all));
    assert!(texts_of("vim").concat().contains("'cmd': ['pmderive', 'lsp', '-L']"));
    let lua = texts_of("lua").concat();
    let command = lua.split_once("cmd = { ").and_then(|(_, rest)| rest.split_once(" }"));
    let words = command.expect("a command").0.split(", ").map(|word| word.trim_matches('"').into());
    assert_eq!(crate::command_line::understands(words.collect()), Ok(()), "{lua}");
}

/// What is wrong with a dependency on this crate in a `Cargo.toml`.
fn mistakes_of_dependency(text: &str) -> String {
    let own = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let version = env!("CARGO_PKG_VERSION");
    let words = text.split('"').skip(1).step_by(2);
    let is_known =
        |word: &&str| version.starts_with(word) || own.contains(&format!("\n{word} = ["));
    let unknown: Vec<&str> = words.filter(|word| !is_known(word)).collect();
    unknown.join(", ")
}

/// Old names of options, and options that exist only to be refused, are not
/// taught: neither by pages nor by messages.
#[test]
fn no_hidden_option_is_taught() {
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a page");
    let mut texts: Vec<String> = pages().iter().map(read).collect();
    texts.extend(crate::words::texts());
    let hidden = crate::command_line::hidden_options();
    assert!(hidden.contains(&("eval".to_owned(), "why".to_owned())), "{hidden:?}");
    let pattern = |text: &str| regex::Regex::new(text).expect("a pattern");
    // Without a file this writes metadata, as `--format metadata` does.
    let writes = pattern(r"(?m)(?:pmderive |`)deps [^`|(\n]*--metadata\s*(?:$|[`>|])");
    for text in &texts {
        let found = writes.find(text).map(|found| found.as_str());
        assert_eq!(found, None, "{text}");
    }
    for (command, name) in hidden {
        let taught = pattern(&format!(r"(?m)(?:^|[^-\w]){command} [^`|(\n]*--{name}(?:$|[^\w-])"));
        for text in &texts {
            let found = taught.find(text).map(|found| found.as_str());
            assert_eq!(found, None, "{command} --{name}: {text}");
        }
    }
    for text in texts {
        // No command shows these.
        for name in ["why", "volsize", "derived", "local-PMDA"] {
            let words = ["`--", " --"].map(|start| format!("{start}{name}"));
            assert!(!words.iter().any(|word| text.contains(word)), "{name}: {text}");
        }
    }
}

/// Kinds of blocks that tests know. `text` is for what stands beside the code
/// that it describes, where a test has it.
#[test]
fn no_example_is_passed_over() {
    let known =
        ["console", "console varies", "sh", "conf", "rust", "toml", "json", "lua", "vim", "yaml"];
    for path in pages() {
        let page = std::fs::read_to_string(&path).expect("a page");
        for block in blocks(&page) {
            let is_tested = block.kind == "text" && path.ends_with("fleet/sinks/names.md");
            let is_known = known.contains(&block.kind) || is_tested;
            assert!(is_known, "{}: {:?}", path.display(), block.kind);
            let has_command = block.text.lines().any(|line| line.starts_with("$ "));
            assert!(!has_command || block.kind.starts_with("console"), "{}", block.text);
        }
    }
}

/// The book has the pages of the list, in its order, and every reference leads
/// to one.
#[test]
fn the_book_has_all_pages() {
    let manual = root().join("src/manual");
    let summary = std::fs::read_to_string(manual.join("SUMMARY.md")).expect("the summary");
    let listed: Vec<(&str, &str)> = summary
        .lines()
        .filter_map(|line| {
            line.trim_start().trim_start_matches("- ").strip_prefix('[')?.split_once("](")
        })
        .map(|(title, file)| (title, file.trim_end_matches(')').trim_end_matches(".md")))
        .collect();
    let topics: Vec<(&str, &str)> = TOPICS.iter().map(|topic| (topic.title, topic.name)).collect();
    assert_eq!(listed, topics);
    let names: BTreeSet<&str> = TOPICS.iter().map(|topic| topic.name).collect();
    for topic in TOPICS {
        let file = manual.join(format!("{}.md", topic.name));
        let page = std::fs::read_to_string(&file).expect("a page of the book");
        // A page that stands elsewhere is included.
        let included = page.contains("{{#include ");
        assert!(included || page == topic.text, "{}", topic.name);
        let targets = page.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
        for (name, target) in targets {
            assert!(names.contains(name), "{}: {name}", topic.name);
            assert_eq!(target, format!("{name}.md"), "{}", topic.name);
        }
    }
}

/// The README is read from the beginning to the end.
#[test]
fn the_readme_is_short() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
    assert!(readme.lines().count() <= 120, "{} lines", readme.lines().count());
}

/// The page of codes is made from their own pages.
#[test]
fn all_codes_are_listed() {
    let mut text = String::from(
        "# Codes of diagnostics\n\n`pmderive explain PMD0202` shows the page of a code: what it means, why the rule exists,\n\
         a wrong example, a right one, and what libpcp says.\n\n| Code | What is wrong |\n|---|---|\n",
    );
    for code in Code::ALL {
        let headline = page(*code).lines().next().unwrap_or_default();
        let (code, what) = headline.trim_start_matches("# ").split_once(": ").expect("a headline");
        let _ = writeln!(text, "| {code} | {what} |");
    }
    written("codes", &text);
}

/// Holds a page that is made to what it is made from, or writes it.
fn written(name: &str, text: &str) {
    let path = root().join("src/manual").join(format!("{name}.md"));
    if std::env::var("MANUAL").is_ok_and(|value| value == "update") {
        return std::fs::write(&path, text).expect("a writable page");
    }
    let page = std::fs::read_to_string(&path).expect("the page");
    assert_eq!(page, text, "MANUAL=update writes {} anew", path.display());
}

/// The page of differences is made from the list that tests keep.
#[test]
fn differences_are_told() {
    let list = std::fs::read_to_string(root().join("tests/conformance/differences.txt"));
    let list = list.expect("the list");
    let head = std::fs::read_to_string(root().join("src/manual/differences.md")).expect("the page");
    let (head, _) = head.split_once("<!-- made").expect("what is written by hand");
    let mut text = head.to_owned();
    text.push_str("<!-- made from tests/conformance/differences.txt -->\n\n");
    text.push_str("| What | Dialects that differ | An expression that shows it |\n|---|---|---|\n");
    // A group: its name, its reason, then cases with a line for each dialect.
    for group in list.split("\n== ").skip(1) {
        let (group, _) = group.split_once("\n# Of such").unwrap_or((group, ""));
        let mut parts = group.trim_end().split("\n\n");
        let (_, reason) = parts.next().and_then(|head| head.split_once('\n')).expect("a reason");
        let cases: Vec<&str> = parts.collect();
        let lines = cases.iter().flat_map(|case| case.lines());
        let dialects: BTreeSet<&str> = lines
            .filter_map(|line| line.strip_prefix("    ")?.split_once(": "))
            .map(|(dialect, _)| dialect)
            .collect();
        let first = cases.iter().min_by_key(|case| case.lines().next().map(str::len));
        let shown = first.and_then(|case| case.lines().next()?.split_once(": "));
        let dialects = match dialects.is_empty() {
            true => "all".to_owned(),
            false => dialects.into_iter().collect::<Vec<_>>().join(", "),
        };
        let escaped = |text: &str| text.replace('\n', " ").replace('|', "\\|");
        // In prose brackets are the beginning of a link.
        let reason = reason.replace('[', "\\[");
        let shown = shown.map_or(String::new(), |(_, expr)| format!("`{}`", escaped(expr)));
        let _ = writeln!(text, "| {} | {dialects} | {shown} |", escaped(&reason));
    }
    written("differences", &text);
}

/// Each function of libpcp and of ours is in an example that is run.
#[test]
fn every_function_has_an_example() {
    let page = std::fs::read_to_string(root().join("src/manual/functions.md")).expect("the page");
    let run: String = blocks(&page)
        .iter()
        .filter(|block| block.kind.starts_with("console"))
        .flat_map(|block| self::examples(block))
        .map(|example| example.command + "\n")
        .collect();
    let table = include_str!("../../grammar/extensions.md");
    let ours = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('('));
    let ours = ours
        .map(|(name, _)| name)
        .filter(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
    let pcps = "avg count defined delta instant matchinst max min mkconst novalue rate rescale \
                scalar sum";
    for name in ours.chain(pcps.split_whitespace()) {
        assert!(run.contains(&format!("{name}(")), "{name}");
    }
}

/// All Rust text below a folder, with texts that go on in the next line as one.
fn source_text(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.extension() {
            None if path.is_dir() => source_text(&path, text),
            Some(extension) if extension == "rs" => {
                let file = std::fs::read_to_string(&path).expect("a file");
                for (at, part) in file.split("\\\n").enumerate() {
                    text.push_str(if at == 0 { part } else { part.trim_start() });
                }
            }
            _ => {}
        }
    }
}

/// Messages that the page about them explains are messages of ours.
#[test]
fn messages_that_are_explained_exist() {
    let mut text = String::new();
    ["src", "runtime"].iter().for_each(|folder| source_text(&root().join(folder), &mut text));
    let page = std::fs::read_to_string(root().join("src/manual/troubleshooting.md"));
    let page = page.expect("the page");
    let (explained, _) = page.split_once("## Things that surprise").expect("what has no message");
    let mut count = 0;
    for row in explained.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (first, _) = row.split_once(" | ").expect("a cell");
        for message in first.split('`').step_by(2) {
            for part in message.split("...").map(|part| part.trim_matches([' ', ',', ':'])) {
                assert!(text.contains(part), "{part}");
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn help_shows_topics_and_commands() {
    let topics = run(&["help"]);
    assert_eq!((topics.status, &*topics.err), (Some(0), ""));
    for topic in TOPICS {
        let line =
            topics.out.lines().find(|line| line.split_whitespace().next() == Some(topic.name));
        assert!(line.is_some_and(|line| line.ends_with(topic.title)), "{}", topic.name);
        let page = run(&["help", topic.name]);
        assert_eq!((page.status, &*page.err), (Some(0), ""), "{}", topic.name);
        assert!(!page.out.contains('\u{1b}') && page.out.lines().count() > 3, "{}", topic.name);
    }
    let command = run(&["help", "eval"]);
    assert_eq!(command, run(&["eval", "--help"]));
    let names = run(&["help", "names"]).out;
    assert!(names.starts_with("Names and labels of series\n====="), "{names}");
    let about = run(&["help", "aggregates"]);
    let (_, topics) = about.err.split_once("these topics are about it: ").expect("topics");
    assert!(topics.contains("fleets"), "{topics}");
    let unknown = run(&["help", "evil"]);
    assert_eq!((unknown.status, &*unknown.out), (Some(2), ""));
    assert!(unknown.err.contains("did you mean `pmderive help eval`?"), "{}", unknown.err);
}

/// Whoever gets a crate alone finds there what it is, and under which licence.
#[test]
fn published_crates_have_a_readme_and_licences() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    let members =
        members.expect("the members").0.split(", ").map(|member| member.trim_matches('"'));
    let published: Vec<&str> = members.filter(|member| !member.ends_with("testkit")).collect();
    assert_eq!(published.len(), 7, "{published:?}");
    for member in published {
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            let text = std::fs::read_to_string(root().join(member).join(file));
            assert!(text.is_ok_and(|text| text.len() > 100), "{member}: {file}");
        }
    }
}
