//! The forms that other programs read, read as these do: SARIF by its
//! schema, JUnit by a parser of XML, annotations by GitHub's grammar.

use serde_json::Value;

use super::schema::mistakes;
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

/// The schema of SARIF 2.1.0 as OASIS publishes it.
fn schema() -> Value {
    let text = include_str!("../../sarif/sarif-schema-2.1.0.json");
    serde_json::from_str(text).expect("JSON")
}

/// What is wrong with a document: by the schema of SARIF, and by what the standard
/// demands in words.
fn sarif_mistakes(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = mistakes(schema, document);
    for run in document["runs"].as_array().into_iter().flatten() {
        let rules = &run["tool"]["driver"]["rules"];
        for result in run["results"].as_array().into_iter().flatten() {
            // A missing index is -1.
            let index = result["ruleIndex"].as_u64().map_or(usize::MAX, |index| index as usize);
            if rules[index]["id"] != result["ruleId"] {
                found.push(format!("the index of another rule: {result}"));
            }
            for location in result["locations"].as_array().into_iter().flatten() {
                let region = &location["physicalLocation"]["region"];
                let number = |key: &str| region[key].as_u64();
                let start = (number("startLine"), number("startColumn"));
                let end = (number("endLine"), number("endColumn"));
                if end.0.is_some() && end < start {
                    found.push(format!("it ends before it starts: {region}"));
                }
            }
        }
    }
    found
}

#[test]
fn sarif_keeps_to_its_schema() {
    let schema = schema();
    for (status, text) in documents("sarif") {
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(sarif_mistakes(&schema, &document), Vec::<String>::new(), "{text}");
        let results = document["runs"][0]["results"].as_array().expect("results");
        assert_eq!(!results.is_empty(), status > 0, "{text}");
    }
}

/// A check that can fail: documents that break the schema are found.
#[test]
fn documents_that_are_no_sarif() {
    let schema = schema();
    let [(_, good), ..] = documents("sarif");
    for (from, to) in [
        ("\"version\": \"2.1.0\"", "\"version\": \"2.0.0\""),
        ("\"ruleId\"", "\"rule\""),
        ("\"message\"", "\"words\""),
        ("\"startLine\": 2", "\"startLine\": 0"),
        ("\"startLine\": 2", "\"startLine\": \"2\""),
        ("\"startLine\": 2", "\"startLine\": 20"),
        ("\"ruleIndex\": 0", "\"ruleIndex\": 9"),
        ("\"uri\": \"bad%20dir/x.conf\"", "\"uri\": \"bad dir/x.conf\""),
        ("\"$schema\": \"https:", "\"$schema\": \""),
        ("\"level\": \"error\"", "\"level\": \"fatal\""),
        ("\"columnKind\": \"unicodeCodePoints\"", "\"columnKind\": \"bytes\""),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from} is not there");
        let document: Value = serde_json::from_str(&bad).expect("JSON");
        assert!(!sarif_mistakes(&schema, &document).is_empty(), "{to}");
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

/// Systems for continuous integration fail by this, and the command has not failed.
#[test]
fn warnings_are_no_failures_to_junit() {
    let folder = folder();
    folder.write("w.conf", "b = delta(mem.util.free)\n");
    folder.write("c.conf", "a = hinv.ncpu\nc = hinv.ncpu > 1 ? 1 : 2\n");
    let tests = folder.read("t.toml").replace("good.conf", "c.conf").replace("\"2\"", "\"1\"");
    folder.write("t.toml", &tests);
    for (arguments, words) in [
        (&["check", "--lint", "-a", FLEET, "w.conf"][..], "<system-out>warning: "),
        (&["test", "--coverage", "t.toml"], "is evaluated by no test"),
    ] {
        let (status, out, err) = folder.run(&[arguments, &["--format", "junit"]].concat());
        assert_eq!(status, 0, "{err}");
        assert!(out.contains(" failures=\"0\"") && !out.contains("<failure"), "{out}");
        assert!(out.contains(words), "{words}: {out}");
    }
}

#[test]
fn annotations_have_lines_and_columns() {
    let [check, test, fmt] = documents("github").map(|(_, text)| text);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
    assert_eq!(
        lines(&check)[1],
        "::error file=bad dir/x.conf,line=2,col=18,endColumn=19,title=PMD0010::`=` is no \
         operator; leave out `hinv.ncpu =`; to compare, write `==`"
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
