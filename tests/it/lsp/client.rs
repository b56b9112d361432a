//! A client of the language server, and metadata for it to check against.

use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, PipeWriter, pipe};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lsp_server::{Message, Notification, Request, RequestId, Response};
use pmderive::dialect::{Dialect, Language};
use pmderive::internal::lsp::{End, Opener, Options, Source, connect, serve};
use pmderive::runtime::archive::ArchiveContext;
use pmderive::runtime::context::Context;
use serde_json::{Value, json};

/// The streams of a client.
pub struct Wire {
    to_server: PipeWriter,
    from_server: Receiver<Message>,
}

/// A server while it runs.
pub type Server = JoinHandle<Result<End, String>>;

impl Wire {
    /// Starts a server over pipes, which stand for standard input and output.
    pub fn start(options: Options) -> (Wire, Server) {
        let (input, to_server) = pipe().expect("a pipe");
        let (from, output) = pipe().expect("a pipe");
        let server = thread::spawn(move || {
            let (client, _) = connect(input, output).map_err(|error| error.to_string())?;
            serve(&client, options).map_err(|error| error.to_string())
        });
        let (tell, from_server) = channel();
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            while let Ok(Some(message)) = Message::read(&mut from) {
                if tell.send(message).is_err() {
                    break;
                }
            }
        });
        (Wire { to_server, from_server }, server)
    }

    /// Sends a message.
    pub fn send(&self, message: impl Into<Message>) {
        message.into().write(&mut &self.to_server).expect("the server listens");
    }

    /// The next message of the server.
    pub fn next(&self) -> Message {
        self.from_server.recv_timeout(LONG).expect("a message")
    }
}

/// A client and its server.
pub struct Client {
    wire: Wire,
    server: Option<Server>,
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
        let (wire, server) = Wire::start(options);
        let mut client = Client {
            wire,
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
        self.wire.send(note);
    }

    /// Sends a request; gives its number.
    pub fn request(&mut self, method: &str, params: Value) -> i32 {
        self.next += 1;
        let request = Request { id: self.next.into(), method: method.to_owned(), params };
        self.wire.send(request);
        self.next
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: i32) -> Response {
        loop {
            if let Some(answer) = self.answers.remove(&id.into()) {
                return answer;
            }
            match self.wire.next() {
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
                None => match self.wire.next() {
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
