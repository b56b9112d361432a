//! What `pmderive.toml` beside a text means to an editor.

use std::path::Path;

use pmderive::dialect::{Dialect, Language};
use pmderive::internal::lsp::Options;
use serde_json::json;

use super::client::Client;

fn client() -> Client {
    let language = Language { dialect: Dialect::Fixed, extensions: false };
    let grace = std::time::Duration::from_secs(60);
    Client::start_with(Options { language, opener: None, grace }, None)
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
