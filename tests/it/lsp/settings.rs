//! What `pmderive.toml` beside a text means to an editor.

use std::path::Path;

use lsp_server::{Message, Notification, Request, Response};
use pmderive::dialect::{Dialect, Language};
use pmderive::internal::lsp::{End, Options};
use serde_json::json;

use super::client::{Client, Wire, at};

fn client() -> Client {
    let language = Language { dialect: Dialect::Fixed, extensions: false };
    let grace = std::time::Duration::from_secs(60);
    Client::start_with(Options { language, opener: None, grace, max_shown: 100 }, None)
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    format!("file://{}", path.display())
}

/// The folder as the server finds it.
fn real(folder: &tempfile::TempDir) -> std::path::PathBuf {
    folder.path().canonicalize().expect("a folder")
}

#[test]
fn the_language_and_the_lints_are_those_of_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    let settings = write(&folder, "pmderive.toml", "extensions = true\n");
    let text = "a = abs(hinv.ncpu)\n";
    let uri = write(&folder, "a.conf", text);
    let mut client = client();
    client.open(&uri, text);
    assert_eq!(client.mistakes(&uri, 1), Vec::<serde_json::Value>::new());
    // What the file says is read again when it changes.
    write(&folder, "pmderive.toml", "extensions = false\nlint = 1\n");
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    // Its own mistakes are shown in it.
    let note = client.note("textDocument/publishDiagnostics");
    assert_eq!(note["uri"], settings);
    assert_eq!(note["diagnostics"][0]["range"]["start"]["line"], 1, "{note}");
    let mistakes = client.mistakes(&uri, 1);
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    let said = mistakes[0]["message"].as_str().expect("words");
    assert!(said.contains("--extensions"), "{said}");
    client.end();
}

#[test]
fn metadata_are_those_of_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    let metadata = r#"{"format": "pmderive metadata", "version": 1, "source": "x", "metrics": [
        {"name": "shop.sales", "pmid": "60.0.38", "type": "U64", "indom": null,
         "sem": "counter", "units": "count"}]}"#;
    write(&folder, "m.json", metadata);
    write(&folder, "pmderive.toml", "metadata = \"m.json\"\n");
    let text = "a = rate(shop.sales)\nb = rate(shop.salse)\n";
    let uri = write(&folder, "a.conf", text);
    let mut client = client();
    client.open(&uri, text);
    let mistakes = client.mistakes(&uri, 1);
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    assert_eq!(mistakes[0]["code"], "PMD0100", "{mistakes:?}");
    client.end();
}

#[test]
fn instances_and_names_are_those_of_the_metadata() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    let metadata = r#"{"format": "pmderive metadata", "version": 1, "source": "x", "metrics": [
        {"name": "disk.dev.read", "pmid": "60.0.4", "type": "U64", "indom": "60.1",
         "sem": "counter", "units": "count"}],
        "domains": [{"indom": "60.1", "instances": [[0, "sda"], [1, "a]b"]]}]}"#;
    write(&folder, "m.json", metadata);
    write(&folder, "pmderive.toml", "metadata = \"m.json\"\n");
    let text = "a = rate(disk.dev.read[\nb = a + 1\nc = b\n";
    let uri = write(&folder, "a.conf", text);
    let mut client = client();
    client.open(&uri, text);
    // The first edit asks before anything is known of the text.
    client.edit(&uri, 2, (0, 23), (0, 23), "s");
    let list = client.ask("textDocument/completion", at(&uri, 0, 24));
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    let list = client.ask("textDocument/completion", at(&uri, 0, 23));
    let offered = list["items"].as_array().expect("a list").iter();
    let offered: Vec<_> = offered.map(|one| (&one["label"], &one["textEdit"]["newText"])).collect();
    assert_eq!(
        offered,
        [(&json!("sda"), &json!("sda")), (&json!("a]b"), &json!("a\\]b"))],
        "{list}"
    );
    client.mistakes(&uri, 2);
    let list = client.ask("textDocument/completion", at(&uri, 0, 16));
    assert!(list["items"].to_string().contains("disk.dev.read"), "{list}");
    let mut asked = at(&uri, 1, 0);
    asked["newName"] = json!("disk.dev.read");
    let words = client.refused("textDocument/rename", asked);
    assert_eq!(words, "`disk.dev.read` is a metric of the source");
    client.end();
}

/// Older clients say it in one of two other ways.
#[test]
fn the_folder_that_is_open_is_known_however_it_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    std::fs::create_dir_all(folder.join("below")).expect("made");
    write(&folder, "a.conf", "a.x = 1\n");
    let text = "b.y = a.x\n";
    let uri = write(&folder.join("below"), "b.conf", text);
    let (path, root) = (folder.display().to_string(), format!("file://{}", folder.display()));
    for (parameters, is_open) in [
        (json!({ "capabilities": {}, "rootUri": root }), true),
        (json!({ "capabilities": {}, "rootUri": root, "workspaceFolders": null }), true),
        (json!({ "capabilities": {}, "rootPath": path, "rootUri": null }), true),
        (json!({ "capabilities": {}, "rootPath": null, "rootUri": null }), false),
        (json!({ "capabilities": {}, "rootPath": "/nowhere", "rootUri": root }), true),
    ] {
        let language = Language { dialect: Dialect::Fixed, extensions: false };
        let grace = std::time::Duration::from_secs(60);
        let options = Options { language, opener: None, grace, max_shown: 100 };
        let mut client = Client::start_saying(options, parameters.clone());
        client.open(&uri, text);
        let place = client.ask("textDocument/definition", at(&uri, 0, 7));
        assert_eq!(place.is_object(), is_open, "{parameters}");
        client.end();
    }
}

/// Clients tell of changed files only if they are asked to.
#[test]
fn files_are_watched_by_clients_that_can() {
    let language = Language { dialect: Dialect::Fixed, extensions: false };
    let grace = std::time::Duration::from_secs(60);
    let options = Options { language, opener: None, grace, max_shown: 100 };
    let (wire, server) = Wire::start(options);
    let send = |message: Message| wire.send(message);
    let request = |id: i32, method: &str, params| {
        Message::Request(Request { id: id.into(), method: method.to_owned(), params })
    };
    let note = |method: &str| {
        let params = json!({});
        Message::Notification(Notification { method: method.to_owned(), params })
    };
    let watches =
        json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
    send(request(1, "initialize", json!({ "capabilities": watches })));
    let answer = wire.next();
    assert!(matches!(answer, Message::Response(_)), "{answer:?}");
    send(note("initialized"));
    let Message::Request(asked) = wire.next() else { panic!("no request") };
    assert_eq!(asked.method, "client/registerCapability");
    let registered = &asked.params["registrations"][0];
    assert_eq!(registered["method"], "workspace/didChangeWatchedFiles");
    let watchers = &registered["registerOptions"]["watchers"];
    assert_eq!(watchers[0]["globPattern"], "**/pmderive.toml");
    // A client that refuses all the same is served.
    send(Message::Response(Response::new_err(asked.id, -32_601, "no".to_owned())));
    send(request(2, "shutdown", json!(null)));
    let answer = wire.next();
    assert!(matches!(answer, Message::Response(_)), "{answer:?}");
    send(note("exit"));
    assert_eq!(server.join().expect("it did not fall"), Ok(End::Agreed));
}

#[cfg(feature = "fleet")]
#[test]
fn definitions_over_the_fleet_are_known_by_the_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    write(&folder, "pmderive.toml", "fleet = [\"racks.conf\"]\n");
    write(&folder, "hosts.conf", "shop.rate = rate(shop.sales)\n");
    let text = "racks.rate = sum(shop.rate) by (rack)\n";
    let uri = write(&folder, "racks.conf", text);
    let mut client = client();
    client.open(&uri, text);
    let mistakes = client.mistakes(&uri, 1);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    client.end();
}

/// A cycle stays one when a source has answered.
#[cfg(feature = "fleet")]
#[test]
fn cycles_over_the_fleet_are_known_with_and_without_metadata() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    let shop = include_str!("../../over_fleet/shop.json");
    write(&folder, "shop.json", shop);
    let text = "racks.a = racks.b + 1\nracks.b = racks.a + sum(shop.requests)\n";
    for settings in ["", "metadata = \"shop.json\"\n"] {
        let settings = format!("fleet = [\"racks.conf\"]\n{settings}");
        write(&folder, "pmderive.toml", &settings);
        let uri = write(&folder, "racks.conf", text);
        let mut client = client();
        client.open(&uri, text);
        let mistakes = client.mistakes(&uri, 1);
        let cycles = mistakes.iter().filter(|one| one["code"] == "PMD0104");
        assert_eq!(cycles.count(), 1, "{settings}: {mistakes:?}");
        client.end();
    }
}
