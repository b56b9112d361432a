//! The effect of `pmderive.toml` beside a text in an editor.

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
fn a_file_that_is_too_long_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    write(&folder, "b.conf", &"# long\n".repeat(200_000));
    let uri = write(&folder, "a.conf", "shop.x = 1\n");
    let mut client = client();
    client.open(&uri, "shop.x = 1\n");
    let said = client.note("window/showMessage")["message"].to_string();
    assert!(said.contains("b.conf is not read"), "{said}");
    client.end();
}

/// Nothing else may be read: the standard input has the messages of the editor.
#[test]
fn settings_cannot_name_a_fifo_as_metadata() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    let fifo = folder.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("a program");
    assert!(made.success());
    let settings = write(&folder, "pmderive.toml", "metadata = 'fifo'\n");
    let text = "shop.x = 1 +\n";
    let uri = write(&folder, "a.conf", text);
    let mut client = client();
    client.open(&uri, text);
    let note = client.note("textDocument/publishDiagnostics");
    assert_eq!(note["uri"], settings);
    let said = note["diagnostics"][0]["message"].to_string();
    assert!(said.contains("fifo is no regular file"), "{said}");
    assert_eq!(client.mistakes(&uri, 1).len(), 1);
    client.end();
}

/// As `check` reads the files of a folder with settings. Some editors leave brackets in URIs.
#[test]
fn the_files_before_a_text_define_names_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    write(&folder, "pmderive.toml", "extensions = true\n");
    write(&folder, "a.conf", "shop.x = 1\n");
    let texts = ["shop.x(oneline) = a help\nshop.y = 2\n", "shop.y = 3\nshop.z(oneline) = no\n"];
    let b = write(&folder, "b.conf", texts[0]);
    let c = write(&folder, "c[1].conf", texts[1]);
    let mut client = client();
    client.open(&b, texts[0]);
    assert_eq!(client.mistakes(&b, 1), Vec::<serde_json::Value>::new());
    client.open(&c, texts[1]);
    let encoded = c.replace('[', "%5B").replace(']', "%5D");
    let codes: Vec<_> =
        client.mistakes(&encoded, 1).iter().map(|one| one["code"].to_string()).collect();
    assert_eq!(codes, ["\"PMD0032\"", "\"PMD0033\""]);
    client.end();
}

/// Mistakes are shown only in settings that govern an open text.
#[test]
fn mistakes_of_settings_go_with_the_file_and_with_the_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    let settings = write(&folder, "pmderive.toml", "lint = 1\n");
    let uri = write(&folder, "a.conf", "a = 1\n");
    let mut client = client();
    let shown = |client: &mut Client| loop {
        let note = client.note("textDocument/publishDiagnostics");
        if note["uri"] == settings {
            return note["diagnostics"].as_array().map(Vec::len);
        }
    };
    client.open(&uri, "a = 1\n");
    assert_eq!(shown(&mut client), Some(1));
    std::fs::remove_file(folder.join("pmderive.toml")).expect("removed");
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert_eq!(shown(&mut client), Some(0));
    write(&folder, "pmderive.toml", "lint = 1\n");
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert_eq!(shown(&mut client), Some(1));
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(shown(&mut client), Some(0));
    client.end();
}

/// The files that a rename edits; a refusal instead says why.
fn renamed(client: &mut Client, folder: &Path, place: serde_json::Value) -> Vec<String> {
    let mut asked = place;
    asked["newName"] = json!("shop.new");
    let edits = client.ask("textDocument/rename", asked);
    let root = format!("file://{}/", folder.display());
    let files = edits["changes"].as_object().expect("edits").keys();
    let mut files: Vec<String> =
        files.map(|uri| uri.strip_prefix(&root).unwrap_or(uri).to_owned()).collect();
    files.sort();
    files
}

/// All files that `check` reads belong together, whatever they are called and however deep
/// they are; without settings only those that are called as definition files are.
#[test]
fn all_definition_files_of_a_project_belong_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    let deep = folder.join("1/2/3/4/5/6/7/8/9/10");
    std::fs::create_dir_all(&deep).expect("made");
    for number in 0..1_100 {
        write(&folder, &format!("f{number:04}.conf"), &format!("t.m{number} = shop.base + 1\n"));
    }
    write(&deep, "deep.conf", "t.deep = shop.base\n");
    write(&folder, "plain", "shop.base = hinv.ncpu\n");
    let text = "u.a = t.m3 + t.m1099 + t.deep\nu.b = shop.base\n";
    let uri = write(&folder, "use.conf", text);
    let mut client = client();
    client.open(&uri, text);
    assert_eq!(client.mistakes(&uri, 1).len(), 0);
    // Without settings nobody knows what a file is that is called `plain`.
    let asked = at(&uri, 1, 8);
    let mut with_name = asked.clone();
    with_name["newName"] = json!("shop.new");
    let words = client.refused("textDocument/rename", with_name);
    assert!(words.contains("`shop.base` is not defined"), "{words}");
    write(&folder, "pmderive.toml", "extensions = true\n");
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    let files = renamed(&mut client, &folder, asked);
    assert_eq!(files.len(), 1_103, "{files:?}");
    for name in ["f1099.conf", "plain", "use.conf", "1/2/3/4/5/6/7/8/9/10/deep.conf"] {
        assert!(files.iter().any(|one| one == name), "{name}");
    }
    // It cannot be edited, and may have the name.
    std::fs::write(folder.join("binary"), b"\xff shop.base\n").expect("written");
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    let mut asked = at(&uri, 1, 8);
    asked["newName"] = json!("shop.new");
    let words = client.refused("textDocument/rename", asked);
    assert!(words.contains("binary is too long or no text"), "{words}");
    client.end();
}

/// Projects around another one read its definitions; a project beside it may have its own.
#[test]
fn a_rename_reaches_the_projects_around() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    for (file, text) in [
        ("a.conf", "shop.u = shop.b + 1\n"),
        ("own/pmderive.toml", ""),
        ("own/c.conf", "shop.b = 1\nown.x = shop.b\n"),
        ("reads/pmderive.toml", ""),
        ("reads/d.conf", "reads.x = shop.b\n"),
        ("sub/pmderive.toml", ""),
        ("sub/b.conf", "shop.b = 2\n"),
    ] {
        std::fs::create_dir_all(folder.join(file).parent().expect("one")).expect("made");
        write(&folder, file, text);
    }
    let uri = format!("file://{}/sub/b.conf", folder.display());
    let mut client = client();
    client.open(&uri, "shop.b = 2\n");
    assert_eq!(renamed(&mut client, &folder, at(&uri, 0, 1)), ["sub/b.conf"]);
    write(&folder, "pmderive.toml", "");
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    let reached = ["a.conf", "reads/d.conf", "sub/b.conf"];
    assert_eq!(renamed(&mut client, &folder, at(&uri, 0, 1)), reached);
    let mut asked = at(&uri, 0, 1);
    asked["context"] = json!({ "includeDeclaration": false });
    let places = client.ask("textDocument/references", asked);
    assert_eq!(places.as_array().map(Vec::len), Some(2), "{places}");
    let mut asked = at(&uri, 0, 1);
    asked["newName"] = json!("own.x");
    let words = client.refused("textDocument/rename", asked);
    assert_eq!(words, "`own.x` is defined already");
    client.end();
}

/// Lints look at them as at those of hosts.
#[cfg(feature = "fleet")]
#[test]
fn definitions_over_the_fleet_are_linted() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    write(&folder, "pmderive.toml", "fleet = [\"racks.conf\"]\n[lints]\nall = \"warn\"\n");
    write(&folder, "hosts.conf", "shop.b = disk.dev.total\n");
    let text = "r.a = count(shop.b) by (rack) < 0\nr.b = delta(count(shop.b)) > 0\n\
                r.c = 1 ? sum(shop.b) by (rack) : r.a\n";
    let uri = write(&folder, "racks.conf", text);
    let mut client = Client::start(Some(super::client::own_fleet()));
    client.open(&uri, text);
    let mistakes = client.mistakes(&uri, 1);
    let codes: Vec<_> = mistakes.iter().map(|one| (&one["code"], &one["range"]["end"])).collect();
    let end = |line: u32, character: u32| json!({ "line": line, "character": character });
    assert_eq!(codes, [(&json!("PMD0307"), &end(0, 31)), (&json!("PMD0303"), &end(2, 7))]);
    client.end();
}

/// A name of another file over the fleet is known, and one that no host has is not. What
/// hovers over it is said of groups of hosts.
#[cfg(feature = "fleet")]
#[test]
fn editors_know_what_is_over_the_fleet() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = real(&folder);
    write(&folder, "pmderive.toml", "fleet = [\"racks.conf\", \"more.conf\"]\n");
    write(&folder, "hosts.conf", "shop.busy = rate(disk.dev.total)\n");
    write(&folder, "racks.conf", "racks.busy = sum(shop.busy) by (rack)\n");
    let text =
        "more.a = racks.busy / count(shop.busy) by (rack)\nmore.b = sum(shop.bsy) by (rack)\n";
    let uri = write(&folder, "more.conf", text);
    let mut client = Client::start(Some(super::client::own_fleet()));
    client.open(&uri, text);
    let mistakes = client.mistakes(&uri, 1);
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    let said = mistakes[0]["message"].as_str().expect("words");
    assert!(said.contains("did you mean `shop.busy`?"), "{said}");
    for (character, part, words) in [
        (0, "more.a", "DOUBLE, instant, units / sec, instances by (rack)"),
        (11, "racks.busy", "DOUBLE, instant, units count / sec, instances by (rack)"),
        (25, "count(shop.busy) by (rack)", "U64, instant, units count, instances by (rack)"),
        (30, "count(shop.busy) by (rack)", "U64, instant, units count, instances by (rack)"),
    ] {
        let hover = client.ask("textDocument/hover", at(&uri, 0, character));
        let said = hover["contents"]["value"].as_str().expect("words");
        assert!(said.contains(part) && said.contains(words), "{character}: {said}");
        assert!(!said.contains("Value") && !said.contains("refused"), "{character}: {said}");
    }
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
