//! The promises of name spaces about any text, for fuzzers.

use super::*;

/// Reads any text as a name space, with and without the preprocessor, and then
/// looks up everything that it contains.
pub fn fuzz_name_space(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    // The text can include itself, and a file that is missing.
    let include = |name: &str| (name == "self").then(|| ("self".into(), text.to_string()));
    for preprocess in [false, true] {
        let options = LoadOptions { preprocess, duplicates: preprocess };
        let space = match parse(&text, "text", &options, &include) {
            Ok(space) => space,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let names = space.traverse("").expect("a root");
        for name in &names {
            let pmid = space.lookup(name).expect("a metric");
            assert!(space.names_of(pmid).expect("names").iter().any(|found| **found == **name));
            assert_eq!(space.children(name), Ok(Vec::new()));
            assert_eq!(space.traverse(name), Ok(vec![*name]));
        }
    }
}
