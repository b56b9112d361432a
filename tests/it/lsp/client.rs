//! A client of the language server, and metadata for it to check against.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use pmderive::dialect::{Dialect, Language};
use pmderive::internal::lsp::{End, Opener, Options, Source, serve};
use pmderive::runtime::archive::ArchiveContext;
use pmderive::runtime::context::Context;
use serde_json::{Value, json};

/// A client and its server.
pub struct Client {
    connection: Connection,
    server: Option<JoinHandle<Result<End, String>>>,
    next: i32,
    /// Notifications that came while something else was awaited.
    notes: VecDeque<Notification>,
    /// Answers that came before they were awaited.
    answers: HashMap<RequestId, Response>,
}

/// Longest wait for anything; a test that needs it fails.
const LONG: Duration = Duration::from_secs(60);

/// The archive that definitions are checked against.
pub fn own_fleet() -> Opener {
    Box::new(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives/own-fleet");
        let archive = ArchiveContext::open(Path::new(path))?;
        Ok(Source::Context(Box::new(Context::Archive(Box::new(archive)))))
    })
}

impl Client {
    /// Starts a server and agrees with it on columns of UTF-16.
    pub fn start(opener: Option<Opener>) -> Client {
        Client::start_in(opener, None)
    }

    /// The same with a folder that is open.
    pub fn start_in(opener: Option<Opener>, folder: Option<&str>) -> Client {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        // What a source tells is awaited, however slow the machine is.
        let options = Options { language, opener, grace: LONG, max_shown: usize::MAX };
        Client::start_with(options, folder)
    }

    /// The same with options.
    pub fn start_with(options: Options, folder: Option<&str>) -> Client {
        let folders = folder.map(|folder| json!([{ "uri": folder, "name": "folder" }]));
        let parameters = json!({ "capabilities": {}, "workspaceFolders": folders });
        Client::start_saying(options, parameters)
    }

    /// The same with these parameters of `initialize`.
    pub fn start_saying(options: Options, parameters: Value) -> Client {
        let (server, connection) = Connection::memory();
        let server = thread::spawn(move || {
            serve(&server.into(), options).map_err(|error| error.to_string())
        });
        let mut client = Client {
            connection,
            server: Some(server),
            next: 0,
            notes: VecDeque::new(),
            answers: HashMap::new(),
        };
        let answer = client.ask("initialize", parameters);
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16");
        client.tell("initialized", json!({}));
        client
    }

    /// Sends a notification.
    pub fn tell(&self, method: &str, params: Value) {
        let note = Notification { method: method.to_owned(), params };
        self.connection.sender.send(note.into()).expect("the server listens");
    }

    /// Sends a request; gives its number.
    pub fn request(&mut self, method: &str, params: Value) -> i32 {
        self.next += 1;
        let request = Request { id: self.next.into(), method: method.to_owned(), params };
        self.connection.sender.send(request.into()).expect("the server listens");
        self.next
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: i32) -> Response {
        loop {
            if let Some(answer) = self.answers.remove(&id.into()) {
                return answer;
            }
            match self.connection.receiver.recv_timeout(LONG).expect("an answer") {
                Message::Response(response) => {
                    let earlier = self.answers.insert(response.id.clone(), response);
                    assert!(earlier.is_none(), "two answers: {earlier:?}");
                }
                Message::Notification(note) => self.notes.push_back(note),
                other @ Message::Request(_) => panic!("nobody serves {other:?}"),
            }
        }
    }

    /// Sends a request and gives its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let response = self.answer(id);
        response.response_result.unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// Sends a request and gives the words of its refusal.
    pub fn refused(&mut self, method: &str, params: Value) -> String {
        let id = self.request(method, params);
        self.answer(id).response_result.expect_err("a refusal").message
    }

    /// The next notification of a method; others before it are passed over.
    pub fn note(&mut self, method: &str) -> Value {
        loop {
            let note = match self.notes.pop_front() {
                Some(note) => note,
                None => match self.connection.receiver.recv_timeout(LONG).expect("a note") {
                    Message::Notification(note) => note,
                    other => panic!("nobody asked for {other:?}"),
                },
            };
            if note.method == method {
                return note.params;
            }
        }
    }

    /// Opens a text.
    pub fn open(&self, uri: &str, text: &str) {
        let item = json!({ "uri": uri, "languageId": "pmderive", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": item }));
    }

    /// Replaces a range of a text.
    pub fn edit(&self, uri: &str, version: i32, start: (u32, u32), end: (u32, u32), text: &str) {
        let change = json!({ "range": range(start, end), "text": text });
        let document = json!({ "uri": uri, "version": version });
        let params = json!({ "textDocument": document, "contentChanges": [change] });
        self.tell("textDocument/didChange", params);
    }

    /// What is wrong with a state of a text: lines and words.
    pub fn mistakes(&mut self, uri: &str, version: i32) -> Vec<Value> {
        loop {
            let note = self.note("textDocument/publishDiagnostics");
            if note["uri"] == uri && note["version"] == version {
                return note["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    /// Ends the server as a client should.
    pub fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.tell("exit", Value::Null);
        let server = self.server.take().expect("it runs");
        assert_eq!(server.join().expect("it did not fall"), Ok(End::Agreed));
    }

    /// Goes away without a word.
    pub fn die(mut self) {
        let server = self.server.take().expect("it runs");
        drop(self);
        assert_eq!(server.join().expect("it did not fall"), Ok(End::Agreed));
    }
}

/// A position of a text.
pub fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({
        "textDocument": { "uri": uri },
        "position": { "line": line, "character": character },
    })
}

/// A range of a text.
pub fn range(start: (u32, u32), end: (u32, u32)) -> Value {
    json!({
        "start": { "line": start.0, "character": start.1 },
        "end": { "line": end.0, "character": end.1 },
    })
}
