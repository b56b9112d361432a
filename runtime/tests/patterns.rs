//! Patterns against recorded answers of the GNU C library's `regcomp(3)`,
//! `regexec(3)` and `regerror(3)` with `REG_EXTENDED`.

use pmderive_runtime::pattern::{Pattern, PatternError};

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
                Ok(texts.iter().filter(|text| pattern.is_match(text)).cloned().collect())
            }
            // What the library has and this one has not.
            Err(PatternError::BackReference) => continue,
            Err(error) => Err(error.to_string()),
        };
        if answer != expected {
            failures.push(format!("{pattern}: {answer:?}, not {expected:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn back_references_are_refused() {
    assert_eq!(Pattern::new("(a)\\1").err(), Some(PatternError::BackReference));
}

#[test]
fn sizes_are_bounded() {
    for pattern in [
        "a".repeat(1 << 20),
        "(a{1000}){1000}".to_owned(),
        "(".repeat(5_000) + &")".repeat(5_000),
        format!("a{}", "{2}".repeat(5_000)),
    ] {
        assert_eq!(Pattern::new(&pattern).err(), Some(PatternError::TooBig));
    }
    assert!(Pattern::new(&format!("a{}", "*".repeat(10_000))).is_ok());
}

#[test]
fn patterns_search_and_know_text_beyond_ascii() {
    let pattern = Pattern::new("^caf.$|\u{e9}[\u{e0}-\u{ea}]").expect("a pattern");
    assert!(pattern.is_match("caf\u{e9}"));
    assert!(pattern.is_match("x\u{e9}\u{e8}y"));
    assert!(!pattern.is_match("cafe\u{e9}"));
    // Bytes that are no text are nothing that matches, and harm nothing.
    assert!(!pattern.is_match(b"caf\xff"));
    assert!(pattern.is_match(b"\xff\xc3\xa9\xc3\xa8\xfe"));
}
