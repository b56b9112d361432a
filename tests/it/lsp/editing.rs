//! Edits of texts: those of a client, and those that it is offered.

use serde_json::{Value, json};

use super::client::{Client, at, range};

const URI: &str = "file:///nowhere/a.conf";

fn formatting() -> Value {
    json!({
        "textDocument": { "uri": URI },
        "options": { "tabSize": 4, "insertSpaces": true },
    })
}

#[test]
fn formatting_has_an_edit_for_each_place_that_changes() {
    let lines: Vec<String> = (0..3_002).map(|at| format!("a.b{at} = {at}")).collect();
    let mut changed = lines.clone();
    changed[0] = "a.b0=0".to_owned();
    changed[3_001] = "a.b3001   =   3001".to_owned();
    let mut client = Client::start(None);
    client.open(URI, &(changed.join("\n") + "\n"));
    let edits = client.ask("textDocument/formatting", formatting());
    let expected = json!([
        { "range": range((0, 0), (1, 0)), "newText": "a.b0 = 0\n" },
        { "range": range((3_001, 0), (3_002, 0)), "newText": "a.b3001 = 3001\n" },
    ]);
    assert_eq!(edits, expected);
    client.end();
}

#[test]
fn a_range_is_formatted() {
    let mut client = Client::start(None);
    client.open(URI, "a.a=1\n\n\na.b=2+\\\n 3\na.c=4\n");
    let mut asked = formatting();
    asked["range"] = range((4, 0), (4, 1));
    let edits = client.ask("textDocument/rangeFormatting", asked);
    let expected = json!([{ "range": range((3, 0), (5, 0)), "newText": "a.b = 2 + 3\n" }]);
    assert_eq!(edits, expected);
    client.end();
}

/// The protocol knows three ends of a line.
#[test]
fn a_carriage_return_ends_a_line() {
    let mut client = Client::start(None);
    client.open(URI, "a.a = 1\ra.b = 2\n");
    client.mistakes(URI, 1);
    // Takes away what makes two lines of it for the client.
    client.edit(URI, 2, (0, 7), (1, 0), "\n");
    assert_eq!(client.mistakes(URI, 2), Vec::<Value>::new());
    let asked = json!({ "textDocument": { "uri": URI } });
    let symbols = client.ask("textDocument/documentSymbol", asked.clone());
    assert_eq!(symbols[1]["selectionRange"], range((1, 0), (1, 3)), "{symbols}");
    // Half of CR LF comes and goes.
    client.edit(URI, 3, (0, 7), (0, 7), "\r");
    client.edit(URI, 4, (1, 6), (1, 7), "3");
    let symbols = client.ask("textDocument/documentSymbol", asked);
    assert_eq!(symbols[1]["detail"], "3", "{symbols}");
    assert_eq!(symbols[1]["range"], range((1, 0), (1, 7)), "{symbols}");
    // Behind the end of a line is that end, not the middle of CR LF.
    client.edit(URI, 5, (0, 99), (0, 99), "0");
    let hover = client.ask("textDocument/hover", at(URI, 0, 7));
    assert!(hover.to_string().contains("10"), "{hover}");
    client.end();
}

fn actions(client: &mut Client, only: &Value) -> Value {
    let context = json!({ "diagnostics": [], "only": only });
    let range = range((0, 0), (0, 99));
    let document = json!({ "uri": URI });
    let asked = json!({ "textDocument": document, "range": range, "context": context });
    client.ask("textDocument/codeAction", asked)
}

#[test]
fn actions_are_of_the_kinds_that_are_wanted() {
    let mut client = Client::start(None);
    // Each but the last has a fix that is certain.
    client.open(URI, "a.a = 1 AND 2\na.b = 3 and 4\na.c = rat(b)\n");
    client.mistakes(URI, 1);
    let titles = |list: &Value| -> Vec<String> {
        let list = list.as_array().expect("a list").iter();
        list.map(|one| format!("{} {}", one["kind"], one["title"])).collect()
    };
    let fix = vec!["\"quickfix\" \"Replace `AND` by `&&`\"".to_owned()];
    for only in [json!(null), json!(["quickfix"]), json!(["refactor", "quickfix"])] {
        assert_eq!(titles(&actions(&mut client, &only)), fix, "{only}");
    }
    for only in [json!(["refactor"]), json!(["quick"]), json!(["source.organizeImports"])] {
        assert_eq!(actions(&mut client, &only), json!([]), "{only}");
    }
    for only in [json!(["source.fixAll"]), json!(["source"])] {
        let offered = actions(&mut client, &only);
        let all = ["\"source.fixAll\" \"Fix all that can be meant in one way only\""];
        assert_eq!(titles(&offered), all, "{only}");
        let expected = json!([
            { "range": range((0, 8), (0, 11)), "newText": "&&" },
            { "range": range((1, 8), (1, 11)), "newText": "&&" },
        ]);
        assert_eq!(offered[0]["edit"]["changes"][URI], expected, "{offered}");
    }
    client.end();
}

/// No position is between CR and LF, so an edit of the one replaces both.
#[test]
fn actions_remove_carriage_returns() {
    let mut client = Client::start(None);
    let lines = ["a.a = 1 + \\\r\n 2\r\n", "a.a = 1 +\r\n 2\r\n", "a.a = 1\r\n \r\na.b = 2\r\n"];
    for (version, (text, title, place, new)) in (2..).zip([
        (lines[0], "Remove the carriage return", ((0, 11), (1, 0)), "\n"),
        (lines[1], "Write ` \\` here", ((0, 9), (1, 0)), " \\\n"),
        (lines[2], "Remove ` `", ((1, 0), (1, 1)), ""),
    ]) {
        match version {
            2 => client.open(URI, text),
            _ => client.edit(URI, version, (0, 0), (9, 0), text),
        }
        let expected = json!([{ "range": range(place.0, place.1), "newText": new }]);
        let mut asked = json!({ "textDocument": { "uri": URI }, "range": range((0, 0), (9, 0)) });
        for (only, title) in
            [("quickfix", title), ("source.fixAll", "Fix all that can be meant in one way only")]
        {
            asked["context"] = json!({ "diagnostics": [], "only": [only] });
            let offered = client.ask("textDocument/codeAction", asked.clone());
            assert_eq!(offered[0]["title"], title, "{text:?}");
            assert_eq!(offered[0]["edit"]["changes"][URI], expected, "{text:?}");
        }
    }
    client.end();
}

/// Who saves asks at once; edits are those of the newest state.
#[test]
fn actions_wait_until_the_text_is_checked() {
    let mut client = Client::start(None);
    let only = json!(["source.fixAll"]);
    client.open(URI, "a.a = 1 AND 2\n");
    let offered = actions(&mut client, &only);
    assert_eq!(offered[0]["edit"]["changes"][URI][0]["newText"], "&&", "{offered}");
    client.edit(URI, 2, (0, 8), (0, 11), "<>");
    let offered = actions(&mut client, &only);
    assert_eq!(offered[0]["edit"]["changes"][URI][0]["newText"], "!=", "{offered}");
    // What one edit brings to light is mended with it.
    client.edit(URI, 3, (0, 0), (1, 0), "# kept\na.a = a.b = 4 and b.c = 3\n");
    let offered = actions(&mut client, &only);
    let edits = &offered[0]["edit"]["changes"][URI];
    assert_eq!(edits[0]["newText"], "a.a = a.b = 4 && b.c == 3\n", "{offered}");
    client.end();
}

/// None is left without an answer.
#[test]
fn actions_of_what_is_never_checked_are_answered() {
    let mut client = Client::start(None);
    let asked = |uri: &str| {
        let range = range((0, 0), (0, 99));
        json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [] } })
    };
    let settings = "file:///nowhere/pmderive.toml";
    client.open(settings, "extensions = true\n");
    for uri in [settings, "file:///nowhere/closed.conf"] {
        let words = client.refused("textDocument/codeAction", asked(uri));
        assert_eq!(words, "this text is not open", "{uri}");
    }
    client.open(URI, "a.a = 1 AND 2\n");
    let first = client.request("textDocument/codeAction", asked(URI));
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    // By then it may have been checked.
    client.answer(first);
    client.end();
}

#[test]
fn definitions_are_found_in_the_whole_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = |name: &str| format!("file://{}", folder.path().join(name).display());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("a.conf", "shop.sales = 1\n").expect("written");
    write("b.conf", "web.sales = 2\nweb.hits = (\n").expect("written");
    let mut client = Client::start_in(None, Some(&uri("")));
    let mut found = |query: &str| -> Vec<String> {
        let list = client.ask("workspace/symbol", json!({ "query": query }));
        let list = list.as_array().expect("a list").iter();
        list.map(|one| {
            let start = &one["location"]["range"]["start"]["line"];
            let file = one["location"]["uri"].as_str().expect("a URI");
            let file = file.rsplit('/').next().unwrap_or_default();
            format!("{} {file}:{start}", one["name"].as_str().expect("a name"))
        })
        .collect()
    };
    assert_eq!(found("sales"), ["shop.sales a.conf:0", "web.sales b.conf:0"]);
    assert_eq!(found("WEB"), ["web.hits b.conf:1", "web.sales b.conf:0"]);
    assert_eq!(found("").len(), 3);
    assert_eq!(found("nothing"), Vec::<String>::new());
    // What is typed counts, not what is on disk.
    client.open(&uri("a.conf"), "\nshop.orders = 1\n");
    let list = client.ask("workspace/symbol", json!({ "query": "shop" }));
    assert_eq!(list[0]["name"], "shop.orders");
    assert_eq!(list[0]["location"]["range"], range((1, 0), (1, 11)));
    client.end();
}
