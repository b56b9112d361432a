//! Patterns against recorded answers of the GNU C library's `regcomp(3)`,
//! `regexec(3)` and `regerror(3)` with `REG_EXTENDED`.

use pmderive_runtime::pattern::{Pattern, PatternError, TooMuchWork};

#[test]
fn patterns_are_those_of_the_c_library() {
    let data: serde_json::Value =
        serde_json::from_str(include_str!("data/patterns/regcomp.json")).expect("JSON");
    let strings = |value: &serde_json::Value| -> Vec<String> {
        let list = value.as_array().expect("a list").iter();
        list.map(|text| text.as_str().expect("a text").to_owned()).collect()
    };
    let texts = strings(&data["texts"]);
    let mut failures = Vec::new();
    for row in data["rows"].as_array().expect("rows") {
        let pattern = row["pattern"].as_str().expect("a text");
        let expected = match row["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(strings(&row["matches"])),
        };
        let answer = match Pattern::new(pattern) {
            Ok(pattern) => {
                let matches = |text: &&String| pattern.is_match(*text).expect("little work");
                Ok(texts.iter().filter(matches).cloned().collect())
            }
            Err(error) => Err(error.to_string()),
        };
        if answer != expected {
            failures.push(format!("{pattern}: {answer:?}, not {expected:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A match that would never end is an error, and soon.
#[test]
fn work_is_bounded() {
    let long = "a".repeat(200) + "b";
    for pattern in
        ["(a*)*\\1c", "((a*)*)*\\2c", "(.*)(.*)(.*)(.*)(.*)\\1\\2\\3\\4\\5c", "(a|aa)+\\1{2,}c"]
    {
        let pattern = Pattern::new(pattern).expect("a pattern");
        assert_eq!(pattern.is_match(&long), Err(TooMuchWork), "{pattern:?}");
        assert_eq!(pattern.is_match("aaaac"), Ok(true), "{pattern:?}");
    }
    // The name of an instance has no more than this.
    let pattern = Pattern::new("(.+)-\\1$").expect("a pattern");
    let name = format!("{0}-{0}", "x".repeat(120));
    assert_eq!(pattern.is_match(&name), Ok(true));
    assert_eq!(pattern.is_match(name + "y"), Ok(false));
}

#[test]
fn sizes_are_bounded() {
    for pattern in [
        "a".repeat(1 << 20),
        "(a{1000}){1000}".to_owned(),
        "(".repeat(5_000) + &")".repeat(5_000),
        "(".repeat(100) + "a" + &")".repeat(100) + "\\1",
        "((()\\3){30000}){30000}".to_owned(),
        format!("a{}", "{2}".repeat(5_000)),
    ] {
        assert_eq!(Pattern::new(&pattern).err(), Some(PatternError::TooLarge), "{pattern}");
    }
    assert_eq!(Pattern::new("a{32768}").err(), Some(PatternError::TooBig));
    assert!(Pattern::new(&format!("a{}", "*".repeat(10_000))).is_ok());
}

#[test]
fn patterns_search_and_know_text_beyond_ascii() {
    let pattern = Pattern::new("^caf.$|\u{e9}[\u{e0}-\u{ea}]").expect("a pattern");
    let again = Pattern::new("^(c)af.$|(\u{e9})[\u{e0}-\u{ea}]|(x)\\3").expect("a pattern");
    for pattern in [pattern, again] {
        assert_eq!(pattern.is_match("caf\u{e9}"), Ok(true));
        assert_eq!(pattern.is_match("x\u{e9}\u{e8}y"), Ok(true));
        assert_eq!(pattern.is_match("cafe\u{e9}"), Ok(false));
        // Bytes that are not text do no harm.
        assert_eq!(pattern.is_match(b"ca\xfff"), Ok(false));
        assert_eq!(pattern.is_match(b"\xff\xc3\xa9\xc3\xa8\xfe"), Ok(true));
    }
}
