//! Local name spaces against the libpcp of this machine: the files of PCP, and
//! small ones with mistakes in them.

use std::path::Path;
use std::sync::Arc;

use pmderive_runtime::local::LocalContext;
use pmderive_runtime::model::{PmStatus, Pmid};
use pmderive_runtime::name_space::{LoadOptions, LocalNameSpace, NameKind, WithNameSpace};
use pmderive_runtime::source::MetadataSource;
use pmderive_testkit::oracle;

use oracle::Oracle;

/// libpcp as a program.
struct Libpcp(Oracle);

/// The loaded names, or the first line of the error.
type Answer = (i32, Vec<String>);

impl Libpcp {
    /// Compiles it, see [`Oracle::compile`].
    fn new() -> Option<Libpcp> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/name_space/oracle.c");
        Oracle::compile(source, &[]).map(Libpcp)
    }

    fn answer(&self, mode: &str, file: &Path) -> Answer {
        let mut program = self.0.command();
        let path = std::env::var("PATH").unwrap_or_default();
        program.arg(mode).arg(file).env("PATH", format!("{path}:/usr/lib/pcp/bin"));
        let output = program.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines().map(str::to_owned);
        let status = lines.next().unwrap().parse().unwrap();
        if status >= 0 {
            // The parts of event records are derived metrics.
            return (status, lines.filter(|line| !line.starts_with("event.")).collect());
        }
        let messages = String::from_utf8_lossy(&output.stderr);
        (status, messages.lines().take(1).map(str::to_owned).collect())
    }
}

fn options(mode: &str) -> LoadOptions {
    LoadOptions { preprocess: mode != "plain", duplicates: mode != "0" }
}

fn ours(mode: &str, file: &Path) -> Answer {
    match LocalNameSpace::load(Some(file), &options(mode)) {
        Ok(space) => {
            let names = space.traverse("").unwrap();
            let line = |name: &&str| format!("{name} {}", space.lookup(name).unwrap());
            (0, names.iter().map(line).collect())
        }
        Err(error) => {
            let first = error.to_string().lines().next().unwrap().to_owned();
            (error.status().0, vec![first])
        }
    }
}

#[test]
fn the_name_spaces_of_pcp_are_read_as_by_libpcp() {
    let Some(oracle) = Libpcp::new() else { return };
    let mut compared = 0;
    for entry in std::fs::read_dir("/var/lib/pcp/pmns").unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        if name != "root" && !name.starts_with("root_") {
            continue;
        }
        for mode in ["0", "1"] {
            assert_eq!(ours(mode, &file), oracle.answer(mode, &file), "{mode} {name}");
            compared += 1;
        }
    }
    let root = Path::new("/var/lib/pcp/pmns/root");
    let (status, names) = ours("plain", root);
    assert!(status == 0 && names.len() > 1000, "{}", names.len());
    assert_eq!((status, names), oracle.answer("plain", root));
    assert!(compared > 20, "{compared}");
}

/// Files that libpcp and the library read or refuse alike.
const FILES: &[&str] = &[
    "root {\n a 1:2:3\n b\n}\nb {\n c 1:2:4\n}\n",
    "root {\n a 1:2:3\n b\n}\n",
    "root { a 1:2:3 d 29:*:* }\n",
    "root {\n}\n",
    "",
    "a { b 1:2:3 }\n",
    "root { a 1:2:3 }\nroot { b 1:2:3 }\n",
    "root { a 1:2:3 }\nzz { b 1:2:3 }\n",
    "root {\n a 1:2:3\n a 1:2:4\n}\n",
    "root {\n a 1:2:3\n b 1:2:3\n}\n",
    "root {\n a 1:2:3\n b\n}\nb { c 1:2:3\n d\n}\nb.d { e 1:2:3 }\n",
    "root {\n a 1:2\n}\n",
    "root {\n a 512:2:3\n}\n",
    "root {\n a 511:2:3\n}\n",
    "root {\n a 510:4095:1023 b 0:0:0\n}\n",
    "root {\n a 1:4096:3\n}\n",
    "root {\n a 1:2:1024\n}\n",
    "root {\n 9a 1:2:3\n}\n",
    "foo\n",
    "root\n{\n a\n 1:2:3\n}\n",
    "root {\n   a 1:2:3 x$y 1:2:4\n}\n",
    "root {\n a 1:2:3 1:2:4\n}\n",
    "root {\n a 1:*:4\n}\n",
    "root {\n a 1:2:-4\n}\n",
    "root {\n a.b 1:2:4\n}\n",
    "1:2:3 {\n a 1:2:4\n}\n",
    "root {\n a 1:2:3 }\n}\n",
    "{\n a 1:2:3 }\n}\n",
    "root a\n",
    "root 1:2:3\n",
    "root }\n",
    "root { {\n",
    "root { a {\n",
    "root { a 9a }\n",
    "root { a 1:2:3: }\n",
    "root { a 1:2:3x }\n",
    "root { a 1:2:3}\n",
    "root{a 1:2:3}\n",
    "root { _x 1:2:5 }\n",
    "root { a_9 1:2:5 }\n",
    "root { a }\na { b\n c 1:2:3 }\na.b { d }\n",
    "root { a }\na { b 1:1:1 }\na { c 1:2:3 }\n",
    "root { a 1:2:3 }\na { b 1:1:1 }\n",
    "root { a 1:2:3 }\na.b { b 1:1:1 }\n",
    "root { a:1:2:3 }\n",
    "root { a 29:*:* }\na { b 29:1:1 }\n",
    "root { a 512:*:* }\n",
    "root { a 29:*:3 }\n",
    "root { root 1:2:3 }\n",
    "root { a b 1:1:1 }\na { }\n",
    "root.a { b 1:2:3 }\nroot { a }\n",
    "a.b { c 1:2:3 }\na { b }\nroot { a }\n",
    "a..b { c 1:2:3 }\nroot { a }\n",
    ".a { c 1:2:3 }\nroot { a }\n",
    "root { a 99999999999:2:3 }\n",
    "root { b c a 1:1:1 }\nc { x 1:1:2 y 1:1:3 }\nb { z 1:1:4 }\n",
    "root { a 29:1:1\n\n\n# 3 \"x\"\n 9 }\n",
];

/// The same for those with a preprocessor.
const PREPROCESSED: &[&str] = &[
    "/* c */ root { a 1:2:3 }\n",
    "#define X 5\nroot { a X:2:3 b X:X:X }\n",
    "#define X Y\n#define Y 5\nroot { a X:2:3 }\n",
    "#define A\nroot {\n#ifdef A\na 1:1:1\n#else\nb 1:1:2\n#endif\n}\n",
    "root {\n#ifndef A\na 1:1:1\n#else\nb 1:1:2\n#endif\n}\n",
    "root { /* a\n b */ a 1:1:1 /*x*/ 9\n}\n",
    "#ifdef X\n#ifdef Y\n#endif\n#endif\nroot { }\n",
    "#include <nosuch>\n",
    "#include nosuch\n",
    "#define A 1\n#define A 2\n",
    "#define A(x) 2\n",
    "#define\n",
    "#endif\n",
    "#else\n",
    "#ifdef A\n#else\n#else\n#endif\nroot { a 1:1:1 }\n",
    "#define A \"1:2:3 b\"\nroot { a A 1:2:4 }\n",
    "#define A q r\n",
    "#define A 1 /* c */\nroot { a A:A:A }\n",
    "#include \"other\"\nroot { a X:X:1 }\n",
    "root {\n#include \"broken\"\n}\n",
    "#include \"self\"\n",
    "#define A 1\n#undef A\nroot { a A:1:1 }\n",
];

#[test]
fn small_files_are_read_or_refused_as_by_libpcp() {
    let Some(oracle) = Libpcp::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other"), "#define X 7\n").unwrap();
    std::fs::write(folder.path().join("broken"), "a 1:1:1\n9\n").unwrap();
    std::fs::write(folder.path().join("self"), "#include \"self\"\n").unwrap();
    let file = folder.path().join("f");
    let mut wrong = Vec::new();
    let plain = FILES.iter().map(|text| (text, &["plain", "0", "1"][..]));
    for (text, modes) in plain.chain(PREPROCESSED.iter().map(|text| (text, &["1"][..]))) {
        std::fs::write(&file, text).unwrap();
        for mode in modes {
            let (mut ours, mut theirs) = (ours(mode, &file), oracle.answer(mode, &file));
            if *mode == "plain" {
                // libpcp counts those lines from 2.
                let without_place = |line: &mut String| {
                    if let Some((_, rest)) = line.split_once("] ") {
                        *line = rest.to_owned();
                    }
                };
                ours.1.iter_mut().for_each(without_place);
                theirs.1.iter_mut().for_each(without_place);
            }
            if ours != theirs {
                wrong.push(format!("{mode} {text:?}\n  libpcp {theirs:?}\n  ours   {ours:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_wrong_is_shown_with_its_place() {
    let load = |text, preprocess| {
        let options = LoadOptions { preprocess, ..LoadOptions::default() };
        LocalNameSpace::parse(text, "f", &options).map_err(|error| error.to_string())
    };
    let shown = "[f:2] Error Parsing ASCII PMNS: Illegal item field in PMID\n    \
                 a 1:2:1024\n      ^\n[f:2] Error Parsing ASCII PMNS: \
                 Expected NAME, PMID or }\n      ^\n      ^";
    assert_eq!(load("root {\n \ta 1:2:1024 \n}\n", true), Err(shown.to_owned()));
    let shown = "pmcpp: f[1]: #include \"x\"\npmcpp: Error: Cannot open file for #include\n\
                 Error Parsing ASCII PMNS: pmcpp returned non-zero exit status";
    assert_eq!(load("#include \"x\"\n", true), Err(shown.to_owned()));
    let refused = load("#shell \"reboot\"\n", true).unwrap_err();
    assert!(refused.contains("runs commands"), "{refused}");
    // A line without its end is a line: libpcp loses it.
    assert_eq!(load("root {\n a 1:2:3", true).unwrap().traverse(""), Ok(vec!["a"]));
    let missing = LocalNameSpace::load(Some(Path::new("/nosuch")), &LoadOptions::default());
    let missing = missing.unwrap_err();
    assert_eq!(missing.to_string(), "Error Parsing ASCII PMNS: Cannot open \"/nosuch\"");
    assert_eq!(missing.status(), PmStatus(-2));
}

#[test]
fn names_are_looked_up_and_walked() {
    let text = "root { a b 1:1:1 d 29:*:* e }\na { x 2:1:1 y }\na.y { z 1:1:1 }\ne { }\n";
    let space = LocalNameSpace::parse(text, "f", &LoadOptions::default()).unwrap();
    assert_eq!(space.traverse(""), Ok(vec!["a.x", "a.y.z", "b", "d"]));
    assert_eq!(space.traverse("a.y"), Ok(vec!["a.y.z"]));
    let children = |node| -> Vec<String> {
        let children = space.children(node).unwrap();
        children.iter().map(|child| format!("{} {}", child.name, child.is_leaf)).collect()
    };
    assert_eq!(children(""), ["a false", "b true", "d true"]);
    assert_eq!(children("a"), ["x true", "y false"]);
    assert!(children("a.x").is_empty());
    for (name, status) in [
        ("", PmStatus::NAME),
        ("a", PmStatus::NONLEAF),
        ("a.y", PmStatus::NONLEAF),
        ("A", PmStatus::NAME),
        ("a.", PmStatus::NAME),
        (".a", PmStatus::NAME),
        ("a.x.z", PmStatus::NAME),
        ("e", PmStatus::NAME),
        ("d.x", PmStatus::NAME),
    ] {
        assert_eq!(space.lookup(name), Err(status), "{name}");
    }
    assert_eq!(space.lookup("d").map(|pmid| pmid.to_string()), Ok("29.*.*".to_owned()));
    assert_eq!(space.find("d.x.y"), Some(NameKind::Dynamic { domain: 29, is_top: false }));
    assert_eq!(space.names_of(Pmid::new(1, 1, 1)), Ok(vec!["a.y.z".into(), "b".into()]));
    assert_eq!(space.names_of(Pmid::new(9, 1, 1)), Err(PmStatus::PMID));
    assert_eq!(space.traverse("e"), Err(PmStatus::NAME));
}

#[test]
fn names_of_a_file_replace_those_of_a_source() {
    let mut source = LocalContext::new();
    let [load, pages] = ["kernel.all.load", "mem.physmem"];
    let pmids = source.lookup_names(&[load, pages]).unwrap();
    let [load_pmid, pages_pmid] = [pmids[0].unwrap(), pmids[1].unwrap()];
    let text = format!(
        "root {{ mine dyn 29:*:* kernel 60:*:* }}\nmine {{ load {} }}\n",
        load_pmid.to_string().replace('.', ":")
    );
    let names = LocalNameSpace::parse(&text, "f", &LoadOptions::default()).unwrap();
    let mut source = WithNameSpace::new(Arc::new(names), source);
    let found = source.lookup_names(&["mine.load", pages, load, "mine", "dyn.x"]).unwrap();
    let (name, nonleaf) = (Err(PmStatus::NAME), Err(PmStatus::NONLEAF));
    assert_eq!(found, [Ok(load_pmid), name, Ok(load_pmid), nonleaf, name]);
    let all = source.traverse("").unwrap();
    assert!(all.iter().any(|name| name == "mine.load") && all.iter().any(|name| name == load));
    // No agent fills it, but it exists.
    assert!(all.iter().any(|name| name == "dyn"), "{all:?}");
    assert!(!all.iter().any(|name| name == pages || name.starts_with("dyn.")), "{all:?}");
    let children = source.children("kernel").unwrap().unwrap();
    assert!(children.iter().any(|child| &*child.name == "all"), "{children:?}");
    assert_eq!(source.names_of(load_pmid).unwrap(), Ok(vec!["mine.load".into()]));
    assert_eq!(source.names_of(pages_pmid).unwrap(), Err(PmStatus::PMID));
    assert!(source.lookup_descs(&[load_pmid]).unwrap()[0].is_ok());
    let mut source = source.into_source();
    assert_eq!(source.lookup_names(&[pages]).unwrap(), [Ok(pages_pmid)]);
}
