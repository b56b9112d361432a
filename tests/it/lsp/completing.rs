//! The offers of completion, and the text that each replaces.

use pmderive::internal::lsp::Source;
use pmderive::runtime::context::{Context, HostContext};
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};
use serde_json::{Value, json};

use super::client::{Client, at, own_fleet, range};

const URI: &str = "file:///nowhere/a.conf";

/// What is offered at the end of a text, given as its last line.
fn offered(client: &mut Client, version: i32, before: &str, typed: &str) -> Value {
    let text = format!("{before}{typed}");
    let document = json!({ "uri": URI, "version": version });
    let params = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
    client.tell("textDocument/didChange", params);
    client.mistakes(URI, version);
    let line = u32::try_from(before.matches('\n').count()).expect("short");
    let end = u32::try_from(typed.encode_utf16().count()).expect("short");
    client.ask("textDocument/completion", at(URI, line, end))
}

fn labels(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list");
    items.iter().filter_map(|one| one["label"].as_str()).collect()
}

fn opened() -> Client {
    let mut client = Client::start(Some(own_fleet()));
    client.open(URI, "");
    client.mistakes(URI, 1);
    client
}

#[test]
fn each_offer_has_the_range_that_it_replaces() {
    let mut client = opened();
    for (version, (typed, start, first)) in (2..).zip([
        ("a = disk.dev.tot", 4, "disk.dev.total"),
        ("a = rate(", 9, "anon"),
        ("a = avg_over(disk.dev.total, \"5 m", 30, "5 min"),
        ("a = rescale(hinv.ncpu, \"count / s", 24, "count / sec"),
        ("a = disk.dev.total[vd", 19, "vda"),
        ("a = mkconst(1, type=do", 20, "double"),
        ("# pmderive: allow PMD0301, PMD0302, PMD03", 36, "PMD0300"),
        ("a = disk.dev.total[é🎈] + disk.dev.tot", 26, "disk.dev.total"),
    ]) {
        let list = offered(&mut client, version, "", typed);
        let end = u32::try_from(typed.encode_utf16().count()).expect("short");
        let item = &list["items"][0];
        assert_eq!(item["label"], first, "{typed}: {list}");
        let expected = json!({ "range": range((0, start), (0, end)), "newText": first });
        assert_eq!(item["textEdit"], expected, "{typed}");
    }
    client.end();
}

/// Editors take only the letters before the cursor for what is typed.
#[test]
fn instances_of_any_name_are_replaced_as_a_whole() {
    let mut world = World::new();
    let indom = world.add_domain(&["/dev/mapper/vg-root", "a]b", "sda"]);
    world.add(Metric::new("disk.read", Script::counter(1.0)).per(indom));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let spec = pmcd.spec();
    let mut client = Client::start(Some(Box::new(move || {
        Ok(Source::Context(Box::new(Context::Host(Box::new(HostContext::open(&spec)?)))))
    })));
    client.open(URI, "");
    client.mistakes(URI, 1);
    for (version, (typed, expected)) in (2..).zip([
        ("/dev/map", "/dev/mapper/vg-root"),
        ("root", "/dev/mapper/vg-root"),
        ("a", "a\\]b"),
        ("a\\]", "a\\]b"),
    ]) {
        let list = offered(&mut client, version, "", &format!("a = disk.read[{typed}"));
        let end = 14 + u32::try_from(typed.len()).expect("short");
        let edit = json!({ "range": range((0, 14), (0, end)), "newText": expected });
        assert_eq!(list["items"][0]["textEdit"], edit, "{typed}: {list}");
        // Editors look for what is typed at its beginning.
        let item = &list["items"][0];
        let filter = item["filterText"].as_str().or(item["label"].as_str()).expect("a text");
        assert!(filter.starts_with(typed), "{item}");
    }
    client.end();
}

#[test]
fn quotes_take_what_their_keyword_takes() {
    let mut client = opened();
    for (version, (typed, expected)) in (2..).zip([
        ("a = mkconst(1, type=\"", &["32", "u32", "64", "u64", "float", "double"][..]),
        ("a = mkconst(1, semantics=\"", &["counter", "instant", "discrete"]),
        ("a = mkconst(1, units=\"Kb", &["Kbyte", "Kbyte / sec"]),
        ("a = mkconst(1, units=\"", &["byte"]),
        ("a = mkconst(1, units=", &["\"byte\""]),
        ("a = mkconst(1, indom=\"", &[]),
        ("a = mkconst(1, indom=", &[]),
        ("a = rescale(x, \"Gb", &["Gbyte", "Gbyte / sec"]),
        ("a = avg_over(x, \"1 m", &["1 min"]),
        ("a = \"", &[]),
        ("a = x + (\"", &[]),
    ]) {
        let list = offered(&mut client, version, "", typed);
        let found = labels(&list);
        let found = match expected {
            // Of many the first one.
            ["byte"] | ["\"byte\""] => &found[..1],
            _ => &found[..],
        };
        assert_eq!(found, expected, "{typed}");
    }
    client.end();
}

#[test]
fn nothing_is_offered_within_help_texts() {
    let mut client = opened();
    let before = "a.b = 1\na.b(helptext) = \"first\n";
    for (version, typed) in (2..).zip(["  rate(", "rat", "  x = disk.dev.", "  it is [", "\"x"]) {
        let list = offered(&mut client, version, before, typed);
        assert_eq!(labels(&list), Vec::<&str>::new(), "{typed}");
    }
    // Behind the text all is as before.
    let list = offered(&mut client, 9, &format!("{before}last\"\n"), "a.c = disk.dev.tot");
    assert_eq!(labels(&list)[0], "disk.dev.total");
    client.end();
}

#[test]
fn names_are_found_by_their_parts_and_case_aside() {
    let mut client = opened();
    for (version, (typed, first, filter)) in (2..).zip([
        ("total", "disk.all.total", "total"),
        ("DISK.dev.tot", "disk.dev.total", "DISK.dev.total"),
        ("dev.TOTAL_b", "disk.dev.total_bytes", "dev.TOTAL_bytes"),
        ("RAT", "rate", "RATe"),
    ]) {
        let list = offered(&mut client, version, "", &format!("a = {typed}"));
        let item = &list["items"][0];
        assert_eq!((&item["label"], &item["filterText"]), (&json!(first), &json!(filter)));
        // The client asks again when more is typed.
        assert_eq!(list["isIncomplete"], true, "{typed}");
    }
    // Those that begin with it come first.
    let list = offered(&mut client, 9, "total.x = 1\n", "a = total");
    assert_eq!(&labels(&list)[..2], ["total.x", "disk.all.total"]);
    let items = list["items"].as_array().expect("a list");
    let order: Vec<&str> = items.iter().filter_map(|one| one["sortText"].as_str()).collect();
    assert!(order.len() == items.len() && order.is_sorted(), "{order:?}");
    let list = offered(&mut client, 10, "", "a = nothing.like.it");
    assert_eq!(list, json!({ "isIncomplete": false, "items": [] }));
    client.end();
}
