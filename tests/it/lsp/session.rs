//! A session with one file: everything that the server offers, once.

use pmderive::internal::lsp::Source;
use pmderive::runtime::context::{Context, HostContext};
use pmderive::runtime::model::{Semantics, ValueType};
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};
use serde_json::{Value, json};

use super::client::{Client, at, own_fleet, range};

const URI: &str = "file:///nowhere/shop.conf";

const TEXT: &str = "\
# Shop.
shop.busy = rate(disk.dev.total)
shop.twice = 2 * shop.busy
shop.wrong = rat(disk.dev.total)
shop.first = disk.dev.total[disk0]
";

fn opened() -> Client {
    let client = Client::start(Some(own_fleet()));
    client.open(URI, TEXT);
    client
}

#[test]
fn mistakes_are_shown_with_their_fixes() {
    let mut client = opened();
    let mistakes = client.mistakes(URI, 1);
    let shown: Vec<String> = mistakes
        .iter()
        .map(|one| format!("{} {} {}", one["range"]["start"]["line"], one["code"], one["message"]))
        .collect();
    insta::assert_debug_snapshot!(shown);
    let of_line = json!({
        "textDocument": { "uri": URI },
        "range": range((3, 0), (3, 40)),
        "context": { "diagnostics": [] },
    });
    let actions = client.ask("textDocument/codeAction", of_line);
    assert_eq!(actions[0]["title"], "Replace `rat` by `rate`");
    assert_eq!(actions[0]["edit"]["changes"][URI][0]["newText"], "rate");
    // After the fix nothing is wrong there.
    client.edit(URI, 2, (3, 13), (3, 16), "rate");
    let mistakes = client.mistakes(URI, 2);
    assert!(mistakes.iter().all(|one| one["severity"] != 1), "{mistakes:?}");
    client.end();
}

#[test]
fn hovering_shows_metadata_help_and_values() {
    let mut client = opened();
    let mut shown = String::new();
    let places = [(1, 2), (1, 13), (1, 20), (2, 13), (2, 22), (3, 14), (3, 20), (0, 3)];
    for (line, character) in places {
        let hover = client.ask("textDocument/hover", at(URI, line, character));
        let text = hover["contents"]["value"].as_str().unwrap_or("nothing");
        shown.push_str(&format!("== {line}:{character}\n{text}\n"));
    }
    insta::assert_snapshot!(shown);
    client.end();
}

/// The values are those that `eval` has last.
#[test]
fn hovering_shows_the_last_values_of_an_archive() {
    let mut client = Client::start(Some(own_fleet()));
    for (version, (expression, value)) in [
        ("2 + 3", Some("**5**")),
        ("hinv.ncpu", Some("**2**")),
        ("delta(disk.all.read)", Some("**385.0**")),
        ("max_over(kernel.all.load, \"1 hour\")", Some("1 minute **4715.7065**")),
        ("avg_over(kernel.all.load, \"10 sec\")", Some("1 minute **4709.205810546875**")),
        ("ewma(kernel.all.load, \"5 sec\")", Some("1 minute **4711.528044385325**")),
        ("no.such.metric", None),
        ("hinv.ncpu * 2", Some("**4**")),
    ]
    .into_iter()
    .enumerate()
    {
        let text = format!("a = {expression}\n");
        match version {
            0 => client.open(URI, &text),
            _ => client.edit(URI, version as i32 + 1, (0, 0), (9, 0), &text),
        }
        let hover = client.ask("textDocument/hover", at(URI, 0, 0));
        let text = hover["contents"]["value"].as_str().expect("a text");
        let expected = value.map(|value| format!("Value at the end of the archive: {value}"));
        match expected {
            Some(expected) => assert!(text.contains(&expected), "{expression}: {text}"),
            None => assert!(!text.contains("Value"), "{expression}: {text}"),
        }
    }
    client.end();
}

/// A rate needs two samples of a live source. This one's clock goes on by a second
/// with each.
#[test]
fn hovering_shows_the_rate_of_a_live_counter() {
    let mut world = World::new();
    let counter = Metric::new("shop.sales", Script::counter(250.0));
    world.add(counter.of_type(ValueType::U64).meaning(Semantics::Counter));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let spec = pmcd.spec();
    let opener = Box::new(move || {
        Ok(Source::Context(Box::new(Context::Host(Box::new(HostContext::open(&spec)?)))))
    });
    let mut client = Client::start(Some(opener));
    client.open(URI, "a = rate(shop.sales) / 2\n");
    for (character, value) in [(4, "250.0"), (21, "125.0"), (0, "125.0")] {
        let hover = client.ask("textDocument/hover", at(URI, 0, character));
        let text = hover["contents"]["value"].as_str().expect("a text");
        assert!(text.contains(&format!("Value now: **{value}**")), "{character}: {text}");
    }
    client.end();
}

#[test]
fn what_may_follow_is_offered() {
    let mut client = opened();
    client.mistakes(URI, 1);
    let mut offered = Vec::new();
    let mut version = 1;
    for typed in [
        "shop.x = disk.dev.t",
        "shop.x = to",
        "shop.x = shop.",
        "shop.x = disk.dev.total[",
        "shop.x = rescale(disk.dev.total_bytes, \"K",
        "shop.x = mkconst(1, t",
        "shop.x = mkconst(1, type=",
        "shop.x = mkconst(1, semantics=c",
        "shop.x = avg_over(disk.dev.total, \"",
        "shop.busy(one",
        "shop.x = sum(disk.dev.total) by (j",
        "# pmderive: allow PMD0302, PMD030",
        "# shop.x = disk.",
    ] {
        version += 1;
        client.edit(URI, version, (5, 0), (6, 0), typed);
        // Names of definitions are those of the text as it was read last.
        client.mistakes(URI, version);
        let end = u32::try_from(typed.len()).expect("short");
        let list = client.ask("textDocument/completion", at(URI, 5, end));
        let items = list["items"].as_array().expect("a list");
        let labels = items.iter().filter_map(|one| one["label"].as_str());
        let labels: Vec<&str> = labels.take(12).collect();
        offered.push(format!("{typed}| {}", labels.join(" ")));
    }
    insta::assert_debug_snapshot!(offered);
    client.end();
}

#[test]
fn calls_are_explained_while_they_are_written() {
    let mut client = opened();
    client.edit(URI, 2, (5, 0), (5, 0), "shop.y = topk(3, rate(x), ");
    let help = client.ask("textDocument/signatureHelp", at(URI, 5, 22));
    assert_eq!(help["signatures"][0]["label"], "rate(x)");
    let help = client.ask("textDocument/signatureHelp", at(URI, 5, 17));
    assert_eq!(help["signatures"][0]["label"], "topk(k, x)");
    assert_eq!(help["signatures"][0]["activeParameter"], 1);
    assert_eq!(client.ask("textDocument/signatureHelp", at(URI, 0, 3)), Value::Null);
    client.end();
}

#[test]
fn names_are_found_and_renamed_in_a_whole_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let a = "a.x = kernel.all.load\na.x(oneline) = the load\n";
    std::fs::write(path("a.conf"), a).expect("written");
    std::fs::write(path("b.conf"), "b.y = a.x + 1\n").expect("written");
    std::fs::create_dir(path("below")).expect("made");
    std::fs::write(path("below/c.conf"), "c.z = count(a.x)\n").expect("written");
    std::fs::write(path("notes.txt"), "a.x = no definition\n").expect("written");
    let uri = |name: &str| format!("file://{}", path(name).display());
    let mut client = Client::start_in(Some(own_fleet()), Some(&uri("")));
    let b = uri("b.conf");
    client.open(&b, "b.y = a.x + 2\n");
    // What was checked with the source comes after the names that it has.
    assert_eq!(client.mistakes(&b, 1), Vec::<Value>::new());
    let place = client.ask("textDocument/definition", at(&b, 0, 7));
    assert_eq!(place["uri"], uri("a.conf"));
    assert_eq!(place["range"], range((0, 0), (0, 3)));
    let mut asked = at(&b, 0, 7);
    asked["context"] = json!({ "includeDeclaration": true });
    let places = client.ask("textDocument/references", asked);
    // The same places as renaming has.
    assert_eq!(places.as_array().map(Vec::len), Some(4), "{places}");
    assert_eq!(client.ask("textDocument/prepareRename", at(&b, 0, 7)), range((0, 6), (0, 9)),);
    assert_eq!(client.ask("textDocument/prepareRename", at(&b, 0, 11)), Value::Null);
    let rename = |name: &str| {
        let mut asked = at(&b, 0, 7);
        asked["newName"] = json!(name);
        asked
    };
    let edit = client.ask("textDocument/rename", rename("a.new"));
    let changes = edit["changes"].as_object().expect("changes");
    let mut changed: Vec<&String> = changes.keys().collect();
    changed.sort();
    assert_eq!(changed, [&uri("a.conf"), &uri("b.conf"), &uri("below/c.conf")]);
    assert_eq!(changes[&uri("below/c.conf")][0]["range"], range((0, 12), (0, 15)));
    let of_a = changes[&uri("a.conf")].as_array().expect("edits");
    let ranges: Vec<&Value> = of_a.iter().map(|edit| &edit["range"]).collect();
    assert_eq!(ranges, [&range((0, 0), (0, 3)), &range((1, 0), (1, 3))]);
    let words = client.refused("textDocument/rename", rename("hinv.ncpu"));
    assert_eq!(words, "`hinv.ncpu` is a metric of the source");
    let words = client.refused("textDocument/rename", rename("9"));
    assert!(words.contains("is no name of a metric"), "{words}");
    let words = client.refused("textDocument/rename", rename("b.y"));
    assert_eq!(words, "`b.y` is defined already");
    client.end();
}

#[test]
fn a_text_has_an_outline_tokens_and_a_usual_form() {
    let mut client = opened();
    let whole = json!({ "textDocument": { "uri": URI }, "options": { "tabSize": 4, "insertSpaces": true } });
    let symbols = client.ask("textDocument/documentSymbol", whole.clone());
    let names: Vec<&str> =
        symbols.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    // Also what is refused.
    assert_eq!(names, ["shop.busy", "shop.twice", "shop.wrong", "shop.first"]);
    let tokens = client.ask("textDocument/semanticTokens/full", whole.clone());
    insta::assert_snapshot!(drawn(TEXT, tokens["data"].as_array().expect("numbers")));
    assert_eq!(client.ask("textDocument/formatting", whole.clone()), json!([]));
    client.edit(URI, 2, (2, 13), (2, 18), "2*");
    let edits = client.ask("textDocument/formatting", whole);
    assert_eq!(edits[0]["range"]["start"], json!({ "line": 2, "character": 0 }));
    let text = edits[0]["newText"].as_str().expect("a text");
    assert_eq!(text, "shop.twice = 2 * hop.busy\n");
    client.end();
}

/// Each token of a text on a line of its own, with the number of its kind.
fn drawn(text: &str, data: &[Value]) -> String {
    let numbers: Vec<usize> = data
        .iter()
        .map(|one| usize::try_from(one.as_u64().expect("a number")).expect("small"))
        .collect();
    let lines: Vec<&str> = text.lines().collect();
    let (mut line, mut column) = (0, 0);
    let mut drawn = String::new();
    for token in numbers.chunks(5) {
        column = if token[0] == 0 { column + token[1] } else { token[1] };
        line += token[0];
        let word = &lines[line][column..column + token[2]];
        drawn.push_str(&format!("{line}:{column} {} {} {word}\n", token[3], token[4]));
    }
    drawn
}
