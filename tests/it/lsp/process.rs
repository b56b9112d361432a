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

fn message(id: Option<i32>, method: &str, params: &Value) -> String {
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if let Some(id) = id {
        message["id"] = json!(id);
    }
    framed(&message)
}

/// The protocol wants status 1 then.
#[test]
fn an_exit_without_shutdown_is_told_by_the_status() {
    let exit = message(None, "exit", &Value::Null);
    let initialize = message(Some(1), "initialize", &json!({ "capabilities": {} }));
    let shutdown = message(Some(2), "shutdown", &Value::Null);
    for (input, status, words) in [
        (exit.clone(), 1, "pmderive: the client said `exit` without `shutdown` before it\n"),
        (
            format!("{initialize}{exit}"),
            1,
            "pmderive: the client said `exit` without `shutdown` before it\n",
        ),
        (format!("{initialize}{shutdown}{exit}"), 0, ""),
    ] {
        let output = run(input.as_bytes(), &[]);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), words, "{output:?}");
    }
}

#[test]
fn what_comes_before_initialize_is_refused() {
    let early = message(Some(7), "textDocument/hover", &json!({}));
    let wrong = message(Some(8), "initialize", &json!({ "capabilities": 5 }));
    let initialize = message(Some(9), "initialize", &json!({ "capabilities": {} }));
    let again = message(Some(10), "initialize", &json!({ "capabilities": {} }));
    let output = run(format!("{early}{wrong}{initialize}{again}").as_bytes(), &[]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    for words in [
        r#""code":-32002,"message":"`textDocument/hover` comes before `initialize`""#,
        r#""code":-32602,"message":"invalid type: integer `5`"#,
        r#""id":9,"result":{"capabilities""#,
        r#""code":-32600,"message":"`initialize` was said before""#,
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Where the next message begins is known, so the server goes on.
#[test]
fn messages_that_are_not_understood_are_answered() {
    let framed = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let input = [
        framed("{\"jsonrpc\": nonsense"),
        message(Some(1), "initialize", &json!({ "capabilities": {} })),
        framed("[]"),
        framed(r#"{"jsonrpc":"2.0","id":5}"#),
        message(Some(2), "shutdown", &Value::Null),
        message(None, "exit", &Value::Null),
    ];
    let output = run(input.concat().as_bytes(), &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    for words in [
        r#"{"error":{"code":-32700,"message":"the message is no JSON: "#,
        r#""message":"several messages in one are not part of the protocol"},"id":null"#,
        r#""message":"the message has neither a method nor a result"},"id":5"#,
        r#"{"jsonrpc":"2.0","id":2,"result":null}"#,
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn no_more_mistakes_are_shown_than_an_option_allows() {
    let text = "a.b = 1 +\n".repeat(5);
    let item = json!({ "uri": "file:///nowhere/a.conf", "languageId": "x", "version": 1,
        "text": text });
    let input = [
        message(Some(1), "initialize", &json!({ "capabilities": {} })),
        message(None, "textDocument/didOpen", &json!({ "textDocument": item })),
    ];
    let mut server = Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .args(["lsp", "--max-diagnostics", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = server.stdin.take().expect("a pipe");
    stdin.write_all(input.concat().as_bytes()).expect("it listens");
    let mut stdout = server.stdout.take().expect("a pipe");
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&seen).contains("3 more not shown") {
        assert_eq!(stdout.read(&mut byte).expect("it speaks"), 1, "it ended early");
        seen.push(byte[0]);
    }
    drop(stdin);
    assert!(server.wait().expect("it ends").success());
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
