//! Edits and requests at every position of shipped files: a server mostly sees half-typed
//! definitions. Every request is answered.

use std::path::PathBuf;

use super::client::{Client, at, own_fleet};

/// Definition files of this repository.
fn shipped() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = [
        "src/packages",
        "src/packages/record",
        "tests/cli",
        "tests/definition_mistakes",
        "tests/diagnostics",
        "tests/extensions",
        "tests/fmt",
        "tests/over_fleet",
        "tests/serve",
        "tests/tools",
    ];
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).into_iter().flatten())
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "conf"))
        .collect();
    files.sort();
    assert!(files.len() > 3, "{files:?}");
    files
}

/// Opens a file and types it again, character by character, asking what may
/// follow after each.
fn type_again(path: &PathBuf, most: usize) {
    let bytes = std::fs::read(path).expect("it is there");
    let text = String::from_utf8_lossy(&bytes);
    let text: String = text.chars().take(most).collect();
    let uri = format!("file://{}", path.display());
    let mut client = Client::start(Some(own_fleet()));
    client.open(&uri, "");
    let (mut line, mut column, mut version) = (0u32, 0u32, 1);
    let mut asked = Vec::new();
    for one in text.chars() {
        version += 1;
        client.edit(&uri, version, (line, column), (line, column), &one.to_string());
        match one {
            '\n' => (line, column) = (line + 1, 0),
            one => column += u32::try_from(one.len_utf16()).expect("1 or 2"),
        }
        for method in ["textDocument/completion", "textDocument/signatureHelp"] {
            asked.push(client.request(method, at(&uri, line, column)));
        }
        if version % 16 == 0 {
            asked.push(client.request("textDocument/hover", at(&uri, line, column / 2)));
        }
        for id in asked.drain(..) {
            let answer = client.answer(id);
            assert!(answer.response_result.is_ok(), "{path:?} {line}:{column} {answer:?}");
        }
    }
    // The last state is the one that is shown in the end.
    client.mistakes(&uri, version);
    client.end();
}

#[test]
fn every_shipped_file_can_be_typed() {
    for path in shipped() {
        type_again(&path, 300);
    }
}

/// Positions of a file at which it is edited; more would take too long.
const POSITIONS: usize = 60;

/// Takes characters away and brings them back, at positions over the whole
/// length of a file, and asks after each edit.
fn edit_everywhere(path: &PathBuf) {
    let bytes = std::fs::read(path).expect("it is there");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let uri = format!("file://{}", path.display());
    let mut client = Client::start(None);
    client.open(&uri, &text);
    let mut version = 1;
    let count = text.chars().count();
    let step = count.div_ceil(POSITIONS).max(1);
    let (mut line, mut column) = (0u32, 0u32);
    for (number, one) in text.chars().enumerate() {
        let width = u32::try_from(one.len_utf16()).expect("1 or 2");
        let after = if one == '\n' { (line + 1, 0) } else { (line, column + width) };
        if number % step == 0 {
            client.edit(&uri, version + 1, (line, column), after, "");
            for method in ["completion", "signatureHelp", "hover", "definition"] {
                client.ask(&format!("textDocument/{method}"), at(&uri, line, column));
            }
            version += 2;
            client.edit(&uri, version, (line, column), (line, column), &one.to_string());
        }
        (line, column) = after;
    }
    // All is as it was.
    let again = client.mistakes(&uri, version);
    client.end();
    let mut fresh = Client::start(None);
    fresh.open(&uri, &text);
    assert_eq!(again, fresh.mistakes(&uri, 1), "{path:?}");
    fresh.end();
}

#[test]
fn every_shipped_file_can_be_edited_everywhere() {
    for path in shipped() {
        edit_everywhere(&path);
    }
}

#[test]
fn every_character_of_a_file_can_be_taken_away_and_come_back() {
    let text = "a.x = rate(disk.dev.total[disk0]) / \\\n  topk(3, hinv.ncpu) # é🎈\nb.y(oneline) = \"x\"\n";
    let uri = "file:///nowhere/every.conf";
    let mut client = Client::start(Some(own_fleet()));
    client.open(uri, text);
    let mut version = 1;
    for (number, line) in text.lines().enumerate() {
        let number = u32::try_from(number).expect("short");
        let mut column = 0;
        for one in line.chars() {
            let width = u32::try_from(one.len_utf16()).expect("1 or 2");
            client.edit(uri, version + 1, (number, column), (number, column + width), "");
            for method in ["completion", "signatureHelp", "hover", "definition"] {
                client.ask(&format!("textDocument/{method}"), at(uri, number, column));
            }
            version += 2;
            client.edit(uri, version, (number, column), (number, column), &one.to_string());
            column += width;
        }
    }
    let again = client.mistakes(uri, version);
    let second = "file:///nowhere/again.conf";
    client.open(second, text);
    let fresh = client.mistakes(second, 1);
    let words = |list: &[serde_json::Value]| -> Vec<String> {
        list.iter().map(|one| format!("{} {}", one["range"], one["message"])).collect()
    };
    assert_eq!(words(&again), words(&fresh));
    client.end();
}
