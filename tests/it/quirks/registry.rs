//! What becomes of definitions before anything is fetched: files, names and
//! options that libpcp reads otherwise than its manual pages say. The answers
//! are the same in all dialects, where none is named.

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::Registry;
use pmderive::syntax::ControlOption;

use super::DIALECTS;

/// A file read in a dialect: the registry and the codes of the mistakes.
fn load(dialect: Dialect, bytes: &[u8]) -> (Registry, Vec<String>) {
    let (registry, diagnostics) = read(dialect, bytes);
    (registry, diagnostics.iter().map(|one| one.code.to_string()).collect())
}

/// A file read in a dialect.
fn read(dialect: Dialect, bytes: &[u8]) -> (Registry, Diagnostics) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("test.conf");
    std::fs::write(&file, bytes).expect("a file");
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(dialect);
    let path = file.to_str().expect("UTF-8");
    let count = registry.load(path, &mut sources, &mut diagnostics);
    assert_eq!(count, registry.names().count());
    (registry, diagnostics)
}

/// Names that a file defines, and the codes of its mistakes.
#[track_caller]
fn file(bytes: &[u8], names: &[&str], codes: &[&str]) {
    for (dialect, name) in DIALECTS {
        let (registry, found) = load(dialect, bytes);
        assert_eq!(registry.names().collect::<Vec<_>>(), names, "{name}");
        assert_eq!(found, codes, "{name}");
    }
}

/// Registers a metric; gives the offset and libpcp's words of a refusal.
fn register(registry: &mut Registry, name: &str, text: &str) -> Option<(i64, Option<String>)> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let source = sources.add("<test>", text);
    let outcome = registry.register(name, source, &sources, &mut diagnostics);
    assert_eq!(outcome.is_err(), diagnostics.errors() > 0, "{name} = {text}");
    outcome.err().map(|error| (error.offset, error.message))
}

/// Q1: a last line without a line end counts; libpcp drops it silently.
#[test]
fn the_last_line_needs_no_end() {
    file(b"a.x = 1\na.y = 2", &["a.x", "a.y"], &[]);
    file(b"a.x = 1\na.y = 2 +", &["a.x"], &["PMD0011"]);
    file(b"a.y = 2", &["a.y"], &[]);
}

/// Q2 and Q3: names have one rule, in files and for programs. libpcp takes a
/// point at the end, and from programs anything at all.
#[test]
fn names_have_one_rule() {
    file(b"a. = 1\nb = 2\n", &["b"], &["PMD0031"]);
    for (dialect, _) in DIALECTS {
        let mut registry = Registry::new(dialect);
        for name in ["a.", "", "a b", "1a", "a..b", "_a", "a.1", "a-b", " a", "\u{e9}"] {
            let words = format!("illegal derived metric name ({name})");
            assert_eq!(register(&mut registry, name, "1"), Some((0, Some(words))), "{name:?}");
        }
        assert_eq!(register(&mut registry, "a.b_1.C", "1"), None);
        assert_eq!(registry.names().collect::<Vec<_>>(), ["a.b_1.C"]);
    }
}

/// libpcp's words for the only mistake of a file, behind its name.
#[test]
fn libpcp_has_words() {
    let name = "1] Error: pmLoadDerivedConfig: illegal derived metric name (x.y.)";
    let missed = "1] Error: pmLoadDerivedConfig: duplicate value for attribute (oneline) of metric \
                  (event.missed)\nevent.missed(oneline) = x";
    let extra = |line: u32, extra: &str| {
        format!(
            "{line}] Warning: pmLoadDerivedConfig: extra text ({extra}) after attribute value will \
             be ignored"
        )
    };
    for (text, words) in [
        ("x.y. = hinv.ncpu\n", Some(name)),
        ("event.missed(oneline) = x\n", Some(missed)),
        ("x = 1\nx(helptext) = \"one two\"j unk \n", Some(&*extra(2, "j unk "))),
        ("x = 1\nx(helptext) = \"one\ntwo\"j unk \n", Some(&*extra(2, "unk "))),
        ("x = 1\nx(helptext) = \"one\ntwo\" junk\n", Some(&*extra(2, "junk"))),
        ("x = 1\nx(helptext) = \"one\ntwo\"j\n", None),
    ] {
        let (_, diagnostics) = read(Dialect::Pcp6_0, text.as_bytes());
        let said: Vec<Option<&str>> = diagnostics.iter().map(|one| one.pcp.as_deref()).collect();
        let after = |said: &str| said.split_once("test.conf:").map(|(_, said)| said.to_owned());
        let said: Vec<Option<String>> = said.into_iter().map(|said| said.and_then(after)).collect();
        assert_eq!(said, [words.map(str::to_owned)], "{text}");
    }
}

/// Q4: options go by their names, by `novalue` as the manual pages have it,
/// and by beginnings that mean one of them. libpcp takes any beginning, the
/// empty one too, and refuses `novalue`. Version 6 has no such lines.
#[test]
fn options_go_by_name() {
    use ControlOption::{ContextLimit, DebugEval, GlobalLimit, NoValue};
    for (line, option, value, codes) in [
        ("#control novalue=1", NoValue, 1, &[][..]),
        ("#CONTROL Option_NoValue=1", NoValue, 1, &[]),
        ("#control opt=1", NoValue, 1, &[]),
        ("#control g=7", GlobalLimit, 7, &[]),
        ("#control =7", GlobalLimit, -1, &["PMD0034"]),
        ("#control debug=1", DebugEval, 0, &["PMD0034"]),
        ("#control debug_e=1,opt=1", DebugEval, 1, &[]),
        ("#control context=7", ContextLimit, -1, &["PMD0034"]),
    ] {
        for (dialect, name) in DIALECTS {
            let (registry, found) = load(dialect, format!("{line}\n").as_bytes());
            let (value, codes) = match (dialect, option) {
                (Dialect::Pcp6_0, GlobalLimit | ContextLimit) => (-1, &[][..]),
                (Dialect::Pcp6_0, _) => (0, &[][..]),
                _ => (value, codes),
            };
            assert_eq!(registry.control(option), value, "{line} in {name}");
            assert_eq!(found, codes, "{line} in {name}");
        }
    }
}

/// A name that is taken is refused whatever its expression is, as by libpcp.
#[test]
fn the_first_definition_stays() {
    let twice = b"a = 1\na = 2\na = 1 +\nb = 3\n";
    file(twice, &["a", "b"], &["PMD0032", "PMD0032"]);
    for (dialect, _) in DIALECTS {
        let mut registry = Registry::new(dialect);
        assert_eq!(register(&mut registry, "a", "1"), None);
        for text in ["2", "1 +", "1", ""] {
            let words = "Duplicate global derived metric name".to_owned();
            assert_eq!(register(&mut registry, "a", text), Some((0, Some(words))), "{text}");
        }
    }
}

/// Q30: expressions nest up to a limit, beyond which libpcp refuses them too,
/// but says nothing; here the mistake has a code and a place.
#[test]
fn nesting_has_a_limit() {
    let nested = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
    for (dialect, name) in DIALECTS {
        let mut registry = Registry::new(dialect);
        for (metric, text) in [
            ("n.parentheses", nested(5_000)),
            ("n.calls", format!("{}a{}", "scalar(".repeat(5_000), ")".repeat(5_000))),
            ("n.minus", format!("{}a", "-".repeat(5_000))),
            ("n.not", format!("{}a", "!".repeat(5_000))),
            ("n.ternary", format!("{}a{}", "a?".repeat(3_000), ":a".repeat(3_000))),
        ] {
            assert_eq!(register(&mut registry, metric, &text), None, "{metric} in {name}");
        }
        for (text, place) in [
            (nested(9_997), None),
            (nested(9_998), Some(9_998)),
            (nested(12_000), Some(9_998)),
            (format!("{}a", "!".repeat(12_000)), Some(9_998)),
        ] {
            let refused = register(&mut registry, "n.deep", &text);
            assert_eq!(refused, place.map(|offset| (offset, None)), "{} bytes", text.len());
            registry.unregister("n.deep");
        }
        let (_, codes) = load(dialect, format!("a = {}\n", nested(12_000)).as_bytes());
        assert_eq!(codes, ["PMD0019"], "{name}");
    }
}

/// Q44: the byte 0xFF is an illegal character; libpcp takes it for the end of
/// the text when a token begins with it.
#[test]
fn no_byte_ends_a_text() {
    file(b"a = 1 \xff + 3\nb = 2\n", &["b"], &["PMD0001"]);
    file(b"a = 1 + 2 \xff junk\nb = 2\n", &["b"], &["PMD0001"]);
    file(b"a = s.one[\xff]\n", &["a"], &[]);
    file(b"a\xff = 1\nb = 2\n", &["b"], &["PMD0031"]);
}
