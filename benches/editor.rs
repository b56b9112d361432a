//! The time that an editor waits, in a file of 10,000 definitions. Each
//! measurement is an edit and the answer to a request behind it, from the
//! client's first byte written to its last byte read.
//!
//! `cargo bench --features lsp --bench editor`

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use pmderive::dialect::{Dialect, Language};
use pmderive::internal::lsp::{Options, Source, connect, serve};
use pmderive::runtime::archive::ArchiveContext;
use pmderive::runtime::context::Context;
use serde_json::{Value, json};

const URI: &str = "file:///nowhere/many.conf";
/// Definitions of the text.
const COUNT: usize = 10_000;
/// Number of the definition that is edited, and its line.
const EDITED: usize = 5_001;

/// A client that types in one line.
struct Client {
    input: BufReader<UnixStream>,
    output: UnixStream,
    /// Number of the last message.
    number: u32,
    /// The line that is edited.
    line: usize,
    /// The digit is there.
    is_long: bool,
}

impl Client {
    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let framed = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.output.write_all(framed.as_bytes()).expect("the server listens");
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and reads its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Vec<u8> {
        self.number += 1;
        let id = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let start = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        let answer = self.until(|message| message.starts_with(start.as_bytes()));
        let has_result = answer[start.len()..].starts_with(b"\"result\":");
        assert!(has_result, "{method}: {}", String::from_utf8_lossy(&answer));
        answer
    }

    /// Reads messages until `accepts` accepts one.
    fn until(&mut self, accepts: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                self.input.read_line(&mut line).expect("the server speaks");
                match line.trim_end().split_once(": ") {
                    Some((_, value)) => length = value.parse().expect("a length"),
                    None => break,
                }
            }
            let mut message = vec![0; length];
            self.input.read_exact(&mut message).expect("the server speaks");
            if accepts(&message) {
                return message;
            }
        }
    }

    /// Adds a digit to a constant, or removes it. All text after it moves.
    fn edit(&mut self) {
        self.number += 1;
        let at = |character| json!({ "line": self.line, "character": character });
        let (end, text) = if self.is_long { (13, "") } else { (12, "1") };
        self.is_long = !self.is_long;
        let range = json!({ "start": at(12), "end": at(end) });
        let change = json!({ "range": range, "text": text });
        let document = json!({ "uri": URI, "version": self.number });
        let params = json!({ "textDocument": document, "contentChanges": [change] });
        self.tell("textDocument/didChange", &params);
    }

    fn checked(&mut self, version: u32) {
        let version = format!("\"version\":{version}}}}}");
        let start = b"{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/publishDiagnostics\",";
        self.until(|message| message.starts_with(start) && message.ends_with(version.as_bytes()));
    }
}

/// Definitions that need each other, with comments, in one line or two, and a
/// mistake here and there; and the line of the one that is edited.
fn text() -> (String, usize) {
    let (mut text, mut edited) = (String::from("# Many.\nmany.m00000 = 1\n"), 0);
    for at in 1..COUNT {
        if at % 4 == 0 {
            let _ = writeln!(text, "# Number {at}.");
        }
        let before = at - 1 - at % 7 % at;
        match at {
            EDITED => {
                edited = text.lines().count();
                let _ = writeln!(text, "a.bcde0 = 10 * rate(disk.dev.total) + {at}");
            }
            _ if at % 50 == 0 => {
                let _ = writeln!(text, "many.m{at:05} = rate(disk.dev.total + {at}");
            }
            _ if at % 10 == 0 => {
                let _ = writeln!(text, "many.m{at:05} = {at} * \\\n    rate(disk.dev.total) - 1");
            }
            _ if at % 3 == 0 => {
                let _ = writeln!(text, "many.m{at:05} = 2 * rate(disk.dev.total[vdb]) + {at}");
            }
            _ if before % 50 == 0 || before == EDITED => {
                let _ = writeln!(text, "many.m{at:05} = disk.dev.total + {at}");
            }
            _ => {
                let _ = writeln!(text, "many.m{at:05} = many.m{before:05} * 2 + {at}");
            }
        }
    }
    (text, edited)
}

fn started() -> Client {
    let (mine, theirs) = UnixStream::pair().expect("two sockets");
    let input = theirs.try_clone().expect("a socket");
    thread::spawn(move || {
        let (client, _streams) = connect(input, theirs).expect("threads");
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives/own-fleet");
        let opener = Box::new(move || {
            let archive = ArchiveContext::open(Path::new(path))?;
            Ok(Source::Context(Box::new(Context::Archive(Box::new(archive)))))
        });
        let grace = Duration::from_secs(60);
        let options = Options { language, opener: Some(opener), grace, max_shown: 100 };
        serve(&client, options)
    });
    let (text, line) = text();
    let input = BufReader::new(mine.try_clone().expect("a socket"));
    let mut client = Client { input, output: mine, number: 0, line, is_long: false };
    client.ask("initialize", &json!({ "capabilities": {} }));
    client.tell("initialized", &json!({}));
    let item = json!({ "uri": URI, "languageId": "pmderive", "version": 0, "text": text });
    client.tell("textDocument/didOpen", &json!({ "textDocument": item }));
    client.checked(0);
    client
}

/// Requests, and the columns of the edited line that they are about.
const REQUESTS: [(&str, u32); 12] = [
    ("completion", 26),
    ("signatureHelp", 26),
    ("hover", 26),
    ("definition", 3),
    ("references", 3),
    ("references", 26),
    ("prepareRename", 3),
    ("rename", 3),
    ("documentSymbol", 0),
    ("semanticTokens/full", 0),
    ("codeAction", 0),
    ("formatting", 0),
];

fn editor(c: &mut Criterion) {
    let mut group = c.benchmark_group("editor");
    let mut client = started();
    let line = client.line;
    for (request, character) in REQUESTS {
        let mut params = json!({
            "textDocument": { "uri": URI },
            "position": { "line": line, "character": character },
            "newName": "a.other",
            "range": {
                "start": { "line": line - 200, "character": 0 },
                "end": { "line": line + 1, "character": 0 },
            },
            "options": { "tabSize": 4, "insertSpaces": true },
        });
        if ["references", "codeAction"].contains(&request) {
            params["context"] = json!({ "includeDeclaration": true, "diagnostics": [] });
        }
        let name = format!("{request} {character}");
        group.bench_function(name.trim_end_matches(" 0"), |b| {
            b.iter(|| {
                client.edit();
                client.ask(&format!("textDocument/{request}"), &params)
            });
        });
    }
    group.bench_function("diagnostics", |b| {
        b.iter(|| {
            client.edit();
            let version = client.number;
            client.checked(version);
        });
    });
    group.finish();
}

criterion_group!(benches, editor);
criterion_main!(benches);
