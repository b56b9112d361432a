//! Messages over a pair of streams: each has a header that says how long it is.
//!
//! The streams have threads of their own. Whatever a header promises, memory
//! grows only with the bytes that come.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Sender, bounded, never, select};
use lsp_server::{Connection, ErrorCode, Message, Notification, RequestId, Response};
use lsp_types::notification::{Exit, Notification as _};
use serde_json::{Value, json};

/// Longest message, in bytes. The longest text that is kept fits, even if each
/// of its characters is escaped.
const MAX_MESSAGE: u64 = 400 << 20;
/// Longest header of a message, in bytes.
const MAX_HEADER: u64 = 4 << 10;

/// The threads that read and write.
pub struct Streams {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

/// A message whose contents are written already.
pub struct Written {
    /// What it is.
    pub kind: Kind,
    /// The result or the parameters, in JSON.
    pub contents: Arc<str>,
}

/// What a message is to its client.
pub enum Kind {
    /// The answer to a request.
    Answer(RequestId),
    /// News, with this method.
    Notification(&'static str),
}

impl Written {
    /// The text as a message.
    pub fn into_message(self) -> Message {
        let contents = serde_json::from_str(&self.contents).unwrap_or_default();
        match self.kind {
            Kind::Answer(id) => Message::Response(Response { id, response_result: Ok(contents) }),
            Kind::Notification(method) => {
                let method = method.to_owned();
                Message::Notification(Notification { method, params: contents })
            }
        }
    }

    fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let (name, value, contents) = match &self.kind {
            Kind::Answer(id) => ("id", serde_json::to_string(id)?, "result"),
            Kind::Notification(method) => ("method", serde_json::to_string(method)?, "params"),
        };
        let (start, end) = (r#"{"jsonrpc":"2.0",""#, "}");
        let parts = [start, name, "\":", &value, ",\"", contents, "\":", &self.contents, end];
        write_parts(&parts, output)
    }
}

/// Writes a message whose text is in parts.
fn write_parts(parts: &[&str], output: &mut impl Write) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    write!(output, "Content-Length: {length}\r\n\r\n")?;
    parts.iter().try_for_each(|part| output.write_all(part.as_bytes()))?;
    output.flush()
}

/// The answer to what is no message although its header is right.
#[derive(Debug, PartialEq)]
struct Refusal {
    /// The request's identifier, or null where none can be read.
    id: Value,
    /// A number of [`ErrorCode`].
    code: i32,
    words: String,
}

impl Refusal {
    /// Why a text is no message.
    fn of(text: &[u8], error: &serde_json::Error) -> Refusal {
        let (id, code, words) = match serde_json::from_slice::<Value>(text) {
            Err(error) => {
                let words = format!("the message is no JSON: {error}");
                (Value::Null, ErrorCode::ParseError, words)
            }
            Ok(Value::Array(_)) => {
                let words = "several messages in one are not part of the protocol".to_owned();
                (Value::Null, ErrorCode::InvalidRequest, words)
            }
            Ok(message) => {
                let has = |key: &str| message.get(key).is_some();
                let is_answer = has("result") || has("error");
                // The number of an answer is that of a request of ours.
                let id = message.get("id").filter(|_| !is_answer);
                let id = id.filter(|id| id.is_number() || id.is_string());
                let words = match has("method") || is_answer {
                    _ if !message.is_object() => "a message is an object".to_owned(),
                    false => "the message has neither a method nor a result".to_owned(),
                    true => format!("the message is not understood: {error}"),
                };
                (id.cloned().unwrap_or_default(), ErrorCode::InvalidRequest, words)
            }
        };
        Refusal { id, code: code as i32, words }
    }

    fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let Refusal { id, code, words } = self;
        let error = json!({ "code": code, "message": words });
        let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        write_parts(&[&answer.to_string()], output)
    }
}

/// A client: what it sends, and where messages for it go.
pub struct Client {
    /// Messages in both directions.
    pub connection: Connection,
    /// Takes messages that are written already, if the client has a use for them.
    pub written: Option<Sender<Written>>,
}

impl From<Connection> for Client {
    /// A client that takes messages only.
    fn from(connection: Connection) -> Client {
        Client { connection, written: None }
    }
}

impl Client {
    /// Sends a message. A client that is gone is noticed elsewhere.
    pub fn send(&self, message: Written) {
        let _ = match &self.written {
            Some(written) => written.send(message).is_ok(),
            None => self.connection.sender.send(message.into_message()).is_ok(),
        };
    }
}

/// Reads messages from one stream and writes them to the other.
///
/// # Errors
/// A thread cannot be started.
pub fn connect(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<(Client, Streams)> {
    // They hold nothing, so messages leave in the order in which they are sent.
    let (sender, outgoing) = bounded::<Message>(0);
    let (written, ready) = bounded::<Written>(0);
    let (incoming, receiver) = bounded::<Message>(0);
    let (refuse, mut refusals) = bounded::<Refusal>(0);
    let write = move || {
        let mut output = io::BufWriter::new(output);
        loop {
            // The server drops both ends at once.
            select! {
                recv(outgoing) -> message => match message {
                    Ok(message) => message.write(&mut output)?,
                    Err(_) => return Ok(()),
                },
                recv(ready) -> message => match message {
                    Ok(message) => message.write(&mut output)?,
                    Err(_) => return Ok(()),
                },
                recv(refusals) -> refusal => match refusal {
                    Ok(refusal) => refusal.write(&mut output)?,
                    // The client says nothing more.
                    Err(_) => refusals = never(),
                },
            }
        }
    };
    let read = move || {
        let mut input = io::BufReader::new(input);
        while let Some(message) = read_message(&mut input)? {
            let message = match message {
                Ok(message) => message,
                Err(refusal) => match refuse.send(refusal) {
                    Ok(()) => continue,
                    // The server has ended.
                    Err(_) => break,
                },
            };
            let is_last = matches!(&message, Message::Notification(note) if is_exit(note));
            // The server has ended.
            if incoming.send(message).is_err() || is_last {
                break;
            }
        }
        Ok(())
    };
    let writer = thread::Builder::new().name("output".to_owned()).spawn(write)?;
    let reader = thread::Builder::new().name("input".to_owned()).spawn(read)?;
    let connection = Connection { sender, receiver };
    Ok((Client { connection, written: Some(written) }, Streams { reader, writer }))
}

fn is_exit(note: &Notification) -> bool {
    note.method == Exit::METHOD
}

impl Streams {
    /// Waits until all is written, and until the client has ended or has sent
    /// what is no message. The connection has to be dropped before.
    ///
    /// # Errors
    /// What the client sent is no message, or a stream failed.
    pub fn join(self) -> io::Result<()> {
        let fell = |_| io::Error::other("a thread fell");
        self.reader.join().map_err(fell)??;
        self.writer.join().map_err(fell)?
    }
}

fn invalid(words: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words.into())
}

/// The next message, or the answer to what is none; nothing at the end.
///
/// # Errors
/// Where the next message begins cannot be told.
fn read_message(input: &mut impl BufRead) -> io::Result<Option<Result<Message, Refusal>>> {
    let Some(length) = read_header(input)? else { return Ok(None) };
    if length > MAX_MESSAGE {
        let words = format!("a message of {length} bytes is longer than {MAX_MESSAGE} bytes");
        return Err(invalid(words));
    }
    let mut bytes = Vec::new();
    let read = input.take(length).read_to_end(&mut bytes)?;
    if read as u64 != length {
        return Err(invalid(format!("a message of {length} bytes ends after {read}")));
    }
    let message = serde_json::from_slice(&bytes);
    Ok(Some(message.map_err(|error| Refusal::of(&bytes, &error))))
}

/// The length that a header says, or none at the end of the input.
fn read_header(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut header = input.take(MAX_HEADER);
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        header.read_until(b'\n', &mut line)?;
        let line = String::from_utf8_lossy(&line);
        let Some(line) = line.strip_suffix("\r\n") else {
            return match is_first && line.is_empty() {
                true => Ok(None),
                false => Err(invalid(format!("a header ends with CR LF, unlike {line:?}"))),
            };
        };
        is_first = false;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(invalid(format!("a header has a colon, unlike {line:?}")));
        };
        if name.eq_ignore_ascii_case("Content-Length") {
            let parsed = value.trim().parse();
            length = Some(parsed.map_err(|_| invalid(format!("no length: {line:?}")))?);
        }
    }
    length.map(Some).ok_or_else(|| invalid("a header without Content-Length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Result<Message, Refusal>>, String> {
        read_message(&mut text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_message_has_a_header() {
        let body = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        let text = format!("content-length:{}\r\nContent-Type: x\r\n\r\n{body}", body.len());
        assert!(matches!(read(&text), Ok(Some(Ok(Message::Notification(note)))) if is_exit(&note)));
        assert!(matches!(read(""), Ok(None)));
    }

    #[test]
    fn what_is_written_already_is_the_same_message() -> io::Result<()> {
        for kind in [
            || Kind::Answer(RequestId::from(7)),
            || Kind::Answer(RequestId::from("a \"b\"".to_owned())),
            || Kind::Notification(Exit::METHOD),
        ] {
            let contents = Arc::from(r#"[{"é":1},null]"#);
            let (mut bytes, written) = (Vec::new(), Written { kind: kind(), contents });
            written.write(&mut bytes)?;
            let read = read_message(&mut &*bytes)?.expect("a message").expect("it is one");
            let expected = serde_json::to_value(written.into_message())?;
            assert_eq!(serde_json::to_value(read)?, expected);
        }
        Ok(())
    }

    #[test]
    fn what_is_framed_but_no_message_has_an_answer() -> io::Result<()> {
        for (text, answer) in [
            ("{\"a", r#"{"error":{"code":-32700,"message":"the message is no JSON: "#),
            ("\u{fffd}", r#"{"error":{"code":-32700,"message":"the message is no JSON: "#),
            ("[]", r#"{"error":{"code":-32600,"message":"several messages in one are not part"#),
            ("7", r#"{"error":{"code":-32600,"message":"a message is an object"#),
            ("{}", r#"{"error":{"code":-32600,"message":"the message has neither a method nor"#),
            (r#"{"id":4,"method":5}"#, r#"{"error":{"code":-32600,"message":"the message is not"#),
        ] {
            let framed = format!("Content-Length: {}\r\n\r\n{text}", text.len());
            let read = read(&framed).expect("its header is right").expect("something");
            let refusal = read.expect_err("it is none");
            let mut bytes = Vec::new();
            refusal.write(&mut bytes)?;
            let written = String::from_utf8_lossy(&bytes);
            let (_, written) = written.split_once("\r\n\r\n").expect("a header");
            assert!(written.starts_with(answer), "{written}");
            let id = if text.contains("id") { "4" } else { "null" };
            assert!(written.contains(&format!(r#""id":{id}"#)), "{written}");
        }
        Ok(())
    }

    #[test]
    fn what_is_no_message_is_refused_with_words() {
        for (text, words) in [
            ("Content-Length: 99999999999\r\n\r\n{}", "a message of 99999999999 bytes is longer"),
            ("Content-Length: 99999999999999999999999\r\n\r\n", "no length"),
            ("Content-Length: -1\r\n\r\n", "no length"),
            ("Content-Length: 90\r\n\r\n{}", "a message of 90 bytes ends after 2"),
            ("Content-Length: 2\n\n{}", "a header ends with CR LF"),
            ("Content-Type: x\r\n\r\n{}", "a header without Content-Length"),
            ("nonsense\r\n\r\n", "a header has a colon"),
            (&"x".repeat(9_000), "a header ends with CR LF"),
        ] {
            let said = read(text).expect_err("a refusal");
            assert!(said.starts_with(words), "{said}");
        }
    }
}
