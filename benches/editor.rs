//! What an editor waits for, in a file of 10,000 definitions: each measurement
//! is an edit and the answer to a request behind it.
//!
//! `cargo bench --features lsp --bench editor`

use std::fmt::Write as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use lsp_server::{Connection, Message, Notification, Request};
use pmderive::dialect::{Dialect, Language};
use pmderive::internal::lsp::{Options, Source, serve};
use pmderive::runtime::archive::ArchiveContext;
use pmderive::runtime::context::Context;
use serde_json::{Value, json};

const URI: &str = "file:///nowhere/many.conf";

/// A client that types in one line.
struct Client {
    connection: Connection,
    /// Number of the last message.
    number: i32,
}

impl Client {
    fn tell(&self, method: &str, params: Value) {
        let note = Notification { method: method.to_owned(), params };
        self.connection.sender.send(note.into()).expect("the server listens");
    }

    fn ask(&mut self, method: &str, params: Value) {
        self.number += 1;
        let request = Request { id: self.number.into(), method: method.to_owned(), params };
        self.connection.sender.send(request.into()).expect("the server listens");
        self.until(|message| matches!(message, Message::Response(_)));
    }

    fn until(&self, is_it: impl Fn(&Message) -> bool) {
        while !is_it(&self.connection.receiver.recv().expect("the server speaks")) {}
    }

    /// Replaces a digit of a constant by another.
    fn edit(&mut self) {
        self.number += 1;
        let at = |character| json!({ "line": 5000, "character": character });
        let range = json!({ "start": at(12), "end": at(13) });
        let change = json!({ "range": range, "text": (1 + self.number % 9).to_string() });
        let document = json!({ "uri": URI, "version": self.number });
        let params = json!({ "textDocument": document, "contentChanges": [change] });
        self.tell("textDocument/didChange", params);
    }
}

fn text() -> String {
    let mut text = String::new();
    for at in 0..10_000 {
        let _ = writeln!(text, "many.m{at:05} = 1 * rate(disk.dev.total) + {at}");
    }
    text
}

fn started() -> Client {
    let (server, connection) = Connection::memory();
    thread::spawn(move || {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives/own-fleet");
        let opener = Box::new(move || {
            let archive = ArchiveContext::open(Path::new(path))?;
            Ok(Source::Context(Box::new(Context::Archive(Box::new(archive)))))
        });
        serve(&server, Options { language, opener: Some(opener), grace: Duration::from_secs(60) })
    });
    let mut client = Client { connection, number: 0 };
    client.ask("initialize", json!({ "capabilities": {} }));
    client.tell("initialized", json!({}));
    let item = json!({ "uri": URI, "languageId": "pmderive", "version": 0, "text": text() });
    client.tell("textDocument/didOpen", json!({ "textDocument": item }));
    client.until(is_checked);
    client
}

fn is_checked(message: &Message) -> bool {
    let is = |note: &Notification| note.method == "textDocument/publishDiagnostics";
    matches!(message, Message::Notification(note) if is(note))
}

fn editor(c: &mut Criterion) {
    let mut group = c.benchmark_group("editor");
    let mut client = started();
    let place = json!({
        "textDocument": { "uri": URI },
        "position": { "line": 5000, "character": 24 },
    });
    for request in ["completion", "signatureHelp", "hover", "definition"] {
        group.bench_function(request, |b| {
            b.iter(|| {
                client.edit();
                client.ask(&format!("textDocument/{request}"), place.clone());
            });
        });
    }
    let whole = json!({
        "textDocument": { "uri": URI },
        "position": { "line": 5000, "character": 3 },
        "context": { "includeDeclaration": true, "diagnostics": [] },
        "range": { "start": { "line": 5000, "character": 0 }, "end": { "line": 5001, "character": 0 } },
        "options": { "tabSize": 4, "insertSpaces": true },
    });
    for request in
        ["documentSymbol", "semanticTokens/full", "codeAction", "formatting", "references"]
    {
        group.bench_function(request, |b| {
            b.iter(|| {
                client.edit();
                client.ask(&format!("textDocument/{request}"), whole.clone());
            });
        });
    }
    group.bench_function("diagnostics", |b| {
        b.iter(|| {
            client.edit();
            let number = client.number;
            let is_it = |message: &Message| match message {
                Message::Notification(note) if is_checked(message) => {
                    note.params["version"] == number
                }
                _ => false,
            };
            client.until(is_it);
        });
    });
    group.finish();
}

criterion_group!(benches, editor);
criterion_main!(benches);
