//! Names in lines that have a mistake: they are found and renamed as all others.

use serde_json::{Value, json};

use super::client::{Client, at, range};

const URI: &str = "file:///nowhere/a.conf";

const TEXT: &str = "\
a.one = hinv.ncpu + 1
a.two = a.one + 2
a.three = a.one and a.two
a.four = a.three * 2
a.five = (a.one
";

fn opened() -> Client {
    let client = Client::start(None);
    client.open(URI, TEXT);
    client
}

/// The places of edits or locations, as lines and columns.
fn places(list: &Value) -> Vec<(u64, u64, u64)> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let mut places: Vec<(u64, u64, u64)> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            let (start, end) = (&one["range"]["start"], &one["range"]["end"]);
            (number(&start["line"]), number(&start["character"]), number(&end["character"]))
        })
        .collect();
    places.sort_unstable();
    places
}

fn named(line: u32, character: u32, name: &str) -> Value {
    let mut asked = at(URI, line, character);
    asked["newName"] = json!(name);
    asked
}

#[test]
fn a_name_is_renamed_in_lines_with_mistakes() {
    let mut client = opened();
    let everywhere = [(0, 0, 5), (1, 8, 13), (2, 10, 15), (4, 10, 15)];
    let edit = client.ask("textDocument/rename", named(0, 2, "a.new"));
    assert_eq!(places(&edit["changes"][URI]), everywhere);
    let mut asked = at(URI, 4, 12);
    asked["context"] = json!({ "includeDeclaration": true });
    assert_eq!(places(&client.ask("textDocument/references", asked)), everywhere);
    client.end();
}

#[test]
fn a_definition_with_a_mistake_is_one() {
    let mut client = opened();
    let words = client.refused("textDocument/rename", named(0, 2, "a.three"));
    assert_eq!(words, "`a.three` is defined already");
    for (line, character) in [(2, 3), (3, 10)] {
        let edit = client.ask("textDocument/rename", named(line, character, "a.new"));
        assert_eq!(places(&edit["changes"][URI]), [(2, 0, 7), (3, 9, 16)], "{line}");
        let place = client.ask("textDocument/definition", at(URI, line, character));
        assert_eq!(place["range"], range((2, 0), (2, 7)), "{line}");
    }
    let prepared = client.ask("textDocument/prepareRename", at(URI, 4, 2));
    assert_eq!(prepared, range((4, 0), (4, 6)));
    let asked = json!({ "textDocument": { "uri": URI } });
    let symbols = client.ask("textDocument/documentSymbol", asked);
    let symbols = symbols.as_array().expect("a list");
    let names: Vec<&Value> = symbols.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["a.one", "a.two", "a.three", "a.four", "a.five"]);
    assert_eq!(symbols[4]["range"], range((4, 0), (4, 15)));
    assert_eq!(symbols[4]["detail"], "(a.one");
    client.mistakes(URI, 1);
    client.edit(URI, 2, (5, 0), (5, 0), "a.six = a.");
    client.mistakes(URI, 2);
    let list = client.ask("textDocument/completion", at(URI, 5, 10));
    let items = list["items"].as_array().expect("a list");
    let labels: Vec<&str> = items.iter().filter_map(|one| one["label"].as_str()).collect();
    assert_eq!(labels, ["a.five", "a.four", "a.one", "a.six", "a.three", "a.two"]);
    client.end();
}

/// Renaming would change the meaning of expressions that read a metric of the new name.
#[test]
fn a_name_that_is_read_is_not_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = |name: &str| format!("file://{}", folder.path().join(name).display());
    std::fs::write(folder.path().join("b.conf"), "b.one = mem.free\n").expect("written");
    let mut client = Client::start_in(None, Some(&uri("")));
    let a = uri("a.conf");
    client.open(&a, "a.one = hinv.ncpu\na.two = a.one + kernel.all.load\na.three = (mem.used\n");
    let mut asked = at(&a, 0, 1);
    for name in ["hinv.ncpu", "kernel.all.load", "mem.used", "mem.free"] {
        asked["newName"] = json!(name);
        let words = client.refused("textDocument/rename", asked.clone());
        assert_eq!(words, format!("`{name}` is read already"));
    }
    asked["newName"] = json!("a.one");
    assert!(client.ask("textDocument/rename", asked).is_object());
    client.end();
}

#[test]
fn other_words_of_such_lines_are_no_names() {
    let text = "\
u64 = 1
rack = 2
a.b = rat(u64) + mkconst(1, type=u64) + (
a.c = sum(rack) by (rack) +
u64 = 3
u64(helptext) = \"u64
  u64\"
# u64
";
    let mut client = Client::start(None);
    client.open(URI, text);
    let edit = client.ask("textDocument/rename", named(0, 1, "new"));
    let expected = [(0, 0, 3), (2, 10, 13), (4, 0, 3), (5, 0, 3)];
    assert_eq!(places(&edit["changes"][URI]), expected);
    let edit = client.ask("textDocument/rename", named(1, 1, "new"));
    assert_eq!(places(&edit["changes"][URI]), [(1, 0, 4), (3, 10, 14)]);
    let words = client.refused("textDocument/rename", named(2, 7, "new"));
    assert_eq!(words, "there is no name of a metric here");
    client.end();
}

#[test]
fn other_files_have_such_lines_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = |name: &str| format!("file://{}", folder.path().join(name).display());
    let text = "b.one = (a.one\nb.two = b.one \\\n  and a.one\n";
    std::fs::write(folder.path().join("b.conf"), text).expect("written");
    let mut client = Client::start_in(None, Some(&uri("")));
    let a = uri("a.conf");
    client.open(&a, "a.one = 1\na.two = b.two\n");
    let mut asked = at(&a, 0, 1);
    asked["newName"] = json!("a.new");
    let edit = client.ask("textDocument/rename", asked.clone());
    assert_eq!(places(&edit["changes"][uri("b.conf")]), [(0, 9, 14), (2, 6, 11)]);
    asked["newName"] = json!("b.two");
    let words = client.refused("textDocument/rename", asked);
    assert_eq!(words, "`b.two` is defined already");
    let place = client.ask("textDocument/definition", at(&a, 1, 9));
    assert_eq!(place, json!({ "uri": uri("b.conf"), "range": range((1, 0), (1, 5)) }));
    client.end();
}
