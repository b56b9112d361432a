//! `pmderive lsp` as editors start it: over standard input and output.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn framed(message: &Value) -> String {
    let text = message.to_string();
    format!("Content-Length: {}\r\n\r\n{text}", text.len())
}

/// Runs the server with this input, to its end.
fn run(input: &[u8], arguments: &[&str]) -> Output {
    let mut server = Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .arg("lsp")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = server.stdin.take().expect("a pipe");
    // A server that ends early need not read all.
    let _ = stdin.write_all(input);
    drop(stdin);
    server.wait_with_output().expect("it ends")
}

#[test]
fn an_editor_is_served() {
    let open = json!({ "textDocument": {
        "uri": "file:///nowhere/a.conf", "languageId": "pmderive", "version": 1,
        "text": "a.b = rat(disk.dev.total)\n",
    } });
    let input: String = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } }),
        json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": open }),
    ]
    .iter()
    .map(framed)
    .collect();
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives/own-fleet");
    let mut server = Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .args(["lsp", "-a", archive])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = server.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it listens");
    let mut stdout = server.stdout.take().expect("a pipe");
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&seen).contains("no function `rat`") {
        assert_eq!(stdout.read(&mut byte).expect("it speaks"), 1, "it ended early");
        seen.push(byte[0]);
    }
    let end: String = [
        json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" }),
        json!({ "jsonrpc": "2.0", "method": "exit" }),
    ]
    .iter()
    .map(framed)
    .collect();
    stdin.write_all(end.as_bytes()).expect("it listens");
    assert!(server.wait().expect("it ends").success());
}

#[test]
fn an_end_of_input_is_an_end() {
    let output = run(b"", &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn nonsense_is_refused_with_words() {
    let output = run(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("does not speak the language server protocol"), "{words}");
}

/// A header may promise any length; memory is for what comes.
#[test]
fn a_header_that_promises_too_much_is_refused_with_words() {
    let output = run(b"Content-Length: 99999999999\r\n\r\n{}", &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("a message of 99999999999 bytes is longer than"), "{words}");
}
