//! All texts for users: help, messages, diagnostics, notes, the manual.
//!
//! The texts are those of the command line and the literals of the product's source, so that
//! none is forgotten. One snapshot has all of them and shows every change. After a change run
//! the test with `INSTA_UPDATE=always` and read the difference. Pages of the manual, the README
//! and the page of targets are not in the snapshot, but their prose follows the same rules. No
//! sentence has more than 25 words, and none is turned around.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pmderive::manual::TOPICS;
use regex::Regex;

use crate::command::settings;

/// Most words of a sentence.
const MOST_WORDS: usize = 25;

/// Fewest words of a literal that is read as a text.
const FEWEST_WORDS: usize = 4;

/// Where texts are.
const ROOTS: &[&str] = &[
    "src",
    "runtime/src",
    "runtime/archive/src",
    "runtime/client/src",
    "runtime/core/src",
    "runtime/local/src",
    "runtime/system/src",
];

/// Forms that a reader has to read twice.
const TURNED_AROUND: &[&str] = &[
    // "Why it is refused, says `explain`": the subject comes last.
    r"^(What|Why|Where|Whether|Who|Whoever|How)\b[^:;?]*\b(says|tells|shows|lists|explains|has|gives) (`|the\b|a\b)",
    r"\b(is|are|was|were) told\b",
    r"\bworth the while\b",
    r"\bthe mend\b",
    r"\bhardly meant\b",
    r"\bbe it\b",
    r"\bbut for\b",
    r"\bhardly\b",
    r"\bhas to be said\b",
    r"\bby second\b",
    r"\bput right\b",
    r"\bfor want of\b",
    r"^Of several\b",
    r"^What (comes|stands) (behind|before|after|in)\b",
];

/// Lists of words that programs match on, in the order of PCP's tools.
const NO_SENTENCES: &[&str] = &["pdu fetch profile value context"];

#[test]
fn what_users_read_is_plain() {
    let texts = texts();
    let pages = pages();
    let sentences = |text: &str| -> Vec<String> { sentences(text) };
    let long: Vec<String> = texts
        .iter()
        .chain(&pages)
        .filter(|text| !NO_SENTENCES.iter().any(|known| text.starts_with(known)))
        .flat_map(|text| sentences(text))
        .filter(|sentence| words(sentence) > MOST_WORDS)
        .collect();
    assert!(long.is_empty(), "more than {MOST_WORDS} words:\n{}", long.join("\n"));
    let patterns = TURNED_AROUND.iter().map(|pattern| Regex::new(pattern).expect("a pattern"));
    let patterns: Vec<Regex> = patterns.collect();
    let turned: Vec<String> = texts
        .iter()
        .chain(&pages)
        .flat_map(|text| sentences(text))
        .filter(|sentence| patterns.iter().any(|pattern| pattern.is_match(sentence)))
        .collect();
    assert!(turned.is_empty(), "hard to read:\n{}", turned.join("\n"));
    let lines: Vec<String> = texts.iter().map(|text| text.replace('\n', "\n    ")).collect();
    settings("cli").bind(|| insta::assert_snapshot!("words", lines.join("\n")));
}

/// Paragraphs, headings, items of lists and cells of tables of the manual and
/// the README, and what the page of targets shows.
fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("a file");
    let mut pages = paragraphs(&read("README.md"));
    TOPICS.iter().for_each(|topic| pages.extend(paragraphs(topic.text)));
    let quoted = Regex::new(r#""([A-Z][^"\n]*)""#).expect("a pattern");
    let page = read("src/fleet/server/targets.html");
    pages.extend(quoted.captures_iter(&page).map(|found| found[1].to_owned()));
    pages
}

/// The prose of a page, without code and targets of references.
fn paragraphs(page: &str) -> Vec<String> {
    let left_out = Regex::new(r"^(\[[^\]]+\]: |<!--)").expect("a pattern");
    let item = Regex::new(r"^(- |\* |\d+\. |#+ )").expect("a pattern");
    let mut paragraphs = vec![String::new()];
    for line in without_code(page).lines().map(str::trim) {
        if let Some(row) = line.strip_prefix('|') {
            let row = row.replace("\\|", "/");
            paragraphs.extend(row.split('|').map(|cell| cell.trim().to_owned()));
            paragraphs.push(String::new());
        } else if line.is_empty() || left_out.is_match(line) {
            paragraphs.push(String::new());
        } else if let Some(sign) = item.find(line) {
            paragraphs.push(line[sign.end()..].to_owned());
            if sign.as_str().starts_with('#') {
                paragraphs.push(String::new());
            }
        } else if let Some(last) = paragraphs.last_mut() {
            last.push(' ');
            last.push_str(line);
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.iter().map(|paragraph| paragraph.trim().to_owned()).collect()
}

/// All texts, each once, in alphabetical order.
pub fn texts() -> BTreeSet<String> {
    let mut texts: BTreeSet<String> = crate::command_line::texts().into_iter().collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ROOTS {
        for path in files(&root.join(folder)) {
            let text = fs::read_to_string(&path).expect("a file");
            if path.extension().is_some_and(|extension| extension == "md") {
                texts.extend(without_code(&text).split("\n\n").map(|part| part.trim().to_owned()));
            } else {
                texts.extend(literals(&text));
            }
        }
    }
    texts.retain(|text| words(text) >= FEWEST_WORDS);
    texts
}

/// Files of the product's code, and pages about diagnostics.
fn files(folder: &Path) -> Vec<PathBuf> {
    let left_out = Regex::new(r"(^|[/_])(fuzz|tests|test_peer)(_\w+)?\.rs$|/tests/|_tests?\.rs$");
    let left_out = left_out.expect("a pattern");
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.to_str().expect("a name");
            if path.is_dir() {
                open.push(path);
            } else if name.ends_with(".rs") && !left_out.is_match(name)
                || name.contains("/diag/pages/")
            {
                files.push(path);
            }
        }
    }
    files
}

fn without_code(page: &str) -> String {
    let parts = page.split("```").enumerate();
    parts.filter(|(at, _)| at % 2 == 0).map(|(_, part)| part).collect()
}

/// The literals of a source file up to its tests, but those that no user sees.
fn literals(source: &str) -> Vec<String> {
    let tests = Regex::new(r"(?m)^#\[cfg\((all\()?test\b[^\]]*\]\n(pub(\(\w+\))? )?mod \w+ \{");
    let tests = tests.expect("a pattern").find(source).map_or(source.len(), |tests| tests.start());
    let token = Regex::new(
        r##"(?s)//[^\n]*|/\*.*?\*/|r#"(?<hash>.*?)"#|\br"(?<raw>[^"]*)"|"(?<text>(?:[^"\\]|\\.)*)"|'(?:[^'\\]|\\.[^']*)'"##,
    );
    let token = token.expect("a pattern");
    let mut found = Vec::new();
    for token in token.captures_iter(&source[..tests]) {
        let text = ["hash", "raw", "text"].iter().find_map(|name| token.name(name));
        let Some(text) = text else { continue };
        let before = &source[..text.start()];
        // Why a lint is off, and what can never be seen.
        if ["reason = \"", ".expect(\"", "unreachable!(\""].iter().any(|end| before.ends_with(end))
        {
            continue;
        }
        found.push(unescaped(text.as_str()));
    }
    found
}

/// What a literal stands for, as far as it matters here.
fn unescaped(literal: &str) -> String {
    let continued = Regex::new(r"\\\n\s*").expect("a pattern");
    let text = continued.replace_all(literal, "");
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"").replace("\\\\", "\\")
}

/// The sentences of a text, without indented lines and tables. An empty line
/// ends one, and so does a colon in front of such lines.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for line in text.lines().filter(|line| !line.starts_with('|')) {
        let ends_here = line.trim().is_empty() || line.starts_with("  ");
        if ends_here {
            sentences.push(String::new());
            continue;
        }
        for word in line.split_whitespace() {
            if let Some(last) = sentences.last_mut() {
                last.push_str(word);
                last.push(' ');
            }
            if word.trim_end_matches([')', '*', '"']).ends_with(['.', '!', '?', ']']) {
                sentences.push(String::new());
            }
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// The number of words; code and what is filled in count as one each.
fn words(sentence: &str) -> usize {
    let code = Regex::new(r"`[^`]*`|\{[^}]*\}").expect("a pattern");
    let plain = code.replace_all(sentence, "x");
    plain.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[test]
fn literals_are_found() {
    let source = "// \"no\"\nlet a = \"one \\\n    two \\\"x\\\"\"; let b = 'c'; let d = '\"';\n\
                  #[allow(x, reason = \"not this\")]\nlet e = r\"raw\";\n\
                  #[cfg(test)]\nmod tests {\n\"never\"}";
    assert_eq!(literals(source), ["one two \"x\"", "raw"]);
    assert_eq!(sentences("One two. Three\nfour?"), ["One two. ", "Three four? "]);
    assert_eq!(sentences("For example:\n  code here.\nfive"), ["For example: ", "five "]);
    assert_eq!(words("a `b c d` {} {e:?}, - f"), 5);
    let page = "# A\nb\n- c\n  d\n\n```text\nno\n```\n| e | f\\|g |\n|---|\n[x]: y.md\nh\n";
    assert_eq!(paragraphs(page), ["A", "b", "c d", "e", "f/g", "---", "h"]);
}
