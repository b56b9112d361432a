//! The forms that other programs read, read as these do: SARIF by the rules of
//! its schema, JUnit by a parser of XML, annotations by GitHub's grammar.

use serde_json::Value;

use super::{FLEET, Folder};

/// Files with an error on a known place, a warning with a fix, and nothing.
fn folder() -> Folder {
    Folder::with(&[
        ("bad dir/x.conf", "\u{e9} = 1\nbusy = hinv.ncpu = 4\nb=delta(mem.util.free)\n"),
        ("good.conf", "a = hinv.ncpu\n"),
        (
            "t.toml",
            "files = [\"good.conf\"]\n[metrics]\n\"hinv.ncpu\" = { type = \"u32\" }\n\
             [[case]]\nname = \"fails & <tells>\"\n[case.samples]\n\"hinv.ncpu\" = \"1\"\n\
             [case.expect]\n\"a\" = \"2\"\n[[case]]\nname = \"passes\"\n[case.samples]\n\
             \"hinv.ncpu\" = \"1\"\n[case.expect]\n\"a\" = \"1\"\n",
        ),
    ])
}

/// What the three commands print in a form, with their exit statuses.
fn documents(format: &str) -> [(i32, String); 3] {
    let folder = folder();
    let runs: [&[&str]; 3] = [
        &["check", "--lint", "-a", FLEET, "--format", format, "bad dir/x.conf", "good.conf"],
        &["test", "--coverage", "--format", format, "t.toml"],
        &["fmt", "--check", "--format", format, "bad dir/x.conf", "good.conf"],
    ];
    runs.map(|arguments| {
        let (status, out, err) = folder.run(arguments);
        assert!(!err.contains("PMD"), "{err}");
        (status, out)
    })
}

#[test]
fn sarif_keeps_to_its_schema() {
    for (status, text) in documents("sarif") {
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let findings = sarif(&document).expect("SARIF");
        assert_eq!(findings > 0, status > 0, "{text}");
    }
}

/// What the schema of SARIF 2.1.0 demands of the parts that are used here: which
/// properties there may be, which there must be, and of which kind. Gives the
/// number of results.
fn sarif(document: &Value) -> Result<usize, String> {
    let root = object(document, "document", &["version", "runs"], &["$schema"])?;
    if root["version"] != "2.1.0" {
        return Err("another version".to_owned());
    }
    let mut count = 0;
    for run in list(&root["runs"])? {
        let run = object(run, "run", &["tool", "results"], &["columnKind"])?;
        if !["utf16CodeUnits", "unicodeCodePoints"].contains(&text(&run["columnKind"])?) {
            return Err("columns of another kind".to_owned());
        }
        let tool = object(&run["tool"], "tool", &["driver"], &[])?;
        let driver = object(&tool["driver"], "driver", &["name", "version", "rules"], &[])?;
        let mut ids = Vec::new();
        for rule in list(&driver["rules"])? {
            let rule = object(rule, "rule", &["id"], &["shortDescription", "help"])?;
            ids.push(text(&rule["id"])?);
            for key in ["shortDescription", "help"] {
                if let Some(words) = rule.get(key) {
                    text(&object(words, key, &["text"], &["markdown"])?["text"])?;
                }
            }
        }
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        if unique.len() != ids.len() {
            return Err("two rules with one id".to_owned());
        }
        for result in list(&run["results"])? {
            let needed = ["ruleId", "ruleIndex", "level", "message", "locations"];
            let result = object(result, "result", &needed, &["fixes"])?;
            let index = result["ruleIndex"].as_u64().ok_or("an index")?;
            if ids.get(index as usize).copied() != result["ruleId"].as_str() {
                return Err("the index of another rule".to_owned());
            }
            if !["none", "note", "warning", "error"].contains(&text(&result["level"])?) {
                return Err("another level".to_owned());
            }
            text(&object(&result["message"], "message", &["text"], &[])?["text"])?;
            for location in list(&result["locations"])? {
                let location = object(location, "location", &["physicalLocation"], &[])?;
                let place = &location["physicalLocation"];
                let place = object(place, "place", &["artifactLocation", "region"], &[])?;
                artifact(&place["artifactLocation"])?;
                region(&place["region"])?;
            }
            for fix in result.get("fixes").map(list).transpose()?.into_iter().flatten() {
                let fix = object(fix, "fix", &["artifactChanges"], &["description"])?;
                for change in list(&fix["artifactChanges"])? {
                    let needed = ["artifactLocation", "replacements"];
                    let change = object(change, "change", &needed, &[])?;
                    artifact(&change["artifactLocation"])?;
                    for one in list(&change["replacements"])? {
                        let one = object(one, "one", &["deletedRegion"], &["insertedContent"])?;
                        region(&one["deletedRegion"])?;
                    }
                }
            }
            count += 1;
        }
    }
    Ok(count)
}

fn object<'v>(
    value: &'v Value,
    what: &str,
    needed: &[&str],
    more: &[&str],
) -> Result<&'v serde_json::Map<String, Value>, String> {
    let object = value.as_object().ok_or_else(|| format!("{what} is no object"))?;
    if let Some(missing) = needed.iter().find(|key| !object.contains_key(**key)) {
        return Err(format!("{what} lacks {missing}"));
    }
    let is_known = |key: &&String| needed.contains(&key.as_str()) || more.contains(&key.as_str());
    match object.keys().find(|key| !is_known(key)) {
        Some(key) => Err(format!("{what} has {key}")),
        None => Ok(object),
    }
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("{value} is no list"))
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{value} is no text"))
}

/// A reference to a file: characters of RFC 3986 only.
fn artifact(value: &Value) -> Result<(), String> {
    let uri = text(&object(value, "artifact", &["uri"], &[])?["uri"])?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%/:".contains(&byte);
    match !uri.is_empty() && uri.bytes().all(is_allowed) {
        true => Ok(()),
        false => Err(format!("{uri} is no reference")),
    }
}

/// Lines and columns from 1, the end not before the start.
fn region(value: &Value) -> Result<(), String> {
    let keys = ["startColumn", "endLine", "endColumn"];
    let region = object(value, "region", &["startLine"], &keys)?;
    let number = |key: &str| match region.get(key) {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number @ 1..) => Ok(Some(number)),
            _ => Err(format!("{key} is {value}")),
        },
    };
    let start = (number("startLine")?, number("startColumn")?);
    let end = (number("endLine")?, number("endColumn")?);
    match end.0.is_some() && end < start {
        true => Err("it ends before it starts".to_owned()),
        false => Ok(()),
    }
}

/// A check that can fail: documents that break the schema are found.
#[test]
fn documents_that_are_no_sarif() {
    let [(_, good), ..] = documents("sarif");
    for (from, to) in [
        ("\"version\": \"2.1.0\"", "\"version\": \"2.0.0\""),
        ("\"ruleId\"", "\"rule\""),
        ("\"startLine\": 2", "\"startLine\": 0"),
        ("\"uri\": \"bad%20dir/x.conf\"", "\"uri\": \"bad dir/x.conf\""),
        ("\"level\": \"error\"", "\"level\": \"fatal\""),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from} is not there");
        let document: Value = serde_json::from_str(&bad).expect("JSON");
        assert!(sarif(&document).is_err(), "{to}");
    }
}

#[test]
fn junit_is_read_by_a_parser() {
    let mut names = Vec::new();
    for (status, text) in documents("junit") {
        let document = roxmltree::Document::parse(&text).expect("XML");
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "testsuites");
        let number = |node: roxmltree::Node<'_, '_>, name: &str| -> usize {
            node.attribute(name).expect(name).parse().expect("a number")
        };
        let mut sums = (0, 0);
        for suite in root.children().filter(roxmltree::Node::is_element) {
            assert_eq!(suite.tag_name().name(), "testsuite");
            let cases: Vec<_> =
                suite.children().filter(|node| node.has_tag_name("testcase")).collect();
            let failed = cases.iter().filter(|case| {
                case.children().any(|node| node.has_tag_name("failure") && node.text().is_some())
            });
            let counts = (cases.len(), failed.count());
            assert_eq!(counts, (number(suite, "tests"), number(suite, "failures")));
            sums = (sums.0 + counts.0, sums.1 + counts.1);
            for case in &cases {
                assert!(number(*case, "line") > 0 && case.attribute("file").is_some());
                names.extend(case.attribute("name").map(str::to_owned));
            }
        }
        assert_eq!(sums, (number(root, "tests"), number(root, "failures")), "{text}");
        assert_eq!(sums.1 > 0, status > 0, "{text}");
    }
    for name in ["PMD0010 2:18", "PMD0301 3:9", "no mistakes", "fails & <tells>", "format 3:1"] {
        assert!(names.iter().any(|one| one == name), "{name} is not among {names:?}");
    }
}

#[test]
fn annotations_have_lines_and_columns() {
    let [check, test, fmt] = documents("github").map(|(_, text)| text);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
    assert_eq!(
        lines(&check)[1],
        "::error file=bad dir/x.conf,line=2,col=18,endColumn=19,title=PMD0010::`=` is no \
         operator; to compare, write `==`"
    );
    assert!(
        check.contains("::warning file=bad dir/x.conf,line=3,col=9,endColumn=22,title=PMD0301::")
    );
    assert_eq!(
        lines(&test),
        ["::error file=t.toml,line=5,title=fails & <tells>::a at step 0 (0 s): expected 2, got 1"]
    );
    assert!(fmt.contains("::error file=bad dir/x.conf,line=3,col=1,title=format::"), "{fmt}");
    for line in [check, test, fmt].iter().flat_map(|text| text.lines()) {
        assert!(line.starts_with("::error ") || line.starts_with("::warning "), "{line}");
    }
}

/// One object for each finding, as before.
#[test]
fn json_is_an_object_on_each_line() {
    for (_, text) in documents("json") {
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).expect("JSON");
            assert!(row.is_object(), "{line}");
        }
    }
}
