//! Messages over a pair of streams. A header gives the length of each.
//!
//! The streams have threads of their own. A wrong length in a header costs no memory: it grows
//! only with the bytes that arrive.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};
use lsp_server::{ErrorCode, Message, Notification, RequestId};
use lsp_types::notification::{Exit, Notification as _};
use serde_json::{Value, json};

use super::uris::encode_all;

/// Longest message, in bytes. The longest accepted text fits, even if each of its characters is
/// escaped.
const MAX_MESSAGE: u64 = 400 << 20;
/// Longest header of a message, in bytes.
const MAX_HEADER: u64 = 4 << 10;

/// The threads of the streams.
pub struct Streams {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

/// A message to the client.
pub enum Outgoing {
    /// A message.
    Message(Message),
    /// The answer to a request, with its result encoded in JSON.
    Answer(RequestId, Arc<str>),
    /// A notification with this method, and parameters encoded in JSON.
    Notification(&'static str, Arc<str>),
    /// The answer to input that is no message.
    Refusal(Refusal),
}

impl Outgoing {
    fn write(self, output: &mut impl Write) -> io::Result<()> {
        let (name, value, member, contents) = match self {
            Outgoing::Message(message) => return message.write(output),
            Outgoing::Refusal(refusal) => return refusal.write(output),
            Outgoing::Answer(id, result) => ("id", serde_json::to_string(&id)?, "result", result),
            Outgoing::Notification(method, parameters) => {
                ("method", serde_json::to_string(method)?, "params", parameters)
            }
        };
        let (start, end) = (r#"{"jsonrpc":"2.0",""#, "}");
        write_parts(&[start, name, "\":", &value, ",\"", member, "\":", &contents, end], output)
    }
}

/// Writes a message whose text is in parts.
fn write_parts(parts: &[&str], output: &mut impl Write) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    write!(output, "Content-Length: {length}\r\n\r\n")?;
    parts.iter().try_for_each(|part| output.write_all(part.as_bytes()))?;
    output.flush()
}

/// The answer to input that is no message, although its header is correct.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    /// The request's identifier; null if it cannot be read.
    id: Value,
    /// A number of [`ErrorCode`].
    code: i32,
    words: String,
}

impl Refusal {
    /// The refusal of a text that is no message.
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
                // An answer repeats the identifier of a request of this server.
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

/// A client: its incoming messages, and the way to it.
pub struct Client {
    /// Messages of the client.
    pub receiver: Receiver<Message>,
    sender: Sender<Outgoing>,
}

impl Client {
    /// Sends a message.
    pub fn send(&self, message: impl Into<Message>) {
        self.send_written(Outgoing::Message(message.into()));
    }

    /// Sends a message, encoded or not. Another thread notices if the client is gone.
    pub fn send_written(&self, message: Outgoing) {
        let _ = self.sender.send(message);
    }
}

/// Starts to read messages from one stream and to write them to the other.
///
/// # Errors
/// A thread cannot be started.
pub fn connect(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<(Client, Streams)> {
    // The channels hold nothing, so messages leave in the order of sending.
    let (sender, outgoing) = bounded::<Outgoing>(0);
    let (incoming, receiver) = bounded::<Message>(0);
    let refuse = sender.clone();
    let write = move || {
        let mut output = io::BufWriter::new(output);
        outgoing.into_iter().try_for_each(|message| message.write(&mut output))
    };
    let read = move || {
        let mut input = io::BufReader::new(input);
        while let Some(message) = read_message(&mut input)? {
            let message = match message {
                Ok(message) => message,
                Err(refusal) => match refuse.send(Outgoing::Refusal(refusal)) {
                    Ok(()) => continue,
                    // The writing thread has ended, so no answer is possible.
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
    Ok((Client { receiver, sender }, Streams { reader, writer }))
}

fn is_exit(note: &Notification) -> bool {
    note.method == Exit::METHOD
}

impl Streams {
    /// Waits until everything is written, and until the client has ended or its input cannot be
    /// read. The client must be dropped before.
    ///
    /// # Errors
    /// The client's input is no message, or a stream failed.
    pub fn join(self) -> io::Result<()> {
        let fell = |_| io::Error::other("a thread fell");
        self.reader.join().map_err(fell)??;
        self.writer.join().map_err(fell)?
    }
}

fn invalid(words: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words.into())
}

/// The next message, or the answer to input that is none; `None` at the end.
///
/// # Errors
/// The start of the next message cannot be found.
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
    let mut message = serde_json::from_slice(&bytes);
    match &mut message {
        Ok(Message::Request(request)) => encode_all(&mut request.params),
        Ok(Message::Notification(note)) => encode_all(&mut note.params),
        Ok(Message::Response(_)) | Err(_) => {}
    }
    Ok(Some(message.map_err(|error| Refusal::of(&bytes, &error))))
}

/// The length in a header; `None` at the end of the input.
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
    use lsp_server::Response;

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
        let contents: Arc<str> = r#"[{"é":1},null]"#.into();
        let value: Value = serde_json::from_str(&contents)?;
        let answer = |id: RequestId| {
            let message = Response { id: id.clone(), response_result: Ok(value.clone()) };
            (Outgoing::Answer(id, Arc::clone(&contents)), Message::from(message))
        };
        let note = Notification { method: Exit::METHOD.to_owned(), params: value.clone() };
        for (written, expected) in [
            answer(RequestId::from(7)),
            answer(RequestId::from("a \"b\"".to_owned())),
            (Outgoing::Notification(Exit::METHOD, Arc::clone(&contents)), note.into()),
        ] {
            let mut bytes = Vec::new();
            written.write(&mut bytes)?;
            let read = read_message(&mut &*bytes)?.expect("a message").expect("it is one");
            assert_eq!(serde_json::to_value(read)?, serde_json::to_value(expected)?);
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
