//! Failures: clients that send nonsense, sources that hang or are gone.

use std::sync::mpsc;
use std::time::Duration;

use pmderive::dialect::{Dialect, Language};
use pmderive::internal::lsp::{Opener, Options};
use pmderive::runtime::source::SourceError;
use serde_json::{Value, json};

use super::client::{Client, at, own_fleet};

const URI: &str = "file:///nowhere/a.conf";

#[test]
fn unknown_and_wrong_requests_are_refused_with_words() {
    let mut client = Client::start(None);
    let words = client.refused("workspace/unheardOf", json!({}));
    assert_eq!(words, "this server does not know `workspace/unheardOf`");
    let words = client.refused("textDocument/hover", json!({ "position": "left" }));
    assert!(words.starts_with("invalid type"), "{words}");
    let words = client.refused("textDocument/hover", at(URI, 0, 0));
    assert_eq!(words, "this text is not open");
    assert_eq!(client.ask("textDocument/completion", at(URI, 0, 0)), Value::Null);
    // Nothing of this has an answer, and nothing falls.
    client.tell("unheard/of", json!([1, 2]));
    client.tell("textDocument/didChange", json!({ "nonsense": true }));
    client.edit(URI, 7, (9, 9), (0, 0), "x");
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    client.tell("$/cancelRequest", json!({ "id": 99 }));
    client.open(URI, "a.b = 1 +\n");
    assert_eq!(client.mistakes(URI, 1).len(), 1);
    client.end();
}

#[test]
fn nothing_is_answered_after_shutdown() {
    let mut client = Client::start(None);
    assert_eq!(client.ask("shutdown", Value::Null), Value::Null);
    let words = client.refused("textDocument/hover", at(URI, 0, 0));
    assert_eq!(words, "the server is shut down");
    client.tell("exit", Value::Null);
    client.die();
}

#[test]
fn a_client_that_dies_ends_the_server() {
    let mut client = Client::start(None);
    client.open(URI, "a.b = kernel.all.load\n");
    client.request("textDocument/hover", at(URI, 0, 8));
    client.die();
}

#[test]
fn notation_of_other_languages_is_told_without_a_source() {
    let text = "a.b = disk.dev.read[5m]\nc.d = true\ne.f = disk.dev.read[sda]\n";
    let mut client = Client::start(None);
    client.open(URI, text);
    let found = client.mistakes(URI, 1);
    let lines = found.iter().map(|one| (&one["range"]["start"]["line"], &one["severity"]));
    // Warnings of the first two lines.
    let warning = json!(2);
    assert_eq!(lines.collect::<Vec<_>>(), [(&json!(0), &warning), (&json!(1), &warning)]);
    client.end();
    // A source knows, and each is told once.
    let mut client = Client::start(Some(own_fleet()));
    client.open(URI, "c.d = true\n");
    let found = client.mistakes(URI, 1);
    let severities: Vec<&Value> = found.iter().map(|one| &one["severity"]).collect();
    assert_eq!(severities, [&json!(1)]);
    client.end();
}

#[test]
fn a_closed_text_has_no_mistakes() {
    let mut client = Client::start(None);
    client.open(URI, "a.b = 1 +\n");
    assert_eq!(client.mistakes(URI, 1).len(), 1);
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    let note = client.note("textDocument/publishDiagnostics");
    assert_eq!((&note["uri"], &note["diagnostics"]), (&json!(URI), &json!([])));
    client.end();
}

#[test]
fn a_line_of_a_megabyte_is_answered() {
    let mut client = Client::start(None);
    let text = format!("a.b = {}1\n", "1 + ".repeat(1 << 18));
    client.open(URI, &text);
    client.mistakes(URI, 1);
    let hover = client.ask("textDocument/completion", at(URI, 0, 1 << 19));
    assert!(hover.is_object() || hover.is_null(), "{hover}");
    client.edit(URI, 2, (0, 6), (0, 7), "(");
    assert!(!client.mistakes(URI, 2).is_empty());
    client.end();
}

#[test]
fn a_source_that_hangs_keeps_nobody_waiting() {
    let (release, hangs) = mpsc::channel::<()>();
    let opener: Opener = Box::new(move || {
        // Until the test is over.
        let _ = hangs.recv_timeout(Duration::from_secs(600));
        Err(gone())
    });
    let language = Language { dialect: Dialect::Fixed, extensions: true };
    let (opener, grace, max_shown) = (Some(opener), Duration::ZERO, 100);
    let options = Options { language, opener, grace, max_shown };
    let mut client = Client::start_with(options, None);
    client.open(URI, "a.b = rate(kernel.all.load)\nc.d = 1 +\n");
    // What the text alone tells comes anyway.
    assert_eq!(client.mistakes(URI, 1).len(), 1);
    let hover = client.ask("textDocument/hover", at(URI, 0, 8));
    let text = hover["contents"]["value"].as_str().expect("a text");
    assert!(text.contains("`rate(x)`"), "{text}");
    client.edit(URI, 2, (0, 27), (0, 27), "[");
    // There may be instances once it answers, and names of metrics.
    let nothing_yet = json!({ "isIncomplete": true, "items": [] });
    assert_eq!(client.ask("textDocument/completion", at(URI, 0, 28)), nothing_yet);
    let list = client.ask("textDocument/completion", at(URI, 0, 18));
    assert_eq!(list["isIncomplete"], true, "{list}");
    // The new name may be one of the source's.
    let mut renamed = at(URI, 0, 0);
    renamed["newName"] = json!("a.c");
    client.edit(URI, 3, (0, 27), (0, 28), "");
    let words = client.refused("textDocument/rename", renamed);
    assert!(words.starts_with("the source has not yet sent the names of its metrics"), "{words}");
    drop(release);
    client.end();
}

#[test]
fn no_more_mistakes_are_shown_than_wanted() {
    let language = Language { dialect: Dialect::Fixed, extensions: true };
    let options = Options { language, opener: None, grace: Duration::from_secs(60), max_shown: 2 };
    let mut client = Client::start_with(options, None);
    client.open(URI, &"a.b = 1 +\n".repeat(5));
    let mistakes = client.mistakes(URI, 1);
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    let last = mistakes[1]["message"].as_str().expect("words");
    assert!(last.ends_with("\n3 more not shown; `--max-diagnostics N` shows more"), "{last}");
    // Errors come first, wherever they stand.
    let noted = "a.b = a.a[5m]\na.c = a.a[5m]\na.d = a.a[5m]\na.e = 1 +\n";
    client.open("file:///n.conf", noted);
    let mistakes = client.mistakes("file:///n.conf", 1);
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    assert!(mistakes.iter().any(|one| one["range"]["start"]["line"] == 3), "{mistakes:?}");
    client.end();
}

#[test]
fn a_source_that_is_gone_is_told_once() {
    let mut client = Client::start(Some(Box::new(|| Err(gone()))));
    client.open(URI, "a.b = rate(kernel.all.load)\n");
    let shown = client.note("window/showMessage");
    let message = shown["message"].as_str().expect("words");
    assert!(message.starts_with("checked without metrics: "), "{message}");
    // Nobody knows its names, and nobody waits for them.
    let mut renamed = at(URI, 0, 0);
    renamed["newName"] = json!("a.c");
    assert!(client.ask("textDocument/rename", renamed).is_object());
    client.end();
}

fn gone() -> SourceError {
    SourceError::Io { target: "nowhere".to_owned(), source: std::io::ErrorKind::NotFound.into() }
}
