//! Two hundred mistakes of users, each with its answer.
//!
//! The files of `tests/mistakes` have them, each with a title; the snapshots
//! beside them hold the answers. After a change of wording run the test with
//! `INSTA_UPDATE=always` and read the difference.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use pmderive::diag::Diagnostics;
use pmderive::diag::render::{Style, render};

use super::fleet::{Asked, Found, compile};

/// The files: mistakes of everyone who begins, those of people who come from other
/// languages, more of their habits, and those with more than one edit in question.
const FILES: [&str; 4] = ["beginners", "other-languages", "habits", "doubts"];

/// A mistake.
struct Mistake {
    title: String,
    text: String,
    extensions: bool,
}

impl Mistake {
    fn compiled(&self, text: &str) -> Found {
        let asked = Asked { extensions: self.extensions, lint: true, ..Asked::default() };
        let Found { sources, diagnostics, usable } = compile("x.conf", text, asked);
        let mut diagnostics = diagnostics.without_consequences();
        diagnostics.sort();
        Found { sources, diagnostics, usable }
    }
}

fn mistakes(file: &str) -> Vec<Mistake> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mistakes/{file}.txt"));
    let text = std::fs::read_to_string(path).expect("a file of the repository");
    let mut mistakes: Vec<Mistake> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("== ") {
            let extensions = title.ends_with(" (with --extensions)");
            mistakes.push(Mistake { title: title.to_owned(), text: String::new(), extensions });
        } else if let Some(mistake) = mistakes.last_mut() {
            mistake.text.push_str(line);
            mistake.text.push('\n');
        }
    }
    mistakes
}

#[test]
fn what_each_is_answered_with() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mistakes"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut count = 0;
    for file in FILES {
        let mut answers = String::new();
        for mistake in mistakes(file) {
            count += 1;
            let Found { sources, diagnostics, .. } = mistake.compiled(&mistake.text);
            let _ = writeln!(answers, "== {}", mistake.title);
            for one in &diagnostics {
                let _ = writeln!(answers, "{}", render(one, &sources, Style::Plain));
            }
        }
        settings.bind(|| insta::assert_snapshot!(file, answers));
    }
    assert!(count >= 180, "only {count} mistakes");
}

/// Each wrong line is reported, once, and with what to do.
#[test]
fn each_is_told_once_with_what_to_do() {
    for mistake in FILES.into_iter().flat_map(mistakes) {
        let Found { sources, diagnostics, .. } = mistake.compiled(&mistake.text);
        assert!(!diagnostics.is_empty(), "{} is not noticed", mistake.title);
        let mut of_line: HashMap<usize, usize> = HashMap::new();
        for one in &diagnostics {
            let (line, _) = sources.line_column(one.span.source, one.span.start);
            *of_line.entry(line).or_default() += 1;
            let advised = one.help.is_some() || one.fix.is_some();
            // Two places that are marked say what to do: close the one at the other.
            assert!(advised || one.labels.len() > 1, "{}: {one:?}", mistake.title);
        }
        let twice = of_line.values().any(|count| *count > 1);
        assert!(!twice, "{}: {diagnostics:?}", mistake.title);
    }
}

/// What is certain mends, and brings no other mistake.
#[test]
fn certain_edits_mend() {
    let mut edits = 0;
    for mistake in FILES.into_iter().flat_map(mistakes) {
        let Found { diagnostics, .. } = mistake.compiled(&mistake.text);
        for one in &diagnostics {
            let Some(fix) = one.fix.as_ref() else { continue };
            let mut mended = mistake.text.clone();
            mended.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.text);
            let left: Diagnostics = mistake.compiled(&mended).diagnostics;
            if fix.is_certain {
                assert!(
                    left.len() < diagnostics.len(),
                    "{}: {mended:?} has {left:?}",
                    mistake.title
                );
                edits += 1;
            } else {
                let same = left.iter().any(|other| {
                    (other.code, other.span, &other.message) == (one.code, one.span, &one.message)
                });
                assert!(!same, "{}: {mended:?} changes nothing", mistake.title);
            }
        }
    }
    assert!(edits > 40, "only {edits} edits");
}

/// What stands between quotation marks, and behind the mark of a comment.
fn words_of(text: &str) -> Vec<&str> {
    let quoted = text.lines().flat_map(|line| line.split('"').skip(1).step_by(2));
    let comments = text.lines().filter_map(|line| line.split_once('#')).map(|(_, words)| words);
    quoted.chain(comments).flat_map(str::split_whitespace).collect()
}

/// What is certain takes no word from a text or a comment.
#[test]
fn certain_edits_keep_words() {
    for mistake in FILES.into_iter().flat_map(mistakes) {
        let Found { sources, diagnostics, .. } = mistake.compiled(&mistake.text);
        let Some(own) = diagnostics.iter().next().map(|one| one.span.source) else { continue };
        let applied = pmderive::diag::fixes::applied(&diagnostics, own, &sources);
        let mended = applied.map_or(mistake.text.clone(), |(mended, _)| mended);
        for word in words_of(&mistake.text) {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            // Units may be spelt in another way.
            let has_units = ["rescale", "units"].iter().any(|name| mistake.text.contains(name));
            let is_kept = mended.contains(bare) || has_units;
            assert!(is_kept, "{}: {word} is not in {mended}", mistake.title);
        }
    }
}
